"""MembershipManager: the table of states, events and their acknowledgements, patterns, liveness, leaving."""

import itertools

import pytest
from group_loop import (
    HEARTBEAT_MS,
    JOIN,
    LEAVE,
    OFFSET_COMMIT,
    POLL_MS,
    SYNC,
    GroupLoop,
    inside_group,
    read_assignment,
    read_subscription,
)
from stepped_loop import METADATA, Topic

from kconsumer import KafkaError, TopicPartition

UNKNOWN_MEMBER, REBALANCE, UNKNOWN_TOPIC, NOT_AUTHORIZED = 25, 27, 3, 29
ALL = [("t", 0), ("t", 1), ("t", 2)]


@pytest.fixture
def member():
    return GroupLoop()


@pytest.fixture
def stable():
    loop = GroupLoop()
    loop.stable()
    return loop


def topics_joined(loop):
    return read_subscription(loop.the(JOIN)["body"]["protocols"][0]["metadata"])["topics"]


# -- the table


@pytest.mark.parametrize(("origin", "to"), list(itertools.product(inside_group.STATES, repeat=2)))
def test_a_move_that_the_table_does_not_allow_is_a_bug_that_shows(origin, to):
    loop = GroupLoop()
    inside_group.place(loop.consumer, origin)
    inside_group.move(loop.consumer, to)
    logged = [text for level, text in inside_group.logged(loop.consumer) if level == 3]
    if inside_group.may(origin, to):
        assert loop.state == to
        assert logged == []
        return
    assert loop.state == "FATAL"
    assert logged == [f"bug: a group member cannot go from {origin} to {to}"]
    error = loop.poll().error()
    assert error.fatal()
    assert error.code() == KafkaError._FATAL


def test_every_state_but_the_first_can_be_left_for_good():
    for state in inside_group.STATES:
        assert inside_group.may(state, "FATAL") or state == "FATAL"
    for state in set(inside_group.STATES) - {"UNSUBSCRIBED", "LEAVING", "FATAL"}:
        assert inside_group.may(state, "LEAVING")


# -- events and acknowledgements


def test_a_queued_revocation_becomes_a_loss(stable):
    stable.heartbeat(REBALANCE)
    stable.heartbeat(UNKNOWN_MEMBER)
    assert stable.state == "FENCED"
    stable.serve()
    assert stable.calls[1:] == [("lost", ALL)]
    assert stable.state == "JOINING"


def test_partitions_being_revoked_are_not_also_lost(member):
    def fence(consumer, partitions):
        member.heartbeat(UNKNOWN_MEMBER)
        assert member.state == "FENCED"
    member.stable(revoke=fence)
    member.heartbeat(REBALANCE)
    member.serve()
    assert member.calls[1:] == [("revoke", ALL)]
    assert member.state == "JOINING"
    assert member.sent(OFFSET_COMMIT) == []


def test_an_assignment_that_is_being_made_is_lost(member):
    def fence(consumer, partitions):
        member.heartbeat(UNKNOWN_MEMBER)
    member.begin(assign=fence)
    member.joined()
    member.synced({"t": [0]})
    member.serve()
    assert member.calls == [("assign", [("t", 0)]), ("lost", [("t", 0)])]
    assert member.assigned == []
    assert member.state == "JOINING"


def test_an_assignment_that_was_not_begun_is_never_made(member):
    member.begin()
    member.joined()
    member.synced({"t": [0]})
    member.heartbeat(UNKNOWN_MEMBER)
    member.serve()
    assert member.calls == []
    assert member.state == "JOINING"


def test_the_member_owns_only_the_subset_that_its_callback_assigns(member):
    member.stable(assign=lambda c, p: c.assign([TopicPartition("t", 1, 5)]))
    assert inside_group.owned(member.consumer) == [("t", 1)]
    member.heartbeat(REBALANCE)
    member.serve()
    assert member.calls[1:] == [("revoke", [("t", 1)])]


def test_partitions_being_revoked_are_no_longer_fetched(stable):
    assert inside_group.revoking(stable.consumer) == []
    stable.heartbeat(REBALANCE)
    assert inside_group.revoking(stable.consumer) == ALL


def test_a_callback_that_raises_does_not_hold_up_the_rebalance(member):
    def boom(consumer, partitions):
        raise RuntimeError("boom")
    member.stable(revoke=boom)
    member.heartbeat(REBALANCE)
    with pytest.raises(RuntimeError):
        member.consumer.poll(0)
    member.turn(2)
    assert len(member.sent(JOIN)) == 1
    assert member.assigned == []


