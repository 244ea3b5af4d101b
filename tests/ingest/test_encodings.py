"""Tables whose files have differences instead of dictionaries, read by the libraries of each format."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_table import FORMATS, files, ingest, rows, topic

from kconsumer.testing import EmbeddedCluster

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded
SCHEMA = "id BIGINT, n INT, day DATE, at TIMESTAMP, few INT"


@pytest.mark.parametrize("kind", FORMATS)
def test_every_reader_finds_the_values(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    chance = random.Random(1)
    values = [{"id": chance.randint(-2**63, 2**63 - 1), "n": chance.randint(-2**31, 2**31 - 1),
               "day": f"{chance.randint(1, 9999):04d}-01-02", "at": f"2024-01-02T03:04:05.{n:06d}Z", "few": n % 3}
              for n in range(3000)]
    path = tmp_path / "table"
    ingest(cluster, topic(cluster, *values), path, kind, schema=SCHEMA, bad_records="fail", codec="snappy")
    expected = [(row["id"], row["n"], row["day"], row["few"]) for row in values]
    parquet = [str(file) for file in files(path) if "_delta_log" not in file.parts]
    read = {"library": rows(path, kind), "pyarrow": pa.concat_tables(pq.read_table(file) for file in parquet),
            "duckdb": duckdb.read_parquet(parquet).to_arrow_table(), "polars": pl.read_parquet(parquet).to_arrow()}
    if kind == "delta":
        read["polars, delta"] = pl.read_delta(str(path)).to_arrow()
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
        read["delta-rs"] = pa.table(query.execute("select * from t"))
    for reader, found in read.items():
        ordered = found.sort_by("offset")
        days = [day.isoformat() for day in ordered["day"].to_pylist()]
        assert list(zip(ordered["id"].to_pylist(), ordered["n"].to_pylist(), days, ordered["few"].to_pylist(),
                        strict=True)) == expected, reader
        assert [at.microsecond for at in ordered["at"].to_pylist()] == list(range(3000)), reader
