"""Impossible times and names from a coordinator of the consumer protocol."""

import base64
import logging

import pytest
from consumer_group_loop import INTERVAL_MS, Member, T, V, carried, lookups, owned
from stepped_loop import METADATA

NOT_COORDINATOR = 16


@pytest.fixture
def member():
    return Member()

@pytest.mark.parametrize(("told", "kept"), [(2**31 - 1, 60_000), (60_001, 60_000), (1, 50)])
def test_a_heartbeat_interval_longer_than_the_session_is_limited(member, told, kept):
    member.join()
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), heartbeat_interval_ms=told)
    member.advance(kept - 1)
    assert member.beats() == []
    member.advance(1)
    assert carried(member.beat()) == set()


def test_ids_that_were_not_asked_for_are_ignored(member, caplog):
    """They would be remembered, and logged."""
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={T: [0], V: [0]})
    strangers = [b"strangers first" + bytes([n]) for n in range(256)]
    with caplog.at_level(logging.INFO):
        member.answer(lookups(member.requests(METADATA))[0], member.metadata_body([], topics=[
            {"error_code": 100, "name": None, "topic_id": i, "partitions": []} for i in [*strangers, V]]))
        member.reconcile()
    (told,) = [r.getMessage() for r in caplog.records if "was assigned, but" in r.getMessage()]
    assert f"topic id {base64.urlsafe_b64encode(V).decode().rstrip('=')} was assigned" in told


def test_names_of_owned_topics_are_not_forgotten(member):
    """Names are forgotten where there are over a thousand more than the assignment has."""
    member.join(assignment={T: [0]})
    many = {b"many" + bytes(10) + n.to_bytes(2, "big"): [0] for n in range(2000)}
    named = [{"error_code": 0, "name": f"many-{n}", "topic_id": i, "partitions": []} for n, i in enumerate(many)]

    def assign(epoch, target):
        """The target, and how many names were looked up for it."""
        member.advance(INTERVAL_MS)
        member.reply(member.beat(), epoch=epoch, assignment=target)
        asked = 0
        for request in lookups(member.requests(METADATA)):
            asked += len(request["body"]["topics"])
            member.answer(request, member.metadata_body([], topics=named))
        for _ in range(2):
            member.reconcile()
        member.acknowledge(epoch)
        return asked

    assert assign(2, {T: [0], **many}) == 2000
    assert len(member.assigned) == 2001
    some = dict(list(many.items())[:10])
    assert assign(3, {T: [0], **some}) == 0
    assert sorted(member.assigned) == sorted([("t", 0)] + [(f"many-{n}", 0) for n in range(10)])
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), NOT_COORDINATOR)
    member.advance(200)
    assert owned(member.beat()) == {T: [0], **some}  # a full heartbeat says what it owns
