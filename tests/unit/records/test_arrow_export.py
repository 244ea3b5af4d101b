"""Arrow through the C data interface: what pyarrow, polars and DuckDB read is what was decoded."""

import gc
import os
import threading

import duckdb
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_encoders import CODECS, ZSTD, batch, message
from tests.core.records import Batch, Job, Pool

HEADERS = pa.list_(pa.field("item", pa.struct([
    pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary_view()),
]), nullable=False))
DEFAULT = pa.schema([
    pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("timestamp", pa.timestamp("ms", "UTC"), nullable=False),
    pa.field("timestamp_type", pa.int8(), nullable=False),
    pa.field("leader_epoch", pa.int32(), nullable=False),
    pa.field("key", pa.binary_view()),
    pa.field("value", pa.binary_view()),
])
SPARK = pa.schema([
    ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()),
    ("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")), ("timestampType", pa.int32()),
    ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
])
RECORDS = [
    (0, 0, b"key", b"short", [(b"h", b"x"), (b"n", None)]),
    (1, 5, None, b"v" * 100, []),
    (2, 6, b"", None, [("\u00e9\u20ac\U0001f600".encode(), b"y" * 50)]),
    (3, 7, b"k" * 13, b"", [(b"bad\xff\xc0\xaf\xed\xa0\x80", b"")]),
    (4, 8, b"k" * 12, b"w" * 12, []),
]


def decoded(data, pool=None, **options):
    job = Job(pool or Pool(), data, **options)
    job.run()
    assert job.report["code"] == 0, job.report
    job.release()
    return job.batches[0]


def exported(data, runs=((0, 3),), topics=("orders", "other"), **options):
    return Batch(decoded(data), list(topics), list(runs), **options)


def read(source, schema=None):
    out = pa.record_batch(source, schema=schema)
    out.validate(full=True)
    return out


def columns_of(rows):
    return {
        "offset": [r[0] for r in rows], "key": [r[2] for r in rows], "value": [r[3] for r in rows],
        "leader_epoch": [r[5] for r in rows], "timestamp_type": [r[6] for r in rows],
    }


def test_the_default_schema_and_values():
    out = read(exported(batch(RECORDS, base_offset=10, base_timestamp=1_700_000_000_000, leader_epoch=4)))
    assert out.schema.equals(DEFAULT)
    assert out.column("topic").to_pylist() == ["orders"] * 5
    assert out.column("partition").to_pylist() == [3] * 5
    assert out.column("offset").to_pylist() == [10, 11, 12, 13, 14]
    assert out.column("timestamp").cast(pa.int64()).to_pylist() == [1_700_000_000_000 + t for t in (0, 5, 6, 7, 8)]
    assert out.column("leader_epoch").to_pylist() == [4] * 5
    assert out.column("key").to_pylist() == [r[2] for r in RECORDS]
    assert out.column("value").to_pylist() == [r[3] for r in RECORDS]
    assert (out.column("key").null_count, out.column("value").null_count) == (1, 1)


def test_headers():
    out = read(exported(batch(RECORDS), headers=True))
    assert out.schema.equals(DEFAULT.append(pa.field("headers", HEADERS, nullable=False)))
    assert [[(h["key"], h["value"]) for h in row] for row in out.column("headers").to_pylist()] == [
        [("h", b"x"), ("n", None)], [], [("\u00e9\u20ac\U0001f600", b"y" * 50)],
        [("bad" + "\ufffd" * 6, b"")], [],
    ]


@pytest.mark.parametrize(("nullable", "none"), [(True, None), (False, [])])
def test_headers_are_null_where_the_taker_allows_it(nullable, none):
    arena = decoded(batch([(n, *RECORDS[n % 5][1:]) for n in range(22)]))
    schema = pa.schema([SPARK.field("headers").with_nullable(nullable)])
    for start in range(9):
        rows = read(Batch(arena, ["t"], [(0, 0)], headers=True, start=start, stop=22), schema).column(0).to_pylist()
        assert [row == none for row in rows] == [not RECORDS[n % 5][4] for n in range(start, 22)]


