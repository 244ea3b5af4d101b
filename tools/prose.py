"""Checks the words: idioms that a stranger does not understand, riddles, and long sentences.

    python tools/prose.py            check the files of CLEAN; print ``file:line: what`` and fail on any finding
    python tools/prose.py FILE...    check these files

Owns: the rules below, and CLEAN, the files that keep them. The list grows: a file enters it when it passes.
tests/unit/python/test_message_words.py checks the shape of error messages.

Threads: none (a tool). Never: changes a file.

An exception stands in the same line or the line before, with a reason: ``prose: allow behind: a TLS term``.
"""

from __future__ import annotations

import bisect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
CLEAN: Final = (
    "CONTRIBUTING.md", "SECURITY.md", "src/kconsumer/**/*.py", "src/pytest_kconsumer/**/*.py", "examples/*.py",
    "tools/*.py", "README.md", "docs/*.md",
    "src/_core/base/*.[hp]*", "src/_core/events/*.[hp]*",
    "src/_core/managers/*.[hp]*", "src/_core/state/*.[hp]*",
    "src/_core/values/*.[hp]*", "src/_core/consumer/*.[hp]*", "src/_core/network/*.[hp]*",
    "src/_core/protocol/*.[hp]*", "src/_core/records/*.[hp]*", "src/_core/simulation/*.[hp]*",
    "src/_core/librdkafka/*.[hp]*",
    "DESIGN.md", "benchmarks/**/*.py", "tests/*.py", "tests/cluster/*.py", "tests/groups/*.py", "tests/hostile/*.py",
    "tests/ingest/*.py", "tests/interop/*.py", "tests/simulation/*.py",
    "tests/embedded/*.py", "tests/kafka/*.py", "tests/spark/*.py",
    # Without tests/unit/python/test_message_words.py: its cases are the idioms.
    "tests/unit/*.py", "tests/unit/[!p]*/*.py", "tests/unit/p[!y]*/*.py", "tests/unit/python/*/*.py",
    "tests/unit/python/test_[!m]*.py",
)
MOST_WORDS: Final = 30  # of a sentence in a page; prose under 25 reads best, so this leaves room for names

# Pattern → what to write instead. All are matched without regard to case.
IDIOMS: Final = {  # prose: allow anew told mends whom: these lines name the idioms
    r"\banew\b": "again",
    r"\b(?:is|are|was|were|been|be) told\b|\btold (?:to|by|in|with|of)\b": "reported, known",
    r"\btells? (?:which|what|whether|how|so|of|it|them|no)\b": "reports, states",
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|fewer\b|less\b|\d)[a-z]": "is not a",
    r"\bof (?:its|their|his|our|your) own\b(?=\s*(?:[.,;:)]|$))|\bof theirs\b": "its own …, separate",
    r"\bthose (?:that|who|which)\b": "name the thing",
    r"\bsuch as there\b": "which exist",
    r"\b(?:is|are|was|were) to be (?!continued)": "must be, target",
    r"\b(?:it|be|is|are) had\b": "is available",
    r"\bwhom\b": "name the thread, member or user",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\b(?:nobody|somebody|anybody|everybody)\b": "no thread, no broker, any caller",
    r"\bbehind (?!a (?:proxy|firewall|load)|the scenes)": "after",
    r"\bmakes that\b": "causes",
    r"\bas long as there\b": "while",
    r"(?:^|[.:;!?] )(?:Who|Whoever|What) (?!it |this |to |happens|does|you|is [a-z]+\?)[a-z]+(?! [^.?]*\?)":
        "name the thing: a blocked thread, an encrypted response",
    r"\bwho(?:ever)? (?:is|has|was|had|does|asks|waits|decodes|reads|writes|takes|comes)\b":
        "name the thread or the user",
    r"\bin vain\b": "without effect",
}
RULES: Final = {re.compile(pattern, re.I if pattern[0] != "(" or "Who" not in pattern else 0): advice
                for pattern, advice in IDIOMS.items()}
