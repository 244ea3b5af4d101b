"""The messages of `kconsumer ingest` where the brokers, a table, a catalog or the options are wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kconsumer.testing import EmbeddedCluster
from tests.spark.standalone import wait_until

pytest.importorskip("deltalake")
pytestmark = pytest.mark.embedded
JSON = ("--value", "json", "--schema", "a INT")
INGEST = [sys.executable, "-m", "kconsumer", "ingest", "--runner", "local", "--workers", "1"]
NO_BROKER = "127.0.0.1:1"
FETCH = 1  # the API key


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1) as found:
        found.create_topic("t", 1)
        found.produce("t", [{"value": b'{"a": 1}'}])
        yield found


def command(servers: str, *more: str) -> list[str]:
    return [*INGEST, "t", "-b", servers, *more]


def refused(servers: str, *more: str) -> str:
    """Return the message of a command that fails: one error, without a stack."""
    done = subprocess.run(command(servers, *more), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_brokers_that_refuse_the_connection_are_one_message_at_once(tmp_path: Path):
    began = time.monotonic()
    said = refused(NO_BROKER, *JSON, "-O", str(tmp_path / "out"))
    assert f"cannot connect to Kafka: {NO_BROKER}" in said
    assert time.monotonic() - began < 60  # a run without brokers tries for three minutes
    assert not (tmp_path / "out").exists()


def test_the_other_engine_checks_the_brokers_before_it_starts_spark(tmp_path: Path):
    pytest.importorskip("pyspark")
    done = subprocess.run([sys.executable, "-m", "kconsumer", "ingest", "t", "-b", NO_BROKER, "-O",
                           str(tmp_path / "out"), "--checkpoint", str(tmp_path / "state")],
                          capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert done.stderr == (f"kconsumer: cannot connect to Kafka: {NO_BROKER}: connect to {NO_BROKER} failed: "
                           "Connection refused: check -b/--bootstrap-servers\n")


def test_a_run_without_a_terminal_reports_the_rows_and_the_table(cluster: EmbeddedCluster, tmp_path: Path):
    table = tmp_path / "out"
    first, again = (subprocess.run(command(cluster.bootstrap_servers, *JSON, "-O", str(table)), capture_output=True,
                                   text=True, timeout=100, check=True).stderr for _ in range(2))
    assert first.startswith("kconsumer: 1 records, ") and first.endswith(f"; written to {table}\n")
    assert first.count("\n") == 1
    assert again == f"kconsumer: no new records for {table}\n"
    done = subprocess.run(command(cluster.bootstrap_servers, *JSON, "-O", str(table), "--quiet"), capture_output=True,
                          text=True, timeout=100, check=True)
    assert done.stderr == ""


def test_a_field_without_values_is_reported(cluster: EmbeddedCluster, tmp_path: Path):
    cluster.create_topic("fields", 2)
    cluster.produce("fields", [{"value": b'{"a": 1}', "partition": 0}, {"value": b'{"a": 2, "b": 2}', "partition": 1}])
    done = subprocess.run(
        [*INGEST, "fields", "-b", cluster.bootstrap_servers, "--value", "json", "--schema", "a INT, b INT, c INT", "-q",
         "-O", str(tmp_path / "out")], capture_output=True, text=True, timeout=100, check=True)
    assert done.stderr == (f"kconsumer: warning: {tmp_path / 'out'}: no record has a value for the field 'c' (of 2 "
                           "records): check the schema\n")


@pytest.mark.parametrize("letters", [False, True])
def test_bad_records_are_reported_with_their_place_and_reason(cluster: EmbeddedCluster, tmp_path: Path, letters: bool):
    name = f"bad-{letters}"
    cluster.create_topic(name, 1)
    cluster.produce(name, [{"value": b'{"a": 1}'}, {"value": b"hello"}, {"value": b'{"a": "x"}'}])
    folder = tmp_path / "letters"
    done = subprocess.run(
        [*INGEST, name, "-b", cluster.bootstrap_servers, "--metrics", "-", *JSON, "-q", "-O",
         str(tmp_path / "out"), *(["--dead-letter", str(folder)] if letters else [])],
        capture_output=True, text=True, timeout=100, check=True)
    first = f"{name} [0] at offset 1: "
    assert f"could not be decoded, see {f'the files in {folder}' if letters else 'column bad_record'}; the first: " \
           f"{first}" in done.stderr
    assert json.loads(done.stdout)["first_bad"].startswith(first)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_folder_that_cannot_be_created_names_the_options(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    (tmp_path / "file").write_text("")
    said = refused(cluster.bootstrap_servers, *JSON, "-o", kind, "-O", str(tmp_path / "file" / "out"))
    assert "file/out" in said and "check that kconsumer can write to -O" in said


@pytest.mark.parametrize("value", ["json", "avro"])
def test_a_missing_schema_names_the_option(value: str, tmp_path: Path):
    assert "--schema" in refused(NO_BROKER, "--value", value, "-O", str(tmp_path / "out"))


def test_a_schema_in_a_file_may_begin_with_a_byte_order_mark(cluster: EmbeddedCluster, tmp_path: Path):
    (tmp_path / "schema").write_bytes(b"\xef\xbb\xbfa INT")
    for more in (["t", "-O", str(tmp_path / "one"), "--schema", f"@{tmp_path / 'schema'}"],
                 ["--route", f"t={tmp_path / 'two'}", "--route-schema", f"t=@{tmp_path / 'schema'}"]):
        subprocess.run([*INGEST, "-b", cluster.bootstrap_servers, "--value", "json", *more], timeout=100, check=True)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


def test_a_script_without_the_guard_names_it(cluster: EmbeddedCluster, tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner\n"
        f"options = IngestOptions(bootstrap_servers={cluster.bootstrap_servers!r}, topics=('t',), path='out')\n"
        "with Ingestion(options, LocalRunner(2)) as run:\n    run.run()\n")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=100,
                          check=False)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1, done.stderr
    assert done.stderr.splitlines()[-1].endswith('begin it below if __name__ == "__main__":')


def test_a_damaged_delta_log(cluster: EmbeddedCluster, tmp_path: Path):
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.parent.mkdir()
    log.write_text("{")
    assert "Error: " in refused(cluster.bootstrap_servers, *JSON, "-o", "delta", "-O", str(tmp_path))


@pytest.mark.parametrize("catalog", [(), ("--catalog", "type=nope")], ids=["none", "unknown type"])
def test_an_iceberg_catalog_that_cannot_be_opened(cluster: EmbeddedCluster, tmp_path: Path, catalog: tuple[str, ...]):
    pytest.importorskip("pyiceberg")
    said = refused(cluster.bootstrap_servers, *JSON, "-o", "iceberg", "-O", str(tmp_path), "--table", "a.b", *catalog)
    assert "Error: " in said


def test_a_registry_that_does_not_answer(cluster: EmbeddedCluster, tmp_path: Path):
    said = refused(cluster.bootstrap_servers, "--value", "avro", "--schema-registry", f"url=http://{NO_BROKER}",
                   "-O", str(tmp_path))
    assert "cannot fetch the newest schema of subject t-value from the schema registry" in said


def test_a_second_sigterm_ends_the_process(cluster: EmbeddedCluster, tmp_path: Path):
    """The first one ends the run after its trigger, which waits for a Fetch here."""
    with EmbeddedCluster(1) as other:
        other.create_topic("t", 1)
        other.produce("t", [{"value": b'{"a": 1}'}])
        other.push_request_errors(FETCH, [0] * 100, broker=1, rtt_ms=600_000)
        other.track_requests()
        with subprocess.Popen(command(other.bootstrap_servers, *JSON, "-O", str(tmp_path), "--trigger", "1s"),
                              stderr=subprocess.DEVNULL) as process:
            try:
                wait_until(lambda: any(request.api_key == FETCH for request in other.requests()),
                           lambda: "no Fetch", 60)
                process.send_signal(signal.SIGTERM)
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(1)
                # A process that stands still sees two signals as one. Python has no handlers any more while it ends.
                wait_until(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None,
                           lambda: "it has not ended", 60)
                assert process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)
            finally:
                process.kill()
