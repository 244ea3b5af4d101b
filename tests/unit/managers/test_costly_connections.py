"""A parked Fetch does not delay a resume: a new connection replaces it, except under TLS and SASL."""

import pytest
from stepped_loop import FETCH, records

SHORT_WAIT_MS = 25
RENEWAL_MS = 10_000
CYCLES = 50
SASL = {"sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password": "p"}
COSTLY = {
    "TLS": {"security_protocol": "ssl"},
    "SASL": {"security_protocol": "sasl_plaintext", **SASL},
    "TLS and SASL": {"security_protocol": "sasl_ssl", **SASL},
}


def parked(loop):
    """Partition 0 has been read to its end, and the next Fetch is parked at its broker."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH, 1), {0: {"records": records(0, 3)}}, turns=3)
    assert loop.offsets() == [0, 1, 2]
    loop.turn(2)
    return loop.one(FETCH, 1)


def pause_and_resume(loop):
    loop.consumer.pause(loop.consumer.assignment())
    loop.turn()
    loop.consumer.resume(loop.consumer.assignment())
    loop.turn()
    for _ in range(4):
        loop.advance(50)


def renewals(loop):
    return loop.network.calls["renew"]


def cycle(loop, times):
    """Pauses and resumes; an answered Fetch is followed by one that is parked again."""
    for _ in range(times):
        pause_and_resume(loop)
        for request in loop.requests(FETCH, 1):
            loop.fetched(request, {})
        loop.turn(2)


def test_a_new_connection_replaces_a_parked_fetch_without_tls_and_sasl(loop):
    parked(loop)
    pause_and_resume(loop)
    assert renewals(loop) == 1
    cycle(loop, CYCLES - 1)
    # 50 cycles of 200 ms: one new connection in ten seconds.
    assert renewals(loop) == 1


@pytest.mark.parametrize("security", COSTLY)
def test_no_new_connection_replaces_a_parked_fetch_under(loops, security):
    loop = loops(**COSTLY[security])
    parked(loop)
    pause_and_resume(loop)
    assert renewals(loop) == 0
    cycle(loop, CYCLES - 1)
    assert renewals(loop) == 0


@pytest.mark.parametrize("security", COSTLY)
def test_fetches_are_parked_briefly_instead_under(loops, security):
    """A program that pauses and resumes partitions waits so long at most."""
    loop = loops(**COSTLY[security])
    request = parked(loop)
    loop.advance(RENEWAL_MS + 1000)  # what assign() began is over
    loop.fetched(request, {})
    assert loop.one(FETCH, 1)["body"]["max_wait_ms"] > SHORT_WAIT_MS
    pause_and_resume(loop)
    loop.fetched(loop.one(FETCH, 1), {})
    loop.turn(2)
    assert loop.one(FETCH, 1)["body"]["max_wait_ms"] == SHORT_WAIT_MS
