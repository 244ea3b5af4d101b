"""Hidden partitions of Iceberg: the values in manifests, and the files that engines skip by them."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import one_table
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_iceberg import loaded
from test_transforms import given
from test_values import InProcess

from kconsumer.ingest import Ingestion
from kconsumer.ingest.errors import IngestError
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded
SCHEMA = "id BIGINT, at TIMESTAMP, day DATE, name STRING, price DECIMAL(9, 2), small SMALLINT"


def value(n: int) -> dict[str, Any]:
    if n == 39:
        return {"id": None, "at": None, "day": None, "name": None, "price": None, "small": None}
    return {"id": n * 7919, "at": f"{1969 + n % 2}-{n % 3 + 11 if n % 2 == 0 else n % 3 + 1:02d}-01T{n % 4:02d}:59:59Z"
            if n % 3 else "2024-02-29T23:00:00Z", "day": f"{1968 + n % 4}-02-2{n % 5}", "name": f"é{n % 4}-{n}",
            "price": f"{n / 4 - 5:.2f}", "small": n - 20}


def partition(file: Any) -> tuple[Any, ...]:
    return tuple(file.partition[n] for n in range(len(file.partition)))


def files(table: Any, **more: Any) -> list[Any]:
    return [task.file for task in table.scan(**more).plan_files()]


def check_values(table: Any) -> None:
    """Each file has one value of each partition field, which is the one of PyIceberg's transform of all its rows."""
    for file in files(table):
        rows = pq.read_table(file.file_path.removeprefix("file://"), partitioning=None)
        for n, field in enumerate(table.spec().fields):
            source = table.schema().find_field(field.source_id)
            apply = field.transform.transform(source.field_type)
            values = {apply(given(found)) for found in rows[source.name].to_pylist()}
            assert values == {file.partition[n]}, field


@pytest.mark.parametrize(("by", "row_filter", "where"), [
    (("month(at)",), "at >= '2024-02-01T00:00:00+00:00' and at < '2024-03-01T00:00:00+00:00'",
     "\"at\" >= '2024-02-01 00:00:00Z' and \"at\" < '2024-03-01 00:00:00Z'"),
    (("year(day)",), "day < '1969-01-01'", "day < '1969-01-01'"),
    (("h=hour(at)",), "at < '1970-01-01T00:00:00+00:00'", "\"at\" < '1970-01-01 00:00:00Z'"),
    (("bucket(8, id)",), "id == 39595", "id = 39595"), (("bucket(5, name)",), "name == 'é1-5'", "name = 'é1-5'"),
    (("bucket(4, price)",), "price == -3.75", "price = -3.75"), (("bucket(4, day)",), "day == '1969-02-21'",
                                                                 "day = '1969-02-21'"),
    (("truncate(2, name)",), "name == 'é1-5'", "name = 'é1-5'"),
    (("truncate(10, small)",), "small < -10", "small < -10"),
    (("truncate(500, price)",), "price < -2", "price < -2"),
    (("price", "truncate(1, name)"), "price = 1.25", "price = 1.25"),
    (("month(at)", "bucket(3, id)"), "id == 39595", "id = 39595")])
def test_engines_skip_files_by_hidden_partitions(
    cluster: EmbeddedCluster, tmp_path: Path, by: tuple[str, ...], row_filter: str, where: str
):
    name = one_table.topic(cluster, *map(value, range(40)))
    one_table.ingest(cluster, name, tmp_path / "rows", "iceberg", schema=SCHEMA, partition_by=by)
    table = loaded(tmp_path)
    check_values(table)
    everything = files(table)
    assert len({partition(file) for file in everything}) == len(everything) > 2
    found = table.scan(row_filter=row_filter).to_arrow()
    read = files(table, row_filter=row_filter)
    assert len(read) < len(everything)
    rows = duckdb.read_parquet([file.file_path.removeprefix("file://") for file in everything])
    expected = rows.filter(where).order("id").to_arrow_table()
    assert found.num_rows > 0
    assert found.sort_by("id")["id"].to_pylist() == expected["id"].to_pylist()
    one_table.produce(cluster, name, *map(value, range(40)))
    one_table.ingest(cluster, name, tmp_path / "rows", "iceberg", schema=SCHEMA, partition_by=by)
    options = one_table.options(cluster, name, tmp_path / "rows", "iceberg", schema=SCHEMA, partition_by=by)
    with Ingestion(options, InProcess()) as ingestion:
        assert ingestion.compact() == 2 * len(everything)
    table = loaded(tmp_path)
    check_values(table)
    assert len(files(table)) == len(everything)
    assert table.scan().to_arrow().num_rows == 80


