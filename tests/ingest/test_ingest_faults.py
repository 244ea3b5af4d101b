"""Ingestion on a real Kafka whose broker is killed, and on a disk that is full: each record once in the end."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
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


def rows(path: Path, kind: str) -> pl.DataFrame:
    return pl.read_delta(str(path)) if kind == "delta" else pl.read_parquet(str(path / "*.parquet"))


def each_once(frame: pl.DataFrame) -> bool:
    """Whether the table has every record, at every offset, once."""
    offsets = [(p, at) for p in range(PARTITIONS) for at in range(RECORDS // PARTITIONS)]
    return sorted(frame["id"].to_list()) == list(range(RECORDS)) and \
        sorted(frame.select("partition", "offset").rows()) == offsets


@pytest.mark.parametrize("kind", ["parquet", "delta"])
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

    options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=(topic,), path=str(tmp_path / "t"),
                            value="json", schema=SCHEMA, format=kind, source={"maxOffsetsPerTrigger": "2000"})
    with Ingestion(options, LocalRunner(2)) as run:
        run.run(after)
    assert back.wait(60)
    assert len(triggers) == RECORDS // 2000
    assert each_once(rows(tmp_path / "t", kind))


def limited() -> None:
    """A file takes no more than 20 kB; a write beyond that is an error, not a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_the_disk_is_full(cluster: KafkaCluster, topic: str, tmp_path: Path, kind: str):
    """The run fails, names the file, and commits nothing of the trigger; the next run has every record once."""
    path = tmp_path / "t"
    line = [sys.executable, "-m", "kconsumer", "ingest", topic, "-b", cluster.bootstrap_servers, "--value", "json",
            "--schema", SCHEMA, "--runner", "local", "--workers", "2", "-o", kind, "-O", str(path)]
    full = subprocess.run(line, capture_output=True, text=True, check=False, preexec_fn=limited)
    assert full.returncode == 1, full.stderr
    assert "File too large" in full.stderr
    assert str(path) in full.stderr
    assert "Traceback" not in full.stderr
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert each_once(rows(path, kind))
    there = {file.name for file in path.rglob("*.parquet*") if "_kconsumer" not in file.parts}
    if kind == "delta":
        import deltalake

        assert there == {Path(uri).name for uri in deltalake.DeltaTable(str(path)).file_uris()}
    else:
        assert not [name for name in there if name.endswith(".staged")]
