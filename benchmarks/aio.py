"""Owns: the section `aio`: the topic `plain` read on an event loop and with synchronous calls, the latency of an await,
and 1,000 idle consumers on one loop.

Threads: the main thread. Never: shares a topic name with the section `throughput`, so their samples stay apart.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import Any

from benchmarks import latency, topics
from benchmarks.clients.registry import ON_LOOP
from benchmarks.runner import ClientError, in_turn, run_program
from kconsumer.testing import KafkaCluster

RECORDS = 5_000_000
QUICK_RECORDS = 500_000
# These read so many in half a second, in which one stall of the machine decides a round. They read the whole topic, and
# for each round of all clients they have more.
QUICKEST = {f"{face} {method}" for face in ("sync", "aio") for method in ("consume", "consume_batch")}
TIMES = 4
MORE_ROUNDS = 3
CROWD = 1_000  # idle consumers
QUICK_CROWD = 100


def run(  # noqa: PLR0917 - called once
    cluster: KafkaCluster, quick: bool, rounds: int, chosen: Callable[[list[str]], list[Any]], result: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Add to `result`: samples of the topic `aio`, latencies, failures."""
    topic = replace(topics.TOPICS["plain"], name="aio", about="100 B, uncompressed, 1 partition, on an event loop")
    records = QUICK_RECORDS if quick else RECORDS
    topic = topic.scaled(TIMES * records / topic.records)
    topics.load(cluster, topic)
    clients = [client if client.name in QUICKEST else replace(client, limit=client.limit or records)
               for client in chosen(list(ON_LOOP))]
    in_turn(clients[:1], cluster.bootstrap_servers, topic, 1, lambda _: None)
    samples, failed = in_turn(clients, cluster.bootstrap_servers, topic, rounds, say)
    if not quick:
        again = [client for client in clients if client.name in QUICKEST - set(failed)]
        more, failed_later = in_turn(again, cluster.bootstrap_servers, topic, MORE_ROUNDS * rounds, say, first=rounds)
        samples += more
        failed |= failed_later
    cluster.delete_topic(topic.name)
    result["failed"].update({f"{client} on aio": why for client, why in failed.items()})
    result["topics"]["aio"] = asdict(topic)
    result["samples"] += [asdict(sample) for sample in samples]
    say("aio: produce to await, 500 records/s")
    available = [name for name in latency.ON_LOOP if find_spec(name)]
    result["latency_on_loop"], failed = latency.run(cluster, quick, say, "latency_on_loop", available)
    result["failed"].update({f"{what}, on an event loop": why for what, why in failed.items()})
    try:
        result["idle_on_loop"] = _idle(cluster, QUICK_CROWD if quick else CROWD, say)
    except ClientError as error:
        result["failed"]["idle consumers on an event loop"] = str(error)


def _idle(cluster: KafkaCluster, consumers: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the CPU of consumers without records, each in a task."""
    cluster.create_topic("idle-on-loop", 1, replication=1)
    found = json.loads(run_program([
        sys.executable, "-m", "benchmarks.clients.idle_on_loop", "--bootstrap", cluster.bootstrap_servers, "--topic",
        "idle-on-loop", "--consumers", str(consumers), "--settle", "15", "--seconds", "20"], "idle on a loop")[0])
    cluster.delete_topic("idle-on-loop")
    say(f"  {consumers} idle consumers on one loop: {found['loop_percent']:.2f} % of a core in the loop's thread, "
        f"{found['cpu_percent']:.1f} % in all")
    return [{"consumers": consumers, **found}]
