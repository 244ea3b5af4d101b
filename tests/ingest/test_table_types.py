"""Types that Delta and Iceberg lack: stored without loss in another type, or refused before a table exists."""

from __future__ import annotations

import decimal
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from test_iceberg import catalog, loaded
from test_values import InProcess

from kconsumer.errors import ConfigurationError
from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.errors import IngestError
from kconsumer.testing import EmbeddedCluster

UNSIGNED = {"uint32": (13, 2**32 - 1), "uint64": (4, 2**64 - 1), "fixed32": (7, 2**32 - 1), "fixed64": (6, 2**64 - 1)}
STORED = {"uint32": pa.int64(), "uint64": pa.decimal128(20, 0), "fixed32": pa.int64(), "fixed64": pa.decimal128(20, 0)}


def unsigned_message() -> tuple[bytes, bytes]:
    """Return the descriptors of a message with the largest values, single and in a list, and its bytes."""
    file = descriptor_pb2.FileDescriptorProto(name="u.proto", syntax="proto3")
    made = file.message_type.add(name="M")
    for number, (name, (kind, _)) in enumerate(UNSIGNED.items(), 1):
        made.field.add(name=name, number=number, type=kind, label=1)
        made.field.add(name=f"{name}s", number=number + 10, type=kind, label=3)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))()
    for name, (_, value) in UNSIGNED.items():
        setattr(message, name, value)
        getattr(message, f"{name}s").extend([0, value])
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), message.SerializeToString()


def table_of(folder: Path, format: str, record: bytes, **more: Any) -> pa.Table:
    """Return the table that a job makes of one record."""
    if format == "iceberg":
        more |= {"table": "space.rows", "catalog": catalog(folder)}
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        cluster.produce("t", [{"value": record}])
        options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(folder),
                                format=format, metadata=(), bad_records="fail", **more)
        with Ingestion(options, InProcess()) as run:
            run.run()
    return loaded(folder).scan().to_arrow() if format == "iceberg" else pl.read_delta(str(folder)).to_arrow()


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_unsigned_integers_of_protobuf_are_stored(tmp_path: Path, format: str):
    descriptors, value = unsigned_message()
    made = table_of(tmp_path, format, value, value="protobuf", descriptors=descriptors, message="M")
    for name, (_, largest) in UNSIGNED.items():
        assert made.schema.field(name).type == STORED[name]
        assert made[name].to_pylist() == [decimal.Decimal(largest)]
        assert made[f"{name}s"].to_pylist() == [[decimal.Decimal(0), decimal.Decimal(largest)]]


def avro(type_: Any, value: Any) -> tuple[str, bytes]:
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}, {"name": "n", "type": "int"}]}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), {"f": value, "n": 1})
    return json.dumps(schema), written.getvalue()


def test_fixed_of_avro_is_binary_in_delta(tmp_path: Path):
    schema, value = avro({"type": "fixed", "name": "F", "size": 16}, bytes(range(16)))
    made = table_of(tmp_path, "delta", value, value="avro", schema=schema)
    assert made["f"].to_pylist() == [bytes(range(16))]


def test_times_in_milliseconds_are_stored_in_iceberg(tmp_path: Path):
    schema, value = avro({"type": "int", "logicalType": "time-millis"}, 1500)
    made = table_of(tmp_path, "iceberg", value, value="avro", schema=schema)
    assert made["f"].type == pa.time64("us") and made["f"].cast(pa.int64()).to_pylist() == [1_500_000]


@pytest.mark.parametrize("type_", ["timestamp-nanos", "local-timestamp-nanos"])
def test_nanoseconds_are_refused_before_there_is_a_delta_table(tmp_path: Path, type_: str):
    schema, value = avro({"type": "long", "logicalType": type_}, 1)
    with pytest.raises((IngestError, ConfigurationError), match=r"Delta has no type for column f \(timestamp\[ns"):
        table_of(tmp_path, "delta", value, value="avro", schema=schema)
    assert not (tmp_path / "_delta_log").exists()
