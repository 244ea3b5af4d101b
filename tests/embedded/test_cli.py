"""The command, run on an embedded cluster: what comes out, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from certificates import Authority
from click.testing import CliRunner, Result

from kconsumer import Consumer, TopicPartition
from kconsumer.cli.app import cli
from kconsumer.testing import EmbeddedCluster

HOUR_MS = 3_600_000
BEGAN_MS = 1_714_564_800_000  # 2024-05-01T12:00Z
MORE_THAN_A_PIPE_HOLDS = 100_000
Run = Callable[..., Result]


@pytest.fixture
def run(embedded: EmbeddedCluster) -> Run:
    def invoke(command: str, *arguments: str) -> Result:
        return CliRunner().invoke(cli, [command, "-b", embedded.bootstrap_servers, *arguments])

    return invoke


@pytest.fixture
def topic(embedded: EmbeddedCluster, topic_name: Callable[[], str]) -> str:
    """Two partitions of 10 records, one an hour; key k<n>, value v<n>, a header where n is even."""
    name = topic_name()
    embedded.create_topic(name, 2)
    embedded.produce(name, [
        {"key": f"k{n}", "value": f"v{n}", "partition": n % 2, "timestamp": BEGAN_MS + n // 2 * HOUR_MS,
         "headers": [("n", str(n).encode())] if n % 2 == 0 else None}
        for n in range(20)
    ])
    return name


def values(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return sorted(result.stdout.split(), key=lambda value: int(value[1:]))


def test_consume_writes_every_value_and_ends(run: Run, topic: str):
    assert values(run("consume", topic)) == [f"v{n}" for n in range(20)]


@pytest.mark.parametrize(("arguments", "expected"), [
    (["--from", "8"], [16, 17, 18, 19]),
    (["--from", "-1"], [18, 19]),
    (["--from", "-100", "--to", "1"], [0, 1]),
    (["--to", "-9"], [0, 1]),
    (["--from", "100"], []),
    (["--from", "end"], []),
    (["--from", "3", "--to", "5"], [6, 7, 8, 9]),
    (["--from", "5", "--to", "3"], []),
    (["-p", "1", "--from", "-2"], [17, 19]),
    (["-p", "0-1", "--to", "1"], [0, 1]),
    (["--from", str(2**63 - 1)], []),
    (["--to", str(2**63 - 1), "--from", "8"], [16, 17, 18, 19]),
])
def test_consume_from_where_to_where(run: Run, topic: str, arguments: list[str], expected: list[int]):
    assert values(run("consume", topic, *arguments)) == [f"v{n}" for n in expected]


def test_count_is_of_all_partitions(run: Run, topic: str):
    assert len(values(run("consume", topic, "-n", "13"))) == 13
    assert values(run("consume", topic, "-n", "0")) == []


def test_format(run: Run, topic: str):
    result = run("consume", topic, "-p", "0", "-n", "1", "--format", r"%t/%p/%o %T %k=%v (%K,%V) %h 100%%\x21\t.\n")
    assert result.stdout == f"{topic}/0/0 {BEGAN_MS} k0=v0 (2,2) n=0 100%!\t.\n"


def test_null_and_bytes_values_are_unchanged(run: Run, embedded: EmbeddedCluster, topic_name: Callable[[], str]):
    name = topic_name()
    embedded.create_topic(name)
    embedded.produce(name, [{"key": None, "value": None}, {"key": b"", "value": b"\xff\0"}])
    shown = ["--format", r"[%k|%v|%K|%V]"]
    assert run("consume", name, *shown).stdout_bytes == b"[||-1|-1][|\xff\0|0|2]"
    assert run("consume", name, *shown, "--value", "hex").stdout == "[||-1|-1][|ff00|0|2]"
    assert run("consume", name, *shown, "--value", "base64").stdout == "[||-1|-1][|/wA=|0|2]"
    lines = [json.loads(line) for line in run("consume", name, "-o", "json").stdout.splitlines()]
    assert [(line["key"], line["value"]) for line in lines] == [(None, None), ("", "�\0")]


def test_json_lines(run: Run, topic: str):
    result = run("consume", topic, "-p", "0", "-o", "json", "--key", "hex")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines[1] == {
        "topic": topic, "partition": 0, "offset": 1, "timestamp": BEGAN_MS + HOUR_MS, "timestamp_type": "create",
        "key": "6b32", "value": "v2", "headers": [{"key": "n", "value": "2"}],
    }
    assert [line["offset"] for line in lines] == list(range(10))


def check_table(table: pa.Table, topic: str) -> None:
    rows = sorted(table.to_pylist(), key=lambda row: (row["partition"], row["offset"]))
    assert [(row["topic"], row["partition"], row["offset"], row["key"], row["value"]) for row in rows] == [
        (topic, n % 2, n // 2, b"k%d" % n, b"v%d" % n) for n in (*range(0, 20, 2), *range(1, 20, 2))]
    assert [row["headers"] for row in rows[:2]] == [[{"key": "n", "value": b"0"}], [{"key": "n", "value": b"2"}]]
    assert rows[10]["headers"] == []
    assert rows[3]["timestamp"].timestamp() * 1000 == BEGAN_MS + 3 * HOUR_MS


def test_arrow_stream(run: Run, topic: str):
    result = run("consume", topic, "-o", "arrow")
    assert result.exit_code == 0, result.output
    check_table(pa.ipc.open_stream(io.BytesIO(result.stdout_bytes)).read_all(), topic)


def test_parquet_file(run: Run, topic: str, tmp_path: Path):
    path = tmp_path / "records.parquet"
    result = run("consume", topic, "-o", "parquet", "-O", str(path))
    assert (result.exit_code, result.stdout) == (0, "")
    check_table(pq.read_table(path), topic)


def test_nothing_to_write_is_a_valid_file(run: Run, topic: str, tmp_path: Path):
    path = tmp_path / "records.parquet"
    assert run("consume", topic, "--from", "end", "-o", "parquet", "-O", str(path)).exit_code == 0
    assert pq.read_table(path).num_rows == 0


def test_topics(run: Run, topic: str):
    rows = [line.split("\t") for line in run("topics").stdout.splitlines()]
    assert [topic, "2", "3"] in rows
    found = [json.loads(line) for line in run("topics", topic, "-o", "json").stdout.splitlines()]
    assert [(line["topic"], line["partition"]) for line in found] == [(topic, 0), (topic, 1)]
    for line in found:
        assert line["leader"] in line["replicas"]
        assert sorted(line["replicas"]) == sorted(line["isrs"]) == [1, 2, 3]


def test_watermarks(run: Run, embedded: EmbeddedCluster, topic: str):
    embedded.delete_records(topic, 1, 4)
    assert run("watermarks", topic).stdout == f"{topic}\t0\t0\t10\t10\n{topic}\t1\t4\t10\t6\n"
    assert json.loads(run("watermarks", topic, "-o", "json").stdout.splitlines()[1]) == {
        "topic": topic, "partition": 1, "low": 4, "high": 10, "offsets": 6}


def commit(embedded: EmbeddedCluster, group: str, *offsets: TopicPartition) -> None:
    with Consumer({"bootstrap.servers": embedded.bootstrap_servers, "group.id": group}) as consumer:
        consumer.commit(offsets=list(offsets), asynchronous=False)


def test_lag_of_a_group(run: Run, embedded: EmbeddedCluster, topic: str):
    commit(embedded, topic, TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 10))
    before = time.time()
    late, caught_up = (json.loads(line) for line in run("lag", topic, "-o", "json").stdout.splitlines())
    age = late.pop("seconds")
    assert late == {"topic": topic, "partition": 0, "committed": 3, "end": 10, "lag": 7}
    # Offset 3 of partition 0 is the record of the fourth hour.
    assert before <= age + (BEGAN_MS + 3 * HOUR_MS) / 1000 <= time.time()
    assert caught_up == {"topic": topic, "partition": 1, "committed": 10, "end": 10, "lag": 0, "seconds": 0.0}
    lines = run("lag", topic, "-t", topic).stdout.splitlines()
    assert [line.split("\t")[:5] for line in lines] == [[topic, "0", "3", "10", "7"], [topic, "1", "10", "10", "0"]]
    assert lines[1].split("\t")[5] == "0.0"


def test_lag_after_the_committed_records_have_expired(run: Run, embedded: EmbeddedCluster, topic: str):
    embedded.delete_records(topic, 0, 5)
    commit(embedded, topic, TopicPartition(topic, 0, 2))
    (found,) = (json.loads(line) for line in run("lag", topic, "-o", "json").stdout.splitlines())
    assert (found["committed"], found["end"], found["lag"]) == (2, 10, 8)
    assert found["seconds"] == pytest.approx(time.time() - (BEGAN_MS + 5 * HOUR_MS) / 1000, abs=60)


def test_lag_of_a_group_without_offsets(run: Run, topic: str):
    result = run("lag", "none")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "kconsumer: the group none has no committed offsets\n"


def test_top_shows_the_topics_of_a_group(
    run: Run, embedded: EmbeddedCluster, topic: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    commit(embedded, topic, TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 9))
    result = run("top", topic, "-n", "2", "--interval", "0.1")
    assert result.exit_code == 0, result.output
    (row,) = (line.split() for line in result.stdout.splitlines() if line.startswith(topic))
    assert (row[:5], row[6:]) == ([topic, "2", "0.0", "0.0", "8"], ["-"])
    assert float(row[5].replace(",", "")) > 0


def test_consume_serves_its_metrics(embedded: EmbeddedCluster, topic: str, unused_port: int):
    """The port is held by the fixture until it is free: the command must bind another one."""
    result = CliRunner().invoke(cli, ["consume", topic, "-b", embedded.bootstrap_servers, "--metrics-port",
                                      str(unused_port)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"kconsumer: cannot serve metrics on port {unused_port}: ")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
            [sys.executable, "-m", "kconsumer", "consume", topic, "-b", embedded.bootstrap_servers, "-f",
             "--metrics-port", str(port)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for _ in range(20):
                process.stdout.readline()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                text = answer.read().decode()
            assert 'kconsumer_consumed_records_total{client_id="kconsumer-cli",consumer="0",group=""} 20.0' in text
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


@pytest.mark.parametrize(("arguments", "code", "text"), [
    (["topics", "-X", "fetch.min.byts=1"], 2, "fetch.min.bytes"),
    (["topics", "-X", "nonsense"], 2, "PROPERTY=VALUE"),
    (["topics", "-X", "fetch.min.bytes=none"], 2, "fetch.min.bytes"),
    (["consume"], 2, "TOPIC"),
    (["consume", "t", "--follow", "--to", "3"], 2, "contradict each other"),
    (["consume", "t", "--from", "yesterday"], 2, "yesterday"),
    (["consume", "t", "-p", "3-1"], 2, "3-1"),
    (["consume", "t", "--format", "%q"], 2, "unknown escape '%q'"),
    (["consume", "t", "--format", "%k", "-o", "json"], 2, "--format needs text output"),
    (["consume", "t", "-O", "/dev/null/x"], 1, "/dev/null/x"),
    (["watermarks"], 2, "TOPIC"),
])
def test_wrong_usage(run: Run, topic: str, arguments: list[str], code: int, text: str):
    result = run(*[topic if argument == "t" else argument for argument in arguments])
    assert (result.exit_code, result.stdout) == (code, "")
    assert text in result.stderr


def test_a_topic_or_partition_that_is_not_there(run: Run, topic: str, tmp_path: Path):
    result = run("consume", topic, "-p", "7", "-O", str(tmp_path / "out"))
    assert (result.exit_code, result.stderr) == (1, f"kconsumer: {topic} [7]: there is no such partition\n")
    assert not (tmp_path / "out").exists()


REFUSED = "connect to 127.0.0.1:1 failed: Connection refused"


@pytest.mark.parametrize("command", [["topics"], ["watermarks", "t"], ["consume", "t"], ["consume", "t", "-f"]])
def test_a_refused_connection_is_one_message_at_once(command: list[str]):
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "kconsumer", *command, "-b", "127.0.0.1:1", "--timeout", "60"],
                          capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"kconsumer: cannot connect to Kafka: 127.0.0.1:1: {REFUSED}: check "
                           "-b/--bootstrap-servers\n")
    assert time.monotonic() - began < 60


def test_a_failed_tls_handshake_is_one_message(tmp_path: Path):
    certificate, key = Authority().issue().write(tmp_path, "broker")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve() -> None:
        with suppress(OSError):  # of the failed handshakes, and of the end
            while True:
                connection, _ = broker.accept()
                with suppress(OSError):
                    context.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as broker:
        threading.Thread(target=serve, daemon=True).start()
        for _ in range(3):  # whether close() finds the failure of the last broker is a matter of timing
            result = CliRunner().invoke(cli, ["topics", "-b", f"127.0.0.1:{broker.getsockname()[1]}",
                                              "-X", "security.protocol=ssl"])
            assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.stderr
            assert "TLS handshake failed" in result.stderr


def test_every_broker_that_failed_is_named():
    result = CliRunner().invoke(cli, ["topics", "-b", "127.0.0.1:1,nosuch.invalid:9092"])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert REFUSED in result.stderr and "cannot resolve 'nosuch.invalid'" in result.stderr


def test_a_broker_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        result = CliRunner().invoke(cli, ["topics", "-b", f"127.0.0.1:{port}", "--timeout", "0.5"])
    assert result.exit_code == 1
    assert result.stderr == ("kconsumer: no broker answered the Metadata request in time: check bootstrap.servers, and "
                             f"the log for failed connections (waited 0.5 s; bootstrap.servers: 127.0.0.1:{port}): "
                             "-X debug=broker shows the log\n")


def test_brokers_from_the_environment(embedded: EmbeddedCluster, topic: str):
    result = CliRunner().invoke(cli, ["consume", topic, "-n", "1"],
                                env={"KCONSUMER_BOOTSTRAP_SERVERS": embedded.bootstrap_servers})
    assert result.exit_code == 0
    assert result.stdout.startswith("v")


# ---- as a process: signals and pipes

Started = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def started(embedded: EmbeddedCluster) -> Iterator[Started]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-m", "kconsumer", *arguments, "-b", embedded.bootstrap_servers],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_progress_on_a_terminal(embedded: EmbeddedCluster, topic: str):
    master, slave = os.openpty()
    command = [sys.executable, "-m", "kconsumer", "consume", topic, "-b", embedded.bootstrap_servers]
    try:
        for quiet in ([], ["-q"]):
            done = subprocess.run([*command, *quiet], stdout=subprocess.PIPE, stderr=slave, check=False, timeout=30,
                                  env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})
            assert (done.returncode, len(done.stdout.split())) == (0, 20)
            if not quiet:
                assert b"20 records in" in os.read(master, 10_000)
        os.set_blocking(master, False)
        with pytest.raises(BlockingIOError):  # nothing was shown the second time
            os.read(master, 10_000)
    finally:
        os.close(master)
        os.close(slave)


def read_lines(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def test_follow_prints_new_records_until_ctrl_c(started: Started, embedded: EmbeddedCluster, topic: str):
    process = started("consume", topic, "--from", "end", "-f")
    deadline = time.monotonic() + 30
    # The command asks for the end at an unknown time: write until it has seen one.
    seen = b""
    os.set_blocking(process.stdout.fileno(), False)  # type: ignore[union-attr]
    while not seen and time.monotonic() < deadline:
        embedded.produce(topic, [{"value": "new", "partition": 0}])
        seen = process.stdout.read() or b""  # type: ignore[union-attr]
    assert seen.split()[0] == b"new"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"")


def test_ctrl_c_leaves_a_whole_parquet_file(started: Started, topic: str, tmp_path: Path):
    path = tmp_path / "records.parquet"
    process = started("consume", topic, "-f", "-o", "parquet", "-O", str(path))
    deadline = time.monotonic() + 30
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"")
    assert pq.read_table(path).schema.names[0] == "topic"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_gets_everything(started: Started, topic: str, monkeypatch: pytest.MonkeyPatch, unbuffered: str):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    out, err = started("consume", topic, "--format", "%v" + "x" * MORE_THAN_A_PIPE_HOLDS + "\n").communicate(timeout=20)
    assert err == b""
    assert sorted(len(line) for line in out.split()) == sorted(
        len(f"v{n}") + MORE_THAN_A_PIPE_HOLDS for n in range(20))


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_ends_it_quietly(
    started: Started, topic: str, monkeypatch: pytest.MonkeyPatch, unbuffered: str
):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    process = started("consume", topic, "-f", "--format", "%v" + "x" * MORE_THAN_A_PIPE_HOLDS + "\n")
    assert read_lines(process, 1)[0].startswith(b"v")
    process.stdout.close()  # type: ignore[union-attr]
    assert process.wait(timeout=20) == 0
    assert process.stderr.read() == b""  # type: ignore[union-attr]
