"""Every method of Consumer on a cluster that answers: what it returns, and how one affects the others."""

import itertools
import json
import logging
import math
import threading
import time

import pytest
from api_helpers import PATIENCE, offsets, poll_until, reader, settings, take, take_batches, take_error, until

import kconsumer
from kconsumer import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    ConfigurationError,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
    WakeupError,
)
from kconsumer.testing import EmbeddedCluster

RECORDS = 300
START = 1_700_000_000_000  # timestamps of the records: one every 10 ms

FETCH, METADATA = 1, 3


@pytest.fixture(scope="module")
def topic(embedded):
    """Two partitions of RECORDS records; key k<i>, value v<i>, a header and a timestamp."""
    name = "api"
    embedded.create_topic(name, partitions=2)
    embedded.produce(name, (
        {"key": b"k%d" % i, "value": b"v%d" % i, "headers": [("n", b"%d" % i)], "timestamp": START + 10 * i,
         "partition": p}
        for p in (0, 1) for i in range(RECORDS)
    ))
    return name


@pytest.fixture
def consumer(embedded, topic):
    """Assigned to partition 0 from its beginning."""
    with reader(embedded, topic) as made:
        yield made


# ---- taking records


def test_poll_returns_every_record_in_order(consumer, topic):
    for i, message in enumerate(take(consumer, RECORDS)):
        assert (message.topic(), message.partition(), message.offset()) == (topic, 0, i)
        assert (message.key(), message.value()) == (b"k%d" % i, b"v%d" % i)
        assert message.headers() == [("n", b"%d" % i)]
        assert message.timestamp() == (kconsumer.TIMESTAMP_CREATE_TIME, START + 10 * i)
        assert message.leader_epoch() == 0
        assert message.error() is None
        assert len(message) == len(message.value())
    assert consumer.poll(0) is None


@pytest.mark.parametrize("timeout", [math.nan, "1", b"1"])
def test_poll_refuses_values_that_are_not_times(consumer, timeout):
    with pytest.raises((ValueError, TypeError)):
        consumer.poll(timeout)
    assert take(consumer, 1)[0].offset() == 0


def test_consume_fills_up_to_n_or_the_timeout(consumer):
    assert offsets(consumer.consume(100, PATIENCE)) == list(range(100))
    assert offsets(consumer.consume(RECORDS, 1.0)) == list(range(100, RECORDS))
    assert consumer.consume(10, 0.05) == []
    assert consumer.consume(0, 10) == []
    for wrong in (-1, 1_000_001):
        with pytest.raises(ValueError, match="num_messages"):
            consumer.consume(wrong, 0)


def test_consume_waits_for_its_number_without_a_timeout(consumer):
    assert len(consumer.consume(num_messages=RECORDS)) == RECORDS


def test_consume_batch_is_a_sequence_of_messages(consumer, topic):
    batch = consumer.consume_batch(max_records=50, timeout=PATIENCE)
    assert offsets(batch) == list(range(len(batch)))
    assert 0 < len(batch) <= 50
    assert batch[-1].offset() == len(batch) - 1
    assert offsets(batch[3:7]) == [3, 4, 5, 6]
    assert batch.next_offsets == {(topic, 0): len(batch)}
    assert consumer.position([TopicPartition(topic, 0)])[0].offset == len(batch)
    assert batch.nbytes == sum(len(m.key()) + len(m.value()) for m in batch)
    with pytest.raises(IndexError):
        batch[len(batch)]
    take_batches(consumer, RECORDS - len(batch))
    assert len(consumer.consume_batch(timeout=0)) == 0
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="max_records"):
            consumer.consume_batch(max_records=wrong, timeout=0)


def test_calls_of_every_kind_share_one_order(consumer):
    found = []
    for turn in itertools.cycle(range(4)):
        if turn == 0:
            found += take(consumer, 1)
        elif turn == 1:
            found += consumer.consume(7, PATIENCE)
        elif turn == 2:
            found += list(consumer.consume_batch(max_records=11, timeout=PATIENCE))
        else:
            found += itertools.islice(consumer, 3)
        if len(found) > RECORDS - 25:
            break
    assert offsets(found) == list(range(len(found)))


