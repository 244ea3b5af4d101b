"""stats_cb against librdkafka's own document: the same fields, but for those the guide lists; and what they say."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import kconsumer
from kconsumer.testing import EmbeddedCluster

RECORDS = 300
PATIENCE = 30.0
# Fields of librdkafka's document that are not here, with where they stand; docs/migrating.md says why.
LEFT_OUT = {"brokers.*.zbuf_grow", "partitions.*.fetchq_size", "partitions.*.rx_ver_drops",
            "partitions.*.committed_leader_epoch", "cgrp"}
WINDOW = {"min", "max", "avg", "sum", "stddev", "p50", "p75", "p90", "p95", "p99", "p99_99", "outofrange", "hdrsize",
          "cnt"}


@pytest.fixture(scope="module")
def topic(embedded: EmbeddedCluster) -> Iterator[str]:
    embedded.create_topic("statistics", 2)
    producer = confluent_kafka.Producer({"bootstrap.servers": embedded.bootstrap_servers})
    for n in range(RECORDS):
        producer.produce("statistics", b"x" * 100, partition=n % 2)
    assert producer.flush(PATIENCE) == 0
    yield "statistics"


def documents_of(library: Any, cluster: EmbeddedCluster, topic: str) -> list[dict[str, Any]]:
    """The statistics until all records were read and an interval went by, as the library's stats_cb gets them."""
    documents: list[str] = []
    consumer = library.Consumer({
        "bootstrap.servers": cluster.bootstrap_servers, "group.id": "statistics", "auto.offset.reset": "earliest",
        "statistics.interval.ms": 50, "stats_cb": documents.append, "enable.auto.commit": False})
    try:
        consumer.assign([library.TopicPartition(topic, p, 0) for p in (0, 1)])
        read, deadline = 0, time.monotonic() + PATIENCE
        while read < RECORDS:
            assert time.monotonic() < deadline
            message = consumer.poll(0.05)
            read += message is not None and message.error() is None
        enough = len(documents) + 2
        while len(documents) < enough:
            assert time.monotonic() < deadline
            consumer.poll(0.05)
    finally:
        consumer.close()
    return [json.loads(document) for document in documents]


@pytest.fixture(scope="module")
def all_ours(embedded: EmbeddedCluster, topic: str) -> list[dict[str, Any]]:
    return documents_of(kconsumer, embedded, topic)


@pytest.fixture(scope="module")
def ours(all_ours: list[dict[str, Any]]) -> dict[str, Any]:
    return all_ours[-1]


def fields(document: dict[str, Any]) -> set[str]:
    """Where each field stands, without what is inside windows and without names of brokers and partitions."""
    broker = max(document["brokers"].values(), key=lambda b: b["rx"])
    (topic,) = document["topics"].values()
    found = set(document) | {f"brokers.*.{name}" for name in broker} | {f"topics.*.{name}" for name in topic}
    return found | {f"partitions.*.{name}" for name in topic["partitions"]["0"]}


def test_every_field_of_librdkafka_is_there_or_listed(
    embedded: EmbeddedCluster, topic: str, ours: dict[str, Any]
) -> None:
    missing = fields(documents_of(confluent_kafka, embedded, topic)[-1]) - fields(ours)
    assert missing == LEFT_OUT
    guide = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text()
    for field in missing:
        assert f"`{field.rsplit('.', 1)[-1]}`" in guide


def test_windows_are_whole(all_ours: list[dict[str, Any]]) -> None:
    brokers = [broker for document in all_ours for broker in document["brokers"].values()]
    for broker in brokers:
        for name in ("rtt", "throttle", "int_latency", "outbuf_latency"):
            assert set(broker[name]) == WINDOW
    rtts = [b["rtt"] for b in brokers if b["rtt"]["cnt"]]
    assert rtts
    for rtt in rtts:
        order = [rtt[name] for name in ("min", "p50", "p75", "p90", "p95", "p99", "p99_99", "max")]
        assert order == sorted(order)
        assert rtt["min"] <= rtt["avg"] <= rtt["max"]
        assert rtt["sum"] >= rtt["cnt"] * rtt["min"] > 0


def test_metrics_of_brokers_contain_their_connections(ours: dict[str, Any], topic: str) -> None:
    live = [b for b in ours["brokers"].values() if b["state"] == "UP"]
    assert live
    for broker in live:
        assert 0 < broker["stateage"] <= ours["age"]
        assert 0 <= broker["rxidle"] <= broker["stateage"]
        assert 0 <= broker["txidle"] <= broker["stateage"]
        assert sum(broker["req"].values()) == broker["tx"]
    fetched_from = [b for b in live if b["toppars"]]
    assert all(b["req"]["Fetch"] >= 1 and b["wakeups"] > 0 for b in fetched_from)
    parts = [part for b in ours["brokers"].values() for part in b["toppars"].values()]
    assert sorted(part["partition"] for part in parts) == [0, 1]
    assert {part["topic"] for part in parts} == {topic}


def test_metrics_of_partitions_count_the_records_read(ours: dict[str, Any], topic: str) -> None:
    assert ours["topics"][topic]["age"] >= ours["topics"][topic]["metadata_age"] >= 0
    assert ours["metadata_cache_cnt"] >= 1
    for partition in ours["topics"][topic]["partitions"].values():
        assert (partition["rxmsgs"], partition["msgs"], partition["fetchq_cnt"]) == (RECORDS // 2, RECORDS // 2, 0)
        assert partition["rxbytes"] > 100 * partition["rxmsgs"]
        assert (partition["desired"], partition["unknown"]) == (True, False)
        assert (partition["app_offset"], partition["consumer_lag"]) == (RECORDS // 2, 0)
    assert ours["rxmsgs"] == RECORDS
