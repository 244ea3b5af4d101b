"""MetadataRequestManager, through the loop: how often it asks while what is wanted is not there."""

import itertools

import pytest
from stepped_loop import FETCH, METADATA, T2, Loop, Topic, inside

NOT_LEADER, NOT_AUTHORIZED = 6, 29
MOST_IN_TEN_SECONDS = 25


def sent_in(loop, ms, meanwhile=lambda: None):
    """The times of the Metadata requests of a while, each answered at once as the scripted cluster is."""
    until, times = loop.clock.ms + ms, []
    while loop.clock.ms < until:
        loop.turn()
        meanwhile()
        for request in loop.requests(METADATA):
            times.append(loop.clock.ms)
            names = None if request["body"]["topics"] is None else [t["name"] for t in request["body"]["topics"]]
            loop.answer(request, loop.metadata_body(names))
        if not loop.requests(METADATA):
            loop.advance(max(1, min(loop.network.timeout_ms, until - loop.clock.ms)))
    return times


def gaps(times):
    return [b - a for a, b in itertools.pairwise(times)]


def is_missing(loop):
    loop.consumer._assign([("gone", 0, 0, -1)], True)


def has_no_leader(loop):
    loop.topics["t"].leaders[0] = (-1, 5)
    loop.consumer._assign([("t", 0, 0, -1), ("t", 1, 0, -1)], True)


def has_no_leader_and_wants_its_end(loop):
    loop.topics["t"].leaders[0] = (-1, 5)
    loop.consumer._assign([("t", 0, -1, -1)], True)


def is_refused(loop):
    loop.topics["t"].error = NOT_AUTHORIZED
    loop.consumer._assign([("t", 0, 0, -1)], True)


def has_an_unknown_leader(loop):
    loop.topics["t"].leaders[0] = (77, 5)
    loop.consumer._assign([("t", 0, 0, -1)], True)


def is_subscribed(loop):
    loop.consumer.subscribe(["gone"])


def matches_a_pattern(loop):
    loop.topics["t"].leaders[0] = (-1, 5)
    loop.consumer.subscribe(["^t$"])


STATES = [is_missing, has_no_leader, has_no_leader_and_wants_its_end, is_refused, has_an_unknown_leader, is_subscribed,
          matches_a_pattern]


@pytest.mark.parametrize("state", STATES)
def test_missing_topics_are_requested_with_growing_backoff(state):
    loop = Loop(group_id="g") if state in (is_subscribed, matches_a_pattern) else Loop()
    state(loop)
    times = sent_in(loop, 10_000)
    assert 10 <= len(times) <= MOST_IN_TEN_SECONDS
    assert all(800 <= gap <= 1200 for gap in gaps(times)[-5:])
    assert len(sent_in(loop, 10_000)) <= 13


@pytest.mark.parametrize("state", [is_missing, has_no_leader])
def test_the_loop_sleeps_between_two_questions(loop, state):
    state(loop)
    sent_in(loop, 10_000)
    for request in loop.requests(METADATA):
        loop.answer(request, loop.metadata_body([t["name"] for t in request["body"]["topics"]]))
    for request in loop.requests(FETCH):
        loop.fetched(request, {})
    loop.turn()
    assert loop.network.timeout_ms >= 300 or loop.requests(METADATA)


def test_a_fetch_that_keeps_failing_requests_no_more_metadata(loop):
    """Its leader in metadata denies to be one, for a long time."""
    def deny():
        for request in loop.requests(FETCH):
            loop.fetched(request, {0: {"error_code": NOT_LEADER}} if loop.asked(request) else {})

    loop.assign(("t", 0, 0))
    assert len(sent_in(loop, 10_000, deny)) <= MOST_IN_TEN_SECONDS


def until_slow(loop):
    is_missing(loop)
    return sent_in(loop, 10_000)


def test_a_new_topic_is_asked_for_at_once_and_quickly_again(loop):
    until_slow(loop)
    while loop.requests(METADATA):
        loop.answer(loop.one(METADATA), loop.metadata_body(["gone"]))
    loop.consumer._assign([("gone", 0, 0, -1), ("too", 0, 0, -1)], True)
    loop.turn()
    assert {t["name"] for t in loop.one(METADATA)["body"]["topics"]} == {"gone", "too"}
    times = sent_in(loop, 1000)
    assert gaps(times)[0] <= 120