def test_iteration_passes_over_the_end_and_raises_errors(embedded, topic):
    with reader(embedded, topic, enable_partition_eof=True) as consumer:
        assert offsets(itertools.islice(consumer, RECORDS)) == list(range(RECORDS))
        consumer.assign([TopicPartition(topic, 99)])
        with pytest.raises(kconsumer.UnknownTopicOrPartitionError):
            next(consumer)


def test_two_partitions_each_in_order(embedded, topic):
    with reader(embedded, topic, partitions=(0, 1)) as consumer:
        found = take(consumer, 2 * RECORDS)
        for p in (0, 1):
            assert offsets(m for m in found if m.partition() == p) == list(range(RECORDS))


# ---- the assignment


def test_assignment_follows_assign_and_unassign(embedded, topic):
    with Consumer(settings(embedded)) as consumer:
        assert consumer.assignment() == []
        consumer.assign([TopicPartition(topic, 1, 5), TopicPartition(topic, 0, 7)])
        assert consumer.assignment() == [TopicPartition(topic, 1), TopicPartition(topic, 0)]
        assert {(m.partition(), m.offset()) for m in take(consumer, 2 * RECORDS - 12)} == (
            {(1, o) for o in range(5, RECORDS)} | {(0, o) for o in range(7, RECORDS)})
        consumer.unassign()
        assert consumer.assignment() == []
        assert consumer.poll(0.05) is None
        consumer.assign([])
        assert consumer.assignment() == []


def test_assign_again_starts_again(consumer, topic):
    take(consumer, 10)
    consumer.assign([TopicPartition(topic, 0, 100)])
    assert take(consumer, 1)[0].offset() == 100
    consumer.assign([TopicPartition(topic, 1, 200)])
    found = take(consumer, 20)
    assert {m.partition() for m in found} == {1}
    assert offsets(found) == list(range(200, 220))


def test_incremental_assignment(embedded, topic):
    with reader(embedded, topic, offset=10) as consumer:
        take(consumer, 5)
        consumer.incremental_assign([TopicPartition(topic, 1, 20)])
        found = take(consumer, RECORDS - 15 + RECORDS - 20)
        assert offsets(m for m in found if m.partition() == 0) == list(range(15, RECORDS))
        assert offsets(m for m in found if m.partition() == 1) == list(range(20, RECORDS))
        consumer.incremental_unassign([TopicPartition(topic, 0)])
        assert consumer.assignment() == [TopicPartition(topic, 1)]
        with pytest.raises(KafkaException) as caught:
            consumer.incremental_assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        assert caught.value.args[0].code() == KafkaError._CONFLICT
        assert consumer.assignment() == [TopicPartition(topic, 1)]


@pytest.mark.parametrize("offset, first", [
    (OFFSET_BEGINNING, 0), (17, 17), (kconsumer.offset_tail(3), RECORDS - 3), (OFFSET_INVALID, 0),
    (kconsumer.OFFSET_STORED, 0), (kconsumer.offset_tail(10 * RECORDS), 0),
])
def test_offsets_to_start_at(embedded, topic, offset, first):
    with reader(embedded, topic, offset=offset) as consumer:
        assert take(consumer, 1)[0].offset() == first


def test_the_end_is_after_the_last_record(embedded, topic_name):
    name = topic_name()
    embedded.create_topic(name)
    embedded.produce(name, [b"old"])
    with reader(embedded, name, offset=OFFSET_END, enable_partition_eof=True) as consumer:
        assert take_error(consumer).offset() == 1
        embedded.produce(name, [b"new"])
        assert take(consumer, 1)[0].value() == b"new"


def test_a_time_to_start_at(embedded, topic):
    with reader(embedded, topic, offset=OFFSET_INVALID, auto_offset_reset="by_duration:PT1S") as consumer:
        assert consumer.poll(0.5) is None  # every record is older


# ---- positions


