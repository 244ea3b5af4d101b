"""GroupCore and GroupConsumer: the application's side of rebalances and commits, without a network thread."""

import pytest
from stepped_loop import FETCH, Loop, inside, records

from kconsumer import InvalidArgumentError, KafkaError, KafkaException, Message, TopicPartition
from tests.core import inside as group


class Boom(Exception):
    """The exception that a callback raises."""


@pytest.fixture
def member():
    """A subscribed consumer of group "g" that the loop does not run unless a test says so."""
    return make()


def make(**settings):
    loop = Loop(group_id="g", **settings)
    loop.calls = []
    subscribe(loop)
    return loop


def subscribe(loop, assign=None, revoke=None, lost=None):
    def recorder(name, then):
        def callback(consumer, partitions):
            assert consumer is loop.consumer
            loop.calls.append((name, [(p.topic, p.partition) for p in partitions]))
            if then is not None:
                then(consumer, partitions)
        return callback
    loop.consumer.subscribe(["t"], recorder("assign", assign), recorder("revoke", revoke),
                            recorder("lost", lost) if lost is not False else None)
    group.posted(loop.consumer)


def assigned(loop):
    return [(p.topic, p.partition) for p in loop.consumer.assignment()]


def give(loop, *numbers, id=1, eager=False):
    group.push(loop.consumer, "assign", id, [("t", n) for n in numbers], eager=eager)
    assert loop.poll() is None
    return group.posted(loop.consumer)


def read(loop, number=0, first=0, end=3):
    """Puts records of a partition before the application. The group's managers play no part."""
    loop.consumer.seek(TopicPartition("t", number, first))
    loop.turn()
    while loop.requests(3):
        loop.answer_metadata()
    loop.turn()
    for request in loop.requests(FETCH):
        if ("t", number) in loop.asked(request):
            loop.fetched(request, {number: {"records": records(first, end)}}, turns=0)
    loop.turn(3)


# -- callbacks


def test_an_assignment_is_made_and_acknowledged(member):
    assert give(member, 0, 1) == [("ack", "assign", 1, [], [("t", 0), ("t", 1)])]
    assert member.calls == [("assign", [("t", 0), ("t", 1)])]
    assert assigned(member) == [("t", 0), ("t", 1)]


def test_incremental_assignments_add_up(member):
    give(member, 0)
    assert give(member, 2, id=2) == [("ack", "assign", 2, [], [("t", 0), ("t", 2)])]
    assert assigned(member) == [("t", 0), ("t", 2)]


def test_an_eager_assignment_replaces(member):
    give(member, 0, eager=True)
    assert give(member, 1, id=2, eager=True) == [("ack", "assign", 2, [], [("t", 1)])]
    assert assigned(member) == [("t", 1)]


def test_a_callback_may_assign_a_subset_at_offsets(member):
    subscribe(member, assign=lambda c, parts: c.assign([TopicPartition("t", 1, 42)]))
    assert give(member, 0, 1, eager=True) == [("ack", "assign", 1, [], [("t", 1)])]
    assert [(p.partition, p.offset) for p in member.consumer.assignment()] == [(1, 42)]


def test_a_callback_may_assign_nothing(member):
    subscribe(member, assign=lambda c, parts: c.assign([]))
    assert give(member, 0, 1, eager=True) == [("ack", "assign", 1, [], [])]
    assert assigned(member) == []


def test_a_revocation_acknowledges_the_remaining_assignment(member):
    give(member, 0, 1)
    read(member, 0, 0, 3)
    assert [m.offset() for m in member.consumer.consume(2, 0)] == [0, 1]
    group.posted(member.consumer)
    group.push(member.consumer, "revoke", 2, [("t", 0)])
    assert member.poll() is None
    assert group.posted(member.consumer) == [("ack", "revoke", 2, [("t", 0, 2, 0, "", 0)], [])]
    assert member.calls[-1] == ("revoke", [("t", 0)])
    assert assigned(member) == [("t", 1)]


def test_nothing_of_a_revoked_partition_is_returned_after_the_callback(member):
    give(member, 0)
    read(member, 0, 0, 3)
    assert member.poll().offset() == 0
    group.push(member.consumer, "revoke", 2, [("t", 0)])
    assert member.poll() is None
    assert member.offsets() == []


