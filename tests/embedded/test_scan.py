"""kconsumer.scan and scan_kafka on the embedded cluster: a topic as a table for every library."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import kconsumer
from kconsumer.decoding import Json
from kconsumer.errors import (
    ConfigurationError,
    KafkaError,
    KafkaException,
    SerializationError,
    TimeoutError,
    UnknownTopicOrPartitionError,
)
from kconsumer.scanning.bounds import Limits
from kconsumer.scanning.reading import read_spans
from kconsumer.testing import EmbeddedCluster

pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")
duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")

PARTITIONS = 3
RECORDS = 600
OWN = ("partition", "offset", "timestamp")
FIRST = datetime(2024, 5, 1, tzinfo=timezone.utc)
WHOLE = dict.fromkeys(range(PARTITIONS), (0, RECORDS // PARTITIONS))
VALUE = Json({"id": "int64", "carrier": "string"})


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(2) as started:
        started.create_topic("flights", PARTITIONS)
        started.create_topic("empty", PARTITIONS)
        started.create_topic("bad", 1)
        started.create_topic("named", 2)
        started.produce("named", [
            {"partition": n % 2, "timestamp": int(FIRST.timestamp() + n) * 1000,
             "value": json.dumps({"timestamp": "2025-01-02T00:00:00Z", "offset": n + 1_000, "partition": 7})}
            for n in range(20)])
        started.produce("flights", [
            {"key": b'{"k":%d}' % n, "partition": n % PARTITIONS, "timestamp": int(FIRST.timestamp() + n) * 1000,
             "value": json.dumps({"id": n, "carrier": "ABC"[n % 3], "more": [n]})} for n in range(RECORDS)])
        started.produce("bad", [{"value": b"{}" if n % 4 else b"x", "partition": 0} for n in range(8)])
        yield started


@pytest.fixture
def config(cluster: EmbeddedCluster) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.bootstrap_servers}


def ids(table: Any) -> list[int]:
    return sorted(table["id"].to_pylist())


def of(scan: Any) -> Any:
    return pa.RecordBatchReader.from_stream(scan).read_all()


def test_every_library_reads_it_and_reads_it_again(config):
    flights = kconsumer.scan(config, "flights", value=VALUE)
    query = "select carrier, count(*) as n, sum(id)::bigint as ids from flights group by all order by carrier"
    wanted = [(c, 200, sum(n for n in range(RECORDS) if "ABC"[n % 3] == c)) for c in "ABC"]
    for _ in range(2):
        assert duckdb.sql(query).fetchall() == wanted
    assert ids(of(flights)) == list(range(RECORDS))
    assert pl.DataFrame(flights)["id"].sort().to_list() == list(range(RECORDS))
    assert pl.from_arrow(flights).struct.field("id").sort().to_list() == list(range(RECORDS))
    if sys.version_info >= (3, 11):  # pandas 3 needs it; pandas 2 has no from_arrow
        assert sorted(pd.DataFrame.from_arrow(flights)["id"]) == list(range(RECORDS))
    assert pa.schema(flights) == pa.schema([("id", pa.int64()), ("carrier", pa.string())])


def test_its_methods_read_it(config, capsys):
    flights = kconsumer.scan(config, "flights", value=VALUE, progress=True)
    for table in (flights.to_arrow(), flights.to_polars(), flights.to_pandas()):
        assert sorted(map(int, table["id"])) == list(range(RECORDS))
    assert capsys.readouterr().err.count(f"\rflights: 100% {RECORDS} records, ") == 3
    with duckdb.connect() as connection:
        assert flights.to_duckdb(connection).aggregate("count(*), sum(id)::int").fetchall() == [(RECORDS, 179_700)]
    assert flights.to_duckdb().filter("id < 3").order("id").fetchall() == [(0, "A"), (1, "B"), (2, "C")]


@pytest.mark.parametrize("library", ["polars", "pandas", "duckdb", "pyarrow"])
def test_a_method_names_the_library_that_is_missing(config, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    method = "to_arrow" if library == "pyarrow" else f"to_{library}"
    with pytest.raises(ImportError, match=rf"^{method}\(\) needs {library} .*: pip install "):
        getattr(kconsumer.scan(config, "flights", value=VALUE), method)()


def test_records_written_meanwhile_are_read_by_the_next_stream(cluster, config):
    cluster.create_topic("growing", 1)
    growing = kconsumer.scan(config, "growing", value=VALUE)
    assert of(growing).num_rows == 0
    cluster.produce("growing", [{"value": b'{"id": 1}', "partition": 0}])
    assert ids(of(growing)) == [1]


@pytest.mark.parametrize("timeout", [None, -1])
def test_a_scan_may_have_no_time_limit(config, timeout):
    assert ids(of(kconsumer.scan(config, "flights", value=VALUE, timeout=timeout))) == list(range(RECORDS))


def test_records_are_in_order_whichever_thread_decodes(config):
    for threads in (1, 3):
        scan = kconsumer.scan(config, "flights", value=VALUE, key=Json({"k": "int32"}), max_records=37, threads=threads,
                              metadata=["partition", "offset", "headers"])
        table = of(scan)
        assert table.column_names == ["partition", "offset", "headers", "key", "id", "carrier"]
        rows = table.to_pylist()
        for p in range(PARTITIONS):
            part = [(row["offset"], row["id"], row["key"]["k"]) for row in rows if row["partition"] == p]
            assert part == [(n, n * PARTITIONS + p, n * PARTITIONS + p) for n in range(RECORDS // PARTITIONS)]


def time_of(n: int) -> datetime:
    return FIRST + timedelta(seconds=n)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"start": 190}, range(570, 600)),
        ({"start": 0, "end": 2}, range(6)),
        ({"start": 999}, ()),
        ({"end": "earliest"}, ()),
        ({"partitions": [1], "end": 2}, (1, 4)),
        ({"start": {0: 199, 1: "latest"}, "end": {2: 1}}, (597, 2)),
    ], ids=str)
def test_bounds(config, options, wanted):
    assert ids(of(kconsumer.scan(config, "flights", value=VALUE, **options))) == sorted(wanted)


def test_columns_of_the_records(config):
    table = of(kconsumer.scan(config, "flights", end=1, columns=["offset", "value", "headers"]))
    assert table.column_names == ["offset", "value", "headers"] and table.num_rows == PARTITIONS
    whole = of(kconsumer.scan(config, "flights", end=1))
    assert whole.column_names[0] == "topic" and sorted(whole["value"].to_pylist()) == sorted(table["value"].to_pylist())
    nested = of(kconsumer.scan(config, "flights", end=1, value=VALUE, columns=["carrier"], flatten=False))
    assert sorted(row["value"]["carrier"] for row in nested.to_pylist()) == ["A", "B", "C"]


def test_an_empty_topic_has_columns(config):
    assert of(kconsumer.scan(config, "empty", value=VALUE)).schema == pa.schema(
        [("id", pa.int64()), ("carrier", pa.string())])


def test_bad_records_are_counted_or_an_error(config, caplog):
    with caplog.at_level(logging.WARNING):
        assert of(kconsumer.scan(config, "bad", value=VALUE)).num_rows == 8
    assert [r.message for r in caplog.records] == [
        "2 of 8 records of bad could not be decoded and are null; the first error: not valid JSON",
            "bad: no record has a value for the fields 'id', 'carrier' (of 6 records): check the schema"]
    with pytest.raises((pa.ArrowInvalid, OSError), match=r"SerializationError: value of bad .* at offset 0"):
        of(kconsumer.scan(config, "bad", value=VALUE, on_error="raise"))
    with pytest.raises(SerializationError, match="at offset 0"):
        list(kconsumer.scan(config, "bad", value=VALUE, on_error="raise", threads=2).batches())
    batches = list(kconsumer.scan(config, "bad", value=VALUE).batches())
    assert sum(len(batch.errors) for batch in batches) == 2


def test_errors_reach_the_taker(config):
    nothing = kconsumer.scan(config, "nothing", value=VALUE)
    with pytest.raises(UnknownTopicOrPartitionError, match="topic nothing"):
        next(nothing.batches())
    with pytest.raises(duckdb.Error, match="topic nothing"):
        duckdb.sql("select * from nothing").fetchall()
    with pytest.raises(UnknownTopicOrPartitionError, match=r"flights \[9\]: there is no such partition"):
        next(kconsumer.scan(config, "flights", start={9: 0}).batches())
    away = kconsumer.scan({"bootstrap.servers": "127.0.0.1:1"}, "flights", timeout=0.3)
    with pytest.raises(KafkaException):
        next(away.batches())


def test_a_reader_that_stops_early_releases_everything(config):
    reader = pa.RecordBatchReader.from_stream(kconsumer.scan(config, "flights", value=VALUE, max_records=10, threads=2))
    assert len(reader.read_next_batch()) > 0
    del reader
    batches = kconsumer.scan(config, "flights", max_records=10).batches()
    next(batches)
    batches.close()


def test_a_refused_connection_ends_a_scan_at_once():
    began = time.monotonic()
    with pytest.raises(KafkaException) as caught:
        next(kconsumer.scan({"bootstrap.servers": "127.0.0.1:1"}, "flights", timeout=60).batches())
    assert caught.value.args[0].code() == KafkaError._ALL_BROKERS_DOWN
    assert caught.value.args[0].str() == ("cannot connect to Kafka: 127.0.0.1:1: connect to 127.0.0.1:1 failed: "
                                          "Connection refused: check bootstrap.servers")
    assert time.monotonic() - began < 30


def test_a_scan_calls_the_error_callback_of_its_properties():
    found: list[KafkaError] = []
    with pytest.raises(KafkaException):
        next(kconsumer.scan({"bootstrap.servers": "127.0.0.1:1", "error_cb": found.append}, "flights").batches())
    assert found[-1].code() == KafkaError._ALL_BROKERS_DOWN


def test_a_scan_that_stalls_fails(config):
    message = r"flights \[0\] at offset 200: no record arrived for 0.5 s, the scan ends at 201"
    stalled = pytest.raises(TimeoutError, match=message)
    with kconsumer.Consumer(config) as consumer, stalled:
        list(read_spans(consumer, "flights", {0: (200, 201)}, 10, 0.5))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"start": "now"}, "invalid start 'now'"), ({"end": -1}, "invalid end -1"),
        ({"start": True}, "invalid start True"),
        ({"start": datetime(2024, 1, 1)}, "needs a time zone"), ({"start": {0: "x"}}, "start of partition 0 'x'"),
        ({"metadata": ["offset"]}, "metadata= needs a decoder"), ({"columns": ["x"]}, "no column 'x'"),
        ({"key": VALUE, "columns": ["x"]}, "value= is missing"), ({"on_error": "skip"}, "on_error 'skip'"),
        ({"threads": 0}, "must be positive"), ({"max_records": 0}, "must be positive"),
    ], ids=str)
def test_arguments_that_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        kconsumer.scan({}, "t", **options)


@pytest.mark.parametrize(("given", "shown"), [("localhost:9092", "a str"), (None, "a NoneType")])
def test_properties_that_are_not_a_dict_are_refused(given, shown):
    with pytest.raises(TypeError, match=rf"expected a dict of configuration properties such as .*, not {shown}$"):
        kconsumer.scan(given, "flights")


def test_invalid_properties_are_refused_before_the_first_read(config, caplog):
    with pytest.raises(ConfigurationError, match=r"'bootstrap\.server': did you mean 'bootstrap\.servers'"):
        kconsumer.scan({"bootstrap.server": "localhost:9092"}, "flights")
    scan = kconsumer.scan({**config, "batch.size": 1}, "flights")
    assert not caplog.records
    of(scan)
    assert [record.message.partition(":")[0] for record in caplog.records] == ["ignoring batch.size"]


@pytest.mark.parametrize("partitions", [[9], [0, 9]], ids=str)
def test_a_partition_that_does_not_exist_is_an_error(config, partitions):
    scan = kconsumer.scan(config, "flights", partitions=partitions)
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        next(scan.batches())
    assert caught.value.args[0].str() == "flights [9]: there is no such partition"
    assert (caught.value.topic, caught.value.partition) == ("flights", 9)
    filtered = lazy(config, partitions=partitions).filter(pl.col("partition") == 0)
    with pytest.raises(Exception, match=r"flights \[9\]: there is no such partition"):
        filtered.collect()


def test_a_filter_may_name_a_partition_that_does_not_exist(config):
    assert lazy(config).filter(pl.col("partition") == 9).collect().height == 0
    assert lazy(config, partitions=[1]).filter(pl.col("partition") == 0).collect().height == 0


@pytest.mark.parametrize(("partitions", "error", "text"), [
    ("0", TypeError, r"invalid partitions '0': expected numbers of partitions such as \[0, 3\]"),
    (0, TypeError, "invalid partitions 0: expected numbers"),
    (["0"], TypeError, "invalid partition '0' in partitions: expected an int"),
    ([True], TypeError, "invalid partition True in partitions: expected an int"),
    ([0, -1], ValueError, "invalid partition -1 in partitions: the first partition is 0"),
], ids=str)
def test_partitions_that_are_refused(config, partitions, error, text):
    with pytest.raises(error, match=text):
        kconsumer.scan(config, "flights", partitions=partitions)


# ---- polars

@pytest.fixture
def spans(monkeypatch) -> list[dict[int, tuple[int, int]]]:
    """The ranges that scans resolved to."""
    from kconsumer.scanning import topic_scan

    seen = []
    original = topic_scan.resolve

    def resolve(*arguments: Any, **options: Any) -> Any:
        seen.append(original(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(topic_scan, "resolve", resolve)
    return seen


def lazy(config, **options):
    from kconsumer.polars import scan_kafka

    return scan_kafka(config, "flights", value=VALUE, **options)


def test_lazy_frames(config, spans):
    frame = lazy(config)
    assert frame.collect_schema().names() == ["partition", "offset", "timestamp", "id", "carrier"]
    found = frame.group_by("carrier").agg(pl.col("id").sum()).sort("carrier").collect()
    assert found["id"].to_list() == [sum(n for n in range(RECORDS) if n % 3 == c) for c in range(3)]
    assert frame.select(pl.len()).collect().item() == RECORDS
    assert frame.head(5).collect().height == 5
    assert frame.filter(pl.col("id") == 7).select("carrier", "offset").collect().rows() == [("B", 2)]
    assert frame.select("offset").collect().height == RECORDS


@pytest.mark.parametrize(
    ("predicate", "wanted", "read"),
    [
        (pl.col("partition") == 1, range(1, 600, 3), {1: (0, 200)}),
        ((pl.col("partition") == 1) & (pl.col("offset") >= 198), (595, 598), {1: (198, 200)}),
        ((pl.lit(2) > pl.col("offset")) & (pl.col("id") > 3), (4, 5), {p: (0, 2) for p in range(3)}),
        (pl.col("offset").is_between(5, 6) & (pl.col("partition") == 0), (15, 18), None),
        ((pl.col("timestamp") < time_of(2)), (0, 1), WHOLE),
        ((pl.col("partition") == 1) | (pl.col("offset") == 0), [0, 2, *range(1, 600, 3)], WHOLE),
        ((pl.col("partition") == 1) & (pl.col("partition") == 2), (), {}),
        (pl.col("offset") == 3, (9, 10, 11), {p: (3, 4) for p in range(3)}),
        (~(pl.col("partition") == 1), [n for n in range(600) if n % 3 != 1], WHOLE),
    ], ids=str)
def test_filters_are_pushed_down_and_hold(config, spans, predicate, wanted, read):
    found = lazy(config).filter(predicate).select("id").collect()
    assert sorted(found["id"].to_list()) == sorted(wanted)
    assert read is None or spans == [read]


def test_lazy_frames_of_raw_records_and_nested_values(config):
    from kconsumer.polars import scan_kafka

    raw = scan_kafka(config, "flights", end=1)
    assert raw.select("key").collect()["key"].sort().to_list() == [b'{"k":0}', b'{"k":1}', b'{"k":2}']
    assert raw.collect().height == 3
    nested = lazy(config, flatten=False, end=1, key=Json({"k": "int64"}))
    assert sorted(nested.select(pl.col("value").struct.field("id")).collect()["id"].to_list()) == [0, 1, 2]
    assert sorted(nested.select(pl.col("key").struct.field("k")).collect()["k"].to_list()) == [0, 1, 2]


def test_a_filter_that_is_not_understood_limits_nothing():
    from kconsumer.polars import limits_of

    class Meta:
        @staticmethod
        def serialize(format: str) -> str:
            raise TypeError(format)

    assert limits_of(type("Predicate", (), {"meta": Meta}), OWN) == Limits()
    assert limits_of(pl.col("offset") > 1.5, OWN) == Limits()
    assert limits_of(pl.col("partition").is_in([1, 2]), OWN) == Limits()
    assert limits_of((pl.col("offset") + 1) > 5, OWN) == Limits()
    assert limits_of(pl.col("offset") > 5, OWN) == Limits(least=6)


@pytest.mark.parametrize("predicate", [
    pl.col("timestamp") >= datetime(2025, 1, 1, tzinfo=timezone.utc), pl.col("offset") >= 1_000,
    pl.col("offset") < 2_000, pl.col("partition") == 7,
])
def test_a_filter_on_a_field_of_the_value_limits_nothing(config, predicate):
    from kconsumer.polars import limits_of, scan_kafka
    assert limits_of(predicate, ()) == Limits() != limits_of(predicate, OWN)
    value = Json({"timestamp": "timestamp[ms, UTC]", "offset": "int64", "partition": "int32"})
    frame = scan_kafka(config, "named", value=value, metadata=())
    assert frame.filter(predicate).collect().height == 20
    assert frame.filter(predicate).select(pl.len()).collect().item() == 20


def test_a_field_that_no_record_has_is_logged_once(config, caplog):
    assert of(kconsumer.scan(config, "flights", value=Json({"id": "int64", "carier": "string"}))).num_rows == RECORDS
    assert [record.message for record in caplog.records] == [
        f"flights: no record has a value for the field 'carier' (of {RECORDS} records): check the schema"]
    caplog.clear()
    for options in ({"value": VALUE}, {"value": Json({"id": "int64", "carier": "string"}), "columns": ["id"]}):
        of(kconsumer.scan(config, "flights", **options))
    assert not caplog.records


@pytest.mark.parametrize(("given", "shown"), [({"a": "int64"}, "a dict"), (Json, "the class Json"), ("json", "a str")])
@pytest.mark.parametrize("part", ["value", "key"])
def test_an_object_that_is_not_a_decoder_is_refused(config, part, given, shown):
    with pytest.raises(TypeError, match=rf"{part}: expected a decoder such as Json\(schema\), not {shown}"):
        kconsumer.scan(config, "flights", **{part: given})
