"""A consumer that knows no broker, and one whose subclass did not call __init__, as in confluent_kafka's own tests."""

import logging
import time

import pytest

import kconsumer
from kconsumer import (
    OFFSET_INVALID,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    DeserializingConsumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from tests.core import inside

WHERE = TopicPartition("t", 0)


def code_of(call):
    with pytest.raises(KafkaException) as raised:
        call()
    return raised.value.args[0].code()


@pytest.fixture
def consumer():
    with Consumer({"group.id": "g"}) as made:
        yield made


def test_one_warning_and_no_error(caplog):
    errors = []
    with Consumer({"group.id": "g", "error_cb": errors.append}) as consumer:
        consumer.subscribe(["t"])
        assert consumer.poll(0.3) is None
        assert consumer.consume(5, 0.05) == []
        assert len(consumer.consume_batch(timeout=0)) == 0
    assert errors == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "bootstrap.servers is not set: this consumer knows no broker and will receive no records"]


def test_questions_end_at_their_timeout(consumer):
    for ask in (lambda: consumer.get_watermark_offsets(WHERE, timeout=0.05),
                lambda: consumer.offsets_for_times([WHERE], timeout=0.05), lambda: consumer.list_topics(timeout=0.05),
                lambda: consumer.cluster_id(timeout=0.05), lambda: consumer.committed([WHERE], timeout=0.05)):
        assert code_of(ask) == KafkaError._TIMED_OUT


def test_calls_without_a_timeout_have_the_configured_one():
    with Consumer({"group.id": "g", "default.api.timeout.ms": 50}) as consumer:
        for ask in (lambda: consumer.get_watermark_offsets(WHERE), lambda: consumer.offsets_for_times([WHERE]),
                    consumer.list_topics, consumer.cluster_id, lambda: consumer.committed([WHERE]),
                    lambda: consumer.commit(offsets=[TopicPartition("t", 0, 5)], asynchronous=False)):
            assert code_of(ask) == KafkaError._TIMED_OUT
        began = time.monotonic()
        assert code_of(lambda: consumer.committed([WHERE], timeout=0.4)) == KafkaError._TIMED_OUT
        assert time.monotonic() - began >= 0.4


def test_positions_are_unknown_and_seeking_is_an_erroneous_state(consumer):
    consumer.assign([WHERE])
    with pytest.raises(KafkaException, match="Erroneous state") as raised:
        consumer.seek(TopicPartition("t", 0, 5))
    assert raised.value.args[0].code() == KafkaError._STATE
    assert consumer.position([WHERE])[0].offset == OFFSET_INVALID
    assert consumer.get_watermark_offsets(WHERE, cached=True) == (OFFSET_INVALID, OFFSET_INVALID)
    assert code_of(lambda: consumer.commit(asynchronous=False)) == KafkaError._NO_OFFSET


def test_iterables_are_taken_where_lists_are(consumer):
    consumer.assign(iter([WHERE]))
    consumer.incremental_unassign((WHERE,))
    consumer.incremental_assign({WHERE})
    for call in (consumer.pause, consumer.resume, consumer.position):
        call(place for place in [WHERE])
    consumer.commit(offsets=(TopicPartition("t", 0, 1),))
    assert consumer.assignment() == [WHERE]


def test_offset_stored_cannot_be_sought_to():
    with Consumer({"bootstrap.servers": "127.0.0.1:1"}) as consumer:
        consumer.assign([WHERE])
        stored = TopicPartition("t", 0, kconsumer.OFFSET_STORED)
        assert code_of(lambda: consumer.seek(stored)) == KafkaError._INVALID_ARG


def test_no_configuration_is_a_type_error():
    for make in (Consumer, lambda: Consumer(None), lambda: Consumer(5), lambda: Consumer([("group.id", "g")])):
        with pytest.raises(TypeError, match="expected configuration dict"):
            make()


