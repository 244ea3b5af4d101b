"""Owns: the section `typed`: topics of flights, read from the broker as typed Arrow columns, and as bytes.

Threads: the main thread. Never: measures decoding alone (benchmarks.decode does).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks import topics
from benchmarks.clients.registry import TYPED
from benchmarks.decode_shapes import SHAPES, avro_bytes, json_bytes, proto_bytes
from benchmarks.runner import in_turn
from kconsumer.testing import KafkaCluster

RECORDS = 3_000_000
QUICK_RECORDS = 200_000
DIFFERENT = 100_000  # number of different rows; they are repeated


def run(  # noqa: PLR0917 - called once
    cluster: KafkaCluster, quick: bool, rounds: int, chosen: Callable[[list[str]], list[Any]], result: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Add to `result`: samples of the topics typed-json, typed-avro and typed-protobuf, failures."""
    shape = SHAPES[0]
    rows = shape.rows(DIFFERENT)
    for form, values in (("json", json_bytes(rows)), ("avro", avro_bytes(shape, rows)),
                         ("protobuf", proto_bytes(shape, rows))):
        size = sum(map(len, values)) // len(values)
        topic = topics.Topic(f"typed-{form}", f"flights of 12 fields in {form}, {size} B, uncompressed, 1 partition",
                             QUICK_RECORDS if quick else RECORDS, size)
        topics.load(cluster, topic, values)
        say(f"{topic.name}: {topic.about}")
        clients = chosen(list(TYPED))
        in_turn(clients[:1], cluster.bootstrap_servers, topic, 1, lambda _: None)
        samples, failed = in_turn(clients, cluster.bootstrap_servers, topic, rounds, say)
        cluster.delete_topic(topic.name)
        result["failed"].update({f"{client} on {topic.name}": why for client, why in failed.items()})
        result["topics"][topic.name] = asdict(topic)
        result["samples"] += [asdict(sample) for sample in samples]
