"""Assignors written in Python in a classic group: when the application is asked, and what becomes of its answers."""

import struct

import pytest
from group_loop import (
    HEARTBEAT,
    HEARTBEAT_MS,
    JOIN,
    LEAVE,
    OFFSET_COMMIT,
    POLL_MS,
    SESSION_MS,
    SYNC,
    GroupLoop,
    assignment_bytes,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from stepped_loop import METADATA, Topic

from kconsumer import Assignment, Assignor, KafkaError, KafkaException, RebalanceProtocol, TopicPartition

UNKNOWN_MEMBER, REBALANCE = 25, 27


class Noted(Assignor):
    """Gives everything to the member whose user data is greatest; notes what it is called with."""

    name = "noted"

    def __init__(self, data=None):
        self.data = data
        self.asked = []
        self.groups = []
        self.told = []
        self.meanwhile = None

    def subscription_user_data(self, topics):
        self.asked.append(sorted(topics))
        return self.data

    def assign(self, topics, group):
        self.groups.append((topics, group))
        if self.meanwhile is not None:
            self.meanwhile()
        best = max(group.members.values(), key=lambda m: m.user_data or b"")
        parts = tuple(TopicPartition(name, p) for name in topics for p in range(topics[name].partition_count))
        return {best.member_id: Assignment(parts, user_data=b"all yours")}

    def on_assignment(self, assignment, generation):
        self.told.append(([(p.topic, p.partition) for p in assignment.partitions], assignment.user_data, generation))


class Cooperative(Noted):
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)


class Silent(Assignor):
    """Has no user data, and assigns no partitions."""

    name = "silent"

    def assign(self, topics, group):
        return {}


@pytest.fixture
def noted():
    return Noted(b"1")


@pytest.fixture
def member(noted):
    return GroupLoop(partition_assignment_strategy=[noted, "range"])


def with_user_data(encoded, data):
    """A subscription or assignment of version 0 whose user data was null."""
    assert encoded.endswith(struct.pack(">i", -1))
    return encoded[:-4] + struct.pack(">i", len(data)) + data


def user_data(metadata):
    """That of a subscription."""
    (count,) = struct.unpack_from(">i", metadata, 2)
    at = 6
    for _ in range(count):
        at += 2 + struct.unpack_from(">h", metadata, at)[0]
    (length,) = struct.unpack_from(">i", metadata, at)
    return None if length < 0 else metadata[at + 4:at + 4 + length]


def subscribe(member):
    """Up to the JoinGroup that waits for the application."""
    member.subscribe()
    member.settle_metadata()
    member.find_coordinator()


def owning(data, *partitions):
    """A subscription of version 1, the first that has owned partitions, to topic t."""
    encoded = bytearray(with_user_data(subscription_bytes("t"), data))
    encoded[:2] = struct.pack(">h", 1)
    return bytes(encoded) + struct.pack(f">ih1si{len(partitions)}i", 1, 1, b"t", len(partitions), *partitions)


def join(member):
    subscribe(member)
    member.serve()
    return member.the(JOIN)


def lead(member, *others, data=b""):
    """The first join is answered: this member leads."""
    mine = {p["name"]: p["metadata"] for p in join(member)["body"]["protocols"]}["noted"]
    theirs = with_user_data(subscription_bytes("t"), data) if data else subscription_bytes("t")
    member.joined(protocol="noted", members={"m1": mine, **dict.fromkeys(others, theirs)})


def assignments(member):
    return {a["member_id"]: read_assignment(a["assignment"]) for a in member.the(SYNC)["body"]["assignments"]}


# -- the subscription


def test_the_join_waits_for_the_user_data(member, noted):
    subscribe(member)
    assert member.sent(JOIN) == []
    member.serve()
    first, second = member.the(JOIN)["body"]["protocols"]
    assert (first["name"], second["name"]) == ("noted", "range")
    assert (user_data(first["metadata"]), user_data(second["metadata"])) == (b"1", None)
    assert read_subscription(first["metadata"])["topics"] == ["t"]
    assert noted.asked == [["t"]]


