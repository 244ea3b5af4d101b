"""Columns at the limit of 32-bit offsets: the call fails, and no offset wraps."""

import struct

import pyarrow as pa
import pytest
from avro_encoders import encoded

from kconsumer.decoding import Avro

SIZE = 70_000_000
ITEMS = 65_536


def many(data, count):
    """A binary_view array whose rows are the same bytes."""
    view = struct.pack("<i4sii", len(data), data[:4], 0, 0)
    return pa.Array.from_buffers(pa.binary_view(), count, [None, pa.py_buffer(view * count), pa.py_buffer(data)])


@pytest.mark.slow  # 2 GiB of memory
def test_bytes_of_a_column():
    rows = many(encoded("bytes", bytes(SIZE))[0], 31)
    whole = pa.array(Avro('"bytes"').decode(rows[:30]))
    assert whole.buffers()[1][30 * 4 : 31 * 4].to_pybytes() == struct.pack("<i", 30 * SIZE)
    del whole
    with pytest.raises(OverflowError, match="more than 2 GiB do not fit 32-bit offsets"):
        Avro('"bytes"').decode(rows)


@pytest.mark.slow  # two thousand million items
def test_items_of_a_list():
    (row,) = encoded({"type": "array", "items": "boolean"}, [True] * ITEMS)
    with pytest.raises(OverflowError, match="column item: more than 2 GiB"):
        Avro({"type": "array", "items": "boolean"}).decode(many(row, 2**31 // ITEMS))
