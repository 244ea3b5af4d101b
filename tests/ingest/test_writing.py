"""FileWriter: sizes, order and partitions of files."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kconsumer.ingest import writing
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import FileEntry, partition_folders
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.writing import FileWriter, bound, value_text

SCHEMA = pa.schema([("day", pa.int32()), ("a", pa.int64()), ("text", pa.string())])

# Writes rows of 336 partitions. It prints the rows, their bytes, and the growth of the process's peak memory.
PEAK = """
import sys
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.writing import FileWriter

def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024

numbers = range(50_000)
day = pa.array([n * 5 % 336 for n in numbers], pa.int32())
rows = pa.record_batch({"day": day, "a": pa.array([n * 7919 % 50_000 for n in numbers]), "b": pa.array([*numbers]),
                        **{f"t{k}": pa.array([f"{n * 31 % 9973:012d}" for n in numbers]) for k in range(4)}})
files = FileOptions(sort_by=tuple(sys.argv[2:3]) if sys.argv[2] else ())
writer = FileWriter(Storage(sys.argv[1]), "files", "%d.parquet", rows.schema, files, partition_by=["day"])
before = peak()
for _ in range(60):
    writer.write(rows)
entries = writer.close()
print(sum(entry.rows for entry in entries), 60 * rows.nbytes, peak() - before)
"""
MOST = 240 << 20  # 275 to 300 MiB if the pages of the temporary file stay in memory


def batch(rows: int, seed: int, days: int = 3) -> pa.RecordBatch:
    chance = random.Random(seed)
    numbers: list[Any] = [chance.randrange(10 ** 9) if chance.random() < 0.99 else None for _ in range(rows)]
    return pa.record_batch([pa.array([chance.randrange(days) for _ in range(rows)], pa.int32()),
                            pa.array(numbers, pa.int64()), pa.array([f"{n}" * 3 for n in numbers])], schema=SCHEMA)


def written(folder: Path, batches: list[pa.RecordBatch], options: FileOptions, **more: Any) -> tuple[FileEntry, ...]:
    writer = FileWriter(Storage(str(folder)), "files", "%d.parquet", SCHEMA, options, **more)
    for one in batches:
        writer.write(one)
    return writer.close()


def in_order(numbers: list[int | None]) -> bool:
    return numbers == sorted(numbers, key=lambda n: (n is None, n or 0))


@pytest.mark.parametrize("partition_by", [(), ("day",)])
@pytest.mark.parametrize("memory", [1 << 30, 1 << 16])
def test_rows_are_sorted_within_the_whole_file(
    tmp_path: Path, partition_by: tuple[str, ...], memory: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writing, "_DIVIDED_BYTES", memory)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    batches = [batch(5000, seed) for seed in range(8)]
    options = FileOptions(sort_by=("a",), group_bytes=1 << 16)
    entries = written(tmp_path, batches, options, partition_by=partition_by)
    assert len(entries) == (3 if partition_by else 1)
    found = []
    for entry in entries:
        file = pq.ParquetFile(tmp_path / entry.path)
        assert file.metadata.num_row_groups > 1
        assert file.metadata.row_group(0).sorting_columns
        numbers = file.read()["a"].to_pylist()
        assert in_order(numbers)
        found += numbers
    assert Counter(found) == Counter(n for one in batches for n in one["a"].to_pylist())
    assert not list(tmp_path.glob("*.arrow"))


@pytest.mark.parametrize("partition_by", [(), ("day",)])
def test_sorted_files_end_at_the_target_size(
    tmp_path: Path, partition_by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writing, "_DIVIDED_BYTES", 1 << 16)
    options = FileOptions(sort_by=("a",), target_bytes=1 << 18)
    entries = written(tmp_path, [batch(5000, seed) for seed in range(8)], options, partition_by=partition_by)
    assert len(entries) >= 4
    for entry in entries:
        assert entry.bytes < 1 << 19
        assert in_order(pq.read_table(tmp_path / entry.path)["a"].to_pylist())


@pytest.mark.parametrize("sort_by", [(), ("a",)])
def test_rows_of_many_partitions_are_one_row_group_each(
    tmp_path: Path, sort_by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    """Rows are divided eight times; a row group for each time would cost more than the rows."""
    monkeypatch.setattr(writing, "_DIVIDED_BYTES", 1 << 15)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    batches = [batch(5000, seed, days=50) for seed in range(8)]
    entries = written(tmp_path, batches, FileOptions(sort_by=sort_by), partition_by=("day",))
    assert [entry.partition for entry in entries] == [(("day", str(day)),) for day in dict.fromkeys(
        day for one in batches for day in one["day"].to_pylist())]
    for entry in entries:
        file = pq.ParquetFile(tmp_path / entry.path)
        assert file.metadata.num_row_groups == 1
        [(_, day)] = entry.partition
        wanted = [n for one in batches for d, n in zip(one["day"].to_pylist(), one["a"].to_pylist(), strict=True)
                  if str(d) == day]
        assert file.read()["a"].to_pylist() == (sorted(wanted, key=lambda n: (n is None, n or 0)) if sort_by
                                                else wanted)
    assert not list(tmp_path.glob("*.arrow"))


def test_rows_of_a_partition_that_are_a_row_group_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Later rows of a small partition come after its earlier ones."""
    monkeypatch.setattr(writing, "_DIVIDED_BYTES", 1 << 18)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    large = pa.record_batch([pa.array([0] * 20_000 + [1], pa.int32()), pa.array(range(20_001)),
                             pa.array(["text"] * 20_001)], schema=SCHEMA)
    writer = FileWriter(Storage(str(tmp_path)), "files", "%d.parquet", SCHEMA, FileOptions(group_bytes=1 << 18),
                        partition_by=("day",))
    for _ in range(3):
        writer.write(large)
    assert not writer._spill.is_empty
    assert (tmp_path / "files" / "0.parquet").exists()
    writer.write(pa.record_batch([pa.array([1, 0], pa.int32()), pa.array([-1, -2]), pa.array(["", ""])], schema=SCHEMA))
    first, second = sorted(writer.close(), key=lambda entry: entry.path)
    assert pq.read_table(tmp_path / first.path)["a"].to_pylist() == [*range(20_000)] * 3 + [-2]
    assert pq.read_table(tmp_path / second.path)["a"].to_pylist() == [20_000] * 3 + [-1]


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_small_files_have_no_dictionary_of_values_that_do_not_repeat(tmp_path: Path, codec: str):
    """Nor of numbers if the codec finds them itself."""
    schema = pa.schema([("day", pa.int32()), ("a", pa.int64()), ("text", pa.string()), ("half", pa.int64()),
                        ("few", pa.int64()), ("s", pa.struct([("b", pa.list_(pa.field("element", pa.int64())))]))])
    rows = 8000
    one = pa.RecordBatch.from_pylist([{"day": n % 2, "a": n, "text": f"{n % 50}", "half": n // 4,
                                       "few": n % 5, "s": {"b": [n % 9]}}
                                      for n in range(rows)], schema=schema)
    writer = FileWriter(Storage(str(tmp_path)), "files", "%d.parquet", schema, FileOptions(codec=codec),
                        partition_by=("day",))
    writer.write(one)
    for n, entry in enumerate(writer.close()):
        file = pq.ParquetFile(tmp_path / entry.path)
        group = file.metadata.row_group(0)
        assert {group.column(k).path_in_schema: group.column(k).has_dictionary_page for k in range(5)} == {
            "a": False, "text": True, "half": False, "few": codec == "snappy", "s.b.list.element": True}
        assert file.read().equals(pa.Table.from_batches([one.filter(pa.array([k % 2 == n for k in range(rows)]))]).drop(
            "day"))


