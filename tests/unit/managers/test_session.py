"""A member whose session is over returns no records and commits nothing until its coordinator answers."""

import pytest
from consumer_group_loop import DESCRIBE_CONFIGS, INTERVAL_MS, Member, T
from group_loop import (
    COORDINATOR_CHANNEL,
    FIND_COORDINATOR,
    HEARTBEAT,
    HEARTBEAT_MS,
    JOIN,
    OFFSET_COMMIT,
    SESSION_MS,
    GroupLoop,
)
from stepped_loop import FETCH, records

from kconsumer import KafkaError, TopicPartition
from tests.core import inside
from tests.core import protocol as wire

REBALANCE, UNKNOWN_MEMBER, LOADING, NOT_COORDINATOR, ILLEGAL_GENERATION = 27, 25, 14, 16, 22
READY, CONNECTING = 0, 1


@pytest.fixture
def errors():
    return []


@pytest.fixture
def commits():
    return []


@pytest.fixture
def member(errors, commits):
    """A member of a classic group with three records of partition 0 that it has not returned."""
    loop = GroupLoop(error_cb=errors.append,
                     on_commit=lambda error, partitions: commits.append((error and error.code(), str(error))))
    loop.stable()
    fill(loop)
    return loop


def fill(loop, count=3):
    loop.consumer.seek(TopicPartition("t", 0, 0))
    loop.turn(2)
    for request in loop.requests(FETCH):
        if ("t", 0) in loop.asked(request):
            loop.fetched(request, {0: {"records": records(0, count)}}, turns=3)


def taken(loop):
    return [m.offset() for m in loop.consumer.consume(10, 0) if m.error() is None]


def serve(loop):
    loop.consumer.poll(0)
    loop.turn(2)


def end_session(loop, after_ms=SESSION_MS):
    loop.advance(after_ms)
    loop.turn(2)


# -- records -----------------------------------------------------------------------------------------------------------


def test_records_are_returned_until_the_session_ends(member):
    member.advance(SESSION_MS - 1)
    member.turn(2)
    assert taken(member) == [0, 1, 2]


@pytest.mark.parametrize("call", [
    lambda consumer: consumer.poll(0), lambda consumer: consumer.consume(10, 0),
    lambda consumer: consumer.consume_batch(10, 0)])
def test_no_call_returns_records_after_the_end_of_the_session(member, call):
    end_session(member)
    found = call(member.consumer)
    assert found is None or len(found) == 0
    assert member.consumer.metrics()["fetch_buffer_records"] == 3


def test_the_application_looks_at_the_clock_itself(member):
    """The network thread may be the one that stood still."""
    member.clock.advance(SESSION_MS)
    assert taken(member) == []


def test_time_while_the_machine_is_suspended_counts(member):
    member.clock.suspend(SESSION_MS)
    assert taken(member) == []
    member.turn(2)
    assert member.consumer.metrics()["session_age_ms"] == SESSION_MS


def test_open_records_are_held_back_from_the_next_turn_on(member):
    """Records of an open slice may slip only until the network thread has noticed."""
    assert member.consumer.poll(0).offset() == 0
    end_session(member)
    assert member.consumer.poll(0) is None
    member.turn()
    answer_heartbeat(member, 0)
    assert taken(member) == [1, 2]


def answer_heartbeat(loop, error):
    """Lets the member find its coordinator again, and answers its heartbeat."""
    loop.advance(500)
    loop.turn(2)
    if loop.sent(FIND_COORDINATOR):
        loop.find_coordinator()
    loop.advance(200)
    newest = loop.sent(HEARTBEAT)[-1]
    loop.network.answer(newest["id"], wire.encode("HeartbeatResponse", newest["version"], {"error_code": error}))
    loop.turn(2)


