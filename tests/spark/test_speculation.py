"""Spark's speculation while the direct engine writes: two attempts of a task run at once, the table has one's files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.testing import KafkaCluster
from tests.spark.standalone import Standalone, wait_until
from tests.spark.test_kills import SPECULATION

pytest.importorskip("deltalake")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
KINDS = ("parquet", "delta", "iceberg")
PARTITIONS = 2
TRIGGERS = (40_000, 20_000)  # the first one has two tasks: Spark never repeats the only task of a stage
RECORDS = sum(TRIGGERS)
JOB = Path(__file__).with_name("speculation_job.py")


@dataclass(frozen=True)
class Scene:
    """The folder of a job that has ended, and the options of its tables."""

    folder: Path
    options: dict[str, dict[str, Any]]

    def note(self, kind: str, what: str) -> Any:
        return json.loads((self.folder / f"{kind}-{what}.json").read_text())


def value(n: int) -> bytes:
    return json.dumps({"id": n, "part": n % 3}).encode()


def options(servers: str, folder: Path, kind: str) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if kind == "iceberg":
        more = {"table": "space.rows",
                "catalog": {"name": "speculation", "type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}}
    return {"bootstrap_servers": servers, "path": str(folder / kind), "format": kind, "job": kind, "value": "json",
            "schema": "id BIGINT, part INT", "metadata": ("partition", "offset"), "partition_by": ("part",),
            "source": {"maxOffsetsPerTrigger": str(TRIGGERS[0])}, **more}


def is_running(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


@contextmanager
def running(folder: Path, master: str) -> Iterator[subprocess.Popen[bytes]]:
    """The job, whose log is FOLDER/job.log."""
    (folder / "events").mkdir()
    with open(folder / "job.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(JOB), master, str(folder), *SPECULATION, f"spark.eventLog.dir={folder}/events"],
            stdin=subprocess.PIPE, stdout=log, stderr=log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture(scope="module")
def scene(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A job into a table of each kind. Its slow attempts have ended while it was still there."""
    folder = tmp_path_factory.mktemp("speculation")
    found = Scene(folder, {kind: options(kafka.bootstrap_servers, folder, kind) for kind in KINDS})
    for kind in KINDS:
        kafka.create_topic(kind, PARTITIONS)
        kafka.produce(kind, ({"value": value(n), "partition": n % PARTITIONS} for n in range(RECORDS)))
    (folder / "options.json").write_text(json.dumps(found.options))

    def log() -> str:
        return (folder / "job.log").read_text(errors="replace")[-6000:]

    with Standalone(folder, hosts=True) as standalone, running(folder, standalone.master) as process:
        for kind in KINDS:
            wait_until(lambda done=folder / f"{kind}-done.json": done.exists() or process.poll() is not None, log)
            assert process.poll() is None, log()
            slow = found.note(kind, "slow")["process"]
            wait_until(lambda slow=slow: not is_running(slow), lambda slow=slow: f"Spark keeps the worker {slow}", 60)
        process.communicate(timeout=120)
        assert process.returncode == 0, log()
    return found


def committed(given: dict[str, Any]) -> list[Path]:
    """The files of a table."""
    path, kind = Path(given["path"]), given["format"]
    if kind == "parquet":
        return sorted(file for file in path.rglob("*.parquet") if "_kconsumer" not in file.parts)
    if kind == "delta":
        import deltalake

        return sorted(Path(uri.removeprefix("file://")) for uri in deltalake.DeltaTable(str(path)).file_uris())
    from pyiceberg.catalog import load_catalog

    catalog = dict(given["catalog"])
    table = load_catalog(catalog.pop("name"), **catalog).load_table(given["table"])
    return sorted(Path(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files())


def rows(files: list[Path]) -> list[tuple[int, int, int]]:
    table = pa.concat_tables([pq.read_table(file, columns=["id", "partition", "offset"], partitioning=None)
                              for file in files])
    return sorted(tuple(row.values()) for row in table.to_pylist())


def expected(count: int) -> list[tuple[int, int, int]]:
    return [(n, n % PARTITIONS, n // PARTITIONS) for n in range(count)]


def tasks(events: Path) -> dict[int, dict[str, Any]]:
    """By its number, what Spark's event log says at the end of each attempt of a task."""
    lines = (json.loads(line) for path in sorted(events.rglob("*")) if path.is_file() and path.name.startswith("events")
             for line in path.read_text().splitlines())
    return {found["Task Info"]["Task ID"]: {**found["Task Info"], "Stage": found["Stage ID"],
                                            "End": found["Task End Reason"]}
            for found in lines if found["Event"] == "SparkListenerTaskEnd"}


@pytest.mark.parametrize("kind", KINDS)
def test_two_attempts_run_at_once(scene: Scene, kind: str):
    found = tasks(scene.folder / "events")
    slow = found[scene.note(kind, "slow")["task"]]
    (other,) = (task for task in found.values() if (task["Stage"], task["Index"]) == (slow["Stage"], slow["Index"])
                and task is not slow)
    assert (slow["Speculative"], other["Speculative"]) == (False, True)
    assert slow["Host"] != other["Host"]
    assert slow["Launch Time"] < other["Launch Time"] < other["Finish Time"] <= slow["Finish Time"]
    assert other["End"]["Reason"] == "Success"
    assert slow["End"]["Reason"] == "TaskKilled"  # as another attempt has succeeded, or the stage is over


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_has_each_record_once_and_the_next_claim_removes_the_other_files(
    scene: Scene, kafka: KafkaCluster, kind: str
):
    given = scene.options[kind]
    assert scene.note(kind, "done") == list(TRIGGERS)
    before = committed(given)
    assert rows(before) == expected(RECORDS)
    lost = [file for name in scene.note(kind, "slow")["files"] for file in Path(given["path"]).rglob(Path(name).name)]
    assert len(lost) == 3, "the worker was killed: it has not removed its files"
    assert not set(lost) & set(before)

    kafka.produce(kind, [{"value": value(RECORDS), "partition": RECORDS % PARTITIONS}])
    with Ingestion(IngestOptions(**given, topics=(kind,)), LocalRunner(1)) as ingestion:
        ingestion.run()
    assert not [file for file in lost if file.exists()]
    assert set(before) < set(committed(given))
    assert rows(committed(given)) == expected(RECORDS + 1)
