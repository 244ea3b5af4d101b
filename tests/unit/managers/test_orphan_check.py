"""A static member that takes the place of its former life: partitions that this life left without an owner."""

from __future__ import annotations

import pytest
from group_loop import (
    COORDINATOR_CHANNEL,
    FIND_COORDINATOR,
    HEARTBEAT,
    HEARTBEAT_MS,
    JOIN,
    LEAVE,
    METADATA,
    NAMES,
    GroupLoop,
    assignment_bytes,
    read_subscription,
    subscription_bytes,
)
from stepped_loop import Topic

from tests.core import inside as inside_group

DESCRIBE = 15
NAMES[DESCRIBE] = "DescribeGroups"
LOADING, UNAVAILABLE, NOT_COORDINATOR, UNAUTHORIZED, REBALANCE = 14, 15, 16, 30, 27
COOPERATIVE = "cooperative-sticky"
THEIRS = {"m2": (["t"], {"t": [1, 2]})}


class Static(GroupLoop):
    """A static member. Topic t has three partitions, topic u has one."""

    def __init__(self, **settings) -> None:
        given = {"group_instance_id": "i", "partition_assignment_strategy": COOPERATIVE, **settings}
        super().__init__(**{name: value for name, value in given.items() if value is not None})
        self.topics["u"] = Topic({0: (1, 5)}, bytes(15) + b"u")

    def returns(self, mine=None, **fields) -> None:
        """It takes over the assignment of its former life, by default as the leader."""
        self.begin()
        self.joined(**{"skip_assignment": True, **fields})
        self.synced({"t": [0]} if mine is None else mine)
        self.serve()
        self.answer_committed()
        assert self.state == "STABLE"

    def advance_to_the_check(self) -> None:
        self.advance(HEARTBEAT_MS)
        self.refuse(HEARTBEAT, 0)

    def described(self, others, *, state="Stable", error=0, mine=None, **member) -> None:
        members = {"m1": (["t"], {"t": [0]} if mine is None else mine), **others}
        self.reply(DESCRIBE, {"throttle_time_ms": 0, "groups": [{
            "error_code": error, "error_message": None, "group_id": "g", "group_state": state,
            "protocol_type": "consumer", "protocol_data": COOPERATIVE, "authorized_operations": 0, "members": [{
                "member_id": name, "group_instance_id": None, "client_id": "", "client_host": "",
                "member_metadata": subscription_bytes(*topics), "member_assignment": assignment_bytes(assigned),
                **member}
                for name, (topics, assigned) in members.items()]}]})

    def beats(self, times: int) -> None:
        for _ in range(times):
            self.heartbeat()


@pytest.fixture
def static():
    return Static()


def test_the_returning_leader_begins_the_rebalance_that_its_former_life_owed(static):
    static.returns()
    assert static.sent(DESCRIBE) == []  # the owner of a partition may be about to give it up
    static.advance_to_the_check()
    request = static.the(DESCRIBE)
    assert (request["node"], request["channel"], request["body"]["groups"]) == (2, COORDINATOR_CHANNEL, ["g"])
    static.described({"m2": (["t"], {})})
    join = static.the(JOIN)["body"]
    assert (join["reason"], join["member_id"]) == ("a partition has no owner", "m1")
    told = read_subscription(join["protocols"][0]["metadata"])
    assert (told["owned"], told["generation"]) == ({"t": [0]}, 1)  # the coordinator sees a change
    static.joined()
    static.synced({"t": [0, 1]})
    static.serve()
    static.beats(3)
    assert static.sent(DESCRIBE) == []


def test_a_returning_member_changes_nothing_where_every_partition_has_an_owner(static):
    static.returns()
    static.advance_to_the_check()
    static.described(THEIRS)
    static.beats(3)
    assert (static.sent(JOIN), static.sent(DESCRIBE)) == ([], [])


def test_a_returning_follower_of_a_cooperative_group_checks_too(static):
    static.returns(leader="m2", skip_assignment=False)
    static.advance_to_the_check()
    static.described({"m2": (["t"], {"t": [2]})})
    assert static.the(JOIN)["body"]["reason"] == "a partition has no owner"


def test_a_topic_grew_while_the_leader_of_an_eager_group_was_away():
    static = Static(partition_assignment_strategy="range")
    static.returns({"t": [0, 1]})
    static.advance_to_the_check()
    static.described({}, mine={"t": [0, 1]})
    static.serve()  # an eager member revokes all before it joins again
    assert static.the(JOIN)["body"]["reason"] == "a partition has no owner"


