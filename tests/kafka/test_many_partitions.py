"""A backlog of many partitions: read in windows, every record comes once and in order, whatever happens meanwhile."""

import random

import pytest
from reading import WAYS, Ledger, by_consume_batch, meanwhile, open_reader, read_until, write

from kconsumer import TopicPartition

PARTITIONS, ROUNDS, ROUND = 300, 3, 100  # a batch of 11 kB to each partition, three times
COUNT = ROUNDS * ROUND
FULL = {"fetch_max_bytes": 200_000, "max_partition_fetch_bytes": 16_000}  # one batch each; twenty fill an answer


@pytest.fixture(scope="module")
def backlog(kafka):
    kafka.create_topic("backlog", partitions=PARTITIONS)
    for first in range(0, COUNT, ROUND):
        write(kafka, "backlog", range(PARTITIONS), ROUND, first=first)
    yield kafka
    kafka.delete_topic("backlog")  # a broker that is killed recovers each partition


@pytest.mark.parametrize("way", WAYS)
def test_every_record_comes_once(backlog, way):
    ledger = Ledger(range(PARTITIONS))
    with open_reader(backlog, "backlog", range(PARTITIONS), **FULL) as consumer:
        read_until(WAYS[way], consumer, ledger, lambda: len(ledger) == PARTITIONS * COUNT)
        assert consumer.metrics()["fetches_total"] > 40
        assert not list(consumer.consume(10, 0.2))
    assert ledger.errors == []


def test_all_partitions_advance_together(backlog):
    """The partition served longest ago comes next: none is ahead by more than a few answers' worth."""
    ledger = Ledger(range(PARTITIONS))
    with open_reader(backlog, "backlog", range(PARTITIONS), **FULL) as consumer:
        read_until(by_consume_batch, consumer, ledger, lambda: len(ledger) >= PARTITIONS * COUNT // 2)
        assert max(ledger.next.values()) - min(ledger.next.values()) <= 2 * ROUND


def test_seeks_and_pauses_meanwhile(backlog):
    chance = random.Random(1)
    ledger = Ledger(range(PARTITIONS))
    paused = set()
    expected = PARTITIONS * COUNT

    def at_the_end():
        return all(at == COUNT for at in ledger.next.values())

    with open_reader(backlog, "backlog", range(PARTITIONS), **FULL) as consumer:
        for step in range(1, 25):
            taken = len(ledger)
            read_until(by_consume_batch, consumer, ledger,
                       lambda taken=taken: len(ledger) - taken >= expected // 60 or at_the_end())
            for p in chance.sample(range(PARTITIONS), 4):
                to = chance.randrange(COUNT)
                consumer.seek(TopicPartition("backlog", p, to))
                ledger.next[p] = to
            consumer.resume([TopicPartition("backlog", p) for p in paused])
            paused = set(chance.sample(range(PARTITIONS), 20)) if step < 24 else set()
            consumer.pause([TopicPartition("backlog", p) for p in paused])
        read_until(by_consume_batch, consumer, ledger, at_the_end)
        assert not list(consumer.consume(10, 0.2))
    assert ledger.errors == []


def test_a_seek_does_not_wait_for_the_backlog(backlog):
    ledger = Ledger(range(PARTITIONS))
    # In 64 MiB, the default, the whole backlog may have been received before the seek.
    with open_reader(backlog, "backlog", range(PARTITIONS), fetch_buffer_memory=1_000_000, **FULL) as consumer:
        read_until(by_consume_batch, consumer, ledger, lambda: len(ledger) >= PARTITIONS * COUNT // 4)
        ahead = max(ledger.next, key=ledger.next.get)
        consumer.seek(TopicPartition("backlog", ahead, 0))
        ledger.next[ahead] = 0
        taken = len(ledger)
        read_until(by_consume_batch, consumer, ledger, lambda: ledger.next[ahead] > 0)
        # What was received already and a few answers of 200 kB: not the rest, nor a batch of each other partition.
        assert len(ledger) - taken < PARTITIONS * ROUND // 2


def test_records_written_meanwhile_come_too(backlog):
    topic = "growing"
    backlog.create_topic(topic, partitions=PARTITIONS)
    write(backlog, topic, range(PARTITIONS // 2), COUNT)
    ledger = Ledger(range(PARTITIONS))
    total = PARTITIONS // 2 * COUNT + PARTITIONS * 20
    with open_reader(backlog, topic, range(PARTITIONS), **FULL) as consumer:
        read_until(by_consume_batch, consumer, ledger, lambda: len(ledger) > 0)

        def more():
            write(backlog, topic, range(PARTITIONS // 2, PARTITIONS), 20)
            write(backlog, topic, range(PARTITIONS // 2), 20, first=COUNT)

        with meanwhile(more):
            read_until(by_consume_batch, consumer, ledger, lambda: len(ledger) == total)
        assert consumer.lag() == {(topic, p): 0 for p in range(PARTITIONS)}
    assert ledger.errors == []
    backlog.delete_topic(topic)
