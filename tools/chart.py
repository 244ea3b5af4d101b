"""Draws docs/rates.svg, the chart of README.md and docs/benchmarks.md, from the tables of the benchmarks.

    python tools/chart.py            write the chart
    python tools/chart.py --check    change nothing; fail if the chart differs from the figures

Owns: docs/rates.svg, and GROUPS, the figures that it shows. Its axis is linear and begins at zero. Threads: none (a
developer's tool). Never: measures anything, or states a machine or a date that the pages of benchmarks do not state.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from figures import ROOT, SOURCES, Figures, all_figures, two_digits

CHART: Final = ROOT / "docs" / "rates.svg"


class Bar(NamedTuple):
    """A bar: its label, and the figure's name as in a mark of tools/figures.py."""

    label: str
    figure: str
    unit: float = 1e6  # records in one of the figure's unit


K: Final = 1e3
GROUPS: Final = {
    "topic to Parquet table": (
        Bar("kconsumer ingest, 2 processes", "ingest; json-parquet; direct engine, 2 local processes; krate", K),
        Bar("kconsumer ingest on Spark", "ingest; json-parquet; direct engine on Spark; krate", K),
        Bar("Spark's own pipeline", "ingest; json-parquet; Spark's own pipeline; krate", K)),
    "Spark, raw records": (
        Bar("kconsumer's source", "spark; small; kconsumer; rate"),
        Bar("Spark's source", "spark; small; Spark's source; rate")),
    "poll loop": (
        Bar("kconsumer", "plain; kconsumer poll; rate"),
        Bar("confluent-kafka", "plain; confluent-kafka poll; rate")),
    "poll loop, 10 kB records": (
        Bar("kconsumer", "10kB; kconsumer poll; rate"),
        Bar("confluent-kafka", "10kB; confluent-kafka poll; rate")),
    "asyncio, one by one": (
        Bar("kconsumer, async for", "aio; aio for; rate"),
        Bar("aiokafka, getone", "aio; aiokafka getone; rate"),
        Bar("confluent-kafka, poll", "aio; AIOConsumer poll; rate")),
    "asyncio, lists": (
        Bar("kconsumer, consume", "aio; aio consume; rate"),
        Bar("confluent-kafka, consume", "aio; AIOConsumer consume100; rate"),
        Bar("aiokafka, getmany", "aio; aiokafka getmany; rate")),
}

_WIDTH, _LEFT, _RIGHT = 900, 430, 850  # of the picture; of the axis
_TOP, _PITCH, _HEIGHT, _GAP = 54, 20, 14, 12
_MEASURED: Final = re.compile(r"^Measured (\d{4}-\d\d-\d\d).*? on (\d+ cores \([^;)]+)", re.M)
_HEAD: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" \
aria-labelledby="t d"
     font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="12.5" fill="#1b1f24">
  <title id="t">Rates of kconsumer and of other clients</title>
  <desc id="d">Bars with a linear axis. {spoken}</desc>
  <rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>
  <text x="20" y="28" font-size="15" font-weight="600">Million records per second: a longer bar is better</text>
"""


def conditions(pages: str) -> str:
    """Return machine and dates of the pages' measurements.

    Raises:
        ValueError: the pages name several machines, or none.
    """
    found = _MEASURED.findall(pages)
    machines = {machine + ")" for _, machine in found}
    if len(machines) != 1:
        raise ValueError(f"the measurements name {len(machines)} machines: {sorted(machines)}; the chart needs one")
    dates = sorted(date for date, _ in found)
    return f"Measured from {dates[0]} to {dates[-1]} on {machines.pop()}, which the broker shares."


def _text(words: str) -> str:
    return escape(words, quote=False)


def drawn(figures: Figures, measured: str) -> str:
    """Return the chart."""
    rates = {title: [figures.value(bar.figure) * bar.unit / 1e6 for bar in bars] for title, bars in GROUPS.items()}
    most = int(max(map(max, rates.values()))) + 1
    scale = (_RIGHT - _LEFT) / most
    bars_end = _TOP + sum(len(bars) * _PITCH + _GAP for bars in GROUPS.values())
    height = bars_end + 84
    lines = []
    for tick in range(most + 1):
        x = _LEFT + tick * scale
        lines.append(f'<path d="M{x:.1f} {_TOP - 8}V{bars_end - 4}" stroke="#d0d7de"/>')
        lines.append(f'<text x="{x:.1f}" y="{bars_end + 12}" text-anchor="middle" fill="#57606a">{tick}</text>')
    y = _TOP
    spoken = []
    for title, bars in GROUPS.items():
        lines.append(f'<text x="20" y="{y + 12}" font-weight="600">{_text(title)}</text>')
        for bar, rate in zip(bars, rates[title], strict=True):
            colour = "#0550ae" if bar.label.startswith("kconsumer") else "#8c959f"
            lines += [f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">{_text(bar.label)}</text>',
                      f'<rect x="{_LEFT}" y="{y}" width="{rate * scale:.1f}" height="{_HEIGHT}" fill="{colour}"/>',
                      f'<text x="{_LEFT + rate * scale + 5:.1f}" y="{y + 12}">{two_digits(rate)}</text>']
            y += _PITCH
        y += _GAP
        spoken.append(f"{title}: " + ", ".join(f"{bar.label} {two_digits(rate)}"
                                               for bar, rate in zip(bars, rates[title], strict=True)) + ".")
    notes = (measured + " Medians.",
             "Compare bars of one group: the groups ran on different days, and the machine's speed varied.",
             "Records of 100 bytes; to Parquet: JSON of 221 bytes. confluent-kafka's poll loop has "
             "fetch.queue.backoff.ms=10.")
    lines += [f'<text x="20" y="{bars_end + 36 + 17 * at}" fill="#57606a">{_text(note)}</text>'
              for at, note in enumerate(notes)]
    head = _HEAD.format(width=_WIDTH, height=height, spoken=_text(" ".join(spoken)))
    return head + "".join(f"  {line}\n" for line in lines) + "</svg>\n"


def main() -> int:
    pages = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in SOURCES)
    made = drawn(Figures(all_figures()), conditions(pages))
    if "--check" not in sys.argv[1:]:
        CHART.write_text(made, encoding="utf-8")
    elif not CHART.exists() or CHART.read_text(encoding="utf-8") != made:
        print(f"{CHART.relative_to(ROOT)} is not what the figures show: run python tools/chart.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
