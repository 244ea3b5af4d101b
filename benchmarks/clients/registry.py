"""Owns: the list of measured programs: the start, the output and the reference of each.

Threads: the runner's main thread. Never: runs one (see runner.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kconsumer.testing import MissingToolError, kafka_jars
from kconsumer.testing._artifacts import jdk_program

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "bench"
_JAVA_HEAP = "512m"
_COMPILE_SECONDS = 600


@dataclass(frozen=True)
class Target:
    """The topic and range that a program reads."""

    bootstrap: str
    topic: str
    partitions: int
    records: int
    tls: tuple[str, ...] = ()  # further arguments, for a TLS listener


def _json_line(output: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return result


@dataclass(frozen=True)
class Client:
    """`versus` is the confluent-kafka method that this one's figures are divided by; `limit` bounds the records that a
    slow client reads; `missing` says in words why it cannot run here, or is empty."""

    name: str
    about: str
    command: Callable[[Target], list[str]]
    versus: str
    limit: int = 0
    missing: Callable[[], str] = lambda: ""
    prepare: Callable[[], None] = lambda: None
    parse: Callable[[str], dict[str, Any]] = _json_line
    own: bool = False


def _plain(target: Target) -> list[str]:
    return ["--bootstrap", target.bootstrap, "--topic", target.topic, "--partitions", str(target.partitions),
            "--records", str(target.records), *target.tls]


def python_program(module: str, *more: str) -> Callable[[Target], list[str]]:
    return lambda target: [sys.executable, "-m", f"benchmarks.clients.{module}", *_plain(target), *more]


def _needs(package: str) -> Callable[[], str]:
    def missing() -> str:
        from importlib.util import find_spec

        return "" if find_spec(package) else f"{package} is not installed"

    return missing


def _java_command(target: Target, *more: str) -> list[str]:
    classes = os.pathsep.join(str(jar) for jar in kafka_jars())
    return [jdk_program("java", 17), f"-Xmx{_JAVA_HEAP}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp",
            classes, "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", target.bootstrap, "--topic",
            target.topic, "--num-records", str(target.records), "--hide-header", *more]


def _java_missing() -> str:
    try:
        jdk_program("java", 17)
    except MissingToolError as error:
        return str(error)
    return ""


def _java_result(output: str) -> dict[str, Any]:
    """start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, MB/s and records/s of the fetch part."""
    cells = [cell.strip() for cell in output.strip().splitlines()[-1].split(",")]
    return {"records": int(cells[4]), "bytes": None, "seconds": int(cells[7]) / 1000}


def _franz_binary() -> Path:
    return BUILD / "franz"


def _franz_build() -> None:
    """Go's own cache makes the second time quick."""
    BUILD.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["go", "build", "-o", str(_franz_binary()), "."], cwd=HERE / "franz", capture_output=True,
                          text=True, check=False, timeout=_COMPILE_SECONDS)
    if done.returncode:
        raise RuntimeError(f"franz-go cannot be built: {done.stderr.strip()[-500:]}")


def raw_tls_binary() -> Path:
    return BUILD / "raw_tls"


def _raw_tls_build() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["c++", "-std=c++17", "-O2", "-o", str(raw_tls_binary()), str(HERE / "raw_tls.cpp"), "-lssl",
                           "-lcrypto"], capture_output=True, text=True, check=False, timeout=_COMPILE_SECONDS)
    if done.returncode:
        raise RuntimeError(f"raw_tls cannot be built: {done.stderr.strip()[-500:]}")


