"""Reads the messages of the core from its sources: texts of exceptions, log lines, statuses and reasons of bad rows.

Every string with two words is a message, but for NOT_MESSAGES: Cython and C++ build texts in many ways. Texts that a
statement adds up are one message, with ``{}`` for each value. Sources of tests are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

# Beginning of a text → why it is not a message.
NOT_MESSAGES: Final = {
    "std::": "a C++ name of a Cython declaration",
    "crc32c": "an instruction of the processor",
    "columns are freed at exit too": "a static_assert, for the compiler",
    "Arrow's layout": "a static_assert, for the compiler",
    "Client Key": "a constant of SCRAM",
    "Server Key": "a constant of SCRAM",
    "kconsumer socket": "a name inside OpenSSL",
    "n,,": "the first message of OAUTHBEARER",
    "pandas 'kconsumer[arrow]'": "an argument of pip",
}
STRINGS: Final = {  # suffix → comments and docstrings, or a string
    ".pyx": re.compile(r'"""(?:.*?)"""|#[^\n]*|[bfu]?"(?P<text>(?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)*\'', re.S),
    ".hpp": re.compile(r'//[^\n]*|/\*.*?\*/|# *include[^\n]*|"(?P<text>(?:[^"\\\n]|\\.)*)"|'
                       r"'(?:[^'\\\n]|\\.)*'", re.S),
}
STRINGS[".pxd"] = STRINGS[".pxi"] = STRINGS[".pyx"]
# C++ inside a Cython source, which looks like a docstring.
VERBATIM: Final = re.compile(r'cdef extern from \*:\s*"""(.*?)"""', re.S)
# Between two strings of one message, and what the message has there.
JOINTS: Final = {
    re.compile(r"\s*"): "",
    re.compile(r"\s*\+(?:[^;:?\"]|::)+\+\s*"): "{}",
    re.compile(r"\s*\)?\s*\.append\(\s*"): "",
    re.compile(r"\s*\)?\s*\.append\([^;\n]+\)\s*\.append\(\s*"): "{}",
}
VALUES: Final = re.compile(r"\{[^{}\"]*\}|%[-0-9.]*(?:ll|z)?[dusx]")


class Message(NamedTuple):
    place: str
    text: str


def joint(gap: str) -> str | None:
    return next((between for pattern, between in JOINTS.items() if pattern.fullmatch(gap)), None)


def messages(source: str, suffix: str, name: str) -> Iterator[Message]:
    if suffix != ".hpp":
        for block in VERBATIM.finditer(source):
            lines = "\n" * source.count("\n", 0, block.start(1))  # so that a message has the line of the file
            yield from messages(lines + block[1], ".hpp", name)
    found = [match for match in STRINGS[suffix].finditer(source) if match["text"] is not None]
    text, start = "", 0
    for i, match in enumerate(found):
        text, start = (text, start) if text else ("", match.start())
        text += VALUES.sub("{}", match["text"])
        between = joint(source[match.end():found[i + 1].start()]) if i + 1 < len(found) else None
        if text and between is not None:
            text += between
            continue
        if " " in text.strip() and not text.startswith(tuple(NOT_MESSAGES)):
            yield Message(f"{name}:{source.count(chr(10), 0, start) + 1}", text)
        text = ""


def all_core_messages(root: Path) -> list[Message]:
    core = root / "src" / "_core"
    paths = [path for path in sorted(core.rglob("*")) if path.suffix in STRINGS]
    return [message for path in paths
            for message in messages(path.read_text(encoding="utf-8"), path.suffix, str(path.relative_to(root)))]
