"""Commits: the same calls on confluent_kafka.Consumer and on kconsumer.Consumer, and faults of the coordinator."""

import itertools
import threading
import time

import pytest
from api_helpers import PATIENCE, poll_until
from test_api_compared import BOTH, fill, fill_topic, outcome, plain

import kconsumer
from kconsumer.testing import EmbeddedCluster

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
UNKNOWN_TOPIC, METADATA_TOO_LARGE, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 3, 12, 14, 15, 16
ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE_IN_PROGRESS, TOPIC_DENIED, GROUP_DENIED = 22, 25, 27, 29, 30
TRANSPORT, NO_OFFSET = -195, -168

_groups = itertools.count()


@pytest.fixture(scope="module")
def topic(embedded):
    fill_topic(embedded, "committed")
    return "committed"


@pytest.fixture
def faulty():
    """A cluster of one's own: it answers with errors."""
    with EmbeddedCluster(1) as cluster:
        fill_topic(cluster, "t")
        yield cluster


def opened(cluster, module, group=None, **more):
    return module.Consumer({
        "bootstrap.servers": cluster.bootstrap_servers, "group.id": group or f"g{next(_groups)}",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
        **{k.replace("_", ".") if k not in ("on_commit", "error_cb") else k: v for k, v in more.items()}})


def compare(cluster, scenario, **more):
    """Run `scenario(module, consumer)` on both, each in a separate group, and compare the outcomes."""
    results = []
    for module in BOTH:
        consumer = opened(cluster, module, **more)
        try:
            results.append(outcome(scenario, module, consumer))
        finally:
            consumer.close()
    assert results[1] == results[0]
    return results[0]


def of_one(m, t, partition=0, offset=0):
    return [m.TopicPartition(t, partition, offset)]


def reading(scenario, count=20):
    """A scenario that has read some records of partition 0."""
    def run(m, c, t):
        c.assign([m.TopicPartition(t, 0)])
        return scenario(m, c, t, fill(c, count))
    return run


def pairs(found):
    return sorted((p.partition, p.offset, plain(p.error)) for p in found)


SCENARIOS = {
    "offsets": lambda m, c, t: c.commit(offsets=[m.TopicPartition(t, 0, 5)], asynchronous=False),
    "offsets, read back": lambda m, c, t: (
        c.commit(offsets=[m.TopicPartition(t, 0, 5), m.TopicPartition(t, 2, 7)], asynchronous=False),
        c.committed([m.TopicPartition(t, 0), m.TopicPartition(t, 1), m.TopicPartition(t, 2)], 10)),
    "asynchronous": lambda m, c, t: c.commit(offsets=[m.TopicPartition(t, 0, 5)]),
    "by the keyword of before": lambda m, c, t: c.commit(offsets=[m.TopicPartition(t, 0, 5)], **{"async": False}),
    "an unknown keyword": lambda m, c, t: c.commit(offset=5),
    "nothing": lambda m, c, t: c.commit(asynchronous=False),
    "nothing, asynchronous": lambda m, c, t: c.commit(),
    "no offset": lambda m, c, t: c.commit(offsets=[m.TopicPartition(t, 0)], asynchronous=False),
    "no partitions": lambda m, c, t: c.commit(offsets=[], asynchronous=False),
    "logical offsets": lambda m, c, t: c.commit(offsets=[m.TopicPartition(t, 0, m.OFFSET_END)], asynchronous=False),
    "some without an offset": lambda m, c, t: pairs(c.commit(
        offsets=[m.TopicPartition(t, 0, 5), m.TopicPartition(t, 1)], asynchronous=False)),
    "a number for offsets": lambda m, c, t: c.commit(offsets=5),
    "a number for a message": lambda m, c, t: c.commit(message=5),
    "strings for offsets": lambda m, c, t: c.commit(offsets=["t"]),
    "both": reading(lambda m, c, t, found: c.commit(found[0], [m.TopicPartition(t, 0, 5)])),
    "a message": reading(lambda m, c, t, found: c.commit(found[7], asynchronous=False)),
    "a message by keyword": reading(lambda m, c, t, found: c.commit(message=found[7], asynchronous=False)),
    "what was returned": reading(lambda m, c, t, found: pairs(c.commit(asynchronous=False))),
    "what was returned, twice": reading(lambda m, c, t, found: (c.commit(asynchronous=False),
                                                               c.commit(asynchronous=False))),
    "earlier, then what was returned": reading(lambda m, c, t, found: (
        c.commit(found[3], asynchronous=False), pairs(c.commit(asynchronous=False)),
        pairs(c.committed([m.TopicPartition(t, 0)], 10)))),
    "committed, nothing": lambda m, c, t: c.committed([m.TopicPartition(t, 0), m.TopicPartition(t, 1)], 10),
    "committed by keyword": lambda m, c, t: c.committed([m.TopicPartition(t, 0)], timeout=10),
    "committed of no partitions": lambda m, c, t: c.committed([], 10),
    "committed, a number": lambda m, c, t: c.committed(5, 10),
    "store, automatic": reading(lambda m, c, t, found: c.store_offsets(found[0])),
    "store, no arguments": lambda m, c, t: c.store_offsets(),
    "store, both": reading(lambda m, c, t, found: c.store_offsets(found[0], [m.TopicPartition(t, 0, 5)])),
}

