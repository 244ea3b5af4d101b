"""GSSAPI with a peer that has no key of the service: whatever it answers to the client's ticket, it is refused in time.

The KDC is a real one and the ticket good, so that each answer reaches the Kerberos library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kerberos import WITHOUT_KDC, Kdc, missing_programs

sys.path.append(str(Path(__file__).parents[1] / "hostile"))

from lying_broker import LyingBroker, Question

pytestmark = pytest.mark.skipif(bool(missing_programs()), reason=WITHOUT_KDC)

MIB = 1 << 20
_CHILD = """
import json, sys, time
import kconsumer
from process_peak import begin_peak, peak
config = json.loads(sys.argv[1])
told = []
with kconsumer.Consumer({**config, "error_cb": lambda error: told.append([error.name(), error.str()])}) as consumer:
    consumer.poll(0)
    begin_peak()
    before, begun, busy = peak(), time.monotonic(), time.process_time()
    longest = 0
    while time.monotonic() < begun + 2 or not told:
        since = time.monotonic()
        consumer.poll(0.1)
        longest = max(longest, time.monotonic() - since)
        if time.monotonic() > begun + 60:
            break
print(json.dumps({"told": told, "peak": peak() - before, "cpu": time.process_time() - busy, "longest": longest}))
"""


def framed(body: bytes) -> bytes:
    """As GSS-API frames a Kerberos token: its mechanism, then that it is an AP-REP."""
    inside = b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" + b"\x02\x00" + body
    return b"\x60\x84" + len(inside).to_bytes(4, "big") + inside


ANSWERS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda token: b"",
    "garbage": lambda token: bytes(range(256)) * 4,
    "the ticket itself": lambda token: token,
    "the ticket cut off": lambda token: token[:len(token) // 2],
    "the ticket with one bit changed": lambda token: token[:-1] + bytes([token[-1] ^ 1]),
    "an empty AP-REP": lambda token: framed(b""),
    "an AP-REP of garbage": lambda token: framed(b"\x6f\x82\x01\x00" + bytes(256)),
    "a length of 4 GiB": lambda token: b"\x60\x84\xff\xff\xff\xff" + bytes(64),
    "900 kB": lambda token: framed(b"\x6f\x83\x0d\xbb\xa0" + bytes(900_000)),
    "an offer of layers": lambda token: b"\x01\x00\x00\x00",
}


class Pretender(LyingBroker):
    """Takes any ticket for GSSAPI, and answers it with `answer`."""

    answer: Callable[[bytes], bytes]

    def _sasl_handshake(self, question: Question) -> dict[str, Any]:
        return {"error_code": 0, "mechanisms": [b"GSSAPI"]}

    def _sasl_authenticate(self, question: Question) -> dict[str, Any]:
        return {"error_code": 0, "error_message": None, "auth_bytes": self.answer(question.body["auth_bytes"])}


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    with Kdc() as one:
        yield one


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_peer_without_the_services_key_is_refused(kdc: Kdc, answer: str) -> None:
    keytab = kdc.directory / "alice.keytab"
    if not keytab.exists():
        keytab = kdc.add("alice", "alice.keytab")
    with Pretender({"t": [[]]}, users={}) as broker:
        broker.answer = ANSWERS[answer]
        config = {"bootstrap.servers": f"localhost:{broker.port}", "security.protocol": "sasl_plaintext",
                  "sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": str(keytab), "log_level": 0}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _CHILD, json.dumps(config)], check=False, capture_output=True,
            text=True, timeout=100,
            env={**os.environ, **kdc.environment, "PYTHONPATH": str(Path(__file__).parents[1] / "hostile")})
        asked = dict(broker.asked)
    assert not broker.failures
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert asked["SaslAuthenticate"] >= 1, "the ticket was not sent"
    assert asked["Metadata"] == 0, "it was believed"
    assert [text for name, text in found["told"] if name == "_AUTHENTICATION" and "GSSAPI" in text], found
    assert found["longest"] < 10
    assert found["cpu"] < 2
    assert found["peak"] < 16 * MIB
