"""A broker in Python that answers whatever this client asks, honestly, or with the lie that a test puts in between.

Owns: LyingBroker, Question. Threads: one that accepts, one for each connection; `lie` may be set by the test at any
time. Never: more than one broker of a cluster, data beyond what it was made with.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.core import protocol as codecs

APIS = {
    0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch",
    10: "FindCoordinator", 11: "JoinGroup", 12: "Heartbeat", 13: "LeaveGroup", 14: "SyncGroup", 17: "SaslHandshake",
    18: "ApiVersions", 23: "OffsetForLeaderEpoch", 36: "SaslAuthenticate", 68: "ConsumerGroupHeartbeat",
}
KEYS = {name: key for key, name in APIS.items()}
ASKED = tuple(name for name in APIS.values() if name != "Produce")
UNKNOWN_TOPIC_OR_PARTITION = 3
NODE = 1


@dataclass(frozen=True)
class Question:
    """One request, decoded."""

    api: str
    version: int
    body: dict[str, Any]
    correlation_id: int
    connection: int
    authenticated: bool


@dataclass
class Topic:
    """Its id, and for each partition the batches as (base offset, last offset, bytes)."""

    name: str
    partitions: list[list[tuple[int, int, bytes]]]
    id: bytes = field(default_factory=lambda: uuid.uuid4().bytes)


class Close(Exception):
    """Raised by a lie: the connection ends here."""


# What goes out instead of the honest response: other values, the bytes of a body, or (whole=True) of a frame.
Lie = Callable[[Question, dict[str, Any]], "dict[str, Any] | bytes | WholeFrame"]


@dataclass(frozen=True)
class WholeFrame:
    """Bytes that go out as they are, size and all."""

    data: bytes


def honest(_: Question, answer: dict[str, Any]) -> dict[str, Any]:
    """No lie."""
    return answer


class LyingBroker:
    """Listens on a loopback port; a context manager.

    Args:
        topics: for each topic the batches of each of its partitions.
        tls: a server's context; None for plaintext.
        users: user name → password, for SASL PLAIN; None for no SASL.
        versions: API → (least, most), where not all that the client has.
    """

    def __init__(self, topics: Mapping[str, Sequence[Sequence[tuple[int, int, bytes]]]], *,
                 tls: ssl.SSLContext | None = None, users: Mapping[str, str] | None = None,
                 versions: Mapping[str, tuple[int, int]] | None = None) -> None:
        self.topics = {name: Topic(name, [list(p) for p in partitions]) for name, partitions in topics.items()}
        self.users = users
        self.lie: Lie = honest
        self.asked: dict[str, int] = dict.fromkeys(ASKED, 0)
        self.failures: list[BaseException] = []
        self.versions = {name: codecs.messages()[name + "Request"] for name in ASKED} | {"Produce": (0, 9)}
        self.versions |= dict(versions or {})
        self._tls = tls
        self._members = 0
        self._open: set[socket.socket] = set()
        self._closing = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.bootstrap_servers = f"127.0.0.1:{self.port}"

    def __enter__(self) -> LyingBroker:
        threading.Thread(target=self._accept, name="lying-broker", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Closes what is open."""
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    # -- connections

    def _accept(self) -> None:
        number = 0
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            number += 1
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        self._open.add(sock)
        try:
            if self._tls is not None:
                raw = sock
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._open.discard(raw)
                self._open.add(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._converse(sock, number)
        except (OSError, EOFError, Close):
            pass
        except Exception as failed:  # the broker's own mistake: the test must see it
            self.failures.append(failed)
        finally:
            self._open.discard(sock)
            sock.close()

    def _converse(self, sock: socket.socket, number: int) -> None:
        authenticated = self.users is None
        while not self._closing:
            (size,) = struct.unpack(">i", _read_exactly(sock, 4))
            question = self._read_question(_read_exactly(sock, size), number, authenticated)
            if question is None:
                raise Close
            self.asked[question.api] += 1
            answer = self._answer(question)
            authenticated = authenticated or (question.api == "SaslAuthenticate" and answer["error_code"] == 0)
            sock.sendall(self._frame(question, self.lie(question, answer)))

    @staticmethod
    def _read_question(frame: bytes, number: int, authenticated: bool) -> Question | None:
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        api = APIS.get(key)
        if api is None:
            return None
        low, high = codecs.messages()[api + "Request"]
        header = 1
        if low <= version <= high:
            header = codecs.header_versions(api + "Request", version)[0]
        (length,) = struct.unpack_from(">h", frame, 8)
        at = 10 + max(length, 0) + (1 if header == 2 else 0)
        body, _ = codecs.decode(api + "Request", min(version, high), frame[at:])
        return Question(api, version, body, correlation_id, number, authenticated)

    def _frame(self, question: Question, answer: dict[str, Any] | bytes | WholeFrame) -> bytes:
        if isinstance(answer, WholeFrame):
            return answer.data
        name = question.api + "Response"
        body = answer if isinstance(answer, bytes) else codecs.encode(name, question.version, answer)
        header = codecs.header_versions(question.api + "Request", question.version)[1]
        head = struct.pack(">i", question.correlation_id) + (b"\0" if header == 1 else b"")
        return struct.pack(">i", len(head) + len(body)) + head + body

    # -- honest answers

    def _answer(self, question: Question) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(self, "_" + _snake(question.api))(question)
        return answer

    def _api_versions(self, question: Question) -> dict[str, Any]:
        return {"api_keys": [{"api_key": KEYS[name], "min_version": low, "max_version": high}
                             for name, (low, high) in self.versions.items()]}

    def _sasl_handshake(self, question: Question) -> dict[str, Any]:
        offered = question.body["mechanism"] == b"PLAIN"
        return {"error_code": 0 if offered else 33, "mechanisms": [b"PLAIN"]}

    def _sasl_authenticate(self, question: Question) -> dict[str, Any]:
        _, user, password = question.body["auth_bytes"].split(b"\0")
        known = (self.users or {}).get(user.decode()) == password.decode()
        return {"error_code": 0 if known else 58, "error_message": None if known else b"who are you?"}

    def _metadata(self, question: Question) -> dict[str, Any]:
        asked = question.body["topics"]
        topics = []
        for wanted in [{"name": name.encode()} for name in self.topics] if asked is None else asked:
            found = next((t for t in self.topics.values() if t.name.encode() == wanted.get("name")
                          or t.id == wanted.get("topic_id")), None)
            if found is None:
                topics.append({"error_code": UNKNOWN_TOPIC_OR_PARTITION, "name": wanted.get("name") or b""})
                continue
            topics.append({"name": found.name.encode(), "topic_id": found.id, "partitions": [
                {"partition_index": i, "leader_id": NODE, "leader_epoch": 0, "replica_nodes": [NODE],
                 "isr_nodes": [NODE]} for i in range(len(found.partitions))]})
        return {"brokers": [{"node_id": NODE, "host": b"127.0.0.1", "port": self.port}], "cluster_id": b"lies",
                "controller_id": NODE, "topics": topics}

    def _list_offsets(self, question: Question) -> dict[str, Any]:
        def found(topic: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
            batches = self._batches(topic["name"], wanted["partition_index"])
            if batches is None:
                return {"partition_index": wanted["partition_index"], "error_code": UNKNOWN_TOPIC_OR_PARTITION}
            first = batches[0][0] if batches else 0
            return {"partition_index": wanted["partition_index"], "leader_epoch": 0,
                    "offset": first if wanted["timestamp"] == -2 else _end(batches)}

        return {"topics": [{"name": topic["name"], "partitions": [found(topic, p) for p in topic["partitions"]]}
                           for topic in question.body["topics"]]}

    def _offset_for_leader_epoch(self, question: Question) -> dict[str, Any]:
        return {"topics": [{"topic": topic["topic"], "partitions": [
            {"partition": p["partition"], "leader_epoch": 0,
             "end_offset": _end(self._batches(topic["topic"], p["partition"]) or [])}
            for p in topic["partitions"]]} for topic in question.body["topics"]]}

    def _fetch(self, question: Question) -> dict[str, Any]:
        topics, any_records = [], False
        for asked in question.body["topics"]:
            named = asked["topic"] or next(
                (t.name.encode() for t in self.topics.values() if t.id == asked["topic_id"]), b"")
            partitions = []
            for wanted in asked["partitions"]:
                batches = self._batches(named, wanted["partition"])
                if batches is None:
                    partitions.append({"partition_index": wanted["partition"],
                                       "error_code": UNKNOWN_TOPIC_OR_PARTITION, "records": b""})
                    continue
                records = b"".join(data for _, last, data in batches if last >= wanted["fetch_offset"])
                any_records = any_records or bool(records)
                partitions.append({"partition_index": wanted["partition"], "high_watermark": _end(batches),
                                   "last_stable_offset": _end(batches), "log_start_offset": 0,
                                   "aborted_transactions": None, "preferred_read_replica": -1, "records": records})
            topics.append({"topic": asked["topic"], "topic_id": asked["topic_id"], "partitions": partitions})
        if not any_records:
            time.sleep(min(question.body["max_wait_ms"], 50) / 1000)  # as a broker parks a Fetch
        return {"responses": topics}

    def _find_coordinator(self, question: Question) -> dict[str, Any]:
        place = {"node_id": NODE, "host": b"127.0.0.1", "port": self.port}
        return {**place, "coordinators": [{"key": key, **place} for key in question.body["coordinator_keys"]]}

    def _join_group(self, question: Question) -> dict[str, Any]:
        self._members += 1
        member = question.body["member_id"] or b"member-%d" % self._members
        protocol = question.body["protocols"][0]
        return {"generation_id": self._members, "protocol_type": b"consumer", "protocol_name": protocol["name"],
                "leader": member, "member_id": member,
                "members": [{"member_id": member, "metadata": protocol["metadata"]}]}

    def _sync_group(self, question: Question) -> dict[str, Any]:
        given = [a["assignment"] for a in question.body["assignments"] if a["member_id"] == question.body["member_id"]]
        return {"protocol_type": b"consumer", "protocol_name": question.body["protocol_name"] or b"range",
                "assignment": given[0] if given else b""}

    def _heartbeat(self, question: Question) -> dict[str, Any]:
        return {}

    def _leave_group(self, question: Question) -> dict[str, Any]:
        return {"members": []}

    def _offset_commit(self, question: Question) -> dict[str, Any]:
        return {"topics": [{"name": topic["name"], "topic_id": topic["topic_id"], "partitions": [
            {"partition_index": p["partition_index"]} for p in topic["partitions"]]}
            for topic in question.body["topics"]]}

    def _offset_fetch(self, question: Question) -> dict[str, Any]:
        def answer(topics: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
            return [{"name": topic["name"], "topic_id": topic.get("topic_id", bytes(16)), "partitions": [
                {"partition_index": p, "committed_offset": -1, "metadata": b""} for p in topic["partition_indexes"]]}
                for topic in topics or ()]

        return {"topics": [{key: value for key, value in topic.items() if key != "topic_id"}
                           for topic in answer(question.body["topics"])],
                "groups": [{"group_id": group["group_id"], "topics": answer(group["topics"])}
                           for group in question.body["groups"]]}

    def _consumer_group_heartbeat(self, question: Question) -> dict[str, Any]:
        leaving = question.body["member_epoch"] < 0
        return {"member_id": question.body["member_id"] or b"member", "heartbeat_interval_ms": 200,
                "member_epoch": question.body["member_epoch"] if leaving else max(1, question.body["member_epoch"]),
                "assignment": None if leaving else {"topic_partitions": [
                    {"topic_id": t.id, "partitions": list(range(len(t.partitions)))} for t in self.topics.values()]}}

    def _batches(self, name: bytes, partition: int) -> list[tuple[int, int, bytes]] | None:
        topic = self.topics.get(name.decode(errors="replace"))
        return topic.partitions[partition] if topic and partition < len(topic.partitions) else None


def _end(batches: Sequence[tuple[int, int, bytes]]) -> int:
    return batches[-1][1] + 1 if batches else 0


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = sock.recv(min(count - len(data), 1 << 20))
        if not more:
            raise EOFError
        data += more
    return bytes(data)
