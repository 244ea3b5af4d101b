"""Assignments, iteration and messages of an application that asks for what cannot be, or extends the classes."""

import threading

import pytest
from api_helpers import PATIENCE, offsets, reader, settings, take

import kconsumer
from kconsumer import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

RECORDS = 50


@pytest.fixture(scope="module")
def topic(embedded):
    """Two partitions of RECORDS records."""
    name = "edges"
    embedded.create_topic(name, partitions=2)
    embedded.produce(name, [{"value": b"%d" % n, "key": b"k", "partition": p} for p in (0, 1) for n in range(RECORDS)])
    return name


def test_a_topic_that_cannot_be_encoded_changes_nothing(embedded, topic):
    with reader(embedded, topic, offset=10) as consumer:
        take(consumer, 5)
        for assign in (consumer.assign, consumer.incremental_assign):
            with pytest.raises(UnicodeEncodeError):
                assign([TopicPartition(topic, 1, 20), TopicPartition("\ud800", 0)])
            assert consumer.assignment() == [TopicPartition(topic, 0)]
        assert offsets(take(consumer, 5)) == list(range(15, 20))


def test_a_negative_offset_to_seek(embedded, topic):
    with reader(embedded, topic, offset=10) as consumer:
        with pytest.raises(KafkaException) as caught:
            consumer.seek(TopicPartition(topic, 0, -7))
        assert caught.value.args[0].code() == KafkaError._INVALID_ARG
        assert offsets(take(consumer, 1)) == [10]


def test_a_message_that_is_initialised_again(embedded, topic):
    with reader(embedded, topic) as consumer:
        for timestamp in [("x", 1), (1, 2**70)]:
            message = take(consumer, 1)[0]
            value = message.value()[:]
            message = take(consumer, 1)[0]  # its value has not been read
            with pytest.raises((TypeError, OverflowError)):
                message.__init__("other", timestamp=timestamp)
            assert message.value() != value and message.topic() == topic
            message.__init__("other", value=b"mine")
            assert (message.topic(), message.value(), message.key()) == ("other", b"mine", None)


class Impatient(kconsumer.Consumer):
    """A subclass with another default."""

    def poll(self, timeout=0.05):
        return super().poll(timeout)


class Counting(kconsumer.Consumer):
    """A subclass with other messages."""

    def poll(self, timeout=-1):
        message = super().poll(timeout)
        return message and (message.partition(), message.offset())


def test_iteration_over_a_subclass_with_its_own_poll(embedded, topic_name):
    name = topic_name()
    embedded.create_topic(name)
    consumer = Impatient(settings(embedded, group_id="impatient"))
    consumer.assign([TopicPartition(name, 0, 0)])
    writing = threading.Timer(0.5, embedded.produce, (name, [b"late"]))
    writing.start()
    assert next(consumer).value() == b"late"  # after a few polls without a record
    writing.join()
    consumer.close()
    with Counting(settings(embedded, group_id="counting")) as consumer:
        consumer.assign([TopicPartition(name, 0, 0)])
        assert next(consumer) == (0, 0)


def test_a_partition_that_stays_is_not_committed(embedded, topic):
    """Its record is in hand while another partition goes."""
    where = [TopicPartition(topic, p, 0) for p in (0, 1)]
    with reader(embedded, topic, group_id="stays", enable_auto_commit=True, auto_commit_interval_ms=60_000) as consumer:
        consumer.assign(where)
        message = take(consumer, 1)[0]
        other = 1 - message.partition()
        consumer.incremental_unassign([TopicPartition(topic, other)])
        with kconsumer.Consumer(settings(embedded, group_id="stays")) as asking:
            (found,) = asking.committed([TopicPartition(topic, message.partition())], PATIENCE)
        assert found.offset == OFFSET_INVALID
        consumer.incremental_unassign([TopicPartition(topic, message.partition())])
        assert consumer.committed([TopicPartition(topic, message.partition())], PATIENCE)[0].offset == 1
