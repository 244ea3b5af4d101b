"""Owns: the report on ingestion's samples as Markdown: medians, paired ratios, targets.

Threads: the main thread. Never: runs anything; drops a round because of its result.
"""

from __future__ import annotations

import json
from typing import Any, Final

from benchmarks.clients.registry import ROOT
from benchmarks.report import Spread
from tools import page_parts

BUILD: Final = ROOT / "build" / "bench" / "ingest"
PAGE: Final = ROOT / "docs" / "benchmarks-ingest.md"
OWN, SPARK, LOCAL = "Spark's own pipeline", "direct engine on Spark", "direct engine, 2 local processes"
FUNCTION, TYPED = "Spark's source and function", "kconsumer's source, value.format"
PLAIN, YEARLY = "one file", "a partition for each day"  # of the part year
_PEAKS: Final = {SPARK: "pyspark.daemon", LOCAL: "multiprocessing.spawn"}
_MIB: Final = 1 << 20
_PEAK_MIB: Final = 400
_YEAR_CPU: Final = 1.5  # most CPU seconds of the part year with partitions, relative to those without
# (part, way, way that it is compared with, least ratio of rates)
_RATES: Final = (("json-parquet", SPARK, OWN, 6.0), ("avro-parquet", SPARK, OWN, 6.0), ("json-delta", SPARK, OWN, 5.0),
                 ("json-parquet-zstd", SPARK, OWN, 4.0), ("json-parquet-days", SPARK, OWN, 4.0),
                 ("json-parquet-standalone", SPARK, OWN, 6.0), ("avro-parquet-standalone", SPARK, OWN, 6.0),
                 ("json-delta-standalone", SPARK, OWN, 5.0),
                 ("typed-json", TYPED, FUNCTION, 3.0), ("typed-avro", TYPED, FUNCTION, 3.0))
_TRIGGERS: Final = ((SPARK, 100.0), (LOCAL, 40.0))  # ms, of the part trigger-1

Parts = dict[str, dict[str, Any]]


def keep(name: str, part: dict[str, Any]) -> None:
    """Store the samples of a part."""
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{name}.json").write_text(json.dumps(part, indent=1) + "\n", encoding="utf-8")


def ratio(part: dict[str, Any], way: str, other: str) -> Spread:
    """The rate of one way by that of another, round by round."""
    return Spread.of(base["seconds"] / own["seconds"]
                     for base, own in zip(part["samples"][other], part["samples"][way], strict=True))


def _rates_table(part: dict[str, Any]) -> list[str]:
    first = next(iter(part["samples"]))
    lines = ["", "| way | k rows/s | CPU s per M rows | times the first way's rate | peak of a Python worker, MiB |",
             "| --- | --- | --- | --- | --- |"]
    for way, kept in part["samples"].items():
        rows = part["records"]
        rate = Spread.of(rows / sample["seconds"] / 1000 for sample in kept).show(".0f")
        cpu = Spread.of(sample["cpu"] / rows * 1e6 for sample in kept).show(".1f")
        times = "1" if way == first else ratio(part, way, first).show(".2f")
        kind = _PEAKS[LOCAL] if way == YEARLY else _PEAKS.get(way, "")
        peak = part.get("peaks", {}).get(kind, 0) / _MIB
        lines.append(f"| {way} | {rate} | {cpu} | {times} | {f'{peak:.0f}' if peak else '-'} |")
    return lines


def _spans(part: dict[str, Any], way: str) -> Spread:
    """Milliseconds of a trigger, without the first one of each run."""
    return Spread.of(span for sample in part["samples"][way] for span in sample["triggers"][1:])


def _triggers_table(part: dict[str, Any]) -> list[str]:
    lines = ["", "| way | a trigger, ms | the first trigger and the end of a run, ms |", "| --- | --- | --- |"]
    for way, kept in part["samples"].items():
        rest = Spread.of(sample["seconds"] * 1000 - sum(sample["triggers"][1:]) for sample in kept)
        lines.append(f"| {way} | {_spans(part, way).show('.0f')} | {rest.show('.0f')} |")
    return lines


