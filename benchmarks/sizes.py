"""Owns: the section `sizes`: the same calls of kconsumer and confluent-kafka for values of 100 B to 1 MB, beside a raw
socket, the ceiling of both.

Threads: the main thread. Never: measures a call of a consumer that does not return the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from benchmarks import topics
from benchmarks.clients.registry import SIZED, Client
from benchmarks.runner import in_turn
from benchmarks.topics import Topic
from kconsumer.testing import KafkaCluster

TOPICS = {topic.name: topic for topic in (
    Topic("100B", "100 B, uncompressed, 1 partition", 3_000_000),
    Topic("1kB", "1 kB, uncompressed, 1 partition", 600_000, value_bytes=1000),
    Topic("10kB", "10 kB, uncompressed, 1 partition", 80_000, value_bytes=10_000),
    Topic("100kB", "100 kB, uncompressed, 1 partition", 8_000, value_bytes=100_000),
    Topic("1MB", "1 MB, uncompressed, 1 partition", 800, value_bytes=1_000_000, batch_bytes=1_100_000),
)}
_QUICK = 0.1
# confluent-kafka pauses for a second when its queue is full: with its defaults, every 64 MiB.
_BYTES_BY_DEFAULT = 100_000_000


def _bounded(client: Client, topic: Topic) -> Client:
    if not client.name.endswith("(defaults)"):
        return client
    return replace(client, limit=max(1, _BYTES_BY_DEFAULT // topic.value_bytes))


def run(
    cluster: KafkaCluster,
    rounds: int,
    chosen: Callable[[list[str]], list[Any]],
    result: dict[str, Any],
    say: Callable[[str], None],
    *,
    quick: bool,
) -> None:
    """Add to `result`: a topic for each size, samples, failures."""
    for whole in TOPICS.values():
        topic = whole.scaled(_QUICK) if quick else whole
        took = topics.load(cluster, topic)
        say(f"values of {topic.name}: {topic.records:,} records written in {took:.0f} s")
        clients = [_bounded(client, topic) for client in chosen(list(SIZED))]
        in_turn(clients[:1], cluster.bootstrap_servers, topic, 1, lambda _: None)
        samples, failed = in_turn(clients, cluster.bootstrap_servers, topic, rounds, say)
        result["failed"].update({f"{client} on values of {topic.name}": why for client, why in failed.items()})
        result["topics"][topic.name] = asdict(topic)
        result["samples"] += [asdict(sample) for sample in samples]
        cluster.delete_topic(topic.name)
