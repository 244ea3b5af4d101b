"""Columns of an Iceberg table that were renamed, and fields of the values that were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from one_table import FORMATS, ingest, loaded, options, produce, rows, topic
from test_evolution import AVRO, registry
from test_values import InProcess, _Registry

from kconsumer.ingest import Ingestion
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded
__all__ = ["registry"]

SCHEMA = "a INT, p STRING, s STRUCT<x: INT, l: ARRAY<STRUCT<k: INT>>>, m MAP<STRING, STRUCT<v: INT>>"


def value(n: int) -> dict[str, Any]:
    return {"a": n, "p": str(n % 2), "s": {"x": n, "l": [{"k": n}]}, "m": {"key": {"v": n}}}


def row(n: int, **more: Any) -> dict[str, Any]:
    return {"offset": n, "b": n, "q": str(n % 2), "t": {"y": n, "l": [{"j": n, **more}]}, "m": [("key", {"w": n})]}


@pytest.mark.parametrize("evolve", ["add", "fail", "ignore"])
def test_values_of_a_renamed_column_stay_in_it(cluster: EmbeddedCluster, tmp_path: Path, evolve: str):
    path = tmp_path / "table"
    of = topic(cluster, value(0), value(1))
    given: dict[str, Any] = {"schema": SCHEMA, "partition_by": ("p", "bucket(4, a)"), "bad_records": "fail"}
    ingest(cluster, of, path, "iceberg", **given)
    renames = {"a": "b", "p": "q", "s.x": "y", "s.l.k": "j", "m.v": "w", "s": "t"}
    for old, new in renames.items():
        with loaded(path).update_schema() as update:
            update.rename_column(old, new)
    produce(cluster, of, value(2), value(3))
    ingest(cluster, of, path, "iceberg", **given, evolve=evolve)
    assert rows(path, "iceberg").sort_by("offset").to_pylist() == [row(n) for n in range(4)]
    if evolve == "add":
        produce(cluster, of, {**value(4), "new": 5, "s": {"x": 4, "l": [{"k": 4, "z": 6}]}})
        given["schema"] = SCHEMA.replace("k: INT", "k: INT, z: INT") + ", new INT"
        ingest(cluster, of, path, "iceberg", **given)
        expected = [{**row(n, z=None), "new": None} for n in range(4)] + [{**row(4, z=6), "new": 5}]
        assert rows(path, "iceberg").sort_by("offset").to_pylist() == expected
        with Ingestion(options(cluster, of, path, "iceberg", **given), InProcess()) as run:
            assert run.compact() == 2  # the only ones that share a partition
        assert rows(path, "iceberg").sort_by("offset").to_pylist() == expected
    for where, count in (("b = 2", 1), ("b > 1", 2 + (evolve == "add")), ("q = '1'", 2), ("b = 9", 0)):
        assert loaded(path).scan(row_filter=where).to_arrow().num_rows == count, where


def test_a_renamed_column_that_widens(cluster: EmbeddedCluster, tmp_path: Path):
    path = tmp_path / "table"
    of = topic(cluster, {"a": 1})
    ingest(cluster, of, path, "iceberg", schema="a INT", bad_records="fail")
    with loaded(path).update_schema() as update:
        update.rename_column("a", "b")
    produce(cluster, of, {"a": 2**40})
    ingest(cluster, of, path, "iceberg", schema="a BIGINT", bad_records="fail")
    found = rows(path, "iceberg").sort_by("offset")
    assert found.drop_columns("offset").to_pydict() == {"b": [1, 2**40]}


def test_a_column_with_the_former_name_of_another_one_keeps_its_values(cluster: EmbeddedCluster, tmp_path: Path):
    """A user renamed one column, and added another one under its name."""
    path = tmp_path / "table"
    of = topic(cluster, {"a": 1})
    ingest(cluster, of, path, "iceberg", schema="a INT, b INT", bad_records="fail")
    with loaded(path).update_schema() as update:
        update.rename_column("a", "c")
    produce(cluster, of, {"a": 2, "c": 3})
    ingest(cluster, of, path, "iceberg", schema="c INT, b INT", bad_records="fail")
    found = rows(path, "iceberg").sort_by("offset")
    assert found.drop_columns("offset").to_pydict() == {"c": [1, 3], "b": [None, None]}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_field_that_is_renamed_by_an_alias_is_a_new_column(
    cluster: EmbeddedCluster, tmp_path: Path, registry: _Registry, kind: str
):
    def schema(name: str, *aliases: str) -> dict[str, Any]:
        return {"type": "record", "name": "R", "fields": [{"name": name, "type": "int", "aliases": aliases}]}

    path = tmp_path / "table"
    registry.schemas[1] = schema("old")
    of = topic(cluster, b"\0\0\0\0\1\x02")
    ingest(cluster, of, path, kind, **AVRO)
    registry.schemas[2] = schema("new", "old")
    produce(cluster, of, b"\0\0\0\0\1\x04", b"\0\0\0\0\2\x06")
    ingest(cluster, of, path, kind, **AVRO)
    found: pa.Table = rows(path, kind).sort_by("offset")
    assert found.select(["old", "new"]).to_pydict() == {"old": [1, None, None], "new": [None, 2, 3]}