CLIENTS = {client.name: client for client in (
    Client("kconsumer poll", "poll() and value() of each", python_program(
        "drop_in", "--library", "kconsumer", "--method", "poll"), "confluent-kafka poll", own=True),
    Client("confluent-kafka poll", "the same with confluent_kafka and fetch.queue.backoff.ms=10", python_program(
        "drop_in", "--library", "confluent_kafka", "--method", "poll", "--tuned"), "confluent-kafka poll"),
    Client("kconsumer consume", "consume(10000) and value() of each", python_program(
        "drop_in", "--library", "kconsumer", "--method", "consume"), "confluent-kafka consume", own=True),
    Client("confluent-kafka consume", "the same with confluent_kafka and fetch.queue.backoff.ms=10", python_program(
        "drop_in", "--library", "confluent_kafka", "--method", "consume", "--tuned"), "confluent-kafka consume"),
    Client("kconsumer consume_batch", "consume_batch(65536), rows counted", python_program(
        "drop_in", "--library", "kconsumer", "--method", "consume_batch"), "confluent-kafka consume", own=True),
    Client("kconsumer arrow", "consume_batch into pyarrow, keys and values copied to `binary`, lengths summed",
           python_program("drop_in", "--library", "kconsumer", "--method", "arrow"), "confluent-kafka consume",
           missing=_needs("pyarrow"), own=True),
    Client("confluent-kafka poll (defaults)", "the same with confluent_kafka's own settings", python_program(
        "drop_in", "--library", "confluent_kafka", "--method", "poll"), "confluent-kafka poll", limit=1_000_000),
    Client("confluent-kafka consume (defaults)", "the same with confluent_kafka's own settings", python_program(
        "drop_in", "--library", "confluent_kafka", "--method", "consume"), "confluent-kafka consume", limit=1_000_000),
    Client("confluent-kafka poll (8 MiB)", "as confluent-kafka poll, with max.partition.fetch.bytes of 8 MiB",
           python_program("drop_in", "--library", "confluent_kafka", "--method", "poll", "--tuned",
                          "--partition-mebibytes", "8"), "confluent-kafka poll"),
    Client("confluent-kafka consume (8 MiB)", "as confluent-kafka consume, with max.partition.fetch.bytes of 8 MiB",
           python_program("drop_in", "--library", "confluent_kafka", "--method", "consume", "--tuned",
                          "--partition-mebibytes", "8"), "confluent-kafka consume"),
    Client("aiokafka", "getmany(max_records=10000) and value of each", python_program("aiokafka_client"),
           "confluent-kafka consume", limit=1_000_000, missing=_needs("aiokafka")),
    Client("kafka-python", "poll(max_records=10000) and value of each", python_program("kafka_python_client"),
           "confluent-kafka consume", limit=200_000, missing=_needs("kafka")),
    Client("java", "kafka.tools.ConsumerPerformance", _java_command, "confluent-kafka consume",
           missing=_java_missing, parse=_java_result),
    Client("franz-go", "PollRecords(10000) and value of each",
           lambda target: [str(_franz_binary()), *_plain(target)], "confluent-kafka consume",
           missing=lambda: "" if shutil.which("go") else "Go is not installed", prepare=_franz_build),
    Client("java (8 MiB)", "the same with --fetch-size of 8 MiB",
           lambda target: _java_command(target, "--fetch-size", str(8 << 20)), "confluent-kafka consume",
           missing=_java_missing, parse=_java_result),
    Client("franz-go (8 MiB)", "the same with FetchMaxPartitionBytes of 8 MiB",
           lambda target: [str(_franz_binary()), *_plain(target), "--partition-mebibytes", "8"],
           "confluent-kafka consume", missing=lambda: "" if shutil.which("go") else "Go is not installed",
           prepare=_franz_build),
    Client("raw socket", "fetch 1 MiB at a time, as the clients do, and discard it", python_program("raw_socket"),
           "confluent-kafka consume", missing=_needs("kafka")),
    Client("raw socket (16 MiB)", "fetch 16 MiB at a time and discard it", python_program(
        "raw_socket", "--mebibytes", "16"), "confluent-kafka consume", missing=_needs("kafka")),
)}
# Read from a TLS listener, the ceiling in two sizes of a request.
OVER_TLS = {client.name: client for client in (
    CLIENTS["kconsumer poll"], CLIENTS["confluent-kafka poll"], CLIENTS["kconsumer consume"],
    CLIENTS["confluent-kafka consume"], CLIENTS["kconsumer consume_batch"],
    Client("raw OpenSSL", "fetch 1 MiB at a time through OpenSSL and discard it", python_program("raw_tls"),
           "confluent-kafka consume", missing=_needs("kafka"), prepare=_raw_tls_build),
    Client("raw OpenSSL (16 MiB)", "fetch 16 MiB at a time through OpenSSL and discard it", python_program(
        "raw_tls", "--mebibytes", "16"), "confluent-kafka consume", missing=_needs("kafka"), prepare=_raw_tls_build),
)}
# Read on an event loop; `versus` is the synchronous call.
ON_LOOP = {client.name: client for client in (
    *(Client(f"sync {method}", f"Consumer.{method}()", python_program(
        "drop_in", "--library", "kconsumer", "--method", method), f"sync {method}")
      for method in ("poll", "consume", "consume_batch")),
    *(Client(f"aio {name}", about, python_program("on_loop", "--library", "kconsumer", "--method", name), versus)
      for name, about, versus in (
          ("for", "async for and value() of each", "sync poll"),
          ("ticked", "the same, beside a task that sleeps for 1 ms again and again", "sync poll"),
          ("poll", "await poll() and value() of each", "sync poll"),
          ("consume", "await consume(10000) and value() of each", "sync consume"),
          ("consume_batch", "await consume_batch(65536), rows counted", "sync consume_batch"))),
    *(Client(f"{title} {name}", about, python_program("on_loop", "--library", library, "--method", name), versus,
             limit=limit, missing=_needs(library))
      for title, library, name, about, versus, limit in (
          ("AIOConsumer", "confluent_kafka", "poll", "confluent_kafka's await poll()", "sync poll", 50_000),
          ("AIOConsumer", "confluent_kafka", "consume100", "its await consume(100)", "sync consume", 1_000_000),
          ("aiokafka", "aiokafka", "getone", "await getone() and value of each", "sync poll", 200_000),
          ("aiokafka", "aiokafka", "getmany", "await getmany(max_records=10000)", "sync consume", 1_000_000))),
)}
# Of a topic whose values are decoded; `versus` is the same topic as bytes.
TYPED = {client.name: client for client in (
    Client(name, about, python_program("typed", "--method", method), "raw batches", missing=_needs("pyarrow"))
    for name, method, about in (
        ("raw batches", "raw", "consume_batch(50000), rows counted"),
        ("decoded batches", "decoded", "consume_batch(50000) and decode() of each, into pyarrow"),
        ("scan", "scan", "kconsumer.scan into pyarrow, decoded by its threads")))}
# Of the section `sizes`: the ceiling of `poll()`, in the request sizes of confluent-kafka and of kconsumer.
CEILINGS = {client.name: client for client in (
    Client(f"raw socket by poll ({mebibytes} MiB)", f"fetch {mebibytes} MiB at a time and discard it", python_program(
        "raw_socket", "--mebibytes", str(mebibytes)), "confluent-kafka poll", missing=_needs("kafka"))
    for mebibytes in (1, 8))}
EVERY = CLIENTS | OVER_TLS | ON_LOOP | TYPED | CEILINGS
# Of the section `sizes`: what hands out every value, on both sides, and the ceiling.
SIZED = ("kconsumer poll", "confluent-kafka poll", "kconsumer consume", "confluent-kafka consume", "kconsumer arrow",
         "confluent-kafka poll (8 MiB)", "confluent-kafka consume (8 MiB)", "confluent-kafka poll (defaults)",
         "confluent-kafka consume (defaults)", *CEILINGS)
PAIRED = [name for name, client in CLIENTS.items() if client.own or name == client.versus]
