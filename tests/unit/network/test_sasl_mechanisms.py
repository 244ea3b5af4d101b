"""The messages of each SASL mechanism, and which answers it accepts."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scram_server import ScramServer
from tests.core.inside import Credentials, scram_conversation

KINDS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
words = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), min_size=1, max_size=40)


def conversation(mechanism, username=b"user", password=b"pencil"):
    credentials = Credentials(mechanism)
    credentials.set_password(username, password)
    return credentials.begin()


# PLAIN


@given(words, words)
def test_plain_sends_the_user_and_the_password(username, password):
    talk = conversation("PLAIN", username.encode(), password.encode())
    assert talk.name == "PLAIN" and not talk.slow
    assert talk.step() == ("send", b"\0" + username.encode() + b"\0" + password.encode(), "")
    assert talk.step(b"") == ("done", b"", "")


def test_plain_accepts_no_message_of_the_broker():
    talk = conversation("PLAIN")
    talk.step()
    assert talk.step(b"x")[0] == "failed"


# SCRAM


def test_the_rfcs_own_conversation():
    # RFC 7677 §3
    talk = scram_conversation(False, b"user", b"pencil", "rOprNGfwEbeRWgbNEkqO")
    assert talk.step()[1] == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    outcome, proof, _ = talk.step(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert (outcome, proof) == (
        "send", b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert talk.step(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") == ("done", b"", "")


@pytest.mark.parametrize("mechanism", KINDS)
@settings(max_examples=25, deadline=None)
@given(username=words, password=words, salt=st.binary(min_size=1, max_size=64), more=st.integers(0, 200))
def test_client_and_server_authenticate_each_other(mechanism, username, password, salt, more):
    server = ScramServer(KINDS[mechanism], username.encode(), password.encode(), 4096 + more, salt)
    talk = conversation(mechanism, username.encode(), password.encode())
    assert talk.name == mechanism
    answer = server.first(talk.step()[1])
    assert talk.slow
    answer = server.final(talk.step(answer)[1])
    assert answer.startswith(b"v=")
    assert talk.step(answer) == ("done", b"", "")


@pytest.mark.parametrize("mechanism", KINDS)
def test_another_password_is_refused(mechanism):
    server = ScramServer(KINDS[mechanism], b"user", b"pencil")
    talk = conversation(mechanism, password=b"pen")
    answer = server.final(talk.step(server.first(talk.step()[1]))[1])
    assert talk.step(answer) == ("failed", b"", "the broker refused: invalid-proof")


def test_each_conversation_has_its_own_nonce():
    nonces = {conversation("SCRAM-SHA-256").step()[1] for _ in range(50)}
    assert len(nonces) == 50


def test_a_server_that_does_not_know_the_password_is_rejected():
    server = ScramServer("sha256", b"user", b"pencil")
    talk = conversation("SCRAM-SHA-256")
    talk.step(server.first(talk.step()[1]))
    outcome, _, why = talk.step(b"v=" + base64.b64encode(bytes(32)))
    assert outcome == "failed" and "does not know the password" in why


def first_answer(nonce=b"NONCEserver", salt=b"c2FsdA==", iterations=b"4096", more=b""):
    return b"r=" + nonce + b",s=" + salt + b",i=" + iterations + more


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "malformed"),
        (b"r=NONCEserver", "malformed"),
        (b"s=c2FsdA==,r=NONCEserver,i=4096", "malformed"),
        (first_answer(nonce=b"NONCE"), "does not begin with the client"),
        (first_answer(nonce=b"nONCEserver"), "does not begin with the client"),
        (first_answer(nonce=b""), "does not begin with the client"),
        (first_answer(nonce=b"NONCE\x01"), "nonce is malformed"),
        (first_answer(nonce=b"NONCE\xff"), "nonce is malformed"),
        (first_answer(salt=b""), "salt is malformed"),
        (first_answer(salt=b"c2FsdA"), "salt is malformed"),
        (first_answer(salt=b"c2F=dA=="), "salt is malformed"),
        (first_answer(salt=b"===="), "salt is malformed"),
        (first_answer(salt=b"c2 sdA=="), "salt is malformed"),
        (first_answer(iterations=b"4095"), "4095 SCRAM iterations: expected 4096 to 1000000"),
        (first_answer(iterations=b"1000001"), "1000001 SCRAM iterations"),
        (first_answer(iterations=b"99999999999999999999"), "SCRAM iterations"),
        (first_answer(iterations=b"-4096"), "SCRAM iterations"),
        (first_answer(iterations=b"04096"), "SCRAM iterations"),
        (first_answer(iterations=b"4096x"), "SCRAM iterations"),
        (first_answer(iterations=b""), "SCRAM iterations"),
        (b"m=ext," + first_answer(), "extension"),
        (b"e=unknown-user", "the broker refused: unknown-user"),
        (first_answer(more=b"," + b"x" * 5000), "too long"),
    ],
)
def test_invalid_first_answers_are_refused(answer, said):
    talk = scram_conversation(False, b"user", b"pencil", "NONCE")
    talk.step()
    outcome, sent, why = talk.step(answer)
    assert (outcome, sent) == ("failed", b"")
    assert said in why


def test_an_optional_extension_is_passed_over():
    talk = scram_conversation(False, b"user", b"pencil", "NONCE")
    talk.step()
    assert talk.step(first_answer(more=b",x=later"))[0] == "send"


@pytest.mark.parametrize("answer", [b"", b"v=", b"v=x", b"v=" + base64.b64encode(bytes(31)), b"ok"])
def test_invalid_last_answers_are_refused(answer):
    talk = scram_conversation(False, b"user", b"pencil", "NONCE")
    talk.step()
    talk.step(first_answer())
    assert talk.step(answer)[0] == "failed"


def test_nothing_comes_after_the_last_message():
    server = ScramServer("sha256", b"user", b"pencil")
    talk = conversation("SCRAM-SHA-256")
    answer = server.final(talk.step(server.first(talk.step()[1]))[1])
    talk.step(answer)
    assert talk.step(answer)[0] == "failed"


@settings(max_examples=300)
@given(st.binary(max_size=200), st.binary(max_size=100))
def test_any_answers_end_in_a_verdict(first, second):
    talk = scram_conversation(True, b"user", b"pencil", "NONCE")
    talk.step()
    if talk.step(first)[0] == "send":
        assert talk.step(second)[0] == "failed"


# OAUTHBEARER


def oauthbearer(token=b"abc.def.", extensions=None):
    credentials = Credentials("OAUTHBEARER")
    credentials.set_token(token, extensions or {}, 60000, 0)
    return credentials.begin()


def test_a_token_and_its_extensions():
    assert oauthbearer().step() == ("send", b"n,,\x01auth=Bearer abc.def.\x01\x01", "")
    talk = oauthbearer(extensions={b"cluster": b"lkc", b"pool": b"p 1"})
    assert talk.step()[1] == b"n,,\x01auth=Bearer abc.def.\x01cluster=lkc\x01pool=p 1\x01\x01"
    assert talk.step(b"") == ("done", b"", "")


def test_the_brokers_objection_is_acknowledged_and_kept():
    talk = oauthbearer()
    talk.step()
    assert talk.step(b'{"status":"invalid_token"}\n') == ("send", b"\x01", "")
    assert talk.error_from_broker == '{"status":"invalid_token"} '
    outcome, _, why = talk.step(b"")
    assert outcome == "failed" and "invalid_token" in why


# Credentials


def test_tokens_are_wanted_before_they_expire():
    credentials = Credentials("OAUTHBEARER", asks_for_tokens=True)
    assert credentials.begin(0) is None
    assert not credentials.take_token_request(0)  # whoever makes the consumer gives the first
    credentials.set_token(b"t", {}, 1000, 0)
    assert credentials.token_due_ms() == 800
    assert not credentials.take_token_request(799)
    assert credentials.begin(999) is not None and credentials.begin(1000) is None
    assert credentials.take_token_request(800) and not credentials.take_token_request(900)
    credentials.token_failed("no provider", 800)
    assert credentials.failure() == "no provider"
    assert credentials.token_due_ms() == 10800
    credentials.set_token(b"t", {}, 100000, 11000)
    assert credentials.failure() is None


def test_a_refused_token_is_replaced_before_its_time():
    credentials = Credentials("OAUTHBEARER", asks_for_tokens=True)
    credentials.set_token(b"t", {}, 1000000, 0)
    credentials.refused(5)
    assert credentials.token_due_ms() == 10000
    credentials.refused(20000)
    assert credentials.token_due_ms() == 10000


def test_after_a_failure_a_refusal_asks_no_earlier():
    credentials = Credentials("OAUTHBEARER", asks_for_tokens=True)
    credentials.set_token(b"t", {}, 1000, 0)
    assert credentials.take_token_request(800)
    credentials.token_failed("no provider", 50000)
    credentials.refused(50001)
    assert credentials.token_due_ms() == 60000


def test_a_source_that_renews_its_tokens_is_asked_after_a_refusal_only():
    credentials = Credentials("OAUTHBEARER", asks_for_tokens=True, renews_tokens=True)
    credentials.set_token(b"t", {}, 1000, 0)
    assert not credentials.take_token_request(100000)
    credentials.refused(20000)
    assert credentials.token_due_ms() == 20000
    assert credentials.take_token_request(20000) and not credentials.take_token_request(20001)
    credentials.token_failed("no provider", 21000)
    assert not credentials.take_token_request(100000)
    credentials.refused(100000)
    assert credentials.take_token_request(100000)
    credentials.set_token(b"u", {}, 1000, 100001)
    assert not credentials.take_token_request(200000)


# Memory

_CHILD = """
import sys
from tests.core.inside import Credentials
masked = bytes.fromhex(sys.argv[1])
made = {"PLAIN": Credentials("PLAIN", 0xA5), "SCRAM": Credentials("SCRAM-SHA-512", 0xA5),
        "OAUTH": Credentials("OAUTHBEARER", 0xA5)}
