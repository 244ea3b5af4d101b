"""close(membership=…): what the coordinator hears (KIP-1092), in both protocols, from static and other members."""

import consumer_group_loop
import pytest
from consumer_group_loop import T
from group_loop import LEAVE, GroupLoop

from kconsumer._core.consumer.consumer import leave_operation

LEFT, LEFT_FOR_A_WHILE = -1, -2
STATIC = {"group_instance_id": "me"}
TIMEOUT_US = 5_000_000


def close(member, membership):
    """The group's part of close()."""
    assert list(member.consumer._leaving_group(TIMEOUT_US, leave_operation(membership))) == []


@pytest.mark.parametrize(("settings", "membership", "is_sent"), [
    ({}, "default", True), ({}, "leave", True), ({}, "remain", False),
    (STATIC, "default", False), (STATIC, "leave", True), (STATIC, "remain", False),
])
def test_classic(settings, membership, is_sent):
    member = GroupLoop(**settings)
    member.stable()
    member.read(0, 2)
    close(member, membership)
    member.turn()
    assert member.commits() == [("t", 0, 2)]  # whatever the group hears of the leave
    if is_sent:
        (identity,) = member.the(LEAVE)["body"]["members"]
        assert (identity["member_id"], identity["reason"]) == ("m1", "the consumer is being closed")
        member.refuse(LEAVE, 0)
    assert member.sent(LEAVE) == []
    assert member.state == "UNSUBSCRIBED"
    assert member.calls[-1][0] == "revoke"


@pytest.mark.parametrize(("settings", "membership", "epoch"), [
    ({}, "default", LEFT), ({}, "leave", LEFT), ({}, "remain", None),
    (STATIC, "default", LEFT_FOR_A_WHILE), (STATIC, "leave", LEFT), (STATIC, "remain", LEFT_FOR_A_WHILE),
])
def test_consumer_protocol(settings, membership, epoch):
    member = consumer_group_loop.Member(**settings)
    member.join(assignment={T: [0]})
    close(member, membership)
    member.settle()
    if epoch is not None:
        request = member.beat()
        assert request["body"]["member_epoch"] == epoch
        member.reply(request, epoch=epoch)
    assert member.beats() == []
    assert member.calls[-1][0] == "revoke"
    assert member.consumer.memberid() is None


@pytest.mark.parametrize("word", ["LEAVE", "", None, 1])
def test_another_word_is_an_error(word):
    with pytest.raises(ValueError, match="for membership: expected one of default, leave, remain"):
        leave_operation(word)
