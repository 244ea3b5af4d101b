"""The result of list_topics(), compatible with confluent_kafka.admin's classes.

Owns: ClusterMetadata, BrokerMetadata, TopicMetadata, PartitionMetadata. Threads: any (plain data, not locked).
Never: sends requests.
"""

from __future__ import annotations

from kconsumer.errors import KafkaError

__all__ = ["BrokerMetadata", "ClusterMetadata", "PartitionMetadata", "TopicMetadata"]


class BrokerMetadata:
    """A broker."""

    def __init__(self, id: int = -1, host: str | None = None, port: int = -1) -> None:
        self.id = id  #: broker id
        self.host = host  #: advertised host name
        self.port = port  #: advertised port

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


class PartitionMetadata:
    """A partition.

    Its brokers may be missing from ``ClusterMetadata.brokers`` while brokers start and stop.
    """

    def __init__(
        self,
        id: int = -1,
        leader: int = -1,
        replicas: list[int] | None = None,
        isrs: list[int] | None = None,
        error: KafkaError | None = None,
    ) -> None:
        self.id = id  #: partition number
        self.leader = leader  #: id of the leading broker; -1 without a leader
        self.replicas: list[int] = [] if replicas is None else replicas  #: ids of brokers with a replica
        self.isrs: list[int] = [] if isrs is None else isrs  #: ids of brokers with an in-sync replica
        self.error = error  #: the partition's error, or None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"PartitionMetadata({self.id}{error})"

    def __str__(self) -> str:
        return str(self.id)


class TopicMetadata:
    """A topic and its partitions."""

    def __init__(
        self,
        topic: str | None = None,
        partitions: dict[int, PartitionMetadata] | None = None,
        error: KafkaError | None = None,
    ) -> None:
        self.topic = topic  #: topic name
        self.partitions: dict[int, PartitionMetadata] = {} if partitions is None else partitions  #: by partition number
        self.error = error  #: the topic's error, or None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions{error})"

    def __str__(self) -> str:
        return str(self.topic)


class ClusterMetadata:
    """The brokers and topics of the cluster, as one broker reports them."""

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        controller_id: int = -1,
        brokers: dict[int, BrokerMetadata] | None = None,
        topics: dict[str, TopicMetadata] | None = None,
        orig_broker_id: int = -1,
        orig_broker_name: str | None = None,
    ) -> None:
        self.cluster_id = cluster_id  #: id of the cluster; None if the broker is too old to report it
        self.controller_id = controller_id  #: id of the controller, or -1
        self.brokers: dict[int, BrokerMetadata] = {} if brokers is None else brokers  #: by broker id
        self.topics: dict[str, TopicMetadata] = {} if topics is None else topics  #: by topic name
        self.orig_broker_id = orig_broker_id  #: the broker that answered
        self.orig_broker_name = orig_broker_name  #: its address

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"

    def __str__(self) -> str:
        return str(self.cluster_id)