def _partitions_table(part: dict[str, Any]) -> list[str]:
    lines = ["", "| way | a run with one trigger, s | CPU s |", "| --- | --- | --- |"]
    for way, kept in part["samples"].items():
        lines.append(f"| {way} | {Spread.of(sample['seconds'] for sample in kept).show('.1f')} | "
                     f"{Spread.of(sample['cpu'] for sample in kept).show('.1f')} |")
    return lines


def _commits_table(part: dict[str, Any]) -> list[str]:
    lines = ["", "| table | a commit, ms | log of a commit, kB | opening the table, ms | memory of the process, MiB |",
             "| --- | --- | --- | --- | --- |"]
    for form, kept in part["samples"].items():
        shown = [Spread.of(sample[name] * by for sample in kept).show(".0f")
                 for name, by in (("seconds", 1000), ("log_bytes", 0.001), ("open", 1000), ("resident", 1 / _MIB))]
        lines.append(f"| {form} | {' | '.join(shown)} |")
    return lines


def goals(parts: Parts) -> list[str]:
    """Return the targets that the stored samples can judge."""
    lines = []
    for name, way, other, least in _RATES:
        if name in parts:
            found = ratio(parts[name], way, other).median
            lines.append(_goal(f"{name}: {way}, rate by {other}", f"≥ {least:g}", f"{found:.2f}", found >= least))
    if "trigger-1" in parts:
        for way, most in _TRIGGERS:
            found = _spans(parts["trigger-1"], way).median
            lines.append(_goal(f"a trigger of one row, ms: {way}", f"≤ {most:g}", f"{found:.0f}", found <= most))
    if "year" in parts:
        kept = parts["year"]["samples"]
        found = Spread.of(own["cpu"] / base["cpu"] for base, own in zip(kept[PLAIN], kept[YEARLY], strict=True)).median
        lines.append(_goal(f"year: {YEARLY}, CPU seconds relative to {PLAIN}", f"≤ {_YEAR_CPU:g}", f"{found:.2f}",
                           found <= _YEAR_CPU))
    for way, kind in _PEAKS.items():
        peaks = [part["peaks"][kind] / _MIB for part in parts.values() if part.get("peaks", {}).get(kind)]
        if peaks:
            lines.append(_goal(f"peak memory of a worker, MiB: {way}", f"< {_PEAK_MIB}", f"{max(peaks):.0f}",
                               max(peaks) < _PEAK_MIB))
    return ["", "### Targets", "", "| figure | target | measured | |", "| --- | --- | --- | --- |", *lines]


def _goal(name: str, goal: str, found: str, met: bool) -> str:
    return f"| {name} | {goal} | {found} | {'reached' if met else 'missed'} |"


def markdown(parts: Parts) -> str:
    here, began = next(reversed(parts.values()))["machine"], sorted({part["began"] for part in parts.values()})
    loads = Spread.of(part["machine"]["load"] for part in parts.values())
    lines = [f"Measured {' and '.join(began)} on {here['cores']} cores ({here['cpu']}), load {loads.show('g')}, Python "
             f"{here['python']}, pyspark {here.get('pyspark', '?')}, pyarrow {here.get('pyarrow', '?')}. Median "
             "(least-most) over the rounds; ratios are computed within a round."]
    for name, part in parts.items():
        lines += ["", f"### {name}: {part['about']}"]
        lines += _triggers_table(part) if name.startswith("trigger-") else \
            _partitions_table(part) if name.startswith("partitions-") else \
            _commits_table(part) if name == "commits" else _rates_table(part)
    return "\n".join([*lines, *goals(parts)]) + "\n"


def write(names: list[str], publish: bool) -> str:
    """Write the report of the stored parts in this order, and return it."""
    files = [BUILD / f"{name}.json" for name in names]
    text = markdown({path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files if path.exists()})
    (BUILD / "results.md").write_text(text, encoding="utf-8")
    if publish:
        page_parts.write(PAGE, "results", lambda _: text)
    return text
