"""Spark's vectorized reader, which knows fewer encodings than its row reader, on files of the ingestion."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.writing import FileWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORIZED = {"spark.sql.parquet.enableVectorizedReader": "true",
              "spark.sql.parquet.enableNestedColumnVectorizedReader": "true"}


@pytest.fixture
def vectorized(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name) for name in VECTORIZED}
    for name, value in VECTORIZED.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def columns(rows: int) -> dict[str, pa.Array]:
    """Columns of few and of many values, of every kind that has its own encoding."""
    draw = random.Random(7)
    longs = [draw.randint(-2**63, 2**63 - 1) for _ in range(rows)]
    made: dict[str, Any] = {
        "id": pa.array(longs), "n": pa.array([value >> 32 for value in longs], pa.int32()),
        "few": pa.array([n % 3 for n in range(rows)]), "day": pa.array([value % 40_000 for value in longs],
                                                                       pa.int32()).cast(pa.date32()),
        "at": pa.array([1_700_000_000_000_000 + n * 1_001 for n in range(rows)]).cast(pa.timestamp("us", "UTC")),
        "ratio": pa.array([draw.random() for _ in range(rows)]), "text": pa.array([f"{value:x}" for value in longs]),
        "sparse": pa.array([value if value % 3 else None for value in longs]),
        "nested": pa.array([{"id": value, "tags": [value >> 1, None]} for value in longs]),
    }
    return made


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_sparks_vectorized_reader_finds_the_values(vectorized: SparkSession, tmp_path: Path, codec: str):
    given = pa.table(columns(20_000))
    writer = FileWriter(Storage(str(tmp_path)), "files", "a-%d.parquet", given.schema, FileOptions(codec))
    for batch in given.to_batches():
        writer.write(batch)
    writer.close()
    path = next(tmp_path.rglob("*.parquet"))
    group = pq.ParquetFile(path).metadata.row_group(0)
    used = {group.column(n).path_in_schema: group.column(n).encodings for n in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in used["id"] and "RLE_DICTIONARY" in used["few"]
    found = vectorized.read.parquet(str(path))
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "Batched: true" in plan
    table = found.toArrow()
    for name in given.column_names:
        assert table[name].to_pylist() == given[name].to_pylist(), name
