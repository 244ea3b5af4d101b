"""Rebalances that the network thread carries out itself, because the application has no callback and no records of the
partitions in its hands; and how long a rebalance waits for an application that has.
"""

import consumer_group_loop
import pytest
from group_loop import HEARTBEAT, HEARTBEAT_MS, JOIN, OFFSET_COMMIT, POLL_MS, GroupLoop, inside_group, read_subscription
from stepped_loop import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, T1, records

from kconsumer import KafkaError, KafkaException, TopicPartition

REBALANCE, UNKNOWN_MEMBER = 27, 25
ALL = [("t", 0), ("t", 1), ("t", 2)]
LOST = KafkaError._ASSIGNMENT_LOST
WAIT_MS = 2000


class Quiet(GroupLoop):
    """A member without callbacks."""

    def subscribe(self, *topics, **then):
        self.consumer.subscribe(list(topics or ("t",)))
        self.turn()


class Named(GroupLoop):
    """A member with one callback."""

    def __init__(self, name, **settings):
        super().__init__(**settings)
        self.name = name

    def subscribe(self, *topics, **then):
        def callback(_, partitions):
            self.calls.append((self.name, [(p.topic, p.partition) for p in partitions]))

        self.consumer.subscribe(list(topics or ("t",)), **{self.name: callback})
        self.turn()


def begun(loop, partitions=None):
    """From nothing to STABLE, without a call of the application."""
    loop.begin()
    loop.joined()
    loop.synced({"t": [0, 1, 2]} if partitions is None else partitions)
    return loop


def reading(loop):
    """Records of partition 0 are fetched; no call has returned any."""
    loop.turn(2)
    loop.answer_committed()
    loop.turn(2)
    for request in loop.requests(LIST_OFFSETS):
        loop.answer_offsets(request, lambda topic, partition, timestamp: {"offset": 0})
    loop.turn(2)
    for request in loop.sent(FETCH):
        if ("t", 0) in loop.asked(request):
            loop.fetched(request, {0: {"records": records(0, 5)}}, turns=3)
    return loop


@pytest.fixture(params=["range", "cooperative-sticky"])
def quiet(request):
    return Quiet(partition_assignment_strategy=request.param)


def quiet_reader(**settings):
    return reading(begun(Quiet(**settings)))


# -- assigned


def test_partitions_are_assigned_and_fetched_without_a_call(quiet):
    begun(quiet)
    assert quiet.state == "STABLE"
    assert quiet.assigned == ALL
    reading(quiet)
    assert quiet.consumer.metrics()["fetch_buffer_records"] == 5
    assert [m.offset() for m in quiet.consumer.consume(9, 0)] == [0, 1, 2, 3, 4]


def test_on_revoke_alone_delays_no_assignment():
    loop = begun(Named("on_revoke"))
    assert (loop.state, loop.assigned, loop.calls) == ("STABLE", ALL, [])


def test_on_assign_is_waited_for():
    loop = begun(Named("on_assign"))
    assert (loop.state, loop.assigned) == ("ASSIGNING_PARTITIONS", [])
    loop.serve()
    assert (loop.state, loop.assigned, loop.calls) == ("STABLE", ALL, [("on_assign", ALL)])


def test_a_generation_that_takes_nothing_does_not_wait_for_on_assign():
    """on_assign runs in the next call, without partitions; meanwhile the group goes on."""
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky")
    loop.stable()
    loop.heartbeat(REBALANCE)
    loop.joined(leader="m2")
    loop.synced({"t": [0, 1, 2]})
    assert loop.state == "STABLE"
    loop.heartbeat(REBALANCE)
    assert loop.state == "JOINING"
    loop.serve()
    assert loop.calls == [("assign", ALL), ("assign", [])]


def test_an_on_assign_that_has_not_begun_does_not_delay_the_next_rebalance():
    loop = begun(GroupLoop())
    assert loop.state == "ASSIGNING_PARTITIONS"
    loop.heartbeat(REBALANCE)
    assert (loop.state, loop.calls) == ("JOINING", [])
    loop.joined()
    loop.synced({"t": [1]})
    loop.serve()
    assert (loop.calls, loop.assigned) == ([("assign", [("t", 1)])], [("t", 1)])


def test_an_on_assign_that_runs_is_waited_for():
    seen = []

    def assigning(consumer, partitions):
        loop.heartbeat(REBALANCE)
        loop.advance(1000)
        seen.append(loop.state)

    loop = GroupLoop()
    loop.begin(assign=assigning)
    loop.joined()
    loop.synced({"t": [0]})
    loop.serve()
    assert seen == ["ASSIGNING_PARTITIONS"]
    assert loop.calls == [("assign", [("t", 0)])]
    assert loop.state == "REVOKING_PARTITION"


