"""Kafka clusters for tests: EmbeddedCluster (in this process, no Java) and KafkaCluster (a real Kafka).

Both are context managers with create_topic() and produce(). See each class.
"""

from kconsumer.testing._artifacts import kafka_jars
from kconsumer.testing._errors import ClusterError, MissingToolError
from kconsumer.testing.embedded import EmbeddedCluster
from kconsumer.testing.kafka import KafkaCluster

__all__ = ["ClusterError", "EmbeddedCluster", "KafkaCluster", "MissingToolError", "kafka_jars"]
