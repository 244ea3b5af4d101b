"""`kconsumer ingest` as a process: what it prints, how it ends, and that a run after a signal goes on exactly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kconsumer.errors import KafkaError
from kconsumer.testing import EmbeddedCluster, KafkaCluster

FETCH = 1
Names = Callable[[], str]
CONF = ("--conf", "spark.master=local[2]", "--conf", "spark.ui.enabled=false")
# As where a virtual environment is not activated: nothing but the command's own path leads to this Python.
ENVIRONMENT = {name: text for name, text in os.environ.items() if name not in (
    "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV", "PYTHONPATH")} | {
    "SPARK_LOCAL_IP": "127.0.0.1", "PATH": os.pathsep.join(
        folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if Path(folder).resolve() != Path(sys.executable).parent.resolve())}


def command(cluster: KafkaCluster | EmbeddedCluster, folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kconsumer", "ingest", "-b", cluster.bootstrap_servers, "-O", str(folder / "rows"),
            "--checkpoint", str(folder / "state"), *CONF, *arguments]


def ingest(
    cluster: KafkaCluster | EmbeddedCluster, folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(cluster, folder, *arguments), capture_output=True, text=True, timeout=240,
                          env={**ENVIRONMENT, **environment}, stdin=subprocess.DEVNULL, check=False)


@pytest.fixture
def running() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command; what still runs when the test ends is killed, with Spark's JVM."""
    started: list[subprocess.Popen[str]] = []

    def start(arguments: list[str], log: Path) -> subprocess.Popen[str]:
        with open(log, "ab") as errors:
            started.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True,
                                            stdin=subprocess.DEVNULL, env=ENVIRONMENT, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


def numbers(spark: Any, folder: Path) -> list[int]:
    rows = spark.read.parquet(str(folder / "rows")).selectExpr("cast(cast(value as string) as int) as n")
    return sorted(row.n for row in rows.collect())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_metrics_on_standard_output(spark: Any, embedded: EmbeddedCluster, topic_name: Names, tmp_path: Path):
    name = topic_name()
    embedded.create_topic(name, 2)
    embedded.produce(name, [{"value": b"%d" % n, "partition": n % 2} for n in range(100)])
    done = ingest(embedded, tmp_path, name, "--metrics", "-", "--option", "maxOffsetsPerTrigger=60")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["batch"], line["rows"], line["lag"], line["total_rows"]) for line in lines] == [
        (0, 60, 40, 60), (1, 40, 0, 100)]
    assert numbers(spark, tmp_path) == list(range(100))
    # Other options than the checkpoint's.
    again = ingest(embedded, tmp_path, "another")
    assert again.returncode == 2
    assert f"topics: {name} there, another now" in again.stderr
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize(("number", "code"), [
    (signal.SIGTERM, 0), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)])