def test_headers_where_no_record_has_any():
    out = read(exported(batch([(0, 0, b"k", b"v", [])]), headers=True))
    assert out.column("headers").to_pylist() == [[]]


def test_no_validity_where_nothing_is_null():
    out = read(exported(batch([(i, 0, b"k", b"v", []) for i in range(9)])))
    assert out.column("key").buffers()[0] is None


def test_key_and_value_are_not_copied():
    arena = decoded(batch([(i, 0, b"k" * 20, b"v" * 100, []) for i in range(1000)]))
    whole, part = (read(Batch(arena, ["t"], [(0, 0)], start=start)) for start in (0, 500))
    assert whole.column("value").buffers()[2].address == part.column("value").buffers()[2].address
    assert whole.column("offset").buffers()[1].address == part.column("offset").buffers()[1].address


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("schema", [None, SPARK])
def test_every_slice(codec, schema):
    arena = decoded(batch(RECORDS, codec=codec))
    whole = read(Batch(arena, ["t"], [(0, 0)], headers=True), schema)
    for start in range(6):
        for stop in range(start, 6):
            part = read(Batch(arena, ["t"], [(0, 0)], headers=True, start=start, stop=stop), schema)
            assert part.equals(whole.slice(start, stop - start))


def test_several_runs_of_several_partitions():
    data = b"".join(batch([(0, 0, None, b"v", [])], base_offset=i, leader_epoch=i // 2) for i in range(6))
    arena = decoded(data)
    runs = [(0, 7), (1, 8), (0, 9)]
    for schema, names in ((None, "topic"), (SPARK, "topic")):
        out = read(Batch(arena, ["a", "bb"], runs), schema)
        assert out.column(names).to_pylist() == ["a", "a", "bb", "bb", "a", "a"]
        assert out.column("partition").to_pylist() == [7, 7, 8, 8, 9, 9]
        out = read(Batch(arena, ["a", "bb"], runs, start=1, stop=5), schema)
        assert out.column(names).to_pylist() == ["a", "bb", "bb", "a"]


def test_the_schema_of_spark_exactly():
    out = read(exported(batch(RECORDS, base_timestamp=1_700_000_000_000), headers=True), SPARK)
    assert out.schema.equals(SPARK)
    assert out.column("topic").to_pylist() == ["orders"] * 5
    assert out.column("timestamp").cast(pa.int64()).to_pylist()[1] == 1_700_000_000_005_000
    assert out.column("timestampType").to_pylist() == [0] * 5
    assert out.column("key").to_pylist() == [r[2] for r in RECORDS]
    assert out.column("headers").to_pylist()[0] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_every_representation(kind, text):
    name = pa.string() if pa.types.is_dictionary(text) else text
    schema = pa.schema([
        pa.field("headers", pa.list_(pa.struct([("k", name), ("v", kind)]))), pa.field("value", kind),
        pa.field("topic", text), pa.field("key", kind), pa.field("timestamp", pa.timestamp("ms", "Europe/Berlin")),
    ])
    out = read(exported(batch(RECORDS), headers=True), schema)
    assert out.schema.equals(schema)
    assert out.column("value").to_pylist() == [r[3] for r in RECORDS]
    assert out.column("key").to_pylist() == [r[2] for r in RECORDS]
    assert out.column("headers").to_pylist()[0] == [{"k": "h", "v": b"x"}, {"k": "n", "v": None}]


@pytest.mark.parametrize(("field", "says"), [
    (pa.field("key", pa.string()), "column key: cannot be exported as Arrow type 'u'"),
    (pa.field("value", pa.int64()), "column value: cannot be exported as Arrow type 'l'"),
    (pa.field("nonsense", pa.binary()), "column nonsense: records have no such column"),
    (pa.field("partition", pa.int64()), "column partition: cannot be exported as Arrow type 'l'"),
    (pa.field("offset", pa.int32()), "column offset: cannot be exported as Arrow type 'i'"),
    (pa.field("topic", pa.binary()), "column topic: cannot be exported as Arrow type 'z'"),
    (pa.field("topic", pa.dictionary(pa.int8(), pa.string())), "column topic: cannot be exported as Arrow type 'c'"),
    (pa.field("key", pa.dictionary(pa.int32(), pa.binary())), "column key: cannot be exported as Arrow type 'i' with"),
    (pa.field("timestamp", pa.timestamp("us")), "column timestamp: cannot be exported as Arrow type 'tsu:'"),
    (pa.field("timestamp", pa.timestamp("ns", "UTC")), "column timestamp: cannot be exported as Arrow type 'tsn:UTC'"),
    (pa.field("timestamp_type", pa.string()), "column timestamp_type: cannot"),
    (pa.field("leader_epoch", pa.int8()), "column leader_epoch: cannot"),
    (pa.field("headers", pa.list_(pa.binary())), "column headers (item): cannot"),
    (pa.field("headers", pa.large_list(pa.binary())), "column headers: cannot"),
    (pa.field("headers", pa.list_(pa.struct([("k", pa.binary()), ("v", pa.binary())]))), "column headers (key): can"),
    (pa.field("headers", pa.list_(pa.struct([("k", pa.string()), ("v", pa.string())]))), "column headers (value): can"),
    (pa.field("headers", pa.list_(pa.struct([("k", pa.string())]))), "column headers (item): cannot"),
])
def test_an_export_error_names_the_impossible_column(field, says):
    with pytest.raises(ValueError, match="column") as error:
        pa.record_batch(exported(batch(RECORDS)), schema=pa.schema([field]))
    assert says in str(error.value)


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.binary()])
def test_nulls_where_the_schema_excludes_them(kind):
    schema = pa.schema([pa.field("key", kind, nullable=False)])
    with pytest.raises(ValueError, match="the requested schema does not allow nulls, but the null count is 1"):
        pa.record_batch(exported(batch(RECORDS)), schema=schema)
    out = read(Batch(decoded(batch(RECORDS)), ["t"], [(0, 0)], start=2), schema)
    assert out.schema.equals(schema)
    nested = pa.field("value", kind, nullable=False)
    schema = pa.schema([pa.field("headers", pa.list_(pa.struct([pa.field("key", pa.string()), nested])))])
    with pytest.raises(ValueError, match="column value: the requested schema does not allow nulls"):
        pa.record_batch(exported(batch(RECORDS)), schema=schema)


