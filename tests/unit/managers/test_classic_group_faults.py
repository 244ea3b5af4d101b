"""ClassicGroupManager: coordinators that move or throttle, and an assignment of another subscription."""

import pytest
from group_loop import (
    FIND_COORDINATOR,
    HEARTBEAT,
    HEARTBEAT_MS,
    JOIN,
    OFFSET_COMMIT,
    SYNC,
    GroupLoop,
    read_subscription,
)
from stepped_loop import FETCH, Topic, records

from kconsumer import TopicPartition

REBALANCE = 27


@pytest.fixture
def member():
    return GroupLoop()


@pytest.fixture
def static():
    """A static member; topic u is there beside t."""
    loop = GroupLoop(group_instance_id="i")
    loop.topics["u"] = Topic({0: (1, 5)}, bytes(15) + b"u")
    return loop


# -- static members, whose assignment the coordinator keeps


def test_an_assignment_of_other_topics_is_not_taken(static):
    """Its predecessor subscribed to t. The coordinator gives that assignment, without a rebalance."""
    static.begin("u")
    static.joined(leader="m2")
    static.synced({"t": [0, 1]})
    static.serve()
    assert (static.calls, static.assigned) == ([], [])
    static.advance(1000)
    assert read_subscription(static.the(JOIN)["body"]["protocols"][0]["metadata"])["topics"] == ["u"]
    static.joined(leader="m2")
    static.synced({"u": [0]})
    static.serve()
    assert (static.calls, static.state) == ([("assign", [("u", 0)])], "STABLE")


def test_an_assignment_from_before_unsubscribe_is_not_taken(static):
    static.stable({"t": [0, 1]})
    static.consumer.unsubscribe()
    static.turn(3)
    assert static.state == "UNSUBSCRIBED"
    static.subscribe("u")
    static.settle_metadata()
    static.generation -= 1  # the group stays in its generation
    static.joined(leader="m2")
    static.synced({"t": [0, 1]})
    static.serve()
    assert static.assigned == []
    assert [name for name, _ in static.calls] == ["assign", "revoke"]


# -- a coordinator that moves while a request waits there


def look_again(member, node):
    """Another request has failed at broker 2. The answer to the search for the coordinator is `node`."""
    for _ in range(20):
        member.advance(1000)
        member.settle_metadata()
        if member.sent(FIND_COORDINATOR):
            break
    member.find_coordinator(node)
    member.advance(1000)


def waits_to_join():
    """A cooperative member whose JoinGroup waits at broker 2 for other members, and whose commit has failed there."""
    member = GroupLoop(partition_assignment_strategy="cooperative-sticky")
    member.stable()
    member.heartbeat(REBALANCE)
    assert member.the(JOIN)["node"] == 2
    member.consumer.commit(offsets=[TopicPartition("t", 0, 7)])
    member.turn(2)
    member.fail(member.the(OFFSET_COMMIT))
    return member


def test_a_waiting_join_follows_the_coordinator():
    member = waits_to_join()
    look_again(member, 1)
    assert member.the(OFFSET_COMMIT)["node"] == 1
    assert member.the(JOIN)["node"] == 1
    member.joined(leader="m2")
    assert member.the(SYNC)["node"] == 1


def test_a_waiting_join_stays_at_a_coordinator_that_does_not_move():
    member = waits_to_join()
    waiting = member.the(JOIN)
    look_again(member, 2)
    assert member.the(JOIN)["id"] == waiting["id"]


def test_a_waiting_sync_joins_again_at_the_new_coordinator(member):
    member.begin()
    member.joined(leader="m2")
    assert member.the(SYNC)["node"] == 2
    member.advance(HEARTBEAT_MS)
    member.fail(member.the(HEARTBEAT))
    look_again(member, 1)
    assert member.the(HEARTBEAT)["node"] == 1
    assert member.sent(SYNC) == []
    assert member.the(JOIN)["node"] == 1


# -- throttling


def test_heartbeats_go_on_while_a_fetch_is_throttled(member):
    """The coordinator leads a partition, too. It reads nothing from the connection of the Fetch, but from others."""
    member.stable({"t": [2]})
    member.consumer.seek(TopicPartition("t", 2, 0))
    member.turn(2)
    request = member.the(FETCH)
    assert request["node"] == 2
    member.fetched(request, {2: {"records": records(0, 3)}}, throttle_time_ms=60_000)
    for _ in range(10):
        member.heartbeat()
    assert member.sent(FETCH) == []
    assert member.state == "STABLE"
