"""A consumer whose loop a test steps by hand: scripted brokers, a clock that stands still, no thread and no socket."""

from __future__ import annotations

import itertools
import struct
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.core.inside import ScriptedNetwork
from tests.core.records import crc32c

from kconsumer import Consumer, config
from kconsumer._core.base.base import ManualClock
from tests.core import inside
from tests.core import protocol as wire

FETCH, LIST_OFFSETS, METADATA, OFFSET_FOR_LEADER_EPOCH = 1, 2, 3, 23
NAMES = {FETCH: "Fetch", LIST_OFFSETS: "ListOffsets", METADATA: "Metadata",
         OFFSET_FOR_LEADER_EPOCH: "OffsetForLeaderEpoch"}
REFRESH_MS = 20_000  # topic.metadata.refresh.interval.ms
READY, CONNECTING, BACKOFF = 0, 1, 2  # what ready() says of a connection
CONTROL_CHANNEL, FETCH_CHANNEL = 0, 1

# Topic ids of the scripted cluster: T1 and T2 are of one topic, before and after it was created again.
T1, T2, U1 = (uuid.UUID(int=n).bytes for n in (0x11, 0x22, 0x33))
NO_ID = bytes(16)


def varint(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def batch(base: int, values: Iterable[bytes], *, epoch: int = 0, attributes: int = 0, producer: int = -1,
          last_delta: int | None = None, spoil: bool = False,
          headers: Sequence[Sequence[tuple[bytes, bytes | None]]] = (), timestamps: Sequence[int] = ()) -> bytes:
    """A v2 record batch whose records have no key; `headers` are those of each; `spoil` makes its CRC wrong."""
    values = list(values)
    times = timestamps or [0] * max(len(values), 1)
    body = b""
    for i, value in enumerate(values):
        record = b"\x00" + varint(times[i] - times[0]) + varint(i) + varint(-1) + varint(len(value)) + value
        own = headers[i] if headers else ()
        record += varint(len(own))
        for name, content in own:
            record += varint(len(name)) + name + (varint(-1) if content is None else varint(len(content)) + content)
        body += varint(len(record)) + record
    if last_delta is None:
        last_delta = max(len(values) - 1, 0)
    tail = struct.pack(">hiqqqhii", attributes, last_delta, times[0], max(times), producer, -1, -1, len(values)) + body
    crc = crc32c(tail) ^ (1 if spoil else 0)
    return struct.pack(">qiibI", base, 9 + len(tail), epoch, 2, crc) + tail


def unreadable(base: int) -> bytes:
    """A batch whose CRC is right and whose records are not what its codec (gzip) makes: it stops its partition."""
    return batch(base, [b"no gzip"], attributes=1)


def records(first: int, end: int, *, epoch: int = 0) -> bytes:
    """One batch of offsets [first, end); each value is its offset."""
    return batch(first, [b"%d" % n for n in range(first, end)], epoch=epoch)


def commit_marker(base: int, producer: int, *, epoch: int = 0) -> bytes:
    """A control batch: one invisible offset."""
    key, value = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 7)
    marker = b"\x00\x00" + varint(0) + varint(len(key)) + key + varint(len(value)) + value + b"\x00"
    body = varint(len(marker)) + marker
    tail = struct.pack(">hiqqqhii", 0x30, 0, 0, 0, producer, -1, -1, 1) + body
    return struct.pack(">qiibI", base, 9 + len(tail), epoch, 2, crc32c(tail)) + tail