def test_every_join_calls_the_assignor_again(member, noted):
    lead(member)
    member.serve()
    member.synced({"t": [0]})
    member.serve()
    member.answer_committed()
    noted.data = b"2"
    member.heartbeat(REBALANCE)
    member.serve()  # gives its partitions back
    assert member.sent(JOIN) == []
    member.serve()
    assert user_data(member.the(JOIN)["body"]["protocols"][0]["metadata"]) == b"2"
    assert noted.asked == [["t"], ["t"]]


def test_a_subscription_that_changes_meanwhile_asks_again(member, noted):
    subscribe(member)
    member.subscribe("u")
    member.serve()
    member.serve()
    assert noted.asked[-1] == ["u"]
    body = member.the(JOIN)["body"]
    assert read_subscription(body["protocols"][0]["metadata"])["topics"] == ["u"]


def test_a_class_without_user_data_is_not_asked():
    member = GroupLoop(partition_assignment_strategy=Silent)
    subscribe(member)
    (protocol,) = member.the(JOIN)["body"]["protocols"]
    assert (protocol["name"], user_data(protocol["metadata"])) == ("silent", None)


@pytest.mark.parametrize("data", ["text", 5])
def test_user_data_is_bytes(member, noted, data):
    noted.data = data
    subscribe(member)
    with pytest.raises(KafkaException, match=r"assignor noted: TypeError: subscription_user_data must be bytes"):
        member.consumer.poll(0)


def test_user_data_that_raises_is_asked_for_again(member, noted):
    noted.subscription_user_data = None  # cannot be called
    subscribe(member)
    with pytest.raises(KafkaException, match="assignor noted: TypeError"):
        member.consumer.poll(0)
    member.turn(2)
    assert member.sent(JOIN) == []
    del noted.subscription_user_data
    member.advance(1000)
    member.serve()
    assert user_data(member.the(JOIN)["body"]["protocols"][0]["metadata"]) == b"1"


# -- the assignment


def test_the_leader_asks_the_application(member, noted):
    lead(member, "m2", data=b"2")
    assert member.sent(SYNC) == []
    member.serve()
    assert assignments(member) == {"m1": {}, "m2": {"t": [0, 1, 2]}}
    ((topics, group),) = noted.groups
    assert {name: t.partition_count for name, t in topics.items()} == {"t": 3}
    assert {m.member_id: (m.topics, m.user_data, m.owned) for m in group.members.values()} == {
        "m1": ({"t"}, b"1", ()), "m2": ({"t"}, b"2", ())}


def test_every_assignor_gets_its_assignment_before_on_assign(member, noted):
    lead(member, "m2", data=b"0")
    member.serve()
    (mine,) = [a["assignment"] for a in member.the(SYNC)["body"]["assignments"] if a["member_id"] == "m1"]
    assert mine.endswith(b"all yours")
    calls = []
    noted.on_assignment = lambda assignment, generation: calls.append(
        (member.calls[:], len(assignment.partitions), assignment.user_data, generation))
    member.synced({}, assignment=mine)
    member.serve()
    assert calls == [([], 3, b"all yours", 1)]
    assert member.calls == [("assign", [("t", 0), ("t", 1), ("t", 2)])]


def test_a_followers_assignor_gets_the_whole_assignment_after_the_revocation():
    noted = Cooperative(b"1")
    member = GroupLoop(partition_assignment_strategy=[noted])
    join(member)
    member.joined(leader="m2")
    member.synced({"t": [0, 1]})
    member.serve()
    member.answer_committed()
    member.heartbeat(REBALANCE)
    member.serve()
    assert read_subscription(member.the(JOIN)["body"]["protocols"][0]["metadata"])["owned"] == {"t": [0, 1]}
    member.joined(leader="m2")
    member.synced({}, assignment=with_user_data(assignment_bytes({"t": [1]}), b"less"))
    member.serve()
    assert noted.told == [([("t", 0), ("t", 1)], None, 1)]
    member.serve()
    assert noted.told[1:] == [([("t", 1)], b"less", 2)]
    assert member.calls[1:] == [("revoke", [("t", 0)]), ("assign", [])]


