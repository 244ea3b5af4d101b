"""Log lines carry words of brokers: nothing in them steers a terminal or begins another line."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.inside import log_lines


@pytest.mark.parametrize(("said", "shown"), [
    (b"\x1b]0;owned\x07", b"\\x1b]0;owned\\x07"),
    (b"one\r\ntwo", b"one\\x0d\\x0atwo"),
    (b"\xc2\x9b31m", b"\\x9b31m"),  # CSI as one code point
    (b"a\xe2\x80\xa8b", b"a\\u2028b"),
    (b"a\xe2\x80\xaeb", b"a\\u202eb"),
    (b"\xff\xc0\xaf\xed\xa0\x80", b"\\xff\\xc0\\xaf\\xed\\xa0\\x80"),  # no UTF-8: a stray byte, overlong, a surrogate
    (b"\xe2\x82", b"\\xe2\\x82"),
    ("Größe 10 € 😀".encode(), "Größe 10 € 😀".encode()),
    (b"", b""),
])
def test_control_characters_in_log_lines_are_escaped(said, shown):
    assert log_lines(said) == [shown, shown]


def test_a_line_has_an_end():
    (pushed, written) = log_lines(b"x" * 1_000_000)
    assert len(pushed) < 5000 and len(written) < 5000


@given(st.binary(max_size=300))
def test_any_bytes_become_one_printable_line(said):
    for line in log_lines(said.replace(b"\0", b"")):
        text = line.decode()
        assert len(text.splitlines()) <= 1
        assert not any(unicodedata.category(c) == "Cc" for c in text)
