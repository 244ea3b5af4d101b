"""Metrics and the lag of a group on a real Kafka, against the answers of confluent_kafka's admin client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer as Reference
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry

from kconsumer import Consumer
from kconsumer.cli.app import cli
from kconsumer.telemetry.prometheus import Collector
from kconsumer.testing import KafkaCluster

COUNT = 400  # of each of four partitions
PATIENCE = 120.0


def scrape(client: str) -> dict[str, float]:
    """{name: sum over the consumers of this client.id}."""
    registry = CollectorRegistry()
    Collector().register(registry)
    found: dict[str, float] = {}
    for sample in (sample for family in registry.collect() for sample in family.samples):
        if sample.labels["client_id"] == client:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def committed(kafka: KafkaCluster, group: str) -> dict[tuple[str, int], int]:
    """The group's offsets, without kconsumer."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE)
    return {(p.topic, p.partition): p.offset for p in asked.topic_partitions}


def ends(kafka: KafkaCluster, topic: str) -> dict[tuple[str, int], int]:
    reference = Reference({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "reference"})
    try:
        return {(topic, p): reference.get_watermark_offsets(Place(topic, p), PATIENCE)[1] for p in range(4)}
    finally:
        reference.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_figures_of_a_group_under_load_with_a_rebalance(
    kafka: KafkaCluster, topic_name: Callable[[], str], made: list[Any], protocol: str
):
    topic = group = client = topic_name()
    kafka.create_topic(topic, 4)
    load = [{"value": b"v", "partition": p, "timestamp": 1_700_000_000_000 + n} for n in range(COUNT) for p in range(4)]
    kafka.produce(topic, load)
    scrape(client)  # from here on the counters of closed consumers stay
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "client.id": client,
              "group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    first, second = Consumer(config), Consumer(config)
    made += [first, second]
    positions: dict[tuple[str, int], int] = {}
    returned = 0

    def poll(consumer: Consumer, timeout: float) -> None:
        nonlocal returned
        message = consumer.poll(timeout)
        if message is not None:
            assert message.error() is None, message.error()
            positions[topic, message.partition()] = message.offset() + 1
            returned += 1
            if returned % 50 == 0:
                kafka.produce(topic, load[:4])

    first.subscribe([topic])
    while returned < 300:
        poll(first, PATIENCE)
    first.commit(asynchronous=False)
    assert committed(kafka, group) == positions
    second.subscribe([topic])
    deadline = time.monotonic() + PATIENCE
    while not len(first.assignment()) == len(second.assignment()) == 2:
        poll(first, 0.05)
        poll(second, 0.05)
        assert time.monotonic() < deadline, "no rebalance"
    found = scrape(client)
    assert found["kconsumer_assigned_partitions"] == 4
    assert found["kconsumer_consumed_records_total"] == returned
    assert found["kconsumer_rebalance_latency_seconds_count"] >= 3
    assert found["kconsumer_commit_latency_seconds_count"] >= 1
    assert found["kconsumer_session_age_seconds"] < 2 * PATIENCE
    first.close()
    assert scrape(client)["kconsumer_consumed_records_total"] == returned
    for _ in range(20):
        poll(second, PATIENCE)
    second.commit(asynchronous=False)
    second.close()
    assert "kconsumer_lag_records" not in scrape(client)

    # The command, against the same truth.
    result = CliRunner().invoke(cli, ["lag", group, "-b", kafka.bootstrap_servers, "-t", topic, "-o", "json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {(row["topic"], row["partition"]): row["committed"] for row in rows} == committed(kafka, group)
    assert {(row["topic"], row["partition"]): row["end"] for row in rows} == {
        place: end for place, end in ends(kafka, topic).items() if place in committed(kafka, group)}
    for row in rows:
        assert row["lag"] == row["end"] - row["committed"]
        age = time.time() - 1_700_000_000
        assert row["seconds"] == (pytest.approx(age, abs=PATIENCE) if row["lag"] else 0)
