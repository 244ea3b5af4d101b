"""Writes docs/configuration.md from the table of properties, docs/metrics.md from that of metrics, and the diagrams
and tables in the other pages from the source.

Owns: the form of those pages and tables. Threads: one. Never: states what a property is
(src/kconsumer/config/properties.py), what a metric counts (src/kconsumer/telemetry/metrics.py), what is drawn
(tools/diagrams.py) or what a table format stores (src/kconsumer/ingest/table_types.py).

Usage (with kconsumer installed):
    python tools/generate_docs.py            write the pages
    python tools/generate_docs.py --check    fail if a page is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import diagrams
import page_parts

from kconsumer.config.properties import BY_NAME, SECTIONS, OffsetReset
from kconsumer.config.property import ABSENT, SAME, Kind, Property, Scope, Status
from kconsumer.ingest import evolution, table_types
from kconsumer.telemetry import metrics
from kconsumer.telemetry.partitions import REASONS

DOCS = Path(__file__).resolve().parent.parent / "docs"

INTRODUCTION = """\
# Configuration

<!-- Written by tools/generate_docs.py from src/kconsumer/config/properties.py. Do not edit. -->

`Consumer(config)` takes a dict of properties. Both librdkafka's names and the Java consumer's names work.

- Numbers and booleans can be strings (`"true"`, `"1"`, `"0x10"`). Words are case-insensitive.
- If a property is given under two of its names, the last one is used, with a warning.
- None unsets a string, a callback or the logger.
- An error raises `ConfigurationError` (a `KafkaException` and a `ValueError`). The message has the property, the value
  and the allowed values. For an unknown name it suggests the nearest known one.
- Properties marked *live* can be changed on a running consumer with `set_config({...})`.

Defaults are those of librdkafka 2.16. Different defaults of librdkafka or the Java consumer of Kafka 4.4 are given too.

