"""Owns: latency from produce to poll, or to await on an event loop: clients in turn, each with one paced producer.

Threads: the main thread. Never: counts the first records of a run, which run cold code.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from benchmarks.clients.registry import ROOT, Target, python_program
from kconsumer.testing import KafkaCluster

RATE = 500
# A single 50 ms stall of the machine defines the 99th percentile of a run. So: many short runs, and their median.
ROUNDS = 9
WARM_UP = 3  # runs that do not count: a broker that has just started answers in three times the time
COUNT = 2500
QUICK_COUNT = 500
DISCARD = 0.1
GRACE_SECONDS = 60.0
LIBRARIES = ("kconsumer", "confluent_kafka")
ON_LOOP = ("kconsumer", "confluent_kafka", "aiokafka")


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def one(cluster: KafkaCluster, program: str, library: str, count: int) -> dict[str, Any]:
    """Return the latencies of one run. Raises RuntimeError if a program fails."""
    reader = python_program(program, "--library", library)(
        Target(cluster.bootstrap_servers, program, 1, count))
    pacer = [sys.executable, "-m", "benchmarks.clients.pace", "--bootstrap", cluster.bootstrap_servers, "--topic",
             program, "--rate", str(RATE), "--count", str(count)]
    with tempfile.TemporaryFile("w+") as err, subprocess.Popen(
            reader, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, text=True) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            if ready:
                subprocess.run(pacer, cwd=ROOT, check=True, timeout=count / RATE + GRACE_SECONDS)
            output, _ = process.communicate(timeout=GRACE_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            raise RuntimeError(f"latency of {library}: {error}") from error
        finally:
            process.kill()
        if process.returncode:
            err.seek(0)
            raise RuntimeError(f"latency of {library}: {err.read().strip()[-500:]}")
    found = json.loads(output)
    waits = sorted(found["waits_us"][int(count * DISCARD):])
    return {"library": library, "records": len(waits), "p50_ms": percentile(waits, 0.5) / 1000,
            "p99_ms": percentile(waits, 0.99) / 1000, "max_ms": waits[-1] / 1000,
            "cpu_percent": 100 * found["cpu_seconds"] / (count / RATE)}


def run(
    cluster: KafkaCluster, quick: bool, say: Callable[[str], None], program: str = "latency_drop_in",
    libraries: Sequence[str] = LIBRARIES,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return (one entry per run, failures)."""
    found: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    cluster.create_topic(program, 1, replication=1)
    for _ in range(0 if quick else WARM_UP):
        with suppress(RuntimeError):  # a program that fails, fails again below
            one(cluster, program, libraries[0], COUNT)
    for number in range(1 if quick else ROUNDS):
        for library in libraries if number % 2 else reversed(libraries):
            try:
                entry = one(cluster, program, library, QUICK_COUNT if quick else COUNT)
            except RuntimeError as error:
                failed[f"latency of {library}"] = str(error)
                continue
            found.append({"round": number, **entry})
            say(f"  {library:<16} p50 {entry['p50_ms']:.3f} ms, p99 {entry['p99_ms']:.3f} ms")
    cluster.delete_topic(program)
    return found, failed