ALLOWED: Final = re.compile(r"prose: allow ([\w ]+): \w")
COMMENT: Final = {".py": "#", ".pyx": "#", ".pxd": "#", ".pyi": "#", ".hpp": "//", ".sh": "#"}
STRING: Final = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', re.S)
# Not a sentence in a page: code, measured results, tables, headings, HTML.
NOT_PROSE: Final = re.compile(r"^```.*?^```$|^<!-- [a-z ]*results -->$.*?^<!-- end of [a-z ]*results -->$|"
                              r"^\|.*?$|^#+ .*?$|<!--.*?-->|^\s*!\[.*?$", re.M | re.S)
SENTENCE: Final = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")


class Text(NamedTuple):
    """A piece of prose of a file: where it starts, and what it says, with white space as in the file."""

    offset: int
    words: str


def texts(path: Path, source: str) -> Iterator[Text]:
    """The prose of a file: paragraphs of a page; comments and strings of source."""
    if path.suffix == ".md":
        yield Text(0, NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source))
        return
    mark = COMMENT[path.suffix]
    blank = re.compile(rf"^[ \t]*{mark}(?!:)[ \t]?|^.*?[ \t]{mark} ", re.M)
    block: list[str] = []
    start = offset = 0
    for line in [*source.splitlines(keepends=True), "\n"]:
        found = blank.match(line)
        if found and (line.lstrip().startswith(mark) or '"' not in line[found.end():]):
            whole = line.lstrip().startswith(mark)
            if not whole or not block:
                if block:
                    yield Text(start, "".join(block))
                block, start = [], offset
            block.append(" " * found.end() + line[found.end():])
        elif block:
            yield Text(start, "".join(block))
            block = []
        offset += len(line)
    for found in STRING.finditer(source):
        words = found[1] if found[1] is not None else found[2]
        if words and " " in words:
            yield Text(found.start(1 if found[1] is not None else 2), words)


def findings(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """(line, what) of everything in a file that breaks a rule without a reason beside it."""
    starts = [0, *(found.end() for found in re.finditer("\n", source))]
    lines = source.splitlines()

    def allowed(line: int, words: str) -> bool:
        near = ALLOWED.search("\n".join(lines[max(0, line - 2):line]))
        return near is not None and any(word in words.lower() for word in near[1].lower().split())

    seen: set[tuple[int, str]] = set()
    for text in texts(path, source):
        flat = re.sub(r"`[^`\n]*`", lambda found: "_" * len(found[0]), text.words)
        joined = re.sub(r"\s", " ", flat)
        for rule, advice in RULES.items():
            for found in rule.finditer(joined):
                line = bisect.bisect_right(starts, text.offset + found.start())
                what = found[0].strip(" .:;")
                if not allowed(line, found[0]) and (line, what) not in seen:
                    seen.add((line, what))
                    yield line, f"{what!r}: write: {advice}"
        if path.suffix == ".md":
            yield from long_sentences(flat, starts)


def long_sentences(flat: str, starts: list[int]) -> Iterator[tuple[int, str]]:
    begin = 0
    for end in [*(found.start() for found in SENTENCE.finditer(flat)), len(flat)]:
        count = len(re.findall(r"[\w'/-]*\w", flat[begin:end]))
        if count > MOST_WORDS:
            line = bisect.bisect_right(starts, begin + len(flat[begin:end]) - len(flat[begin:end].lstrip()))
            yield line, f"a sentence of {count} words: at most {MOST_WORDS}"
        begin = end


def clean_files() -> list[Path]:
    files: list[Path] = []
    for pattern in CLEAN:
        found = sorted(ROOT.glob(pattern))
        if not found:
            raise SystemExit(f"tools/prose.py: CLEAN names {pattern}, which is not there")
        files += found
    return files


def main() -> int:
    paths = [Path(name).resolve() for name in sys.argv[1:]] or clean_files()
    count = 0
    for path in paths:
        for line, what in sorted(findings(path, path.read_text(encoding="utf-8"))):
            print(f"{path.relative_to(ROOT)}:{line}: {what}")
            count += 1
    if count:
        print(f"prose: {count} finding(s)")
    return int(bool(count))


if __name__ == "__main__":
    sys.exit(main())
