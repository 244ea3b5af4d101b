"""The data that every guide of the documentation reads: topics with flights, on an embedded or another cluster.

Owns: Demo, which has the brokers and the registry, and the topics of a cluster that it did not start. Threads: one at a
time. Never: writes to a topic that exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType

from kconsumer.testing import _records
from kconsumer.testing._errors import ClusterError
from kconsumer.testing._flights import (
    AVRO,
    AVRO_ID,
    COUNT,
    ENCODINGS,
    PARTITIONS,
    PROTOBUF,
    PROTOBUF_ID,
    PROTOBUF_SERIALIZED,
    records,
)
from kconsumer.testing._front_door import FrontDoor
from kconsumer.testing._registry import DemoRegistry, Registered
from kconsumer.testing.embedded import EmbeddedCluster

__all__ = ["COUNT", "PARTITIONS", "TOPICS", "Demo"]

TOPICS = tuple(ENCODINGS)
_BROKERS = 3
_TIMEOUT_S = 60.0
_LINGER_MS = 200  # so that each fetched batch has many records
_SCHEMAS = [Registered(AVRO_ID, "flights-avro-value", "AVRO", AVRO),
            Registered(PROTOBUF_ID, "flights-protobuf-value", "PROTOBUF", PROTOBUF, PROTOBUF_SERIALIZED)]


class Demo:
    """A context manager with the topics ``flights``, ``flights-avro`` and ``flights-protobuf``, and their registry.

    Args:
        properties: of confluent_kafka's clients for a running cluster, which keeps the topics; None: an embedded
            cluster, which loses them at the end.
        port: port of the embedded cluster; 0: a free one.
        registry_port: port of the registry; 0: a free one.

    Entering raises ClusterError if a topic exists or cannot be written, OSError if a port is in use, and ImportError
    without confluent-kafka (the ``[testing]`` extra).
    """

    def __init__(self, properties: Mapping[str, str] | None = None, *, port: int = 0, registry_port: int = 0) -> None:
        self._properties = properties
        self._port = port
        self._registry_port = registry_port
        self._stack = ExitStack()
        self.bootstrap_servers = "" if properties is None else properties["bootstrap.servers"]
        self.registry_url = ""
        self.cluster: EmbeddedCluster | None = None

    def __enter__(self) -> Demo:
        with ExitStack() as stack:
            self.registry_url = stack.enter_context(DemoRegistry(_SCHEMAS, self._registry_port)).url
            if self._properties is None:
                self.cluster = stack.enter_context(EmbeddedCluster(_BROKERS))
                self.cluster.set_group_timing(initial_rebalance_delay_ms=0)  # one reader need not wait for others
                servers = self.cluster.bootstrap_servers
                door = stack.enter_context(FrontDoor(self._port, servers.partition(",")[0]))
                self.bootstrap_servers = door.address
                for topic in TOPICS:
                    self.cluster.create_topic(topic, PARTITIONS)
                given: Mapping[str, str] = {}
            else:
                servers, given = self.bootstrap_servers, self._properties
                _create(self._properties)
            for topic, encode in ENCODINGS.items():
                _records.produce(servers, topic, records(encode), {"linger.ms": _LINGER_MS, **given}, _TIMEOUT_S)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._stack.close()


def _create(properties: Mapping[str, str]) -> None:
    """Create the topics; their records are old, so they must not expire."""
    admin, failed = _records.confluent("confluent_kafka.admin"), _records.confluent("confluent_kafka").KafkaException
    try:
        client = admin.AdminClient(dict(properties))
        there = client.list_topics(timeout=_TIMEOUT_S).topics
        existing = [topic for topic in TOPICS if topic in there]
        if existing:
            raise ClusterError(f"cannot fill topics that exist: {', '.join(existing)}: delete them, or use another "
                               "cluster")
        made = client.create_topics([admin.NewTopic(topic, PARTITIONS, -1, config={"retention.ms": "-1"})
                                     for topic in TOPICS])
        for future in made.values():
            future.result(_TIMEOUT_S)
    except failed as error:
        raise ClusterError(f"cannot create the topics: {error}") from error
