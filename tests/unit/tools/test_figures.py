"""Figures that pages quote: read from the tables of the benchmarks, written into marks, and refused elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import figures  # noqa: E402

PAGE = """
| client | M records/s |
| --- | --- |
| before any section | 1 |

### plain: 100 B

| client | M records/s | times confluent-kafka's rate |
| --- | --- | --- |
| kconsumer poll | 5.41 (4.27-7.39) | 6.97 (4.85-8.06) |
| raw socket | 16.5 | - |

### Latency, produce to poll

| client | p50, ms |
| --- | --- |
| kconsumer | 0.474 (0.390-0.750) |

### Seconds until all partitions flow again, after the end of the fault

| fault | scene | runs | kconsumer, classic | confluent, classic |
| --- | --- | --- | --- | --- |
| cut of 30 s, both directions | `cut_30` | 1 | 0.8 | > 150 |

### Idle

| client | partitions | % of a core |
| --- | --- | --- |
| kconsumer | 10,000 | 0.043 |
"""
FLOWS = "Seconds until all partitions flow again; cut of 30 s, both directions"


@pytest.fixture
def found() -> figures.Figures:
    return figures.Figures({name: figures.figures_of(PAGE)
                            for name in ("benchmarks.md", "benchmarks-spark.md", "reliability.md")})


@pytest.mark.parametrize(("what", "shown"), [
    ("plain; kconsumer poll; rate", "5.4"),
    ("plain; kconsumer poll; times", "7"),
    ("plain; kconsumer poll; rate / plain; raw socket; rate", "33 %"),
    ("Latency; kconsumer; p50, ms", "0.47"),
    ("Idle; kconsumer 10,000; core", "0.043"),
    ("spark; plain; raw socket; rate", "16"),
    (f"reliability; {FLOWS}; kconsumer, classic", "0.8"),
])
def test_a_mark_is_filled(found: figures.Figures, what: str, shown: str):
    assert figures.filled(f"a <!-- figure: {what} -->9<!-- /figure --> b", found) == (
        f"a <!-- figure: {what} -->{shown}<!-- /figure --> b")


@pytest.mark.parametrize("mark", ["<!--  figure: plain; kconsumer poll; rate -->",
                                  "<!--figure:plain; kconsumer poll; rate-->"])
def test_a_mark_with_other_spaces_is_filled_too(found: figures.Figures, mark: str):
    """Such a mark in DESIGN.md kept its old figure for many runs."""
    text = figures.filled(f"{mark}1<!-- /figure -->", found)
    assert text == "<!-- figure: plain; kconsumer poll; rate -->5.4<!-- /figure -->"


@pytest.mark.parametrize("what", ["plain; kconsumer poll; nonsense", "none; kconsumer poll; rate", "plain", "",
                                  "plain; raw socket; times", f"reliability; {FLOWS}; confluent, classic"])
def test_a_mark_that_names_nothing(found: figures.Figures, what: str):
    with pytest.raises(figures.FigureError, match="no figure"):
        figures.filled(f"<!-- figure: {what} -->9<!-- /figure -->", found)


@pytest.mark.parametrize("text", [
    "reads 5.4 M records/s", "12 to 18 M/s", "679 k rows/s", "10,000 records a second", "6 to 7 times what it does",
    "3.3 \u00d7 confluent", "3 times as fast", "0.04 % of a core", "95 % of one that asks", "2.5 times Spark's",
])
def test_a_figure_without_a_mark(text: str):
    assert [line for line, _ in figures.bare(f"first\n{text}\n")] == [2]


@pytest.mark.parametrize("text", [
    "100,000 records", "8 MiB", "tried 3 times", "```\n5.4 M records/s\n```", "5 s", "80 % of the token's life",
    "<!-- figure: plain; kconsumer poll; rate -->5.4<!-- /figure --> M records/s",
])
def test_figures_that_need_no_mark(text: str):
    assert list(figures.bare(text)) == []


def test_every_page_quotes_the_results():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "figures.py"), "--check"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_marks_do_not_break_tables():
    for page in figures.pages():
        for mark in re.findall(r"<!-- figure: [^>]*-->", page.read_text(encoding="utf-8")):
            assert "|" not in mark, page.name
