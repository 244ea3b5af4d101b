"""RecordBatch in the hands of pyarrow, pandas, polars, DuckDB and Parquet: every record, whatever outlives what."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from api_helpers import until

from kconsumer import OFFSET_BEGINNING, Consumer, KafkaException, RecordBatch, TopicPartition
from kconsumer.testing import EmbeddedCluster

pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")
polars = pytest.importorskip("polars", reason="polars is not installed")
duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")

NAMES = ["topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch", "key", "value"]
PARTITIONS = 3
RECORDS = 60
FEW = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])


def key(n: int) -> bytes | None:
    return None if n % 4 == 0 else f"k{n}".encode()


def value(n: int) -> bytes | None:
    return None if n % 5 == 0 else f"value {n} ".encode() * (1 + n % 7)


def headers(n: int) -> list[tuple[str, bytes | None]]:
    return [("n", str(n).encode()), ("null", None)] if n % 3 == 0 else []


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("frames", PARTITIONS)
        cluster.produce("frames", [{"key": key(n), "value": value(n), "partition": n % PARTITIONS,
                                    "headers": headers(n)} for n in range(RECORDS)])
        yield cluster.bootstrap_servers


def read(consumer: Consumer) -> RecordBatch:
    """All records of the topic in one batch, which a consumer returns once all are decoded."""
    while True:
        consumer.assign([TopicPartition("frames", p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        batch = consumer.consume_batch(timeout=30)
        if len(batch) == RECORDS:
            return batch
        consumer.unassign()


@pytest.fixture(scope="module")
def batch(address: str) -> RecordBatch:
    with Consumer({"bootstrap.servers": address}) as consumer:
        return read(consumer)  # the consumer is closed before any test begins


def expected(part: RecordBatch) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(message.partition(), message.offset(), message.key(), message.value()) for message in part]


def rows(table: pa.Table) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [tuple(row[name] for name in FEW.names) for row in table.select(FEW.names).to_pylist()]


def slices(batch: RecordBatch) -> list[RecordBatch]:
    return [batch, batch[7:31], batch[19:20], batch[5:5], batch[RECORDS:], RecordBatch()]


def test_the_batch_contains_the_produced_records(batch: RecordBatch) -> None:
    found = {(p, o): (k, v) for p, o, k, v in expected(batch)}
    assert found == {(n % PARTITIONS, n // PARTITIONS): (key(n), value(n)) for n in range(RECORDS)}


def test_to_arrow(batch: RecordBatch) -> None:
    for part in slices(batch):
        table = part.to_arrow()
        table.validate(full=True)
        assert isinstance(table, pa.Table) and table.column_names == NAMES
        assert rows(table) == expected(part)
        assert table.schema.equals(part.schema)
        assert rows(pa.table(part)) == rows(pa.Table.from_batches([pa.record_batch(part)])) == expected(part)


def test_to_arrow_in_another_layout(batch: RecordBatch) -> None:
    for part in slices(batch):
        table = part.to_arrow(FEW)
        assert table.schema.equals(FEW)
        assert [tuple(row.values()) for row in table.to_pylist()] == expected(part)
    for ask in (batch.to_arrow, batch.__arrow_c_stream__):
        with pytest.raises(KafkaException, match="no such column"):
            wrong = pa.schema([("nonsense", pa.int32())])
            ask(wrong if ask == batch.to_arrow else wrong.__arrow_c_schema__())


def test_headers_are_there_when_asked_for(batch: RecordBatch) -> None:
    with_headers = batch.with_headers()
    assert batch.schema.names == NAMES and with_headers.schema.names == [*NAMES, "headers"]
    wanted = [[(name, data) for name, data in message.headers() or []] for message in batch]
    assert sum(map(len, wanted)) == 2 * len(range(0, RECORDS, 3))

    def pairs(column: list[list[dict[str, object]]]) -> list[list[tuple[object, object]]]:
        return [[(header["key"], header["value"]) for header in row] for row in column]

    assert pairs(with_headers.to_arrow()["headers"].to_pylist()) == wanted
    assert pairs(with_headers.to_polars()["headers"].to_list()) == wanted
    assert pairs(list(with_headers.to_pandas()["headers"])) == wanted
    assert pairs([row[0] for row in duckdb.sql("select headers from with_headers").fetchall()]) == wanted


def test_to_pandas(batch: RecordBatch) -> None:
    for part in slices(batch):
        frame = part.to_pandas()
        assert list(frame.columns) == NAMES
        assert [tuple(row) for row in frame[FEW.names].itertuples(index=False)] == expected(part)
    assert str(batch.to_pandas()["topic"].dtype) == "category"
    assert str(batch.to_pandas()["timestamp"].dtype) == "datetime64[ms, UTC]"


def test_pandas_constructor_raises_instead_of_a_column_of_messages(batch: RecordBatch) -> None:
    for part in slices(batch):
        with pytest.raises(TypeError, match=r"use to_pandas\(\)"):
            pandas.DataFrame(part)


def test_to_polars(batch: RecordBatch) -> None:
    for part in slices(batch):
        for frame in (part.to_polars(), polars.DataFrame(part)):
            assert frame.columns == NAMES
            assert frame.select(FEW.names).rows() == expected(part)


def test_duckdb(batch: RecordBatch) -> None:
    for part in slices(batch):
        found = duckdb.sql('select partition, "offset", key, value from part')
        assert found.fetchall() == expected(part)
        assert duckdb.sql("select count(*), count(key) from part").fetchall() == [
            (len(part), sum(message.key() is not None for message in part))]
        twice = duckdb.sql('select count(*) from part a join part b using (partition, "offset")').fetchall()
        assert twice == [(len(part),)]


def test_parquet(batch: RecordBatch, tmp_path) -> None:
    import pyarrow.parquet as pq

    for number, part in enumerate(slices(batch)):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(part.to_arrow(FEW), path)
        assert [tuple(row.values()) for row in pq.read_table(path).to_pylist()] == expected(part)
    pq.write_table(batch.with_headers().to_arrow(), tmp_path / "all.parquet")
    again = pq.read_table(tmp_path / "all.parquet")
    assert rows(again) == expected(batch) and again.column_names == [*NAMES, "headers"]


class OnlyStream:
    """A batch as seen by a library that does not know arrays."""

    def __init__(self, batch: RecordBatch) -> None:
        self.batch = batch
        self.asked = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.asked += 1
        return self.batch.__arrow_c_stream__(requested_schema)


def test_the_stream_may_be_asked_for_again(batch: RecordBatch) -> None:
    for part in slices(batch):
        streamed = OnlyStream(part)
        found = duckdb.sql('select partition, "offset", key, value from streamed')
        assert found.fetchall() == expected(part)
        assert streamed.asked > 1
        assert rows(pa.table(streamed)) == expected(part)
        assert polars.DataFrame(streamed).select(FEW.names).rows() == expected(part)
        assert pa.RecordBatchReader.from_stream(streamed, FEW).read_all().schema.equals(FEW)


def test_a_stream_ends_after_its_one_array(batch: RecordBatch) -> None:
    reader = pa.RecordBatchReader.from_stream(batch)
    assert reader.read_next_batch().num_rows == RECORDS
    for _ in range(3):
        with pytest.raises(StopIteration):
            reader.read_next_batch()


def test_an_error_in_the_middle_of_a_stream_is_reported(batch: RecordBatch) -> None:
    """Whether a key is null is only known when the array is made, after the stream was handed over."""
    schema = pa.schema([pa.field("key", pa.binary(), nullable=False)])
    reader = pa.RecordBatchReader.from_stream(batch, schema)
    with pytest.raises(pa.ArrowInvalid, match="column key: the requested schema does not allow nulls"):
        reader.read_next_batch()


def test_streams_and_arrays_that_are_not_imported(batch: RecordBatch) -> None:
    for part in slices(batch):
        for _ in range(3):
            stream, array = part.__arrow_c_stream__(), part.__arrow_c_array__()
            del stream, array


def test_exported_objects_outlive_batch_and_consumer(address: str) -> None:
    consumer = Consumer({"bootstrap.servers": address})
    batch = read(consumer)
    wanted = expected(batch)
    table, frame = batch.to_arrow(), batch.to_polars()
    untouched, half_read = pa.RecordBatchReader.from_stream(batch), pa.RecordBatchReader.from_stream(batch[10:20])
    half = half_read.read_next_batch()
    capsule = batch.__arrow_c_stream__()
    consumer.close()
    del consumer, batch
    gc.collect()
    assert rows(table) == wanted and frame.select(FEW.names).rows() == wanted
    assert rows(pa.Table.from_batches([half])) == wanted[10:20]
    assert rows(untouched.read_all()) == wanted
    with pytest.raises(StopIteration):
        half_read.read_next_batch()

    class Taker:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return capsule

    assert rows(pa.table(Taker())) == wanted


def test_memory_is_given_back_when_the_last_stream_goes(address: str) -> None:
    """A stream pins the fetched memory, and no longer than it is there."""
    with Consumer({"bootstrap.servers": address}) as consumer:
        batch = read(consumer)
        consumer.unassign()  # no more responses
        stream = batch.__arrow_c_stream__()
        del batch
        until(lambda: consumer.metrics()["fetch_reserved_bytes"] == 0)
        pinned = consumer.metrics()["fetch_buffer_bytes"]
        assert pinned > 0
        del stream
        assert consumer.metrics()["fetch_buffer_bytes"] < pinned


def test_a_stream_is_read_and_released_by_another_thread(batch: RecordBatch) -> None:
    found: list[object] = []
    readers = [pa.RecordBatchReader.from_stream(batch[start:]) for start in range(20)]

    def work() -> None:
        while True:
            try:
                reader = readers.pop()
            except IndexError:
                return
            found.append(reader.read_all().num_rows)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [RECORDS - start for start in reversed(range(20))]


class Stream(ctypes.Structure):
    """ArrowArrayStream as any C program sees it."""


Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.c_void_p)),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.c_void_p)),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("private_data", ctypes.c_void_p),
]


def test_the_stream_as_c_sees_it(batch: RecordBatch) -> None:
    capsule = batch[:0].__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    stream = ctypes.cast(pointer(capsule, b"arrow_array_stream"), ctypes.POINTER(Stream))
    assert stream.contents.get_last_error(stream) is None
    room = (ctypes.c_int64 * 10)(*[-1] * 10)  # ArrowArray: length first, release in the ninth place
    assert stream.contents.get_next(stream, room) == 0 and (room[0], room[8] != 0) == (0, True)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(room[8])(ctypes.addressof(room))
    assert stream.contents.get_next(stream, room) == 0 and room[8] == 0
    stream.contents.release(stream)
    assert not stream.contents.release  # and the capsule, when it goes, releases nothing again


WITHOUT = """
import sys
sys.modules[{missing!r}] = None
from kconsumer import RecordBatch
batch = RecordBatch()
"""


@pytest.mark.parametrize(("missing", "code", "remedy"), [
    ("pyarrow", "batch.schema", "RecordBatch.schema needs pyarrow"),
    ("pyarrow", "batch.to_arrow()", "pip install 'kconsumer[arrow]'"),
    ("pyarrow", "batch.to_pandas()", "pip install pandas 'kconsumer[arrow]'"),
    ("pandas", "batch.to_pandas()", "RecordBatch.to_pandas() needs pandas"),
    ("polars", "batch.to_polars()", "pip install polars"),
])
def test_a_missing_package_is_named(missing: str, code: str, remedy: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT.format(missing=missing) + code],
                          capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ") and remedy in last


@pytest.mark.parametrize("code", ["len(batch.to_polars().columns) == 8",
                                  "len(__import__('duckdb').sql('from batch').columns) == 8"])
def test_polars_and_duckdb_need_no_pyarrow(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT.format(missing="pyarrow") + "assert " + code],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
