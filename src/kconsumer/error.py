"""Makes the errors of deserialization available under confluent_kafka's module name.

Owns: nothing (imports names from errors). Threads: any. Never: defines an error.
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