def test_a_timestamp_that_does_not_fit_microseconds():
    far = [(0, 0, None, b"v", [])]
    schema = pa.schema([("timestamp", pa.timestamp("us", "UTC"))])
    for when in (1 << 60, -(1 << 60)):
        with pytest.raises(ValueError, match="is out of range for microseconds"):
            pa.record_batch(exported(batch(far, base_timestamp=when, base_offset=77)), schema=schema)


def test_values_beyond_two_gib_do_not_fit_binary():
    """One block of 64 MiB, seen forty times: no memory is needed to have too much of it."""
    big = decoded(batch([(0, 0, None, bytes(64 << 20), [])]))
    arena = big.repeated(40)
    with pytest.raises(ValueError, match="column value: more than 2 GiB"):
        pa.record_batch(Batch(arena, ["t"], [(0, 0)]), schema=pa.schema([("value", pa.binary())]))
    assert read(Batch(arena, ["t"], [(0, 0)])).num_rows == 40


def test_messages_of_v0():
    out = read(exported(message(0, 0, b"k", b"v")))
    assert out.column("timestamp").cast(pa.int64()).to_pylist() == [-1]
    assert out.column("timestamp_type").to_pylist() == [-1]


def test_an_empty_slice():
    for schema in (None, SPARK):
        out = read(Batch(decoded(b""), ["t"], [], headers=True), schema)
        assert out.num_rows == 0


