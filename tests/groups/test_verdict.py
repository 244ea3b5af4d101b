"""The judge of the scenarios, on traces with one fault each: a judge that sees nothing would let everything pass."""

from __future__ import annotations

import pytest
from verdict import Life, Verdict, Written, judge

P = "t/0"


def owner(name: str, start: float, *events: dict, **more) -> Life:
    return Life(name, "kconsumer", [{"t": start, "e": "assigned", "p": [P]}, *events], **more)


def read(t: float, first: int, last: int, n: int | None = None) -> dict:
    return {"t": t, "e": "read", "p": P, "o": [first, last], "n": last - first + 1 if n is None else n}


def ended(t: float, how: str) -> list[dict]:
    return ([{"t": t, "e": "revoking", "p": [P]}] if how == "revoked" else []) + [{"t": t, "e": how, "p": [P]}]


def commit(sent: float, offset: int, ok: bool = True, error: str = "X") -> dict:
    return {"t": sent + 0.01, "e": "commit", "o": {P: offset}, "ok": ok, "error": None if ok else error, "sent": sent}


def verdict(*lives: Life, end: int = 20, **more) -> Verdict:
    written = Written([{"t": 0.01 * n, "e": "acked", "o": [n]} for n in range(end + 1)], "t")
    return judge(list(lives), written, **more)


def test_a_clean_handover():
    found = verdict(owner("a", 0, read(1, 0, 9), commit(1.1, 10), *ended(2, "revoked")), owner("b", 3, read(4, 10, 19)))
    assert found.wrong == []
    assert (found.records, found.repeated, found.moves) == (20, 0, [3])
    assert found.handover[P] == [pytest.approx(3.0)]


def test_the_last_records_of_a_killed_member_may_repeat():
    found = verdict(owner("a", 0, read(1, 0, 4), commit(1.1, 5), read(2, 5, 9), killed=2.5),
                    owner("b", 3, read(4, 5, 19)))
    assert found.wrong == []
    assert dict(found.repeated_for) == {"killed": 5}


@pytest.mark.parametrize(("offsets", "more", "right"), [
    ((11, 12, 13), {"killed": 2.5}, True),
    ((11, 12), {"killed": 2.5}, False),  # 12 was read by no member
    ((12, 13), {"killed": 2.5}, False),  # 10 neither
    ((11, 13), {"killed": 2.5}, False),  # 11 neither
    ((11, 12, 13), {}, False),  # one that lives reports its reads
])
def test_a_member_killed_before_it_reported_its_reads_has_read_what_it_committed(offsets, more, right):
    """The group continued after a commit that was made and stored before the kill."""
    life = owner("a", 0, read(1, 0, 9), *(accepted(1.1, offset) for offset in offsets), **more)
    other = owner("b", 3, read(4, 13, 19))
    assert (verdict(life, other).wrong == []) is right


