"""Types of a column that change: the table widens, holds the values exactly, or the run ends before a commit."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pytest
from one_table import FORMATS, ingest, loaded, options, produce, rows, topic
from test_values import InProcess, _Registry

from kconsumer.decoding import SchemaRegistry
from kconsumer.ingest import options as options_module
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.evolution import EVOLUTIONS, Outcome, exactly, outcome
from kconsumer.testing import EmbeddedCluster

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded


def decimal(precision: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


# The first writer's type and value, the later ones, and the formats whose table has both values.
PROMOTIONS: dict[str, tuple[Any, Any, Any, Any, tuple[str, ...]]] = {
    "int to long": ("int", 1, "long", 2**40, ("iceberg",)),
    "int to long that fits": ("int", 1, "long", -2**31, FORMATS),
    "int to float": ("int", 1, "float", 0.5, ()),
    "int to double": ("int", 1, "double", 0.5, ()),
    "int to double that is whole": ("int", 1, "double", 2.0, FORMATS),
    "long to double": ("long", 1, "double", float("nan"), ()),
    "float to double": ("float", 0.5, "double", 1e300, ("iceberg",)),
    "float to double with more digits": ("float", 0.5, "double", 0.1, ("iceberg",)),
    "float to double that is exact": ("float", 0.5, "double", 0.25, FORMATS),
    "decimal": (decimal(5), Decimal("1.25"), decimal(9), Decimal("1234567.89"), ("iceberg",)),
    "decimal that fits": (decimal(5), Decimal("1.25"), decimal(9), Decimal("-999.99"), FORMATS),
    "string to bytes": ("string", "x", "bytes", b"ff", FORMATS),
    "string to bytes of another encoding": ("string", "x", "bytes", b"\xff", ()),
    "bytes to string": ("bytes", b"x", "string", "ä", FORMATS),
    "string to union": ("string", "x", ["null", "string"], None, FORMATS),
    "int to union": ("int", 1, ["null", "long"], 2**40, ("iceberg",)),
    "in a union": (["null", "int"], None, ["null", "long"], 2**40, ("iceberg",)),
}


def written(type_: Any, value: Any, number: int) -> tuple[dict[str, Any], bytes]:
    """Return a schema with a field of this type, flat and nested, and a framed record of it."""
    schema = {"type": "record", "name": "R", "fields": [
        {"name": "f", "type": type_},
        {"name": "l", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
            {"name": "f", "type": type_}]}}}]}
    made = io.BytesIO()
    fastavro.schemaless_writer(made, fastavro.parse_schema(schema), {"f": value, "l": [{"f": value}]})
    return schema, b"\0" + number.to_bytes(4, "big") + made.getvalue()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> _Registry:
    found = _Registry({})
    monkeypatch.setattr(options_module, "SchemaRegistry", lambda config: SchemaRegistry(found))
    found.get_latest_version = lambda subject, *more: type("V", (), {"schema": found.get_schema(max(found.schemas))})()
    return found


AVRO: dict[str, Any] = {"value": "avro", "schema": None, "registry": {"url": "http://localhost:1"}}


def values(path: Path, kind: str) -> list[Any]:
    found = sorted(rows(path, kind).to_pylist(), key=lambda row: int(row["offset"]))
    assert all(row["bad_record"] is None and row["l"] == [{"f": row["f"]}] for row in found)
    return [row["f"] for row in found]


def as_stored(value: Any, column: pa.DataType) -> Any:
    return value.encode() if isinstance(value, str) and pa.types.is_binary(column) else \
        value.decode() if isinstance(value, bytes) and pa.types.is_string(column) else value


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", PROMOTIONS)
def test_a_promotion_of_avro(cluster: EmbeddedCluster, tmp_path: Path, registry: _Registry, name: str, kind: str):
    before, first, after, later, formats = PROMOTIONS[name]
    registry.schemas[1], record = written(before, first, 1)
    of = topic(cluster, record)
    path = tmp_path / "table"
    ingest(cluster, of, path, kind, **AVRO)
    registry.schemas[2], new = written(after, later, 2)
    produce(cluster, of, new, record)
    if kind in formats:
        ingest(cluster, of, path, kind, **AVRO)
        column = rows(path, kind).schema.field("f").type
        assert values(path, kind) == [as_stored(value, column) for value in (first, later, first)]
        return
    for _ in range(2):
        with pytest.raises(IngestError, match=rf"column [fl] of the table is .* does not hold a value of {of} \[0\] at "
                                              r"offsets 1 to [12]: .* not committed: "):
            ingest(cluster, of, path, kind, **AVRO)
        assert values(path, kind) == [first]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_that_is_not_to_change(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    of = topic(cluster, {"a": 1})
    ingest(cluster, of, tmp_path / "table", kind)
    produce(cluster, of, {"a": 2})
    with pytest.raises(IngestError, match=r"column a of .* is int32 and would become int64"):
        ingest(cluster, of, tmp_path / "table", kind, schema="a BIGINT", evolve="fail")
    ingest(cluster, of, tmp_path / "table", kind, schema="a BIGINT", evolve="ignore")
    found = rows(tmp_path / "table", kind)
    assert found.schema.field("a").type == pa.int32() and sorted(found["a"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("evolve", ["add", "fail", "ignore"])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_that_is_wider_than_the_schema(cluster: EmbeddedCluster, tmp_path: Path, kind: str, evolve: str):
    of = topic(cluster, {"a": 2**40, "d": 1.25, "s": {"x": 1.5}})
    path = tmp_path / "table"
    ingest(cluster, of, path, kind, schema="a BIGINT, d DECIMAL(20, 4), s STRUCT<x: DOUBLE>")
    produce(cluster, of, {"a": 3, "d": 9.99, "s": {"x": 0.5}})
    ingest(cluster, of, path, kind, schema="a SMALLINT, d DECIMAL(5, 2), s STRUCT<x: FLOAT>", evolve=evolve)
    found = rows(path, kind).sort_by("offset")
    assert found["a"].to_pylist() == [2**40, 3] and found["a"].type == pa.int64()
    assert found["d"].to_pylist() == [Decimal("1.2500"), Decimal("9.9900")]
    assert found["s"].to_pylist() == [{"x": 1.5}, {"x": 0.5}]


def test_a_delta_table_that_was_rewritten_with_a_wider_type(cluster: EmbeddedCluster, tmp_path: Path):
    """As docs/ingest.md shows."""
    of = topic(cluster, {"a": 1, "p": "x"})
    more: dict[str, Any] = {"schema": "a INT, p STRING", "partition_by": ("p",)}
    ingest(cluster, of, tmp_path, "delta", **more)
    produce(cluster, of, {"a": 2**40, "p": "y"})
    more["schema"] = "a BIGINT, p STRING"
    with pytest.raises(IngestError, match=r"rewrite the table .*#changed-types shows"):
        ingest(cluster, of, tmp_path, "delta", **more)
    table = deltalake.DeltaTable(str(tmp_path))
    found = table.to_pyarrow_table()
    wider = found.set_column(found.schema.get_field_index("a"), "a", found["a"].cast(pa.int64()))
    deltalake.write_deltalake(table, wider, mode="overwrite", schema_mode="overwrite",
                              partition_by=table.metadata().partition_columns)
    ingest(cluster, of, tmp_path, "delta", **more)
    assert sorted(rows(tmp_path, "delta")["a"].to_pylist()) == [1, 2**40]


def test_files_of_before_and_after_a_widening_are_compacted(
    cluster: EmbeddedCluster, tmp_path: Path, registry: _Registry
):
    registry.schemas[1], record = written("int", 1, 1)
    of = topic(cluster, record)
    path = tmp_path / "table"
    ingest(cluster, of, path, "iceberg", **AVRO)
    registry.schemas[2], new = written("long", 2**40, 2)
    for _ in range(2):
        produce(cluster, of, new)
        ingest(cluster, of, path, "iceberg", **AVRO)
    from kconsumer.ingest import Ingestion

    with Ingestion(options(cluster, of, path, "iceberg", **AVRO), InProcess()) as run:
        assert run.compact() == 3
    assert len(list(loaded(path).scan().plan_files())) == 1
    assert values(path, "iceberg") == [1, 2**40, 2**40]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_given_schema_that_does_not_read_a_new_writer_ends_the_run_before_the_commit(
    cluster: EmbeddedCluster, tmp_path: Path, registry: _Registry, kind: str
):
    registry.schemas[1], record = written("int", 1, 1)
    of = topic(cluster, record)
    given = {**AVRO, "schema": json.dumps(registry.schemas[1])}
    ingest(cluster, of, tmp_path / "table", kind, **given)
    registry.schemas[2], new = written("long", 2, 2)
    produce(cluster, of, record, new, record)
    with pytest.raises(IngestError, match=rf"cannot decode a writer's schema: {of} \[0\] at offset 2: .*Without --sch"):
        ingest(cluster, of, tmp_path / "table", kind, **given)
    assert values(tmp_path / "table", kind) == [1]
    ingest(cluster, of, tmp_path / "table", kind, **AVRO)
    assert values(tmp_path / "table", kind) == [1, 1, 2, 1]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("change", EVOLUTIONS, ids=lambda change: change.change)
def test_an_outcome_holds_for_the_values_of_the_first_type(change: Any, format: str):
    """A column that stays or widens has room for the values that are in the table."""
    found = outcome(change.before, change.after, format)
    if found is Outcome.WIDENED:
        assert outcome(change.after, change.before, format) is Outcome.WIDER
    if found is Outcome.WIDER:
        assert outcome(change.after, change.before, format) is not Outcome.WIDER


@pytest.mark.parametrize("value", [0.1, 1e300, 16777217.0])
def test_a_double_that_a_float_would_round(value: float):
    with pytest.raises(pa.ArrowInvalid, match="would be rounded"):
        exactly(pa.array([1.0, None, value]), pa.float32())


def test_doubles_that_a_float_holds():
    made = exactly(pa.array([0.5, None, float("inf"), -0.0, float("nan")]), pa.float32())
    assert str(made.to_pylist()) == "[0.5, None, inf, -0.0, nan]"


def test_partition_columns_that_widen(cluster: EmbeddedCluster, tmp_path: Path):
    path = tmp_path / "table"
    of = topic(cluster, {"a": 1, "b": 5})
    more: dict[str, Any] = {"partition_by": ("a", "bucket(4, b)")}
    ingest(cluster, of, path, "iceberg", schema="a INT, b INT", **more)
    produce(cluster, of, {"a": 2**40, "b": 5}, {"a": 1, "b": 2**40})
    ingest(cluster, of, path, "iceberg", schema="a BIGINT, b BIGINT", **more)
    assert sorted(zip(*rows(path, "iceberg").select(["a", "b"]).to_pydict().values(), strict=True)) == [
        (1, 5), (1, 2**40), (2**40, 5)]
    for where, count in (("a = 1", 2), (f"a = {2**40}", 1), ("b = 5", 2), (f"b = {2**40}", 1)):
        assert loaded(path).scan(row_filter=where).to_arrow().num_rows == count, where


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_partition_columns_that_do_not_widen_take_the_values_that_they_hold(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str
):
    of = topic(cluster, {"a": 1})
    ingest(cluster, of, tmp_path, kind, schema="a INT", partition_by=("a",))
    produce(cluster, of, {"a": 2})
    wider: dict[str, Any] = {"schema": "a BIGINT", "partition_by": ("a",)}
    ingest(cluster, of, tmp_path, kind, **wider)
    produce(cluster, of, {"a": 2**40})
    with pytest.raises(IngestError, match="column a of the table is int32, and does not hold a value"):
        ingest(cluster, of, tmp_path, kind, **wider)
    found = pl.read_delta(str(tmp_path)) if kind == "delta" else pl.read_parquet(
        tmp_path / "a=*/*.parquet", hive_partitioning=True)
    assert sorted(found["a"]) == [1, 2]


def test_the_source_of_a_partition_that_does_not_hold_a_value(cluster: EmbeddedCluster, tmp_path: Path):
    path = tmp_path / "table"
    of = topic(cluster, {"b": 5})
    ingest(cluster, of, path, "iceberg", schema="b INT", partition_by=("bucket(4, b)",))
    produce(cluster, of, {"b": 2**40})
    with pytest.raises(IngestError, match="column b of the table is int32, and does not hold a value"):
        ingest(cluster, of, path, "iceberg", schema="b BIGINT", partition_by=("bucket(4, b)",), evolve="ignore")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_that_was_null_gets_a_type(cluster: EmbeddedCluster, tmp_path: Path, registry: _Registry, kind: str):
    def schema(type_: Any) -> dict[str, Any]:
        return {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "f", "type": type_}]}

    registry.schemas[1] = schema("null")
    of = topic(cluster, b"\0\0\0\0\1\x02")
    ingest(cluster, of, tmp_path / "table", kind, **AVRO)
    assert "f" not in rows(tmp_path / "table", kind).column_names
    registry.schemas[2] = schema(["null", "int"])
    produce(cluster, of, b"\0\0\0\0\2\x04\2\x0e")
    ingest(cluster, of, tmp_path / "table", kind, **AVRO)
    found = sorted(rows(tmp_path / "table", kind).select(["n", "f"]).to_pylist(), key=lambda row: int(row["n"]))
    assert found == [{"n": 1, "f": None}, {"n": 2, "f": 7}]