def test_on_assignment_that_raises_stops_no_assignment(member, noted):
    lead(member)
    member.serve()
    noted.on_assignment = None
    member.synced({"t": [0]})
    with pytest.raises(KafkaException, match="assignor noted"):
        member.consumer.poll(0)
    member.turn()
    assert member.assigned == [("t", 0)]
    assert member.state == "STABLE"


def test_a_core_assignor_needs_no_call_of_the_application(member, noted):
    mine = {p["name"]: p["metadata"] for p in join(member)["body"]["protocols"]}
    member.joined(protocol="range", members={"m1": mine["range"], "m2": subscription_bytes("t")})
    assert assignments(member) == {"m1": {"t": [0, 1]}, "m2": {"t": [2]}}
    member.synced({"t": [0, 1]})
    member.serve()
    assert (noted.groups, noted.told) == ([], [])


def test_a_static_leader_that_returns_does_not_ask():
    noted = Noted()
    member = GroupLoop(partition_assignment_strategy=[noted], group_instance_id="i")
    join(member)
    member.joined(skip_assignment=True)
    assert member.the(SYNC)["body"]["assignments"] == []
    member.serve()
    assert noted.groups == []


def test_members_left_out_get_nothing():
    member = GroupLoop(partition_assignment_strategy=Silent())
    subscribe(member)
    member.joined()
    member.serve()
    assert assignments(member) == {"m1": {}}


def test_topics_that_only_others_want_are_known_first(member, noted):
    mine = join(member)["body"]["protocols"][0]["metadata"]
    member.topics["u"] = Topic({0: (1, 5)}, bytes(15) + b"u")
    member.joined(protocol="noted", members={"m1": mine, "m2": subscription_bytes("u", "gone")})
    member.serve()
    assert noted.groups == []
    member.settle_metadata()
    with pytest.raises(KafkaException, match=r"u \[0\] to member m1: the member is not subscribed to this topic"):
        member.consumer.poll(0)
    assert sorted(noted.groups[0][0]) == ["t", "u"]


# -- while the application is at it


def test_heartbeats_continue_while_the_application_is_awaited(member):
    lead(member)
    for _ in range(3):
        member.advance(HEARTBEAT_MS)
        member.refuse(HEARTBEAT, 0)
    assert member.state == "JOINING"
    member.serve()
    assert assignments(member) == {"m1": {"t": [0, 1, 2]}}