for name, credentials in made.items():
    for _ in range(3):
        if name == "OAUTH":
            credentials.set_token(masked, {}, 1000, 0)
        else:
            credentials.set_password(b"user", masked)
        talk = credentials.begin()
        if name == "SCRAM":
            talk.step()
            talk.step(b"r=not ours,s=c2FsdA==,i=4096")
        del talk
held = sys.argv[2] == "held"
for credentials in made.values() if not held else ():
    credentials.wipe()
print("ready", flush=True)
sys.stdin.read()
"""


def copies_in_memory(pid, wanted):
    """How often `wanted` stands in the writable memory of a process."""
    found = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if not rights.startswith("rw") or "[vvar" in line:
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            if end - start > 1 << 32:  # the shadow memory of a sanitizer
                continue
            try:
                memory.seek(start)
                found += memory.read(end - start).count(wanted)
            except OSError:
                continue
    return found


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc to look into a process's memory")
def test_secrets_are_wiped():
    """A child that only ever sees the secret masked unmasks it inside the core; its memory is searched from here."""
    secret = b"correct horse battery staple"
    counts = {}
    for state in ("held", "wiped"):
        with subprocess.Popen(
            [sys.executable, "-c", _CHILD, bytes(b ^ 0xA5 for b in secret).hex(), state],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as child:
            assert child.stdout.readline() == b"ready\n"
            counts[state] = copies_in_memory(child.pid, secret)
    assert counts["held"] == 3, "one copy each, or the search proves nothing"
    assert counts["wiped"] == 0
