"""Writes measured figures from docs/benchmarks.json into the pages that quote them.

Owns: docs/benchmarks.json, which holds the figures of the tables that `make bench ARGS=--publish` writes into
docs/benchmarks.md, docs/benchmarks-spark.md and docs/benchmarks-ingest.md, and the marked places in all pages.
Marks that begin with `reliability` quote the tables of docs/reliability.md, which tests/network/table.py writes.

    <!-- figure: plain; kconsumer poll; rate -->5.4<!-- /figure -->
    <!-- figure: plain; kconsumer poll; rate / plain; raw socket; rate -->33 %<!-- /figure -->

A mark names section, row and column; two of them are divided, and shown in percent. Figures have two digits.
Threads: none (a developer's tool). Never: measures anything. `--check` changes nothing, and fails where a page quotes
another figure, or a figure of performance stands outside a mark. Outside marks, only the pages of benchmarks have such
figures: those of experiments that the tables do not contain.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "docs" / "benchmarks.json"
SOURCES: Final = ("benchmarks.md", "benchmarks-spark.md", "benchmarks-ingest.md")

_RELIABILITY: Final = "reliability.md"  # has its own results file
# The first word of a mark → its page.
_PAGES: Final = {"spark": SOURCES[1], "ingest": SOURCES[2], "reliability": _RELIABILITY}
# Short names of columns in marks.
_COLUMNS: Final = {"M records/s": "rate", "CPU s per M records": "cpu", "times confluent-kafka's rate": "times",
                   "kconsumer's rate by this": "times", "a trigger, ms": "trigger", "% of a core": "core",
                   "k rows/s": "krate", "times the first way's rate": "times", "CPU s per M rows": "cpu"}
_SECTION: Final = re.compile(r"^### ([^:\n]+)(?::.*)?$")
_NUMBER: Final = re.compile(r"-?[\d,]*\.?\d+")
_MARK: Final = re.compile(r"<!--\s*figure:\s*(?P<what>[^>]*?)\s*-->(?P<shown>[^<]*)<!-- /figure -->")
_BLOCK: Final = re.compile(r"^```.*?^```$", re.M | re.S)
# Patterns of measured speeds. Sizes, limits and settings do not match.
_BARE: Final = re.compile(
    r"\d[\d.,]*(?: to \d[\d.,]*)?\s*(?:"
    r"(?:M|k|million|thousand)\s*(?:records|rows|messages)?\s*/\s*s\b"
    r"|(?:records|rows|messages)(?:/s| a second)"
    r"|(?:\u00d7|times)\s+(?:what|that|those|as|of|confluent|librdkafka|Spark|franz|the rate|faster)"
    r"|%\s+of\s+(?:a core|a raw socket|confluent|Spark|one that))", re.I)


class FigureError(Exception):
    """A mark without a figure, or a page with an error."""


def figures_of(text: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return section → row → column → median, from the tables of a page."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    section, columns = "", []
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            section, columns = heading[1].split(",")[0].strip(), []
        elif not line.startswith("|") or not section:
            columns = []
        elif not columns:
            columns = _cells(line)
        elif not set(line) <= set("|- "):
            cells = _cells(line)
            named = 2 if len(columns) > 1 and columns[1] == "partitions" else 1
            row = found.setdefault(section, {}).setdefault(" ".join(cells[:named]), {})
            for column, cell in list(zip(columns, cells, strict=True))[named:]:
                if number := _NUMBER.match(cell):
                    row[_COLUMNS.get(column, column)] = float(number[0].replace(",", ""))
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


Results = dict[str, dict[str, dict[str, dict[str, float]]]]


def all_figures() -> Results:
    """Return page → section → row → column → median."""
    return {name: figures_of((ROOT / "docs" / name).read_text(encoding="utf-8")) for name in (*SOURCES, _RELIABILITY)}


def transcribed(found: Results) -> str:
    """Return the required content of docs/benchmarks.json."""
    return json.dumps({name: found[name] for name in SOURCES}, indent=1, ensure_ascii=False) + "\n"


class Figures:
    """The figures by their names in marks; marks of other pages start with a word of _PAGES."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def shown(self, what: str) -> str:
        """Return the text of a mark.

        Raises:
            FigureError: the figure does not exist.
        """
        parts = [self.value(part) for part in re.split(r" / (?=[^;]+;)", what)]
        if len(parts) == 1:
            return two_digits(parts[0])
        return f"{100 * parts[0] / parts[1]:.0f} %"

    def value(self, place: str) -> float:
        """Return the median that a place names.

        Raises:
            FigureError: the figure does not exist.
        """
        words = [word.strip() for word in place.split(";")]
        page = SOURCES[0]
        if words[0] in _PAGES:
            page, words = _PAGES[words[0]], words[1:]
        try:
            section, row, column = words
            return self._results[page][section][row][column]
        except (KeyError, ValueError):
            raise FigureError(f"no figure {place!r} in {page}") from None


def two_digits(number: float) -> str:
    """Return a figure as pages show it."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{float(f'{number:.2g}'):g}"


def filled(text: str, figures: Figures) -> str:
    """Return a page with the current figures in its marks."""
    return _MARK.sub(lambda mark: f"<!-- figure: {mark['what']} -->{figures.shown(mark['what'])}<!-- /figure -->", text)


def bare(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of performance figures outside marks and code blocks."""
    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    # Marks are checked, so any word may follow them.
    plain = _MARK.sub(lambda mark: re.sub(r"[^\n]", "_", mark[0]), _BLOCK.sub(blank, text))
    for found in _BARE.finditer(plain):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def pages() -> list[Path]:
    """Return the pages that may quote figures."""
    return [ROOT / "README.md", ROOT / "DESIGN.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> int:
    check = "--check" in sys.argv[1:]
    wrong: list[str] = []
    found = all_figures()
    results = transcribed(found)
    if not RESULTS.exists() or RESULTS.read_text(encoding="utf-8") != results:
        if check:
            wrong.append(f"{RESULTS.relative_to(ROOT)} is not what the pages of benchmarks have")
        else:
            RESULTS.write_text(results, encoding="utf-8")
    figures = Figures(found)
    for page in pages():
        text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT)
        try:
            new = filled(text, figures)
        except FigureError as error:
            wrong.append(f"{name}: {error}")
            continue
        if new != text and check:
            wrong.append(f"{name}: a figure is not that of {RESULTS.name}")
        elif new != text:
            page.write_text(new, encoding="utf-8")
        if page.name not in SOURCES:
            wrong += [f"{name}:{line}: {said!r} is a figure without a mark" for line, said in bare(new)]
    for problem in wrong:
        print(problem, file=sys.stderr)
    if wrong and check:
        print("run python tools/figures.py; see its head for how figures are marked", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
