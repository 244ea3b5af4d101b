"""A group member whose loop a test steps by hand, and the coordinator's answers in the classic protocol."""

from __future__ import annotations

import struct
from typing import Any

from stepped_loop import FETCH, METADATA, NAMES, REFRESH_MS, Loop, records, to_wire

from kconsumer import TopicPartition
from tests.core import inside as inside_group
from tests.core import protocol as wire

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC = 8, 9, 10, 11, 12, 13, 14
NAMES.update({OFFSET_COMMIT: "OffsetCommit", OFFSET_FETCH: "OffsetFetch", FIND_COORDINATOR: "FindCoordinator",
              JOIN: "JoinGroup", HEARTBEAT: "Heartbeat", LEAVE: "LeaveGroup", SYNC: "SyncGroup"})
COORDINATOR_CHANNEL, JOIN_CHANNEL = 2, 3
HEARTBEAT_MS, SESSION_MS, POLL_MS = 3_000, 45_000, 300_000


def text(value: Any, name: str = "") -> Any:
    """The codec's strings are bytes; payloads stay bytes."""
    if isinstance(value, dict):
        return {inner: text(v, inner) for inner, v in value.items()}
    if isinstance(value, list):
        return [text(inner, name) for inner in value]
    return value.decode() if isinstance(value, bytes) and name not in ("metadata", "assignment", "topic_id") else value


def assignment_bytes(partitions: dict[str, list[int]]) -> bytes:
    """A ConsumerProtocolAssignment, version 0."""
    out = struct.pack(">hi", 0, len(partitions))
    for topic, numbers in partitions.items():
        out += struct.pack(">h", len(topic)) + topic.encode()
        out += struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return out + struct.pack(">i", -1)


def subscription_bytes(*topics: str) -> bytes:
    """A ConsumerProtocolSubscription, version 0."""
    out = struct.pack(">hi", 0, len(topics))
    for topic in topics:
        out += struct.pack(">h", len(topic)) + topic.encode()
    return out + struct.pack(">i", -1)


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        (value,) = struct.unpack(form, self.data[:size])
        self.data = self.data[size:]
        return value

    def string(self) -> str | None:
        length = self.number(">h")
        if length < 0:
            return None
        found, self.data = self.data[:length].decode(), self.data[length:]
        return found

    def partitions(self) -> dict[str, list[int]]:
        return {self.string() or "": [self.number(">i") for _ in range(self.number(">i"))]
                for _ in range(self.number(">i"))}


def read_subscription(data: bytes) -> dict[str, Any]:
    """Topics, owned partitions, generation and rack that a member tells the leader."""
    left = _Bytes(data)
    assert left.number(">h") == 3
    topics = [left.string() for _ in range(left.number(">i"))]
    user_data = left.number(">i")
    left.data = left.data[max(user_data, 0):]
    return {"topics": topics, "owned": left.partitions(), "generation": left.number(">i"), "rack": left.string()}


def read_assignment(data: bytes) -> dict[str, list[int]]:
    left = _Bytes(data)
    left.number(">h")
    return left.partitions()


