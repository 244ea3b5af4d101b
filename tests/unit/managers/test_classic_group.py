"""ClassicGroupManager: JoinGroup, SyncGroup, Heartbeat and LeaveGroup over a scripted network."""

import pytest
from group_loop import (
    COORDINATOR_CHANNEL,
    FIND_COORDINATOR,
    HEARTBEAT,
    HEARTBEAT_MS,
    JOIN,
    JOIN_CHANNEL,
    LEAVE,
    OFFSET_COMMIT,
    POLL_MS,
    SESSION_MS,
    SYNC,
    GroupLoop,
    inside_group,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from stepped_loop import METADATA, Topic

LOADING, NOT_AVAILABLE, NOT_COORDINATOR, ILLEGAL_GENERATION = 14, 15, 16, 22
INCONSISTENT_PROTOCOL, INVALID_GROUP, UNKNOWN_MEMBER, INVALID_SESSION, REBALANCE = 23, 24, 25, 26, 27
NOT_AUTHORIZED, UNSUPPORTED, ID_REQUIRED, GROUP_FULL, FENCED_INSTANCE = 30, 35, 79, 81, 82
MAX_POLL_EXCEEDED, UNKNOWN_TOPIC = -147, 3
ALL = [("t", 0), ("t", 1), ("t", 2)]


@pytest.fixture
def member():
    return GroupLoop()


@pytest.fixture
def stable():
    """The only member of its group, with all three partitions."""
    loop = GroupLoop()
    loop.stable()
    return loop


@pytest.fixture
def cooperative():
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky")
    loop.stable()
    return loop


# -- joining


def test_a_join_contains_the_configured_values(member):
    request = member.begin()
    assert (request["node"], request["channel"], request["version"]) == (2, JOIN_CHANNEL, 9)
    body = request["body"]
    assert (body["group_id"], body["member_id"], body["protocol_type"]) == ("g", "", "consumer")
    assert (body["session_timeout_ms"], body["rebalance_timeout_ms"]) == (SESSION_MS, POLL_MS)
    assert body["group_instance_id"] is None
    (protocol,) = body["protocols"]
    assert protocol["name"] == "range"
    assert read_subscription(protocol["metadata"]) == {"topics": ["t"], "owned": {}, "generation": -1, "rack": None}
    assert request["deadline_ms"] - request["sent_ms"] == POLL_MS + 5000
    assert member.state == "JOINING"


def test_a_short_rebalance_timeout_leaves_the_request_its_own_time():
    request = GroupLoop(max_poll_interval_ms=6000, session_timeout_ms=6000).begin()
    assert request["deadline_ms"] - request["sent_ms"] == 60_000


def test_strategies_are_offered_in_their_order():
    request = GroupLoop(partition_assignment_strategy="roundrobin,range").begin()
    assert [p["name"] for p in request["body"]["protocols"]] == ["roundrobin", "range"]


def test_the_coordinator_gives_the_member_its_id(member):
    member.begin()
    member.reply(JOIN, {"error_code": ID_REQUIRED, "generation_id": -1, "protocol_type": None, "protocol_name": None,
                        "leader": "", "skip_assignment": False, "member_id": "m1", "members": []})
    body = member.the(JOIN)["body"]
    assert body["member_id"] == "m1"
    assert body["reason"] == "need to re-join with the given member-id"


def test_the_leader_assigns_and_on_assign_runs(member):
    member.begin()
    member.joined()
    request = member.the(SYNC)
    assert request["channel"] == JOIN_CHANNEL
    body = request["body"]
    assert (body["generation_id"], body["member_id"]) == (1, "m1")
    assert (body["protocol_type"], body["protocol_name"]) == ("consumer", "range")
    assert {a["member_id"]: read_assignment(a["assignment"]) for a in body["assignments"]} == {"m1": {"t": [0, 1, 2]}}
    member.synced({"t": [0, 1, 2]})
    assert member.state == "ASSIGNING_PARTITIONS"
    assert member.assigned == []
    member.serve()
    assert member.calls == [("assign", ALL)]
    assert member.assigned == ALL
    assert member.state == "STABLE"
    assert member.consumer.memberid() == "m1"


def test_a_follower_sends_no_assignment_and_uses_the_one_it_receives(member):
    member.begin()
    member.joined(leader="other")
    assert member.the(SYNC)["body"]["assignments"] == []
    member.synced({"t": [1]})
    member.serve()
    assert member.assigned == [("t", 1)]


def test_an_empty_assignment_is_reported_too(member):
    member.begin()
    member.joined(leader="other")
    member.synced({})
    member.serve()
    assert member.calls == [("assign", [])]
    assert member.state == "STABLE"


def test_the_leader_asks_for_topics_that_only_others_subscribe(member):
    member.topics["u"] = Topic({0: (1, 5), 1: (1, 5)}, bytes(15) + b"u")
    member.begin()
    member.joined(members={
        "m1": subscription_bytes("t"), "m2": subscription_bytes("u"), "m3": subscription_bytes("no")})
    assert member.sent(SYNC) == []
    asked = [t["name"] for t in member.the(METADATA)["body"]["topics"]]
    assert sorted(asked) == ["no", "t", "u"]
    member.settle_metadata()
    assigned = {a["member_id"]: read_assignment(a["assignment"]) for a in member.the(SYNC)["body"]["assignments"]}
    assert assigned == {"m1": {"t": [0, 1, 2]}, "m2": {"u": [0, 1]}, "m3": {}}


def test_a_former_leader_no_longer_asks_for_others_topics(stable):
    stable.topics["u"] = Topic({0: (1, 5)}, bytes(15) + b"u")
    stable.heartbeat(REBALANCE)
    stable.serve()
    stable.joined(members={"m1": subscription_bytes("t"), "m2": subscription_bytes("u")})
    assert inside_group.interest(stable.consumer) == ["t", "u"]
    stable.settle_metadata()
    stable.synced({"t": [0]})
    stable.serve()
    stable.heartbeat(REBALANCE)
    stable.serve()
    stable.joined(leader="m2")
    assert inside_group.interest(stable.consumer) == ["t"]


def test_a_static_leader_that_returns_keeps_the_assignment():
    member = GroupLoop(group_instance_id="i")
    assert member.begin()["body"]["group_instance_id"] == "i"
    member.joined(skip_assignment=True)
    body = member.the(SYNC)["body"]
    assert (body["assignments"], body["group_instance_id"]) == ([], "i")
    member.synced({"t": [2]})
    member.serve()
    assert member.assigned == [("t", 2)]


# -- heartbeats


def test_heartbeats_go_out_at_their_interval(stable):
    stable.advance(HEARTBEAT_MS - 1)
    assert stable.sent(HEARTBEAT) == []
    stable.advance(1)
    request = stable.the(HEARTBEAT)
    assert (request["node"], request["channel"]) == (2, COORDINATOR_CHANNEL)
    assert (request["body"]["generation_id"], request["body"]["member_id"]) == (1, "m1")
    stable.refuse(HEARTBEAT, 0)
    stable.advance(HEARTBEAT_MS - 1)
    assert stable.sent(HEARTBEAT) == []
    stable.advance(1)
    assert len(stable.sent(HEARTBEAT)) == 1


def test_heartbeats_continue_while_callbacks_are_awaited(member):
    member.begin()
    member.joined()
    member.heartbeat()
    member.synced({"t": [0]})
    member.heartbeat()
    assert member.state == "ASSIGNING_PARTITIONS"
    member.serve()
    member.heartbeat(REBALANCE)
    assert member.state == "REVOKING_PARTITION"
    member.heartbeat()
    member.heartbeat(REBALANCE)
    assert member.state == "REVOKING_PARTITION"


def test_heartbeats_while_the_join_is_parked_show_whether_the_coordinator_is_there(stable):
    """The Java client sends none. The answer of the coordinator changes nothing, but its silence ends the wait."""
    stable.heartbeat(REBALANCE)
    stable.serve()
    stable.the(JOIN)
    for error in (REBALANCE, ILLEGAL_GENERATION, 0):
        stable.heartbeat(error)
        assert stable.state == "JOINING"
    stable.joined()
    stable.advance(HEARTBEAT_MS)
    assert stable.the(HEARTBEAT)["body"]["generation_id"] == 2


def test_a_session_without_an_answer_looks_for_the_coordinator_again(stable):
    stable.advance(HEARTBEAT_MS)
    request = stable.the(HEARTBEAT)
    assert request["deadline_ms"] - request["sent_ms"] == 2 * SESSION_MS // 3  # in time to find another one
    stable.advance(SESSION_MS - HEARTBEAT_MS)
    stable.turn()
    assert len(stable.sent(FIND_COORDINATOR)) == 1
    stable.find_coordinator(1)
    stable.advance(200)  # the backoff after the heartbeat that failed
    assert stable.sent(HEARTBEAT, node=1) and stable.state == "STABLE"


def test_a_lost_connection_looks_for_the_coordinator_again(stable):
    stable.advance(HEARTBEAT_MS)
    stable.fail(stable.the(HEARTBEAT))
    stable.turn()
    stable.find_coordinator(1)
    stable.advance(200)
    stable.refuse(HEARTBEAT, 0)
    assert stable.state == "STABLE"


@pytest.mark.parametrize("error", [NOT_AVAILABLE, NOT_COORDINATOR])
def test_heartbeat_finds_the_coordinator_again(stable, error):
    stable.heartbeat(error)
    stable.find_coordinator(1)
    stable.advance(200)
    assert stable.the(HEARTBEAT)["node"] == 1


def test_heartbeat_while_the_coordinator_loads_is_sent_again(stable):
    stable.heartbeat(LOADING)
    assert stable.sent(HEARTBEAT) == []
    stable.advance(200)
    assert len(stable.sent(HEARTBEAT)) == 1
    assert stable.state == "STABLE"
    assert stable.serve() == []


@pytest.mark.parametrize(("error", "member_id"), [(UNKNOWN_MEMBER, ""), (ILLEGAL_GENERATION, "m1")])
def test_a_heartbeat_error_reports_a_lost_membership(stable, error, member_id):
    stable.heartbeat(error)
    assert stable.state == "FENCED"
    assert stable.sent(JOIN) == []
    stable.serve()
    assert stable.calls[1:] == [("lost", ALL)]
    assert stable.assigned == []
    assert stable.state == "JOINING"
    body = stable.the(JOIN)["body"]
    assert body["member_id"] == member_id
    assert read_subscription(body["protocols"][0]["metadata"])["owned"] == {}
    assert stable.sent(OFFSET_COMMIT) == []


def test_a_heartbeat_error_reports_a_replaced_instance():
    member = GroupLoop(group_instance_id="i")
    member.stable()
    member.heartbeat(FENCED_INSTANCE)
    assert member.state == "FATAL"
    assert member.serve() == [FENCED_INSTANCE]
    assert member.calls[1:] == [("lost", ALL)]
    member.advance(10 * HEARTBEAT_MS)
    assert member.sent(HEARTBEAT) == member.sent(JOIN) == []
    assert member.serve() == [FENCED_INSTANCE]


def test_heartbeat_that_is_not_authorized_is_reported_and_continues(stable):
    stable.heartbeat(NOT_AUTHORIZED)
    assert stable.serve() == [NOT_AUTHORIZED]
    assert stable.serve() == []
    stable.heartbeat()
    assert stable.state == "STABLE"


def test_a_heartbeats_answer_of_a_former_generation_is_ignored(stable):
    stable.advance(HEARTBEAT_MS)
    late = stable.the(HEARTBEAT)
    stable.consumer.subscribe(["t", "u"])
    stable.turn()
    stable.settle_metadata()
    stable.serve()
    stable.joined()
    stable.synced({"t": [0]})
    stable.serve()
    assert stable.assigned == [("t", 0)]
    stable.network.answer(late["id"], bytes(4) + UNKNOWN_MEMBER.to_bytes(2, "big") + b"\0")
    stable.turn(2)
    assert stable.state == "STABLE"


@pytest.mark.parametrize("error", [ILLEGAL_GENERATION, UNKNOWN_MEMBER])
def test_a_heartbeat_that_a_join_overtook_is_ignored(stable, error):
    """They go over two connections: the coordinator may be a generation further when it reads the heartbeat."""
    stable.advance(HEARTBEAT_MS)
    late = stable.the(HEARTBEAT)
    stable.consumer.subscribe(["t", "u"])
    stable.settle_metadata()
    stable.serve()
    assert len(stable.sent(JOIN)) == 1
    stable.network.answer(late["id"], bytes(4) + error.to_bytes(2, "big") + b"\0")
    stable.turn(2)
    assert stable.state == "JOINING"
    stable.joined()
    stable.advance(100)
    stable.settle_metadata()
    stable.synced({"t": [0]})
    stable.serve()
    assert "lost" not in [name for name, _ in stable.calls]
    assert stable.state == "STABLE"


# -- errors of JoinGroup and SyncGroup


@pytest.mark.parametrize("error", [LOADING, REBALANCE, ILLEGAL_GENERATION])
def test_join_is_tried_again_after_a_while(member, error):
    member.begin()
    member.refuse(JOIN, error)
    assert member.sent(JOIN) == []
    member.advance(200)
    assert len(member.sent(JOIN)) == 1
    assert member.serve() == []


@pytest.mark.parametrize("error", [NOT_AVAILABLE, NOT_COORDINATOR])
def test_join_finds_the_coordinator_again(member, error):
    member.begin()
    member.refuse(JOIN, error)
    member.find_coordinator(1)
    member.advance(200)
    assert member.the(JOIN)["node"] == 1


def test_a_join_whose_connection_is_lost_finds_the_coordinator_again(member):
    member.begin()
    member.fail(member.the(JOIN))
    member.turn()
    member.find_coordinator(1)
    member.advance(200)
    assert member.the(JOIN)["node"] == 1


def test_join_of_an_unknown_member_begins_as_a_new_one(cooperative):
    cooperative.heartbeat(REBALANCE)
    assert cooperative.the(JOIN)["body"]["member_id"] == "m1"
    cooperative.refuse(JOIN, UNKNOWN_MEMBER)
    assert cooperative.state == "FENCED"
    cooperative.serve()
    assert cooperative.calls[1:] == [("lost", ALL)]
    body = cooperative.the(JOIN)["body"]
    assert body["member_id"] == ""
    assert read_subscription(body["protocols"][0]["metadata"])["owned"] == {}


def test_join_of_an_unknown_member_without_partitions_begins_at_once(member):
    member.begin()
    member.refuse(JOIN, UNKNOWN_MEMBER)
    assert member.the(JOIN)["body"]["member_id"] == ""
    assert member.calls == []


@pytest.mark.parametrize(
    "error", [INCONSISTENT_PROTOCOL, INVALID_GROUP, INVALID_SESSION, NOT_AUTHORIZED, GROUP_FULL, -1])
def test_join_that_is_refused_is_reported_and_tried_again(member, error):
    member.begin()
    member.refuse(JOIN, error)
    told = member.consumer.poll(0).error()
    assert (told.cause, told.fatal(), told.retriable(), member.serve()) == (error, False, False, [])
    member.advance(200)
    member.refuse(JOIN, error)
    assert member.serve() == [error]
    member.advance(500)
    member.joined()
    assert member.state == "JOINING"


@pytest.mark.parametrize("error", [FENCED_INSTANCE, UNSUPPORTED])
def test_join_that_can_never_succeed(error):
    member = GroupLoop(group_instance_id="i")
    member.begin()
    member.refuse(JOIN, error)
    assert member.state == "FATAL"
    told = member.consumer.poll(0).error()
    assert (told.cause, told.fatal(), told.retriable()) == (error, error == FENCED_INSTANCE, False)
    member.advance(10_000)
    assert member.sent(JOIN) == []


def test_a_coordinator_too_old_for_static_members():
    member = GroupLoop(group_instance_id="i")
    member.network.set_version(JOIN, 0, 4)
    member.subscribe()
    member.settle_metadata()
    member.find_coordinator()
    member.turn()
    assert member.state == "FATAL"
    assert member.serve() == [-165]


def test_an_old_coordinator_gets_requests_of_its_versions(member):
    for api, highest in ((JOIN, 0), (SYNC, 0), (HEARTBEAT, 0), (LEAVE, 0)):
        member.network.set_version(api, 0, highest)
    member.stable()
    member.heartbeat()
    member.consumer.unsubscribe()
    member.turn(2)
    assert member.the(LEAVE)["body"]["member_id"] == "m1"


def test_another_kind_of_group_is_refused(member):
    member.begin()
    member.joined(protocol_type="connect")
    assert member.serve() == [INCONSISTENT_PROTOCOL]
    assert member.state == "JOINING"


def test_a_subscription_that_cannot_be_read_fails_the_rebalance(member):
    member.begin()
    member.joined(members={"m1": subscription_bytes("t"), "m2": b"\0"})
    assert member.sent(SYNC) == []
    assert len(member.serve()) == 1
    member.advance(200)
    assert len(member.sent(JOIN)) == 1


@pytest.mark.parametrize("error", [LOADING])
def test_sync_joins_again_after_a_while(member, error):
    member.begin()
    member.joined()
    member.refuse(SYNC, error)
    assert member.sent(JOIN) == []
    member.advance(200)
    assert member.the(JOIN)["body"]["member_id"] == "m1"


def test_sync_that_meets_another_rebalance_joins_again_at_once(member):
    member.begin()
    member.joined()
    member.refuse(SYNC, REBALANCE)
    assert member.the(JOIN)["body"]["member_id"] == "m1"


@pytest.mark.parametrize("error", [NOT_AVAILABLE, NOT_COORDINATOR])
def test_sync_finds_the_coordinator_again(member, error):
    member.begin()
    member.joined()
    member.refuse(SYNC, error)
    member.find_coordinator(1)
    member.advance(200)
    assert member.the(JOIN)["node"] == 1


@pytest.mark.parametrize(("error", "member_id"), [(UNKNOWN_MEMBER, ""), (ILLEGAL_GENERATION, "m1")])
def test_sync_of_an_unknown_member(cooperative, error, member_id):
    cooperative.heartbeat(REBALANCE)
    cooperative.joined()
    cooperative.refuse(SYNC, error)
    assert cooperative.state == "FENCED"
    cooperative.serve()
    assert cooperative.calls[1:] == [("lost", ALL)]
    assert cooperative.the(JOIN)["body"]["member_id"] == member_id


@pytest.mark.parametrize("error", [NOT_AUTHORIZED, -1])
def test_sync_that_is_refused_is_reported(member, error):
    member.begin()
    member.joined()
    member.refuse(SYNC, error)
    assert member.serve() == [error]
    member.advance(200)
    assert len(member.sent(JOIN)) == 1


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_sync_of_another_protocol_is_refused(member, fields):
    member.begin()
    member.joined()
    member.synced({"t": [0]}, **fields)
    assert member.serve() == [INCONSISTENT_PROTOCOL]
    assert member.assigned == []


def test_an_assignment_that_cannot_be_read_is_reported(member):
    member.begin()
    member.joined()
    member.synced({}, assignment=b"\0\0\0")
    assert len(member.serve()) == 1
    assert member.state == "JOINING"


def test_no_bytes_are_an_empty_assignment(member):
    member.begin()
    member.joined()
    member.synced({}, assignment=b"")
    member.serve()
    assert member.calls == [("assign", [])]


def test_an_answer_that_does_not_parse_gives_the_connection_up(member):
    member.begin()
    member.network.answer(member.the(JOIN)["id"], b"\0\1")
    member.turn(2)
    assert member.state == "JOINING"
    member.find_coordinator(1)
    member.advance(200)
    assert member.the(JOIN)["node"] == 1


# -- eager


def test_eager_gives_everything_back_before_it_joins_again(stable):
    stable.heartbeat(REBALANCE)
    assert stable.state == "REVOKING_PARTITION"
    assert stable.sent(JOIN) == []
    stable.serve()
    assert stable.calls[1:] == [("revoke", ALL)]
    assert stable.assigned == []
    body = stable.the(JOIN)["body"]
    assert body["reason"] == "group is already rebalancing"
    assert read_subscription(body["protocols"][0]["metadata"])["owned"] == {}
    stable.joined(leader="m2")
    stable.synced({"t": [2]})
    stable.serve()
    assert stable.calls[2:] == [("assign", [("t", 2)])]
    assert stable.state == "STABLE"


def test_returned_records_are_committed_before_joining_again(stable):
    stable.read(0, 2)
    stable.heartbeat(REBALANCE)
    stable.serve()
    assert stable.state == "PARTITION_REVOKED"
    assert stable.sent(JOIN) == []
    assert stable.commits() == [("t", 0, 2)]
    assert len(stable.sent(JOIN)) == 1


def test_without_auto_commit_nothing_is_committed():
    member = GroupLoop(enable_auto_commit=False)
    member.stable()
    member.read(0, 2)
    member.heartbeat(REBALANCE)
    member.serve()
    assert member.sent(OFFSET_COMMIT) == []
    assert len(member.sent(JOIN)) == 1


def test_a_member_with_nothing_joins_again_without_callback(member):
    member.stable({})
    member.heartbeat(REBALANCE)
    assert member.state == "JOINING"
    assert len(member.sent(JOIN)) == 1
    member.serve()
    assert member.calls == [("assign", [])]


# -- cooperative


def test_a_cooperative_member_keeps_its_partitions_while_it_joins(cooperative):
    cooperative.heartbeat(REBALANCE)
    assert cooperative.state == "JOINING"
    assert cooperative.assigned == ALL
    told = read_subscription(cooperative.the(JOIN)["body"]["protocols"][0]["metadata"])
    assert told == {"topics": ["t"], "owned": {"t": [0, 1, 2]}, "generation": 1, "rack": None}


def test_a_cooperative_member_revokes_moved_partitions_and_joins_again(cooperative):
    cooperative.heartbeat(REBALANCE)
    cooperative.joined(leader="m2")
    cooperative.synced({"t": [0, 1]})
    assert cooperative.state == "REVOKING_PARTITION"
    assert cooperative.sent(JOIN) == []
    cooperative.serve()
    cooperative.serve()
    assert cooperative.calls[1:] == [("revoke", [("t", 2)]), ("assign", [])]
    assert cooperative.assigned == [("t", 0), ("t", 1)]
    body = cooperative.the(JOIN)["body"]
    assert body["reason"] == "need to revoke partitions and re-join"
    assert read_subscription(body["protocols"][0]["metadata"])["owned"] == {"t": [0, 1]}
    cooperative.joined(leader="m2")
    cooperative.synced({"t": [0, 1]})
    cooperative.serve()
    assert cooperative.state == "STABLE"
    assert cooperative.sent(JOIN) == []


def test_cooperative_takes_and_gives_in_one_rebalance(cooperative):
    cooperative.heartbeat(REBALANCE)
    cooperative.joined(leader="m2")
    cooperative.synced({"t": [0]})
    cooperative.serve()
    cooperative.serve()
    cooperative.joined(leader="m2")
    cooperative.synced({"t": [0, 2]})
    cooperative.serve()
    assert cooperative.calls[1:] == [
        ("revoke", [("t", 1), ("t", 2)]), ("assign", []), ("assign", [("t", 2)])]
    assert cooperative.assigned == [("t", 0), ("t", 2)]


def test_cooperative_gives_up_topics_it_no_longer_wants_before_joining():
    member = GroupLoop(partition_assignment_strategy="cooperative-sticky")
    member.topics["u"] = Topic({0: (1, 5)}, bytes(15) + b"u")
    member.stable({"t": [0], "u": [0]}, "t", "u")
    member.consumer.subscribe(["u"], on_revoke=lambda c, p: member.calls.append(("gone", [q.topic for q in p])))
    member.turn()
    assert member.state == "REVOKING_PARTITION"
    member.serve()
    assert member.calls[1:] == [("gone", ["t"])]
    told = read_subscription(member.the(JOIN)["body"]["protocols"][0]["metadata"])
    assert (told["topics"], told["owned"]) == (["u"], {"u": [0]})


# -- subscription


def test_a_changed_subscription_joins_again(stable):
    stable.subscribe("t", "u")
    assert stable.state == "REVOKING_PARTITION"
    stable.serve()
    assert read_subscription(stable.the(JOIN)["body"]["protocols"][0]["metadata"])["topics"] == ["t", "u"]


def test_the_same_subscription_changes_nothing(stable):
    stable.consumer.subscribe(["t"])
    stable.advance(1000)
    assert stable.state == "STABLE"


def test_an_assignment_of_a_former_subscription_is_not_taken(member):
    member.begin()
    member.joined()
    member.consumer.subscribe(["u"])
    member.turn()
    member.synced({"t": [0, 1, 2]})
    assert member.state == "JOINING"
    assert read_subscription(member.the(JOIN)["body"]["protocols"][0]["metadata"])["topics"] == ["u"]


def test_partitions_that_are_added_bring_a_rebalance(stable):
    stable.topics["t"].leaders[3] = (1, 5)
    stable.refresh()
    stable.serve()
    assert stable.the(JOIN)["body"]["reason"] == "cached metadata has changed"
    stable.joined()
    assert read_assignment(stable.the(SYNC)["body"]["assignments"][0]["assignment"]) == {"t": [0, 1, 2, 3]}


def test_a_topic_that_goes_brings_a_rebalance(stable):
    del stable.topics["t"]
    stable.refresh()
    assert stable.serve() + stable.serve() == [UNKNOWN_TOPIC]
    stable.joined()
    assert read_assignment(stable.the(SYNC)["body"]["assignments"][0]["assignment"]) == {}


def test_a_follower_leaves_that_to_the_leader(member):
    member.begin()
    member.joined(leader="m2")
    member.synced({"t": [0]})
    member.serve()
    member.topics["t"].leaders[3] = (1, 5)
    member.refresh()
    assert member.state == "STABLE"


# -- leaving


def test_unsubscribe_commits_and_leaves(stable):
    stable.read(0, 2)
    stable.consumer.unsubscribe()
    assert stable.calls[1:] == [("revoke", ALL)]
    stable.turn()
    assert stable.sent(LEAVE) == []
    assert stable.commits() == [("t", 0, 2)]
    request = stable.the(LEAVE)
    assert (request["node"], request["channel"]) == (2, COORDINATOR_CHANNEL)
    assert request["body"]["members"] == [{"member_id": "m1", "group_instance_id": None,
                                           "reason": "the consumer unsubscribed from all topics"}]
    assert stable.state == "LEAVING"
    stable.refuse(LEAVE, 0)
    assert stable.state == "UNSUBSCRIBED"
    assert stable.consumer.memberid() is None
    stable.advance(10 * HEARTBEAT_MS)
    assert stable.sent(HEARTBEAT) == []


@pytest.mark.parametrize("error", [NOT_COORDINATOR, UNKNOWN_MEMBER, LOADING])
def test_any_answer_ends_the_membership(stable, error):
    stable.consumer.unsubscribe()
    stable.turn()
    stable.refuse(LEAVE, error)
    assert stable.state == "UNSUBSCRIBED"


def test_a_leave_whose_connection_is_lost_has_ended(stable):
    stable.consumer.unsubscribe()
    stable.turn()
    stable.fail(stable.the(LEAVE))
    assert stable.state == "UNSUBSCRIBED"


def test_a_static_member_sends_no_leave():
    member = GroupLoop(group_instance_id="i")
    member.stable()
    member.consumer.unsubscribe()
    member.turn(2)
    assert member.sent(LEAVE) == []
    assert member.state == "UNSUBSCRIBED"


def test_subscribing_while_leaving_joins_as_a_new_member(stable):
    stable.consumer.unsubscribe()
    stable.turn()
    stable.subscribe("t")
    assert stable.sent(JOIN) == []
    stable.refuse(LEAVE, 0)
    stable.turn()
    assert stable.the(JOIN)["body"]["member_id"] == ""


def test_a_parked_join_is_given_up_when_leaving(member):
    member.begin()
    member.reply(JOIN, {"error_code": ID_REQUIRED, "generation_id": -1, "protocol_type": None, "protocol_name": None,
                        "leader": "", "skip_assignment": False, "member_id": "m1", "members": []})
    member.the(JOIN)
    member.consumer.unsubscribe()
    member.turn()
    assert member.sent(JOIN) == []
    assert member.network.calls["renew"] == 1
    assert member.the(LEAVE)["body"]["members"][0]["member_id"] == "m1"
    member.refuse(LEAVE, 0)
    assert member.state == "UNSUBSCRIBED"


def test_a_join_that_was_not_sent_is_not_sent_after_leaving(member):
    member.network.set_readiness(2, JOIN_CHANNEL, 1)
    member.subscribe()
    member.settle_metadata()
    member.find_coordinator()
    assert member.sent(JOIN) == []
    member.consumer.unsubscribe()
    member.turn(2)
    member.network.set_readiness(2, JOIN_CHANNEL, 0)
    member.turn(2)
    assert member.sent(JOIN) == []
    assert member.state == "UNSUBSCRIBED"


# -- max.poll.interval.ms


def test_an_application_that_does_not_poll_is_taken_out_of_the_group(stable):
    for _ in range(POLL_MS // HEARTBEAT_MS - 1):
        stable.heartbeat()
    assert stable.state == "STABLE"
    stable.advance(HEARTBEAT_MS)
    assert stable.state == "STALE"
    stable.turn()
    assert stable.the(LEAVE)["body"]["members"][0]["reason"] == "consumer poll timeout has expired."
    stable.refuse(LEAVE, 0)
    assert stable.state == "STALE"
    stable.advance(10_000)
    assert stable.sent(JOIN) == []
    assert (stable.serve(), stable.calls[1:]) == ([MAX_POLL_EXCEEDED], [])
    assert (stable.serve(), stable.calls[1:]) == ([], [("lost", ALL)])
    assert stable.assigned == []
    assert stable.serve() == []
    assert stable.the(JOIN)["body"]["member_id"] == ""


def test_a_waiting_call_is_alive(stable):
    inside_group.in_poll(stable.consumer, True)
    for _ in range(2 * POLL_MS // HEARTBEAT_MS):
        stable.heartbeat()
    assert stable.state == "STABLE"
    inside_group.in_poll(stable.consumer, False)
    for _ in range(POLL_MS // HEARTBEAT_MS - 1):
        stable.heartbeat()
    assert stable.state == "STABLE"
