"""SubscriptionState and FetchPositions: the assignment, the control side of positions, and how the loop adopts both."""

import pytest
from stepped_loop import FETCH, LIST_OFFSETS, METADATA, Topic, inside, records

INVALID, BEGINNING = -1001, -2


def add(loop, *partitions):
    return loop.consumer._assign([(t, p, o, -1) for t, p, o in partitions], False)


def position(loop, partition=0):
    return loop.consumer._position("t", partition)


# -- the assignment


def test_assignment_keeps_the_order_of_assign(loop):
    given = [("t", 2, 0), ("u", 0, 7), ("t", 0, 0)]
    loop.consumer._assign([(*where, -1) for where in given], True)
    assert loop.consumer._assignment() == given
    add(loop, ("t", 1, 0))
    assert loop.consumer._assignment() == [*given, ("t", 1, 0)]
    loop.consumer._unassign([("u", 0)])
    assert loop.consumer._assignment() == [("t", 2, 0), ("t", 0, 0), ("t", 1, 0)]


def test_a_partition_is_assigned_once(loop):
    assert add(loop, ("t", 0, 5)) == -1
    assert add(loop, ("t", 1, 5), ("t", 0, 99)) == 1
    assert loop.consumer._assignment() == [("t", 0, 5), ("t", 1, 5)]
    loop.turn()
    loop.answer_metadata()
    loop.turn()
    assert loop.inside(0)["fetch_offset"] == 5


def test_unassigning_unassigned_partitions_names_them(loop):
    add(loop, ("t", 0, 0))
    assert loop.consumer._unassign([("t", 0), ("t", 1)]) == 1
    assert loop.consumer._assignment() == []


def test_names_with_partition_numbers_in_them_are_distinguished(loop):
    """The key of a partition is its topic and four bytes."""
    names = ["t", "t\x00", "t\x00\x00\x00\x00", "\x01\x00\x00\x00t", "tt"]
    loop.consumer._assign([(name, p, 0, -1) for name in names for p in (0, 1, 0x74747474)], True)
    assert len(set(loop.consumer._assignment())) == 15
    assert loop.consumer._set_paused("t\x00", 1, True)
    assert not loop.consumer._set_paused("t\x00\x01", 1, True)


@pytest.mark.parametrize("call", [
    lambda c: c._seek("t", 0, 5, -1), lambda c: c._set_paused("t", 0, True), lambda c: c._position("t", 0),
])
def test_a_partition_that_is_not_assigned_is_refused(loop, call):
    assert not call(loop.consumer)


def test_positions_of_before_do_not_come_with_a_new_assignment(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5), "high_watermark": 5, "last_stable_offset": 5}})
    assert loop.offsets() == [0, 1, 2, 3, 4]
    assert position(loop)[0] == 5
    add(loop)
    loop.consumer._assign([("t", 0, INVALID, -1)], True)
    assert position(loop) == (INVALID, -1, INVALID, INVALID, INVALID, INVALID, None)


def test_a_partition_assigned_and_unassigned_between_two_turns_leaves_no_state(loop):
    loop.turn()
    loop.answer_metadata()
    for n in range(10):
        add(loop, ("t", n, 0), ("u", n, 0))
        loop.consumer._unassign([("t", n), ("u", n)])
    loop.turn(2)
    assert {k: v for k, v in inside.sizes(loop.consumer).items() if v} == {}
    assert loop.requests(METADATA) == []


def test_a_partition_removed_and_assigned_between_two_turns_starts_again(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}})
    loop.consumer._unassign([("t", 0)])
    add(loop, ("t", 0, 3))
    loop.turn()
    assert loop.offsets() == []
    assert loop.inside()["fetch_offset"] == 3
    assert inside.sizes(loop.consumer)["tracked"] == 1


def test_ten_thousand_partitions(loop):
    loop.topics["t"] = Topic({n: (1 + n % 2, 0) for n in range(10_000)})
    loop.assign(*[("t", n, 0) for n in range(10_000)])
    assert sum(len(loop.asked(r)) for r in loop.requests(FETCH)) == 10_000
    for request in loop.requests(FETCH):
        loop.fetched(request, {})
    assert [loop.asked(r) for r in loop.requests(FETCH)] == [{}, {}]
    loop.consumer._assign([], True)
    loop.turn()
    assert inside.sizes(loop.consumer)["tracked"] == 0


# -- seeks and pauses


def test_of_several_seeks_the_last_counts(loop):
    loop.assign(("t", 0, 0))
    for offset in (BEGINNING, 7, 9):
        loop.consumer._seek("t", 0, offset, -1)
    loop.turn()
    assert loop.inside()["fetch_offset"] == 9
    assert loop.requests(LIST_OFFSETS) == []


