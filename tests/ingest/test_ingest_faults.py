"""Ingestion on a real Kafka whose broker is killed, and on a disk that is full: each record once in the end."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.task import Task
from kconsumer.testing import KafkaCluster

pytestmark = pytest.mark.kafka
PARTITIONS = 4
RECORDS = 20_000
SCHEMA = "id BIGINT, text STRING"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """A separate cluster, because its broker is killed."""
    with KafkaCluster(1) as found:
        yield found


@pytest.fixture
def topic(cluster: KafkaCluster, topic_name: Callable[[], str]) -> str:
    name = topic_name()
    cluster.create_topic(name, PARTITIONS)
    cluster.produce(name, ({"value": json.dumps({"id": n, "text": f"{n * 2654435761 % 2**32:x}" * 4}).encode(),
                            "partition": n % PARTITIONS} for n in range(RECORDS)))
    return name


FORMATS = ("parquet", "delta", "iceberg")


def catalog(path: Path) -> dict[str, str]:
    return {"name": "faults", "type": "sql", "uri": f"sqlite:///{path.parent}/catalog.db"}


def iceberg_files(path: Path) -> list[str]:
    from pyiceberg.catalog import load_catalog

    given = catalog(path)
    table = load_catalog(given.pop("name"), **given).load_table("space.rows")
    return [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]


def target(path: Path, kind: str) -> dict[str, Any]:
    """The options of a table."""
    return {"path": str(path), "format": kind,
            **({"table": "space.rows", "catalog": catalog(path)} if kind == "iceberg" else {})}


def rows(path: Path, kind: str) -> pl.DataFrame:
    if kind == "iceberg":
        return pl.read_parquet(iceberg_files(path))
    return pl.read_delta(str(path)) if kind == "delta" else pl.read_parquet(str(path / "*.parquet"))


def no_other_file(path: Path, kind: str) -> bool:
    """Whether each Parquet file in the table's folder belongs to the table."""
    there = {file.name for file in path.rglob("*.parquet*") if "_delta_log" not in file.parts}
    if kind == "parquet":
        return not [name for name in there if name.endswith(".staged")]
    if kind == "iceberg":
        return there == {Path(file).name for file in iceberg_files(path)}
    import deltalake

    return there == {Path(uri).name for uri in deltalake.DeltaTable(str(path)).file_uris()}


def each_once(frame: pl.DataFrame) -> bool:
    """Whether the table has every record, at every offset, once."""
    offsets = [(p, at) for p in range(PARTITIONS) for at in range(RECORDS // PARTITIONS)]
    return sorted(frame["id"].to_list()) == list(range(RECORDS)) and \
        sorted(frame.select("partition", "offset").rows()) == offsets


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", FORMATS)
def test_the_broker_is_killed_meanwhile(cluster: KafkaCluster, topic: str, tmp_path: Path, kind: str):
    """While tasks read and the driver plans: the run waits for the broker, and goes on."""
    triggers = []
    back = threading.Event()

    def after(metrics: Any) -> None:
        triggers.append(metrics.rows)
        if len(triggers) == 2:
            cluster.kill(cluster.broker_ids[0])
            threading.Timer(3.0, restart).start()

    def restart() -> None:
        cluster.restart(cluster.broker_ids[0])
        back.set()

    options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=(topic,), value="json",
                            schema=SCHEMA, source={"maxOffsetsPerTrigger": "2000"}, **target(tmp_path / "t", kind))
    with Ingestion(options, LocalRunner(2)) as run:
        run.run(after)
    assert back.wait(60)
    assert len(triggers) == RECORDS // 2000
    assert each_once(rows(tmp_path / "t", kind))


def limited(size: int) -> None:
    """A file takes no more bytes; a write beyond that is an error, not a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("kind", FORMATS)
def test_the_disk_is_full(cluster: KafkaCluster, topic: str, tmp_path: Path, kind: str):
    """The run fails, names the file, and commits nothing of the trigger; the next run has every record once."""
    path = tmp_path / "t"
    line = [sys.executable, "-m", "kconsumer", "ingest", topic, "-b", cluster.bootstrap_servers, "--value", "json",
            "--schema", SCHEMA, "--runner", "local", "--workers", "2", "-o", kind, "-O", str(path)]
    if kind == "iceberg":
        line += ["--table", "space.rows", *(part for name, value in catalog(path).items()
                                            for part in ("--catalog", f"{name}={value}"))]
    full = subprocess.run(line, capture_output=True, text=True, check=False,
                          preexec_fn=lambda: limited(50_000 if kind == "iceberg" else 20_000))  # SQLite's file: 40 kB
    assert full.returncode == 1, full.stderr
    assert "File too large" in full.stderr
    assert str(path) in full.stderr
    assert "Traceback" not in full.stderr
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert each_once(rows(path, kind))
    assert no_other_file(path, kind)


class Speculating(LocalRunner):
    """Runs each task twice at once, and takes either attempt's result; keeps the tasks."""

    def __init__(self) -> None:
        super().__init__(4)
        self.tasks: list[Task] = []

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        self.tasks += tasks
        found = super().map([*tasks, *tasks], what)
        return [found[n + len(tasks) * (n % 2)] for n in range(len(tasks))]


@pytest.mark.parametrize("kind", FORMATS)
def test_tasks_run_twice_at_once(cluster: KafkaCluster, topic: str, tmp_path: Path, kind: str):
    """Speculation: the table has the files of one attempt. The others go, even that of an attempt after the commit."""
    path = tmp_path / "t"
    options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=(topic,), value="json",
                            schema=SCHEMA, source={"maxOffsetsPerTrigger": "5000"}, **target(path, kind))
    with Ingestion(options, Speculating()) as run:
        run.run()
        runner = run._runner
        assert isinstance(runner, Speculating)
        assert len(runner.tasks) >= 4
        LocalRunner.map(runner, runner.tasks[-1:], "an attempt that ends late")
    assert each_once(rows(path, kind))
    assert kind == "parquet" or not no_other_file(path, kind)
    cluster.produce(topic, [{"value": json.dumps({"id": RECORDS, "text": ""}).encode(), "partition": 0}])
    with Ingestion(options, LocalRunner(1)) as run:
        run.run()  # its claim removes the files that are not committed
    assert no_other_file(path, kind)
    assert sorted(rows(path, kind)["id"].to_list()) == list(range(RECORDS + 1))
