"""Owns: the report on the samples as Markdown: medians, paired ratios, targets.

Threads: the main thread. Never: runs anything; drops a round because of its result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from benchmarks.clients.registry import ROOT
from benchmarks.report import Spread
from benchmarks.spark.reads import BUSY, OURS, SPARK, STANDALONE, TUNED
from benchmarks.spark.streams import DURATIONS
from tools import page_parts

BUILD: Final = ROOT / "build" / "bench" / "spark"
PAGE: Final = ROOT / "docs" / "benchmarks-spark.md"
_MIB: Final = 1 << 20
# Of reads: (part, compared with, goal).
_RATES: Final = (("small", SPARK, 3.0), ("small", TUNED, 2.5), ("large", SPARK, 2.0), ("large", TUNED, 2.0),
                 ("small", BUSY, 0.7), ("large", BUSY, 0.7))
_BEYOND: Final = 0.8  # of the ceiling: a goal that needs more than this cannot be asked for
_RSS_MIB: Final = 300


def ratio(part: dict[str, Any], other: str) -> Spread:
    """kconsumer's rate by another's, round by round."""
    samples = part["samples"]
    return Spread.of(theirs / ours for theirs, ours in zip(samples[other], samples[OURS], strict=True))


def _reads_table(part: dict[str, Any]) -> list[str]:
    lines = ["", f"### {part['part']}: {part['records']:,} records of {part['about']}, {part['where']}", "",
             "| reader | seconds | M records/s | MB/s | kconsumer's rate by this |", "| --- | --- | --- | --- | --- |"]
    for name, took in part["samples"].items():
        middle = Spread.of(took)
        by = "1" if name == OURS else ratio(part, name).show(".2f")
        lines.append(f"| {name} | {middle.show('.2f')} | {part['records'] / middle.median / 1e6:.2f} | "
                     f"{part['bytes'] / middle.median / 1e6:,.0f} | {by} |")
    return [*lines, "", f"Peak memory of a Python worker with kconsumer: {part['worker_rss_bytes'] / _MIB:.0f} MiB."]


def _triggers_table(part: dict[str, Any]) -> list[str]:
    title = f"{part['part']}: {part['records']:,} records of {part['about']}, {part['per_trigger']:,} a trigger"
    lines = ["", f"### {title}", "",
             "| source | triggers | seconds in all | a trigger, ms | latestOffset | getBatch | planning | addBatch |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for source, samples in part["samples"].items():
        cells = [_of(samples, name).show(".0f") for name in DURATIONS]
        lines.append(f"| {source} | {samples[0]['triggers']} | {_of(samples, 'seconds').show('.1f')} | "
                     f"{' | '.join(cells)} |")
    return lines


def _latency_table(part: dict[str, Any]) -> list[str]:
    lines = ["", f"### latency: a trigger a second, {part['per_second']} records/s", "",
             "| source | records | mean, s | p50, s | p99, s |", "| --- | --- | --- | --- | --- |"]
    for source, found in part["samples"].items():
        ordered = sorted(found)
        lines.append(f"| {source} | {len(found):,} | {sum(found) / len(found):.2f} | {ordered[len(found) // 2]:.2f} | "
                     f"{ordered[len(found) * 99 // 100]:.2f} |")
    return lines


def _scale_table(part: dict[str, Any]) -> list[str]:
    lines = ["", f"### scale: {part['partitions']:,} partitions on one broker, a record in each", "",
             "| driver, and a task | |", "| --- | --- |"]
    lines += [f"| {what} | {figure:,.{0 if figure >= 100 or figure == int(figure) else 1}f} |"
              for what, figure in part["driver"].items()]
    lines += ["", "| trigger | source | ms | latestOffset | getBatch | planning | addBatch |",
              "| --- | --- | --- | --- | --- | --- | --- |"]
    for source, reports in part["queries"].items():
        lines += [f"| reads {report['rows']:,} partitions | {source} | "
                  + " | ".join(f"{report.get(name, 0):,.0f}" for name in DURATIONS) + " |" for report in reports]
    return lines


def _of(samples: Iterable[dict[str, Any]], name: str) -> Spread:
    return Spread.of(sample[name] for sample in samples)


def goals(parts: dict[str, dict[str, Any]]) -> list[str]:
    """Return the targets that the stored samples can judge."""
    lines = []
    for name, other, goal in _RATES:
        if name not in parts:
            continue
        found = ratio(parts[name], other).median
        limit = _BEYOND * ratio_of(parts[name], other, BUSY)
        text, wanted = f"≥ {goal:g}", goal
        if other != BUSY and goal > limit:
            wanted = limit
            text += f", or 80 % of the ceiling, {limit:.2f}"
        lines.append(_goal(f"{name}: rate by {other}", text, f"{found:.2f}", found >= wanted))
    for name in ("small-standalone", "large-standalone"):
        here = name.removesuffix(f"-{STANDALONE}")
        if name in parts and here in parts:
            found = _rate(parts[name], OURS) / _rate(parts[here], OURS)
            lines.append(_goal(f"{name}: rate by that of local[2]", "≥ 0.85", f"{found:.2f}", found >= 0.85))
    if "tiny-triggers" in parts:
        spans = {source: _of(samples, "triggerExecution").median
                 for source, samples in parts["tiny-triggers"]["samples"].items()}
        lines.append(_goal("tiny-triggers: ms a trigger", f"≤ Spark's {spans[SPARK]:.0f}", f"{spans[OURS]:.0f}",
                           spans[OURS] <= spans[SPARK]))
    rss = max((part["worker_rss_bytes"] for part in parts.values() if "worker_rss_bytes" in part), default=0) / _MIB
    if rss:
        lines.append(_goal("peak memory of a Python worker, MiB", f"< {_RSS_MIB}", f"{rss:.0f}", rss < _RSS_MIB))
    return ["", "### Targets", "", "| figure | target | measured | |", "| --- | --- | --- | --- |", *lines]


def ratio_of(part: dict[str, Any], slow: str, fast: str) -> float:
    """How many times the rate of `slow` that of `fast` is."""
    return Spread.of(theirs / own for theirs, own in zip(part["samples"][slow], part["samples"][fast], strict=True)
                     ).median


def _rate(part: dict[str, Any], reader: str) -> float:
    return float(part["records"] / Spread.of(part["samples"][reader]).median)


def _goal(name: str, goal: str, found: str, met: bool) -> str:
    return f"| {name} | {goal} | {found} | {'reached' if met else 'missed'} |"


def markdown(parts: dict[str, dict[str, Any]]) -> str:
    last = list(parts.values())[-1]
    here = last["machine"]
    lines = [f"Measured {last['began']} on {here['cores']} cores ({here['cpu']}), Python {here['python']}, "
             f"pyspark {here.get('pyspark', '?')}, pyarrow {here.get('pyarrow', '?')}. Median (least-most) over the "
             "rounds; ratios are made within a round."]
    if any(part["quick"] for part in parts.values()):
        lines.append("\n**With parts of a `--quick` run: too short for figures to quote.**")
    for part in parts.values():
        if "where" in part:
            lines += _reads_table(part)
        elif "per_trigger" in part:
            lines += _triggers_table(part)
        elif "queries" in part:
            lines += _scale_table(part)
        else:
            lines += _latency_table(part)
    return "\n".join([*lines, *goals(parts)]) + "\n"


def write(names: list[str], publish: bool) -> str:
    """The report of the parts that are there, in this order. Returns the Markdown."""
    files = [BUILD / f"{name}.json" for name in names]
    parts = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files if path.exists()}
    text = markdown(parts)
    (BUILD / "results.md").write_text(text, encoding="utf-8")
    if publish:
        page_parts.write(PAGE, "results", lambda _: text)
    return text