def test_heartbeats_continue_inside_the_assignor(member, noted):
    lead(member)

    def meanwhile():
        for _ in range(SESSION_MS // HEARTBEAT_MS + 1):
            member.advance(HEARTBEAT_MS)
            member.refuse(HEARTBEAT, 0)

    noted.meanwhile = meanwhile
    member.serve()
    assert assignments(member) == {"m1": {"t": [0, 1, 2]}}


def test_a_group_that_continued_drops_the_answer(member, noted):
    lead(member)
    noted.meanwhile = lambda: member.heartbeat(REBALANCE)
    member.serve()
    noted.meanwhile = None
    assert member.sent(SYNC) == []
    member.serve()
    member.joined(protocol="noted")
    member.serve()
    assert assignments(member) == {"m1": {"t": [0, 1, 2]}}
    assert len(noted.groups) == 2


def test_a_call_that_waited_does_not_assign_to_a_group_that_continued(member, noted):
    lead(member)
    member.heartbeat(REBALANCE)
    member.serve()
    assert noted.groups == []
    assert len(member.sent(JOIN)) == 1


def test_a_member_fenced_meanwhile_joins_again(member, noted):
    lead(member)
    noted.meanwhile = lambda: member.heartbeat(UNKNOWN_MEMBER)
    member.serve()
    noted.meanwhile = None
    assert member.sent(SYNC) == []
    member.serve()
    assert member.the(JOIN)["body"]["member_id"] == ""


def test_an_assignor_slower_than_the_poll_interval_leaves_the_group(member, noted):
    lead(member)

    def meanwhile():
        for _ in range(POLL_MS // HEARTBEAT_MS + 2):
            member.advance(HEARTBEAT_MS)
            for _ in member.sent(HEARTBEAT):
                member.refuse(HEARTBEAT, 0)
            for _ in member.sent(METADATA):
                member.settle_metadata()

    noted.meanwhile = meanwhile
    member.serve()
    assert member.serve() == [KafkaError._MAX_POLL_EXCEEDED]
    assert member.sent(SYNC) == []


def test_unsubscribing_withdraws_the_question(member, noted):
    lead(member)
    member.consumer.unsubscribe()
    member.serve()
    assert noted.groups == []
    assert member.sent(SYNC) == []


def test_a_call_that_only_waits_serves_the_assignor(member, noted):
    """commit(), committed() and the like wait for the group, which may wait for the assignor."""
    lead(member)
    member.consumer._serve()
    member.turn()
    assert assignments(member) == {"m1": {"t": [0, 1, 2]}}


# -- failures


def test_an_assignor_that_raises_is_named_and_asked_again(member, noted):
    lead(member)

    def broken():
        raise LookupError("no scales")

    noted.meanwhile = broken
    with pytest.raises(KafkaException, match="assignor noted: LookupError: no scales") as caught:
        member.consumer.poll(0)
    assert caught.value.args[0].code() == KafkaError._APPLICATION
    assert isinstance(caught.value.__cause__, LookupError)
    member.turn(2)
    assert member.sent(SYNC) == []
    assert member.sent(JOIN) == []
    noted.meanwhile = None
    assert member.serve() == []  # it is reported once
    member.advance(1000)
    member.serve()
    request = member.the(JOIN)
    assert request["body"]["reason"] == "the application's assignor raised an exception"
    assert request["body"]["member_id"] == "m1"
    member.joined(protocol="noted")
    member.serve()
    assert assignments(member) == {"m1": {"t": [0, 1, 2]}}


@pytest.mark.parametrize(("result", "reason"), [
    ({"z": []}, "'z' is not a member of the group"),
    ({"m1": [TopicPartition("t", 3)]}, r"t \[3\] to member m1: there is no such partition"),
    ({"m1": [TopicPartition("x", 0)]}, "there is no such partition"),
    ({"m1": [TopicPartition("t", 0)], "m2": [TopicPartition("t", 0)]}, "already given to member m1"),
    ({"m1": [("t", 0)]}, "element 0: expected a TopicPartition, not tuple"),
    (None, "assign returned NoneType"),
])
def test_assignments_that_are_refused(member, noted, result, reason):
    lead(member, "m2")
    noted.assign = lambda topics, group: result
    with pytest.raises(KafkaException, match=f"assignor noted: .*{reason}"):
        member.consumer.poll(0)
    member.turn(2)
    assert member.sent(SYNC) == []
    assert member.state == "JOINING"


def test_a_keyboard_interrupt_is_raised_unchanged(member, noted):
    lead(member)

    def interrupted():
        raise KeyboardInterrupt

    noted.meanwhile = interrupted
    with pytest.raises(KeyboardInterrupt):
        member.consumer.poll(0)
    noted.meanwhile = None
    member.turn()
    member.advance(1000)
    member.serve()
    assert len(member.sent(JOIN)) == 1


def test_a_choice_that_was_not_offered_is_refused(member):
    join(member)
    member.joined(protocol="sticky")
    assert member.serve() == [23]


def test_a_leader_that_leaves_after_its_assignor_failed_keeps_the_current_owners(member, noted):
    """Its generation would wait for an assignment, and refuse commits, until the rebalance timeout."""
    lead(member, "m2", data=b"2")

    def fail():
        raise LookupError("no scales")

    noted.meanwhile = fail
    with pytest.raises(KafkaException, match="no scales"):
        member.consumer.poll(0)
    member.turn()
    member.consumer.commit(offsets=[TopicPartition("t", 0, 5)])
    member.consumer.unsubscribe()  # the leave waits for the commit
    member.turn()
    assert assignments(member) == {"m1": {}, "m2": {}}


def test_a_failed_assignor_keeps_the_owners_and_is_asked_again(member, noted):
    """The coordinator refuses the commits of every member until the generation is complete.

    The next attempt waits for the leader's application, which may take long.
    """
    mine = {p["name"]: p["metadata"] for p in join(member)["body"]["protocols"]}["noted"]
    member.joined(protocol="noted", members={"m1": mine, "m2": owning(b"2", 0, 2)})

    def fail():
        raise LookupError("no scales")

    noted.meanwhile = fail
    with pytest.raises(KafkaException, match="no scales"):
        member.consumer.poll(0)
    member.turn(2)
    assert assignments(member) == {"m1": {}, "m2": {"t": [0, 2]}}
    noted.meanwhile = None
    member.synced({})
    assert member.sent(JOIN) == []  # it waits for the backoff
    member.serve()  # on_assign
    member.advance(1000)
    member.serve()
    member.serve()  # the user data of the new subscription
    request = member.the(JOIN)
    assert request["body"]["reason"] == "the application's assignor raised an exception"
    member.joined(protocol="noted")
    member.serve()
    assert assignments(member) == {"m1": {"t": [0, 1, 2]}}


# -- in the callback of a leave


def lead_again(in_callback):
    """A leader that joins again with its partition 0; `in_callback` is called in the on_revoke of its leave."""
    member = GroupLoop(partition_assignment_strategy=[Cooperative(b"1")])
    subscribe(member)
    member.consumer.subscribe(["t"], on_revoke=lambda *_: in_callback(member))
    member.serve()
    member.joined()
    member.serve()
    member.synced({"t": [0]})
    member.serve()
    member.answer_committed()
    member.heartbeat(REBALANCE)
    member.serve()
    return member


def answer_join(member):
    member.joined(members={"m1": member.the(JOIN)["body"]["protocols"][0]["metadata"], "m2": owning(b"2", 1, 2)})


def leave(member, how):
    if how == "close":
        member.consumer._pass_time = lambda: member.advance(100) or True
        member.consumer.close(0)
    else:
        member.consumer.unsubscribe()


@pytest.mark.parametrize("how", ["close", "unsubscribe"])
@pytest.mark.parametrize("joined_first", [True, False], ids=["before the callback", "in the callback"])
def test_a_leader_that_joined_keeps_the_owners_while_the_callback_of_its_leave_runs(how, joined_first):
    """The coordinator accepts no commit until then; the callback may take minutes."""
    sent = []

    def in_callback(member):
        if not joined_first:
            answer_join(member)
        member.turn(2)
        sent.append(assignments(member))
        member.synced({"t": [0]})
        assert member.sent(JOIN) == []

    member = lead_again(in_callback)
    if joined_first:
        answer_join(member)
        assert member.sent(SYNC) == []  # the assignor has not run
    leave(member, how)
    assert sent == [{"m1": {"t": [0]}, "m2": {"t": [1, 2]}}]


def test_a_commit_in_the_callback_of_a_leaders_leave_is_stored():
    """It waits for the generation, which waits for the assignor of the same application."""
    def in_callback(member):
        def pass_time():
            member.turn()
            if member.sent(SYNC):
                member.synced({"t": [0]})
            if member.sent(OFFSET_COMMIT):
                assert member.sent(SYNC) == []
                member.commits()
            return True

        member.consumer._pass_time = pass_time
        member.clock.advance(1)
        stored.extend(member.consumer.commit(offsets=[TopicPartition("t", 0, 5)], asynchronous=False))

    stored = []
    member = lead_again(in_callback)
    answer_join(member)
    member.consumer.unsubscribe()
    assert [(p.partition, p.offset, p.error) for p in stored] == [(0, 5, None)]


def test_a_leader_needs_no_metadata_to_keep_the_owners():
    sent = []

    def in_callback(member):
        metadata = member.the(JOIN)["body"]["protocols"][0]["metadata"]
        member.joined(members={"m1": metadata, "m2": subscription_bytes("unknown")})
        member.turn(2)
        sent.append(assignments(member))

    lead_again(in_callback).consumer.unsubscribe()
    assert sent == [{"m1": {"t": [0]}, "m2": {}}]


def test_a_member_that_subscribes_again_runs_its_assignor_again():
    member = lead_again(lambda member: None)
    member.consumer.unsubscribe()
    member.turn(2)
    member.refuse(LEAVE, 0)
    member.subscribe()
    member.settle_metadata()
    member.serve()
    member.joined()
    member.serve()
    assert assignments(member) == {"m1": {"t": [0, 1, 2]}}
