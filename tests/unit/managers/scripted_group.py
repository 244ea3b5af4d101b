"""The managers of a group's offsets, stepped by hand against a scripted coordinator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stepped_loop import from_wire, to_wire
from tests.core.inside import OffsetsHarness

from tests.core import protocol as wire

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
NAMES = {OFFSET_COMMIT: "OffsetCommit", OFFSET_FETCH: "OffsetFetch", FIND_COORDINATOR: "FindCoordinator"}
COORDINATOR_CHANNEL = 2

UNKNOWN_TOPIC, REQUEST_TIMED_OUT, METADATA_TOO_LARGE, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 3, 7, 12, 14, 15, 16
ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE_IN_PROGRESS, INVALID_SIZE = 22, 25, 27, 28
TOPIC_DENIED, GROUP_DENIED, GROUP_NOT_FOUND, FENCED_INSTANCE, UNSTABLE = 29, 30, 69, 82, 88
UNKNOWN_TOPIC_ID, STALE_EPOCH = 100, 113
LOST, TIMED_OUT, WAIT_COORD, NO_OFFSET, DESTROY = -195, -185, -180, -168, -197
UNSUPPORTED, ASSIGNMENT_LOST = -165, -142
INVALID, STORED = -1001, -1000
NOT_ASSIGNED = -1


class Group(OffsetsHarness):
    """Broker 1 is the coordinator, and known as one, unless a test asks for another beginning."""

    def __init__(self, *, found: bool = True, **settings: Any) -> None:
        super().__init__(**settings)
        self.know_brokers({1: ("one", 9092), 2: ("two", 9092)})
        self.know_topic("t", 8, 0x11)
        self.know_topic("u", 2, 0x22)
        if found:
            # A question of no partitions makes the coordinator known.
            ticket = self.committed()
            self.turn()
            self.find()
            self.answer_fetch()
            assert ticket.code == 0

    # -- requests

    def requests(self, api: int) -> list[dict[str, Any]]:
        """The requests sent and unanswered, their bodies decoded."""
        found = []
        for request in self.network.requests(api):
            body, left = wire.decode(f"{NAMES[api]}Request", request["version"], request["body"])
            assert left == 0
            found.append({**request, "body": from_wire(body)})
        return found

    def one(self, api: int) -> dict[str, Any]:
        (request,) = self.requests(api)
        return request

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.turn()
        self.turn()

    def answer(self, request: dict[str, Any], body: dict[str, Any]) -> None:
        encoded = wire.encode(f"{NAMES[request['api']]}Response", request["version"], to_wire(body))
        self.network.answer(request["id"], encoded)
        self.turn()
        self.turn()

    def fail(self, request: dict[str, Any], code: int = LOST) -> None:
        self.network.fail(request["id"], code)
        self.turn()
        self.turn()

    # -- FindCoordinator

    def find(self, node: int = 1, error: int = 0, host: str = "one", port: int = 9092) -> dict[str, Any]:
        """Answers the one FindCoordinator in flight."""
        request = self.one(FIND_COORDINATOR)
        found = {"node_id": node, "host": host, "port": port, "error_code": error, "error_message": None}
        if request["version"] < 4:
            self.answer(request, found)
        else:
            self.answer(request, {"coordinators": [{"key": "g", **found}]})
        return request

    # -- OffsetCommit

    def asked(self, request: dict[str, Any] | None = None) -> dict[tuple[str, int], int]:
        """{(topic, partition): offset} of an OffsetCommit."""
        request = request or self.one(OFFSET_COMMIT)
        return {(self.topic_of(t), p["partition_index"]): p["committed_offset"]
                for t in request["body"]["topics"] for p in t["partitions"]}

    def topic_of(self, entry: dict[str, Any]) -> str:
        return entry.get("name") or {0x11: "t", 0x22: "u"}[int.from_bytes(entry["topic_id"], "big")]

    def answer_commit(self, errors: int | dict[int, int] = 0, *, leave_out: Iterable[int] = ()) -> dict[str, Any]:
        """Answers the one OffsetCommit in flight: one error for all partitions, or by partition (0 where unnamed)."""
        request = self.one(OFFSET_COMMIT)
        self.answer(request, {"topics": [
            {"name": t["name"], "topic_id": t["topic_id"], "partitions": [
                {"partition_index": p["partition_index"],
                 "error_code": errors if isinstance(errors, int) else errors.get(p["partition_index"], 0)}
                for p in t["partitions"] if p["partition_index"] not in leave_out]}
            for t in request["body"]["topics"]]})
        return request

    # -- OffsetFetch

    def questions(self, request: dict[str, Any]) -> list[tuple[str, int]]:
        """The partitions of an OffsetFetch."""
        topics = request["body"]["topics"]
        if request["version"] >= 8:
            (group,) = request["body"]["groups"]
            assert group["group_id"] == "g"
            topics = group["topics"]
        return [(self.topic_of(t), p) for t in topics for p in t["partition_indexes"]]

    def answer_fetch(self, offsets: dict[int, Any] | None = None, *, error: int = 0,
                     request: dict[str, Any] | None = None) -> dict[str, Any]:
        """Answers an OffsetFetch (the one in flight). `offsets` gives by partition an offset, or fields of the answer;
        what it does not name has no offset. `error` is of the whole group."""
        request = request or self.one(OFFSET_FETCH)
        asked = request["body"]["topics"] if request["version"] < 8 else request["body"]["groups"][0]["topics"]
        topics = []
        for topic in asked:
            partitions = []
            for number in topic["partition_indexes"]:
                given = (offsets or {}).get(number, -1)
                fields = {"committed_offset": given} if isinstance(given, int) else given
                partitions.append({"partition_index": number, "committed_offset": -1, "committed_leader_epoch": -1,
                                   "metadata": "", "error_code": 0, **fields})
            topics.append({**{key: topic[key] for key in ("name", "topic_id") if key in topic},
                           "partitions": partitions})
        if request["version"] < 8:
            self.answer(request, {"topics": [] if error else topics, "error_code": error})
        else:
            self.answer(request, {"groups": [
                {"group_id": "g", "topics": [] if error else topics, "error_code": error}]})
        return request


def joined(**settings: Any) -> Group:
    """A member of a classic group that owns t 0 to 3."""
    group = Group(**settings)
    group.be_member("m", 5)
    group.assign(*[("t", n, 0) for n in range(4)])
    group.turn()
    return group


def retry(group: Group, node: int = 1) -> None:
    """The backoff is over, and the coordinator is found where it has to be."""
    group.advance(1300)
    if group.requests(FIND_COORDINATOR):
        group.find(node)