# -- revoked


def test_partitions_without_records_in_hand_are_given_up_without_a_call():
    loop = quiet_reader()
    loop.heartbeat(REBALANCE)
    assert (loop.state, loop.assigned) == ("JOINING", [])
    assert read_subscription(loop.the(JOIN)["body"]["protocols"][0]["metadata"])["owned"] == {}
    loop.joined()
    loop.synced({"t": [1]})
    assert (loop.state, loop.assigned) == ("STABLE", [("t", 1)])
    assert loop.consumer.consume(9, 0) == []  # the buffered records of t [0]


def test_a_call_that_waits_has_nothing_in_hand():
    loop = quiet_reader()
    assert len(loop.consumer.consume(5, 0)) == 5
    assert loop.consumer.consume(5, 0) == []
    loop.heartbeat(REBALANCE)
    assert loop.commits() == [("t", 0, 5)]
    assert (loop.state, loop.assigned) == ("JOINING", [])


TAKES = {
    "poll": lambda c: [c.poll(0) for _ in range(5)],
    "consume": lambda c: c.consume(5, 0),
    "consume_batch": lambda c: c.consume_batch(5, 0),
    "iteration": lambda c: [next(c) for _ in range(5)],
}


@pytest.mark.parametrize("take", TAKES)
def test_records_in_hand_are_waited_for(take):
    loop = quiet_reader()
    TAKES[take](loop.consumer)
    loop.heartbeat(REBALANCE)
    loop.advance(20_000)
    assert (loop.state, loop.assigned) == ("REVOKING_PARTITION", ALL)
    loop.serve()
    assert loop.commits() == [("t", 0, 5)]
    assert (loop.state, loop.assigned) == ("JOINING", [])


@pytest.mark.parametrize("call", [
    lambda c: c.commit(), lambda c: c.position([TopicPartition("t", 0)]), lambda c: c.seek(TopicPartition("t", 0, 1)),
    lambda c: c.pause([TopicPartition("t", 0)]),
], ids=["commit", "position", "seek", "pause"])
def test_calls_in_the_middle_of_the_work_put_nothing_down(call):
    loop = quiet_reader()
    loop.consumer.consume(5, 0)
    call(loop.consumer)
    loop.turn(2)
    loop.heartbeat(REBALANCE)
    assert loop.state == "REVOKING_PARTITION"


def test_a_seek_does_not_fetch_a_partition_that_is_being_revoked():
    loop = quiet_reader()
    loop.consumer.consume(5, 0)
    loop.heartbeat(REBALANCE)
    assert inside_group.revoking(loop.consumer) == ALL
    loop.consumer.seek(TopicPartition("t", 0, 1))
    loop.turn(3)
    assert inside_group.revoking(loop.consumer) == ALL
    assert not any(loop.asked(request).get(("t", 0)) == 1 for request in loop.sent(FETCH))


@pytest.mark.parametrize("name", ["on_revoke", "on_lost"])
def test_a_callback_is_waited_for(name):
    loop = reading(begun(Named(name)))
    loop.heartbeat(REBALANCE)
    assert loop.state == "REVOKING_PARTITION"
    loop.serve()
    assert loop.calls == ([("on_revoke", ALL)] if name == "on_revoke" else [])
    assert loop.state == "JOINING"


def test_without_automatic_commits_nothing_is_committed():
    loop = quiet_reader(enable_auto_commit=False)
    loop.consumer.consume(5, 0)
    loop.consumer.consume(5, 0)
    loop.heartbeat(REBALANCE)
    assert loop.sent(OFFSET_COMMIT) == []
    assert loop.state == "JOINING"


def test_stored_offsets_are_committed_first():
    loop = quiet_reader(enable_auto_offset_store=False)
    loop.consumer.consume(5, 0)
    loop.consumer.consume(5, 0)
    loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 3)])
    loop.heartbeat(REBALANCE)
    assert loop.state == "PARTITION_REVOKED"
    assert loop.commits() == [("t", 0, 3)]
    assert loop.state == "JOINING"


def test_a_commit_for_a_partition_that_was_given_up_says_so():
    results = []
    loop = quiet_reader(enable_auto_commit=False, on_commit=lambda error, partitions: results.append(error))
    loop.consumer.consume(5, 0)
    loop.consumer.consume(5, 0)
    loop.heartbeat(REBALANCE)
    loop.joined()
    loop.synced({"t": [1]})
    loop.consumer.commit(offsets=[TopicPartition("t", 0, 5)])
    loop.turn(2)
    assert loop.sent(OFFSET_COMMIT) == []
    loop.consumer.poll(0)
    (error,) = results
    assert error.code() == LOST
    assert "t [0]: cannot commit offset 5: the partition was given up in a rebalance" in error.str()


