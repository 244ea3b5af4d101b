"""`debug` contexts, and exceptions of callbacks, as confluent_kafka's users know them."""

import logging
import time

import pytest
from api_helpers import PATIENCE, settings, take

from kconsumer import Consumer, KafkaError, KafkaException, TopicPartition


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@pytest.fixture
def lines():
    handler = Lines()
    logger = logging.getLogger("test_debug_and_callbacks")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    yield logger, handler
    logger.removeHandler(handler)


@pytest.fixture(scope="module")
def topic(embedded):
    embedded.create_topic("debugged", partitions=1)
    embedded.produce("debugged", ({"value": b"v", "partition": 0} for _ in range(5)))
    return "debugged"


def facilities(handler):
    return [text.split(" ")[0] for text in handler.texts]


def test_the_first_poll_has_init_as_its_first_line(lines):
    logger, handler = lines
    with Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "logger": logger, "debug": "msg"}) as consumer:
        consumer.poll(0)
        assert facilities(handler)[0] == "INIT"


def test_without_debug_nothing_of_the_kind_is_logged(embedded, topic, lines):
    logger, handler = lines
    with Consumer(settings(embedded, group_id="quiet", logger=logger)) as consumer:
        consumer.subscribe([topic])
        take(consumer, 5)
    assert handler.texts == []


EXPECTED = {
    "generic": {"CONNECT", "CLUSTERID"},
    "broker": {"CONNECT", "CONNECTED"},
    "metadata": {"METADATA", "TOPIC", "CLUSTERID"},
    "topic": {"TOPIC", "OFFSET"},
    "protocol": {"SEND", "RECV"},
    "feature": {"APIVERSION"},
    "cgrp": {"SUBSCRIBE", "CGRPSTATE", "COORDINATOR", "JOINED", "REBALANCE", "ASSIGN", "COMMIT", "OFFSET"},
    "consumer": {"SUBSCRIBE", "CGRPSTATE", "REBALANCE", "OFFSET", "COMMIT"},
    "assignor": {"ASSIGN"},
    "fetch": {"OFFSET"},
    "conf": {"CONF"},
}


@pytest.mark.parametrize("context", EXPECTED)
def test_a_debug_context_logs_its_facilities(embedded, topic, lines, context):
    logger, handler = lines
    with Consumer(settings(embedded, group_id=f"debug.{context}", logger=logger, debug=context)) as consumer:
        consumer.subscribe([topic])
        take(consumer, 5)
        consumer.commit(asynchronous=False)
    found = facilities(handler)
    assert found[0] == "INIT"
    assert EXPECTED[context] <= set(found)
    others = set().union(*EXPECTED.values()) - EXPECTED[context]
    assert found.count("INIT") == 1
    if context in ("assignor", "conf"):
        assert not others & set(found)


def test_the_configuration_is_logged_without_secrets(lines):
    logger, handler = lines
    with Consumer({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
                   "sasl.username": "u", "sasl.password": "hunter2", "logger": logger, "debug": "conf"}) as consumer:
        consumer.poll(0)
        assert any("sasl.password = (hidden)" in text for text in handler.texts)
        assert not any("hunter2" in text for text in handler.texts)


class Boom(Exception):
    """The exception that a callback raises."""


def boom(*_):
    raise Boom("from a callback")


def leaves(call):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            call()
        except Boom:
            return True
    return False


CALLS = {"poll": lambda c: c.poll(0.1), "consume": lambda c: c.consume(1, 0.1),
         "consume_batch": lambda c: c.consume_batch(timeout=0.1)}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["error_cb", "stats_cb"])
def test_exceptions_leave_the_call_and_the_consumer_can_be_closed(unused_port, call, name, lines):
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{unused_port}", "group.id": "g", "logger": lines[0],
                         "statistics.interval.ms": 50 if name == "stats_cb" else 0, name: boom})
    consumer.subscribe(["t"])
    assert leaves(lambda: CALLS[call](consumer))
    consumer.close()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


@pytest.mark.parametrize("name", ["on_assign", "on_revoke", "on_commit"])
def test_exceptions_of_the_groups_callbacks_leave_and_the_consumer_is_closed(embedded, topic, name):
    own = {} if name == "on_commit" else {name: boom}
    more = {"on_commit": boom} if name == "on_commit" else {}
    consumer = Consumer({**settings(embedded, group_id=f"raising.{name}"), **more})
    consumer.subscribe([topic], **own)
    if name == "on_assign":
        assert leaves(lambda: consumer.poll(0.1))
        consumer.close()
    elif name == "on_commit":
        take(consumer, 5)
        consumer.commit()
        assert leaves(lambda: consumer.poll(0.1))
        consumer.close()
    else:
        take(consumer, 5)
        with pytest.raises(Boom):
            consumer.close()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


def test_metadata_of_commits(embedded, topic):
    with Consumer(settings(embedded, group_id="metadata")) as consumer:
        for metadata in (None, "", "hello", "नमस्ते"):
            consumer.commit(offsets=[TopicPartition(topic, 0, 1, metadata)], asynchronous=False)
            assert consumer.committed([TopicPartition(topic, 0)], PATIENCE)[0].metadata == metadata
        with pytest.raises(ValueError, match="embedded null character"):
            TopicPartition(topic, 0, 1, "xyz\0abc")


def test_metadata_that_confluent_kafka_wrote(embedded, topic):
    import confluent_kafka

    theirs = confluent_kafka.Consumer({"bootstrap.servers": embedded.bootstrap_servers, "group.id": "theirs"})
    with Consumer(settings(embedded, group_id="theirs")) as consumer:
        for metadata in ("", "hello"):
            theirs.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 1, metadata)], asynchronous=False)
            assert consumer.committed([TopicPartition(topic, 0)], PATIENCE)[0].metadata == metadata
    theirs.close()


def test_codes_of_kafka_exceptions_leave_too(unused_port):
    def raising(error):
        raise KafkaException(error)

    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{unused_port}", "error_cb": raising})
    consumer.assign([TopicPartition("t", 0)])
    with pytest.raises(KafkaException) as raised:
        consumer.poll(PATIENCE)
    assert raised.value.args[0].code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
    consumer.close()