def test_a_committed_position_is_not_committed_again_at_a_revocation(member):
    give(member, 0)
    read(member, 0, 0, 3)
    member.offsets()
    group.committed(member.consumer, "t", 0, 3)
    group.push(member.consumer, "revoke", 2, [("t", 0)])
    member.poll()
    assert group.posted(member.consumer)[-1] == ("ack", "revoke", 2, [], [])


def test_lost_partitions_go_without_a_commit(member):
    give(member, 0, 1)
    group.push(member.consumer, "lost", 2)
    assert member.poll() is None
    assert group.posted(member.consumer) == [("ack", "lost", 2, [], [])]
    assert member.calls[-1] == ("lost", [("t", 0), ("t", 1)])
    assert assigned(member) == []


def test_on_revoke_stands_in_for_on_lost(member):
    subscribe(member, lost=False)
    give(member, 0)
    group.push(member.consumer, "lost", 2)
    member.poll()
    assert member.calls[-1] == ("revoke", [("t", 0)])


def test_lost_is_acknowledged_where_nothing_was_held(member):
    group.push(member.consumer, "lost", 5)
    assert member.poll() is None
    assert group.posted(member.consumer) == [("ack", "lost", 5, [], [])]
    assert member.calls == []


def test_a_queued_revocation_becomes_a_loss_when_the_member_is_fenced(member):
    give(member, 0, 1)
    group.push(member.consumer, "revoke", 2, [("t", 0)])
    group.lose(member.consumer, 2)
    group.push(member.consumer, "lost", 3)
    member.poll()
    assert member.calls[1:] == [("lost", [("t", 0), ("t", 1)])]
    assert group.posted(member.consumer) == [("ack", "lost", 3, [], [])]


def test_an_assignment_queued_before_a_fence_is_skipped(member):
    group.push(member.consumer, "assign", 1, [("t", 0)])
    group.lose(member.consumer, 1)
    assert member.poll() is None
    assert member.calls == []
    assert assigned(member) == []


@pytest.mark.parametrize("kind", ["assign", "revoke", "lost"])
def test_a_callback_that_raises(member, kind):
    """The exception leaves poll() unchanged, and the rebalance goes on."""
    def boom(consumer, partitions):
        raise Boom(kind)
    if kind != "assign":
        give(member, 0)
    subscribe(member, boom, boom, boom)
    group.push(member.consumer, kind, 2, [("t", 0)])
    with pytest.raises(Boom, match=kind):
        member.poll()
    (ack,) = group.posted(member.consumer)
    assert ack[:3] == ("ack", kind, 2)
    assert assigned(member) == ([("t", 0)] if kind == "assign" else [])
    assert member.poll() is None


def test_events_after_one_that_raises_come_at_the_next_call(member):
    def boom(consumer, partitions):
        raise Boom
    subscribe(member, assign=boom)
    group.push(member.consumer, "assign", 1, [("t", 0)])
    group.push(member.consumer, "revoke", 2, [("t", 0)])
    with pytest.raises(Boom):
        member.poll()
    assert member.poll() is None
    assert [call[0] for call in member.calls] == ["assign", "revoke"]


def test_callbacks_run_only_in_exclusive_calls(member):
    group.push(member.consumer, "assign", 1, [("t", 0)])
    member.consumer._serve()
    member.consumer.position([TopicPartition("t", 0)])
    assert member.calls == []


def test_exclusive_calls_are_refused_in_a_callback(member):
    refused = []

    def callback(consumer, partitions):
        for call in (lambda: consumer.poll(0), lambda: consumer.consume(1, 0), lambda: consumer.consume_batch(1, 0),
                     consumer.close):
            with pytest.raises(KafkaException) as raised:
                call()
            refused.append(raised.value.args[0].code())
    subscribe(member, assign=callback)
    give(member, 0)
    assert refused == [KafkaError._STATE] * 4
    assert assigned(member) == [("t", 0)]


def test_a_callback_calls_back_into_the_consumer(member):
    def callback(consumer, partitions):
        consumer.incremental_assign(partitions)
        consumer.seek(TopicPartition("t", 0, 7))
        consumer.pause(partitions)
        consumer.commit(offsets=[TopicPartition("t", 0, 5)])
        assert consumer.position(partitions)[0].offset == -1001
    subscribe(member, assign=callback)
    found = give(member, 0)
    assert found == [("commit", [("t", 0, 5, -1, "", 0)], False, False, False),
                     ("ack", "assign", 1, [], [("t", 0)])]


