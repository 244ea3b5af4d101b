"""Text is checked to be UTF-8 as Python's strict decoder does it, wherever in a string the bytes stand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kconsumer.decoding import Avro

DECODER = Avro("string")
# The ends of the ranges in RFC 3629's table, and the bytes beside them.
EDGES = (
    0x00,
    0x7F,
    0x80,
    0x8F,
    0x90,
    0x9F,
    0xA0,
    0xBF,
    0xC0,
    0xC1,
    0xC2,
    0xDF,
    0xE0,
    0xEC,
    0xED,
    0xEF,
    0xF0,
    0xF3,
    0xF4,
    0xF5,
    0xFF,
)


def framed(text):
    n, out = 2 * len(text), bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n]) + text


def is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def check(texts):
    bad = {error.row for error in DECODER.decode([framed(text) for text in texts]).errors}
    wrong = [text for i, text in enumerate(texts) if (i in bad) is is_utf8(text)]
    assert not wrong


@pytest.mark.parametrize("before", [0, 11, 13, 14, 15, 16, 30])
def test_all_pairs_and_the_edges_of_longer_sequences(before):
    pairs = [bytes([a, b]) for a in range(256) for b in range(0, 256, 5)]
    triples = [bytes([a, b, c]) for a in EDGES[8:] for b in EDGES for c in EDGES]
    fours = [bytes([a, b, c, 0xBF]) for a in EDGES[16:] for b in EDGES[2:] for c in EDGES[2:]]
    middle = pairs + triples + fours
    check([b"x" * before + text for text in middle] + [b"x" * before + text + b"y" * 20 for text in middle])


@settings(deadline=None)
@given(st.lists(st.one_of(st.text().map(str.encode), st.binary(), st.text(min_size=10).map(lambda t: t.encode()[:-1]))))
def test_any_bytes(texts):
    check(texts)