@pytest.mark.parametrize("memory", [1 << 30, 1 << 15])
def test_a_task_may_have_more_partitions_than_open_files(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
):
    """The file of a partition is closed when the partition has no more rows."""
    monkeypatch.setattr(writing, "_DIVIDED_BYTES", memory)
    most = [0]
    begin = FileWriter._begin

    def counting(writer: FileWriter, *given: Any) -> Any:
        found = begin(writer, *given)
        most[0] = max(most[0], len(writer._open))
        return found

    monkeypatch.setattr(FileWriter, "_begin", counting)
    batches = [batch(5000, seed, days=300) for seed in range(4)]
    entries = written(tmp_path, batches, FileOptions(), partition_by=("day",))
    assert len(entries) == 300
    assert most == [1]
    assert sum(entry.rows for entry in entries) == 20_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak memory from Linux's /proc")
@pytest.mark.parametrize("sort_by", ["", "a"])
def test_rows_of_many_partitions_do_not_fill_the_memory(tmp_path: Path, sort_by: str):
    """Pages of the temporary file leave the memory while its rows are written."""
    found = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path), sort_by], check=True, capture_output=True,
                           text=True, timeout=300)
    rows, size, grown = map(int, found.stdout.split())
    assert rows == 3_000_000
    assert size > 230 << 20
    assert grown < MOST, f"{grown / (1 << 20):.0f} MiB"