def test_the_partitions_of_a_table_that_another_program_has_made(cluster: EmbeddedCluster, tmp_path: Path):
    from pyiceberg.catalog import load_catalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, MonthTransform, VoidTransform
    from pyiceberg.types import DateType, LongType, NestedField

    catalog = one_table.catalog(tmp_path)
    made = load_catalog(catalog.pop("name"), **catalog)
    made.create_namespace("space")
    made.create_table("space.rows", Schema(
        NestedField(1, "offset", LongType(), required=False), NestedField(2, "id", LongType(), required=False),
        NestedField(3, "day", DateType(), required=False)), location=f"file://{tmp_path}/rows",
        partition_spec=PartitionSpec(PartitionField(3, 1000, MonthTransform(), "m"),
                                     PartitionField(1, 1001, VoidTransform(), "gone"),
                                     PartitionField(2, 1002, BucketTransform(3), "b")))
    name = one_table.topic(cluster, *({"id": n, "day": f"2024-0{n % 3 + 1}-01"} for n in range(20)))
    more: dict[str, Any] = {"schema": "id BIGINT, day DATE", "bad_records": "fail"}
    with pytest.raises(IngestError, match=r"space\.rows is partitioned by month\(day\), bucket\(3, id\), not by "
                                          r"month\(day\), bucket\(4, id\): use the table's partition columns"):
        one_table.ingest(cluster, name, tmp_path / "rows", "iceberg", partition_by=("month(day)", "bucket(4, id)"),
                         **more)
    one_table.ingest(cluster, name, tmp_path / "rows", "iceberg", partition_by=("month(day)", "bucket(3, id)"), **more)
    table = loaded(tmp_path)
    check_values(table)
    assert {partition(file)[0] for file in files(table)} == {648, 649, 650}
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(20))


def test_the_names_of_new_partitions_are_icebergs(cluster: EmbeddedCluster, tmp_path: Path):
    """They are the names of PyIceberg for fields without a name."""
    by = ("month(at)", "bucket(16, id)", "truncate(4, name)", "year(day)")
    one_table.ingest(cluster, one_table.topic(cluster, value(1)), tmp_path / "rows", "iceberg", schema=SCHEMA,
                     partition_by=by)
    table = loaded(tmp_path)
    names = [field.name for field in table.spec().fields]
    assert names == ["at_month", "id_bucket_16", "name_trunc_4", "day_year"]


def test_partition_values_that_the_footer_lacks(cluster: EmbeddedCluster, tmp_path: Path):
    """Parquet has no bounds for a text of more than 4 KiB: the partition would become null."""
    texts = ["x" * 5000, "y" * 5000, "", None]
    name = one_table.topic(cluster, *({"p": text, "a": n} for n, text in enumerate(texts)))
    one_table.ingest(cluster, name, tmp_path / "rows", "iceberg", schema="p STRING, a INT", partition_by=("p",))
    table = loaded(tmp_path)
    assert {partition(file)[0] for file in files(table)} == set(texts)
    found = table.scan(row_filter=f"p == '{texts[0]}'")
    assert len(list(found.plan_files())) == 1
    assert found.to_arrow()["a"].to_pylist() == [0]


@pytest.mark.parametrize(("type_", "values"), [
    ("float", [0.1, float("inf"), -0.0]), ("binary", [b"", b"\x00\xff"]), ("boolean", [True, False]),
    ("date", [date(1969, 12, 31), date(9, 1, 1)]), ("timestamp", [datetime(1969, 12, 31, 23, 59, 59, 999999)])])
def test_texts_of_values_are_read_back(type_: str, values: list[Any]):
    from pyiceberg import types

    from kconsumer.ingest.tables.iceberg_files import _value
    from kconsumer.ingest.writing import value_text

    kind = {"float": types.FloatType(), "binary": types.BinaryType(), "boolean": types.BooleanType(),
            "date": types.DateType(), "timestamp": types.TimestampType()}[type_]
    for found in values:
        column = pa.array([found], pa.float32()) if type_ == "float" else pa.array([found])
        assert _value(value_text(column[0].as_py()) or "", kind) == given(column[0].as_py())
