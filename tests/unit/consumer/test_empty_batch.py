"""A batch without rows, which is what consume_batch returns at its timeout, is Arrow data like any other."""

import pytest

from kconsumer import Consumer, RecordBatch


@pytest.fixture(params=["at the timeout", "made by hand"])
def batch(request):
    if request.param == "made by hand":
        return RecordBatch()
    with Consumer({"bootstrap.servers": "127.0.0.1:1"}) as consumer:
        return consumer.consume_batch(timeout=0)


def test_it_is_an_empty_sequence(batch):
    assert (len(batch), batch.nbytes, batch.next_offsets, list(batch), len(batch[:])) == (0, 0, {}, [], 0)


def test_an_export_that_is_not_imported_releases_its_memory(batch):
    for of in (batch, batch.with_headers(), batch[:]):
        for _ in range(3):
            schema, array = of.__arrow_c_array__()
            del schema, array


@pytest.mark.parametrize("headers", [False, True])
def test_pyarrow_takes_it(batch, headers):
    pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    taken = pa.record_batch(batch.with_headers() if headers else batch)
    taken.validate(full=True)
    assert taken.num_rows == 0 and ("headers" in taken.schema.names) == headers
    schema = pa.schema([("value", pa.large_binary()), ("topic", pa.utf8())])
    narrow = pa.record_batch(batch, schema=schema)
    narrow.validate(full=True)
    assert (narrow.num_rows, narrow.schema) == (0, schema)


def test_polars_takes_it(batch):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(batch)
    assert frame.height == 0 and frame.columns[:3] == ["topic", "partition", "offset"]