@pytest.mark.parametrize("wanted", [True, False])
def test_statistics_are_computed_only_for_tables_that_store_them(tmp_path: Path, wanted: bool):
    [entry] = written(tmp_path, [batch(10, 1)], FileOptions(statistics=wanted))
    assert bool(entry.stats) == wanted
    if wanted:
        assert json.loads(entry.stats)["numRecords"] == 10


def test_a_writer_that_is_abandoned_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writing, "_DIVIDED_BYTES", 1 << 16)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    writer = FileWriter(Storage(str(tmp_path)), "files", "%d.parquet", SCHEMA, FileOptions(sort_by=("a",)),
                        partition_by=("day",))
    for seed in range(4):
        writer.write(batch(5000, seed))
    assert not writer._spill.is_empty
    writer.abandon()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("sort_by", [(), ("a",)])
@pytest.mark.parametrize("values", [
    pa.array([0.0, -0.0, float("nan")]), pa.array([0.0, -0.0, float("nan")], pa.float32()),
    pa.array([1_700_000_000_000_000_000 + n for n in range(3)], pa.timestamp("ns", "UTC"))])
def test_partition_values_that_python_takes_for_equal_or_cannot_hold(
    tmp_path: Path, values: pa.Array, sort_by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    """0.0 and -0.0 are equal as keys of a dict, NaN does not equal itself, and a datetime has no nanoseconds."""
    monkeypatch.setattr(writing, "_DIVIDED_BYTES", 1 << 10)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    schema = pa.schema([("x", values.type), ("a", pa.int64())])
    writer = FileWriter(Storage(str(tmp_path)), "files", "%d.parquet", schema, FileOptions(sort_by=sort_by),
                        partition_by=("x",))
    wanted: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for start, rows in ((0, 150), (150, 150), (300, 3)):
        numbers = range(start, start + rows)
        writer.write(pa.record_batch([values.take(pa.array([n % 3 for n in numbers])), pa.array(numbers)],
                                     schema=schema))
        for n in numbers:
            wanted[n % 3].append(n)
    entries = writer.close()
    assert len({entry.partition for entry in entries}) == 3
    assert [pq.read_table(tmp_path / entry.path)["a"].to_pylist() for entry in entries] == list(wanted.values())


def test_a_partition_value_of_nanoseconds_keeps_its_digits():
    values = pa.array([None, 1, -1, 1000, -2 ** 63], pa.timestamp("ns", "UTC"))
    assert writing._value_texts(values) == [
        None, "1970-01-01T00:00:00.000000001Z", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00.000001Z",
        "1677-09-21T00:12:43.145224192Z"]
    assert writing._value_texts(values.cast(pa.timestamp("ns")))[1] == "1970-01-01 00:00:00.000000001"


def test_two_keys_with_many_values_take_memory_for_the_combinations_that_are_there(tmp_path: Path):
    rows = 3000
    keys = [pa.array([str(n * step % 3001) for n in range(rows)]) for step in (1, 7)]
    codes, combinations = writing._codes(keys)
    assert len(combinations) == rows
    first, second = (key.to_pylist() for key in keys)
    assert [combinations[code] for code in codes.to_pylist()] == list(zip(first, second, strict=True))


@pytest.mark.parametrize("folders", [True, False])
def test_a_value_that_is_too_long_for_a_folder_fails_the_task(tmp_path: Path, folders: bool):
    rows = pa.record_batch([pa.array([1], pa.int32()), pa.array([1]), pa.array(["é" * 127])], schema=SCHEMA)
    with pytest.raises(IngestError, match=r"cannot partition by text: the value 'é+'… makes .* name of 259 bytes"):
        written(tmp_path, [rows], FileOptions(), partition_by=("text",), folders=folders, named=True)


@pytest.mark.parametrize(("value", "folder"), [
    ("a b", "p=a b"), ("é€😀", "p=é€😀"), ("", "p=__HIVE_DEFAULT_PARTITION__"), (None, "p=__HIVE_DEFAULT_PARTITION__"),
    ("a/b%", "p=a%2Fb%25"), ("\n\0", "p=%0A%00"), ("x:y='z'[1]", "p=x%3Ay%3D%27z%27%5B1%5D")])
def test_partition_folders_are_named_as_in_hive(value: str | None, folder: str):
    assert partition_folders([("p", value)]) == [folder]


@pytest.mark.parametrize(("value", "text"), [
    (True, "true"), (Decimal("1E-7"), "0.0000001"), (date(9, 1, 2), "0009-01-02"),
    (datetime(1, 1, 1, 2, tzinfo=timezone.utc), "0001-01-01T02:00:00.000000Z"),
    (datetime(1, 1, 1, 2), "0001-01-01 02:00:00.000000")])
def test_partition_values_as_text(value: Any, text: str):
    assert value_text(value) == text


def test_bounds_of_statistics():
    assert bound(datetime(1, 1, 1, tzinfo=timezone.utc)) == "0001-01-01T00:00:00.000000Z"
    assert bound(datetime(1, 1, 1)) == "0001-01-01T00:00:00.000000"
    assert bound(1.5) is None  # the column may have NaN, which Parquet leaves out and engines sort last


def columns_of_many_values(rows: int) -> pa.Table:
    """Columns whose values repeat or not, of every type with differences, with their extremes and nulls."""
    chance = random.Random(5)
    made: dict[str, pa.Array] = {"few": pa.array([n % 7 for n in range(rows)], pa.int64()),
                                 "text": pa.array([f"{chance.random()}" for _ in range(rows)])}
    for name, type_ in (("i16", pa.int16()), ("i32", pa.int32()), ("i64", pa.int64()), ("day", pa.date32()),
                        ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us"))):
        most = {"i16": 2**15 - 1, "day": 2_932_896, "at": 2**57, "local": 2**57}.get(name, 2**(type_.bit_width - 1) - 1)
        numbers = [chance.randint(-most if name[0] == "i" else 0, most) for _ in range(rows - 3)]
        width = pa.int32() if type_.bit_width <= 32 else pa.int64()
        made[name] = pa.array([*numbers, -most if name[0] == "i" else 0, None, most], width).cast(type_)
    made["nested"] = pa.array([{"x": n, "l": [n, -n]} for n in range(rows)],
                              pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64()))]))
    return pa.table(made)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "none"])
