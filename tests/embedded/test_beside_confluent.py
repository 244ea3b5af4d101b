"""As programs written for confluent_kafka expect: names, metadata, results of commit() and on_commit, fatal errors."""

import json
import logging
import re

import confluent_kafka
import pytest
from api_helpers import poll_until, reader, settings, take, take_error

import kconsumer

RECORDS = 5
HEARTBEAT = 12
PACKAGES = [confluent_kafka, kconsumer]


@pytest.fixture(scope="module")
def topic(embedded):
    embedded.create_topic("beside-confluent", partitions=3)
    embedded.produce("beside-confluent", ({"value": b"x", "partition": 1} for _ in range(RECORDS)))
    return "beside-confluent"


def test_consumers_with_one_client_id_have_different_names_in_logs(embedded, topic, caplog):
    caplog.set_level(logging.DEBUG, "kconsumer")
    for _ in range(2):
        with reader(embedded, topic, (1,), client_id="app", debug="generic,broker") as consumer:
            take(consumer, 1)
    assert len(set(re.findall(r"\[(app#consumer-\d+)\]", caplog.text))) == 2


@pytest.mark.parametrize("package", PACKAGES)
def test_metadata_of_the_first_contact_is_from_a_bootstrap_server(embedded, topic, package):
    """Or from a broker, if the consumer's own request for metadata was answered before."""
    consumer = package.Consumer(settings(embedded, group_id="first-contact"))
    found = consumer.list_topics(timeout=20)
    source = "bootstrap" if found.orig_broker_id == -1 else str(found.orig_broker_id)
    assert found.orig_broker_id == -1 or found.orig_broker_id in found.brokers
    assert found.orig_broker_name in [f"{server}/{source}" for server in embedded.bootstrap_servers.split(",")]
    consumer.close()


@pytest.mark.parametrize("package", PACKAGES)
def test_commit_returns_each_assigned_partition(embedded, topic, package):
    consumer = package.Consumer(settings(embedded, group_id=f"each-{package.__name__}", enable_auto_commit=False))
    consumer.assign([package.TopicPartition(topic, partition, -2) for partition in (2, 0, 1)])
    take(consumer, RECORDS)
    found = consumer.commit(asynchronous=False)
    assert [(p.topic, p.partition, p.offset, p.error) for p in found] == [
        (topic, 0, -1001, None), (topic, 1, RECORDS, None), (topic, 2, -1001, None)]
    with pytest.raises(confluent_kafka.KafkaException, match="No offset stored"):
        consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("package", PACKAGES)
def test_consumers_with_one_client_id_have_different_names_in_statistics(embedded, topic, package):
    documents = []
    for _ in range(2):
        consumer = package.Consumer(settings(
            embedded, client_id="app", group_id="named", statistics_interval_ms=20, stats_cb=documents.append))
        before = len(documents)
        poll_until(consumer, lambda before=before: len(documents) > before)
        consumer.close()
    found = {(document["name"], document["client_id"]) for document in map(json.loads, documents)}
    assert len(found) == 2
    for name, client_id in found:
        assert re.fullmatch(r"app#consumer-\d+", name)
        assert client_id == "app"


@pytest.mark.parametrize("package", PACKAGES)
def test_on_commit_of_all_partitions_lists_each_assigned_partition(embedded, topic, package):
    results = []

    def on_commit(error, partitions):
        results.append((error and error.code(), [(p.partition, p.offset, p.error) for p in partitions]))

    consumer = package.Consumer(settings(
        embedded, group_id=f"listed-{package.__name__}", enable_auto_commit=False, on_commit=on_commit))
    consumer.assign([package.TopicPartition(topic, partition, -2) for partition in (2, 0, 1)])
    take(consumer, RECORDS)
    offsets = [package.TopicPartition(topic, 0), package.TopicPartition(topic, 2, 3)]
    for commit in (consumer.commit, consumer.commit, lambda: consumer.commit(offsets=offsets)):
        seen = len(results)
        commit()
        poll_until(consumer, lambda seen=seen: len(results) > seen)
    assert results == [
        (None, [(0, -1001, None), (1, RECORDS, None), (2, -1001, None)]),
        (kconsumer.KafkaError._NO_OFFSET, [(0, -1001, None), (1, -1001, None), (2, -1001, None)]),
        (None, [(0, -1001, None), (2, 3, None)]),
    ]
    consumer.close()


@pytest.fixture(params=PACKAGES, ids=lambda package: package.__name__)
def fenced(request, embedded, topic):
    """A static member that another one has replaced: the package, the consumer, and the results of its commits."""
    package, results = request.param, []

    def on_commit(error, partitions):
        results.append((error.code(), [(p.partition, p.error and p.error.code()) for p in partitions]))

    consumer = package.Consumer(settings(
        embedded, group_id=f"fenced-{request.node.name}", group_instance_id="one", enable_auto_commit=False,
        session_timeout_ms=6000, heartbeat_interval_ms=50, on_commit=on_commit))
    consumer.subscribe([topic])
    take(consumer, RECORDS)
    embedded.push_request_errors(HEARTBEAT, [kconsumer.KafkaError.FENCED_INSTANCE_ID])
    yield package, consumer, results
    embedded.clear_request_errors(HEARTBEAT)
    consumer.close()


def test_a_fatal_error_has_the_code_fatal(fenced):
    package, consumer, _ = fenced
    error = take_error(consumer).error()
    assert error.code() == package.KafkaError._FATAL == kconsumer.KafkaError._FATAL
    assert error.name() == "_FATAL"
    assert not error.retriable()
    assert "Fatal error" in error.str() and "group.instance.id" in error.str()
    if package is kconsumer:
        assert error.fatal()  # not there, where only error_cb's errors have it
        assert error.cause == kconsumer.KafkaError.FENCED_INSTANCE_ID
        with pytest.raises(kconsumer.FencedError, match="FENCED_INSTANCE_ID"):
            consumer.consume_batch()


def test_commits_after_a_fatal_error_report_it_first(fenced, topic):
    package, consumer, results = fenced
    take_error(consumer)
    offsets = [package.TopicPartition(topic, 1, 3)]
    for given in ({}, {"offsets": offsets}):
        with pytest.raises(package.KafkaException, match="Fatal error") as raised:
            consumer.commit(asynchronous=False, **given)
        assert raised.value.args[0].code() == package.KafkaError._FATAL
        seen = len(results)
        consumer.commit(**given)
        poll_until(consumer, lambda seen=seen: len(results) > seen)
    fatal = package.KafkaError._FATAL
    assert results == [(fatal, []), (fatal, [(1, fatal)])]