def test_consume_returns_short_before_a_rebalance():
    """Records in hand are returned first; the callback runs at the next entry."""
    loop = make(error_cb=lambda error: group.push(loop.consumer, "revoke", 2, [("t", 0)]))
    give(loop, 0)
    read(loop, 0, 0, 3)
    inside.add_error(loop.consumer, KafkaError._TRANSPORT)
    assert loop.offsets() == [0, 1, 2]
    assert loop.calls[-1][0] == "assign"
    assert loop.offsets() == []
    assert loop.calls[-1] == ("revoke", [("t", 0)])


def test_a_fatal_error_is_kept_when_the_queue_is_full():
    """10,000 events wait: news that later news replaces is dropped, the end of the consumer is not."""
    loop = Loop()
    for _ in range(10_001):
        inside.add_error(loop.consumer, KafkaError._TRANSPORT)
    inside.add_error(loop.consumer, KafkaError.FENCED_INSTANCE_ID, fatal=True)
    message = loop.poll()
    assert len(loop.errors) == 10_001
    assert message.error().fatal()
    assert message.error().cause == loop.errors[-1].cause == KafkaError.FENCED_INSTANCE_ID


def test_a_wakeup_in_a_rebalance_loses_nothing(member):
    give(member, 0)
    group.push(member.consumer, "revoke", 2, [("t", 0)])
    member.consumer.wakeup()
    with pytest.raises(KafkaException):
        member.poll()
    assert member.calls[-1][0] == "assign"
    assert member.poll() is None
    assert member.calls[-1] == ("revoke", [("t", 0)])


# -- errors of the group


def test_group_errors_come_from_poll_once(member):
    group.push(member.consumer, "error", code=KafkaError._MAX_POLL_EXCEEDED, detail="exceeded")
    message = member.poll()
    assert message.error().code() == KafkaError._MAX_POLL_EXCEEDED
    assert message.topic() is None
    assert member.poll() is None


def test_group_errors_come_from_consume(member):
    group.push(member.consumer, "error", code=KafkaError._MAX_POLL_EXCEEDED)
    assert member.offsets() == [("error", KafkaError._MAX_POLL_EXCEEDED)]
    assert member.offsets() == []


def test_group_errors_are_raised_by_consume_batch(member):
    group.push(member.consumer, "error", code=KafkaError._MAX_POLL_EXCEEDED)
    with pytest.raises(KafkaException) as raised:
        member.consumer.consume_batch(1, 0)
    assert raised.value.args[0].code() == KafkaError._MAX_POLL_EXCEEDED
    assert len(member.consumer.consume_batch(1, 0)) == 0


# -- subscription


def test_subscribe_separates_names_and_patterns(member):
    member.consumer.subscribe(["b", "^x.*", "a"])
    assert group.posted(member.consumer) == [("subscribe", ["a", "b"], ["^x.*"], 0)]


@pytest.mark.parametrize("topics", ["t", b"t", None, 5, [1], (None,)])
def test_subscribe_wants_a_list_of_names(member, topics):
    with pytest.raises(TypeError):
        member.consumer.subscribe(topics)


@pytest.mark.parametrize("kind", [tuple, set, iter])
def test_subscribe_takes_any_iterable(member, kind):
    member.consumer.subscribe(kind(["b", "a"]))
    assert group.posted(member.consumer) == [("subscribe", ["a", "b"], [], 0)]
    assert sorted(member.consumer.subscription()) == ["a", "b"]


@pytest.mark.parametrize("topics", [[], [""], ["t", "t"], ["^x", "t", "^x"]])
def test_subscribe_refuses_nothing_and_a_name_twice(member, topics):
    with pytest.raises(KafkaException) as raised:
        member.consumer.subscribe(topics)
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG
    assert group.posted(member.consumer) == []
    assert member.consumer.subscription() == ["t"]


def test_subscription_is_that_of_the_latest_subscribe(member):
    assert member.consumer.subscription() == ["t"]
    member.consumer.subscribe(["b", "^x.*", "a"])
    assert member.consumer.subscription() == ["b", "^x.*", "a"]
    member.consumer.unsubscribe()
    assert member.consumer.subscription() == []
    assert Loop().consumer.subscription() == []


def test_paused_returns_the_assigned_partitions_that_are_paused(member):
    give(member, 2, 0, 1)
    member.consumer.pause([TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("t", 9)])
    assert sorted(p.partition for p in member.consumer.paused()) == [0, 2]
    member.consumer.resume([TopicPartition("t", 2)])
    assert member.consumer.paused() == [TopicPartition("t", 0)]
    member.consumer.unassign()
    assert member.consumer.paused() == []


