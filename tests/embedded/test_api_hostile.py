"""Use that no manual recommends: the consumer neither breaks nor lies, and leaves nothing behind."""

import itertools
import os
import time

import pytest
from api_helpers import PATIENCE, offsets, reader, take, until

from kconsumer import KafkaException, TopicPartition

RECORDS = 300


@pytest.fixture(scope="module")
def topic(embedded):
    name = "hostile"
    embedded.create_topic(name, partitions=2)
    embedded.produce(name, ({"value": b"v%d" % i, "partition": p} for p in (0, 1) for i in range(RECORDS)))
    return name


@pytest.fixture
def consumer(embedded, topic):
    """Assigned to partition 0 from its beginning."""
    with reader(embedded, topic) as made:
        yield made


def test_callbacks_may_move_everything_while_records_are_taken(embedded, topic):
    """assign, seek and pause from stats_cb in the middle of a consume: what is returned stays in order."""
    moves = itertools.cycle([
        lambda c: c.seek(TopicPartition(topic, 0, 50)), lambda c: c.assign([TopicPartition(topic, 0, 100)]),
        lambda c: c.unassign(), lambda c: c.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)]),
        lambda c: c.pause(c.assignment()), lambda c: c.resume(c.assignment()), lambda c: c.seek_to_beginning(),
        lambda c: c.incremental_unassign(c.assignment()[:1]), lambda c: c.assign([TopicPartition(topic, 0, 0)]),
    ])
    runs = 0

    def move(_):
        nonlocal runs
        if time.monotonic() < deadline:  # what close() serves at its end finds a closed consumer
            runs += 1
            next(moves)(consumer)

    deadline = time.monotonic() + 3
    latest = deadline + PATIENCE
    starts = {0, 50, 100}
    with reader(embedded, topic, statistics_interval_ms=5, stats_cb=move) as consumer:
        last = {}
        while time.monotonic() < deadline:
            for m in (*consumer.consume(40, 0.02), *consumer.consume_batch(max_records=40, timeout=0.01)):
                assert m.value() == b"v%d" % m.offset()
                before = last.get(m.partition())
                assert before is None or m.offset() == before + 1 or m.offset() in starts
                last[m.partition()] = m.offset()
            if runs <= 20 and deadline - 0.5 < time.monotonic() < latest:
                deadline += 1
    assert runs > 20


def test_opening_and_closing_releases_everything(embedded, topic):
    def descriptors():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def one():
        with reader(embedded, topic) as consumer:
            take(consumer, 1)
            consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE)

    one()
    before = descriptors()
    for _ in range(20):
        one()
    until(lambda: descriptors()[1] <= before[1])
    assert descriptors()[0] <= before[0] + 6  # the embedded cluster closes its ends a little later


def test_wrong_arguments_change_nothing(consumer, topic):
    take(consumer, 3)
    for call in (
        lambda: consumer.assign([TopicPartition(topic, 0), "x"]), lambda: consumer.assign(None),
        lambda: consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 0)]),
        lambda: consumer.incremental_assign([TopicPartition(topic, 1), TopicPartition(topic, 0)]),
        lambda: consumer.incremental_unassign([TopicPartition(topic, 0), TopicPartition(topic, 1)]),
        lambda: consumer.consume("5"), lambda: consumer.consume_batch("5"), lambda: consumer.consume(1.5),
        lambda: consumer.consume_batch(max_records=2**40),
        lambda: consumer.list_topics(5), lambda: consumer.set_config({"fetch.min.bytes": []}),
        lambda: consumer.get_watermark_offsets("x"), lambda: consumer.seek_to_end(5),
    ):
        with pytest.raises((TypeError, ValueError, OverflowError, KafkaException)):
            call()
    assert consumer.assignment() == [TopicPartition(topic, 0)]
    assert offsets(take(consumer, 3)) == [3, 4, 5]
