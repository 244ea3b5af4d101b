"""A member under group.protocol=consumer whose loop a test steps by hand; its coordinator answers by script."""

from __future__ import annotations

import uuid
from typing import Any

import stepped_loop
from stepped_loop import METADATA, Loop, Topic

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_CONFIGS, HEARTBEAT = 8, 9, 10, 32, 68
COORDINATOR_CHANNEL = 2
INTERVAL_MS = 5000
SUBSCRIPTION = {"subscribed_topic_names", "subscribed_topic_regex"}
ALL_FIELDS = SUBSCRIPTION | {"rebalance_timeout_ms", "topic_partitions"}

stepped_loop.NAMES.update({OFFSET_COMMIT: "OffsetCommit", OFFSET_FETCH: "OffsetFetch",
                           FIND_COORDINATOR: "FindCoordinator", DESCRIBE_CONFIGS: "DescribeConfigs",
                           HEARTBEAT: "ConsumerGroupHeartbeat"})

T, U, V = (uuid.UUID(int=n).bytes for n in (0x11, 0x33, 0x55))


class Member(Loop):
    """``calls`` records the callbacks. Brokers 1 and 2 exist; 1 coordinates until a test says otherwise."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(group_id="g", group_protocol="consumer", **settings)
        self.coordinator = 1
        self.topics["u"] = Topic({0: (1, 1), 1: (2, 1)}, U)
        self.calls: list[tuple[str, list[tuple[str, int]]]] = []

    def subscribe(self, *topics: str) -> None:
        def recorder(name: str) -> Any:
            return lambda _, partitions: self.calls.append((name, [(p.topic, p.partition) for p in partitions]))

        self.consumer.subscribe(list(topics), *map(recorder, ("assign", "revoke", "lost")))
        self.turn()

    def settle(self, turns: int = 8) -> None:
        """Answers what is not the test's subject: metadata by name, the coordinator, committed offsets (none)."""
        for _ in range(turns):
            self.turn()
            for request in self.requests(METADATA):
                if not lookups([request]):
                    names = request["body"]["topics"]
                    self.answer(request, self.metadata_body(None if names is None else [t["name"] for t in names]), 0)
            for request in self.requests(FIND_COORDINATOR):
                self.answer(request, self.found(), 0)
            for request in self.requests(OFFSET_FETCH):
                self.answer(request, self.committed(request), 0)
        self.turn()

    def found(self, **fields: Any) -> dict[str, Any]:
        host, port = self.brokers[self.coordinator]
        place = {"node_id": self.coordinator, "host": host, "port": port, "error_code": 0, "error_message": None,
                 **fields}
        return {**place, "coordinators": [{"key": "g", **place}]}

    def committed(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"error_code": 0, "groups": [
            {"group_id": group["group_id"], "error_code": 0, "topics": [
                {"name": topic["name"], "topic_id": topic.get("topic_id", bytes(16)), "partitions": [
                    {"partition_index": p, "committed_offset": -1, "committed_leader_epoch": -1, "metadata": "",
                     "error_code": 0} for p in topic["partition_indexes"]]} for topic in group["topics"] or []]}
            for group in request["body"]["groups"]]}

    def describe(self, value: str | None, **fields: Any) -> None:
        """Answers the one question for the group's session timeout."""
        config = {"name": "consumer.session.timeout.ms", "value": value, "read_only": False, "config_source": 8,
                  "is_sensitive": False, "synonyms": [], "config_type": 3, "documentation": None}
        self.answer(self.one(DESCRIBE_CONFIGS), {"throttle_time_ms": 0, "results": [
            {"error_code": 0, "error_message": None, "resource_type": 32, "resource_name": "g", "configs": [config],
             **fields}]})

    # -- heartbeats

    def beats(self) -> list[dict[str, Any]]:
        return self.requests(HEARTBEAT)

    def beat(self) -> dict[str, Any]:
        """The one heartbeat in flight."""
        return self.one(HEARTBEAT)

    def reply(self, request: dict[str, Any], epoch: int = 1, assignment: dict[bytes, list[int]] | None = None,
              **fields: Any) -> None:
        """Answers a heartbeat; what that makes due is settled, as far as no lookup of topic ids is in it."""
        given = None if assignment is None else {
            "topic_partitions": [{"topic_id": i, "partitions": p} for i, p in assignment.items()]}
        self.answer(request, {
            "throttle_time_ms": 0, "error_code": 0, "error_message": None, "member_id": request["body"]["member_id"],
            "member_epoch": epoch, "heartbeat_interval_ms": INTERVAL_MS, "assignment": given, **fields})
        self.settle()

    def refuse(self, request: dict[str, Any], code: int, message: str | None = "refused") -> None:
        self.reply(request, 0, error_code=code, error_message=message, heartbeat_interval_ms=0)

    def join(self, *topics: str, assignment: dict[bytes, list[int]] | None = None, epoch: int = 1) -> None:
        """Subscribed, joined, its first assignment reconciled and acknowledged."""
        self.subscribe(*(topics or ("t",)))
        self.settle()
        self.reply(self.beat(), epoch=epoch, assignment={} if assignment is None else assignment)
        self.reconcile()
        self.acknowledge(epoch)

    def reconcile(self) -> None:
        """The application takes what the group has for it."""
        self.poll()
        self.settle()

    def acknowledge(self, epoch: int = 1) -> None:
        for request in self.beats():
            self.reply(request, epoch)

    @property
    def assigned(self) -> list[tuple[str, int]]:
        return sorted((p.topic, p.partition) for p in self.consumer.assignment())

    def errors_reported(self) -> list[int]:
        """Codes of the errors that poll() hands out now; a fatal one, which it hands out for ever, once."""
        found: list[int] = []
        while (message := self.poll()) is not None:
            if message.error().fatal() and message.error().cause in found:
                break
            found.append(message.error().cause)
        return found


def carried(request: dict[str, Any]) -> set[str]:
    """Which optional fields a heartbeat carries."""
    body = request["body"]
    return {name for name in ("rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex",
                              "server_assignor", "topic_partitions", "rack_id")
            if body.get(name) is not None and body.get(name) != -1}


def owned(request: dict[str, Any]) -> dict[bytes, list[int]]:
    return {t["topic_id"]: t["partitions"] for t in request["body"]["topic_partitions"]}


def lookups(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those Metadata requests that ask by topic id."""
    return [r for r in requests if r["body"]["topics"] and r["body"]["topics"][0]["name"] is None]


def unresolved(member: Member, ids: list[bytes], error: int = 100) -> dict[str, Any]:
    """The body of a Metadata response that has no names for these topic ids."""
    return member.metadata_body([], topics=[
        {"error_code": error, "name": None, "topic_id": i, "partitions": []} for i in ids])
