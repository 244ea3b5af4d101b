"""Nested fields that a table lacks: added, refused or left out; and never mixed up, whatever their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import one_table
import polars as pl
import pyarrow as pa
import pytest
from one_table import FORMATS
from test_values import InProcess, _Registry

from kconsumer.ingest import Ingestion
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.schemas import conformed
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded
OLD = "n INT, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT, y: INT>>"
# New fields stand before, between and after the old ones, some of which have changed their places.
NEW = ("n INT, s STRUCT<a: STRUCT<q: INT>, y: INT, x: INT>, l ARRAY<STRUCT<a: INT, x: INT>>, "
       "m MAP<STRING, STRUCT<y: INT, a: INT, x: INT>>")
OLD_VALUE = {"n": 1, "s": {"x": 1, "y": 2}, "l": [{"x": 3}, None], "m": {"k": {"x": 4, "y": 5}}}
NEW_VALUE = {"n": 2, "s": {"x": 11, "y": 12, "a": {"q": 13}}, "l": [{"x": 14, "a": 15}],
             "m": {"k": {"x": 16, "y": 17, "a": 18}}}
NULLS = {"n": 3, "s": None, "l": None, "m": None}
ROWS = [{"n": 1, "s": {"x": 1, "y": 2, "a": None}, "l": [{"x": 3, "a": None}, None],
         "m": {"k": {"x": 4, "y": 5, "a": None}}}, NEW_VALUE, NULLS]


def rows(path: Path, kind: str) -> list[dict[str, Any]]:
    """The rows, read by the table's own library."""
    found = plain(one_table.rows(path, kind).select(["n", "s", "l", "m"]).to_pylist())
    if kind == "iceberg":  # PyIceberg 0.12 shows null lists and maps of structs as empty ones
        found = [{name: value or None for name, value in row.items()} for row in found]
    return found