def test_an_error_message_has_no_timestamp():
    with Consumer({"bootstrap.servers": "127.0.0.1:1", "sasl.username": "u", "sasl.password": "p",
                   "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}) as consumer:
        kconsumer._core.consumer.consumer.report_error(consumer, KafkaError(KafkaError._AUTHENTICATION))
        assert consumer.poll(0).timestamp() == (TIMESTAMP_NOT_AVAILABLE, -1)
    assert Message().timestamp() == (TIMESTAMP_NOT_AVAILABLE, 0)


EVERY_CALL = {
    "subscribe": lambda c: c.subscribe(["t"]), "unsubscribe": lambda c: c.unsubscribe(),
    "subscription": lambda c: c.subscription(), "poll": lambda c: c.poll(), "consume": lambda c: c.consume(),
    "consume_batch": lambda c: c.consume_batch(), "wakeup": lambda c: c.wakeup(), "iteration": lambda c: next(iter(c)),
    "assign": lambda c: c.assign([WHERE]), "unassign": lambda c: c.unassign(), "assignment": lambda c: c.assignment(),
    "incremental_assign": lambda c: c.incremental_assign([WHERE]),
    "incremental_unassign": lambda c: c.incremental_unassign([WHERE]), "pause": lambda c: c.pause([WHERE]),
    "resume": lambda c: c.resume([WHERE]), "paused": lambda c: c.paused(), "commit": lambda c: c.commit(),
    "committed": lambda c: c.committed([WHERE]), "position": lambda c: c.position([WHERE]),
    "seek": lambda c: c.seek(WHERE), "seek_to_beginning": lambda c: c.seek_to_beginning(),
    "watermarks": lambda c: c.get_watermark_offsets(WHERE),
    "cached watermarks": lambda c: c.get_watermark_offsets(WHERE, cached=True),
    "store_offsets": lambda c: c.store_offsets([WHERE]), "offsets_for_times": lambda c: c.offsets_for_times([WHERE]),
    "memberid": lambda c: c.memberid(), "rebalance_protocol": lambda c: c.rebalance_protocol(),
    "consumer_group_metadata": lambda c: c.consumer_group_metadata(), "lag": lambda c: c.lag(),
    "metrics": lambda c: c.metrics(), "set_config": lambda c: c.set_config({}),
    "set_sasl_credentials": lambda c: c.set_sasl_credentials("u", "p"),
}
OF_THE_CLUSTER = {"list_topics": lambda c: c.list_topics(), "cluster_id": lambda c: c.cluster_id()}


class WithoutInit(Consumer):
    def __init__(self, config):
        pass


class DeserializingWithoutInit(DeserializingConsumer):
    def __init__(self, config):
        pass


def closed_one(config):
    consumer = Consumer(config)
    consumer.close()
    return consumer


@pytest.mark.parametrize("make", [WithoutInit, closed_one])
@pytest.mark.parametrize("name", [*EVERY_CALL, *OF_THE_CLUSTER])
def test_every_call_after_close_raises_an_error(make, name):
    consumer = make({"group.id": "g"})
    text = "Handle has been closed" if name in OF_THE_CLUSTER else "Consumer closed"
    with pytest.raises(RuntimeError, match=text):
        {**EVERY_CALL, **OF_THE_CLUSTER}[name](consumer)


@pytest.mark.parametrize("make", [WithoutInit, DeserializingWithoutInit, closed_one])
def test_closing_it_is_allowed(make):
    consumer = make({})
    consumer.close()
    with consumer as entered:
        assert entered is consumer


def test_an_error_cb_that_raises_in_close_is_logged(caplog):
    def error_cb(error):
        raise ValueError(error.str())

    consumer = Consumer({"group.id": "g", "error_cb": error_cb})
    inside.add_error(consumer, KafkaError._TRANSPORT)
    consumer.close()
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage() == "error_cb raised an exception while the consumer was closing"
    assert isinstance(record.exc_info[1], ValueError)
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


def test_the_member_id_is_known_before_the_group_is_joined():
    with Consumer({"group.id": "g", "group.protocol": "consumer"}) as consumer:
        assert len(consumer.memberid()) == 22
        assert consumer.rebalance_protocol() == "NONE"
    with Consumer({"group.id": "g"}) as consumer:
        assert consumer.memberid() is None
        assert consumer.rebalance_protocol() == "NONE"


@pytest.mark.parametrize("topic", ["a\0", "x" * 32768], ids=["NUL", "long"])
def test_topics_that_the_protocol_cannot_carry(consumer, topic):
    for call in (lambda: consumer.subscribe(["good", topic]), lambda: consumer.list_topics(topic, 0)):
        with pytest.raises(ValueError, match="topic: "):
            call()
    assert consumer.subscription() == []