@pytest.mark.parametrize(("settings", "fields"), [
    ({}, {"skip_assignment": False}),                                                   # it has assigned everything
    ({"partition_assignment_strategy": "range"}, {"leader": "m2", "skip_assignment": False}),  # nothing is owed
    ({"group_instance_id": None}, {"leader": "m2", "skip_assignment": False}),
])
def test_a_member_that_owes_nothing_asks_nothing(settings, fields):
    member = Static(**settings)
    member.returns(**fields)
    member.beats(3)
    assert member.sent(DESCRIBE) == []


def test_a_member_that_joins_again_under_its_id_does_not_check(static):
    static.returns()
    static.subscribe("t", "u")
    static.settle_metadata()
    static.serve()
    static.joined(leader="m2")
    static.synced({"t": [0]})
    static.serve()
    static.beats(3)
    assert (static.sent(DESCRIBE), static.sent(JOIN)) == ([], [])


def test_topics_of_other_members_count(static):
    static.returns()
    static.advance_to_the_check()
    static.described({"m2": (["t", "u"], {"t": [1, 2]})})
    assert inside_group.interest(static.consumer) == ["t", "u"]
    assert static.sent(JOIN) == []
    static.settle_metadata()
    static.turn(2)
    assert static.the(JOIN)["body"]["reason"] == "a partition has no owner"
    assert inside_group.interest(static.consumer) == ["t"]


def test_a_topic_that_does_not_exist_has_no_partitions(static):
    static.returns()
    static.advance_to_the_check()
    static.described({"m2": (["nothing", "t"], {"t": [1, 2]})})
    static.settle_metadata()
    static.beats(2)
    assert static.sent(JOIN) == []
    assert inside_group.interest(static.consumer) == ["t"]


def test_a_group_that_is_rebalancing_is_asked_again(static):
    static.returns()
    static.advance_to_the_check()
    static.described({"m2": (["t"], {})}, state="PreparingRebalance", member_metadata=b"", member_assignment=b"")
    assert static.sent(DESCRIBE) == []
    static.advance_to_the_check()
    static.described({"m2": (["t"], {})})
    assert static.sent(JOIN)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance"])
def test_the_next_generation_ends_the_check(static, state):
    static.returns()
    static.advance_to_the_check()
    static.heartbeat(REBALANCE)
    static.joined(leader="m2")
    static.described({"m2": (["t"], {})}, state=state)
    static.synced({"t": [0]})
    static.serve()
    static.beats(3)
    assert (static.sent(JOIN), static.sent(DESCRIBE)) == ([], [])


@pytest.mark.parametrize("error", [LOADING, UNAVAILABLE, NOT_COORDINATOR])
def test_an_answer_that_says_later_is_asked_for_again(static, error):
    static.returns()
    static.advance_to_the_check()
    static.described({}, error=error, state="")
    static.turn(2)
    if error != LOADING:
        static.find_coordinator()
    static.advance(200)
    static.described({"m2": (["t"], {})})
    assert static.sent(JOIN)


def test_a_lost_connection_is_no_answer(static):
    static.returns()
    static.advance_to_the_check()
    static.fail(static.the(DESCRIBE))
    static.turn(2)
    static.find_coordinator(1)
    static.advance(200)
    assert static.the(DESCRIBE)["node"] == 1


@pytest.mark.parametrize("answer", [
    {"error": UNAUTHORIZED}, {"member_metadata": b"\0"}, {"member_assignment": b"\0\0\0\0"}])
def test_an_answer_that_does_not_help_ends_the_check(static, answer):
    static.returns()
    static.advance_to_the_check()
    static.described({"m2": (["t"], {})}, **answer)
    static.beats(3)
    assert (static.sent(JOIN), static.sent(DESCRIBE), static.sent(FIND_COORDINATOR)) == ([], [], [])
    assert static.serve() == []


def test_a_response_that_cannot_be_read_is_asked_for_again(static):
    static.returns()
    static.advance_to_the_check()
    static.network.answer(static.the(DESCRIBE)["id"], b"\1")
    static.turn(2)
    static.find_coordinator()
    static.advance(200)
    assert static.sent(DESCRIBE)


def test_a_broker_without_describe_groups(static):
    static.network.set_version(DESCRIBE, -1, -1)
    static.returns()
    static.beats(3)
    assert (static.sent(JOIN), static.state) == ([], "STABLE")


def test_a_member_that_goes_ends_its_check(static):
    static.returns()
    static.advance_to_the_check()
    static.described({"m2": (["t", "u"], {})})
    static.consumer.unsubscribe()
    static.turn(2)
    assert (static.sent(LEAVE), inside_group.interest(static.consumer)) == ([], [])
    if static.sent(METADATA):
        static.settle_metadata()
    static.turn(2)
    assert (static.state, static.sent(JOIN)) == ("UNSUBSCRIBED", [])
