"""--plan: what a start would do, without a change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from one_table import FORMATS, catalog, ingest, options, produce, topic

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.preview import preview
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded


def state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")
            if "catalog.db" not in path.name}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_new_table(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    name = topic(cluster, {"a": 1}, {"a": "x"}, {"a": 3})
    made = preview(options(cluster, name, tmp_path / "table", kind, source={"maxOffsetsPerTrigger": "2"}))
    assert state(tmp_path) == {}
    assert not made.exists and [(column, what) for column, _, what in made.columns] == [
        ("offset", "new"), ("a", "new"), ("bad_record", "new")]
    assert [(found.start, found.end) for found in made.ranges] == [(0, 2)] and made.lag == 1
    assert (made.sampled, made.bad, made.bytes_per_record) == (2, 1, 9.0)
    assert made.first_bad is not None and made.first_bad.startswith(f"{name} [0] at offset 1: field a: expected int32")
    ingest(cluster, name, tmp_path / "table", kind)  # the table is not there


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_that_evolves(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    name = topic(cluster, {"a": 1, "gone": 1})
    ingest(cluster, name, tmp_path / "table", kind, schema="a INT, gone INT")
    produce(cluster, name, {"a": 2}, {"a": 3})
    before = state(tmp_path)
    given: dict[str, Any] = {"schema": "a BIGINT, b STRING"}
    for _ in range(2):
        made = preview(options(cluster, name, tmp_path / "table", kind, **given))
        changes = {column: what for column, _, what in made.columns}
        assert made.exists and changes["gone"] == "null, as the schema lacks it" and changes["b"] == "new"
        assert changes["a"] == ("changes from int32" if kind == "iceberg" else "keeps its type, as int64 is converted")
        assert [(found.start, found.end) for found in made.ranges] == [(1, 3)]
        assert state(tmp_path) == before
    made = preview(options(cluster, name, tmp_path / "table", kind, evolve="ignore", **given))
    assert ("b", "string", "left out by evolve=ignore") in made.columns
    with pytest.raises(IngestError, match=r"is int32 and would become string"):
        preview(options(cluster, name, tmp_path / "table", kind, schema="a STRING"))
    with pytest.raises(IngestError, match="is partitioned by nothing, not by a"):
        preview(options(cluster, name, tmp_path / "table", kind, schema="a INT", partition_by=("a",)))
    assert state(tmp_path) == before


def test_a_job_without_new_records(cluster: EmbeddedCluster, tmp_path: Path):
    name = topic(cluster, {"a": 1})
    ingest(cluster, name, tmp_path / "table", "delta")
    made = preview(options(cluster, name, tmp_path / "table", "delta"))
    assert made.ranges == () and made.sampled == 0
    assert str(made).endswith("offsets: 0 in all")


@pytest.mark.parametrize("kind", FORMATS)
def test_the_command(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    name = topic(cluster, {"a": 1}, b"{")
    target = ["-O", str(tmp_path / "table"), "-o", kind]
    if kind == "iceberg":
        target += ["--table", "space.rows", *(f"--catalog={key}={value}" for key, value in catalog(tmp_path).items())]
    done = subprocess.run(
        [sys.executable, "-m", "kconsumer", "ingest", name, "-b", cluster.bootstrap_servers, *target,
         "--value", "json", "--schema", "a INT", "--metadata", "offset", "--plan"],
        capture_output=True, text=True, timeout=100, check=True)
    called = "space.rows" if kind == "iceberg" else tmp_path / "table"
    assert done.stdout == (
        f"table {called} ({kind}, new), job kconsumer\ncolumns:\n  offset      int64: new\n  a           int32: new\n"
        "  bad_record  struct<reason: string, field: string, position: int64, value: binary>: new\n"
        f"offsets: 2 in all\n  {name} [0] offsets 0 to 2: 2\n"
        "size: about 0.0 MB of keys and values, by 2 records of 4 bytes\n"
        f"bad records: 1 of these 2; the first: {name} [0] at offset 1: the value ends too early (byte 1 of the "
        "value)\n")
    assert state(tmp_path) == {}
