"""Checks the words: idioms that a stranger does not understand, riddles, and long sentences.

    python tools/prose.py            check every file of the repository; print ``file:line: what``; fail on a finding
    python tools/prose.py FILE...    check these files

Owns: the rules below, and LEFT_OUT, the files that are not checked, each with its reason. A new file is checked as soon
as it is there. tests/unit/python/test_message_words.py checks the shape of error messages.

Threads: none (a tool). Never: changes a file.

An exception stands in the same line or the line before, with a reason: ``prose: allow behind: a TLS term``.
"""

from __future__ import annotations

import bisect
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
MOST_WORDS: Final = 25  # of a sentence in a page; inline code and figures count as one word each, links as their text

# Pattern (its * also matches /) → why these files are not checked.
LEFT_OUT: Final = {
    "tests/unit/python/test_message_words.py": "its cases are the idioms",
    "tools/fuzz/seeds/*": "inputs of parsers",
    "*.json": "measured figures",
    "*.png": "a picture has no text",
    "docs/benchmarks*.svg": "plots, in which matplotlib draws letters as curves",
    "*/go.sum": "checksums, written by go",
    "*/go.mod": "module names and versions",
    "*/py.typed": "a mark without words",
    "LICENSE": "the text of the Apache licence",
}

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
    r"(?:^|[.:;!?] )(?:Who|Whoever|What) (?!it |this |to |happens|does|you|is [a-z]+\?)[a-z]+\b(?![^.?]*\?)":
        "name the thing: a blocked thread, an encrypted response",
    r"\bwho(?:ever)? (?:is|has|was|had|does|asks|waits|decodes|reads|writes|takes|comes)\b":
        "name the thread or the user",
    r"\bin vain\b": "without effect",
}
RULES: Final = {re.compile(pattern, re.I if pattern[0] != "(" or "Who" not in pattern else 0): advice
                for pattern, advice in IDIOMS.items()}
ALLOWED: Final = re.compile(r"prose: allow ([\w ]+): \w")
# How the prose of a file is found, by its suffix or, without one, its name.
COMMENT: Final = {".py": "#", ".pyx": "#", ".pxd": "#", ".pxi": "#", ".pyi": "#", ".sh": "#", "run": "#",
                  "Makefile": "#", "Dockerfile": "#", ".hpp": "//", ".cpp": "//", ".java": "//", ".go": "//",
                  ".rs": "//", ".js": "//", ".map": "//", ".css": "//"}
WHOLE: Final = {".yml", ".yaml", ".toml", ".cff", ".in", "CODEOWNERS", ".gitignore", ".dockerignore"}
MARKUP: Final = {".svg", ".html"}  # all but the tags
NOTEBOOK: Final = ".ipynb"
STRING: Final = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"|/\*(.*?)\*/', re.S)
TAG: Final = re.compile(r"<style>.*?</style>|<[^>]*>|\{%.*?%\}", re.S)
# Not a sentence in a page: code, measured results, text that a tool takes from the source (and which is checked there),
# entries of the API reference, HTML comments, pictures, the targets of links.
NOT_PROSE: Final = re.compile(r"^ *```.*?^ *```$|^<!-- generated -->$.*?^<!-- end of generated -->$|"
                              r"^<!-- [a-z ]*results -->$.*?^<!-- end of [a-z ]*results -->$|"
                              r"^::: [\w.]+(?:\n    [^\n]*)*|<!--.*?-->|^\s*!\[.*?$|"
                              r"(?<=\])\([^()\s]*(?:\([^()\s]*\))?[^()\s]*\)", re.M | re.S)
CELL: Final = "\x1f"  # stands where a cell of a table ends
SENTENCE: Final = re.compile(rf"(?<=[.!?])[\"')*_]*\s+|{CELL}|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=#+ )")


class Text(NamedTuple):
    """A piece of prose of a file: where it starts, and what it says, with white space as in the file."""

    offset: int
    words: str


def texts(path: Path, source: str) -> Iterator[Text]:
    """The prose of a file: paragraphs of a page; comments and strings of source."""
    kind = path.suffix or path.name
    if kind == ".md":
        yield Text(0, page(source))
        return
    if kind in WHOLE:
        yield Text(0, source)
        return
    if kind in MARKUP:
        yield Text(0, TAG.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source))
        return
    if kind == NOTEBOOK:  # JSON: every line of a cell is a string
        yield from strings(source)
        return
    mark = COMMENT[kind]
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
    yield from strings(source)


def page(source: str) -> str:
    """A page without code, comments and the targets of links; every other character stays in its place."""
    text = NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    text = re.sub(r"`[^`\n]*`(?:,\s+`[^`\n]*`)*", lambda found: re.sub(r"[^\n]", "_", found[0]), text)
    edges = re.compile(r"(?<!\\)\||<br>")
    return re.sub(r"^\|.*$", lambda row: edges.sub(lambda edge: CELL.ljust(len(edge[0])), row[0]), text, flags=re.M)


def strings(source: str) -> Iterator[Text]:
    """The strings and block comments of source that have more than one word."""
    for found in STRING.finditer(source):
        group = found.lastindex or 0
        if " " in found[group]:
            yield Text(found.start(group), found[group])


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


def files() -> list[Path]:
    """Every file of the repository, but for LEFT_OUT."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.splitlines()
    unused = [pattern for pattern in LEFT_OUT if not any(fnmatchcase(name, pattern) for name in listed)]
    if unused:
        raise SystemExit(f"tools/prose.py: LEFT_OUT names {unused[0]}, which is not there")
    found = [ROOT / name for name in sorted(listed) if not any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)]
    for path in found:
        kind = path.suffix or path.name
        if kind not in {".md", NOTEBOOK, *COMMENT, *WHOLE, *MARKUP}:
            raise SystemExit(f"tools/prose.py: {path.relative_to(ROOT)}: unknown kind of file: add it to COMMENT, "
                             "WHOLE, MARKUP or LEFT_OUT")
    return [path for path in found if path.is_file()]


def main() -> int:
    paths = [Path(name).resolve() for name in sys.argv[1:]] or files()
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
