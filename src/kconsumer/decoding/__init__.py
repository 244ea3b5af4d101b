"""Typed columns: the core decodes the values of records directly into Arrow.

``batch.decode(value=Json({"id": "int64", "carrier": "string"}))`` for records, ``decoder.decode(values)`` for any
binary values. See docs/columns.md.
"""

from __future__ import annotations

from kconsumer._core.values.values import DecodedValues, RowError
from kconsumer.decoding.avro_values import Avro
from kconsumer.decoding.decoder import Decoder
from kconsumer.decoding.json_values import Json
from kconsumer.decoding.proto_values import Protobuf
from kconsumer.decoding.registry import RegistryError, SchemaRegistry

__all__ = ["Avro", "DecodedValues", "Decoder", "Json", "Protobuf", "RegistryError", "RowError", "SchemaRegistry"]