@pytest.mark.parametrize("rows", [1000, 50_000])
def test_integers_of_many_values_are_stored_as_differences(tmp_path: Path, rows: int, codec: str):
    table = columns_of_many_values(rows)
    writer = FileWriter(Storage(str(tmp_path)), "files", "a-%d.parquet", table.schema, FileOptions(codec=codec))
    for batch in table.to_batches(7_000):
        writer.write(batch)
    [entry] = writer.close()
    found = pq.ParquetFile(tmp_path / entry.path)
    group = found.metadata.row_group(0)
    encodings = {group.column(n).path_in_schema: group.column(n).encodings for n in range(group.num_columns)}
    for name in ("i32", "i64", "day", "at", "local"):
        assert "DELTA_BINARY_PACKED" in encodings[name] and "RLE_DICTIONARY" not in encodings[name], name
    assert "RLE_DICTIONARY" not in encodings["text"]
    if rows == 50_000:
        assert "RLE_DICTIONARY" in encodings["few"]
    assert found.read() == table
    by_polars = pl.read_parquet(tmp_path / entry.path).to_arrow().select(table.column_names).cast(table.schema)
    assert by_polars == table
    by_duckdb = pa.table(duckdb.sql(f"from '{tmp_path / entry.path}'").arrow()).cast(table.schema)
    assert by_duckdb == table


def test_a_sample_is_of_all_rows(tmp_path: Path):
    """The first 20,000 rows have few values."""
    table = pa.table({"n": pa.array([*[0] * 18_000, *range(82_000)])})
    writer = FileWriter(Storage(str(tmp_path)), "files", "a-%d.parquet", table.schema, FileOptions(codec="snappy"))
    writer.write(table.to_batches()[0])
    [entry] = writer.close()
    group = pq.ParquetFile(tmp_path / entry.path).metadata.row_group(0)
    assert "DELTA_BINARY_PACKED" in group.column(0).encodings
