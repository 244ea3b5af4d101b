"""Owns: what becomes of the samples: medians and paired ratios, the JSON, the Markdown table, the plot.

Threads: the main thread. Never: runs anything; drops a round because it looks bad.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.clients.registry import BUILD, EVERY, ROOT

DOCS = ROOT / "docs"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
_PACKAGES = ("kconsumer", "confluent-kafka", "aiokafka", "kafka-python", "pyarrow", "pyspark")
# What was set out to be reached: (topic, client, figure, at least).
_RATES = (("plain", "kconsumer consume_batch", 10.0), ("plain", "kconsumer consume", 4.0),
          ("plain", "kconsumer poll", 5.0), ("lz4", "kconsumer consume_batch", 6.0),
          ("zstd", "kconsumer consume_batch", 6.0), ("tls", "kconsumer consume_batch", 5.0))
_ON_LOOP = (
    ("aio for", "sync poll", 0.6), ("aio for", "aiokafka getmany", 4.0), ("aio for", "aiokafka getone", 20.0),
    ("aio consume", "sync consume", 0.95), ("aio consume_batch", "sync consume_batch", 0.95),
    ("aio consume", "aiokafka getmany", 8.0), ("aio consume_batch", "aiokafka getmany", 8.0),
    ("aio poll", "AIOConsumer poll", 50.0),
)
_CPU = (("plain", "kconsumer consume_batch", 1 / 8),)
_MANY = ("p1000", "plain", 0.6)
_IDLE = ((100, 0.1), (10_000, 2.0))


@dataclass(frozen=True)
class Spread:
    """A median with what lies around it."""

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
    found = {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
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
    """Round by round: the client's figure by that of the confluent-kafka method it is compared with."""
    base = {s["round"]: of(s) for s in samples if s["topic"] == topic and s["client"] == EVERY[client].versus}
    return [of(s) / base[s["round"]] for s in samples
            if s["topic"] == topic and s["client"] == client and base.get(s["round"])]