class GroupLoop(Loop):
    """A member of group "g" on a coordinator that is broker 2."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("group_id", "g")
        settings.setdefault("partition_assignment_strategy", "range")
        settings.setdefault("heartbeat_interval_ms", HEARTBEAT_MS)
        settings.setdefault("session_timeout_ms", SESSION_MS)
        settings.setdefault("max_poll_interval_ms", POLL_MS)
        super().__init__(**settings)
        self.calls: list[tuple[str, list[tuple[str, int]]]] = []
        self.member_id = "m1"
        self.generation = 0

    # -- the application

    def subscribe(self, *topics: str, **then: Any) -> None:
        def recorder(name: str) -> Any:
            def callback(consumer: Any, partitions: list[TopicPartition]) -> None:
                self.calls.append((name, [(p.topic, p.partition) for p in partitions]))
                if name in then:
                    then[name](consumer, partitions)
            return callback
        self.consumer.subscribe(list(topics or ("t",)), recorder("assign"), recorder("revoke"), recorder("lost"))
        self.turn()

    def serve(self, turns: int = 2) -> list[int]:
        """A poll(0), whose error code (if any) is returned in a list; then what it posted is taken."""
        found = self.consumer.poll(0)
        self.turn(turns)
        return [] if found is None else [found.error().cause]

    @property
    def state(self) -> str:
        return inside_group.state(self.consumer)

    @property
    def assigned(self) -> list[tuple[str, int]]:
        return sorted((p.topic, p.partition) for p in self.consumer.assignment())

    # -- what is asked

    def sent(self, api: int, node: int | None = None) -> list[dict[str, Any]]:
        found = []
        for request in self.network.requests(api):
            if node is None or request["node"] == node:
                body, left = wire.decode(f"{NAMES[api]}Request", request["version"], request["body"])
                assert left == 0
                found.append({**request, "body": text(body)})
        return found

    def the(self, api: int) -> dict[str, Any]:
        (request,) = self.sent(api)
        return request

    def reply(self, api: int, body: dict[str, Any], turns: int = 2) -> dict[str, Any]:
        """Answers the one request of this kind; returns it."""
        request = self.the(api)
        encoded = wire.encode(f"{NAMES[api]}Response", request["version"], to_wire(body))
        self.network.answer(request["id"], encoded)
        self.turn(turns)
        return request

    # -- the coordinator

    def settle_metadata(self, **changes: Any) -> None:
        for _ in range(3):
            if self.network.requests(METADATA):
                request = self.the(METADATA)
                named = request["body"]["topics"]
                names = None if named is None else [t["name"] for t in named]
                self.answer(request, self.metadata_body(names, **changes))
            self.turn()

    def find_coordinator(self, node: int = 2, error: int = 0) -> None:
        host, port = self.brokers.get(node, ("", -1))
        found = {"key": "g", "node_id": node, "host": host, "port": port, "error_code": error, "error_message": None}
        self.reply(FIND_COORDINATOR, {"coordinators": [found], **{k: v for k, v in found.items() if k != "key"}})

    def begin(self, *topics: str, **then: Any) -> dict[str, Any]:
        """Subscribes, up to the first JoinGroup, which is returned."""
        self.subscribe(*topics, **then)
        self.settle_metadata()
        self.find_coordinator()
        return self.the(JOIN)

    def joined(self, *, leader: str | None = None, members: dict[str, bytes] | None = None,
               protocol: str | None = None, **fields: Any) -> dict[str, Any]:
        """The coordinator completes the join; this member is the only one, and leads, unless said otherwise."""
        self.generation += 1
        request = self.the(JOIN)
        protocols = {p["name"]: p["metadata"] for p in request["body"]["protocols"]}
        protocol = protocol or next(iter(protocols))
        if members is None:
            members = {self.member_id: protocols.get(protocol, b"")} if leader in (None, self.member_id) else {}
        body = {"error_code": 0, "generation_id": self.generation, "protocol_type": "consumer",
                "protocol_name": protocol, "leader": leader or self.member_id, "skip_assignment": False,
                "member_id": self.member_id, "members": [
                    {"member_id": name, "group_instance_id": None, "metadata": data} for name, data in members.items()]}
        body.update(fields)
        return self.reply(JOIN, body)

    def synced(self, partitions: dict[str, list[int]], **fields: Any) -> dict[str, Any]:
        body = {"error_code": 0, "protocol_type": "consumer", "protocol_name": None,
                "assignment": assignment_bytes(partitions)}
        body.update(fields)
        return self.reply(SYNC, body)

    def refuse(self, api: int, error: int) -> dict[str, Any]:
        """Ends the request with an error code and nothing else."""
        body: dict[str, Any] = {"error_code": error}
        if api == JOIN:
            body.update(generation_id=-1, protocol_type=None, protocol_name=None, leader="", member_id="", members=[],
                        skip_assignment=False)
        elif api == SYNC:
            body.update(protocol_type=None, protocol_name=None, assignment=b"")
        elif api == LEAVE:
            body.update(members=[])
        return self.reply(api, body)

    def heartbeat(self, error: int = 0) -> None:
        """The next heartbeat is due, sent, and answered."""
        self.advance(HEARTBEAT_MS)
        self.settle_metadata()
        self.refuse(HEARTBEAT, error)

    def commits(self) -> list[tuple[str, int, int]]:
        """Offsets of the one OffsetCommit in flight, which is answered well."""
        request = self.the(OFFSET_COMMIT)
        topics = request["body"]["topics"]
        names = {topic.topic_id: name for name, topic in self.topics.items()}
        self.reply(OFFSET_COMMIT, {"topics": [
            {"name": t["name"], "topic_id": t["topic_id"], "partitions": [
                {"partition_index": p["partition_index"], "error_code": 0} for p in t["partitions"]]} for t in topics]})
        return [(names[t["topic_id"]], p["partition_index"], p["committed_offset"]) for t in topics
                for p in t["partitions"]]

    def answer_committed(self, offset: int = -1) -> None:
        """All that OffsetFetch asks for is committed at this offset; -1: nothing is."""
        for request in self.sent(OFFSET_FETCH):
            encoded = wire.encode("OffsetFetchResponse", request["version"], to_wire({"groups": [
                {"group_id": "g", "error_code": 0, "topics": [
                    {"name": t["name"], "topic_id": t["topic_id"], "partitions": [
                        {"partition_index": p, "committed_offset": offset, "committed_leader_epoch": -1, "metadata": "",
                         "error_code": 0} for p in t["partition_indexes"]]} for t in group["topics"]]}
                for group in request["body"]["groups"]]}))
            self.network.answer(request["id"], encoded)
            self.turn()

    def stable(self, partitions: dict[str, list[int]] | None = None, *topics: str, **then: Any) -> None:
        """From nothing to STABLE as the group's only member."""
        self.begin(*topics, **then)
        self.joined()
        self.synced({"t": [0, 1, 2]} if partitions is None else partitions)
        self.serve()
        self.answer_committed()
        assert self.state == "STABLE"

    def refresh(self) -> None:
        """The topics' metadata arrives again."""
        for _ in range(REFRESH_MS // HEARTBEAT_MS + 1):
            self.advance(HEARTBEAT_MS)
            if self.sent(HEARTBEAT):
                self.refuse(HEARTBEAT, 0)
            if self.sent(METADATA):
                break
        self.settle_metadata()

    def read(self, partition: int, count: int) -> None:
        """So many records of a partition, from offset 0, are returned to the application."""
        self.consumer.seek(TopicPartition("t", partition, 0))
        self.turn(2)
        for request in self.sent(FETCH):
            if ("t", partition) in self.asked(request):
                self.fetched(request, {partition: {"records": records(0, count)}}, turns=3)
        assert [m.offset() for m in self.consumer.consume(count, 0)] == list(range(count))