def test_seek_drops_buffered_records(consumer, topic):
    take(consumer, 3)
    for offset in (200, 3, 299, 0):
        consumer.seek(TopicPartition(topic, 0, offset))
        assert consumer.position([TopicPartition(topic, 0)])[0].offset == OFFSET_INVALID
        assert take(consumer, 1)[0].offset() == offset
    consumer.seek(TopicPartition(topic, 0, 250))
    assert take_batches(consumer, 1, max_records=5)[0].offset() == 250
    consumer.seek(TopicPartition(topic, 0, 100))
    assert offsets(consumer.consume(5, PATIENCE)) == list(range(100, 105))


def test_assign_then_seek_at_once(embedded, topic):
    with reader(embedded, topic) as consumer:
        consumer.seek(TopicPartition(topic, 0, 123))
        assert take(consumer, 1)[0].offset() == 123


def test_many_seeks_end_at_the_last(consumer, topic):
    for i in range(500):
        consumer.seek(TopicPartition(topic, 0, i % RECORDS))
    consumer.seek(TopicPartition(topic, 0, 42))
    assert offsets(take(consumer, 5)) == [42, 43, 44, 45, 46]


def test_seek_to_beginning_and_end(embedded, topic):
    with reader(embedded, topic, partitions=(0, 1), offset=50, enable_partition_eof=True) as consumer:
        consumer.seek_to_end([TopicPartition(topic, 1)])
        ends, seen = {}, []
        while len(ends) < 2:
            message = consumer.poll(PATIENCE)
            if message.error() is None:
                seen.append((message.partition(), message.offset()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ends[message.partition()] = message.offset()
        assert ends == {0: RECORDS, 1: RECORDS}
        assert seen == [(0, o) for o in range(50, RECORDS)]
        consumer.seek_to_beginning()
        firsts = {}
        while len(firsts) < 2:
            message = consumer.poll(PATIENCE)
            firsts.setdefault(message.partition(), message.offset())
        assert firsts == {0: 0, 1: 0}


def test_seek_of_an_unassigned_partition_raises(consumer, topic):
    with pytest.raises(KafkaException):
        consumer.seek(TopicPartition(topic, 1, 0))
    with pytest.raises(KafkaException):
        consumer.seek_to_end([TopicPartition("another", 0)])


def test_position_is_after_the_last_returned_record(consumer, topic):
    where = TopicPartition(topic, 0)
    assert consumer.position([where])[0].offset == OFFSET_INVALID
    take(consumer, 3)
    assert consumer.position([where])[0].offset == 3
    consumer.consume(10, PATIENCE)
    assert consumer.position([where])[0].offset == 13
    batch = consumer.consume_batch(max_records=7, timeout=PATIENCE)
    assert consumer.position([where])[0].offset == 13 + len(batch)
    assert consumer.position([where])[0].leader_epoch == 0
    unknown = consumer.position([TopicPartition(topic, 1)])[0]
    assert unknown.offset == OFFSET_INVALID
    assert unknown.error is None


def test_resume_returns_buffered_records_in_order(embedded, topic):
    with reader(embedded, topic, partitions=(0, 1)) as consumer:
        found = take(consumer, 2)
        until(lambda: consumer.metrics()["fetched_records_total"] == 2 * RECORDS)
        consumer.pause([TopicPartition(topic, 0)])
        ones = take(consumer, RECORDS - sum(m.partition() == 1 for m in found))
        assert {m.partition() for m in ones} == {1}
        assert consumer.poll(0.1) is None
        consumer.resume([TopicPartition(topic, 0)])
        zeros = take(consumer, RECORDS - sum(m.partition() == 0 for m in found))
        assert {m.partition() for m in zeros} == {0}
        both = found + ones + zeros
        for p in (0, 1):
            assert offsets(m for m in both if m.partition() == p) == list(range(RECORDS))
        assert consumer.metrics()["fetched_records_total"] == 2 * RECORDS  # nothing was fetched twice


def test_pause_in_the_middle_of_every_kind_of_call(consumer, topic):
    found = take(consumer, 5)
    here = [TopicPartition(topic, 0)]
    consumer.pause(here)
    consumer.pause(here)
    assert consumer.poll(0.05) is None
    assert consumer.consume(5, 0.05) == []
    assert len(consumer.consume_batch(timeout=0.05)) == 0
    consumer.resume(here)
    found += consumer.consume(5, PATIENCE)
    consumer.pause(here)
    assert consumer.consume(5, 0.05) == []
    consumer.resume(here)
    found += consumer.consume_batch(max_records=5, timeout=PATIENCE)
    consumer.pause(here)
    assert len(consumer.consume_batch(timeout=0.05)) == 0
    consumer.resume(here)
    found += take(consumer, RECORDS - len(found))
    assert offsets(found) == list(range(RECORDS))


def test_a_seek_while_paused_counts(consumer, topic):
    take(consumer, 5)
    consumer.pause([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0, 70))
    assert consumer.poll(0.1) is None
    consumer.resume([TopicPartition(topic, 0)])
    assert take(consumer, 1)[0].offset() == 70


def test_a_pause_ends_with_the_assignment(consumer, topic):
    consumer.pause([TopicPartition(topic, 0)])
    consumer.assign([TopicPartition(topic, 0, 9)])
    assert take(consumer, 1)[0].offset() == 9


def test_pause_before_anything_was_fetched(embedded, topic):
    with reader(embedded, topic) as consumer:
        consumer.pause(consumer.assignment())
        assert consumer.poll(0.2) is None
        consumer.resume(consumer.assignment())
        assert offsets(take(consumer, 3)) == [0, 1, 2]


def test_lag(embedded, topic):
    with reader(embedded, topic, offset=100) as consumer:
        # Not known before the first fetch, whose moment is not ours.
        assert consumer.lag()[topic, 0] in (None, RECORDS - 100)
        until(lambda: consumer.metrics()["fetched_records_total"])
        assert consumer.lag() == {(topic, 0): RECORDS - 100}  # fetched is not returned
        take(consumer, 1)
        assert consumer.lag() == {(topic, 0): RECORDS - 101}
        take(consumer, RECORDS - 101)
        assert consumer.lag([TopicPartition(topic, 0)]) == {(topic, 0): 0}
        assert consumer.lag([TopicPartition(topic, 1)]) == {(topic, 1): None}


# ---- questions


def test_watermarks_asked_and_cached(embedded, topic):
    with Consumer(settings(embedded)) as consumer:
        where = TopicPartition(topic, 1)
        assert consumer.get_watermark_offsets(where, cached=True) == (OFFSET_INVALID, OFFSET_INVALID)
        assert consumer.get_watermark_offsets(where, PATIENCE) == (0, RECORDS)
        consumer.assign([TopicPartition(topic, 1, 0)])
        take(consumer, 1)
        assert consumer.get_watermark_offsets(where, cached=True) == (0, RECORDS)


@pytest.mark.parametrize(("ask", "what"), [
    (lambda consumer, where: consumer.get_watermark_offsets(where, PATIENCE), "cannot fetch the watermarks"),
    (lambda consumer, where: consumer.offsets_for_times([where], PATIENCE), "cannot look up its offset")])
def test_an_unknown_topic_or_partition_is_the_reason(consumer, topic, ask, what):
    unknown = "Topic or partition is unknown to the broker: check the name, or create the topic"
    absent = "Partition does not exist in the cluster (Local: Unknown partition)"
    for name, partition, reason in (("no-such", 0, unknown), (topic, 99, absent)):
        with pytest.raises(KafkaException) as raised:
            ask(consumer, TopicPartition(name, partition, 0))
        assert raised.value.args[0].str() == f"{name} [{partition}]: {what}: {reason}"
        assert raised.value.args[0].code() == KafkaError._UNKNOWN_PARTITION


def test_watermarks_within_their_time(embedded, topic):
    with EmbeddedCluster(1) as silent:
        silent.create_topic("t")
        silent.set_rtt(60_000)
        with Consumer(settings(silent)) as consumer:
            began = time.monotonic()
            with pytest.raises(kconsumer.TimeoutError):
                consumer.get_watermark_offsets(TopicPartition("t", 0), 0.3)
            assert time.monotonic() - began < PATIENCE


def test_offsets_for_times(embedded, topic):
    with Consumer(settings(embedded)) as consumer:
        # The embedded cluster looks no time up: it knows the special ones only, and has no record for the others.
        asked = [TopicPartition(topic, 0, OFFSET_BEGINNING), TopicPartition(topic, 1, OFFSET_END),
                 TopicPartition(topic, 0, START), TopicPartition(topic, 99, OFFSET_END)]
        found = consumer.offsets_for_times(asked, 2)
        assert [(p.topic, p.partition, p.offset) for p in found[:3]] == [
            (topic, 0, 0), (topic, 1, RECORDS), (topic, 0, OFFSET_END)]
        assert [p.error and p.error.code() for p in found] == [None, None, None, KafkaError._UNKNOWN_PARTITION]
        with pytest.raises(KafkaException) as raised:
            consumer.offsets_for_times([], PATIENCE)
        assert raised.value.args[0].code() == KafkaError._INVALID_ARG


def test_list_topics(embedded, topic):
    with Consumer(settings(embedded)) as consumer:
        everything = consumer.list_topics(timeout=PATIENCE)
        assert set(everything.brokers) == {1, 2, 3}
        assert topic in everything.topics
        one = consumer.list_topics(topic, PATIENCE)
        assert set(one.topics) == {topic}
        found = one.topics[topic]
        assert found.error is None
        assert set(found.partitions) == {0, 1}
        assert found.partitions[0].leader in {1, 2, 3}
        assert set(found.partitions[0].replicas) == {1, 2, 3}
        assert consumer.cluster_id(PATIENCE) == everything.cluster_id


def test_calls_end_at_their_deadline(unused_port, topic):
    with Consumer({"bootstrap.servers": f"127.0.0.1:{unused_port}"}) as consumer:
        for ask in (lambda: consumer.list_topics(timeout=0.3), lambda: consumer.cluster_id(timeout=0.3),
                    lambda: consumer.offsets_for_times([TopicPartition(topic, 0, 0)], timeout=0.3)):
            began = time.monotonic()
            with pytest.raises(kconsumer.TimeoutError) as caught:
                ask()
            assert caught.value.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
            assert 0.2 < time.monotonic() - began < PATIENCE


def test_calls_from_several_threads(consumer, topic):
    failures = []

    def ask():
        try:
            for _ in range(10):
                assert consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE) == (0, RECORDS)
                assert topic in consumer.list_topics(timeout=PATIENCE).topics
                consumer.position(consumer.assignment())
                consumer.lag()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert offsets(take(consumer, RECORDS)) == list(range(RECORDS))
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []


# ---- the end of a partition, errors of partitions


def test_the_end_of_a_partition_is_reported_each_time_it_is_reached(embedded, topic_name):
    name = topic_name()
    embedded.create_topic(name)
    embedded.produce(name, [b"a", b"b"])
    with reader(embedded, name, enable_partition_eof=True) as consumer:
        take(consumer, 2)
        end = take_error(consumer)
        assert end.error().code() == KafkaError._PARTITION_EOF
        assert (end.topic(), end.partition(), end.offset()) == (name, 0, 2)
        assert consumer.poll(0.3) is None  # once only
        embedded.produce(name, [b"c"])
        assert take(consumer, 1)[0].offset() == 2
        assert take_error(consumer).offset() == 3
        consumer.seek(TopicPartition(name, 0, 1))
        assert offsets(take(consumer, 2)) == [1, 2]
        assert take_error(consumer).offset() == 3
        ends = consumer.consume(1, 0.1)
        assert ends == []
        consumer.seek(TopicPartition(name, 0, 2))
        both = consumer.consume(2, PATIENCE)
        assert both[0].value() == b"c"
        assert both[1].error().code() == KafkaError._PARTITION_EOF


def test_the_end_of_an_empty_partition(embedded, topic_name):
    name = topic_name()
    embedded.create_topic(name)
    with reader(embedded, name, enable_partition_eof=True) as consumer:
        assert take_error(consumer).offset() == 0


def test_out_of_range_follows_the_policy(embedded, topic):
    for policy, first in (("earliest", 0), ("latest", None)):
        with reader(embedded, topic, offset=10_000, auto_offset_reset=policy) as consumer:
            if first is None:
                assert consumer.poll(0.5) is None
            else:
                assert take(consumer, 1)[0].offset() == first


def test_out_of_range_without_a_policy_is_an_error(embedded, topic):
    with reader(embedded, topic, offset=10_000, auto_offset_reset="error") as consumer:
        message = take_error(consumer)
        assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
        assert (message.topic(), message.partition()) == (topic, 0)
        assert "10000" in message.error().str()
        consumer.seek(TopicPartition(topic, 0, 7))
        assert take(consumer, 1)[0].offset() == 7


def test_no_offset_without_a_policy_is_an_error(embedded, topic):
    with reader(embedded, topic, offset=OFFSET_INVALID, auto_offset_reset="error") as consumer:
        assert take_error(consumer).error().code() in (KafkaError._NO_OFFSET, KafkaError._AUTO_OFFSET_RESET)


def test_an_unknown_partition_is_reported_once_and_the_others_are_read(embedded, topic):
    with reader(embedded, topic, partitions=(0, 7)) as consumer:
        seen, errors = [], []
        while len(seen) < RECORDS or not errors:
            message = consumer.poll(PATIENCE)
            (seen if message.error() is None else errors).append(message)
        assert offsets(seen) == list(range(RECORDS))
        assert consumer.poll(0.5) is None
        assert [(m.partition(), m.error().code()) for m in errors] == [(7, KafkaError.UNKNOWN_TOPIC_OR_PART)] or [
            (m.partition(), m.error().code()) for m in errors] == [(7, KafkaError._UNKNOWN_PARTITION)]
        consumer.assign([TopicPartition(topic, 7, 0)])
        with pytest.raises(kconsumer.UnknownTopicOrPartitionError):
            consumer.consume_batch(timeout=PATIENCE)


def test_a_partition_error_of_the_broker_is_reported_and_overcome(topic_name):
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", [b"a", b"b"])
        cluster.push_partition_errors("t", 0, FETCH, [KafkaError.TOPIC_AUTHORIZATION_FAILED])
        with reader(cluster, "t") as consumer:
            message = take_error(consumer)
            assert message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
            assert offsets(take(consumer, 2)) == [0, 1]


@pytest.mark.parametrize("code", [
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN,
])
def test_temporary_partition_errors_are_not_reported(code):
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", [b"a", b"b"])
        cluster.push_partition_errors("t", 0, FETCH, [code] * 3)
        with reader(cluster, "t", fetch_wait_max_ms=20) as consumer:
            assert offsets(take(consumer, 2)) == [0, 1]


# ---- wakeup and close


def test_wakeup_ends_a_wait_from_another_thread(consumer):
    take(consumer, RECORDS)
    for call in (consumer.poll, lambda: consumer.consume(5), consumer.consume_batch,
                 lambda: next(consumer)):
        timer = threading.Timer(0.1, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            call()
        timer.join()


def test_wakeup_is_sticky_and_raises_once(consumer):
    take(consumer, 1)
    consumer.wakeup()
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(0)  # before records at hand
    assert offsets(take(consumer, 2)) == [1, 2]
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.consume(10, 1)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.consume_batch(timeout=1)
    assert offsets(take(consumer, 2)) == [3, 4]


def test_records_of_a_consume_that_was_woken_come_again(consumer, topic):
    take(consumer, 5)
    until(lambda: consumer.metrics()["fetched_records_total"] == RECORDS)
    timer = threading.Timer(0.2, consumer.wakeup)
    timer.start()
    with pytest.raises(WakeupError):
        consumer.consume(RECORDS, PATIENCE)  # takes all there are, and waits for five more
    assert consumer.position([TopicPartition(topic, 0)])[0].offset == 5
    assert offsets(take(consumer, RECORDS - 5)) == list(range(5, RECORDS))


def test_close_is_idempotent_and_ends_everything_else(embedded, topic):
    consumer = reader(embedded, topic)
    take(consumer, 3)
    consumer.close()
    consumer.close()
    where = [TopicPartition(topic, 0)]
    for call in (
        lambda: consumer.poll(0), lambda: consumer.consume(1, 0), lambda: consumer.consume_batch(timeout=0),
        lambda: next(consumer), lambda: consumer.assign(where), consumer.unassign,
        lambda: consumer.incremental_assign(where), lambda: consumer.incremental_unassign(where),
        consumer.assignment, lambda: consumer.seek(TopicPartition(topic, 0, 0)),
        consumer.seek_to_beginning, consumer.seek_to_end, lambda: consumer.position(where),
        lambda: consumer.pause(where), lambda: consumer.resume(where), consumer.lag,
        lambda: consumer.get_watermark_offsets(where[0]), lambda: consumer.offsets_for_times(where),
        lambda: consumer.get_watermark_offsets(where[0], cached=True),
        consumer.list_topics, consumer.cluster_id, consumer.wakeup,
        lambda: consumer.set_config({"fetch.min.bytes": 1}), consumer.metrics,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_a_closed_consumer_leaves_its_records_readable(embedded, topic):
    consumer = reader(embedded, topic)
    batch = consumer.consume_batch(timeout=PATIENCE)
    message = batch[0]
    consumer.close()
    assert [m.value() for m in batch][:2] == [b"v0", b"v1"]
    assert message.value() == b"v0"
    del consumer
    assert batch[1].key() == b"k1"


def test_close_returns_within_its_timeout_without_answers(unused_port):
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t")
        consumer = reader(cluster, "t")
        consumer.poll(0.2)
        cluster.set_rtt(60_000)
        began = time.monotonic()
        consumer.close(1.0)
        assert time.monotonic() - began < 2
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{unused_port},no-such-host.invalid:1"})
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 6


def test_close_fails_the_questions_of_other_threads():
    with EmbeddedCluster(1) as cluster:
        cluster.set_rtt(60_000)
        consumer = Consumer(settings(cluster))
        raised = []

        def ask():
            try:
                consumer.list_topics(timeout=30)
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: consumer.metrics()["application_events_total"] == 1)
        consumer.close(1)
        thread.join(5)
        assert not thread.is_alive()
        assert isinstance(raised[0], (KafkaException, RuntimeError))


def test_with_closes_even_after_an_exception(embedded, topic):
    with pytest.raises(ZeroDivisionError), reader(embedded, topic) as consumer:
        take(consumer, 1)
        raise ZeroDivisionError
    with pytest.raises(RuntimeError):
        consumer.poll(0)


def test_an_unclosed_consumer_is_collected_with_its_thread(embedded, topic):
    import gc
    import os

    def threads():
        return len(os.listdir("/proc/self/task"))

    before = threads()
    for _ in range(5):
        consumer = reader(embedded, topic)
        take(consumer, 1)
        consumer.itself = consumer  # a cycle
        del consumer
    gc.collect()
    until(lambda: threads() <= before)


# ---- callbacks


def test_stats_cb_gets_json_with_librdkafkas_names(embedded, topic):
    documents = []
    with reader(embedded, topic, statistics_interval_ms=50, stats_cb=documents.append) as consumer:
        take(consumer, 10)
        poll_until(consumer, lambda: len(documents) > 2)
    found = json.loads(documents[-1])
    assert {"name", "client_id", "type", "ts", "time", "age", "replyq", "brokers", "topics", "tx", "tx_bytes", "rx",
            "rx_bytes", "rxmsgs", "rxmsg_bytes"} <= set(found)
    assert found["type"] == "consumer"
    broker = next(iter(found["brokers"].values()))
    assert {"name", "nodeid", "nodename", "source", "state", "waitresp_cnt", "tx", "txbytes", "txerrs", "req_timeouts",
            "rx", "rxbytes", "rxerrs", "connects", "disconnects", "rtt", "throttle"} <= set(broker)
    assert {"avg", "sum", "cnt"} <= set(broker["rtt"])
    partition = found["topics"][topic]["partitions"]["0"]
    assert {"partition", "broker", "leader", "fetch_state", "next_offset", "app_offset", "lo_offset", "hi_offset",
            "ls_offset", "consumer_lag", "leader_epoch"} <= set(partition)
    assert (partition["lo_offset"], partition["hi_offset"]) == (0, RECORDS)


def test_callbacks_run_even_if_the_records_never_end(embedded, topic):
    documents = []
    with reader(embedded, topic, statistics_interval_ms=20, stats_cb=documents.append) as consumer:
        deadline = time.monotonic() + PATIENCE
        while len(documents) < 3 and time.monotonic() < deadline:
            message = consumer.poll(PATIENCE)
            if message.offset() == RECORDS - 1:
                consumer.seek(TopicPartition(topic, 0, 0))
        assert len(documents) >= 3


def test_error_cb_reports_unreachable_brokers(unused_port):
    errors = []
    with Consumer({"bootstrap.servers": f"127.0.0.1:{unused_port}", "error_cb": errors.append}) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        poll_until(consumer, lambda: KafkaError._ALL_BROKERS_DOWN in [e.code() for e in errors])
        assert all(isinstance(e, KafkaError) and not e.fatal() for e in errors)


def test_the_logger_gets_lines_and_errors_without_callbacks(unused_port, caplog):
    logger = logging.getLogger("test-api")
    with caplog.at_level(logging.DEBUG, "test-api"), Consumer({
        "bootstrap.servers": f"127.0.0.1:{unused_port}", "logger": logger, "debug": "broker,metadata",
    }) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        poll_until(consumer, lambda: any("CONNECT" in r.getMessage() for r in caplog.records))
        assert {r.name for r in caplog.records} == {"test-api"}


def test_throttle_cb_is_called(embedded):
    # The embedded cluster never throttles: what the core hands over is given in its place.
    events = []
    with Consumer(settings(embedded, throttle_cb=events.append)) as consumer:
        consumer._on_throttle("127.0.0.1:9", 3, 250)
    assert [(e.broker_name, e.broker_id, e.throttle_time) for e in events] == [("127.0.0.1:9", 3, 0.25)]


def test_a_call_raises_the_exception_of_its_callback(embedded, topic):
    class Mine(Exception):
        pass

    def fail(_):
        raise Mine

    with reader(embedded, topic, statistics_interval_ms=50, stats_cb=fail) as consumer:
        until(lambda: consumer.metrics()["fetched_records_total"] == RECORDS)
        with pytest.raises(Mine):
            while consumer.poll(PATIENCE):
                consumer.seek(TopicPartition(topic, 0, 0))
        consumer.seek(TopicPartition(topic, 0, 0))
        with pytest.raises(Mine):
            consumer.consume(RECORDS + 1, PATIENCE)
        assert consumer.position([TopicPartition(topic, 0)])[0].offset == OFFSET_INVALID
        with pytest.raises(Mine):
            while True:
                consumer.list_topics(timeout=PATIENCE)
        found = []
        while len(found) < RECORDS:
            try:
                found.append(consumer.poll(PATIENCE))
            except Mine:
                continue
        assert offsets(found) == list(range(RECORDS))


# ---- settings of a running consumer


def test_set_config_while_running(consumer):
    take(consumer, 1)
    consumer.set_config({"fetch.min.bytes": 2, "fetch.wait.max.ms": 10, "fetch.max.bytes": 100_000,
                         "max.partition.fetch.bytes": 50_000, "fetch.buffer.memory": 1_000_000})
    assert offsets(take(consumer, 20)) == list(range(1, 21))
    for wrong in ({"bootstrap.servers": "x:1"}, {"fetch.min.bytes": -1}, {"fetch.min.bytes": "many"}, {"no.such": 1}):
        with pytest.raises(ConfigurationError):
            consumer.set_config(wrong)
    assert offsets(take(consumer, 5)) == list(range(21, 26))


def test_a_tiny_buffer_still_gets_everything(embedded, topic):
    with reader(embedded, topic, partitions=(0, 1), fetch_buffer_memory=1024 * 1024, max_partition_fetch_bytes=512,
                fetch_max_bytes=1024) as consumer:
        found = take(consumer, 2 * RECORDS)
        for p in (0, 1):
            assert offsets(m for m in found if m.partition() == p) == list(range(RECORDS))