def test_a_topic_that_appears_is_read_at_the_next_answer_and_the_others_asked_for_quickly(loop):
    loop.consumer._assign([("gone", 0, 0, -1), ("soon", 0, 0, -1)], True)
    sent_in(loop, 10_000)
    loop.topics["soon"] = Topic({0: (1, 0)}, topic_id=T2)
    times = sent_in(loop, 1500, lambda: [loop.fetched(r, {}) for r in loop.requests(FETCH)])
    assert loop.inside(0, "soon")["session"] == 1
    assert min(gaps(times)) <= 120


def test_a_different_error_is_reported_again(loop):
    until_slow(loop)
    loop.topics["gone"] = Topic({0: (-1, 0)}, topic_id=T2)
    assert min(gaps(sent_in(loop, 1500))) <= 120


def test_a_connection_that_is_lost_is_a_reason_to_ask_soon(loop):
    loop.consumer._assign([("gone", 0, 0, -1), ("t", 0, 0, -1)], True)
    sent_in(loop, 10_000)
    while loop.requests(METADATA):
        loop.answer(loop.one(METADATA), loop.metadata_body(["gone", "t"]))
    loop.advance(110)
    assert not loop.requests(METADATA)
    loop.network.lose(1, was_ready=True)
    loop.turn(2)
    assert loop.one(METADATA)


def test_a_leader_that_denies_for_the_first_time_is_a_reason_to_ask_soon(loop):
    loop.consumer._assign([("gone", 0, 0, -1), ("t", 0, 0, -1)], True)
    sent_in(loop, 10_000)
    while loop.requests(METADATA):
        loop.answer(loop.one(METADATA), loop.metadata_body(["gone", "t"]))
    loop.advance(110)
    assert not loop.requests(METADATA)
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER}})
    assert loop.one(METADATA)


def test_a_question_about_offsets_is_a_reason_to_ask_soon(loop):
    has_no_leader(loop)
    sent_in(loop, 10_000)
    while loop.requests(METADATA):
        loop.answer(loop.one(METADATA), loop.metadata_body(["t"]))
    loop.advance(110)
    assert not loop.requests(METADATA)
    inside.ask_offsets(loop.consumer, [("t", 0, -1)], 5000)
    loop.turn(2)
    assert loop.one(METADATA)


def test_a_backoff_that_is_long_over_does_not_count(loop):
    loop.assign(("t", 0, 0))
    for _ in range(6):
        loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER}})
        loop.advance(1200)
        while loop.requests(METADATA):
            loop.answer_metadata()
        loop.turn()
        for request in loop.requests(FETCH):
            if not loop.asked(request):
                loop.fetched(request, {})
    loop.fetched(loop.one(FETCH), {})
    loop.advance(3000)
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER}})
    assert loop.one(METADATA)


# -- the re-bootstrap clock (KIP-1102)


def test_list_topics_that_times_out_does_not_start_the_clock(loops):
    """Brokers answer everything else; a list of all topics takes them too long."""
    loop = loops(metadata_recovery_rebootstrap_trigger_ms=30_000, socket_timeout_ms=5000)
    loop.turn()
    loop.answer_metadata()
    question = inside.ask_topics(loop.consumer, timeout_ms=3000)
    loop.turn()
    for _ in range(40):
        loop.advance(1000)
        for request in loop.requests(METADATA):
            if request["body"]["topics"] == []:
                loop.answer_metadata()
    assert question.done and question.code != 0
    assert loop.network.calls["rebootstrap"] == 0


def test_many_lists_that_time_out_do_not_start_the_clock(loops):
    loop = loops(metadata_recovery_rebootstrap_trigger_ms=5000, topic_metadata_refresh_interval_ms=900_000)
    loop.turn()
    loop.answer_metadata()
    for _ in range(10):
        question = inside.ask_topics(loop.consumer, timeout_ms=1000)
        loop.turn()
        loop.advance(1001)
        loop.turn()
        assert question.code != 0
    assert loop.network.calls["rebootstrap"] == 0
