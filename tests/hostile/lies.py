"""False answers of a broker: another value in any field of any response, other bytes, another frame.

Owns: the strategies that draw lies, and telling them. Threads: `Liar.__call__` runs on the broker's threads. Never:
knows what the client makes of a lie.
"""

from __future__ import annotations

import copy
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st
from lying_broker import ASKED, Close, Lie, LyingBroker, Question, WholeFrame
from record_encoders import batch, core_records

from tests.core import protocol as codecs

Path = tuple[str, ...]
EACH = "*"  # in a path: every element of a list
ALWAYS = 1_000_000
MANY = 3000  # elements of a list that is longer than it should be
ERRORS = range(-2, 135)
NUMBERS = sorted({sign * ((1 << bits) - less) for bits in (0, 1, 7, 8, 15, 31, 33, 63) for less in (0, 1, 2)
                  for sign in (1, -1)} - {1 << 63})
TEXTS = [b"", b"\x1b[2J\r\n", b"\xff\xfe", b"flights", b"x" * 300, b"\0", b"a" * 60_000, b"127.0.0.1", b"[/nope]",
         b"..", b"localhost%x", bytes(16)]
# Without these no consumer of the kind reads anything, or they are sent on the way.
COMMON = ("ApiVersions", "Metadata", "ListOffsets", "Fetch", "OffsetForLeaderEpoch")
CLASSIC = ("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetFetch", "OffsetCommit")
MODERN = ("FindCoordinator", "ConsumerGroupHeartbeat", "OffsetFetch", "OffsetCommit")
SASL = ("SaslHandshake", "SaslAuthenticate")


# ---- what may be said

def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field of a message, structs and lists among them."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, EACH))


def candidates(path: Path, value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value, value]
    if path[-1] == "throttle_time_ms":
        return [-2**31, -1, 1, 300]  # up to five minutes it is obeyed: tests/unit/network/test_network_client.py
    if isinstance(value, int):
        return [*ERRORS, *NUMBERS] if path[-1] == "error_code" else NUMBERS
    if isinstance(value, bytes):
        return [None, *TEXTS, *(records() if path[-1] == "records" else ())]
    if isinstance(value, list):
        return [None, [], *([value * times for times in (2, 50, MANY)] if value else ())]
    if isinstance(value, dict):
        return [None]
    return []


@cache
def records() -> list[bytes]:
    """Record batches that a broker would not have."""
    good = batch([(0, 0, b"k", b"v", [(b"h", b"v")]), (1, 0, None, None, ())])
    found = [good * 1000, good[:-1], good[:20], good + good[:30], bytes(100), b"\xff" * 200,
             batch([(0, 0, b"k", b"v", ())], count=2**31 - 1), batch([(0, 0, b"k", b"v", ())], count=-1),
             batch([(0, 0, b"k", b"v", ())], base_offset=2**63 - 1),
             batch([(0, 0, b"k", b"v", ())], last_offset_delta=2**31 - 1),
             batch([(2**31 - 1, -2**62, b"k", b"v", ())], last_offset_delta=2**31 - 1),
             batch([(0, 0, b"k", b"v", ())], control=True, transactional=True, producer_id=3)]
    for at in range(8, len(good)):  # every byte another, under a CRC that is right
        damaged = bytearray(good)
        damaged[at] ^= 0xFF
        damaged[17:21] = struct.pack(">I", core_records.crc32c(bytes(damaged[21:])))
        found.append(bytes(damaged))
    return found


def replaced(message: Any, path: Path, value: Any, sample: Any) -> Any:
    """`message` with `value` at every place of the path; what it lacks on the way comes from the sample."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    if name == EACH:
        if not isinstance(sample, list) or not sample:
            return message
        return [replaced(one, rest, value, sample[0]) for one in message or sample[:1]]
    inner = sample[name] if isinstance(sample, dict) else None
    whole = dict(message) if isinstance(message, dict) else {}
    whole[name] = replaced(whole.get(name), rest, value, inner) if rest else value
    return whole


@cache
def sample(api: str, version: int) -> dict[str, Any]:
    values, _ = codecs.decode(api + "Response", version, codecs.sample(api + "Response", version))
    return values  # type: ignore[no-any-return]


@cache
def sayings(api: str, version: int) -> list[tuple[Path, Any]]:
    """Every field that is in this version of the response, with every value that fits it."""
    whole = sample(api, version)
    plain = codecs.encode(api + "Response", version, whole)
    found = []
    for path, value in leaves(whole):
        if path[-1] == EACH:
            continue
        for said in candidates(path, value):
            try:
                other = codecs.encode(api + "Response", version, replaced(whole, path, said, whole))
            except (OverflowError, TypeError, ValueError):
                continue
            if other != plain:
                found.append((path, said))
    return found


# ---- lies

@dataclass(frozen=True)
class FieldLie:
    """Another value in one field, wherever the answer has it."""

    path: Path
    value: Any = field(repr=False)

    def apply(self, question: Question, answer: dict[str, Any]) -> dict[str, Any] | bytes:
        try:
            lie = replaced(answer, self.path, self.value, sample(question.api, question.version))
            codecs.encode(question.api + "Response", question.version, lie)
        except (OverflowError, TypeError, ValueError, KeyError):  # of a version that has no such field
            return answer
        return lie  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        text = repr(self.value)
        return f"{'.'.join(self.path)} = {text if len(text) < 200 else text[:200] + '...'}"


@dataclass(frozen=True)
class BytesLie:
    """The response's bytes with some of them changed, cut off, or more after them."""

    flips: tuple[tuple[float, int], ...]
    keep: float
    tail: bytes

    def apply(self, question: Question, answer: dict[str, Any]) -> bytes:
        body = bytearray(codecs.encode(question.api + "Response", question.version, answer))
        for place, mask in self.flips:
            at = int(place * (len(body) - 1))
            if at > 3:  # most begin with throttle_time_ms, which is obeyed for minutes
                body[at] ^= mask
        return bytes(body[:max(int(self.keep * len(body)), 4)]) + self.tail


