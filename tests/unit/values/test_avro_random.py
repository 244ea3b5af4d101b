"""Avro data as columns against fastavro: random schemas of writers and readers, random data, damaged bytes."""

import io
import os

import fastavro
from avro_encoders import encoded
from avro_random import Schemas, plain, row_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import decoded

from kconsumer.decoding import Avro

examples = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "80"))
relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples)
seeds = st.randoms(use_true_random=False, note_method_calls=False)
# What fastavro lets pass: it does not check short reads, booleans, 32 bits, a block's size and negative indices.
STRICTER = {
    "not valid UTF-8", "expected a boolean, found a byte that is neither 0 nor 1", "the number does not fit the type",
    "the items do not have the size that their block states", "the length is negative", "the enum has no such symbol",
    "the union has no such branch", "the value ends too early",
    "not a valid variable-length integer", "more items than the bytes can hold",
}


def read(data, writer, reader):
    """(whether fastavro has read all the bytes, the datum); None where it raises."""
    buffer = io.BytesIO(data)
    try:
        datum = fastavro.schemaless_reader(buffer, writer, reader)
    except Exception:  # of many types
        return None
    return buffer.tell() == len(data), datum


def schemas(draw):
    made = Schemas(draw)
    writer = made.row()
    reader = writer if made.is_reused or draw.random() < 0.3 else made.reader(writer)
    return made, writer, reader


@relaxed
@given(seeds)
def test_as_fastavro_reads_them(draw):
    made, writer, reader = schemas(draw)
    values = [made.value(writer) for _ in range(6)]
    rows = encoded(writer, *values)
    found, bad = decoded(Avro(reader, writer=writer), rows)
    parsed = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    for i, row in enumerate(rows):
        theirs = read(row, *parsed)
        if i in bad:  # text of bytes that are not UTF-8
            assert bad[i] in ("not valid UTF-8", "the enum has no such symbol"), row
        elif theirs is not None:
            assert plain(found[i]) == row_of(reader, theirs[1], made.named), row


@relaxed
@given(seeds)
def test_damaged_as_fastavro_reads_them(draw):
    made, writer, reader = schemas(draw)
    rows = [damaged(draw, row) for row in encoded(writer, *(made.value(writer) for _ in range(6)))]
    found, bad = decoded(Avro(reader, writer=writer), rows)
    parsed = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    for i, row in enumerate(rows):
        theirs = read(row, *parsed)
        if i not in bad and theirs is not None:
            assert theirs[0], row
            assert plain(found[i]) == row_of(reader, theirs[1], made.named), row
        elif i in bad and theirs is not None and theirs[0]:
            assert bad[i] in STRICTER, row


def damaged(draw, row):
    out = bytearray(row)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(out) + 1)
        match draw.randrange(4):
            case 0 if at < len(out):
                out[at] = draw.choice([0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, draw.randrange(256)])
            case 1:
                del out[at:]
            case 2:
                out[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 3)))
            case _:
                del out[at : at + 1]
    return bytes(out)