The page has three parts: the properties that matter most, all [honoured](#client) properties by topic, and properties
that are [accepted](#accepted-properties) without effect or [refused](#refused-properties).
"""

# The properties that most applications set or should know, and when to set each.
IMPORTANT = (
    ("bootstrap.servers", "always: two or three brokers of the cluster"),
    ("group.id", "to share topics among consumers, and to commit"),
    ("auto.offset.reset", "`earliest`, if a new group must read existing records"),
    ("enable.auto.commit", "`false`, to commit yourself ([commits](commits.md))"),
    ("enable.auto.offset.store", "`false`, if other threads process the records"),
    ("isolation.level", "`read_uncommitted`, to read records of open and aborted transactions"),
    ("group.protocol", "`consumer`, with Kafka 4.0 or newer ([groups](groups.md))"),
    ("partition.assignment.strategy", "`cooperative-sticky`, for rebalances that move few partitions"),
    ("group.instance.id", "a different id per process, for restarts without a rebalance"),
    ("session.timeout.ms", "shorter, to notice dead members sooner"),
    ("max.poll.interval.ms", "longer than the longest processing of one call's records"),
    ("fetch.buffer.memory", "lower with many consumers per process ([tuning](tuning.md))"),
    ("security.protocol", "as the listener of the brokers requires ([security](security.md))"),
    ("client.rack", "to fetch from replicas in the same rack"),
    ("debug", "to find the cause of a problem ([troubleshooting](troubleshooting.md))"),
)

METRICS_INTRODUCTION = """\
# Metrics

<!-- Written by tools/generate_docs.py from src/kconsumer/telemetry/metrics.py. Do not edit. -->

`Consumer.metrics()` returns a dict of these metrics. It is thread-safe and sends no request.

- Metrics that end in `_total` are counters: they only grow. For a rate, divide the difference of two values by the time
  between the calls. For an average, divide the rate of one counter by the rate of another.
- Metrics that end in `_buckets` are histograms: the number of events per bucket.
- All others are current values. Without a `group.id`, those of the group are 0 or -1.
- [Observability](observability.md) has their names for Prometheus and OpenTelemetry.
- The same table is available as `kconsumer.metrics.METRICS`. It names the Java consumer's counterpart, if there is one.

`Consumer.lag()` knows the end of a partition that is being read from its latest fetch. For other partitions (paused,
without a reachable broker, or while the buffer is full) it asks the brokers, within a time limit.
"""


def shown(value: object) -> str:
    """A value as it stands in a table cell."""
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, OffsetReset):
        return f"`{value.policy}`"
    if value is None or value == "" or value in ((), frozenset()):
        return "none"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`"
    if isinstance(value, frozenset):
        return f"`{','.join(sorted(map(str, value)))}`"
    return f"`{value}`"


def default(prop: Property) -> str:
    """The default, with the other clients' defaults where they differ."""
    lines = [shown(prop.default)]
    for client, value in (("librdkafka", prop.librdkafka_default), ("Java", prop.java_default)):
        if value not in (SAME, ABSENT):
            lines.append(f"{client}: {shown(value)}")
    return "<br>".join(lines)


def known_to(prop: Property) -> str:
    """Which other clients know the property, under any of its names."""
    clients = []
    if prop.librdkafka_default is not ABSENT:
        clients.append("librdkafka")
    if prop.java_default is not ABSENT:
        clients.append("Java")
    return ", ".join(clients) or "kconsumer only"


def names(prop: Property) -> str:
    """The name and the aliases, each with what is particular to it."""
    lines = [f"`{prop.name}`"]
    for alias in prop.aliases:
        lines.append(f"`{alias.name}`{' (in KiB)' if alias.factor == 1024 else ''}")
        if alias.minimum is not None or alias.maximum is not None:
            least = prop.minimum if alias.minimum is None else alias.minimum
            lines[-1] += f": {least} .. {prop.maximum if alias.maximum is None else alias.maximum}"
    return "<br>".join(lines)


def kind(prop: Property) -> str:
    """The type with the range or the words."""
    if prop.kind in (Kind.STRING, Kind.URL, Kind.CALLABLE, Kind.LOGGER, Kind.TOPIC_CONFIG, Kind.BOOTSTRAP):
        return str(prop.kind.value)
    if prop.kind is Kind.BOOLEAN:
        return "boolean"
    if prop.kind is Kind.INTEGER:
        return f"integer<br>{prop.allowed}"
    words = [word for word in prop.choices if not word.startswith("org.apache.")]
    return f"{prop.kind.value}<br>{', '.join(words)}"


def line(*cells: str) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([line(*head), "|" + "---|" * len(head), *(line(*row) for row in rows)])


def row(prop: Property) -> tuple[str, ...]:
    """The cells of an honoured property."""
    doc = prop.doc + (" *Live.*" if prop.runtime else "") + (f" {prop.reason}" if prop.reason else "")
    return names(prop), kind(prop), default(prop), doc, known_to(prop)


def reason(prop: Property) -> str:
    """Why a property is accepted without effect, or refused."""
    allowed = ""
    if prop.status is Status.REFUSED and prop.satisfied_by:
        allowed = f"; {' or '.join(map(shown, prop.satisfied_by))} is accepted"
    return prop.reason + allowed


def important() -> str:
    """The table of the properties that matter most."""
    rows = ((f"`{name}`", default(BY_NAME[name][0]), use) for name, use in IMPORTANT)
    return f"## The properties that matter\n\n{table(('Property', 'Default', 'Set it'), rows)}\n"


def without_effect(title: str, text: str, status: Status) -> str:
    """The table of the consumer's properties that are only accepted, or refused."""
    rows = [(names(prop), prop.doc, reason(prop), known_to(prop)) for _, properties in SECTIONS for prop in properties
            if prop.status is status and prop.scope is not Scope.PRODUCER]
    return f"## {title}\n\n{text}\n\n{table(('Property', 'What it is', 'Reason', 'Known to'), rows)}\n"


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, important()]
    producers = []
    for title, properties in SECTIONS:
        honoured = [row(prop) for prop in properties if prop.status is Status.HONOURED]
        if honoured:
            head = ("Property", "Type, range", "Default", "What it does", "Known to")
            parts.append(f"## {title}\n\n{table(head, honoured)}\n")
        producers += [names(prop) for prop in properties if prop.scope is Scope.PRODUCER]
    parts.append(without_effect("Accepted properties", "kconsumer checks the value, and logs one warning with the "
                                "reason. It logs none if the value is the one in force anyway.", Status.ACCEPTED))
    parts.append("Properties of librdkafka's producer are accepted likewise: "
                 f"{', '.join(producers).replace('<br>', ', ')}.\n")
    parts.append(without_effect("Refused properties", "The constructor raises `ConfigurationError` with the reason.",
                                Status.REFUSED))
    return "\n".join(parts)


def metrics_page() -> str:
    """The page of metrics()."""
    parts = [METRICS_INTRODUCTION]
    for title, listed in metrics.SECTIONS:
        parts.append(f"## {title}\n\n| Metric | Unit | Kind | What it is | Source |\n|---|---|---|---|---|")
        parts += [f"| `{m.name}` | {m.unit} | {m.kind.value} | {m.doc} | {m.source} |"
                  for m in listed]
        parts.append("")
    return "\n".join(parts)


# ---- tables in other pages


def types_table() -> str:
    """The types that a format stores in another way."""
    lines = ["| decoded type | from | Parquet | Delta | Iceberg | |", "|---|---|---|---|---|---|"]
    for row in table_types.TYPES.values():
        cells = [row.cell(format) for format in table_types.FORMATS]
        if any(cell != row.example for cell in cells):
            shown = ["as it is" if cell == row.example else "no column" if cell is None else
                     "refused" if isinstance(cell, str) else f"`{cell}`" for cell in cells]
            lines.append(f"| `{row.example}` | {row.source} | {' | '.join(shown)} | {row.note} |")
    return "\n".join(lines)


def evolutions_table() -> str:
    """What happens to a column whose type changes in a legal way."""
    lines = ["| change | Parquet | Delta | Iceberg |", "|---|---|---|---|"]
    for change in evolution.EVOLUTIONS:
        cells = []
        for format in table_types.FORMATS:
            before, after = (table_types.table_type("", found, format) for found in (change.before, change.after))
            cells.append(evolution.outcome(before, after, format).value)
        lines.append(f"| {change.change} | {' | '.join(cells)} |")
    return "\n".join(lines)


def exported_table() -> str:
    """The names of exporters."""
    lines = ["| Prometheus | OpenTelemetry | kind | what it is |", "| --- | --- | --- | --- |"]
    for m in (*metrics.METRICS, *metrics.PARTITION_METRICS):
        if m.exported:
            name, unit = m.opentelemetry
            lines.append(f"| `{m.prometheus}` | `{name}` ({unit}) | {m.kind.value} | {m.doc} |")
    return "\n".join(lines)


def reasons_table() -> str:
    """Why a partition is stalled."""
    return "\n".join(["| reason | meaning |", "| --- | --- |", *(f"| `{r}` | {text} |" for r, text in REASONS.items())])


TABLES: dict[str, Callable[[], str]] = {
    "types of tables": types_table, "evolutions": evolutions_table, "exported metrics": exported_table,
    "reasons": reasons_table}


def filled(text: str) -> str:
    """Return a page with its diagrams and tables updated from the source."""
    return page_parts.filled(diagrams.fill(text), "table", lambda name, _: f"{TABLES[name]()}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the pages of docs/ that are made from the source.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")
    arguments = parser.parse_args()
    stale = False
    pages = {"configuration.md": page(), "metrics.md": metrics_page()}
    for drawn in sorted(DOCS.glob("*.md")):
        pages.setdefault(drawn.name, filled(drawn.read_text(encoding="utf-8")))
    for name, text in pages.items():
        written = DOCS / name
        if not arguments.check:
            DOCS.mkdir(exist_ok=True)
            written.write_text(text, encoding="utf-8")
        elif not written.exists() or written.read_text(encoding="utf-8") != text:
            print(f"docs/{name} is not up to date: run python tools/generate_docs.py", file=sys.stderr)
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
