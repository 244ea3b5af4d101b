"""The judge of a history: failures that it excuses, and failures that it must report."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from kconsumer import KafkaError

from .failures import FOREVER_MS, CommitFailures, Suspect, condemned
from .history import History
from .member import Accepted, Member
from .reader import Broken
from .words import LastWords

TRIMMED_SEEDS = range(50)
CLIENT = SimpleNamespace(number=1)
LEAVES = "1002.000 client 1: LeaveGroup v5 to 1/2"
LEAVES_BY_HEARTBEAT = "1002.000 group: client 1 leaves (-1)"
REMOVED = "1001.000 group: member-1 is not a member any more"
REMOVED_BY_ITS_LEAVE = "1002.001 group: member-1 is not a member any more"
ANOTHER_REMOVED = "1001.000 group: member-11 is not a member any more"
REFUSED = "1003.000 group: commit of client 1 (member-1, epoch 2) is refused: 25"
REFUSED_AS_A_MEMBER = "1002.001 group: commit of client 1 (member-1, epoch 2) is refused: 22"


@pytest.mark.parametrize("lines, forgotten, is_condemned", [
    ([LEAVES, REMOVED_BY_ITS_LEAVE, REFUSED], False, True),
    ([LEAVES, REMOVED_BY_ITS_LEAVE, REFUSED], True, True),
    ([ANOTHER_REMOVED, LEAVES, REMOVED_BY_ITS_LEAVE, REFUSED], False, True),
    ([LEAVES_BY_HEARTBEAT, REFUSED], False, True),
    ([REMOVED, LEAVES, REFUSED], False, False),
    # The commit came before the leave, on one connection. Without it, the commit could be sent again.
    ([LEAVES, REFUSED_AS_A_MEMBER, REMOVED_BY_ITS_LEAVE], False, True),
    ([LEAVES, REFUSED_AS_A_MEMBER, REMOVED_BY_ITS_LEAVE], True, False),
    ([REMOVED, REFUSED], False, False),
])
def test_a_refused_commit_is_held_against_a_leave_before_it(lines, forgotten, is_condemned):
    assert bool(condemned([Suspect(CLIENT, 1000_000, 1009_000, "the commit failed", forgotten)], lines)) == is_condemned


WHERE = ("red", 0)
ACCEPTED_MS = 1_004_000


def spans(*relative):
    return [(ACCEPTED_MS + begin, ACCEPTED_MS + end) for begin, end in relative]


def member_of_a_waiting_group(leader, *, away=(), stood=(), gone=(), own_assignor=True, waited_ms=6000,
                             leaves_after_ms=-9000, commit_ms=6000, static=True):
    """A member whose group has waited for an assignment, of another member that was away, stood still or left."""
    settings = {"group.instance.id": "instance-1"} if static else {}
    members = [SimpleNamespace(away=[], settings=settings, failures=SimpleNamespace(stood=[], gone=[])),
               SimpleNamespace(away=spans(*away), settings=settings,
                               failures=SimpleNamespace(stood=spans(*stood), gone=spans(*gone)))]
    waits = [] if leader is None else [(ACCEPTED_MS - 1000, ACCEPTED_MS + 8000, leader)]
    history = SimpleNamespace(own_assignor=own_assignor, applications=members, commit_ms=commit_ms, static=static,
                              cluster=SimpleNamespace(awaited_assignments=waits))
    return SimpleNamespace(history=history, simulation=SimpleNamespace(now_ms=ACCEPTED_MS + waited_ms),
                           leaving_ms=ACCEPTED_MS + leaves_after_ms)


@pytest.mark.parametrize("member, is_excused", [
    (member_of_a_waiting_group(1, away=[(-2000, 9000)]), True),
    (member_of_a_waiting_group(1, away=[(-2000, 9000)], own_assignor=False), False),  # the client assigns without it
    (member_of_a_waiting_group(1, stood=[(-2000, 9000)], own_assignor=False), True),
    (member_of_a_waiting_group(0, away=[(-2000, 9000)]), False),                      # another member is away
    (member_of_a_waiting_group(1, away=[(3001, 9000)]), False),                       # for less than half of the time
    (member_of_a_waiting_group(1, away=[(-2000, 9000)], waited_ms=2000), True),       # close() has less time
    (member_of_a_waiting_group(1, away=[(3001, 9000)], leaves_after_ms=4000), True),   # its leave ends the commit
    (member_of_a_waiting_group(1, away=[(-2000, 9000)], waited_ms=9000, leaves_after_ms=8990), True),  # ended before
    (member_of_a_waiting_group(1, away=[(3001, 9000)], waited_ms=9000, leaves_after_ms=8990), False),
    (member_of_a_waiting_group(1, stood=[(-2000, FOREVER_MS)], own_assignor=False), True),  # the leader has crashed
    (member_of_a_waiting_group(1, gone=[(-2000, FOREVER_MS)], own_assignor=False), True),   # a static leader has left
    (member_of_a_waiting_group(1, gone=[(-2000, FOREVER_MS)], static=False), False),        # another assigns before
    (member_of_a_waiting_group(1, gone=[(-9000, -2000)], own_assignor=False), False),       # and was back
    (member_of_a_waiting_group(1, stood=[(4000, 9000)], gone=[(4000, 9000)]), False),       # one time, counted once
    (member_of_a_waiting_group(1, stood=[(-2000, 1500)], gone=[(1000, 3000)]), True),
    (member_of_a_waiting_group(1, away=[(-2000, 9000)], waited_ms=9000, leaves_after_ms=4000), True),  # heard of late
    (member_of_a_waiting_group(1, away=[(-2000, 3000)], waited_ms=4000, leaves_after_ms=3000), False),  # too early
    (member_of_a_waiting_group(None, away=[(-2000, 9000)]), False),                   # the group has its assignment
    (member_of_a_waiting_group(1, away=[(5000, 9000)], commit_ms=1500), True),        # an impatient commit
    (member_of_a_waiting_group(1, away=[(5500, 9000)], commit_ms=1500), False),
])
def test_a_commit_may_run_out_of_time_while_the_group_waits_for_its_assignment(member, is_excused):
    failures = CommitFailures(member)
    failures.leaving_ms = member.leaving_ms
    assert failures.waited_for_an_assignment(ACCEPTED_MS) == is_excused


@pytest.mark.parametrize("leader, code, too_long, overran_ms, is_excused", [
    (1, KafkaError.REBALANCE_IN_PROGRESS, False, -1, True),
    (None, KafkaError.REBALANCE_IN_PROGRESS, False, -1, False),
    (None, KafkaError._TIMED_OUT, False, -1, False),
    (1, KafkaError.UNKNOWN_MEMBER_ID, False, -1, False),
    (1, KafkaError._ASSIGNMENT_LOST, True, -1, True),            # the call took longer than max.poll.interval.ms
    (1, KafkaError._ASSIGNMENT_LOST, False, ACCEPTED_MS, True),  # or one before it did
    (1, KafkaError._ASSIGNMENT_LOST, False, ACCEPTED_MS - 1, False),
    (None, KafkaError._ASSIGNMENT_LOST, True, -1, False),
])
def test_a_commit_is_held_up_only_while_the_group_waits(leader, code, too_long, overran_ms, is_excused):
    member = member_of_a_waiting_group(leader, gone=[(-2000, FOREVER_MS)])
    member.takes_too_long, member.overran_ms = lambda: too_long, overran_ms
    assert CommitFailures(member).is_held_up(KafkaError(code), ACCEPTED_MS) == is_excused


@pytest.mark.parametrize("read_again, error, other_error, is_broken", [
    ({}, None, None, False),
    ({WHERE: 5, ("other", 0): 7}, None, None, True),
    ({WHERE: 5}, KafkaError(KafkaError._TIMED_OUT), None, False),
    ({WHERE: 5}, None, KafkaError(KafkaError._TIMED_OUT), False),  # of this partition
    ({("other", 0): 5}, None, None, False),
])
def test_a_stored_commit_was_stored_before_its_records_are_read_again(read_again, error, other_error, is_broken):
    member = SimpleNamespace(broken=Broken)
    stored = SimpleNamespace(topic=WHERE[0], partition=WHERE[1], offset=8, error=other_error)
    accepted = Accepted({WHERE: 8}, ACCEPTED_MS, read_again)
    with pytest.raises(Broken, match="was read again before") if is_broken else contextlib.nullcontext():
        Member.check_handover(member, accepted, error, [stored])
    Broken.first = None


@pytest.mark.parametrize("faults_end, since_ms, works", [(True, 29_999, False), (True, 30_000, True),
                                                         (False, 90_000, False)])
def test_faults_explain_a_failure_only_until_they_are_over(faults_end, since_ms, works):
    history = SimpleNamespace(brokers_fail=True, healthy_since_ms=10_000,
                              allowed_wait_ms=lambda: 20_000 if faults_end else None)
    assert History.works_since(history, since_ms) == works


def test_a_process_that_goes_on_late_stood_still_until_then():
    failures = CommitFailures(SimpleNamespace(simulation=SimpleNamespace(now_ms=1000)))
    failures.stands_still(500)
    failures.member.simulation.now_ms = 9000
    failures.goes_on()
    assert failures.ran_out(2000)


def trimmed_history():
    """A history, and a partition of it whose first records retention has removed."""
    for seed in TRIMMED_SEEDS:
        history = History(seed, "consumer")
        for _ in range(2000):
            history.step(history.simulation.now_ms + 50)
            where = next((w for w in history.partitions() if history.cluster.log_start(*w) > 3), None)
            if where is not None and where not in history.sought and history.applications[0].running:
                return history, where
        history.release()
    raise AssertionError("no history has removed records")


def test_a_commit_goes_back_over_records_that_exist_only():
    history, where = trimmed_history()
    start = history.cluster.log_start(*where)
    now_ms, read_committed = history.simulation.now_ms, history.applications[0].read_committed
    passed = history.cluster.next_visible(*where, start, read_committed)
    history.check_commit((now_ms, 0, "member", *where, 1, passed))
    with pytest.raises(Broken, match="backwards"):
        history.check_commit((now_ms, 0, "member", *where, 1, passed + 1))


@pytest.fixture
def pair():
    """A history of two members, which take no step unless a test says when."""
    history = next(history for history in (History(seed, "classic") for seed in range(100))
                   if len(history.applications) == 2)
    history.planned.clear()
    outer, inner = history.applications
    outer.next_ms = inner.next_ms = history.simulation.now_ms + 3_600_000
    yield history, outer, inner
    history.release()


def take_a_step(history, application, step):
    """The application takes one step, now."""
    def taken():
        application.next_ms += 3_600_000
        step()

    application.next_ms, application.step = history.simulation.now_ms, taken


def test_a_call_that_waits_below_another_serves_its_callbacks(pair):
    history, outer, inner = pair
    served = []
    outer.consumer = SimpleNamespace(_serve=lambda: served.append("outer"))
    inner.consumer = SimpleNamespace(_serve=lambda: served.append("inner"))
    history.wait(outer)
    assert served == []  # the innermost call serves itself
    take_a_step(history, inner, lambda: history.wait(inner))
    history.wait(outer)
    assert set(served) == {"outer"}


def test_what_broke_first_is_reported(pair):
    """A consumer that closes keeps what its callbacks raise; the calls after it fail for other reasons."""
    history, _, inner = pair

    def close():
        with contextlib.suppress(Broken):
            raise inner.broken("backwards")
        raise RuntimeError("Consumer closed")

    take_a_step(history, inner, close)
    with pytest.raises(Broken, match="backwards"):
        history.run()


def test_an_exception_of_a_callback_leaves_the_call_of_its_own_application(pair):
    history, outer, inner = pair

    def fail():
        raise LookupError("of the outer application")

    outer.consumer = SimpleNamespace(_serve=fail)
    steps = []
    take_a_step(history, inner, lambda: (history.wait(inner), steps.append(True)))
    with pytest.raises(LookupError, match="of the outer application"):
        history.wait(outer)
    assert steps == [True]
    history.wait(outer)  # raised once


START, INVISIBLE, VISIBLE = 3, 10, 12  # the log's first offset; offsets 10 and 11 are of an aborted transaction


def words_of(*, auto_commit=False, auto_store=True, position=8):
    """The words of a member that has just been given the partition, of which 5 is committed."""
    cluster = SimpleNamespace(
        log_start=lambda *where: START,
        next_visible=lambda topic, partition, at, _: VISIBLE if INVISIBLE <= at < VISIBLE else at)
    member = SimpleNamespace(
        auto_commit=auto_commit, auto_store=auto_store, read_committed=True, stored_at={}, first_committed={WHERE: 0},
        expected={WHERE: position}, history=SimpleNamespace(committed={WHERE: [5]}), cluster=cluster, broken=Broken,
        failures=SimpleNamespace(was_removed=lambda where: False), may_be_open=lambda where: False)
    words = LastWords(member)
    words.assigned(WHERE)
    return words


def commits(words, *offsets):
    """The coordinator takes these of the member."""
    words.member.stored_at.setdefault(WHERE, []).extend((1000, offset) for offset in offsets)


def broken_words(words):
    try:
        words.prove_all()
    except Broken as error:
        return str(error)
    finally:
        Broken.first = None
    return ""


@pytest.mark.parametrize("said, taken, is_kept", [
    (7, [6, 7], True),
    (7, [7, 6], False),
    (6, [7], False),                 # it went back, and the coordinator has not heard of it
    (5, [], True),                   # committed before
    (6, [], False),
    (INVISIBLE, [VISIBLE], True),    # the same place
    (INVISIBLE - 1, [VISIBLE], False),
    (1, [START], True),              # retention has removed what is between
])
def test_the_coordinator_has_the_last_word(said, taken, is_kept):
    words = words_of()
    words.names({WHERE: 7})
    words.names({WHERE: said})
    commits(words, *taken)
    assert bool(broken_words(words)) != is_kept


def test_a_word_is_proved_when_the_partition_is_assigned_again():
    words = words_of()
    words.names({WHERE: 7})
    with pytest.raises(Broken, match=r"said 7; the coordinator has \[5\]"):
        words.assigned(WHERE)
    Broken.first = None
    commits(words, 7)
    words.assigned(WHERE)
    words.names({WHERE: 6})
    assert "[5]" in broken_words(words)  # the commit of 7 was of the ownership before


@pytest.mark.parametrize("was_removed, is_open, is_proved", [
    (True, True, False),   # the answer, a failure, may come later
    (True, False, True),
    (False, True, True),   # a handover waits for its commits
])
def test_a_commit_of_a_life_that_the_coordinator_ended_may_be_open(was_removed, is_open, is_proved):
    words = words_of()
    words.names({WHERE: 7})
    words.member.failures.was_removed = lambda where: was_removed
    words.member.may_be_open = lambda where: is_open
    try:
        words.assigned(WHERE)
    except Broken:
        assert is_proved
    else:
        assert not is_proved
    finally:
        Broken.first = None


def given_to(*lives):
    """The failures of a member that has been given the partition in each of these lives; only the last one lives on."""
    history = SimpleNamespace(lives=lambda *life: life == lives[-1], works_since=lambda ms: False, calm=False,
                              suspects=[], commit_ms=6000, static=False,
                              cluster=SimpleNamespace(awaited_assignments=[], forgot_ms=[]))
    member = SimpleNamespace(history=history, simulation=SimpleNamespace(now_ms=0), expected={WHERE: 8},
                             broken=Broken)
    failures = CommitFailures(member)
    for now_ms, life in enumerate(lives):
        member.simulation.now_ms = 1000 * now_ms
        failures.owns(WHERE, life)
    member.simulation.now_ms += 500
    return failures


FENCED = KafkaError(KafkaError.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize("since_ms, is_lost", [(500, False), (1200, True)])
def test_a_refused_commit_of_an_earlier_life_takes_nothing_from_the_next(since_ms, is_lost):
    failures = given_to(("first", 1), ("second", 2))
    failures.check(FENCED, [WHERE], since_ms)
    assert failures.to_be_lost == ({WHERE} if is_lost else set())


def test_a_refused_commit_of_a_member_that_lives_is_held_against_it():
    failures = given_to(("first", 1), ("first", 1))
    failures.check(FENCED, [WHERE], 500)
    assert failures.to_be_lost == {WHERE}


@pytest.mark.parametrize("forgot_ms, is_lost", [(999, True), (1000, False)])
def test_a_takeover_explains_a_refusal_only_since_the_partition_was_assigned(forgot_ms, is_lost):
    failures = given_to(("first", 1), ("first", 1))
    failures.member.history.cluster.forgot_ms.append(forgot_ms)
    failures.check(FENCED, [WHERE], 1200)
    assert failures.to_be_lost == ({WHERE} if is_lost else set())


def test_after_a_failure_there_is_no_last_word():
    words = words_of()
    words.names({WHERE: 7})
    words.forget(WHERE)
    assert broken_words(words) == ""
    words.names({WHERE: 8})
    assert broken_words(words)


@pytest.mark.parametrize("auto_store, deeds, stands_at", [
    (True, [], 8),
    (True, [("seeks", 8)], None),         # no record has been read since
    (True, [("seeks", 6)], 8),            # two have been
    (False, [], None),
    (False, [("stores", 7)], 7),
    (False, [("stores", 7), ("seeks", 6)], None),
    (False, [("seeks", 6), ("stores", 6)], 6),
])
def test_where_an_application_stands(auto_store, deeds, stands_at):
    words = words_of(auto_store=auto_store)
    for deed, offset in deeds:
        getattr(words, deed)(WHERE, offset)
    assert words.stands_at(WHERE) == stands_at


def test_a_named_offset_takes_the_stored_one_along():
    words = words_of(auto_store=False)
    words.stores(WHERE, 6)
    words.names({WHERE: 7})
    words.stand()
    assert words.said == {WHERE: 7}


@pytest.mark.parametrize("auto_commit", [True, False])
def test_after_a_seek_the_intervals_commits_are_unknown(auto_commit):
    words = words_of(auto_commit=auto_commit)
    words.names({WHERE: 7})
    words.seeks(WHERE, 6)
    assert words.said == ({} if auto_commit else {WHERE: 7})
