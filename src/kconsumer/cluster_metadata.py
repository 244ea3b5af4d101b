"""What list_topics() returns, in the form of confluent_kafka.admin's classes.

Owns: ClusterMetadata, BrokerMetadata, TopicMetadata, PartitionMetadata. Threads: any (plain data, not locked).
Never: asks a broker.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kconsumer.errors import KafkaError

__all__ = ["BrokerMetadata", "ClusterMetadata", "PartitionMetadata", "TopicMetadata"]


@dataclass(repr=False, eq=False)
class BrokerMetadata:
    """A broker."""

    id: int = -1  #: broker id
    host: str | None = None  #: advertised host name
    port: int = -1  #: advertised port

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


@dataclass(repr=False, eq=False)
class PartitionMetadata:
    """A partition. Broker ids named here may be missing from ``ClusterMetadata.brokers`` while brokers come and go."""

    id: int = -1  #: partition number
    leader: int = -1  #: id of the leading broker; -1 if there is none
    replicas: list[int] = field(default_factory=list)  #: ids of the brokers that hold a replica
    isrs: list[int] = field(default_factory=list)  #: ids of the brokers whose replica is in sync
    error: KafkaError | None = None  #: the partition's error, or None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"PartitionMetadata({self.id}{error})"

    def __str__(self) -> str:
        return str(self.id)


@dataclass(repr=False, eq=False)
class TopicMetadata:
    """A topic and its partitions."""

    topic: str | None = None  #: topic name
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)  #: by partition number
    error: KafkaError | None = None  #: the topic's error, or None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions{error})"

    def __str__(self) -> str:
        return str(self.topic)


@dataclass(repr=False, eq=False)
class ClusterMetadata:
    """The cluster: its brokers and topics as one broker saw them."""

    cluster_id: str | None = None  #: id of the cluster, None if the broker is too old to tell
    controller_id: int = -1  #: id of the controller, or -1
    brokers: dict[int, BrokerMetadata] = field(default_factory=dict)  #: by broker id
    topics: dict[str, TopicMetadata] = field(default_factory=dict)  #: by topic name
    orig_broker_id: int = -1  #: the broker that answered
    orig_broker_name: str | None = None  #: its address

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"

    def __str__(self) -> str:
        return str(self.cluster_id)
