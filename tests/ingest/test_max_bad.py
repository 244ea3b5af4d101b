"""Bad records: how many a job commits, and what is there after a job that commits none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from one_table import FORMATS, ingest, produce, rows, topic

from kconsumer.errors import ConfigurationError
from kconsumer.ingest import IngestOptions
from kconsumer.ingest.errors import IngestError
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded
WRONG = {"b": "text"}  # of a schema with b INT


@pytest.mark.parametrize("kind", FORMATS)
def test_a_job_with_a_wrong_schema_commits_nothing_and_a_corrected_run_reads_all(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str
):
    name = topic(cluster, WRONG, None, WRONG)
    with pytest.raises(IngestError, match=rf"any of the first 2 records: {name} \[0\] at offset 0: field b: .* not "
                                          rf'committed: correct the schema.*--from \'{{"{name}": {{"0": 0}}}}'):
        ingest(cluster, name, tmp_path / "table", kind, schema="b INT")
    ingest(cluster, name, tmp_path / "table", kind, schema="b STRING")  # the column has this type: no table was left
    assert rows(tmp_path / "table", kind)["b"].to_pylist() == ["text", None, "text"]


def test_the_first_good_record_may_follow_bad_ones(cluster: EmbeddedCluster, tmp_path: Path):
    name = topic(cluster, *[b"{"] * 999, {"a": 1})
    ingest(cluster, name, tmp_path, "parquet")
    assert rows(tmp_path, "parquet").num_rows == 1000


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0)])
def test_a_thousand_bad_records_in_a_row_are_not_committed(
    cluster: EmbeddedCluster, tmp_path: Path, before: int, after: int
):
    name = topic(cluster, *[{"a": 1}] * before, *[b"{"] * 1000, *[{"a": 1}] * after)
    with pytest.raises(IngestError, match=r"1,000 records"):
        ingest(cluster, name, tmp_path, "parquet")
    assert not list(tmp_path.glob("*.parquet"))
    ingest(cluster, name, tmp_path, "parquet", max_bad="1000")
    assert rows(tmp_path, "parquet").num_rows == 1001


def test_bad_records_in_a_row_count_across_triggers(cluster: EmbeddedCluster, tmp_path: Path):
    name = topic(cluster, {"a": 1}, *[b"{"] * 1200)
    with pytest.raises(IngestError, match=r"1,0\d\d records in a row"):
        ingest(cluster, name, tmp_path, "parquet", source={"maxOffsetsPerTrigger": "100"})
    assert rows(tmp_path, "parquet").num_rows == 1000


@pytest.mark.parametrize("kind", FORMATS)
def test_a_job_with_a_good_record_commits_a_few_bad_ones(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    name = topic(cluster, {"a": 1})
    ingest(cluster, name, tmp_path / "table", kind)
    produce(cluster, name, b"{")
    ingest(cluster, name, tmp_path / "table", kind)
    assert rows(tmp_path / "table", kind).num_rows == 2


@pytest.mark.parametrize("kind", FORMATS)
def test_a_job_that_has_committed_offsets_without_records_has_had_no_good_one(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str
):
    name = topic(cluster, {"a": 1})
    ingest(cluster, name, tmp_path / "table", kind, start="latest")
    produce(cluster, name, b"{")
    with pytest.raises(IngestError, match="any of the first 1 records"):
        ingest(cluster, name, tmp_path / "table", kind)


def test_dead_letters_are_kept_without_a_limit(cluster: EmbeddedCluster, tmp_path: Path):
    name = topic(cluster, *[b"{"] * 1001)
    ingest(cluster, name, tmp_path / "table", "parquet", bad_records="dead-letter", dead_letters=str(tmp_path / "bad"))
    assert rows(tmp_path / "bad", "parquet").num_rows == 1001


@pytest.mark.parametrize(("given", "committed"), [
    ("10%", True), ("9.9%", False), ("1", True), ("0", False), ("0%", False), ("100%", True)])
def test_a_limit_is_checked_before_a_commit(cluster: EmbeddedCluster, tmp_path: Path, given: str, committed: bool):
    name = topic(cluster, *[{"a": 1}] * 9, b"{")
    letters: dict[str, Any] = {"bad_records": "dead-letter", "dead_letters": str(tmp_path / "bad")}
    if committed:
        ingest(cluster, name, tmp_path / "table", "parquet", max_bad=given, **letters)
        assert rows(tmp_path / "table", "parquet").num_rows == 9
        return
    with pytest.raises(IngestError, match=rf"1 of 10 records: {name} \[0\] at offset 9: "):
        ingest(cluster, name, tmp_path / "table", "parquet", max_bad=given, **letters)
    assert not list((tmp_path / "table").glob("*.parquet"))


def test_a_limit_that_all_bad_records_exceed_leaves_no_table(cluster: EmbeddedCluster, tmp_path: Path):
    name = topic(cluster, b"{", b"{")
    with pytest.raises(IngestError, match="any of the first 2 records"):
        ingest(cluster, name, tmp_path / "table", "delta", max_bad="50%")
    assert not (tmp_path / "table" / "_delta_log").exists()
    ingest(cluster, name, tmp_path / "table", "delta", max_bad="100%")
    assert rows(tmp_path / "table", "delta").num_rows == 2


@pytest.mark.parametrize(("given", "message"), [
    ({"max_bad": "1 %"}, "invalid max_bad '1 %': expected a share such as 1%"), ({"max_bad": "101%"}, "max_bad '101%'"),
    ({"max_bad": "-1"}, "max_bad '-1'"), ({"max_bad": "1%", "bad_records": "fail"}, r"max_bad \(--max-bad\) needs"),
    ({"max_bad": "1%", "value": "raw", "schema": None}, r"max_bad \(--max-bad\) needs")])
def test_invalid_limits(given: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError, match=message):
        IngestOptions(**{"bootstrap_servers": "h:1", "topics": ("t",), "path": "p", "value": "json", "schema": "a INT",
                         **given})
