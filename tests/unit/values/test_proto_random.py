"""Protobuf values as columns against google.protobuf: random schemas, random messages, damaged bytes."""

import os

import pytest

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proto_messages import decoded
from proto_random import (
    damaged,
    parsed,
    plain,
    random_bytes,
    random_class,
    row_of,
)

from kconsumer.decoding import Protobuf

examples = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "80"))
# What google.protobuf lets pass: text that Arrow must not have, times beyond the column, field 0 in unknown groups.
STRICTER = {"not valid UTF-8", "the number does not fit the type", "not a valid field number or wire type"}
MISSING = "a required field is missing"
relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples)
seeds = st.randoms(use_true_random=False, note_method_calls=False)


@relaxed
@given(seeds)
def test_as_google_protobuf_reads_them(draw):
    cls = random_class(draw)
    rows = [random_bytes(draw, cls) for _ in range(8)]
    found, bad = decoded(Protobuf(cls, enums="int"), rows)
    made = [parsed(cls, row) for row in rows]
    assert bad == {i: MISSING for i, one in enumerate(made) if not one.IsInitialized()}
    assert [plain(row) for i, row in enumerate(found) if i not in bad] == [
        row_of(one) for i, one in enumerate(made) if i not in bad]


@relaxed
@given(seeds)
def test_damaged_as_google_protobuf_reads_them(draw):
    # Without maps: google.protobuf (upb) drops entries that have unknown fields.
    cls = random_class(draw, maps=False)
    rows = [damaged(draw, random_bytes(draw, cls)) for _ in range(8)]
    found, bad = decoded(Protobuf(cls, enums="int"), rows)
    for i, row in enumerate(rows):
        made = parsed(cls, row)
        if made is None:
            assert i in bad, row
        elif i in bad:
            assert bad[i] in STRICTER or (bad[i] == MISSING and not made.IsInitialized()), row
        else:
            assert made.IsInitialized() and plain(found[i]) == row_of(made)


@relaxed
@given(seeds)
def test_chosen_columns_equal_the_columns_of_a_full_decode(draw):
    cls = random_class(draw, required=False)  # a row may lack one of the columns that are not chosen
    rows = [random_bytes(draw, cls) for _ in range(4)]
    whole = Protobuf(cls)
    names = [entry.name for entry in whole.type.children]
    chosen = tuple(draw.sample(names, draw.randint(0, len(names))))
    found, _ = decoded(whole, rows)
    some, bad = decoded(Protobuf(cls, columns=chosen), rows)
    assert not bad and whole.select(chosen) == Protobuf(cls, columns=chosen)
    assert [plain(row) for row in some] == [plain({name: row[name] for name in chosen}) for row in found]
