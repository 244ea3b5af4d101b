"""The collector on brokers: figures under load with a rebalance in the middle, against counts made outside."""

import asyncio
import threading
import time

import pytest
from api_helpers import PATIENCE, poll_until, reader, settings, until
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from kconsumer import Consumer, TopicPartition
from kconsumer.aio import AIOConsumer
from kconsumer.telemetry.otel import process_span
from kconsumer.telemetry.prometheus import Collector
from kconsumer.testing import EmbeddedCluster

COUNT = 500  # of each of four partitions


@pytest.fixture(scope="module")
def cluster():
    with EmbeddedCluster(1) as made:
        made.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=30_000, heartbeat_interval_ms=100)
        made.create_topic("load", 4)
        made.produce("load", [{"value": b"%d" % n, "partition": p} for p in range(4) for n in range(COUNT)])
        yield made


def scrape(client, **labels):
    """{name: sum over the consumers of this client.id}."""
    registry = CollectorRegistry()
    Collector().register(registry)
    found = {}
    for family in registry.collect():
        for sample in family.samples:
            if sample.labels["client_id"] == client and labels.items() <= sample.labels.items():
                found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def test_a_scrape_counts_the_records_of_a_group_through_a_rebalance(cluster):
    scrape("load")  # from here on the counters of closed consumers stay
    config = settings(cluster, group_id="load", client_id="load", group_protocol="consumer",
                      enable_auto_commit=False)
    returned = 0
    first, second = Consumer(config), Consumer(config)
    with second:
        with first:
            first.subscribe(["load"])
            for _ in range(100):
                assert first.poll(PATIENCE).error() is None
                returned += 1
            found = scrape("load")
            assert found["kconsumer_consumed_records_total"] == returned
            assert found["kconsumer_lag_records"] == 4 * COUNT - returned
            assert found["kconsumer_rebalance_latency_seconds_count"] >= 1
            first.commit(asynchronous=False)
            assert scrape("load")["kconsumer_commit_latency_seconds_count"] == 1
            second.subscribe(["load"])
            deadline = time.monotonic() + PATIENCE
            while not (len(first.assignment()) == len(second.assignment()) == 2):
                for consumer in (first, second):
                    message = consumer.poll(0.05)
                    returned += message is not None and message.error() is None
                assert time.monotonic() < deadline, "no rebalance"
            found = scrape("load")
            assert found["kconsumer_assigned_partitions"] == 4
            assert found["kconsumer_consumed_records_total"] == returned
        found = scrape("load")
        assert found["kconsumer_consumed_records_total"] == returned
        assert found["kconsumer_assigned_partitions"] == len(second.assignment())
    assert "kconsumer_assigned_partitions" not in scrape("load")
    assert scrape("load")["kconsumer_consumed_records_total"] == returned


def test_lag_in_seconds_of_one_record_that_waits(cluster):
    cluster.create_topic("one", 1)
    age_ms = 90_000
    cluster.produce("one", [{"value": b"v", "partition": 0, "timestamp": int(time.time() * 1000) - age_ms}])
    with reader(cluster, "one", client_id="one") as consumer:
        until(lambda: scrape("one").get("kconsumer_lag_seconds", 0) > 0)
        assert age_ms / 1000 <= scrape("one")["kconsumer_lag_seconds"] < age_ms / 1000 + PATIENCE
        assert consumer.poll(PATIENCE).value() == b"v"
        assert scrape("one")["kconsumer_lag_seconds"] == 0


def test_lag_of_a_paused_partition_grows_with_its_topic(cluster):
    cluster.create_topic("quiet", 1)
    with reader(cluster, "quiet", client_id="quiet", offset=0) as consumer:
        consumer.poll(0.1)
        consumer.pause([TopicPartition("quiet", 0)])
        cluster.produce("quiet", [{"value": b"v", "partition": 0}] * 7)
        collector = Collector(partitions=False)

        def lag():
            return [sample.value for family in collector.collect() if family.name == "kconsumer_lag_records"
                    for sample in family.samples if sample.labels["client_id"] == "quiet"]

        until(lambda: lag() == [7.0])


