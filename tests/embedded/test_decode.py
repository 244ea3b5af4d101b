"""RecordBatch.decode on the embedded cluster: values and keys as typed columns, beside the records' own."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import threading
from collections.abc import Iterator

import pytest

from kconsumer import OFFSET_BEGINNING, Consumer, RecordBatch, TopicPartition
from kconsumer.decoding import Json, plan
from kconsumer.errors import KafkaException, SerializationError
from kconsumer.testing import EmbeddedCluster

pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
polars = pytest.importorskip("polars", reason="polars is not installed")
duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")

PARTITIONS = 3
RECORDS = 90
SCHEMA = {"id": "int64", "name": "string", "tags": ["string"], "price": "decimal(9, 2)"}
KEY = Json({"k": "int32"})


def value(n: int) -> bytes | None:
    """Tombstones, values that are inlined in a view, bad ones, and long ones."""
    if n % 10 == 0:
        return None
    if n % 10 == 1:
        return b"{}"
    if n % 10 == 2:
        return b'{"id":"no number"}'
    row = {
        "name": f"item é {n} " * (n % 5),
        "unknown": [n],
        "id": n,
        "tags": [str(i) for i in range(n % 4)],
        "price": n + 0.25,
    }
    return json.dumps(row).encode()


def expected(n: int) -> dict[str, object] | None:
    if n % 10 in (0, 2):
        return None
    if n % 10 == 1:
        return dict.fromkeys(SCHEMA)
    import decimal

    return {
        "id": n,
        "name": f"item é {n} " * (n % 5),
        "tags": [str(i) for i in range(n % 4)],
        "price": decimal.Decimal(f"{n}.25"),
    }


def key(n: int) -> bytes | None:
    return None if n % 7 == 0 else b"x" if n % 7 == 1 else b'{"k":%d}' % n


@pytest.fixture(scope="module")
def batch() -> Iterator[RecordBatch]:
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("items", PARTITIONS)
        cluster.produce(
            "items",
            [
                {"key": key(n), "value": value(n), "partition": n % PARTITIONS, "headers": [("n", b"%d" % n)]}
                for n in range(RECORDS)
            ],
        )
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers})
        while True:  # until one batch has all
            consumer.assign([TopicPartition("items", p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
            found = consumer.consume_batch(timeout=30)
            if len(found) == RECORDS:
                break
            consumer.unassign()
        consumer.close()
        yield found


def numbers(batch: RecordBatch) -> list[int]:
    """Which record each row is."""
    return [message.offset() * PARTITIONS + message.partition() for message in batch]


def test_values_of_all_records(batch):
    decoded = batch.decode(value=Json(SCHEMA))
    table = pa.table(decoded)
    table.validate(full=True)
    assert len(decoded) == RECORDS and table.column_names == ["value"]
    assert table["value"].to_pylist() == [expected(n) for n in numbers(batch)]
    rows = numbers(batch)
    assert [rows[bad.row] for bad in decoded.errors] == [n for n in rows if n % 10 == 2]
    bad = decoded.errors[0]
    assert (bad.field, bad.reason, bad.value) == ("id", "expected int64, found a string", batch[bad.row].value())


def test_keys_metadata_and_projection(batch):
    decoded = batch.decode(
        value=Json(SCHEMA),
        key=KEY,
        columns=["price", "id"],
        metadata=["topic", "partition", "offset", "headers"],
        flatten=True,
    )
    table = pa.table(decoded)
    table.validate(full=True)
    assert table.column_names == ["topic", "partition", "offset", "headers", "key", "price", "id"]
    for n, row in zip(numbers(batch), table.to_pylist(), strict=True):
        wanted = expected(n) or dict.fromkeys(SCHEMA)
        assert row == {
            "topic": "items",
            "partition": n % PARTITIONS,
            "offset": n // PARTITIONS,
            "headers": [{"key": "n", "value": b"%d" % n}],
            "key": {"k": n} if n % 7 > 1 else None,
            "price": wanted["price"],
            "id": wanted["id"],
        }
    rows = numbers(batch)
    assert [rows[bad.row] for bad in decoded.key_errors] == [n for n in rows if n % 7 == 1]


def test_slices_and_empty_batches(batch):
    for part in (batch[10:35], batch[:0], batch[80:]):
        table = pa.table(part.decode(value=Json(SCHEMA), key=KEY, flatten=True))
        assert table["id"].to_pylist() == [(expected(n) or {}).get("id") for n in numbers(part)]
        assert table["key"].to_pylist() == [{"k": n} if n % 7 > 1 else None for n in numbers(part)]
    keys = pa.table(batch.decode(key=KEY, flatten=True))
    assert keys.column_names == ["k"]


def test_flattened_fields_without_null_are_null_in_bad_records(batch):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string(), nullable=False)])
    table = pa.table(batch.decode(value=Json(schema), flatten=True))
    table.validate(full=True)
    assert table["id"].to_pylist() == [n if n % 10 > 2 else None for n in numbers(batch)]
    assert table["name"].null_count == sum(n % 10 < 3 for n in range(RECORDS))
    assert table.schema == pa.schema([("id", pa.int64()), ("name", pa.string())])


def test_a_flattened_field_of_type_null(batch):
    schema = plan.struct((plan.Field("id", plan.INT64, False), plan.Field("nothing", plan.NULL, False)))
    table = pa.table(batch.decode(value=Json(schema), flatten=True))
    assert table["nothing"].to_pylist() == [None] * RECORDS


def test_raise(batch):
    rows = numbers(batch)
    first = next(n for n in rows if n % 10 == 2)
    with pytest.raises(
        SerializationError,
        match=rf"value of items \[{first % PARTITIONS}\] at offset {first // PARTITIONS}: field id: "
        rf"expected int64, found a string \(byte 6\); 9 of {RECORDS} records",
    ):
        batch.decode(value=Json(SCHEMA), on_error="raise")
    with pytest.raises(SerializationError, match="key of items"):
        batch.decode(key=KEY, on_error="raise")
    good = next(i for i, n in enumerate(rows) if n % 10 == 3)
    assert len(batch[good : good + 1].decode(value=Json(SCHEMA), on_error="raise")) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, TypeError, "has no decoder: give value="),
        ({"key": KEY, "columns": ["k"]}, TypeError, "value= is missing"),
        ({"value": KEY, "columns": ["x"]}, ValueError, "no field 'x'"),
        ({"value": KEY, "columns": "k"}, TypeError, "columns: expected a list of names, not 'k'"),
        ({"value": KEY, "metadata": "topic"}, TypeError, "metadata: expected a list of names, not 'topic'"),
        ({"value": Json}, TypeError, "value: expected a decoder"),
        ({"key": {"k": "int32"}}, TypeError, "key: expected a decoder"),
        ({"value": KEY, "on_error": "skip"}, ValueError, "on_error 'skip'"),
        ({"value": KEY, "metadata": ["x"]}, ValueError, "no column 'x'"),
        ({"value": KEY, "metadata": ["value"]}, ValueError, "'value'"),
        ({"value": Json({"offset": "int64"}), "metadata": ["offset"], "flatten": True}, ValueError, "'offset'"),
    ],
    ids=str,
)
def test_arguments_that_are_refused(batch, arguments, error, text):
    with pytest.raises(error, match=text):
        batch.decode(**arguments)


def test_other_libraries_read_the_columns(batch):
    flat = batch.decode(value=Json(SCHEMA), flatten=True)
    ids = sorted(n for n in range(RECORDS) if n % 10 > 2)
    assert sorted(polars.DataFrame(flat)["id"].drop_nulls().to_list()) == ids
    assert duckdb.sql("select count(*), sum(id) from flat where id is not null").fetchall() == [(len(ids), sum(ids))]


def test_columns_outlive_the_batch_and_the_call(batch):
    decoded = batch[:].decode(value=Json(SCHEMA), metadata=["key"])
    table = pa.table(decoded)
    names = table["value"].chunk(0).field("name")
    del decoded, table
    gc.collect()
    assert names.to_pylist() == [(expected(n) or {}).get("name") for n in numbers(batch)]


def test_threads_share_a_decoder(batch):
    decoder = Json(SCHEMA)
    wanted = [expected(n) for n in numbers(batch)]
    found: list[bool] = []

    def work() -> None:
        found.extend(pa.table(batch.decode(value=decoder))["value"].to_pylist() == wanted for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


# ---- the result as Arrow and as frames

METADATA = ["topic", "offset", "timestamp", "headers", "key"]


def test_frames_have_the_same_rows_as_arrow(batch):
    decoded = batch.decode(value=Json(SCHEMA), metadata=["offset"], flatten=True)
    wanted = pa.table(decoded).to_pylist()
    assert decoded.to_arrow().to_pylist() == decoded.to_polars().to_dicts() == wanted
    assert decoded.schema == decoded.to_arrow().schema
    frame = decoded.to_pandas()
    assert list(frame.columns) == decoded.schema.names and frame["offset"].tolist() == [row["offset"] for row in wanted]


def test_a_stream_is_read_once_and_can_be_created_repeatedly(batch):
    decoded = batch.decode(value=Json(SCHEMA), metadata=METADATA)
    wanted = pa.table(decoded)
    for _ in range(2):
        reader = pa.RecordBatchReader.from_stream(decoded)
        assert reader.schema == wanted.schema and reader.read_all() == wanted
        with pytest.raises(StopIteration):
            reader.read_next_batch()
    reader = pa.RecordBatchReader.from_stream(batch[:].decode(value=Json(SCHEMA)))
    gc.collect()
    assert len(reader.read_all()) == RECORDS


def test_a_requested_schema_chooses_columns_and_the_types_of_metadata_columns(batch):
    decoded = batch.decode(value=Json({"id": "int64", "name": "string"}), metadata=METADATA, flatten=True)
    wanted = pa.schema([("id", pa.int64()), ("key", pa.binary()), ("topic", pa.string()),
                        ("timestamp", pa.timestamp("us", "UTC"))])
    table = decoded.to_arrow(wanted)
    assert table.schema == wanted
    whole = decoded.to_arrow()
    assert table["id"] == whole["id"] and table["key"].to_pylist() == whole["key"].to_pylist()
    assert set(table["topic"].to_pylist()) == {"items"}
    streamed = pa.RecordBatchReader.from_stream(decoded, schema=wanted)
    assert streamed.read_all() == table


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ([("nothing", pa.int64())], "column nothing: the decoded batch has no such column"),
        ([("id", pa.int32())], "column id: the Arrow type 'l' cannot be exported as 'i'"),
        ([("tags", pa.list_(pa.int64()))], "column tags: the Arrow type"),
        ([("offset", pa.int32())], "column offset: cannot be exported as Arrow type 'i'"),
    ], ids=["name", "type", "nested", "own"])
def test_requested_schemas_that_are_refused(batch, schema, text):
    decoded = batch.decode(value=Json(SCHEMA), metadata=["offset"], flatten=True)
    for export in (decoded.__arrow_c_array__, decoded.__arrow_c_stream__):
        with pytest.raises(KafkaException, match=text):
            export(pa.schema(schema).__arrow_c_schema__())


# ---- a schema from a look at the values

def test_infer_from_batches(batch):
    proposed = Json.infer(batch)
    assert str(proposed.type) == (
        "struct<id: json, name: string, unknown: list<int64>, tags: list<string>, price: float64>")
    assert proposed == Json.infer([batch[:40], batch[40:]])
    assert not batch.decode(value=proposed).errors
    assert str(Json.infer(batch, keys=True).type) == "struct<k: int64>"


def test_batches_say_why_they_are_not_pickled(batch):
    decoded = batch.decode(value=Json(SCHEMA), metadata=["offset"])
    for given, name in ((batch, "RecordBatch"), (decoded, "DecodedBatch")):
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"cannot pickle a {name}.*to_arrow"):
                copied(given)
    table = decoded.to_arrow()
    assert pickle.loads(pickle.dumps(table)) == table
    assert [m.offset() for m in pickle.loads(pickle.dumps(list(batch)))] == [m.offset() for m in batch]