def plain(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in order, with maps as dictionaries."""
    return sorted(({**row, "m": None if row["m"] is None else dict(row["m"])} for row in found),
                  key=lambda row: int(row["n"]))


def read_by_others(path: Path, kind: str) -> list[dict[str, Any]]:
    """The rows, read by an engine that has not written them."""
    if kind == "delta":
        return plain(pl.read_delta(str(path)).select("n", "s", "l", "m").to_dicts())
    files = [str(file) for file in one_table.files(path)] if kind == "parquet" else [
        task.file.file_path.removeprefix("file://") for task in one_table.loaded(path).scan().plan_files()]
    found = duckdb.read_parquet(files, union_by_name=True).select("n", "s", "l", "m").arrow()
    return plain(pa.table(found).to_pylist())


def evolved(cluster: EmbeddedCluster, path: Path, kind: str, **more: Any) -> None:
    """Write records of the old schema, then of the new one."""
    name = one_table.topic(cluster, OLD_VALUE)
    one_table.ingest(cluster, name, path, kind, schema=OLD)
    one_table.produce(cluster, name, NEW_VALUE, NULLS)
    one_table.ingest(cluster, name, path, kind, schema=NEW, **more)


@pytest.mark.parametrize("kind", FORMATS)
def test_new_nested_fields_are_added_and_reordered_ones_are_not_mixed_up(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str
):
    path = tmp_path / "rows"
    evolved(cluster, path, kind)
    if kind != "parquet":
        assert rows(path, kind) == ROWS
    assert read_by_others(path, kind) == ROWS


@pytest.mark.parametrize("kind", FORMATS)
def test_a_schema_that_lacks_nested_fields_of_the_table_writes_nulls(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str
):
    path = tmp_path / "rows"
    name = one_table.topic(cluster, NEW_VALUE)
    one_table.ingest(cluster, name, path, kind, schema=NEW)
    one_table.produce(cluster, name, OLD_VALUE, NULLS)
    one_table.ingest(cluster, name, path, kind, schema=OLD)
    assert read_by_others(path, kind) == ROWS


@pytest.mark.parametrize("kind", FORMATS)
def test_ignored_nested_fields_are_not_written(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "rows"
    evolved(cluster, path, kind, evolve="ignore")
    assert "does not have column s.a, l.element.a, m.value.a: skipping it" in caplog.text
    assert read_by_others(path, kind) == [
        OLD_VALUE, {"n": 2, "s": {"x": 11, "y": 12}, "l": [{"x": 14}], "m": {"k": {"x": 16, "y": 17}}}, NULLS]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("after", "path"), [
    ("s STRUCT<x: INT, y: INT, z: INT>", r"field s\.z \(int32\)"),
    ("l ARRAY<STRUCT<z: INT>>", r"field l\.element\.z \(int32\)"),
    ("m MAP<STRING, STRUCT<z: STRUCT<q: INT>>>", r"field m\.value\.z \(struct<q: int32>\)"),
])
def test_fail_refuses_new_nested_fields_by_their_path(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, after: str, path: str
):
    name = one_table.topic(cluster, {})
    one_table.ingest(cluster, name, tmp_path / "rows", kind, schema=OLD)
    one_table.produce(cluster, name, {})
    with pytest.raises(IngestError, match=f"does not have {path}: evolve=add adds it, evolve=ignore skips it"):
        one_table.ingest(cluster, name, tmp_path / "rows", kind, schema=after, evolve="fail")


def _avro(*names: str) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "s", "type": {"type": "record", "name": "s", "fields": [
        {"name": name, "type": ["null", "int"], "default": None} for name in names]}}]}


@pytest.mark.parametrize("when", ["before the tasks", "after the tasks"])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_nested_field_that_the_registry_gets_while_a_job_runs_is_added(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, kind: str
):
    from kconsumer.decoding import SchemaRegistry
    from kconsumer.ingest import options as module

    registry = _Registry({1: _avro("x", "y")})
    monkeypatch.setattr(_Registry, "get_latest_version", lambda self, subject: type("Registered", (), {
        "schema": self.get_schema(max(self.schemas))})())
    monkeypatch.setattr(module, "SchemaRegistry", lambda config: SchemaRegistry(registry))
    name = one_table.topic(cluster, b"\0\0\0\0\1\x02\x02\x02\x04", b"\0\0\0\0\2\x02\x06\x02\x08\x02\x0a",
                           b"\0\0\0\0\1\0\x02\x0c")

    class Registering(InProcess):
        maps = 0

        def map(self, tasks: Any, what: str) -> Any:
            self.maps += 1
            if self.maps == 2 and when == "after the tasks":
                registry.schemas[2] = _avro("y", "z", "x")
            return super().map(tasks, what)

    def registered(_: Any) -> None:
        if when == "before the tasks":
            registry.schemas[2] = _avro("y", "z", "x")

    given = one_table.options(cluster, name, tmp_path / "rows", kind, value="avro", schema=None,
                              registry={"url": "http://localhost:1"}, source={"maxOffsetsPerTrigger": "1"})
    runner = Registering()
    with Ingestion(given, runner) as run:
        run.run(registered)
    assert runner.maps == (4 if when == "after the tasks" else 3)
    found = [pl.read_parquet(file, hive_partitioning=False) for file in one_table.files(tmp_path / "rows")] \
        if kind == "parquet" else [pl.DataFrame(one_table.rows(tmp_path / "rows", kind))]
    by_offset = {row["offset"]: {"z": None, **row["s"]} for frame in found for row in frame.to_dicts()}
    assert by_offset == {0: {"x": 1, "y": 2, "z": None}, 1: {"x": 5, "y": 3, "z": 4}, 2: {"x": None, "y": 6, "z": None}}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_compaction_keeps_rows_of_files_with_fewer_nested_fields(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    path = tmp_path / "rows"
    name = one_table.topic(cluster, OLD_VALUE)
    one_table.ingest(cluster, name, path, kind, schema=OLD)
    one_table.produce(cluster, name, NEW_VALUE, NULLS)
    one_table.ingest(cluster, name, path, kind, schema=NEW)
    with Ingestion(one_table.options(cluster, name, path, kind, schema=NEW), InProcess()) as run:
        assert run.compact() == 2
    assert rows(path, kind) == read_by_others(path, kind) == ROWS


def test_an_iceberg_table_with_a_required_field_that_the_schema_lacks_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path
):
    from pyiceberg.catalog import load_catalog

    given = one_table.catalog(tmp_path)
    catalog = load_catalog(given.pop("name"), **given)
    catalog.create_namespace("space")
    catalog.create_table("space.rows", pa.schema([("s", pa.struct([
        pa.field("x", pa.int32()), pa.field("must", pa.int32(), nullable=False)]))]), location=f"file://{tmp_path}/rows")
    name = one_table.topic(cluster, {})
    with pytest.raises(IngestError, match=r"has the required field s\.must, which the schema lacks"):
        one_table.ingest(cluster, name, tmp_path / "rows", "iceberg", schema="s STRUCT<x: INT>")


@pytest.mark.parametrize("start", range(3))
def test_columns_get_another_type_at_any_slice(start: int):
    old = pa.struct([("x", pa.int32()), ("y", pa.large_string())])
    new = pa.struct([("y", pa.string()), ("z", pa.list_(pa.int8())), ("x", pa.int32())])
    value, wanted = {"x": 1, "y": "a"}, {"y": "a", "z": None, "x": 1}
    for one, other, values, expected in (
            (old, new, [value, None, {"x": None, "y": "b"}], [wanted, None, {"y": "b", "z": None, "x": None}]),
            (pa.large_list(old), pa.list_(new), [[value, None], None, [value]], [[wanted, None], None, [wanted]]),
            (pa.map_(pa.large_string(), old), pa.map_(pa.string(), new), [[("k", value)], None, [("l", None)]],
             [[("k", wanted)], None, [("l", None)]])):
        found = conformed(pa.array(values, one).slice(start), other)
        found.validate(full=True)
        assert found.type == other
        assert found.to_pylist() == expected[start:]