def test_a_scrape_sees_consumers_of_asyncio_from_another_thread(cluster):
    found = {}

    async def read():
        async with AIOConsumer(settings(cluster, client_id="aio", group_id="aio")) as consumer:
            await consumer.subscribe(["load"])
            for _ in range(10):
                assert (await consumer.poll(PATIENCE)).error() is None
            thread = threading.Thread(target=lambda: found.update(scrape("aio")))
            thread.start()
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    asyncio.run(read())
    assert found["kconsumer_consumed_records_total"] == 10
    assert found["kconsumer_lag_records"] == 4 * COUNT - 10


def test_a_scrape_waits_for_no_broker(unused_port):
    with Consumer({"bootstrap.servers": f"127.0.0.1:{unused_port}", "client.id": "alone", "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition("t", 0, 5)])
        began = time.process_time()
        found = scrape("alone")
        assert time.process_time() - began < 1
        assert (found["kconsumer_assigned_partitions"], "kconsumer_lag_records" in found) == (1, False)
        poll_until(consumer, lambda: consumer.metrics()["poll_waits_total"])
        assert scrape("alone")["kconsumer_poll_waits_total"] >= 1


# -- spans, from the context of a producer


@pytest.fixture
def tracing(cluster, topic_name):
    """A tracer provider with its finished spans, and a record that a producer sent within a span."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    topic = topic_name()
    cluster.create_topic(topic, 1)
    with provider.get_tracer("producer").start_as_current_span("send traced") as sent:
        carrier = {}
        propagate.inject(carrier)
    cluster.produce(topic, [
        {"key": b"k", "value": b"v", "partition": 0,
         "headers": [("other", b"\xff"), *((name, text.encode()) for name, text in carrier.items())]},
        {"value": None, "partition": 0}])
    exporter.clear()
    return topic, provider, exporter, sent.get_span_context()


def test_a_span_of_a_record_is_a_child_of_the_producers_span(cluster, tracing):
    topic, provider, exporter, sent = tracing
    with reader(cluster, topic) as consumer:
        message, tombstone = (consumer.poll(PATIENCE) for _ in range(2))
        with process_span(message, tracer_provider=provider, attributes={"more": 1}) as span:
            assert trace.get_current_span() is span
        with pytest.raises(ZeroDivisionError), process_span(tombstone, tracer_provider=provider):
            1 / 0  # noqa: B018
    child, alone = exporter.get_finished_spans()
    assert (child.name, child.kind) == (f"process {topic}", trace.SpanKind.CONSUMER)
    assert (child.context.trace_id, child.parent.span_id) == (sent.trace_id, sent.span_id)
    assert dict(child.attributes) == {
        "messaging.system": "kafka", "messaging.operation.name": "process", "messaging.operation.type": "process",
        "messaging.destination.name": topic, "messaging.destination.partition.id": "0", "messaging.kafka.offset": 0,
        "messaging.kafka.message.key": "k", "more": 1}
    assert (alone.parent, alone.links, alone.attributes["messaging.kafka.message.tombstone"]) == (None, (), True)
    assert (alone.status.status_code, alone.events[0].name) == (trace.StatusCode.ERROR, "exception")


def test_a_span_of_a_record_can_link_to_the_producers_span(cluster, tracing):
    topic, provider, exporter, sent = tracing
    with reader(cluster, topic) as consumer:
        message, without = (consumer.poll(PATIENCE) for _ in range(2))
        with provider.get_tracer("app").start_as_current_span("batch") as batch:
            with process_span(message, link=True, tracer_provider=provider):
                pass
            for link in (True, False):
                with process_span(without, link=link, tracer_provider=provider):
                    pass
    linked, *alone, _ = exporter.get_finished_spans()
    assert {span.parent.span_id for span in (linked, *alone)} == {batch.get_span_context().span_id}
    assert [link.context.span_id for link in linked.links] == [sent.span_id]
    assert [span.links for span in alone] == [(), ()]


def test_without_a_tracer_provider_a_span_records_nothing(cluster, tracing):
    topic, *_ = tracing
    with reader(cluster, topic) as consumer, process_span(consumer.poll(PATIENCE)) as span:
        assert not span.is_recording()