def test_assign_and_seek_need_no_turn_between(loop):
    add(loop, ("t", 0, INVALID))
    loop.consumer._seek("t", 0, 12, -1)
    loop.turn()
    loop.answer_metadata()
    loop.turn()
    assert loop.requests(LIST_OFFSETS) == []
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 12}


def test_assign_and_pause_need_no_turn_between(loop):
    add(loop, ("t", 0, 0))
    loop.consumer._set_paused("t", 0, True)
    loop.turn()
    loop.answer_metadata()
    loop.turn(2)
    assert loop.requests(FETCH) == []
    loop.consumer._set_paused("t", 0, False)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 0}


def test_a_seek_keeps_the_pause(loop):
    loop.assign(("t", 0, 0))
    loop.consumer._set_paused("t", 0, True)
    loop.fetched(loop.one(FETCH), {})
    loop.consumer._seek("t", 0, 7, -1)
    for request in loop.requests(FETCH):
        loop.fetched(request, {})
    loop.turn(2)
    assert loop.requests(FETCH) == []


def test_a_seek_of_a_stopped_partition_continues(loops):
    loop = loops(auto_offset_reset="error")
    loop.assign(("t", 0, INVALID))
    loop.turn(2)
    assert loop.inside()["state"] == "STOPPED"
    loop.consumer._seek("t", 0, 3, -1)
    loop.turn()
    assert loop.inside()["state"] == "ACTIVE"
    assert loop.offsets() == []  # the error went with the position it was about


def test_a_seek_does_not_wait_for_a_parked_fetch(loop):
    """The Fetch in flight is given up when it has had the time of a quick answer."""
    loop.assign(("t", 0, 0))
    loop.clock.advance(2)
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}})
    loop.consumer._seek("t", 0, 50, -1)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 5}
    waited = 0
    while ("t", 0) not in loop.asked(loop.one(FETCH)) or loop.asked(loop.one(FETCH))[("t", 0)] != 50:
        assert 0 <= loop.network.timeout_ms < 50
        waited += max(loop.network.timeout_ms, 1)
        loop.advance(max(loop.network.timeout_ms, 1))
        if not loop.requests(FETCH):
            loop.turn()
    assert waited < 50
    assert loop.network.calls["renew"] == 1
    assert loop.one(FETCH)["body"]["session_epoch"] == 0
    assert loop.consumer.metrics()["fetch_reserved_bytes"] == loop.one(FETCH)["body"]["max_bytes"]


def test_pauses_and_resumes_make_one_new_connection_in_ten_seconds(loop):
    """On a broker that has nothing for them: its Fetch stays out as long as it may."""
    loop.assign(("t", 0, 0), ("t", 1, 0))
    renewed = []
    for _ in range(20):
        for paused in (True, False):
            loop.consumer._set_paused("t", 0, paused)
            for _ in range(50):
                loop.advance(10)
        loop.fetched(loop.one(FETCH), {})
        renewed.append(loop.network.calls["renew"])
    assert (renewed[9], renewed[-1]) == (1, 2), renewed


def test_under_sasl_no_connection_is_given_up_for_a_seek(loops):
    """Each would take a handshake; under TLS likewise."""
    loop = loops(security_protocol="sasl_plaintext", sasl_mechanism="PLAIN", sasl_username="u", sasl_password="p")
    loop.assign(("t", 0, 0))
    loop.clock.advance(2)
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}})
    loop.consumer._seek("t", 0, 50, -1)
    loop.turn()
    loop.advance(400)
    assert loop.network.calls["renew"] == 0
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 5}
    loop.fetched(loop.one(FETCH), {})
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 50}


@pytest.mark.parametrize("deed", ["seek", "pause", "assign"])
def test_fetches_are_parked_briefly_while_partitions_come_and_go(loop, deed):
    """The next deed does not wait for fetch.wait.max.ms."""
    loop.assign(("t", 0, 0), ("t", 1, 0))
    assert loop.one(FETCH)["body"]["max_wait_ms"] == 500
    if deed == "seek":
        loop.consumer._seek("t", 0, 50, -1)
    elif deed == "assign":
        loop.consumer._unassign([("t", 0)])
        loop.turn()
        loop.consumer._assign([("t", 0, 7, -1)], False)
    else:
        loop.consumer._set_paused("t", 0, True)
    loop.turn()
    loop.fetched(loop.one(FETCH), {})
    assert loop.one(FETCH)["body"]["max_wait_ms"] == 25
    loop.advance(10_000)
    loop.fetched(loop.one(FETCH), {})
    assert loop.one(FETCH)["body"]["max_wait_ms"] == 500