FAULTS = {
    "lost: t/0 [10, 11]": [owner("a", 0, read(1, 0, 9), *ended(2, "revoked")), owner("b", 3, read(4, 12, 19))],
    "no member read":  [owner("a", 0, read(1, 0, 9))],
    "two owners": [owner("a", 0, read(1, 0, 9), *ended(3.5, "revoked")), owner("b", 3, read(4, 10, 19))],
    "without owning it": [owner("a", 0, read(1, 0, 9), *ended(2, "revoked"), read(3, 10, 19))],
    "came at 2.000, not 10": [owner("a", 0, read(1, 0, 9), read(2, 11, 19))],
    "but 10 had been committed": [owner("a", 0, read(1, 0, 9), commit(1, 10), killed=2), owner("b", 3, read(4, 5, 19))],
    "which was then": [owner("a", 0, read(1, 0, 9), commit(4.5, 10), *ended(5, "lost"), may_lose=True),
                       owner("b", 3, read(4, 10, 19))],
    "but only 10 had been read": [owner("a", 0, read(1, 0, 9), killed=2), owner("b", 3, read(4, 12, 19))],
    "read 9 records": [owner("a", 0, read(1, 0, 19, n=9))],
    "assigned at 1.000, but it owned it": [owner("a", 0, {"t": 1.0, "e": "assigned", "p": [P]}, read(2, 0, 19))],
    "but it did not own it": [owner("a", 0, read(1, 0, 19), *ended(2, "revoked"), *ended(3, "lost"))],
    "after its fatal error": [owner("a", 0, {"t": 1, "e": "error", "error": "_FATAL", "fatal": False},
                                        read(2, 0, 19))],
    "had read up to 10": [owner("a", 0, read(1, 0, 9), *ended(2, "revoked"), auto_commit=True),
                          owner("b", 3, read(4, 5, 19))],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_the_verdict(fault):
    found = verdict(*FAULTS[fault])
    assert any(fault in text for text in found.wrong), found.wrong


def accepted(t: float, offset: int) -> dict:
    return {"t": t, "e": "accepted", "o": {P: offset}}


def reported(t: float, offset: int, error: str = "") -> dict:
    return {**commit(t, offset, not error, error), "sent": t - 0.1}


CLOSED = {"t": 3, "e": "closed"}
LOST = {"t": 2, "e": "lost", "p": [P]}


@pytest.mark.parametrize(("events", "life", "more", "fault"), [
    ([accepted(1.1, 20), reported(1.2, 20), CLOSED], {}, {}, ""),
    ([accepted(1.1, 20), accepted(1.1, 20), reported(1.2, 20), CLOSED], {}, {}, "vanished"),
    ([accepted(1.1, 20)], {"killed": 2.0}, {}, ""),
    ([accepted(1.1, 20), reported(2, 20, "UNKNOWN_MEMBER_ID"), CLOSED], {}, {}, "UNKNOWN_MEMBER_ID"),
    ([accepted(1.1, 20), reported(2, 20, "UNKNOWN_MEMBER_ID"), CLOSED], {"may_lose": True}, {"brokers_fail": True},
     "UNKNOWN_MEMBER_ID"),  # it left by itself: it has lost nothing
    ([accepted(1.1, 20), reported(2, 20, "UNKNOWN_MEMBER_ID"), LOST, CLOSED], {"may_lose": True}, {}, ""),
    ([accepted(1.1, 20), reported(2, 20, "UNKNOWN_MEMBER_ID"), CLOSED], {"stops": [[1.2, 1.9]]}, {}, ""),
    ([accepted(1.1, 20), reported(2, 20, "_TIMED_OUT"), CLOSED], {}, {}, "_TIMED_OUT"),
    ([accepted(1.1, 20), reported(2, 20, "_TIMED_OUT"), CLOSED], {}, {"brokers_fail": True}, ""),
    ([accepted(1.1, 20), reported(2, 20, "_DESTROY"), CLOSED], {}, {"brokers_fail": True}, "_DESTROY"),
])
def test_no_accepted_commit_vanishes(events, life, more, fault):
    found = verdict(owner("a", 0, read(1, 0, 19), *events, **life), **more)
    assert [fault in text for text in found.wrong] == ([True] if fault else [])


@pytest.mark.parametrize(("leader", "error", "leaders", "right"), [
    ({"stops": [[1.0, 7.5]]}, "_TIMED_OUT", True, True),
    ({"killed": 1.0}, "_TIMED_OUT", True, True),
    ({}, "_TIMED_OUT", True, False),
    ({"stops": [[0.1, 0.3]]}, "_TIMED_OUT", True, False),  # it ran again before the commit was made
    ({"stops": [[1.0, 7.5]]}, "_DESTROY", True, False),
    ({"stops": [[1.0, 7.5]]}, "_TIMED_OUT", False, False),  # the coordinator assigns: nothing waits for a member
])
def test_a_leader_that_stands_still_holds_up_the_commits_of_its_group(leader, error, leaders, right):
    late = {**commit(7.3, 15, False, error), "sent": 1.2}
    first = owner("a", 0, read(1, 0, 19), accepted(1.2, 15), late, *ended(8, "revoked"))
    found = verdict(first, owner("b", 9, read(10, 10, 19)), Life("c", "kconsumer", **leader), leaders=leaders)
    assert (found.wrong == []) is right
    assert dict(found.repeated_for) == {"held up" if right else "commit failed": 10}


@pytest.mark.parametrize(("stored", "right"), [(20, True), (19, False), (None, False)])
def test_the_group_has_the_offsets_that_were_reported_as_stored(stored, right):
    life = owner("a", 0, read(1, 0, 19), accepted(1.1, 20), reported(1.2, 20), CLOSED)
    found = verdict(life, stored={} if stored is None else {P: stored})
    assert (found.wrong == []) is right


def test_the_reason_of_a_repetition():
    failed = [commit(1.9, 10, ok=False)]
    for kind, how, commits, reason in (
            ("kconsumer", "revoked", failed, "commit failed"), ("kconsumer", "revoked", [], "revoked"),
            ("kconsumer", "lost", [], "lost"), ("confluent", "revoked", failed, "commit after a join"),
            ("confluent", "revoked", [], "commit overtaken")):
        first = Life("a", kind, [{"t": 0, "e": "assigned", "p": [P]}, read(1, 0, 9), *commits, *ended(2, how)])
        found = verdict(first, owner("b", 3, read(4, 5, 19)))
        assert dict(found.repeated_for) == {reason: 5}


def test_a_member_that_hung_in_close_owns_nothing_once_close_began():
    """Its process is killed long after; what it read before is committed or comes again with a reason."""
    hung = owner("a", 0, read(1, 0, 9), commit(2.1, 10), {"t": 2.2, "e": "closed"}, closing=2.0, killed=22.0)
    assert verdict(hung, owner("b", 3, read(4, 10, 19))).wrong == []
    assert verdict(hung, owner("b", 2.15, read(4, 10, 19))).wrong != []


def test_records_read_by_an_unaware_fenced_member_are_no_fault_of_later_owners():
    zombie = owner("z", 0, read(0.5, 0, 4), read(6, 5, 19), *ended(6.1, "lost"), stops=[[0.6, 5.9]])
    found = verdict(zombie, owner("a", 1, read(2, 0, 9), commit(2.1, 10), *ended(2.5, "revoked")),
                    owner("b", 3, read(7, 10, 19)))
    assert found.wrong == [] and dict(found.repeated_for) == {"lost": 20}
    found = verdict(zombie, owner("a", 1, read(2, 0, 9), *ended(2.5, "revoked")), owner("b", 3, read(7, 5, 19)))
    assert dict(found.repeated_for) == {"lost": 20, "revoked": 5}


def test_records_returned_early_by_another_client_are_no_fault_of_the_group():
    def group(**more) -> Verdict:
        return verdict(owner("a", 0, read(1, 0, 9), commit(3.4, 10), *ended(3.5, "revoked"), **more),
                       owner("b", 3, read(4, 5, 19)))

    found = group(gives_early=True)
    assert found.wrong == [] and dict(found.repeated_for) == {"given early": 5}
    assert len(group().wrong) == 2


def test_silences():
    """From the time a record is available until it is read, while a partition stays; stopped members do not count."""
    life = owner("a", 0, read(0.5, 0, 4), read(2.5, 5, 19))
    assert verdict(life).silence == {("kconsumer", P): pytest.approx(2.0)}
    assert verdict(owner("a", 0, read(0.5, 0, 4), read(2.5, 5, 19), stops=[[1.0, 2.0]])).silence == {}
    later = owner("a", 0, read(0.03, 0, 4), read(0.11, 5, 19))  # offset 5 was there at 0.06
    assert verdict(later).silence == {("kconsumer", P): pytest.approx(0.05)}


def test_silence_while_brokers_do_not_answer_their_writer_either():
    def silence(*told: tuple[float, int]) -> float:
        written = Written([{"t": t, "e": "acked", "o": [end]} for t, end in told], "t")
        life = owner("a", 0, read(0.5, 0, 4), read(4.0, 5, 19))
        return judge([life], written).silence[("kconsumer", P)]

    # Offset 5 was there at 1.0, and the next that was acknowledged came at 3.5.
    assert silence((0.9, 5), (1.0, 10), (2.0, 10), (3.5, 15), (3.6, 20)) == pytest.approx(0.5)
    assert silence((0.9, 5), (1.0, 10), (1.2, 11), (1.4, 12), (1.6, 20)) == pytest.approx(3.0)
    assert silence((0.9, 5), (1.0, 20), (2.0, 20), (5.0, 20)) == pytest.approx(3.0)  # it has written all


@pytest.mark.parametrize(("error", "first", "right"), [
    ("_TRANSPORT", 5, True), ("_TIMED_OUT", 5, True),
    ("_TRANSPORT", 4, False),  # no commit of that offset was sent
    ("UNKNOWN_MEMBER_ID", 5, False),  # this one was answered
])
def test_an_unanswered_commit_may_be_stored_after_a_later_commit(error, first, right):
    found = verdict(
        owner("a", 0, read(1, 0, 9), commit(1.1, 5, False, error), commit(1.2, 10), *ended(2, "lost")),
        owner("b", 3, read(4, first, 19)))
    assert ([wrong for wrong in found.wrong if "had been committed" in wrong] == []) is right


@pytest.mark.parametrize(("name", "committed", "right"), [
    ("s", False, True),
    ("t", False, False),  # not the member whose place the other took
    ("s", True, False),   # the coordinator accepted a commit of a fenced member
])
def test_a_static_member_fenced_before_its_on_assign_ran_owned_nothing(name, committed, right):
    winner = owner("s", 0, read(1, 0, 9), commit(1.1, 10), read(3, 10, 20), commit(3.1, 21), *ended(5, "revoked"),
                   may_lose=True)
    fenced = owner(name, 2, read(2.1, 10, 11), commit(2.2, 12, committed, "FENCED_INSTANCE_ID"), *ended(2.3, "lost"),
                   may_lose=True)
    assert (verdict(winner, fenced).wrong == []) is right


@pytest.mark.parametrize(("name", "committed", "right"), [("a", 10, True), ("a", 9, False), ("b", 10, False)])
def test_a_fenced_static_member_may_begin_where_its_successor_has_committed(name, committed, right):
    fenced = owner("a", 1, read(3, 10, 11), *ended(3.5, "lost"), may_lose=True)
    successor = owner(name, 2, read(2.4, 0, 9), commit(2.5, committed), read(4, 10, 19), may_lose=True)
    found = verdict(fenced, successor)
    assert (found.wrong == []) is right
    if right:
        assert dict(found.repeated_for) == {"lost": 2}


def test_unexpected_events_of_a_member_are_reported():
    """A Java member that closes while others close reports its partitions as lost. So does a librdkafka member that the
    broker removed for a missed target. No other member may, and neither of them earlier."""
    events = [{"t": 1, "e": "error", "error": "X", "fatal": False}, {"t": 2, "e": "lost", "p": []}, *ended(3, "lost")]
    assert Life("a", "java", events, closing=2.5).complaints() == events[:1]
    assert Life("a", "java", events, closing=3.5).complaints() == [events[0], events[2]]
    assert Life("a", "confluent", events, closing=2.5).complaints() == [events[0], events[2]]
    assert Life("a", "confluent", events, deaf=True).complaints() == events[:1]


def test_a_stopped_member_reports_lost_partitions_as_revoked():
    """A revocation that commits, and one of a member that ran, are what they are called."""
    def group(ok: bool, **more) -> Verdict:
        revocation = [{"t": 6.1, "e": "revoking", "p": [P]}, {**commit(6.2, 10, ok), "where": "revoke"},
                      {"t": 6.3, "e": "revoked", "p": [P]}]
        return verdict(owner("a", 0, read(1, 0, 9), *revocation, **more), owner("b", 3, read(4, 5, 19)))

    found = group(False, stops=[[1.5, 6.0]])
    assert found.wrong == [] and dict(found.repeated_for) == {"lost": 5}
    assert any("two owners" in wrong for wrong in group(False, stops=[[1.5, 3.0]]).wrong)
    assert any("two owners" in wrong for wrong in group(True, stops=[[1.5, 6.0]]).wrong)
    assert any("two owners" in wrong for wrong in group(False).wrong)


@pytest.mark.parametrize(("kind", "reads", "right"), [
    ("confluent", [read(5, 0, 3), read(5.1, 10, 19)], True),
    ("kconsumer", [read(5, 0, 3), read(5.1, 10, 19)], False),
    ("confluent", [read(5, 1, 3), read(5.1, 10, 19)], False),  # where it never was
    ("confluent", [read(5, 0, 19)], False),  # it stays there
])
def test_librdkafka_may_return_records_of_an_earlier_assignment(kind, reads, right):
    again = [*ended(0.5, "revoked"), {"t": 4, "e": "assigned", "p": [P]}, *reads]
    first = Life("a", kind, [{"t": 0, "e": "assigned", "p": [P]}, *again])
    found = verdict(first, owner("b", 1, read(2, 0, 9), commit(2.1, 10), *ended(3, "revoked")))
    assert (found.wrong == []) is right
    assert found.repeated == 0 or not right