def test_a_partition_that_is_assigned_again_can_be_committed():
    loop = quiet_reader(enable_auto_commit=False)
    loop.heartbeat(REBALANCE)
    loop.joined()
    loop.synced({"t": [0, 1]})
    loop.consumer.commit(offsets=[TopicPartition("t", 0, 5)])
    loop.turn(2)
    assert loop.commits() == [("t", 0, 5)]


def test_a_record_of_a_former_assignment_is_still_in_hand():
    """The group takes and gives the partition back while the application works on its record."""
    loop = quiet_reader(rebalance_application_wait_ms=WAIT_MS)
    loop.consumer.consume(5, 0)
    loop.heartbeat(REBALANCE)
    loop.advance(WAIT_MS)
    assert loop.commits() == [("t", 0, 0)]
    loop.joined()
    loop.synced({"t": [0, 1, 2]})
    assert loop.state == "STABLE"
    loop.heartbeat(REBALANCE)
    assert loop.state == "REVOKING_PARTITION"


# -- lost


def test_lost_partitions_do_not_wait_for_the_application():
    loop = quiet_reader()
    loop.consumer.consume(2, 0)
    loop.heartbeat(UNKNOWN_MEMBER)
    assert (loop.state, loop.assigned) == ("JOINING", [])
    assert loop.consumer.consume(5, 0) == []
    assert loop.sent(OFFSET_COMMIT) == []


# -- the wait for the application


def late(**settings):
    loop = reading(begun(GroupLoop(rebalance_application_wait_ms=WAIT_MS, **settings)))
    loop.serve()
    return reading(loop)


@pytest.mark.parametrize(("take", "processed"), [("poll", 4), ("consume", 0), ("consume_batch", 0)])
def test_after_the_wait_partitions_are_given_up_and_processed_records_are_committed(take, processed):
    loop = quiet_reader(rebalance_application_wait_ms=WAIT_MS)
    TAKES[take](loop.consumer)
    loop.heartbeat(REBALANCE)
    loop.advance(WAIT_MS - 1)
    assert (loop.state, loop.assigned) == ("REVOKING_PARTITION", ALL)
    loop.advance(1)
    assert loop.assigned == []
    assert loop.commits() == [("t", 0, processed)]
    assert loop.state == "JOINING"
    assert loop.consumer.consume(5, 0) == []


def test_after_the_wait_the_callback_of_lost_partitions_runs():
    loop = late()
    loop.consumer.consume(5, 0)
    loop.heartbeat(REBALANCE)
    loop.advance(WAIT_MS)
    assert loop.commits() == [("t", 0, 0)]
    loop.joined()
    loop.synced({"t": [1]})
    loop.serve()
    assert loop.calls == [("assign", ALL), ("lost", ALL), ("assign", [("t", 1)])]
    assert loop.assigned == [("t", 1)]


def test_a_callback_that_runs_is_waited_for_beyond_the_wait():
    seen = []

    def revoking(consumer, partitions):
        loop.advance(10 * WAIT_MS)
        seen.append((loop.state, loop.assigned))

    loop = GroupLoop(rebalance_application_wait_ms=WAIT_MS)
    loop.stable(revoke=revoking)
    loop.heartbeat(REBALANCE)
    loop.serve()
    assert seen == [("REVOKING_PARTITION", ALL)]
    assert loop.state == "JOINING"


# -- the time limit of a revocation