@pytest.mark.timeout(600)
def test_a_signal_in_the_middle_and_a_run_after_it(
    spark: Any, kafka: KafkaCluster, topic_name: Names, tmp_path: Path, running: Callable[..., subprocess.Popen[str]],
    *, number: signal.Signals, code: int,
):
    """The trigger that runs at the signal ends, none is begun and left; the next run reads the rest, nothing twice."""
    count = 20_000
    name = topic_name()
    kafka.create_topic(name, 2)
    kafka.produce(name, [{"value": b"%d" % n, "partition": n % 2} for n in range(count)])
    limits = (name, "--option", "maxOffsetsPerTrigger=400", "--metrics", "-")
    process = running(command(kafka, tmp_path, *limits), tmp_path / "log")
    assert process.stdout is not None
    for _ in range(2):
        assert process.stdout.readline(), (tmp_path / "log").read_text()
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    rest = process.stdout.read().splitlines()
    assert process.wait(120) == code, (tmp_path / "log").read_text()
    told = [json.loads(line) for line in rest]
    assert (told[-1]["lag"] if told else count) > 0  # it ended early
    commits = {path.name for path in (tmp_path / "state/commits").glob("[0-9]*")}
    assert len(commits) == 2 + len(told)
    read = numbers(spark, tmp_path)
    assert len(read) == 400 * len(commits)
    last = ingest(kafka, tmp_path, name, "--metrics", str(tmp_path / "metrics"))
    assert last.returncode == 0, last.stderr
    assert numbers(spark, tmp_path) == list(range(count))
    rows = [json.loads(line)["rows"] for line in (tmp_path / "metrics").read_text().splitlines()]
    assert sum(rows) == count - len(read)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_without_an_end(
    spark: Any, kafka: KafkaCluster, topic_name: Names, tmp_path: Path, running: Callable[..., subprocess.Popen[str]],
):
    """With an interval it waits for more; dead letters have a query of their own beside it."""
    name = topic_name()
    kafka.create_topic(name, 1)
    arguments = command(kafka, tmp_path, name, "--trigger", "500ms", "--metrics", "-", "--value", "json",
                        "--schema", "n INT", "--dead-letter", str(tmp_path / "dead"))
    process = running(arguments, tmp_path / "log")
    assert process.stdout is not None
    for n in range(2):
        kafka.produce(name, [b'{"n": %d}' % n, b"bad %d" % n])
        line = process.stdout.readline()
        assert line, (tmp_path / "log").read_text()
        assert json.loads(line)["bad"] == 1
    wait_for(lambda: len(list((tmp_path / "state/dead-letters/commits").glob("[0-9]*"))) >= 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0, (tmp_path / "log").read_text()
    rows = spark.read.parquet(str(tmp_path / "rows")).orderBy("offset")
    assert rows.select("value.n").collect() == [(0,), (1,)]
    dead = spark.read.parquet(str(tmp_path / "dead")).orderBy("offset").select("offset", "value", "reason").collect()
    assert [(row.offset, bytes(row.value)) for row in dead] == [(1, b"bad 0"), (3, b"bad 1")]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_task_that_fails_is_tried_again(spark: Any, embedded: EmbeddedCluster, topic_name: Names, tmp_path: Path):
    name = topic_name()
    embedded.create_topic(name, 1)
    embedded.produce(name, [b"%d" % n for n in range(10)])
    embedded.push_partition_errors(name, 0, FETCH, [KafkaError.TOPIC_AUTHORIZATION_FAILED])
    done = ingest(embedded, tmp_path, name, "--conf", "spark.master=local[1,3]")
    assert done.returncode == 0, done.stderr
    assert f"{name} [0] offsets 0 to 10, at offset 0: " in done.stderr
    assert numbers(spark, tmp_path) == list(range(10))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_python_that_starts_too_late(spark: Any, embedded: EmbeddedCluster, topic_name: Names, tmp_path: Path):
    """Once, for longer than Spark waits: the query is started again."""
    name = topic_name()
    embedded.create_topic(name, 1)
    embedded.produce(name, [b"%d" % n for n in range(10)])
    late = tmp_path / "late"
    python = tmp_path / "python"
    python.write_text(f"""#!/bin/sh
case "$*" in *streaming_source*) [ -e {late} ] || {{ touch {late}; sleep 20; }} ;; esac
exec {sys.executable} "$@"
""")
    python.chmod(0o755)
    done = ingest(embedded, tmp_path, name, PYSPARK_PYTHON=str(python))
    assert done.returncode == 0, done.stderr
    assert late.exists()
    assert "the query is started again" in done.stderr
    assert numbers(spark, tmp_path) == list(range(10))


AVRO = {"type": "record", "name": "Flight", "fields": [
    {"name": "carrier", "type": ["null", "string"], "default": None}, {"name": "miles", "type": "long"}]}


def avro(carrier: bytes | None, miles: int) -> bytes:
    """A Flight as Avro writes it; `miles` from 0 to 63."""
    text = b"\x00" if carrier is None else b"\x02" + bytes([2 * len(carrier)]) + carrier
    return text + bytes([2 * miles])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_avro(spark: Any, kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    """With a schema registry's header; a record of nulls alone is not a bad one."""
    name = topic_name()
    kafka.create_topic(name, 1)
    header = b"\x00\x00\x00\x00\x07"
    kafka.produce(name, [header + avro(b"UA", 17), header + avro(None, 3), header + b"\x06nonsense", b"", None])
    (tmp_path / "flight.avsc").write_text(json.dumps(AVRO))
    done = ingest(kafka, tmp_path, name, "--value", "avro", "--schema", f"@{tmp_path}/flight.avsc",
                  "--skip-bytes", "5")
    assert done.returncode == 0, done.stderr
    rows = spark.read.parquet(str(tmp_path / "rows")).orderBy("offset").collect()
    assert [row.value and tuple(row.value) for row in rows] == [("UA", 17), (None, 3), None, None, None]
    assert [row.bad_record and (row.bad_record.reason, bytes(row.bad_record.value)) for row in rows] == [
        None, None, ("field carrier: the union has no such branch", header + b"\x06nonsense"),
        ("the value is empty", b""), None]


def test_the_direct_engine_takes_over_a_checkpoint(spark: Any, embedded: EmbeddedCluster, topic_name: Names,
                                                   tmp_path: Path):
    """From then on the checkpoint is closed for Structured Streaming."""
    name = topic_name()
    embedded.create_topic(name, 2)
    embedded.produce(name, [{"value": b"%d" % n, "partition": n % 2} for n in range(50)])
    done = ingest(embedded, tmp_path, name)
    assert done.returncode == 0, done.stderr
    embedded.produce(name, [{"value": b"%d" % n, "partition": n % 2} for n in range(50, 80)])
    direct = [sys.executable, "-m", "kconsumer", "ingest", name, "-b", embedded.bootstrap_servers, "--runner", "local",
              "--take-over", str(tmp_path / "state"), "-O"]
    refused = subprocess.run([*direct, str(tmp_path / "rows")], capture_output=True, text=True, timeout=240,
                             env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=False)
    assert refused.returncode == 1
    assert "was written by Spark's stream" in refused.stderr
    done = subprocess.run([*direct, str(tmp_path / "more/rows")], capture_output=True, text=True, timeout=240,
                          env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
    assert numbers(spark, tmp_path) == list(range(50))
    assert numbers(spark, tmp_path / "more") == list(range(50, 80))
    refused = ingest(embedded, tmp_path, name)
    assert refused.returncode == 2
    assert f"job kconsumer of {tmp_path}/more/rows has taken over the checkpoint" in refused.stderr
    assert numbers(spark, tmp_path) == list(range(50))


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
