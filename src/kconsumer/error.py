"""The errors of deserialization under the module name that confluent_kafka has for them.

Owns: nothing (names from errors). Threads: any. Never: defines an error.
"""

from kconsumer.errors import (
    ConsumeError,
    KafkaError,
    KafkaException,
    KeyDeserializationError,
    SerializationError,
    ValueDeserializationError,
)

__all__ = [
    "ConsumeError",
    "KafkaError",
    "KafkaException",
    "KeyDeserializationError",
    "SerializationError",
    "ValueDeserializationError",
]
