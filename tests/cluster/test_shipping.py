"""kconsumer on a real Spark cluster, shipped to it in each documented way; a worker is lost meanwhile.

`make cluster-test` runs this. A standalone master, two workers, three brokers, drivers started by spark-submit: all
separate processes. The workers' Python has nothing but the shipped files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kconsumer.testing import KafkaCluster
from tests.cluster.shipping import PLAIN, Shipment, Way, archived, installed
from tests.spark.programs import EXAMPLE
from tests.spark.standalone import Standalone, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(900)]
PARTITIONS = 6
RECORDS = 90_000
TRIGGERS = 15
SETTINGS = ("spark.ui.enabled=false", "spark.executor.memory=512m", "spark.driver.memory=512m", "spark.cores.max=2",
            # Jobs begin once both executors are there.
            "spark.scheduler.minRegisteredResourcesRatio=1", "spark.scheduler.maxRegisteredResourcesWaitingTime=300s")


@pytest.fixture(scope="module")
def topic(kafka3: KafkaCluster) -> str:
    kafka3.create_topic("shipped", PARTITIONS)
    kafka3.produce("shipped", ({"value": b"%d" % n, "partition": n % PARTITIONS} for n in range(RECORDS)))
    return "shipped"


@dataclass(frozen=True)
class Scene:
    """The shipment and clusters that the jobs of a test share."""

    shipment: Shipment
    cluster: Standalone
    way: Way
    servers: str
    topic: str
    folder: Path

    @contextmanager
    def driver(self, name: str, *job: str | Path) -> Iterator[Driver]:
        """A job that spark-submit starts; killed if it still runs when the block is left."""
        settings = [part for setting in SETTINGS for part in ("--conf", setting)]
        command = [self.shipment.driver / "bin/spark-submit", "--master", self.cluster.master, *settings,
                   *self.way.arguments, *job]
        with open(self.folder / f"{name}.log", "wb") as out:
            process = subprocess.Popen(
                list(map(str, command)), stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=self.way.directory,
                env={**PLAIN, "PYSPARK_PYTHON": self.way.python, "SPARK_LOCAL_IP": "127.0.0.1"},
                start_new_session=True)
        try:
            yield Driver(process, self.folder / f"{name}.log")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)


@dataclass(frozen=True)
class Driver:
    """The process of a job."""

    process: subprocess.Popen[bytes]
    output: Path

    def wait_until(self, condition: Callable[[], object]) -> None:
        """It must not end before."""
        wait_until(lambda: condition() or self.process.poll() is not None, self.log)
        assert self.process.poll() is None, self.log()

    def end(self) -> None:
        assert self.process.wait(300) == 0, self.log()

    def log(self) -> str:
        return self.output.read_text(errors="replace")[-6000:]


def check(files: list[Path]) -> None:
    """Every record once."""
    import pyarrow.dataset as ds

    table = ds.dataset([str(path) for path in files], format="parquet").to_table(["partition", "offset", "value"])
    places = zip(table.column("partition").to_pylist(), table.column("offset").to_pylist(), strict=True)
    found = sorted((int(value), *place) for value, place in zip(table.column("value").to_pylist(), places, strict=True))
    assert found == [(n, n % PARTITIONS, n // PARTITIONS) for n in range(RECORDS)]


def committed(folder: Path) -> Iterator[Path]:
    """The files that count of a streaming query's output, of which a trigger that was lost leaves others."""
    logs = [path for path in (folder / "_spark_metadata").iterdir() if path.name[0].isdigit()]
    names = {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}
    return (Path(name.removeprefix("file://").removeprefix("file:")) for name in sorted(names))


@pytest.mark.parametrize("shipped", [installed, archived])
def test_batch_streaming_and_ingestion_with_a_worker_lost(
    shipment: Shipment, kafka3: KafkaCluster, topic: str, tmp_path: Path,
    shipped: Callable[[Shipment, Path, Standalone], Way],
):
    with Standalone(tmp_path, shipment.spark_home) as cluster:
        way = shipped(shipment, tmp_path, cluster)
        scene = Scene(shipment, cluster, way, kafka3.bootstrap_servers, topic, tmp_path)
        batch(scene)
        cluster.restart_worker(1)
        streaming(scene)
        cluster.restart_worker(2)
        direct(scene)


def batch(scene: Scene) -> None:
    output, cluster = scene.folder / "batch", scene.cluster
    job = Path(__file__).with_name("batch_job.py")
    with scene.driver("batch", job, scene.servers, scene.topic, scene.folder) as driver:
        driver.wait_until(lambda: len(list(output.glob("_temporary/0/task_*"))) >= 20)
        cluster.kill_worker(1)
        assert not (output / "_SUCCESS").exists()
        driver.end()
    check(list(output.glob("*.parquet")))
    executors = json.loads((scene.folder / "executors.json").read_text())
    assert len(executors) == len(cluster.workers)
    check_environments(scene, executors)


def check_environments(scene: Scene, executors: Sequence[tuple[str, str, str]]) -> None:
    """Each Python worker ran below a worker of the cluster, with the shipped kconsumer."""
    for directory, prefix, module in executors:
        assert any(Path(directory).is_relative_to(scene.cluster.work(number)) for number in scene.cluster.workers)
        own = Path(directory, scene.way.python).parents[1]
        assert Path(prefix).samefile(own)
        assert Path(module).resolve().is_relative_to(own.resolve())


def streaming(scene: Scene) -> None:
    """A streaming query."""
    state, output = scene.folder / "state", scene.folder / "stream"
    arguments = (scene.servers, scene.topic, state, "parquet", output, "SELECT * FROM records",
                 "--option", f"maxOffsetsPerTrigger={RECORDS // TRIGGERS}")

    def triggers() -> int:
        return len(list((state / "commits").glob("[0-9]*")))

    with scene.driver("stream", EXAMPLE, *arguments) as driver:
        driver.wait_until(lambda: triggers() >= 2)
        scene.cluster.kill_worker(2)
        assert triggers() < TRIGGERS
        driver.end()
    check(list(committed(output)))
    assert triggers() == TRIGGERS


def direct(scene: Scene) -> None:
    """The ingestion, whose tasks run on the executors: worker 1 is lost while it runs one of them."""
    metrics, attempts, table = scene.folder / "direct-metrics", scene.folder / "attempts", scene.folder / "table"
    lost = scene.cluster.work(1)

    def notes(ending: str) -> dict[str, Any]:
        return {path.stem: json.loads(path.read_text()) for path in attempts.glob(f"*.{ending}")}

    job = Path(__file__).with_name("direct_job.py")
    with scene.driver("direct", job, scene.servers, scene.topic, scene.folder, str(RECORDS // 2), lost) as driver:
        driver.wait_until(lambda: notes("held"))
        scene.cluster.kill_worker(1)
        assert len(metrics.read_text().splitlines()) == 1
        driver.end()
    check(list(table.glob("*.parquet")))
    assert [json.loads(line)["rows"] for line in metrics.read_text().splitlines()] == [RECORDS // 2] * 2

    begun, ended = notes("begun"), notes("ended")
    check_environments(scene, list(begun.values()))
    ((held, names),) = notes("held").items()
    assert Path(begun[held][0]).is_relative_to(lost)
    assert [attempt for attempt in begun if attempt not in ended] == [held]
    assert len(ended) == 4, "each trigger has two tasks, and one of them ran twice"
    for number in scene.cluster.workers:
        assert any(Path(begun[attempt][0]).is_relative_to(scene.cluster.work(number)) for attempt in ended)
    assert all((table / name).exists() for name in names), "the files of the lost attempt stay until the next claim"