# ---- lifetime

def test_an_exported_child_array_keeps_its_memory():
    pool = Pool()
    batch_ = read(Batch(decoded(batch(RECORDS, codec=ZSTD), pool), ["t"], [(0, 0)], headers=True))
    value, headers = batch_.column("value"), batch_.column("headers")
    del batch_
    gc.collect()
    assert value.to_pylist() == [r[3] for r in RECORDS]
    del value
    assert headers.to_pylist()[2][0]["value"] == b"y" * 50
    del headers
    gc.collect()
    assert pool.live_bytes == 0


def test_capsules_that_are_not_imported_release_their_memory():
    pool = Pool()
    source = Batch(decoded(batch(RECORDS), pool), ["t"], [(0, 0)], headers=True)
    capsules = source.__arrow_c_array__()
    del source
    assert pool.live_bytes > 0
    del capsules
    assert pool.live_bytes == 0


def test_a_failed_export_releases_its_memory():
    pool = Pool()
    source = Batch(decoded(batch(RECORDS), pool), ["t"], [(0, 0)])
    with pytest.raises(ValueError, match="does not allow nulls"):
        pa.record_batch(source, schema=pa.schema([("value", pa.binary()), pa.field("key", pa.binary(), False)]))
    del source
    gc.collect()
    assert pool.live_bytes == 0


def test_released_from_many_threads():
    pool = Pool()
    arena = decoded(batch([(i, 0, b"k" * 20, os.urandom(50), []) for i in range(200)]), pool)
    gate = threading.Barrier(4)

    def work(arena):
        gate.wait()
        for _ in range(200):
            part = read(Batch(arena, ["t"], [(0, 0)], start=3))
            assert part.column("key")[0].as_py() == b"k" * 20

    threads = [threading.Thread(target=work, args=(arena,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threads.clear()
    del arena, thread
    gc.collect()
    assert pool.live_bytes == 0


# ---- other readers

def test_polars():
    frame = polars.DataFrame(exported(batch(RECORDS), headers=True))
    assert frame["value"].to_list() == [r[3] for r in RECORDS]
    assert frame["topic"].to_list() == ["orders"] * 5
    assert frame["headers"].to_list()[0] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]


@pytest.mark.parametrize("by_pyarrow", [True, pytest.param(False, marks=pytest.mark.skipif(
    int(duckdb.__version__.split(".")[0]) < 2, reason="DuckDB before 2.0 does not know __arrow_c_array__"))])
def test_duckdb(by_pyarrow):
    records = exported(batch(RECORDS), headers=True)
    if by_pyarrow:
        records = pa.table(pa.record_batch(records))  # found by its name in the query
    rows = duckdb.sql('select "offset", value, topic, headers[1].key from records order by 1').fetchall()
    assert [r[1] for r in rows] == [r[3] for r in RECORDS]
    assert [r[3] for r in rows] == ["h", None, "\u00e9\u20ac\U0001f600", "bad" + "\ufffd" * 6, None]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.none() | st.binary(max_size=30), st.none() | st.binary(max_size=30)), max_size=80),
       st.sampled_from(CODECS), st.data())
def test_any_decoded_records_are_exported(pairs, codec, data):
    arena = decoded(batch([(i, i, k, v, []) for i, (k, v) in enumerate(pairs)], codec=codec))
    start = data.draw(st.integers(0, len(pairs)))
    stop = data.draw(st.integers(start, len(pairs)))
    kind = data.draw(st.sampled_from([pa.binary_view(), pa.binary(), pa.large_binary()]))
    out = read(Batch(arena, ["t"], [(0, 0)], start=start, stop=stop), pa.schema([("key", kind), ("value", kind)]))
    assert list(zip(out.column(0).to_pylist(), out.column(1).to_pylist(), strict=True)) == pairs[start:stop]