@pytest.mark.parametrize("answer", [0, REBALANCE, LOADING])
def test_delivery_goes_on_where_it_stood_when_the_coordinator_still_has_the_member(member, answer):
    end_session(member)
    assert taken(member) == []
    answer_heartbeat(member, answer)
    if answer == REBALANCE:
        assert member.serve() == []  # on_revoke: an eager member joins again
        assert ("revoke", [("t", 0), ("t", 1), ("t", 2)]) in member.calls
    else:
        assert taken(member) == [0, 1, 2]
        assert [name for name, _ in member.calls] == ["assign"]


@pytest.mark.parametrize("refusal", [UNKNOWN_MEMBER, ILLEGAL_GENERATION])
def test_only_a_refusal_says_that_the_partitions_are_lost(member, refusal):
    end_session(member)
    member.serve()
    assert [name for name, _ in member.calls] == ["assign"]
    answer_heartbeat(member, refusal)
    member.serve()
    assert [name for name, _ in member.calls] == ["assign", "lost"]
    assert taken(member) == []


@pytest.mark.parametrize("looked", [False, True])
def test_a_waiting_call_is_woken_when_the_session_goes_on(looked):
    """The answer may come before the network thread has seen the end: the application alone has."""
    member = GroupLoop(enable_auto_commit=False)
    member.stable()
    fill(member)
    member.advance(HEARTBEAT_MS)
    member.clock.advance(SESSION_MS - HEARTBEAT_MS)
    if looked:
        assert taken(member) == []
    inside.begin_wait(member.consumer)
    before = inside.touched(member.consumer)["wakeups of the application"]
    member.refuse(HEARTBEAT, 0)
    assert inside.touched(member.consumer)["wakeups of the application"] == before + looked
    inside.end_wait(member.consumer)
    assert taken(member) == [0, 1, 2]


# -- what counts as an answer ------------------------------------------------------------------------------------------


def test_the_session_counts_from_the_sending_of_a_heartbeat(member):
    member.advance(HEARTBEAT_MS)
    member.advance(10_000)
    member.refuse(HEARTBEAT, 0)
    assert member.consumer.metrics()["session_age_ms"] == 10_000
    member.advance(SESSION_MS - 10_000 - 1)
    assert taken(member) == [0, 1, 2]
    fill(member)
    member.advance(1)
    assert taken(member) == []


def test_a_sync_begins_the_session(member):
    loop = GroupLoop()
    loop.begin()
    loop.joined()
    assert loop.consumer.metrics()["session_age_ms"] == -1
    loop.advance(1000)
    loop.synced({"t": [0]})
    assert loop.consumer.metrics()["session_age_ms"] == 1000


