"""Owns: the evaluation of samples: medians and paired ratios, the JSON, the Markdown tables.

Threads: the main thread. Never: runs anything; drops a round because of its result.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.clients.registry import BUILD, EVERY, ROOT
from tools import page_parts

DOCS = ROOT / "docs"
_PACKAGES = ("kconsumer", "confluent-kafka", "aiokafka", "kafka-python", "pyarrow", "pyspark")
# The targets: (topic, client, figure, minimum).
_RATES = (("plain", "kconsumer consume_batch", 10.0), ("plain", "kconsumer consume", 4.0),
          ("plain", "kconsumer poll", 5.0), ("lz4", "kconsumer consume_batch", 6.0),
          ("zstd", "kconsumer consume_batch", 6.0), ("tls", "kconsumer consume_batch", 5.0),
          ("headers", "kconsumer consume", 4.0), ("10kB", "kconsumer poll", 1.5), ("10kB", "kconsumer consume", 1.5),
          ("10kB", "kconsumer arrow", 2.0), ("1MB", "kconsumer poll", 1.2), ("1MB", "kconsumer consume", 1.2),
          ("1MB", "kconsumer arrow", 1.2))
_ON_LOOP = (
    ("aio for", "sync poll", 0.6), ("aio for", "aiokafka getmany", 4.0), ("aio for", "aiokafka getone", 20.0),
    ("aio consume", "sync consume", 0.95), ("aio consume_batch", "sync consume_batch", 0.95),
    ("aio consume", "aiokafka getmany", 8.0), ("aio consume_batch", "aiokafka getmany", 8.0),
    ("aio poll", "AIOConsumer poll", 50.0),
)
_TYPED = (("typed-json", "decoded batches", 3.0),)  # M rows/s
_BASES = {"aio": "the synchronous call's rate", "typed": "the raw path's rate"}  # first word of a topic's name
_CPU = (("plain", "kconsumer consume_batch", 1 / 8),)
_MANY = ("p1000", "plain", 0.6)
_GOALS = "### Targets"
_IDLE = ((100, 0.1), (10_000, 2.0))


@dataclass(frozen=True)
class Spread:
    """A median with its lowest and highest values."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, figures: Iterable[float]) -> Spread:
        ordered = sorted(figures)
        return cls(statistics.median(ordered), ordered[0], ordered[-1])

    def show(self, form: str) -> str:
        if self.least == self.most:
            return format(self.median, form)
        return f"{self.median:{form}} ({self.least:{form}}-{self.most:{form}})"


def machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    found = {"cpu": model, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
             "system": platform.platform(), "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def rate(sample: dict[str, Any]) -> float:
    return float(sample["records"] / sample["seconds"])


def cpu(sample: dict[str, Any]) -> float:
    return float(sample["cpu_seconds"] / sample["records"] * 1e6)


def ratios(
    samples: list[dict[str, Any]], topic: str, client: str, of: Callable[[dict[str, Any]], float]
) -> list[float]:
    """Return per round the client's figure relative to its confluent-kafka method."""
    base = {s["round"]: of(s) for s in samples if s["topic"] == topic and s["client"] == EVERY[client].versus}
    return [of(s) / base[s["round"]] for s in samples
            if s["topic"] == topic and s["client"] == client and base.get(s["round"])]


def summary(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per topic and client, in the order of their runs."""
    rows = []
    for topic, client in dict.fromkeys((s["topic"], s["client"]) for s in samples):
        own = [s for s in samples if s["topic"] == topic and s["client"] == client]
        by = ratios(samples, topic, client, rate)
        cpu_by = ratios(samples, topic, client, cpu)
        rows.append({
            "topic": topic, "client": client, "rounds": len(own), "rate": Spread.of(map(rate, own)),
            "cpu": Spread.of(map(cpu, own)), "cpu_of_whole_process": own[0]["cpu_of_whole_process"],
            "rss": max(s["peak_rss_bytes"] for s in own), "records": own[0]["records"],
            "ratio": Spread.of(by) if by else None, "cpu_ratio": Spread.of(cpu_by) if cpu_by else None,
        })
    return rows


def _table(rows: list[dict[str, Any]], base: str = "confluent-kafka's rate") -> list[str]:
    lines = [f"| client | M records/s | CPU s per M records | peak RSS, MB | times {base} |",
             "| --- | --- | --- | --- | --- |"]
    for row in rows:
        mark = " (whole process)" if row["cpu_of_whole_process"] else ""
        rate_m = Spread(*(x / 1e6 for x in (row["rate"].median, row["rate"].least, row["rate"].most)))
        ratio = row["ratio"].show(".2f") if row["ratio"] else "-"
        if row["ratio"] and row["client"] == EVERY[row["client"]].versus:
            ratio = "1"
        lines.append(f"| {row['client']} | {rate_m.show('.3g')} | {row['cpu'].show('.3g')}{mark} | "
                     f"{row['rss'] / 1e6:.0f} | {ratio} |")
    return lines


def beside(samples: list[dict[str, Any]], topic: str, client: str, other: str) -> list[float]:
    """Return per round the client's rate relative to another client's."""
    rates = {(s["client"], s["round"]): rate(s) for s in samples if s["topic"] == topic}
    return [found / rates[other, number] for (name, number), found in rates.items()
            if name == client and (other, number) in rates]


def by_ceiling(samples: list[dict[str, Any]]) -> list[float]:
    """Return per round the rate of consume_batch over TLS relative to plain OpenSSL with answers of equal size."""
    return beside(samples, "tls", "kconsumer consume_batch", "raw OpenSSL (16 MiB)")


def goals(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the targets that this run can judge: name, goal, found, met."""
    samples = result["samples"]
    found: list[dict[str, Any]] = []

    def add(name: str, goal: float, figure: float, at_least: bool) -> None:
        found.append({"name": name, "goal": goal, "found": figure, "at_least": at_least,
                      "met": figure >= goal if at_least else figure <= goal})

    for topic, client, least in _RATES:
        if by := ratios(samples, topic, client, rate):
            add(f"{client}, {topic}: rate by {EVERY[client].versus}", least, statistics.median(by), True)
    if by := by_ceiling(samples):
        add("kconsumer consume_batch, tls: rate by OpenSSL's alone", 0.8, statistics.median(by), True)
    for client, other, least in _ON_LOOP:
        if by := beside(samples, "aio", client, other):
            add(f"{client}: rate by {other}", least, statistics.median(by), True)
    for topic, client, least in _TYPED:
        if rates := [rate(s) / 1e6 for s in samples if s["topic"] == topic and s["client"] == client]:
            add(f"{client}, {topic}: M rows/s", least, statistics.median(rates), True)
    if by := beside(samples, "plain", "kconsumer poll", "franz-go (8 MiB)"):
        add("kconsumer poll, plain: rate by franz-go (8 MiB)", 1.1, statistics.median(by), True)
    for topic, client, most in _CPU:
        if by := ratios(samples, topic, client, cpu):
            add(f"{client}, {topic}: CPU per record by {EVERY[client].versus}", most, statistics.median(by), False)
    many, one, least = _MANY
    for client in (c.name for c in EVERY.values() if c.own):
        rates = [[rate(s) for s in samples if s["topic"] == t and s["client"] == client] for t in (many, one)]
        if all(rates):
            add(f"{client}: rate on {many} by {one}", least, statistics.median(rates[0]) / statistics.median(rates[1]),
                True)
    for name, entries in (("latency", result["latency"]), ("aio latency", result["latency_on_loop"])):
        for key in ("p50_ms", "p99_ms"):
            runs = {library: statistics.median(e[key] for e in entries if e["library"] == library)
                    for library in dict.fromkeys(e["library"] for e in entries)}
            for library, title in (("confluent_kafka", "confluent-kafka"), ("aiokafka", "aiokafka")):
                if library in runs and "kconsumer" in runs:
                    add(f"{name} {key[:3]} by {title}'s", 1.0, runs["kconsumer"] / runs[library], False)
    late = [s["details"]["late_p99_ms"] for s in samples if "late_p99_ms" in s["details"]]
    if late:
        add("aio for: a ticker beside it, p99 late in ms", 5.0, statistics.median(late), False)
    for entry in result["idle_on_loop"]:
        add(f"{entry['consumers']:,} idle consumers on a loop: % of a core in its thread", 2.0, entry["loop_percent"],
            False)
    for partitions, most in _IDLE:
        for entry in result["idle"]:
            if entry["library"] == "kconsumer" and entry["partitions"] == partitions:
                add(f"idle with {partitions:,} partitions: % of a core", most, entry["cpu_percent"], False)
    return found


def markdown(result: dict[str, Any]) -> str:
    here = result["machine"]
    packages = ", ".join(f"{name} {here[name]}" for name in _PACKAGES if name in here)
    lines = [f"Measured {result['began']} on {here['cores']} cores ({here['cpu']}; load average {here['load']}), "
             f"Python {here['python']}, {packages}. zlib -6 makes the values {result['compressibility']:.1f} times "
             "smaller. "
             "Median (least-most) over the rounds."]
    if result["quick"]:
        lines.append("\n**A `--quick` run: too short for figures to quote.**")
    rows = summary(result["samples"])
    for name, topic in result["topics"].items():
        lines += ["", f"### {name}: {topic['about']}", "", *_notes(name, result), *_table(
            [row for row in rows if row["topic"] == name],
            _BASES.get(name.partition("-")[0], "confluent-kafka's rate"))]
    lines += _latency_table(result["latency"], "Latency, produce to poll, 500 records/s")
    lines += _latency_table(result["latency_on_loop"], "Latency on an event loop, produce to await, 500 records/s")
    lines += _ticker_table(result["samples"]) + _idle_table(result["idle"])
    lines += _crowd_table(result["idle_on_loop"])
    lines += _handshake_table(result["handshakes"])
    if found := goals(result):
        lines += _goal_table(found)
    for what, why in {**result["skipped"], **result["failed"]}.items():
        lines += ["", f"Without {what}: {why}"]
    return "\n".join(lines) + "\n"


def _notes(name: str, result: dict[str, Any]) -> list[str]:
    topic = result["topics"][name]
    text = f"{topic['records']:,} records"
    short = {s["client"]: s["records"] for s in result["samples"]
             if s["topic"] == name and s["records"] < topic["records"]}
    if short:
        text += "; " + ", ".join(f"{client} read {count:,}" for client, count in short.items())
    wire = [s["details"]["wire_bytes"] / s["records"] for s in result["samples"]
            if s["topic"] == name and "wire_bytes" in s["details"]]
    if wire:
        text += f"; {wire[0]:.0f} bytes a record on the wire"
    return [text + ".", ""]


def _latency_table(entries: list[dict[str, Any]], title: str) -> list[str]:
    if not entries:
        return []
    lines = ["", f"### {title}", "", "| client | p50, ms | p99, ms | % of a core |",
             "| --- | --- | --- | --- |"]
    for library in dict.fromkeys(e["library"] for e in entries):
        own = [e for e in entries if e["library"] == library]
        cells = [Spread.of(e[key] for e in own).show(form)
                 for key, form in (("p50_ms", ".3f"), ("p99_ms", ".3f"), ("cpu_percent", ".1f"))]
        lines.append(f"| {library} | {' | '.join(cells)} |")
    return lines


def _ticker_table(samples: list[dict[str, Any]]) -> list[str]:
    """Return the table of the delay of a task that sleeps 1 ms repeatedly, beside a reader at full rate."""
    lines = []
    for client in dict.fromkeys(s["client"] for s in samples if "late_p99_ms" in s["details"]):
        own = [s["details"] for s in samples if s["client"] == client]
        cells = [Spread.of(d[key] for d in own).show(".3f") for key in ("late_p50_ms", "late_p99_ms", "late_max_ms")]
        lines.append(f"| {client} | {' | '.join(cells)} |")
    head = ["", "### Ticker beside a reader at full rate", "", "| client | p50 late, ms | p99 late, ms | most, ms |",
            "| --- | --- | --- | --- |"]
    return head + lines if lines else []


def _idle_table(entries: list[dict[str, Any]]) -> list[str]:
    if not entries:
        return []
    lines = ["", "### Idle", "", "| client | partitions | % of a core | peak RSS, MB |", "| --- | --- | --- | --- |"]
    lines += [f"| {e['library']} | {e['partitions']:,} | {e['cpu_percent']:.3f} | {e['peak_rss_bytes'] / 1e6:.0f} |"
              for e in entries]
    return lines


def _crowd_table(entries: list[dict[str, Any]]) -> list[str]:
    if not entries:
        return []
    lines = ["", "### Idle consumers on one event loop", "",
             "| consumers | % of a core, the loop's thread | % of a core, all threads | peak RSS, MB |",
             "| --- | --- | --- | --- |"]
    return lines + [f"| {e['consumers']:,} | {e['loop_percent']:.2f} | {e['cpu_percent']:.1f} | "
                    f"{e['peak_rss_bytes'] / 1e6:.0f} |" for e in entries]


def _handshake_table(entries: list[dict[str, Any]]) -> list[str]:
    if not entries:
        return []
    lines = ["", "### TLS handshakes, one after another", "", "| | per second |", "| --- | --- |"]
    return lines + [f"| {e['kind']} ({e['suite']}) | {e['handshakes_per_second']:.0f} |" for e in entries]


def _goal_table(found: list[dict[str, Any]]) -> list[str]:
    lines = ["", _GOALS, "", "| figure | target | measured | |", "| --- | --- | --- | --- |"]
    for goal in found:
        sign = "≥" if goal["at_least"] else "≤"
        lines.append(f"| {goal['name']} | {sign} {goal['goal']:.3g} | {goal['found']:.3g} | "
                     f"{'reached' if goal['met'] else 'missed'} |")
    return lines


def save(result: dict[str, Any]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "results.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def write(result: dict[str, Any], publish: bool, draw: Callable[[dict[str, Any], Path], list[str]]) -> str:
    """Write everything into build/bench/, and with `publish` also into docs/. Return the Markdown.

    `draw` makes the plots in a folder and returns their names.
    """
    text = markdown(result)
    save({**result, "goals": goals(result)})
    (BUILD / "results.md").write_text(text, encoding="utf-8")
    drawn = draw(result, BUILD)
    if publish:
        page_parts.write(DOCS / "benchmarks.md", "results", lambda old: merged(old, text))
        for name in drawn:
            (DOCS / name).write_bytes((BUILD / name).read_bytes())
    return text


def merged(old: str, new: str) -> str:
    """Merge the tables of a run into those of an earlier one: each replaces its namesake.

    The date and the machine of the page are those of the last run of the first topic. Other tables carry their own.
    """
    was, now = _sections(old), _sections(new)
    if not was:
        return new
    fresh = next(iter(was)) in now
    top, other, measured = (new, was, old) if fresh else (old, now, new)
    goals = [tables.pop(_GOALS, "") for tables in (was, now)]
    for name, text in other.items():
        heading, rest = text.split("\n", 1)
        if not rest.lstrip().startswith("Measured "):
            other[name] = f"{heading}\n\n{measured.split(chr(10), 1)[0]}\n{rest.rstrip()}\n\n"
    # New results replace old ones in the order of the first words of their names.
    lines = {line.split("|")[1]: line for text in goals for line in text.splitlines()
             if line.startswith("|") and "---" not in line and "| figure " not in line}
    table = [*_goal_table([])[1:], *lines.values()] if lines else []
    return top[:top.find("### ")] + "".join([*{**was, **now}.values(), "\n".join(table)]).rstrip() + "\n"


def _sections(text: str) -> dict[str, str]:
    """Return heading up to its colon → the section with its heading."""
    parts = re.split(r"^(?=### )", text, flags=re.M)[1:]
    return {part.split("\n", 1)[0].split(":")[0]: part for part in parts}
