"""Formats of text output, as far as no record is needed."""

from __future__ import annotations

import sys

import click
import pytest

from kconsumer.cli.output import open_writer, parse_format


@pytest.mark.parametrize(("template", "expected"), [
    ("", b""), ("plain", b"plain"), (r"a\tb\n", b"a\tb\n"), (r"\x00\xfF", b"\0\xff"), (r"\\n\0\r", b"\\n\0\r"),
    ("100%%", b"100%"), ("žluť\n", "žluť\n".encode()), ("\udcff", b"\xff"),
])
def test_plain_parts(template: str, expected: bytes):
    assert b"".join(part for part in parse_format(template, "utf-8", "utf-8") if isinstance(part, bytes)) == expected


def test_fields_stand_where_they_were_written():
    parts = parse_format("%k=%v;%%", "utf-8", "hex")
    assert [part if isinstance(part, bytes) else None for part in parts] == [None, b"=", None, b";", b"%"]


@pytest.mark.parametrize("template", ["%", "%x", "% k", "\\", r"\q", r"\x1", r"\xzz"])
def test_meaningless_values_are_refused(template: str):
    with pytest.raises(click.UsageError, match="unknown escape"):
        parse_format(template, "utf-8", "utf-8")


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_binary_output_is_not_for_a_terminal(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(click.UsageError, match=r"cannot write .* to a terminal"):
        open_writer(kind, None, None, "utf-8", "utf-8")


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_missing_pyarrow_is_named(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(click.UsageError, match=r"pip install 'kconsumer\[arrow\]'"):
        open_writer(kind, None, None, "utf-8", "utf-8")
