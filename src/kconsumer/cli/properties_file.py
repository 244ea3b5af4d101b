"""Reads a properties file as the Java client does: ``name=value``, ``name: value``, escapes, comments.

Owns: the grammar of properties files (java.util.Properties). Threads: the main thread. Never: knows a property; puts a
value into a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_BLANK: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_COMMENT: Final = re.compile(r"[#!]")
_ODD_BACKSLASHES: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_NAME: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Entry(NamedTuple):
    """One property of a file."""

    line: int  #: its first line, from 1
    name: str
    value: str


class PropertiesError(ValueError):
    """A file has an error. The message starts with the line number."""


def read_entries(text: str) -> list[Entry]:
    """Return the properties of a file, in order.

    Raises:
        PropertiesError: a line has no name, or an unknown escape.
    """
    entries = []
    for number, line in _logical_lines(text):
        name = _NAME.match(line)
        assert name is not None  # the name may be empty
        separator = _SEPARATOR.match(line, name.end())
        assert separator is not None
        if not name[0]:
            raise PropertiesError(f"line {number}: expected name=value")
        entries.append(Entry(number, _unescaped(name[0], number), _unescaped(line[separator.end():], number)))
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments; a trailing backslash joins a line with the next."""
    lines = iter(enumerate(_LINE_END.split(text), 1))
    for number, line in lines:
        whole = line.lstrip(_BLANK)
        if not whole or _COMMENT.match(whole):
            continue
        while _ODD_BACKSLASHES.search(whole):
            whole = whole[:-1] + next(lines, (0, ""))[1].lstrip(_BLANK)
        yield number, whole


def _unescaped(text: str, line: int) -> str:
    def meaning(found: re.Match[str]) -> str:
        escape = found[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape in _LETTERS:
            return _LETTERS[escape]
        if escape.isalnum():
            # Java drops such a backslash silently; librdkafka's files keep it. Both would change a password.
            raise PropertiesError(f"line {line}: unknown escape of a letter or digit: write \\\\ "
                                  "for a backslash")
        return escape

    plain = _ESCAPE.sub(meaning, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # \\u pairs make one character