@pytest.mark.parametrize("name", ["on_assign", "on_revoke", "on_lost"])
def test_callbacks_must_be_callable(member, name):
    with pytest.raises(TypeError, match=name):
        member.consumer.subscribe(["t"], **{name: 1})


def test_without_a_group_there_is_no_subscription():
    loop = Loop()
    for call in (lambda c: c.subscribe(["t"]), lambda c: c.commit(), lambda c: c.committed([TopicPartition("t", 0)])):
        with pytest.raises(KafkaException) as raised:
            call(loop.consumer)
        assert raised.value.args[0].code() == KafkaError._STATE
        assert raised.value.args[0].str() == "group.id is not set: set it to subscribe or commit, or use assign()"


def test_unsubscribe_revokes_commits_and_leaves(member):
    give(member, 0)
    read(member, 0, 0, 3)
    member.offsets()
    group.posted(member.consumer)
    member.consumer.unsubscribe()
    assert member.calls[-1] == ("revoke", [("t", 0)])
    assert group.posted(member.consumer) == [("leave callback",), ("leave", [("t", 0, 3, 0, "", 0)], 1, False)]
    assert assigned(member) == []
    member.consumer.unsubscribe()
    assert group.posted(member.consumer) == []


def test_rebalances_of_an_ended_subscription_are_dropped(member):
    group.push(member.consumer, "assign", 1, [("t", 0)])
    member.consumer.unsubscribe()
    subscribe(member)
    group.push(member.consumer, "assign", 2, [("t", 1)], epoch=0)
    group.push(member.consumer, "assign", 3, [("t", 2)], epoch=1)
    assert member.poll() is None
    assert member.calls == [("assign", [("t", 2)])]


def test_unsubscribing_a_fenced_member_is_a_loss_and_commits_nothing(member):
    give(member, 0)
    read(member, 0, 0, 3)
    member.offsets()
    group.posted(member.consumer)
    group.push(member.consumer, "lost", 2)
    member.consumer.unsubscribe()
    assert member.calls[-1] == ("lost", [("t", 0)])
    assert group.posted(member.consumer) == [("leave callback",), ("leave", [], 1, False)]


def test_unsubscribe_in_a_callback(member):
    subscribe(member, assign=lambda c, parts: c.unsubscribe())
    group.push(member.consumer, "assign", 1, [("t", 0)])
    assert member.poll() is None
    assert [event[0] for event in group.posted(member.consumer)] == ["leave", "ack"]


def takes(loop, kind, *partitions):
    """Has its records returned, then takes partitions from the member. Returns what it posts."""
    loop.offsets()
    group.push(loop.consumer, kind, 2, list(partitions))
    group.posted(loop.consumer)
    assert loop.poll() is None
    return group.posted(loop.consumer)


@pytest.mark.parametrize("unassign", [lambda c: None, lambda c: c.unassign(), lambda c: c.assign([])])
def test_unsubscribe_in_on_revoke_commits_what_the_callback_has_unassigned(member, unassign):
    def on_revoke(consumer, partitions):
        unassign(consumer)
        consumer.unsubscribe()
    subscribe(member, revoke=on_revoke)
    give(member, 0)
    read(member, 0, 0, 3)
    assert ("leave", [("t", 0, 3, 0, "", 0)], 1, False) in takes(member, "revoke", ("t", 0))


@pytest.mark.parametrize("ends", [False, True])
def test_a_partition_that_on_revoke_unassigns_besides_its_own_is_committed(member, ends):
    def on_revoke(consumer, partitions):
        consumer.incremental_unassign([TopicPartition("t", 1)])
        if ends:
            consumer.unsubscribe()
    subscribe(member, revoke=on_revoke)
    give(member, 0, 1, 2)
    read(member, 1, 0, 3)
    offsets = [event[1 if ends else 3] for event in takes(member, "revoke", ("t", 0))
               if event[0] == ("leave" if ends else "ack")]
    assert offsets == [[("t", 1, 3, 0, "", 0)]]


def test_a_commit_that_unsubscribe_in_on_revoke_has_made_is_not_made_again(member):
    subscribe(member, revoke=lambda consumer, partitions: consumer.unsubscribe())
    give(member, 0)
    read(member, 0, 0, 3)
    assert takes(member, "revoke", ("t", 0)) == [
        ("leave", [("t", 0, 3, 0, "", 0)], 1, False), ("ack", "revoke", 2, [], [])]