def test_heartbeats_keep_the_session_while_the_join_is_parked():
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky")
    loop.stable()
    fill(loop)
    loop.heartbeat(REBALANCE)
    loop.the(JOIN)
    for _ in range(2 * SESSION_MS // HEARTBEAT_MS):
        loop.heartbeat(REBALANCE)
    assert taken(loop) == [0, 1, 2]


@pytest.mark.parametrize("refusal, found", [(ILLEGAL_GENERATION, [0, 1, 2]), (UNKNOWN_MEMBER, [])])
def test_a_coordinator_with_a_later_generation_has_the_member_of_a_parked_join(refusal, found):
    """An answer to a JoinGroup was lost, and the next one is parked: the heartbeats are of the generation before."""
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky")
    loop.stable()
    fill(loop)
    loop.heartbeat(REBALANCE)
    loop.the(JOIN)
    for _ in range(SESSION_MS // HEARTBEAT_MS - 1):
        loop.heartbeat(refusal)
    loop.advance(HEARTBEAT_MS)
    assert taken(loop) == found


def test_an_assignment_without_a_group_has_no_session(errors):
    loop = GroupLoop(error_cb=errors.append)
    loop.assign(("t", 0, 0))
    loop.settle_metadata()
    loop.fetched(loop.the(FETCH), {0: {"records": records(0, 3)}}, turns=3)
    loop.advance(10 * SESSION_MS)
    loop.turn(2)
    assert taken(loop) == [0, 1, 2]
    assert loop.consumer.metrics()["session_age_ms"] == -1


# -- what the user sees ------------------------------------------------------------------------------------------------


def test_the_end_is_reported_once(member, errors, caplog):
    caplog.set_level("INFO")
    end_session(member)
    for _ in range(20):
        member.advance(1000)
        serve(member)
    found = [e for e in errors if "session of this member is over" in e.str()]
    assert len(found) == 1
    assert found[0].code() == KafkaError._TIMED_OUT
    assert "has accepted no heartbeat for 45000 ms" in found[0].str()
    assert caplog.text.count(" SESSION ") == 1
    answer_heartbeat(member, 0)
    serve(member)
    assert "its records are returned again" in caplog.text


# -- commits -----------------------------------------------------------------------------------------------------------


def test_a_commit_in_flight_ends_as_unknown(member, commits):
    member.advance(1000)
    member.consumer.commit(offsets=[TopicPartition("t", 0, 1)])
    member.turn()
    member.the(OFFSET_COMMIT)
    end_session(member, SESSION_MS - 1000)
    member.serve()
    assert [code for code, _ in commits] == [KafkaError._TIMED_OUT]
    assert "whether the offsets are committed is unknown" in commits[0][1]


def test_no_commit_is_sent_before_the_coordinator_has_answered(member, commits):
    end_session(member)
    member.consumer.commit(offsets=[TopicPartition("t", 0, 1)])
    member.turn(3)
    assert member.sent(OFFSET_COMMIT) == []
    answer_heartbeat(member, 0)
    member.turn(2)
    assert member.commits() == [("t", 0, 1)]
    serve(member)
    assert commits[-1][0] is None


def test_a_commit_that_waits_for_its_connection_is_withdrawn(member, commits):
    """It would be sent as soon as the network works again."""
    member.advance(1000)
    member.network.set_readiness(2, COORDINATOR_CHANNEL, CONNECTING)
    member.consumer.commit(offsets=[TopicPartition("t", 0, 1)])
    member.turn()
    end_session(member, SESSION_MS - 1000)
    member.network.set_readiness(2, COORDINATOR_CHANNEL, READY)
    member.turn(3)
    assert member.sent(OFFSET_COMMIT) == []
    member.serve()
    assert [code for code, _ in commits] == [KafkaError._TIMED_OUT]


# -- the consumer protocol ---------------------------------------------------------------------------------------------


@pytest.fixture
def modern(errors):
    member = Member(error_cb=errors.append, consumer_session_timeout_ms=SESSION_MS)
    member.join(assignment={T: [0]})
    fill(member)
    return member


def test_consumer_protocol_a_session_ends_and_goes_on(modern, errors):
    end_session(modern)
    assert taken(modern) == []
    assert [e.code() for e in errors if "session" in e.str()] == [KafkaError._TIMED_OUT]
    modern.settle()
    modern.advance(500)
    modern.reply(modern.beat())
    assert taken(modern) == [0, 1, 2]
    assert [name for name, _ in modern.calls] == ["assign"]


def test_consumer_protocol_a_fenced_member_loses_its_partitions(modern):
    end_session(modern)
    modern.settle()
    modern.advance(500)
    modern.refuse(modern.beat(), UNKNOWN_MEMBER)
    modern.poll()
    assert [name for name, _ in modern.calls] == ["assign", "lost"]
    assert taken(modern) == []


def test_consumer_protocol_an_answer_of_a_loading_coordinator_counts(modern):
    modern.advance(INTERVAL_MS)
    modern.refuse(modern.beat(), LOADING)
    assert modern.consumer.metrics()["session_age_ms"] == 0


# -- how long a session of the consumer protocol lasts -----------------------------------------------------------------

REFRESH_MS = 300_000


def timeout_ms(member: Member) -> int:
    return member.consumer.metrics()["session_timeout_ms"]


def live(member: Member, ms: int) -> None:
    for _ in range(ms // INTERVAL_MS):
        member.poll()
        member.advance(INTERVAL_MS)
        member.reply(member.beat())


def test_the_session_timeout_is_the_groups(modern):
    asked = modern.one(DESCRIBE_CONFIGS)["body"]["resources"]
    assert asked == [{"resource_type": 32, "resource_name": "g", "configuration_keys": ["consumer.session.timeout.ms"]}]
    assert timeout_ms(modern) == SESSION_MS
    modern.describe("10000")
    assert timeout_ms(modern) == 10_000
    end_session(modern, 9_999)
    assert taken(modern) == [0, 1, 2]
    fill(modern)
    modern.advance(1)
    assert taken(modern) == []


def test_a_longer_session_timeout_counts_for_the_session_that_is_over(modern):
    end_session(modern)
    assert taken(modern) == []
    modern.describe(str(2 * SESSION_MS))
    assert taken(modern) == [0, 1, 2]


@pytest.mark.parametrize("value", [None, "", "soon", "0", "-1", "99999999999"])
def test_a_session_timeout_that_is_none_is_not_taken(modern, value):
    modern.describe(value)
    assert timeout_ms(modern) == SESSION_MS


@pytest.mark.parametrize("code", [30, 31, 40, 42, -1])
def test_a_group_that_may_not_be_described_is_asked_for_again_later(modern, code):
    modern.describe("10000", error_code=code, error_message="no")
    assert timeout_ms(modern) == SESSION_MS
    live(modern, REFRESH_MS - INTERVAL_MS)
    assert modern.requests(DESCRIBE_CONFIGS) == []
    live(modern, INTERVAL_MS)
    modern.describe("10000")
    assert timeout_ms(modern) == 10_000


def test_the_session_timeout_is_asked_for_again(modern):
    modern.describe("10000")
    live(modern, REFRESH_MS)
    modern.describe("20000")
    assert timeout_ms(modern) == 20_000


@pytest.mark.parametrize("lost", [True, False])
def test_the_question_for_the_session_timeout_is_repeated_soon(modern, lost):
    if lost:
        modern.fail(modern.one(DESCRIBE_CONFIGS))
    else:
        modern.describe(None, error_code=NOT_COORDINATOR)
    modern.turn()
    assert modern.requests(DESCRIBE_CONFIGS) == []
    modern.advance(1000)
    modern.describe("10000")
    assert timeout_ms(modern) == 10_000


def test_a_question_that_costs_each_connection_is_given_up(modern):
    for _ in range(4):
        while not modern.requests(DESCRIBE_CONFIGS):
            modern.advance(100)
            for beat in modern.beats():
                modern.reply(beat)
        modern.fail(modern.one(DESCRIBE_CONFIGS))
    live(modern, REFRESH_MS - 2 * INTERVAL_MS)
    assert modern.requests(DESCRIBE_CONFIGS) == []
    live(modern, 2 * INTERVAL_MS)
    modern.describe("10000")
    assert timeout_ms(modern) == 10_000


def test_a_broker_without_descriptions_leaves_the_property(modern):
    modern.fail(modern.one(DESCRIBE_CONFIGS), KafkaError._UNSUPPORTED_FEATURE)
    live(modern, REFRESH_MS - INTERVAL_MS)
    assert modern.requests(DESCRIBE_CONFIGS) == []
    assert timeout_ms(modern) == SESSION_MS


def test_a_description_of_other_groups_is_not_taken(modern):
    modern.answer(modern.one(DESCRIBE_CONFIGS), {"throttle_time_ms": 0, "results": []})
    assert timeout_ms(modern) == SESSION_MS


def test_the_classic_protocol_does_not_ask(member):
    assert timeout_ms(member) == SESSION_MS
    assert member.network.requests(DESCRIBE_CONFIGS) == []
