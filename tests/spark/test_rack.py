"""An executor tells brokers its rack, where its environment names one."""

from __future__ import annotations

import logging

import pytest

from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.rack import VARIABLE, with_rack
from kconsumer.spark.reading import read_range
from kconsumer.testing import KafkaCluster


def parse(**options: str) -> ReadOptions:
    return ReadOptions.parse({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **options})


@pytest.mark.parametrize(("options", "rack"), [
    ({}, None),
    ({"rackAware": "false"}, None),
    ({"rackAware": "true"}, "here"),
    ({"rackAware": "true", "kafka.client.rack": "there"}, "there"),
    ({"kafka.client.rack": "there"}, "there"),
])
def test_the_rack_of_a_consumer(monkeypatch: pytest.MonkeyPatch, options: dict[str, str], rack: str | None):
    monkeypatch.setenv(VARIABLE, "here")
    assert with_rack(parse(**options)).get("client.rack") == rack


def test_no_rack_is_sent(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.delenv(VARIABLE, raising=False)
    with caplog.at_level(logging.WARNING, "kconsumer.ranges"):
        assert "client.rack" not in with_rack(parse(rackAware="true"))
    assert f"rackAware has no effect: the environment of the executor has no {VARIABLE}" in caplog.text


@pytest.mark.slow
def test_reading_from_a_replica_in_the_rack(kafka3: KafkaCluster, topic_name, monkeypatch: pytest.MonkeyPatch):
    """The leader stands still as soon as it has named the replica: what comes after that is the replica's."""
    name = topic_name()
    kafka3.create_topic(name, config={"min.insync.replicas": 1})
    kafka3.produce(name, [b"%d" % n for n in range(5000)])
    leader = kafka3.leaders(name)[0]
    monkeypatch.setenv(VARIABLE, f"rack-{next(broker for broker in kafka3.broker_ids if broker != leader)}")
    options = ReadOptions.parse({
        "kafka.bootstrap.servers": kafka3.bootstrap_servers, "subscribe": name, "rackAware": "true",
        "kafka.max.partition.fetch.bytes": "1000"})
    batches = read_range(options, OffsetRange(name, 0, 0, 5000))
    found = next(batches).column("value").to_pylist()
    kafka3.pause(leader)
    try:
        for batch in batches:
            found += batch.column("value").to_pylist()
    finally:
        kafka3.resume(leader)
    assert found == [b"%d" % n for n in range(5000)]