def test_a_revocation_has_one_time_limit_for_its_callback_and_its_commits():
    """The coordinator waits for the rebalance timeout, max.poll.interval.ms, and counts from the beginning."""
    loop = GroupLoop()
    loop.stable()
    loop.read(0, 5)
    loop.advance(HEARTBEAT_MS)
    loop.refuse(HEARTBEAT, REBALANCE)
    for _ in range((POLL_MS - 1000) // HEARTBEAT_MS):
        loop.heartbeat(REBALANCE)
    loop.advance((POLL_MS - 1000) % HEARTBEAT_MS)
    loop.serve()  # on_revoke: its commit has a second left
    assert loop.state == "PARTITION_REVOKED"
    loop.advance(1000)
    assert loop.state == "STALE"
    found = [loop.consumer.poll(0) for _ in range(3)]
    assert KafkaError._MAX_POLL_EXCEEDED in [m.error().code() for m in found if m is not None]


def test_an_acknowledgement_after_the_time_limit_commits_nothing():
    results, seen = [], []

    def revoking(consumer, partitions):
        loop.advance(POLL_MS)
        seen.append(loop.state)

    loop = GroupLoop(on_commit=lambda error, partitions: results.append(error and error.code()))
    loop.stable(revoke=revoking)
    loop.read(0, 5)
    loop.heartbeat(REBALANCE)
    loop.serve()
    assert seen == ["STALE"]
    assert loop.sent(OFFSET_COMMIT) == []
    loop.serve()
    assert ("lost", []) in loop.calls or loop.assigned == []
    assert all(code is not None for code in results)


# -- subscribe() again


def test_rows_of_a_topic_that_is_not_subscribed_any_more_are_not_returned():
    loop = GroupLoop()
    loop.stable()
    loop.read(0, 2)
    for request in loop.sent(FETCH):
        if ("t", 0) in loop.asked(request):
            loop.fetched(request, {0: {"records": records(2, 5)}}, turns=3)
    assert loop.consumer.metrics()["fetch_buffer_records"] == 3
    loop.consumer.subscribe(["u"], on_revoke=lambda *_: None)
    assert loop.consumer.consume(9, 0) == []


# -- the consumer protocol


@pytest.fixture
def member():
    class QuietMember(consumer_group_loop.Member):
        def subscribe(self, *topics):
            self.consumer.subscribe(list(topics))
            self.turn()

    loop = QuietMember()
    loop.join("t", assignment={T1: [0, 1]})
    return loop


def member_reads(loop):
    loop.turn(2)
    for request in loop.requests(LIST_OFFSETS):
        loop.answer_offsets(request, lambda topic, partition, timestamp: {"offset": 0})
    loop.turn(2)
    for request in loop.requests(FETCH):
        if ("t", 0) in loop.asked(request):
            loop.fetched(request, {0: {"records": records(0, 5)}}, turns=3)


def test_the_consumer_protocol_takes_and_gives_without_a_call(member):
    assert member.assigned == [("t", 0), ("t", 1)]
    member_reads(member)
    member.advance(consumer_group_loop.INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T1: [1]})
    assert member.assigned == [("t", 1)]
    assert consumer_group_loop.owned(member.beat()) == {T1: [1]}
    assert member.consumer.consume(9, 0) == []


def test_the_consumer_protocol_waits_for_records_in_hand(member):
    member_reads(member)
    assert len(member.consumer.consume(5, 0)) == 5
    member.advance(consumer_group_loop.INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T1: [1]})
    assert member.assigned == [("t", 0), ("t", 1)]
    member.reconcile()
    assert member.assigned == [("t", 1)]


def test_the_consumer_protocol_hides_a_topic_that_is_not_subscribed_any_more(member):
    member_reads(member)
    assert [m.offset() for m in member.consumer.consume(2, 0)] == [0, 1]
    member.consumer.subscribe(["u"])
    assert member.consumer.consume(9, 0) == []
    member.consumer.subscribe(["t"])
    member.turn(2)
    member.answer_end_offsets(member.one(OFFSET_FOR_LEADER_EPOCH))
    member.turn(2)
    for _ in range(2):  # the Fetch that was in flight, then the one that asks for the partition again
        for request in member.requests(FETCH, 1):
            member.fetched(request, {0: {"records": records(0, 5)}} if ("t", 0) in member.asked(request) else {},
                           turns=3)
    assert [m.offset() for m in member.consumer.consume(9, 0)] == [2, 3, 4]


# -- nothing of a call that fails is in hand


def test_a_call_that_raises_has_nothing_in_hand():
    loop = quiet_reader()
    loop.consumer.wakeup()
    with pytest.raises(KafkaException):
        loop.consumer.consume(5, 0)
    loop.heartbeat(REBALANCE)
    assert loop.state == "JOINING"


def test_on_lost_runs_in_close_for_partitions_that_were_given_up():
    loop = late()
    loop.consumer.consume(5, 0)
    loop.heartbeat(REBALANCE)
    loop.advance(WAIT_MS)
    loop.consumer._pass_time = lambda: loop.advance(1000) or True
    loop.consumer.close(0)
    assert loop.calls == [("assign", ALL), ("lost", ALL)]


def test_putting_down_one_partition_keeps_the_records_of_another_in_hand():
    """1. A call returns records of two partitions. 2. The next call returns more of one of them."""
    loop = begun(Quiet())
    loop.turn(2)
    loop.answer_committed()
    loop.turn(2)
    for request in loop.requests(LIST_OFFSETS):
        loop.answer_offsets(request, lambda topic, partition, timestamp: {"offset": 0})
    loop.turn(2)
    for request in loop.requests(FETCH, 1):
        loop.fetched(request, {0: {"records": records(0, 5)}, 1: {"records": records(0, 5)}}, turns=3)
    assert len({m.partition() for m in loop.consumer.consume(7, 0)}) == 2
    assert len({m.partition() for m in loop.consumer.consume(2, 0)}) == 1
    loop.heartbeat(REBALANCE)
    assert loop.state == "REVOKING_PARTITION"