STORING = {
    "a message": reading(lambda m, c, t, found: (c.store_offsets(found[4]), pairs(c.commit(asynchronous=False)))),
    "offsets": reading(lambda m, c, t, found: (c.store_offsets(offsets=[m.TopicPartition(t, 0, 9)]),
                                               pairs(c.commit(asynchronous=False)))),
    "nothing": reading(lambda m, c, t, found: c.commit(asynchronous=False)),
    "no longer assigned": reading(lambda m, c, t, found: (
        c.unassign(), c.store_offsets(offsets=[m.TopicPartition(t, 0, 9)]))),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_call_has_the_same_outcome(embedded, topic, name):
    compare(embedded, lambda m, c: SCENARIOS[name](m, c, topic))


@pytest.mark.parametrize("name", STORING)
def test_stored_offsets(embedded, topic, name):
    compare(embedded, lambda m, c: STORING[name](m, c, topic), enable_auto_offset_store=False)


@pytest.mark.parametrize("store", [False, True])
def test_a_list_of_messages_commits_the_last_of_each_partition(embedded, topic, store):
    consumer = opened(embedded, kconsumer, enable_auto_offset_store=not store)
    try:
        consumer.assign([kconsumer.TopicPartition(topic, p) for p in (0, 1)])
        found = fill(consumer, 20)
        last = {}
        for message in found:
            last[message.partition()] = message.offset() + 1
        if store:
            consumer.store_offsets(found[::-1])
            consumer.commit(asynchronous=False)
        else:
            consumer.commit(found[::-1], asynchronous=False)
        assert {p.partition: p.offset for p in consumer.committed(consumer.assignment(), 10) if p.offset >= 0} == last
        with pytest.raises(TypeError, match="expected Message, list of messages or RecordBatch, not int"):
            consumer.commit([found[0], 5])
    finally:
        consumer.close()


@pytest.mark.parametrize("module", BOTH)
def test_after_close(embedded, topic, module):
    consumer = opened(embedded, module)
    consumer.close()
    for call in (lambda: consumer.commit(offsets=of_one(module, topic)),
                 lambda: consumer.committed(of_one(module, topic), 1)):
        with pytest.raises(RuntimeError):
            call()


@pytest.mark.parametrize("module", BOTH)
def test_on_commit_gets_the_error_and_the_offsets(embedded, topic, module):
    told = []
    consumer = opened(embedded, module, on_commit=lambda *given: told.append(given))
    try:
        assert consumer.commit(offsets=of_one(module, topic, offset=5)) is None
        poll_until(consumer, lambda: told)
        ((error, offsets),) = told
        assert error is None
        assert [(isinstance(p, module.TopicPartition), p.topic, p.partition, p.offset, p.error) for p in offsets] == [
            (True, topic, 0, 5, None)]
    finally:
        consumer.close()


@pytest.mark.parametrize("module", BOTH)
def test_on_commit_runs_in_close_at_the_latest(embedded, topic, module):
    told = []
    consumer = opened(embedded, module, on_commit=lambda error, offsets: told.append((error, offsets[0].offset)))
    consumer.commit(offsets=of_one(module, topic, offset=5))
    consumer.close()
    assert told == [(None, 5)]


@pytest.mark.parametrize("module", BOTH)
def test_an_exception_of_on_commit_leaves_poll(embedded, topic, module):
    def fail(error, offsets):
        raise ZeroDivisionError

    consumer = opened(embedded, module, on_commit=fail)
    try:
        consumer.commit(offsets=of_one(module, topic, offset=5))
        with pytest.raises(ZeroDivisionError):
            poll_until(consumer, lambda: False)
    finally:
        consumer.close()


# -- errors of the coordinator


@pytest.mark.parametrize("error", [METADATA_TOO_LARGE, TOPIC_DENIED, GROUP_DENIED, UNKNOWN_MEMBER,
                                   ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS])
def test_an_error_that_stays_is_raised_with_the_same_code(faulty, error):
    def scenario(module, consumer):
        faulty.push_request_errors(OFFSET_COMMIT, [error])
        consumer.commit(offsets=[module.TopicPartition("t", 0, 5)], asynchronous=False)

    assert compare(faulty, scenario) == ("raised", "KafkaException", error)


@pytest.mark.parametrize("errors", [[LOADING], [NOT_AVAILABLE], [NOT_COORDINATOR] * 3, [TRANSPORT], [LOADING] * 5])
def test_an_error_that_passes_is_not_seen(faulty, errors):
    consumer = opened(faulty, kconsumer)
    try:
        faulty.push_request_errors(OFFSET_COMMIT, errors)
        (result,) = consumer.commit(offsets=of_one(kconsumer, "t", offset=5), asynchronous=False)
        assert (result.offset, result.error) == (5, None)
        faulty.push_request_errors(OFFSET_FETCH, errors)
        (found,) = consumer.committed(of_one(kconsumer, "t"), PATIENCE)
        assert found.offset == 5
        # Nor does a consumer that begins there begin elsewhere.
        faulty.push_request_errors(OFFSET_FETCH, errors)
        consumer.assign([kconsumer.TopicPartition("t", 0)])
        assert fill(consumer, 1)[0].offset() == 5
    finally:
        consumer.close()


def test_a_topic_that_the_coordinator_does_not_know_yet(faulty):
    def scenario(module, consumer):
        faulty.push_request_errors(OFFSET_COMMIT, [UNKNOWN_TOPIC])
        return consumer.commit(offsets=[module.TopicPartition("t", 0, 5)], asynchronous=False)

    assert compare(faulty, scenario)[0] == "returned"


@pytest.mark.parametrize("error", [NOT_AVAILABLE, LOADING, TRANSPORT])
def test_a_coordinator_that_is_not_found_at_once(faulty, error):
    faulty.push_request_errors(FIND_COORDINATOR, [error] * 3)
    consumer = opened(faulty, kconsumer)
    try:
        consumer.commit(offsets=of_one(kconsumer, "t", offset=5), asynchronous=False)
        assert consumer.committed(of_one(kconsumer, "t"), PATIENCE)[0].offset == 5
    finally:
        consumer.close()


def test_no_right_to_the_group(faulty):
    """Every caller gets the same error: commit, committed, error_cb, and a partition that would begin there."""
    errors = []
    faulty.push_request_errors(FIND_COORDINATOR, [GROUP_DENIED] * 50)
    consumer = opened(faulty, kconsumer, error_cb=errors.append)
    try:
        for call in (lambda: consumer.commit(offsets=of_one(kconsumer, "t", offset=5), asynchronous=False),
                     lambda: consumer.committed(of_one(kconsumer, "t"), PATIENCE)):
            with pytest.raises(kconsumer.KafkaException) as refused:
                call()
            assert refused.value.args[0].code() == GROUP_DENIED
        consumer.assign([kconsumer.TopicPartition("t", 0)])
        (message,) = fill(consumer, 1)
        assert message.error().code() == GROUP_DENIED
        assert [e.code() for e in errors] == [GROUP_DENIED]
        # The right is given: reading begins without another call.
        faulty.clear_request_errors(FIND_COORDINATOR)
        assert fill(consumer, 1)[0].offset() == 0
    finally:
        consumer.close()


def test_offsets_that_cannot_be_read_reset_nothing(faulty):
    group = f"g{next(_groups)}"
    consumer = opened(faulty, kconsumer, group)
    try:
        consumer.commit(offsets=of_one(kconsumer, "t", offset=30), asynchronous=False)
        faulty.push_request_errors(OFFSET_FETCH, [GROUP_DENIED] * 3)
        consumer.assign([kconsumer.TopicPartition("t", 0)])
        found = fill(consumer, 2)
        assert found[0].error().code() == GROUP_DENIED
        assert found[1].offset() == 30
    finally:
        consumer.close()


def test_a_coordinator_that_moves(embedded, topic):
    group = f"moves{next(_groups)}"
    consumer = opened(embedded, kconsumer, group)
    try:
        for broker in (1, 2, 3, 1):
            embedded.set_coordinator(group, broker)
            (result,) = consumer.commit(offsets=of_one(kconsumer, topic, offset=broker), asynchronous=False)
            assert result.error is None
            assert consumer.committed(of_one(kconsumer, topic), PATIENCE)[0].offset == broker
    finally:
        consumer.close()


def test_a_coordinator_that_is_down_for_a_while(faulty):
    consumer = opened(faulty, kconsumer)
    try:
        consumer.commit(offsets=of_one(kconsumer, "t", offset=5), asynchronous=False)
        told = []
        faulty.broker_down()
        consumer.commit(offsets=of_one(kconsumer, "t", offset=6))
        with pytest.raises(kconsumer.KafkaException) as late:
            consumer.committed(of_one(kconsumer, "t"), 0.3)
        told.append(late.value.args[0].code())
        faulty.broker_up()
        until_committed(consumer, 6)
    finally:
        consumer.close()
    assert told == [kconsumer.KafkaError._TIMED_OUT]


def until_committed(consumer, offset):
    deadline = time.monotonic() + PATIENCE
    while consumer.committed(of_one(kconsumer, "t"), PATIENCE)[0].offset != offset:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_close_waits_for_commits_on_their_way(faulty):
    group = f"g{next(_groups)}"
    consumer = opened(faulty, kconsumer, group)
    faulty.set_rtt(200)
    consumer.commit(offsets=of_one(kconsumer, "t", offset=6))
    consumer.close(timeout=PATIENCE)
    faulty.set_rtt(0)
    consumer = opened(faulty, kconsumer, group)
    try:
        assert consumer.committed(of_one(kconsumer, "t"), PATIENCE)[0].offset == 6
    finally:
        consumer.close()


def test_close_waits_no_longer_than_its_timeout(faulty):
    consumer = opened(faulty, kconsumer)
    consumer.commit(offsets=of_one(kconsumer, "t", offset=5), asynchronous=False)
    faulty.set_rtt(60_000)
    consumer.commit(offsets=of_one(kconsumer, "t", offset=6))
    begun = time.monotonic()
    consumer.close(timeout=1.0)
    assert time.monotonic() - begun < 10.0


def test_the_longest_ids_reach_the_broker(embedded, topic):
    """Kafka's strings have a length of 16 bits; one byte more is refused by the configuration."""
    place = kconsumer.TopicPartition(topic, 0, 5)
    consumer = opened(embedded, kconsumer, "g" * 32_767, client_id="c" * 32_767)
    consumer.assign([place])
    consumer.commit(offsets=[place], asynchronous=False)
    assert consumer.committed([place], timeout=PATIENCE)[0].offset == 5
    consumer.close()
    with pytest.raises(kconsumer.KafkaException, match=r"for group\.id: expected a string of at most 32767 bytes"):
        opened(embedded, kconsumer, "g" * 32_768)


@pytest.mark.parametrize("refused", [False, True], ids=["stored", "refused"])
def test_on_commit_is_called_for_every_commit_however_late_the_application_polls(faulty, refused):
    """More commits than the queue of background events has places."""
    reported = []
    consumer = opened(faulty, kconsumer, on_commit=lambda error, partitions: reported.append(
        (error and error.code(), partitions[0].offset)))
    consumer.assign(of_one(kconsumer, "t"))
    if refused:
        faulty.push_request_errors(OFFSET_COMMIT, [TOPIC_DENIED] * 30_000)
    for offset in range(30_000):
        consumer.commit(offsets=of_one(kconsumer, "t", offset=offset))
    poll_until(consumer, lambda: len(reported) == 30_000)
    assert reported == [(TOPIC_DENIED if refused else None, offset) for offset in range(30_000)]
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_commit_of_another_thread_while_the_consumer_closes_is_refused_or_reported(faulty, protocol):
    reported, accepted = [], []
    group = f"g{next(_groups)}"
    consumer = opened(faulty, kconsumer, group, group_protocol=protocol, on_commit=lambda error, partitions:
                      reported.append((error and error.code(), partitions[0].offset)))
    consumer.subscribe(["t"], on_revoke=lambda *_: time.sleep(0.1))
    poll_until(consumer, consumer.assignment)

    def work():
        for offset in itertools.count(1):
            try:
                consumer.commit(offsets=of_one(kconsumer, "t", offset=offset))
            except RuntimeError as error:
                assert "Consumer closed" in str(error)
                return
            accepted.append(offset)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    consumer.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert [offset for _, offset in reported] == accepted
    reader = opened(faulty, kconsumer, group)
    newest = max(offset for code, offset in reported if code is None)
    assert reader.committed(of_one(kconsumer, "t"), PATIENCE)[0].offset == newest
    reader.close()
