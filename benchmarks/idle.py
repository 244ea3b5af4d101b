"""Owns: the CPU of idle consumers with 100 partitions, and with 10,000.

Threads: the main thread. Never: includes the broker's start in the figure (only the program's own CPU counts).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.runner import ClientError, run_program
from kconsumer.testing import ClusterError, KafkaCluster

SECONDS = 20.0
QUICK_SECONDS = 3.0
LIBRARIES = ("kconsumer", "confluent_kafka")
# (partitions, seconds until offsets are known and the fetch session exists)
CASES = ((100, 3.0), (10_000, 30.0))
# A broker refuses to create a topic whose metadata exceed 10,000 records.
PARTITIONS_PER_TOPIC = 2500
# Thousands of indexes of the default size would take gigabytes of the broker's address space.
SMALL_INDEX = {"segment.index.bytes": 4096}


def run(
    cluster: KafkaCluster, quick: bool, say: Callable[[str], None]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return (one entry per case and library, failures)."""
    found: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    for partitions, settle in CASES[:1] if quick else CASES:
        each = min(partitions, PARTITIONS_PER_TOPIC)
        names = [f"idle-{partitions}-{number}" for number in range(partitions // each)]
        try:
            for name in names:
                cluster.create_topic(name, each, replication=1, config=SMALL_INDEX)
        except ClusterError as error:
            failed[f"idle, {partitions} partitions"] = str(error)
            continue
        for library in LIBRARIES:
            command = [sys.executable, "-m", "benchmarks.clients.idle_drop_in", "--bootstrap",
                       cluster.bootstrap_servers, "--topics", *names, "--partitions", str(each), "--library",
                       library, "--settle", str(settle), "--seconds", str(QUICK_SECONDS if quick else SECONDS)]
            try:
                entry = json.loads(run_program(command, f"idle {library}")[0])
            except ClientError as error:
                failed[f"idle {library}, {partitions} partitions"] = str(error)
                continue
            found.append({"library": library, "partitions": partitions, **entry})
            say(f"  {library:<16} {partitions:>6} partitions: {entry['cpu_percent']:.3f} % of a core, "
                f"{entry['peak_rss_bytes'] / 1e6:.0f} MB")
        for name in names:
            cluster.delete_topic(name)
    return found, failed