def test_unsubscribe_in_on_lost_commits_nothing(member):
    subscribe(member, lost=lambda c, parts: c.unsubscribe())
    give(member, 0)
    read(member, 0, 0, 3)
    assert ("leave", [], 1, False) in takes(member, "lost")


def test_close_revokes_and_leaves(member):
    give(member, 0)
    member.consumer.close(0.2)
    assert member.calls[-1] == ("revoke", [("t", 0)])


def test_close_raises_the_exception_of_a_callback_at_its_end(member):
    def boom(consumer, partitions):
        raise Boom
    give(member, 0)
    subscribe(member, revoke=boom)
    with pytest.raises(Boom):
        member.consumer.close(0.2)
    with pytest.raises(RuntimeError):
        member.consumer.poll(0)


# -- assignments outside of callbacks


def test_assign_is_refused_under_the_cooperative_protocol():
    loop = make(partition_assignment_strategy="cooperative-sticky")
    group.identify(loop.consumer, "member-1", 3)
    for call in (loop.consumer.assign, lambda parts: loop.consumer.unassign()):
        with pytest.raises(KafkaException) as raised:
            call([TopicPartition("t", 0)])
        assert raised.value.args[0].code() == KafkaError._STATE
    assert loop.consumer.rebalance_protocol() == "COOPERATIVE"


def test_incremental_calls_are_refused_under_the_eager_protocol(member):
    group.identify(member.consumer, "member-1", 3)
    for call in (member.consumer.incremental_assign, member.consumer.incremental_unassign):
        with pytest.raises(KafkaException) as raised:
            call([TopicPartition("t", 0)])
        assert raised.value.args[0].code() == KafkaError._STATE
    assert member.consumer.rebalance_protocol() == "EAGER"


def test_assigning_an_owned_partition_again_is_a_conflict(member):
    give(member, 0)
    with pytest.raises(KafkaException) as raised:
        member.consumer.incremental_assign([TopicPartition("t", 0)])
    assert raised.value.args[0].code() == KafkaError._CONFLICT


# -- who it is


def test_identity(member):
    assert member.consumer.memberid() is None
    assert member.consumer.rebalance_protocol() == "NONE"
    group.identify(member.consumer, "member-1", 3)
    assert member.consumer.memberid() == "member-1"
    assert member.consumer.consumer_group_metadata() == b"CGMDv2:" + b"\3\0\0\0" + b"g\0member-1\0\1"


@pytest.mark.parametrize(("member_id", "more"), [("m", {"group_id": "größe"}), ("m", {"group_id": "a\tb"}),
                                                  ("mé", {}), ("m", {"group_instance_id": "é"})])
def test_a_transaction_refuses_names_that_the_producer_refuses(member_id, more):
    loop = Loop(**{"group_id": "g", **more})
    group.identify(loop.consumer, member_id, 1)
    with pytest.raises(InvalidArgumentError, match="printable ASCII"):
        loop.consumer.consumer_group_metadata()


def test_identity_of_a_static_member():
    loop = make(group_instance_id="i-1")
    group.identify(loop.consumer, "m", -1)
    assert loop.consumer.consumer_group_metadata() == b"CGMDv2:" + b"\xff" * 4 + b"g\0m\0\0i-1\0"


# -- offsets


def test_commit_without_arguments_commits_the_returned_records(member):
    give(member, 0)
    read(member, 0, 0, 3)
    member.poll()
    group.posted(member.consumer)
    member.consumer.commit()
    assert group.posted(member.consumer) == [("commit", [("t", 0, 1, 0, "", 0)], False, False, False)]


def test_commit_of_a_message(member):
    give(member, 0)
    read(member, 0, 0, 3)
    message = member.poll()
    group.posted(member.consumer)
    member.consumer.commit(message)
    assert group.posted(member.consumer) == [("commit", [("t", 0, 1, 0, "", 0)], False, False, False)]


def test_commit_of_a_batch(member):
    give(member, 0)
    read(member, 0, 0, 3)
    found = member.consumer.consume_batch(10, 0)
    group.posted(member.consumer)
    member.consumer.commit(found)
    assert group.posted(member.consumer) == [("commit", [("t", 0, 3, -1, "", 0)], False, False, False)]


def test_commit_refuses_both_and_neither(member):
    with pytest.raises(ValueError):
        member.consumer.commit(message=object(), offsets=[])
    with pytest.raises(TypeError):
        member.consumer.commit(message=object())
    with pytest.raises(ValueError):
        member.consumer.store_offsets()