def test_unsubscribing_in_a_callback_ends_the_rebalance(member):
    member.begin(assign=lambda c, p: c.unsubscribe())
    member.joined()
    member.synced({"t": [0]})
    member.serve()
    assert member.state == "LEAVING"
    member.refuse(LEAVE, 0)
    assert member.state == "UNSUBSCRIBED"
    assert member.assigned == []


# -- liveness


def test_polls_keep_the_membership(stable):
    for _ in range(3 * POLL_MS // HEARTBEAT_MS):
        stable.heartbeat()
        stable.serve()
    assert stable.state == "STABLE"


def test_a_member_that_never_polled_is_taken_out(member):
    member.begin()
    member.advance(POLL_MS)
    assert member.state == "STALE"
    member.turn(2)
    assert member.sent(LEAVE) == []
    assert member.serve() == [KafkaError._MAX_POLL_EXCEEDED]
    assert member.calls == []


def test_a_callback_that_takes_too_long_loses_its_partitions(stable):
    stable.heartbeat(REBALANCE)
    for _ in range(POLL_MS // HEARTBEAT_MS):
        if stable.state == "REVOKING_PARTITION":
            stable.advance(HEARTBEAT_MS)
            for request in stable.sent(12):
                stable.network.answer(request["id"], bytes(7))
    assert stable.state == "STALE"
    stable.turn()
    stable.refuse(LEAVE, 0)
    assert stable.serve() == [KafkaError._MAX_POLL_EXCEEDED]
    assert stable.calls[1:] == []
    assert stable.serve() == []
    assert stable.calls[1:] == [("lost", ALL)]


def test_unsubscribing_after_max_poll_interval_loses_all_partitions(stable):
    for _ in range(POLL_MS // HEARTBEAT_MS - 1):
        stable.heartbeat()
    stable.advance(HEARTBEAT_MS)
    stable.turn()
    stable.consumer.unsubscribe()
    stable.turn()
    assert stable.calls[1:] == [("lost", ALL)]
    stable.refuse(LEAVE, 0)
    assert stable.state == "UNSUBSCRIBED"


# -- subscribed topics


def test_a_missing_topic_is_reported_once(member):
    member.subscribe("gone", "t")
    member.settle_metadata()
    found = member.consumer.poll(0)
    assert found.error().code() == UNKNOWN_TOPIC
    assert found.error().str() == "Subscribed topic not available: gone: check the name, or create the topic"
    member.advance(1000)
    member.settle_metadata()
    assert member.serve() == []
    member.topics["gone"] = Topic({0: (1, 5)}, bytes(15) + b"g")
    member.advance(1000)
    member.settle_metadata()
    del member.topics["gone"]
    member.refresh()
    assert member.serve() == [UNKNOWN_TOPIC]


def test_a_topic_that_may_not_be_read_is_reported(member):
    member.topics["secret"] = Topic({}, error=NOT_AUTHORIZED)
    member.subscribe("secret")
    member.settle_metadata()
    error = member.consumer.poll(0).error()
    assert error.code() == NOT_AUTHORIZED
    assert error.str() == ("Subscribed topic not available: secret: not authorized for the topic: "
                           "grant READ (or DESCRIBE) on topic secret")


def test_a_pattern_subscription_joins_with_the_matching_topics(member):
    member.topics["tab"] = Topic({0: (1, 5)}, bytes(15) + b"b")
    member.topics["u"] = Topic({0: (1, 5)}, bytes(15) + b"u")
    member.subscribe("^t")
    assert member.the(METADATA)["body"]["topics"] is None
    member.settle_metadata()
    member.find_coordinator()
    assert topics_joined(member) == ["t", "tab"]


def test_patterns_and_names_together(member):
    member.topics["u"] = Topic({0: (1, 5)}, bytes(15) + b"u")
    member.begin("^t$", "u")
    assert topics_joined(member) == ["t", "u"]


def test_a_new_topic_that_matches_joins_again(member):
    member.stable(None, "^t")
    member.topics["tab"] = Topic({0: (1, 5)}, bytes(15) + b"b")
    member.refresh()
    member.serve()
    assert topics_joined(member) == ["t", "tab"]
    member.joined()
    assert read_assignment(member.the(SYNC)["body"]["assignments"][0]["assignment"]) == {"t": [0, 1, 2], "tab": [0]}


def test_a_topic_that_went_no_longer_matches(member):
    member.topics["tab"] = Topic({0: (1, 5)}, bytes(15) + b"b")
    member.stable({"t": [0], "tab": [0]}, "^t")
    del member.topics["tab"]
    member.refresh()
    member.serve()
    assert topics_joined(member) == ["t"]


def test_a_member_with_patterns_looks_for_new_topics_before_it_joins_again(member):
    """Or every member would bring another rebalance of all when it meets the new topic by itself."""
    member.stable(None, "^t")
    member.heartbeat(REBALANCE)
    member.topics["tab"] = Topic({0: (1, 5)}, bytes(15) + b"b")
    member.serve()
    assert member.state == "JOINING"
    assert member.sent(JOIN) == []
    assert member.the(METADATA)["body"]["topics"] is None
    member.settle_metadata()
    assert topics_joined(member) == ["t", "tab"]


def test_metadata_of_a_moment_ago_is_fresh_enough(member):
    member.stable(None, "^t")
    member.topics["tab"] = Topic({0: (1, 5)}, bytes(15) + b"b")
    member.refresh()
    member.serve()
    assert member.sent(METADATA) == []
    assert topics_joined(member) == ["t", "tab"]


def test_without_patterns_a_join_waits_for_no_metadata(stable):
    stable.heartbeat(REBALANCE)
    stable.serve()
    assert stable.sent(METADATA) == []
    assert len(stable.sent(JOIN)) == 1


def test_internal_topics_do_not_match(member):
    member.begin("^.")
    assert topics_joined(member) == ["t"]
    member = GroupLoop()
    member.subscribe("^.")
    body = member.metadata_body(None)
    body["topics"].append({"error_code": 0, "name": "__internal", "topic_id": bytes(15) + b"i", "is_internal": True,
                           "partitions": []})
    member.answer(member.the(METADATA), body)
    member.turn()
    member.find_coordinator()
    assert topics_joined(member) == ["t"]


def test_a_matching_topic_without_permission_is_skipped_and_reported(member):
    member.topics["tar"] = Topic({}, error=NOT_AUTHORIZED)
    member.begin("^t")
    assert topics_joined(member) == ["t"]
    assert any("tar" in text for _, text in inside_group.logged(member.consumer))


def test_patterns_that_match_nothing_still_join(member):
    member.begin("^nothing")
    assert topics_joined(member) == []
    member.joined()
    member.synced({})
    member.serve()
    assert member.calls == [("assign", [])]


def test_without_patterns_only_its_topics_are_asked_for_again(member):
    member.begin("^t")
    member.consumer.subscribe(["t"])
    member.turn()
    member.advance(1000)
    member.refresh()
    assert inside_group.interest(member.consumer) == ["t"]


def test_posix_expressions():
    topics = ["a", "ab", "b", "a.b", "1"]
    assert inside_group.matching(["^a"], topics) == ["a", "ab", "a.b"]
    assert inside_group.matching(["^a$", "^[0-9]+$"], topics) == ["a", "1"]
    assert inside_group.matching([], topics) == []
    with pytest.raises(ValueError, match="POSIX"):
        inside_group.matching(["^("], topics)


def test_a_pattern_that_cannot_be_read_is_refused(member):
    from kconsumer import KafkaException
    with pytest.raises(KafkaException) as raised:
        member.consumer.subscribe(["^("])
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG
    assert member.state == "UNSUBSCRIBED"


def test_topics_are_of_interest_while_they_are_subscribed(member):
    member.subscribe("t", "u")
    assert inside_group.interest(member.consumer) == ["t", "u"]
    member.consumer.subscribe(["u"])
    member.turn()
    assert inside_group.interest(member.consumer) == ["u"]
    member.consumer.unsubscribe()
    member.turn()
    assert inside_group.interest(member.consumer) == []


# -- leaving


def test_a_member_that_never_joined_just_ends(member):
    member.subscribe()
    member.consumer.unsubscribe()
    member.turn(2)
    assert member.state == "UNSUBSCRIBED"
    assert member.sent(LEAVE) == []


def test_a_leave_that_is_never_answered_ends_all_the_same(stable):
    stable.consumer.unsubscribe()
    stable.turn()
    stable.the(LEAVE)
    for _ in range(3):
        stable.advance(60_000)
    assert stable.state == "UNSUBSCRIBED"


def test_subscribing_and_leaving_over_and_over(stable):
    stable.consumer.unsubscribe()
    stable.turn()
    stable.consumer.subscribe(["t"])
    stable.turn()
    stable.consumer.unsubscribe()
    stable.turn()
    stable.refuse(LEAVE, 0)
    stable.turn()
    assert stable.state == "UNSUBSCRIBED"
    stable.subscribe("t")
    assert stable.state == "JOINING"
    assert len(stable.sent(JOIN)) == 1