@dataclass(frozen=True)
class FrameLie:
    """A frame that is none, or not the one that was asked for."""

    kind: str

    KINDS = ("negative size", "no size", "huge size", "nothing", "half", "close", "other id", "twice", "empty", "http")

    def apply(self, question: Question, answer: dict[str, Any]) -> dict[str, Any] | WholeFrame:
        body = codecs.encode(question.api + "Response", question.version, answer)
        header = codecs.header_versions(question.api + "Request", question.version)[1]

        def frame(correlation_id: int) -> bytes:
            head = struct.pack(">i", correlation_id) + (b"\0" if header == 1 else b"")
            return struct.pack(">i", len(head) + len(body)) + head + body

        good = frame(question.correlation_id)
        if self.kind == "close":
            raise Close
        return WholeFrame({
            "negative size": struct.pack(">i", -1) + good[4:], "no size": bytes(4) + good[4:],
            "huge size": struct.pack(">i", 2**31 - 1) + good[4:], "nothing": b"", "half": good[:len(good) // 2],
            "other id": frame(question.correlation_id ^ 0x7FFF), "twice": good * 2,
            "empty": struct.pack(">ii", 4, question.correlation_id),
            "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        }[self.kind])


@dataclass(frozen=True)
class PlannedLie:
    """One lie, and the answers to an API that contain it."""

    api: str
    version: int
    lie: FieldLie | BytesLie | FrameLie
    after: int = 0
    times: int = ALWAYS


class Liar:
    """A broker's `lie`."""

    def __init__(self, lies: tuple[PlannedLie, ...]) -> None:
        self._lies = lies
        self._counts = [0] * len(lies)
        self._lock = threading.Lock()

    def __call__(self, question: Question, answer: dict[str, Any]) -> dict[str, Any] | bytes | WholeFrame:
        for at, planned in enumerate(self._lies):
            if planned.api != question.api:
                continue
            with self._lock:
                self._counts[at] += 1
                count = self._counts[at]
            if planned.after < count <= planned.after + planned.times:
                lie = planned.lie.apply(question, answer)
                if not isinstance(lie, dict):
                    return lie
                answer = lie
        return answer


@dataclass(frozen=True)
class Scene:
    """A consumer, its broker, and what that says until it turns honest."""

    group: str  # "", "classic" or "consumer"
    tls: bool
    sasl: bool
    lies: tuple[PlannedLie, ...]

    def begin(self, broker: LyingBroker) -> Lie:
        for planned in self.lies:
            low = broker.versions[planned.api][0]
            if planned.api != "ApiVersions":  # the client begins with its newest
                broker.versions[planned.api] = (low, planned.version)
        return Liar(self.lies)


def versions(api: str, group: str) -> st.SearchStrategy[int]:
    """Mostly the newest, which is what brokers speak."""
    low, high = codecs.messages()[api + "Response"]
    if api == "SaslHandshake":
        return st.just(high)  # tokens go without a header after version 0, which this broker does not read
    if api == "Metadata":
        low = 12 if group == "consumer" else 1  # the first that tells the names of topic ids; that is understood
    return st.one_of(st.just(high), st.integers(low, high))


def field_lies(api: str, version: int) -> st.SearchStrategy[FieldLie]:
    """A field first: one with many values is not likelier than one with few."""
    by_path: dict[Path, list[Any]] = {}
    for path, value in sayings(api, version):
        by_path.setdefault(path, []).append(value)
    return st.sampled_from(sorted(by_path)).flatmap(
        lambda path: st.sampled_from(by_path[path]).map(lambda value: FieldLie(path, copy.deepcopy(value))))


bytes_lies = st.builds(
    BytesLie, st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=4).map(tuple),
    st.one_of(st.just(1.0), st.floats(0, 1)), st.one_of(st.just(b""), st.binary(max_size=40)))


@st.composite
def planned_lies(draw: st.DrawFn, apis: tuple[str, ...], group: str) -> PlannedLie:
    api = draw(st.sampled_from(apis))
    version = draw(versions(api, group))
    kinds = [bytes_lies, st.sampled_from(FrameLie.KINDS).map(FrameLie)]
    if sayings(api, version):
        kinds = [field_lies(api, version)] * 6 + kinds
    return PlannedLie(api, version, draw(st.one_of(kinds)), draw(st.sampled_from((0, 0, 0, 1, 3))),
                draw(st.sampled_from((1, 3, ALWAYS, ALWAYS))))


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    group = draw(st.sampled_from(("", "classic", "consumer")))
    sasl = draw(st.booleans())
    apis = COMMON + {"": (), "classic": CLASSIC, "consumer": MODERN}[group] + (SASL if sasl else ())
    assert set(apis) <= set(ASKED)
    lies = st.lists(planned_lies(apis, group), min_size=1, max_size=3, unique_by=lambda one: one.api)
    return Scene(group, draw(st.booleans()), sasl, tuple(draw(lies)))
