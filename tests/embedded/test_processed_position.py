"""A `with` block left by an exception commits all records returned before the latest call, and no more.

The application may not have processed the records of that call, so they come again.
"""

import itertools
import threading

import pytest
from api_helpers import PATIENCE, settings, until

from kconsumer import Consumer, IllegalStateError, TopicPartition, WakeupError
from kconsumer.testing import EmbeddedCluster

COUNT = 30  # records of each partition
ALL = 10  # records that the calls before the last one returned
_groups = itertools.count(1)


class Boom(Exception):
    """An error in the middle of the processing."""


@pytest.fixture(scope="module")
def cluster():
    with EmbeddedCluster(1) as made:
        made.set_group_timing(initial_rebalance_delay_ms=0)
        made.create_topic("t", 2)
        # One batch a partition: consume_batch() returns no more than one.
        made.produce("t", [{"value": b"%d" % n, "partition": p} for p in (0, 1) for n in range(COUNT)],
                     {"linger.ms": 500})
        yield made


class Group:
    """Members of one group, one after the other."""

    def __init__(self, cluster, protocol):
        self.cluster = cluster
        self.name = f"processed-{next(_groups)}"
        self.protocol = protocol

    def member(self, partitions=(0,), **more):
        """Reads from where the group stands; by subscription, or (protocol None) by assign."""
        config = settings(self.cluster, group_id=self.name, auto_commit_interval_ms=0, **more)
        if self.protocol is None:
            consumer = Consumer(config)
            consumer.assign([TopicPartition("t", p) for p in partitions])
            return consumer
        consumer = Consumer({**config, "group.protocol": self.protocol})
        consumer.subscribe(["t"], on_assign=lambda c, given: c.incremental_assign(wanted(given)) if cooperative(c)
                           else c.assign(wanted(given)))

        def wanted(given):
            return [p for p in given if p.partition in partitions]

        def cooperative(c):
            return c.rebalance_protocol() == "COOPERATIVE"

        return consumer

    def committed(self, partition=0):
        with Consumer(settings(self.cluster, group_id=self.name)) as consumer:
            return consumer.committed([TopicPartition("t", partition)], PATIENCE)[0].offset


@pytest.fixture(params=[None, "classic", "consumer"])
def group(request, cluster):
    return Group(cluster, request.param)


@pytest.fixture
def one(cluster):
    """A group whose members assign themselves."""
    return Group(cluster, None)


def drain(consumer, count):
    """So many records by poll()."""
    for n in range(count):
        message = consumer.poll(PATIENCE)
        assert message.error() is None
        assert message.offset() == n


def test_a_message_of_poll(group):
    with pytest.raises(Boom), group.member() as consumer:
        drain(consumer, ALL)
        assert consumer.poll(PATIENCE).offset() == ALL
        raise Boom
    assert group.committed() == ALL


def test_a_list_of_consume(group):
    with pytest.raises(Boom), group.member() as consumer:
        assert len(consumer.consume(ALL, PATIENCE)) == ALL
        for message in consumer.consume(7, PATIENCE):
            if message.offset() == ALL + 3:
                raise Boom
    assert group.committed() == ALL


def test_a_batch_of_consume_batch(group):
    with pytest.raises(Boom), group.member() as consumer:
        assert len(consumer.consume_batch(ALL, PATIENCE)) == ALL
        assert len(consumer.consume_batch(7, PATIENCE)) == 7
        raise Boom
    assert group.committed() == ALL


def test_iteration(group):
    with pytest.raises(Boom), group.member() as consumer:
        for message in consumer:
            if message.offset() == ALL:
                raise Boom
    assert group.committed() == ALL


def test_ctrl_c_while_a_record_is_processed(one):
    with pytest.raises(KeyboardInterrupt), one.member() as consumer:
        for message in consumer:
            if message.offset() == ALL:
                raise KeyboardInterrupt
    assert one.committed() == ALL


def test_a_generator_that_is_not_exhausted(one):
    """GeneratorExit: whoever took the record may have stopped because of it."""
    def read():
        with one.member() as consumer:
            for message in consumer:  # noqa: UP028 (`yield from` would itself close the consumer, before its block ends)
                yield message

    source = read()
    assert [next(source).offset() for _ in range(ALL + 1)][-1] == ALL
    source.close()
    assert one.committed() == ALL


def test_an_exception_of_the_call_itself_leaves_nothing_in_hand(one):
    """The records returned before the call that raised have been processed."""
    with pytest.raises(Boom), one.member() as consumer:
        drain(consumer, ALL)
        consumer.pause(consumer.assignment())
        assert consumer.poll(0) is None
        raise Boom
    assert one.committed() == ALL
    with pytest.raises(WakeupError), one.member() as consumer:
        assert consumer.poll(PATIENCE).offset() == ALL
        consumer.wakeup()
        consumer.poll(PATIENCE)
    assert one.committed() == ALL + 1


