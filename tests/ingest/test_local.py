"""`kconsumer ingest` with processes of this machine, on the embedded cluster and on a real Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from kconsumer.ingest import BadRecordError, Ingestion, IngestOptions, LocalRunner
from kconsumer.ingest.runners.local import _Worker
from kconsumer.testing import EmbeddedCluster, KafkaCluster

PARTITIONS = 4
SCHEMA = "id BIGINT, text STRING, time TIMESTAMP, price DECIMAL(10, 2), tags ARRAY<STRING>"


@pytest.fixture(scope="module", params=[pytest.param("embedded", marks=pytest.mark.embedded),
                                        pytest.param("real", marks=pytest.mark.kafka)])
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    with EmbeddedCluster(1) if request.param == "embedded" else KafkaCluster(1) as found:
        yield found


def value(n: int) -> bytes:
    return json.dumps({"id": n, "text": f"text {n}" if n % 7 else None, "time": f"2024-03-{n % 9 + 1:02d}T12:00:00Z",
                       "price": n / 4, "tags": ["a", str(n)]}).encode()


def fill(cluster: Any, topic: str, count: int, first: int = 0) -> None:
    cluster.produce(topic, ({"value": value(n) if n % 100 != 50 else b'{"id": "x"}', "key": b"%d" % n,
                             "partition": n % PARTITIONS} for n in range(first, first + count)))


@pytest.fixture
def topic(cluster: Any) -> str:
    name = f"ingest-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, PARTITIONS)
    return name


def command(cluster: Any, topic: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kconsumer", "ingest", topic, "-b", cluster.bootstrap_servers, "--value", "json",
            "--schema", SCHEMA, "--runner", "local", "--workers", "2", *arguments]


def run(*arguments: Any) -> str:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_topic_becomes_typed_parquet_and_the_next_run_continues(cluster: Any, topic: str, tmp_path: Path):
    out = str(tmp_path / "out")
    fill(cluster, topic, 5_000)
    line = json.loads(run(cluster, topic, "-O", out, "--metrics", "-"))
    assert (line["rows"], line["bad"], line["lag"], line["total_rows"]) == (5_000, 50, 0, 5_000)
    fill(cluster, topic, 1_000, 5_000)
    run(cluster, topic, "-O", out)
    assert run(cluster, topic, "-O", out, "--metrics", "-") == ""
    found = duckdb.sql(f"""select count(*), count(distinct ("partition", "offset")), sum(id), sum(price),
                           count(bad_record), count(*) filter (time = timestamptz '2024-03-01 12:00:00+00')
                           from read_parquet('{out}/*.parquet')""").fetchall()[0]
    good = [n for n in range(6_000) if n % 100 != 50]
    assert found == (6_000, 6_000, sum(good), pytest.approx(sum(n / 4 for n in good)), 60,
                     sum(n % 9 == 0 for n in good))
    frame = pl.read_parquet(f"{out}/*.parquet").filter(pl.col("id").is_not_null())
    assert frame["tags"].list.get(1).cast(pl.Int64).equals(frame["id"])
    assert frame["key"].cast(pl.String).cast(pl.Int64).equals(frame["id"])
    bad = pl.read_parquet(f"{out}/*.parquet").filter(pl.col("id").is_null())["bad_record"].struct
    assert set(bad.field("reason")) == {"expected int64, found a string"}
    assert set(bad.field("value")) == {b'{"id": "x"}'}


def test_partitions_sorting_and_dead_letters(cluster: Any, topic: str, tmp_path: Path):
    out, letters = str(tmp_path / "out"), str(tmp_path / "letters")
    fill(cluster, topic, 2_000)
    run(cluster, topic, "-O", out, "--dead-letter", letters, "--partition-by", "day=to_date(time)", "--sort-by", "text",
        "--metadata", "partition,offset,timestamp=kafka_time", "--codec", "snappy")
    found = duckdb.sql(f"""select day, count(*), sum(id) from read_parquet('{out}/**/*.parquet', hive_partitioning=true)
                           group by 1 order by 1""").fetchall()
    good = [n for n in range(2_000) if n % 100 != 50]
    assert [(str(day), count, total) for day, count, total in found] == [
        (f"2024-03-{d + 1:02d}", sum(n % 9 == d for n in good), sum(n for n in good if n % 9 == d)) for d in range(9)]
    for path in Path(out).glob("day=*/*.parquet"):
        texts = [text for text in pq.read_table(path, partitioning=None)["text"].to_pylist() if text is not None]
        assert texts == sorted(texts)
        assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "SNAPPY"
    bad = pl.read_parquet(f"{letters}/*.parquet").sort("partition", "offset")
    assert bad["key"].to_list() == [b"%d" % n for n in range(50, 2_000, 100)]
    assert set(bad["topic"]) == {topic}
    assert set(bad["value"]) == {b'{"id": "x"}'}


def options(cluster: Any, topic: str, path: Path, **more: Any) -> IngestOptions:
    return IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=(topic,), path=str(path), value="json",
                         schema=SCHEMA, **more)


def count(path: Path) -> tuple[int, int]:
    """Rows, and records among them."""
    found = duckdb.sql(f"""select count(*), count(distinct ("partition", "offset"))
                           from read_parquet('{path}/*.parquet')""").fetchall()
    return found[0]


def test_with_bad_records_fail_a_bad_record_fails_the_run(cluster: Any, topic: str, tmp_path: Path):
    fill(cluster, topic, 200)
    with Ingestion(options(cluster, topic, tmp_path, bad_records="fail"), LocalRunner(1)) as ingestion, \
            pytest.raises(BadRecordError, match=(
                rf"{topic} \[2\] at offset 12: field id: expected int64, found a string")):
        ingestion.run()
    assert not list(tmp_path.glob("*.parquet"))
    assert not list(tmp_path.rglob("*.staged"))


def test_a_killed_worker_is_replaced(cluster: Any, topic: str, tmp_path: Path):
    fill(cluster, topic, 40_000)
    runner = LocalRunner(2)
    killed = threading.Event()

    def kill() -> None:
        while not killed.is_set():
            if runner.pids:
                os.kill(runner.pids[0], signal.SIGKILL)
                killed.set()
            time.sleep(0.001)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    with Ingestion(options(cluster, topic, tmp_path), runner) as ingestion:
        ingestion.run()
    thread.join()
    assert killed.is_set()
    assert count(tmp_path) == (40_000, 40_000)


def test_ctrl_c_does_not_reach_a_worker_that_starts():
    worker = _Worker()
    try:
        assert worker.process.pid is not None
        os.kill(worker.process.pid, signal.SIGINT)
        worker.pipe.send("not a task")
        assert isinstance(worker.result(), AttributeError)
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        worker.end()


def test_sigterm_ends_after_the_commit(cluster: Any, topic: str, tmp_path: Path):
    fill(cluster, topic, 3_000)
    process = subprocess.Popen(command(cluster, topic, "-O", str(tmp_path), "--trigger", "1s", "--metrics", "-"),
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["rows"] == 3_000
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert count(tmp_path) == (3_000, 3_000)
