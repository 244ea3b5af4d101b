"""Owns: the section `aio`: the topic plain read on an event loop, beside the synchronous calls; latency to await.

Threads: the main thread. Never: mixes its samples with those of the section `throughput`: its topic has another name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import Any

from benchmarks import latency, topics
from benchmarks.clients.registry import ON_LOOP
from benchmarks.runner import in_turn
from kconsumer.testing import KafkaCluster

RECORDS = 5_000_000
QUICK_RECORDS = 500_000


def run(  # noqa: PLR0917
    cluster: KafkaCluster, quick: bool, rounds: int, chosen: Callable[[list[str]], list[Any]], result: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Adds to result: samples of the topic `aio`, latencies, failures."""
    topic = replace(topics.TOPICS["plain"], name="aio", about="100 B, uncompressed, 1 partition, on an event loop")
    topic = topic.scaled((QUICK_RECORDS if quick else RECORDS) / topic.records)
    topics.load(cluster, topic)
    clients = chosen(list(ON_LOOP))
    in_turn(clients[:1], cluster.bootstrap_servers, topic, 1, lambda _: None)
    samples, failed = in_turn(clients, cluster.bootstrap_servers, topic, rounds, say)
    cluster.delete_topic(topic.name)
    result["failed"].update({f"{client} on aio": why for client, why in failed.items()})
    result["topics"]["aio"] = asdict(topic)
    result["samples"] += [asdict(sample) for sample in samples]
    say("aio: produce to await, 500 records/s")
    available = [name for name in latency.ON_LOOP if find_spec(name)]
    result["latency_on_loop"], failed = latency.run(cluster, quick, say, "latency_on_loop", available)
    result["failed"].update({f"{what}, on an event loop": why for what, why in failed.items()})