def summary(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each topic and client, in the order they ran."""
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


def by_ceiling(samples: list[dict[str, Any]]) -> list[float]:
    """Round by round: what consume_batch reaches through TLS by what OpenSSL does with answers as large."""
    rates = {(s["client"], s["round"]): rate(s) for s in samples if s["topic"] == "tls"}
    return [found / rates["raw OpenSSL (16 MiB)", number] for (client, number), found in rates.items()
            if client == "kconsumer consume_batch" and ("raw OpenSSL (16 MiB)", number) in rates]


def goals(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What was set out to be reached and can be judged by this run: name, goal, found, met."""
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
        runs = [[rate(s) for s in samples if s["topic"] == "aio" and s["client"] == name] for name in (client, other)]
        if all(runs):
            add(f"{client}: rate by {other}", least, statistics.median(runs[0]) / statistics.median(runs[1]), True)
    for topic, client, most in _CPU:
        if by := ratios(samples, topic, client, cpu):
            add(f"{client}, {topic}: CPU per record by {EVERY[client].versus}", most, statistics.median(by), False)
    many, one, least = _MANY
    for client in (c.name for c in EVERY.values() if c.own):
        rates = [[rate(s) for s in samples if s["topic"] == t and s["client"] == client] for t in (many, one)]
        if all(rates):
            add(f"{client}: rate on {many} by {one}", least, statistics.median(rates[0]) / statistics.median(rates[1]),
                True)
    for key in ("p50_ms", "p99_ms"):
        runs = {library: [e[key] for e in result["latency"] if e["library"] == library]
                for library in ("kconsumer", "confluent_kafka")}
        if all(runs.values()):
            add(f"latency {key[:3]} by confluent-kafka's", 1.0,
                statistics.median(runs["kconsumer"]) / statistics.median(runs["confluent_kafka"]), False)
    for partitions, most in _IDLE:
        for entry in result["idle"]:
            if entry["library"] == "kconsumer" and entry["partitions"] == partitions:
                add(f"idle with {partitions:,} partitions: % of a core", most, entry["cpu_percent"], False)
    return found


def markdown(result: dict[str, Any]) -> str:
    here = result["machine"]
    packages = ", ".join(f"{name} {here[name]}" for name in _PACKAGES if name in here)
    lines = [f"Measured {result['began']} on {here['cores']} cores ({here['cpu']}), Python {here['python']}, "
             f"{packages}. zlib -6 makes the values {result['compressibility']:.1f} times smaller. "
             "Median (least-most) over the rounds."]
    if result["quick"]:
        lines.append("\n**A `--quick` run: too short for figures to quote.**")
    rows = summary(result["samples"])
    for name, topic in result["topics"].items():
        lines += ["", f"### {name}: {topic['about']}", "", *_notes(name, result), *_table(
            [row for row in rows if row["topic"] == name],
            "the synchronous call's rate" if name == "aio" else "confluent-kafka's rate")]
    lines += _latency_table(result["latency"]) + _idle_table(result["idle"])
    lines += _handshake_table(result["handshakes"]) + _goal_table(goals(result))
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


def _latency_table(entries: list[dict[str, Any]]) -> list[str]:
    if not entries:
        return []
    lines = ["", "### Latency, produce to poll, 500 records/s", "", "| client | p50, ms | p99, ms | % of a core |",
             "| --- | --- | --- | --- |"]
    for library in dict.fromkeys(e["library"] for e in entries):
        own = [e for e in entries if e["library"] == library]
        cells = [Spread.of(e[key] for e in own).show(form)
                 for key, form in (("p50_ms", ".3f"), ("p99_ms", ".3f"), ("cpu_percent", ".1f"))]
        lines.append(f"| {library} | {' | '.join(cells)} |")
    return lines


def _idle_table(entries: list[dict[str, Any]]) -> list[str]:
    if not entries:
        return []
    lines = ["", "### Idle", "", "| client | partitions | % of a core | peak RSS, MB |", "| --- | --- | --- | --- |"]
    lines += [f"| {e['library']} | {e['partitions']:,} | {e['cpu_percent']:.3f} | {e['peak_rss_bytes'] / 1e6:.0f} |"
              for e in entries]
    return lines


def _handshake_table(entries: list[dict[str, Any]]) -> list[str]:
    if not entries:
        return []
    lines = ["", "### TLS handshakes, one after the other", "", "| | a second |", "| --- | --- |"]
    return lines + [f"| {e['kind']} ({e['suite']}) | {e['handshakes_per_second']:.0f} |" for e in entries]


def _goal_table(found: list[dict[str, Any]]) -> list[str]:
    if not found:
        return []
    lines = ["", "### What was to be reached", "", "| figure | goal | found | |", "| --- | --- | --- | --- |"]
    for goal in found:
        sign = "≥" if goal["at_least"] else "≤"
        lines.append(f"| {goal['name']} | {sign} {goal['goal']:.3g} | {goal['found']:.3g} | "
                     f"{'reached' if goal['met'] else 'missed'} |")
    return lines


def plot(result: dict[str, Any], path: Path) -> bool:
    """Rates and CPU of the first topic's clients, as bars with their spread. False: matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    first = next(iter(result["topics"].values()))
    rows = [row for row in summary(result["samples"]) if row["topic"] == first["name"]]
    rows.sort(key=lambda row: row["rate"].median)
    names = [row["client"] for row in rows]
    colours = ["#b3d1f0" if name.startswith("raw socket") else "#1f6fb5" if EVERY[name].own else "#9a9a9a"
               for name in names]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 0.42 * len(rows) + 1.6), sharey=True)
    for axes, key, scale, label in ((left, "rate", 1e-6, "million records/s"),
                                    (right, "cpu", 1.0, "CPU seconds per million records")):
        middle = [row[key].median * scale for row in rows]
        around = [[m - row[key].least * scale for m, row in zip(middle, rows, strict=True)],
                  [row[key].most * scale - m for m, row in zip(middle, rows, strict=True)]]
        axes.barh(names, middle, xerr=around, color=colours, error_kw={"lw": 0.8, "ecolor": "#444444"})
        axes.set_xscale("log")
        axes.set_xlabel(label + " (log scale)")
        axes.spines[["top", "right"]].set_visible(False)
        for at, value in enumerate(middle):
            axes.annotate(f"{value:.3g}", (value, at), xytext=(5, 6), textcoords="offset points", fontsize=7)
    figure.suptitle(f"{first['records']:,} records: {first['about']}", fontsize=11)
    figure.tight_layout()
    figure.savefig(path)
    figure.savefig(path.with_suffix(".png"), dpi=150)
    pyplot.close(figure)
    return True


def save(result: dict[str, Any]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "results.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def write(result: dict[str, Any], publish: bool) -> str:
    """Everything into build/bench/, and with `publish` into docs/ too. Returns the Markdown."""
    text = markdown(result)
    save({**result, "goals": goals(result)})
    (BUILD / "results.md").write_text(text, encoding="utf-8")
    drawn = bool(result["samples"]) and plot(result, BUILD / "benchmarks.svg")
    if publish:
        page = DOCS / "benchmarks.md"
        before, found, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        _, ended, after = rest.partition(END)
        if not (found and ended):
            raise RuntimeError(f"{page.name} lacks the marks {BEGIN} and {END}")
        page.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")
        if drawn:
            (DOCS / "benchmarks.svg").write_bytes((BUILD / "benchmarks.svg").read_bytes())
    return text