def to_wire(value: Any) -> Any:
    """The codec's strings are bytes."""
    if isinstance(value, dict):
        return {name: to_wire(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [to_wire(inner) for inner in value]
    return value.encode() if isinstance(value, str) else value


def from_wire(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {inner: from_wire(v, inner) for inner, v in value.items()}
    if isinstance(value, list):
        return [from_wire(inner, name) for inner in value]
    return value.decode() if isinstance(value, bytes) and name != "topic_id" else value


class Topic:
    """The scripted Metadata of one topic: leaders by partition, as (leader, epoch)."""

    def __init__(self, leaders: dict[int, tuple[int, int]], topic_id: bytes = T1, error: int = 0) -> None:
        self.leaders = leaders
        self.topic_id = topic_id
        self.error = error


class Loop:
    """Consumer, scripted network and clock; ``turn()`` is one turn of the loop."""

    def __init__(self, **settings: Any) -> None:
        given = {"bootstrap.servers": "bootstrap:9092", "auto.offset.reset": "earliest",
                 "retry.backoff.ms": 100, "retry.backoff.max.ms": 1000,
                 "topic.metadata.refresh.interval.ms": REFRESH_MS}
        for name, value in settings.items():
            given[name if name.endswith("_cb") or name == "on_commit" else name.replace("_", ".")] = value
        self.errors: list[Any] = []
        given.setdefault("error_cb", self.errors.append)
        self.network = ScriptedNetwork()
        self.clock = ManualClock()
        self.consumer = Consumer.__new__(Consumer)
        self.consumer._settings = config.parse(given)
        self.consumer._open(self.consumer._settings, "1.0", self.network, self.clock)
        inside.share_memory(self.consumer, self.network)
        self.brokers = {1: ("one", 9092), 2: ("two", 9092)}
        self.topics: dict[str, Topic] = {"t": Topic({0: (1, 5), 1: (1, 5), 2: (2, 5)})}
        self.session_ids = itertools.count(100)

    # -- the loop

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.consumer._run_once()

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.turn()

    def requests(self, api: int, node: int | None = None) -> list[dict[str, Any]]:
        """The requests sent and unanswered, their bodies decoded."""
        found = []
        for request in self.network.requests(api):
            if node is None or request["node"] == node:
                body, left = wire.decode(f"{NAMES[api]}Request", request["version"], request["body"])
                assert left == 0
                found.append({**request, "body": from_wire(body)})
        return found

    def one(self, api: int, node: int | None = None) -> dict[str, Any]:
        (request,) = self.requests(api, node)
        return request

    def answer(self, request: dict[str, Any], body: dict[str, Any], turns: int = 1) -> None:
        encoded = wire.encode(f"{NAMES[request['api']]}Response", request["version"], to_wire(body))
        self.network.answer(request["id"], encoded)
        self.turn(turns)

    def fail(self, request: dict[str, Any], code: int = -195) -> None:
        self.network.fail(request["id"], code)
        self.turn()

    # -- metadata

    def metadata_body(self, asked: Iterable[str] | None = None, **changes: Any) -> dict[str, Any]:
        """A Metadata response about the scripted cluster; a topic that it does not have is unknown."""
        topics = []
        for name in self.topics if asked is None else asked:
            known = self.topics.get(name)
            if known is None or known.error:
                error = 3 if known is None else known.error
                topics.append({"error_code": error, "name": name, "topic_id": NO_ID, "partitions": []})
                continue
            topics.append({"error_code": 0, "name": name, "topic_id": known.topic_id, "partitions": [
                {"error_code": 0 if leader >= 0 else 5, "partition_index": p, "leader_id": leader,
                 "leader_epoch": epoch, "replica_nodes": [1, 2], "isr_nodes": [1, 2]}
                for p, (leader, epoch) in known.leaders.items()]})
        body = {"brokers": [{"node_id": n, "host": h, "port": p} for n, (h, p) in self.brokers.items()],
                "cluster_id": "cluster", "controller_id": 1, "topics": topics}
        body.update(changes)
        return body

    def answer_metadata(self, **changes: Any) -> dict[str, Any]:
        """Answers the one Metadata request in flight as the scripted cluster is; returns the request."""
        request = self.one(METADATA)
        asked = request["body"]["topics"]
        names = None if asked is None else [t["name"] for t in asked]
        self.answer(request, self.metadata_body(names, **changes))
        return request

    def refresh_metadata(self) -> None:
        """A new request is due, whatever asked for it; it is answered."""
        for _ in range(20):
            if self.requests(METADATA):
                break
            self.advance(100)
        self.answer_metadata()

    def assign(self, *partitions: tuple[Any, ...]) -> None:
        """(topic, partition, offset[, leader epoch]), adopted and with metadata."""
        self.consumer._assign([(p[0], p[1], p[2], p[3] if len(p) > 3 else -1) for p in partitions], True)
        self.turn()
        while self.requests(METADATA):
            self.answer_metadata()
        self.turn()

    def inside(self, partition: int = 0, topic: str = "t") -> Any:
        return inside.partition(self.consumer, topic, partition)

    # -- offsets

    def answer_offsets(self, request: dict[str, Any], offset: Callable[[str, int, int], dict[str, Any]]) -> None:
        """`offset` gives the fields of each partition's answer, from topic, partition and timestamp."""
        self.answer(request, {"topics": [
            {"name": t["name"], "partitions": [
                {"partition_index": p["partition_index"], "error_code": 0, "timestamp": -1, "leader_epoch": -1,
                 **offset(t["name"], p["partition_index"], p["timestamp"])} for p in t["partitions"]]}
            for t in request["body"]["topics"]]})

    def answer_end_offsets(self, request: dict[str, Any], **fields: Any) -> None:
        self.answer(request, {"topics": [
            {"topic": t["topic"], "partitions": [
                {"partition": p["partition"], "error_code": 0, "leader_epoch": 5, "end_offset": 1 << 40, **fields}
                for p in t["partitions"]]} for t in request["body"]["topics"]]})

    # -- fetches

    def fetched(self, request: dict[str, Any], parts: dict[Any, dict[str, Any]] | None = None, *,
                session: int | None = None, turns: int = 2, **top: Any) -> None:
        """Answers a Fetch; `parts` is {partition or (topic, partition): fields}, where `records` is bytes.

        The default session id is the one that was asked with, or a new one.
        """
        if session is None:
            session = request["body"]["session_id"] or next(self.session_ids)
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for where, fields in (parts or {}).items():
            topic, number = where if isinstance(where, tuple) else ("t", where)
            by_topic.setdefault(topic, []).append({
                "partition_index": number, "error_code": 0, "high_watermark": 1000, "last_stable_offset": 1000,
                "log_start_offset": 0, "aborted_transactions": None, "records": b"", **fields})
        responses = [{"topic": name, "topic_id": self.topics[name].topic_id, "partitions": p}
                     for name, p in by_topic.items()]
        self.answer(request, {"error_code": 0, "session_id": session, "responses": responses, **top}, turns)

    def asked(self, request: dict[str, Any]) -> dict[tuple[str, int], int]:
        """{(topic, partition): fetch offset} of a Fetch."""
        ids = {known.topic_id: name for name, known in self.topics.items()}
        return {(t["topic"] or ids.get(t["topic_id"], "formerly"), p["partition"]): p["fetch_offset"]
                for t in request["body"]["topics"] for p in t["partitions"]}

    def forgotten(self, request: dict[str, Any]) -> list[int]:
        return sorted(p for t in request["body"]["forgotten_topics_data"] for p in t["partitions"])

    # -- the application's side

    def poll(self) -> Any:
        return self.consumer.poll(0)

    def offsets(self, most: int = 1000) -> list[Any]:
        """Offsets of what can be consumed now; errors as ("error", code)."""
        return [m.offset() if m.error() is None else ("error", m.error().code())
                for m in self.consumer.consume(most, 0)]

    def places(self, most: int = 1000) -> list[tuple[int, int]]:
        """(partition, offset) of what can be consumed now."""
        return [(m.partition(), m.offset()) for m in self.consumer.consume(most, 0)]

    def serve(self) -> list[int]:
        """Runs callbacks; the codes of all errors that error_cb got so far."""
        self.consumer._serve()
        return [e.cause for e in self.errors]