def test_stored_offsets_with_their_metadata_are_committed():
    loop = make(enable_auto_offset_store=False)
    give(loop, 0)
    read(loop, 0, 0, 3)
    loop.offsets()
    group.posted(loop.consumer)
    loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 2, metadata="half")])
    loop.consumer.commit()
    assert group.posted(loop.consumer) == [("commit", [("t", 0, 2, -1, "half", 0)], False, False, False)]


def test_a_seek_drops_the_stored_offset():
    loop = make(enable_auto_offset_store=False)
    give(loop, 0)
    loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 2)])
    loop.consumer.seek(TopicPartition("t", 0, 0))
    group.posted(loop.consumer)
    loop.consumer.commit()
    assert group.posted(loop.consumer) == [("commit", [], False, False, False)]


def test_storing_by_hand_wants_the_property_off(member):
    give(member, 0)
    with pytest.raises(KafkaException) as raised:
        member.consumer.store_offsets(offsets=[TopicPartition("t", 0, 2)])
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG


def test_storing_for_a_partition_that_is_not_assigned():
    loop = make(enable_auto_offset_store=False)
    assert not_assigned(lambda: loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 2)])) == (
        KafkaError._UNKNOWN_PARTITION)
    give(loop, 1)
    assert not_assigned(lambda: loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 2)])) == KafkaError._STATE
    loop.consumer.unassign()
    assert not_assigned(lambda: loop.consumer.store_offsets(offsets=[TopicPartition("t", 1, 2)])) == KafkaError._STATE


def test_seeking_in_a_partition_that_is_not_assigned(member):
    assert not_assigned(lambda: member.consumer.seek(TopicPartition("t", 0, 2))) == KafkaError._UNKNOWN_PARTITION
    give(member, 1)
    assert not_assigned(lambda: member.consumer.seek(TopicPartition("t", 0, 2))) == KafkaError._STATE


def not_assigned(call):
    with pytest.raises(KafkaException) as raised:
        call()
    return raised.value.args[0].code()


def test_an_error_is_returned_before_the_callbacks_that_follow_it(member):
    give(member, 0)
    member.calls.clear()
    group.push(member.consumer, "error", code=KafkaError._MAX_POLL_EXCEEDED, detail="exceeded")
    group.push(member.consumer, "lost", 2)
    assert member.poll().error().code() == KafkaError._MAX_POLL_EXCEEDED
    assert member.calls == []
    assert member.poll() is None
    assert member.calls == [("lost", [("t", 0)])]


def test_empty_metadata_is_not_none(member):
    for metadata in (None, "", "x"):
        member.consumer.commit(offsets=[TopicPartition("t", 0, 2, metadata)])
    sent = [event[1][0][4] for event in group.posted(member.consumer)]
    assert sent == ["", "\0", "x"]


def test_a_message_without_an_offset_has_nothing_to_commit(member):
    member.consumer.commit(Message("t", 0))
    assert group.posted(member.consumer)[0][1] == [("t", 0, -1001, -1, "", 0)]
    with pytest.raises(KafkaException) as raised:
        member.consumer.commit(Message("t", 0, 5, error=KafkaError(KafkaError._PARTITION_EOF)))
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG


def test_an_interval_commit_covers_the_records_returned_before_the_call(member):
    give(member, 0)
    read(member, 0, 0, 3)
    member.poll()
    group.posted(member.consumer)
    group.commit_due(member.consumer)
    assert member.poll().offset() == 1
    assert group.posted(member.consumer) == [("commit", [("t", 0, 1, 0, "", 0)], False, True, True)]


def test_assign_commits_the_removed_partitions(member):
    give(member, 0)
    read(member, 0, 0, 3)
    member.offsets()
    group.posted(member.consumer)
    member.consumer.assign([TopicPartition("t", 1, 0)])
    assert group.posted(member.consumer) == [("commit", [("t", 0, 3, 0, "", 0)], False, True, True)]


def test_a_rebalance_waits_until_the_records_in_hand_are_returned(member):
    """It may come while consume() collects: on_revoke must not run before records that the call then returns."""
    give(member, 0)
    group.push(member.consumer, "revoke", 2, [("t", 0)])
    assert inside.attend_with_records_in_hand(member.consumer)
    assert member.calls == [("assign", [("t", 0)])]
    member.poll()
    assert member.calls == [("assign", [("t", 0)]), ("revoke", [("t", 0)])]