def test_a_block_that_ends_by_itself_commits_all(one):
    with one.member() as consumer:
        drain(consumer, ALL)
    assert one.committed() == ALL


def test_close_commits_all(one):
    consumer = one.member()
    drain(consumer, ALL)
    consumer.close()
    assert one.committed() == ALL


def test_the_first_record_of_all(one):
    """The group stands before it, so that a restart with auto.offset.reset=latest does not pass it over."""
    with pytest.raises(Boom), one.member() as consumer:
        drain(consumer, 1)
        raise Boom
    assert one.committed() == 0


def test_several_partitions_in_one_list(one):
    with pytest.raises(Boom), one.member((0, 1)) as consumer:
        first = consumer.consume(COUNT + ALL, PATIENCE)
        second = consumer.consume(5, PATIENCE)
        assert len(first) == COUNT + ALL and len(second) == 5
        raise Boom
    taken = {p: sum(m.partition() == p for m in first) for p in (0, 1)}
    assert {p: one.committed(p) for p in (0, 1)} == taken


def test_a_batch_over_two_partitions(one):
    with pytest.raises(Boom), one.member((0, 1)) as consumer:
        taken = {0: 0, 1: 0}
        while (left := 2 * COUNT - 4 - sum(taken.values())) > 0:
            for message in consumer.consume_batch(left, PATIENCE):
                taken[message.partition()] += 1
        last = consumer.consume_batch(100, PATIENCE)
        assert len(last) == 4
        raise Boom
    assert {p: one.committed(p) for p in (0, 1)} == taken


def test_a_commit_by_the_application_is_not_replaced_at_the_end(one):
    with pytest.raises(Boom), one.member() as consumer:
        drain(consumer, ALL)
        taken = consumer.consume(5, PATIENCE)
        consumer.commit(message=taken[2])  # not waited for
        raise Boom
    assert one.committed() == ALL + 3
    with pytest.raises(Boom), one.member() as consumer:
        taken = consumer.consume(5, PATIENCE)
        assert taken[0].offset() == ALL + 3
        consumer.commit()
        raise Boom
    assert one.committed() == ALL + 8


def test_a_seek_in_the_loop_body_does_not_change_the_committed_offset(one):
    with one.member() as consumer:
        drain(consumer, ALL)
    with pytest.raises(Boom), one.member() as consumer:
        assert consumer.poll(PATIENCE).offset() == ALL
        consumer.seek(TopicPartition("t", 0, 2))
        raise Boom
    assert one.committed() == ALL


def test_offsets_that_are_stored_by_hand_are_committed(one):
    with pytest.raises(Boom), one.member(enable_auto_offset_store=False) as consumer:
        drain(consumer, ALL)
        taken = consumer.consume(5, PATIENCE)
        consumer.store_offsets(taken[1])
        raise Boom
    assert one.committed() == ALL + 2


def test_without_automatic_commits_nothing_is_committed(one):
    with pytest.raises(Boom), one.member(enable_auto_commit=False) as consumer:
        drain(consumer, ALL)
        raise Boom
    assert one.committed() == -1001


def test_commit_in_on_revoke_stops_there_too(cluster):
    group = Group(cluster, "classic")
    consumer = Consumer(settings(cluster, group_id=group.name, enable_auto_commit=False))
    consumer.subscribe(["t"], on_assign=lambda c, given: c.assign([p for p in given if p.partition == 0]),
                       on_revoke=lambda c, given: c.commit(asynchronous=False))
    with pytest.raises(Boom), consumer:
        drain(consumer, ALL + 1)
        raise Boom
    assert group.committed() == ALL


def test_a_close_that_is_refused_does_not_hold_back_the_next(one):
    consumer = one.member()
    drain(consumer, ALL)
    consumer.pause(consumer.assignment())
    before = consumer.metrics()["poll_waits_total"]
    waiting = threading.Thread(target=until_woken, args=(consumer,))
    waiting.start()
    try:
        until(lambda: consumer.metrics()["poll_waits_total"] > before)
        with pytest.raises(IllegalStateError), consumer:
            raise Boom
    finally:
        consumer.wakeup()
        waiting.join()
    consumer.resume(consumer.assignment())
    assert consumer.poll(PATIENCE).offset() == ALL
    consumer.close()
    assert one.committed() == ALL + 1


def until_woken(consumer):
    with pytest.raises(WakeupError):
        consumer.poll(None)

