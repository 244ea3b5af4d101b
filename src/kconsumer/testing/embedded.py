"""Owns: EmbeddedCluster, Kafka brokers inside this process, for tests without Java.

Threads: one at a time; librdkafka runs the brokers on its threads. Never: used for benchmarks: it is slow.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from kconsumer.testing import _records
from kconsumer.testing._errors import ClusterError
from kconsumer.testing._records import Record

if TYPE_CHECKING:
    from kconsumer._core.librdkafka.mock_cluster import MockCluster

_BUNDLES = ("confluent_kafka.libs/librdkafka-*.so*", "confluent_kafka.libs/librdkafka.so*",
            "confluent_kafka/.dylibs/librdkafka*.dylib")
_ALL = -1
_PRODUCE = 0  # the API key
# JoinGroup, Heartbeat, LeaveGroup, SyncGroup: the mock offers flexible versions, but reads them as inflexible ones.
_READABLE = {11: 5, 12: 3, 13: 1, 14: 3}


class Request(NamedTuple):
    """A request to a broker: broker id, API key, time (µs, librdkafka's clock)."""

    broker: int
    api_key: int
    timestamp_us: int


def librdkafka_path() -> str:
    """Return the path of the librdkafka in the confluent-kafka wheel.

    Raises ImportError with the ``[testing]`` extra's name if it is missing.
    """
    spec = importlib.util.find_spec("confluent_kafka")
    for place in spec.submodule_search_locations or [] if spec else []:
        for pattern in _BUNDLES:
            for found in sorted(Path(place).parent.glob(pattern)):
                return str(found)
    state = "is installed without its bundled librdkafka" if spec else "is not installed"
    raise ImportError(
        f"EmbeddedCluster needs the librdkafka of confluent-kafka's wheel, and confluent-kafka {state}: "
        "pip install 'kconsumer[testing]'"
    )


class EmbeddedCluster:
    """Kafka brokers in this process: a context manager, ready in milliseconds.

    It is librdkafka's mock cluster. It supports consumers, producers and groups (classic and KIP-848), but it is not a
    full Kafka: no fetch sessions, no compaction, no security; all data are in memory. **It keeps about 5 MiB per
    partition and silently drops older records**: after larger loads, check with watermarks() that the low ones are
    still 0. Brokers have the ids 1 … ``brokers``. Requests create missing topics (4 partitions) for clients that
    allow it.

    Args:
        brokers: number of brokers.
        racks: the rack of each.

    Operations raise ClusterError (a RuntimeError) if librdkafka refuses them, and RuntimeError on a stopped cluster or
    in a forked child. start() raises ImportError without confluent-kafka (the ``[testing]`` extra).
    """

    def __init__(self, brokers: int = 1, racks: Sequence[str] | None = None) -> None:
        if brokers < 1:
            raise ValueError(f"brokers must be at least 1, not {brokers}")
        if racks is not None and len(racks) != brokers:
            raise ValueError(f"expected one rack per broker: {len(racks)} racks for {brokers} brokers")
        self._count = brokers
        self._racks = list(racks or [])
        self._mock: MockCluster | None = None
        self._fails_produce = False  # an error was pushed

    # Life

    def __enter__(self) -> EmbeddedCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the brokers. Does nothing to a started cluster."""
        if self._mock is not None:
            return
        from kconsumer._core.librdkafka.mock_cluster import MockCluster

        self._mock = MockCluster(librdkafka_path(), self._count)
        for api, highest in _READABLE.items():
            self._mock.set_api_version(api, 0, highest)
        for broker, rack in enumerate(self._racks, 1):
            self.set_rack(broker, rack)

    def stop(self) -> None:
        """Close every connection and drop all records. Does nothing to a stopped cluster."""
        if self._mock is not None:
            self._mock.close()
            self._mock = None

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, comma-separated."""
        return self._core.bootstrap_servers()

    # Topics and records

    def create_topic(self, name: str, partitions: int = 1, replication: int | None = None) -> None:
        """Create a topic.

        ``replication`` defaults to 3, or the number of brokers if lower.
        """
        replicas = min(3, self._count) if replication is None else replication
        if partitions < 1 or not 1 <= replicas <= self._count:
            raise ValueError(f"expected at least 1 partition and 1 to {self._count} replicas, not {partitions} and "
                             f"{replicas}")
        code = self._core.topic_create(name, partitions, replicas)
        self._check(f"create topic {name}", code)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records."""
        self._check(f"delete topic {name}", self._core.topic_delete(name))

    def produce(
        self,
        topic: str,
        records: Iterable[Record],
        config: Mapping[str, Any] | None = None,
        timeout_s: float = 60.0,
    ) -> list[tuple[int, int]]:
        """Write records with confluent_kafka's producer and wait for all acknowledgements.

        A record is its value, a (key, value) pair, or a mapping with any of ``key``, ``value``, ``headers``,
        ``partition`` and ``timestamp`` (ms). ``config`` has producer properties. Returns the (partition, offset) of
        each record in order.
        """
        # An idempotent producer keeps the order of repeated requests, but waits half a second before it begins. The
        # mock does not remove its duplicates.
        own = {"enable.idempotence": self._fails_produce, **(config or {})}
        return _records.produce(self.bootstrap_servers, topic, records, own, timeout_s)

    def watermarks(self, topic: str, timeout_s: float = 10.0) -> dict[int, tuple[int, int]]:
        """Return the low and high watermark of each partition.

        A low one above 0: records were dropped.
        """
        return _records.watermarks(self.bootstrap_servers, topic, timeout_s)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Drop a partition's records before an offset, the new low watermark."""
        action = f"delete records of {topic} [{partition}] before {before_offset}"
        self._check(action, self._core.delete_records(topic, partition, before_offset))

    # Faults. Error codes are Kafka's protocol codes; -195 (librdkafka's _TRANSPORT) closes the connection instead.

    def push_request_errors(
        self, api_key: int, errors: Sequence[int], broker: int | None = None, rtt_ms: int = 0
    ) -> None:
        """Answer the next requests of a kind with these errors, one each.

        0 means no error.

        With ``broker`` only requests to that broker count, and each answer is ``rtt_ms`` milliseconds late.
        """
        if broker is None and rtt_ms:
            raise ValueError("rtt_ms needs a broker")
        self._fails_produce |= api_key == _PRODUCE
        for error in errors:
            if broker is None:
                self._core.push_request_error(api_key, error)
            else:
                code = self._core.push_broker_error(broker, api_key, error, rtt_ms)
                self._check(f"push an error for broker {broker}", code)

    def push_partition_errors(self, topic: str, partition: int, api_key: int, errors: Sequence[int]) -> None:
        """Answer the next requests for one partition with these errors, one each."""
        self._fails_produce |= api_key == _PRODUCE
        for error in errors:
            code = self._core.push_partition_error(topic, partition, api_key, error)
            self._check(f"push an error for {topic} [{partition}]", code)

    def clear_request_errors(self, api_key: int) -> None:
        """Discard pushed errors of all brokers that are not answered yet."""
        self._core.clear_request_errors(api_key)

    def set_topic_error(self, topic: str, error: int) -> None:
        """Answer Metadata requests for a topic with this error, until it is set to 0."""
        self._core.topic_set_error(topic, error)

    def broker_down(self, broker: int | None = None) -> None:
        """Close the connections of a broker (None: all) and refuse new ones.

        Leaders do not move.
        """
        self._check("take the broker down", self._core.broker_down(_ALL if broker is None else broker))

    def broker_up(self, broker: int | None = None) -> None:
        """Accept connections to a broker (None: all) again, on the same port."""
        self._check("bring the broker up", self._core.broker_up(_ALL if broker is None else broker))

    def add_broker(self, broker: int) -> None:
        """Add a broker with this id. Partitions are distributed again."""
        self._check(f"add broker {broker}", self._core.broker_add(broker))

    def decommission(self, broker: int) -> None:
        """Remove a broker permanently. Its partitions move to others."""
        self._check(f"remove broker {broker}", self._core.broker_decommission(broker))

    def set_rtt(self, rtt_ms: int, broker: int | None = None) -> None:
        """Delay every response of a broker (None: all) by this many milliseconds."""
        self._check("set the RTT", self._core.broker_rtt(_ALL if broker is None else broker, rtt_ms))

    def set_api_version(self, api_key: int, lowest: int, highest: int) -> None:
        """Offer only these versions of an API; -1, -1: none."""
        self._check(f"set the versions of API {api_key}", self._core.set_api_version(api_key, lowest, highest))

    # Leaders, replicas, coordinators

    def set_leader(self, topic: str, partition: int, broker: int | None) -> None:
        """Move a partition to another leader; None: no leader."""
        code = self._core.set_leader(topic, partition, -1 if broker is None else broker)
        self._check(f"move {topic} [{partition}]", code)

    def push_leader_response(self, topic: str, partition: int, leader: int, leader_epoch: int) -> None:
        """Report this leader and epoch in a partition's next Metadata response."""
        code = self._core.push_leader_response(topic, partition, leader, leader_epoch)
        self._check(f"push a leader of {topic} [{partition}]", code)

    def set_follower(self, topic: str, partition: int, broker: int | None) -> None:
        """Set the replica that consumers are redirected to (KIP-392); None: the leader."""
        code = self._core.set_follower(topic, partition, -1 if broker is None else broker)
        self._check(f"set the follower of {topic} [{partition}]", code)

    def set_follower_watermarks(self, topic: str, partition: int, low: int, high: int) -> None:
        """Set the watermarks of that replica; -1 means the leader's."""
        code = self._core.set_follower_watermarks(topic, partition, low, high)
        self._check(f"set the follower's watermarks of {topic} [{partition}]", code)

    def set_rack(self, broker: int, rack: str) -> None:
        """Set the rack of a broker."""
        self._check(f"set the rack of broker {broker}", self._core.broker_rack(broker, rack))

    def set_coordinator(self, group: str, broker: int) -> None:
        """Make a broker the coordinator of a group."""
        self._check(f"set the coordinator of group {group}", self._core.coordinator_set("group", group, broker))

    def set_transaction_coordinator(self, transactional_id: str, broker: int) -> None:
        """Make a broker the coordinator of a transactional id."""
        code = self._core.coordinator_set("transaction", transactional_id, broker)
        self._check(f"set the coordinator of transactional id {transactional_id}", code)

    def set_group_timing(
        self,
        initial_rebalance_delay_ms: int = -1,
        session_timeout_ms: int = -1,
        heartbeat_interval_ms: int = -1,
    ) -> None:
        """Set the first rebalance's delay, and KIP-848's session and heartbeat times.

        In milliseconds; -1 does not change a value (initially 3000, 30000, 3000).
        """
        self._core.group_timing(initial_rebalance_delay_ms, session_timeout_ms, heartbeat_interval_ms)

    # Requests of clients

    def track_requests(self, on: bool = True) -> None:
        """Start to record requests, without earlier ones; False: stop."""
        self._core.track_requests(on)

    def requests(self) -> list[Request]:
        """Return the requests since track_requests(), in order."""
        return [Request(*found) for found in self._core.requests()]

    # Internal

    @property
    def _core(self) -> MockCluster:
        if self._mock is None:
            raise ClusterError("the embedded cluster is not started")
        return self._mock

    def _check(self, what: str, code: int) -> None:
        if code:
            raise ClusterError(f"cannot {what}: {self._core.error_text(code)} ({code})")
