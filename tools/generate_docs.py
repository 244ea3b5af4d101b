"""Writes docs/configuration.md from the table of properties, docs/metrics.md from that of metrics, and the diagrams
in the other pages from the core's source.

Owns: the form of those pages. Threads: one. Never: states what a property is (src/kconsumer/config/properties.py),
what a metric counts (src/kconsumer/telemetry/metrics.py) or what is drawn (tools/diagrams.py).

Usage (with kconsumer installed):
    python tools/generate_docs.py            write the pages
    python tools/generate_docs.py --check    fail if a page is not up to date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import diagrams

from kconsumer.config.properties import SECTIONS, OffsetReset
from kconsumer.config.property import ABSENT, SAME, Kind, Property, Scope, Status
from kconsumer.telemetry import metrics

DOCS = Path(__file__).resolve().parent.parent / "docs"

INTRODUCTION = """\
# Configuration

<!-- Written by tools/generate_docs.py from src/kconsumer/config/properties.py. Do not edit. -->

`Consumer(config)` takes a dict of these properties, under librdkafka's names or the Java consumer's. Numbers and
booleans may be given as strings (`"true"`, `"1"`, `"0x10"`); words are read in any case. A property given under two of
its names counts as given last, with a warning. A value of None unsets a string, a callback or the logger. What is
wrong raises `ConfigurationError` (a `KafkaException` and a `ValueError`), which names the property, the value, what is
allowed, and for an unknown name the nearest known one.

A property is

- **honoured**: it does what is said here;
- **accepted**: it is checked, and one logged warning says why it has no effect (none is logged for a value that holds
  anyway);
- **refused**: the consumer is not made, and the error gives the reason.

Properties marked *live* can be changed on a running consumer with `set_config({...})`.

Defaults are librdkafka 2.16's, and where that one or the Java consumer of Kafka 4.3 has another one it is given.
"""

METRICS_INTRODUCTION = """\
# Metrics

<!-- Written by tools/generate_docs.py from src/kconsumer/telemetry/metrics.py. Do not edit. -->

`Consumer.metrics()` returns a dict of these, from any thread, without asking the network thread or a broker. Names that
end in `_total` only grow as long as the consumer lives: a rate is their difference by the time between two calls, an
average the rate of one by that of another. The rest is what holds at the moment. Without a `group.id` the group's are
0 and -1. The same table is `kconsumer.metrics.METRICS`; where the Java consumer has a counterpart it is named.

`Consumer.lag()` asks: the brokers, with a bound of time, of the partitions whose end no fetch has just told (paused
ones, those of a broker that is gone, all of them while the buffer is full). Of a partition that is being read a fetch
tells it, and nobody is asked.
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


def effect(prop: Property) -> str:
    """What becomes of the property."""
    parts = [prop.status.value + (", *live*" if prop.runtime else "")]
    if prop.reason:
        parts.append(f": {prop.reason}")
    if prop.status is Status.REFUSED and prop.satisfied_by:
        parts.append(f"; {' or '.join(map(shown, prop.satisfied_by))} is accepted")
    return "".join(parts)


def row(prop: Property) -> str:
    """One line of a section's table."""
    cells = (names(prop), kind(prop), default(prop), effect(prop), prop.doc, known_to(prop))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for title, properties in SECTIONS:
        if all(prop.scope is Scope.PRODUCER for prop in properties):
            listed = ", ".join(names(prop).replace("<br>", ", ") for prop in properties)
            text = "Accepted, as by librdkafka's consumer, and ignored with a warning: "
            parts.append(f"## {title}\n\n{text}{listed}.\n")
            continue
        head = "| Property | Type, range | Default | Status | What it does | Known to |\n|---|---|---|---|---|---|"
        parts.append(f"## {title}\n\n{head}\n" + "\n".join(map(row, properties)) + "\n")
    return "\n".join(parts)


def metrics_page() -> str:
    """The page of metrics()."""
    parts = [METRICS_INTRODUCTION]
    for title, listed in metrics.SECTIONS:
        parts.append(f"## {title}\n\n| Metric | Unit | Kind | What it is | Source |\n|---|---|---|---|---|")
        parts += [f"| `{m.name}` | {m.unit} | {'counter' if m.counter else 'gauge'} | {m.doc} | {m.source} |"
                  for m in listed]
        parts.append("")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the pages of docs/ that are made from the source.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")
    arguments = parser.parse_args()
    stale = False
    pages = {"configuration.md": page(), "metrics.md": metrics_page()}
    for drawn in sorted(DOCS.glob("*.md")):
        text = drawn.read_text(encoding="utf-8")
        if diagrams.MARK.search(text):
            pages[drawn.name] = diagrams.fill(text)
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
