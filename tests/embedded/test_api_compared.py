"""The same calls on confluent_kafka.Consumer and on kconsumer.Consumer, on the same cluster: types, codes and values.

What differs on purpose is not compared here: docs/migrating.md lists it.
"""

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest
from api_helpers import PATIENCE

import kconsumer

RECORDS = 50
START = 1_700_000_000_000
BOTH = (confluent_kafka, kconsumer)


@pytest.fixture(scope="module")
def topic(embedded):
    fill_topic(embedded, "compared")
    return "compared"


def fill_topic(cluster, name):
    cluster.create_topic(name, partitions=3)
    cluster.produce(name, (
        {"key": None if i % 3 == 0 else b"k%d" % i, "value": None if i % 5 == 0 else b"" if i % 5 == 1 else b"v%d" % i,
         "headers": [("a", b"1"), ("a", None), ("ü", b"")] if i % 2 else None, "timestamp": START + i, "partition": p}
        for p in (0, 1) for i in range(RECORDS)
    ))


def plain(value, offsets_too=True):
    """A value in a form that both libraries share: its properties that a caller can observe."""
    kind = type(value).__name__
    if kind == "TopicPartition":
        return (kind, value.topic, value.partition, value.offset, plain(value.error), value.metadata)
    if kind == "KafkaError":
        return (kind, value.code(), value.name(), value.retriable(), value.fatal(), value.txn_requires_abort())
    if kind == "Message":
        if value.error() is not None:
            return (kind, plain(value.error()), value.topic(), value.partition(), value.offset())
        return (kind, value.topic(), value.partition(), value.offset(), value.key(), value.value(), value.headers(),
                value.timestamp(), value.error(), value.leader_epoch(), value.latency(), len(value))
    if kind in ("ClusterMetadata", "BrokerMetadata", "TopicMetadata", "PartitionMetadata"):
        return (kind, sorted((k, plain(v)) for k, v in vars(value).items() if not k.startswith("orig_broker")))
    if isinstance(value, dict):
        return sorted((k, plain(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return (kind, [plain(v) for v in value])
    return value


def outcome(call, *args):
    """The value that a call returned, or its exception with the code."""
    try:
        return ("returned", plain(call(*args)))
    except Exception as error:
        for base in (confluent_kafka.KafkaException, kconsumer.KafkaException):
            if isinstance(error, base):
                return ("raised", "KafkaException", error.args[0].code())
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
        return ("raised", kind.__name__)


def consumers(cluster, **more):
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "compared", "auto.offset.reset": "earliest",
              "enable.auto.commit": False, **more}
    return [(module, module.Consumer(dict(config))) for module in BOTH]


def compare(cluster, scenario, **more):
    """Run `scenario(module, consumer)` on both and compare the outcomes."""
    results = []
    for module, consumer in consumers(cluster, **more):
        try:
            results.append(outcome(scenario, module, consumer))
        finally:
            consumer.close()
    assert results[1] == results[0]
    return results[0]


def fill(consumer, count):
    found = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None:
            found.append(message)
    return found


def refused(call):
    """Repeat a call until it raises: librdkafka ends an assignment in its own thread, some time after unassign()."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        call()
        time.sleep(0.01)
    return "accepted"


SCENARIOS = {
    "assignment of nothing": lambda m, c, t: c.assignment(),
    "assign returns": lambda m, c, t: c.assign([m.TopicPartition(t, 0)]),
    "assign, assignment": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 3)]),
                                           [(p.topic, p.partition) for p in c.assignment()]),
    "assign a negative offset": lambda m, c, t: c.assign([m.TopicPartition(t, 0, -7)]),
    "incremental_assign a negative offset": lambda m, c, t: c.incremental_assign([m.TopicPartition(t, 0, -1999)]),
    "assign no list": lambda m, c, t: c.assign(5),
    "assign strings": lambda m, c, t: c.assign(["x"]),
    "assign none": lambda m, c, t: c.assign(),
    "unassign of nothing": lambda m, c, t: c.unassign(),
    "incremental_assign twice": lambda m, c, t: (c.incremental_assign([m.TopicPartition(t, 0)]),
                                                 c.incremental_assign([m.TopicPartition(t, 0)])),
    "incremental_unassign of what is not": lambda m, c, t: c.incremental_unassign([m.TopicPartition(t, 0)]),
    "poll, nothing assigned": lambda m, c, t: c.poll(0.01),
    "poll by keyword": lambda m, c, t: c.poll(timeout=0.01),
    "poll with a string": lambda m, c, t: c.poll("1"),
    "consume by keyword": lambda m, c, t: c.consume(num_messages=2, timeout=0.01),
    "consume too many": lambda m, c, t: c.consume(1_000_001, 0),
    "consume fewer than none": lambda m, c, t: c.consume(-1, 0),
    "consume none": lambda m, c, t: c.consume(0, 0),
    "seek of what is not assigned, position": lambda m, c, t: c.position([m.TopicPartition(t, 0)]),
    "seek, none": lambda m, c, t: c.seek(),
    "seek, a number": lambda m, c, t: c.seek(5),
    "position, no list": lambda m, c, t: c.position(5),
    "pause of what is not assigned": lambda m, c, t: c.pause([m.TopicPartition(t, 0)]),
    "resume of what is not assigned": lambda m, c, t: c.resume([m.TopicPartition(t, 0)]),
    "pause of nothing": lambda m, c, t: c.pause([]),
    "watermarks": lambda m, c, t: c.get_watermark_offsets(m.TopicPartition(t, 0), 10),
    "watermarks by keyword": lambda m, c, t: c.get_watermark_offsets(m.TopicPartition(t, 2), timeout=10),
    "watermarks cached, unknown": lambda m, c, t: c.get_watermark_offsets(m.TopicPartition(t, 0), cached=True),
    "watermarks, a number": lambda m, c, t: c.get_watermark_offsets(5),
    "times": lambda m, c, t: c.offsets_for_times([m.TopicPartition(t, 0, START), m.TopicPartition(t, 2, START)], 10),
    "times, in the future": lambda m, c, t: c.offsets_for_times([m.TopicPartition(t, 0, START + 10**10)], timeout=10),
    "times of an unknown partition": lambda m, c, t: c.offsets_for_times([m.TopicPartition(t, 77, START)], 3),
    "times of an unknown topic": lambda m, c, t: c.offsets_for_times([m.TopicPartition("no.such", 0, START)], 3),
    "watermarks of an unknown topic": lambda m, c, t: c.get_watermark_offsets(m.TopicPartition("no.such", 0), 3),
    "watermarks of an unknown partition": lambda m, c, t: c.get_watermark_offsets(m.TopicPartition(t, 99), 3),
    "times, one of two": lambda m, c, t: [
        (p.topic, p.offset, p.error and p.error.code()) for p in c.offsets_for_times(
            [m.TopicPartition("no.such", 0, 5), m.TopicPartition(t, 0, START + 3)], 3)],
    "assign one twice": lambda m, c, t: c.assign([m.TopicPartition(t, 0, 0), m.TopicPartition(t, 0, 5)]),
    "incremental_assign one twice": lambda m, c, t: c.incremental_assign([m.TopicPartition(t, 0)] * 2),
    "assignment with its offsets": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 3)]), fill(c, 2),
                                                    c.assignment())[2],
    "out of range": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 9999)]), fill(c, 1))[1],
    "list_topics of one": lambda m, c, t: c.list_topics(t, 10),
    "list_topics of one, its str": lambda m, c, t: str(c.list_topics(t, timeout=10)),
    "list_topics of one, ids": lambda m, c, t: sorted(c.list_topics(timeout=10).brokers),
    "seek to a seen record": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 0)]), fill(c, 5),
                                              c.seek(m.TopicPartition(t, 0, 2)), fill(c, 3))[3],
    "seek in a topic never assigned": lambda m, c, t: c.seek(m.TopicPartition(t, 0, 1)),
    "seek after unassign": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 3)]), fill(c, 1), c.unassign(),
                                            refused(lambda: c.seek(m.TopicPartition(t, 0, 1))))[3],
    "seek to the stored offset": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 3)]), fill(c, 1),
                                                  c.seek(m.TopicPartition(t, 0, m.OFFSET_STORED)))[2],
    "subscribe to nothing": lambda m, c, t: c.subscribe([]),
    "subscribe to one twice": lambda m, c, t: c.subscribe([t, t]),
    "subscribe to an empty name": lambda m, c, t: c.subscribe([""]),
    "subscribe to a string": lambda m, c, t: c.subscribe(t),
    "times of nothing": lambda m, c, t: c.offsets_for_times([], timeout=3),
    "list_topics of a number": lambda m, c, t: c.list_topics(5, timeout=3),
    "list_topics with a NUL": lambda m, c, t: c.list_topics("a\0", timeout=3),
    "a topic with a NUL": lambda m, c, t: m.TopicPartition("a\0"),
    "metadata with a NUL": lambda m, c, t: m.TopicPartition("a", 0, 1, "x\0y"),
    "commit nothing": lambda m, c, t: c.commit(offsets=[], asynchronous=False),
    "commit a message without an offset": lambda m, c, t: c.commit(m.Message(t, 0), asynchronous=False),
    "commit one without an offset, later": lambda m, c, t: c.commit(m.Message(t, 0)),
    "commit a message without a partition": lambda m, c, t: c.commit(m.Message(t, -1, 5)),
    "commit a message with an error": lambda m, c, t: c.commit(m.Message(t, 0, error=m.KafkaError(-191))),
    "commit one place of two": lambda m, c, t: c.commit(
        offsets=[m.TopicPartition(t, 0), m.TopicPartition(t, 1, 3)], asynchronous=False),
    "position after 4": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 1)]), fill(c, 4),
                                         c.position([m.TopicPartition(t, 0), m.TopicPartition(t, 1)]))[2],
    "position before any": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 1)]),
                                            c.position([m.TopicPartition(t, 0)]))[1],
    "all records": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 0)]), fill(c, RECORDS))[1],
    "the last and the end": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, RECORDS - 1)]), fill(c, 2))[1],
    "watermarks cached, known": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 0)]), fill(c, 1),
                                                 c.get_watermark_offsets(m.TopicPartition(t, 0), cached=True))[2],
    "close returns": lambda m, c, t: c.close(),
    "close twice": lambda m, c, t: (c.close(), c.close()),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_outcome(embedded, topic, name):
    compare(embedded, lambda module, consumer: SCENARIOS[name](module, consumer, topic),
            **{"enable.partition.eof": True})


@pytest.mark.kafka
def test_the_same_outcomes_on_a_real_kafka(kafka, topic_name):
    """Several at a time, each in a separate group: most of them wait for a timeout."""
    name = topic_name()
    fill_topic(kafka, name)

    def difference(label):
        try:
            compare(kafka, lambda module, consumer: SCENARIOS[label](module, consumer, name),
                    **{"enable.partition.eof": True, "group.id": f"{name}-{label}"})
        except AssertionError as error:
            return label, str(error)
        return None

    with ThreadPoolExecutor(6) as pool:
        assert [found for found in pool.map(difference, SCENARIOS) if found is not None] == []


CLOSED = {
    "poll": lambda m, c, t: c.poll(0),
    "consume": lambda m, c, t: c.consume(1, 0),
    "assign": lambda m, c, t: c.assign([m.TopicPartition(t, 0)]),
    "unassign": lambda m, c, t: c.unassign(),
    "incremental_assign": lambda m, c, t: c.incremental_assign([m.TopicPartition(t, 0)]),
    "incremental_unassign": lambda m, c, t: c.incremental_unassign([m.TopicPartition(t, 0)]),
    "assignment": lambda m, c, t: c.assignment(),
    "seek": lambda m, c, t: c.seek(m.TopicPartition(t, 0, 0)),
    "position": lambda m, c, t: c.position([m.TopicPartition(t, 0)]),
    "pause": lambda m, c, t: c.pause([m.TopicPartition(t, 0)]),
    "resume": lambda m, c, t: c.resume([m.TopicPartition(t, 0)]),
    "watermarks": lambda m, c, t: c.get_watermark_offsets(m.TopicPartition(t, 0)),
    "times": lambda m, c, t: c.offsets_for_times([m.TopicPartition(t, 0)]),
    "list_topics": lambda m, c, t: c.list_topics(),
}


@pytest.mark.parametrize("name", CLOSED)
def test_the_same_outcome_when_closed(embedded, topic, name):
    def scenario(module, consumer):
        consumer.close()
        return CLOSED[name](module, consumer, topic)

    assert compare(embedded, scenario)[0] == "raised"


@pytest.mark.parametrize("config", [
    {"no.such.property": 1}, {"fetch.min.bytes": "x"}, {"fetch.min.bytes": -1}, {"enable.partition.eof": "perhaps"},
    {"auto.offset.reset": "soon"}, {"fetch.wait.max.ms": 10**9}, {"client.id": None}, {"fetch.min.bytes": None},
], ids=str)
def test_the_same_configurations_are_refused(config):
    results = []
    for module in BOTH:
        try:
            module.Consumer({"group.id": "g", "bootstrap.servers": "127.0.0.1:1", **config}).close()
            results.append("accepted")
        except Exception as error:
            results.append(error.args[0].code() if isinstance(error, module.KafkaException) else type(error).__name__)
    assert results[1] == results[0]


@pytest.mark.parametrize("args", [(), (5,), ("x",), ({"group.id": "g"}, 5)], ids=str)
def test_the_same_arguments_are_refused(args):
    for module in BOTH[:1 if args == () else 2]:
        with pytest.raises((TypeError, module.KafkaException)):
            module.Consumer(*args)


def test_consume_gives_the_same_lists(embedded, topic):
    def scenario(module, consumer):
        consumer.assign([module.TopicPartition(topic, 0, 0)])
        found = consumer.consume(RECORDS // 2, PATIENCE)
        found += consumer.consume(RECORDS - RECORDS // 2 + 1, PATIENCE)
        return found

    result = compare(embedded, scenario, **{"enable.partition.eof": True})
    assert len(result[1][1]) == RECORDS + 1


STORING = {
    "never assigned": lambda m, c, t: c.store_offsets(offsets=[m.TopicPartition(t, 0, 1)]),
    "formerly assigned": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 3)]), fill(c, 1), c.unassign(),
                                          refused(lambda: c.store_offsets(offsets=[m.TopicPartition(t, 0, 1)])))[3],
    "a message without an offset": lambda m, c, t: (c.assign([m.TopicPartition(t, 0, 3)]), fill(c, 1),
                                                    c.store_offsets(message=m.Message(t, 0)))[2],
    "nothing": lambda m, c, t: c.store_offsets(offsets=[]),
    "neither": lambda m, c, t: c.store_offsets(),
}


@pytest.mark.parametrize("name", STORING)
def test_the_same_outcome_of_storing(embedded, topic, name):
    compare(embedded, lambda module, consumer: STORING[name](module, consumer, topic),
            **{"enable.auto.offset.store": False})


@pytest.mark.parametrize("name", ["error_cb", "stats_cb", "throttle_cb", "on_commit"])
def test_a_callback_that_cannot_be_called(name):
    config = {"group.id": "g", "bootstrap.servers": "127.0.0.1:1", name: 5}
    with pytest.raises((confluent_kafka.KafkaException, TypeError, ValueError)) as theirs:
        confluent_kafka.Consumer(dict(config))
    kind = kconsumer.KafkaException if theirs.type is confluent_kafka.KafkaException else theirs.type
    with pytest.raises(kind, match=name):
        kconsumer.Consumer(dict(config))


def message_of(module, cluster, topic, offset):
    consumer = module.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "compared"})
    try:
        consumer.assign([module.TopicPartition(topic, 0, offset)])
        return fill(consumer, 1)[0]
    finally:
        consumer.close()


def test_message_has_every_method_of_confluent_kafkas(embedded, topic):
    theirs = {name for name in dir(confluent_kafka.Message) if not name.startswith("_")}
    ours = {name for name in dir(kconsumer.Message) if not name.startswith("_")}
    assert theirs <= ours
    for offset in (0, 1, 2, 3, 7):
        a, b = (message_of(module, embedded, topic, offset) for module in BOTH)
        assert plain(a) == plain(b)
        assert bool(b)  # confluent_kafka's is false when the value is empty, a trap for "if message:"
        for setter, getter in (("set_key", "key"), ("set_value", "value"), ("set_headers", "headers"),
                               ("set_topic", "topic")):
            new = [("h", b"1")] if setter == "set_headers" else "new"
            for message in (a, b):
                getattr(message, setter)(new)
                assert getattr(message, getter)() == new
        assert plain(a) == plain(b)


def test_message_survives_pickle_and_copy(embedded, topic):
    for offset in (0, 1, 2, 3):
        message = message_of(kconsumer, embedded, topic, offset)
        for again in (*(pickle.loads(pickle.dumps(message, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)),
                      copy.copy(message), copy.deepcopy(message)):
            assert again is not message
            assert again == message
            assert plain(again) == plain(message)


def test_an_error_message_survives_pickle():
    error = kconsumer.KafkaError(kconsumer.KafkaError._PARTITION_EOF, "the end")
    message = kconsumer.Message(topic="t", error=error, partition=2, offset=7)
    again = pickle.loads(pickle.dumps(message))
    assert plain(again) == plain(message)
    assert again.error().str() == "the end"


@pytest.mark.parametrize("kwargs", [
    {}, {"topic": "t", "value": b"v", "key": b"k", "headers": [("a", b"1")], "timestamp": (1, 5), "leader_epoch": 3},
    {"value": "text", "key": 7}, {"error": "e"}, {"topic": "t", "partition": 1, "offset": 2},
], ids=str)
def test_messages_made_by_hand(kwargs):
    results = []
    for module in BOTH:
        given = dict(kwargs)
        if "error" in given:
            given["error"] = module.KafkaError(module.KafkaError._PARTITION_EOF)
        try:
            m = module.Message(**given)
            results.append((m.topic(), m.value(), m.key(), m.headers(), m.timestamp(), m.leader_epoch(), m.partition(),
                            m.offset(), m.latency(), plain(m.error())))
        except Exception as error:
            results.append(type(error).__name__)
    assert results[1] == results[0]


def test_the_public_names_are_there():
    for name in ("Consumer", "DeserializingConsumer", "Message", "TopicPartition", "KafkaError", "KafkaException",
                 "OFFSET_BEGINNING", "OFFSET_END", "OFFSET_STORED", "OFFSET_INVALID", "TIMESTAMP_NOT_AVAILABLE",
                 "TIMESTAMP_CREATE_TIME", "TIMESTAMP_LOG_APPEND_TIME"):
        assert hasattr(kconsumer, name)
        if name[0] in "OT" and name != "TopicPartition":
            assert getattr(kconsumer, name) == getattr(confluent_kafka, name)


def test_confluent_kafkas_partitions_are_accepted(embedded, topic):
    consumer = kconsumer.Consumer({"bootstrap.servers": embedded.bootstrap_servers})
    with consumer:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 3)])
        assert fill(consumer, 1)[0].offset() == 3
        consumer.seek(confluent_kafka.TopicPartition(topic, 0, 9))
        assert fill(consumer, 1)[0].offset() == 9
        assert consumer.position([confluent_kafka.TopicPartition(topic, 0)])[0].offset == 10
        assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), 10) == (0, RECORDS)
        consumer.pause([confluent_kafka.TopicPartition(topic, 0)])
