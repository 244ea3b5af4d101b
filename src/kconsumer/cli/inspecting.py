"""`kconsumer topics`, `watermarks` and `lag`: tables about topics, partitions and groups.

Owns: the requests and the layout of the tables. Threads: the main thread. Never: reads records.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kconsumer.cli import group_lag
from kconsumer.cli.connect import EARLIEST, LATEST, offsets, partitions_of
from kconsumer.cli.terminal import Failure
from kconsumer.consumer import Consumer
from kconsumer.errors.printable import json_text, printable


def show_topics(consumer: Consumer, internal: bool, timeout: float, kind: str) -> None:
    """Show name, partitions and replicas of every topic."""
    found = consumer.list_topics(timeout=timeout).topics
    rows = []
    for name in sorted(found):
        if internal or not name.startswith("__"):
            partitions = found[name].partitions.values()
            rows.append((name, len(partitions), max((len(p.replicas) for p in partitions), default=0)))
    _show(("topic", "partitions", "replicas"), rows, kind)


def show_partitions(consumer: Consumer, names: Sequence[str], timeout: float, kind: str) -> None:
    """Show leader, replicas and in-sync replicas of every partition of the topics."""
    rows = [(name, p.id, p.leader, p.replicas, p.isrs)
            for name in names for p in partitions_of(consumer, name, timeout)]
    _show(("topic", "partition", "leader", "replicas", "isrs"), rows, kind)


def show_watermarks(consumer: Consumer, names: Sequence[str], timeout: float, kind: str) -> None:
    """Show low and high watermark of every partition of the topics."""
    places = [(name, p.id) for name in names for p in partitions_of(consumer, name, timeout)]
    asked = [(*place, EARLIEST) for place in places] + [(*place, LATEST) for place in places]
    found = offsets(consumer, asked, timeout)
    rows = [(*place, low, high, high - low)
            for place, low, high in zip(places, found[: len(places)], found[len(places):], strict=True)]
    _show(("topic", "partition", "low", "high", "offsets"), rows, kind)


def show_lag(properties: Mapping[str, str], group: str, topics: Sequence[str], timeout: float, kind: str) -> None:
    """Show committed offset, end and lag of every partition for which the group has committed an offset."""
    offsets, records = group_lag.consumers(properties, group)
    with offsets, records:
        found = group_lag.read(offsets, records, topics, timeout)
    if not found:
        raise Failure(f"the group {printable(group)} has no committed offsets{' of these topics' if topics else ''}")
    rows = found if kind == "json" else [
        (*row[:5], "-" if row.seconds is None else f"{row.seconds:.1f}") for row in found]
    _show(group_lag.Lag._fields, rows, kind)


def _show(columns: Sequence[str], rows: Iterable[Sequence[Any]], kind: str) -> None:
    if kind == "json":
        for row in rows:
            click.echo(json_text(dict(zip(columns, row, strict=True))))
    elif not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(map(_cell, row)))
    else:
        table = Table(box=None, pad_edge=False)
        for column in columns:
            table.add_column(column, justify="left" if column == "topic" else "right")
        for row in rows:
            table.add_row(*(Text(_cell(value)) for value in row))  # rich would parse a str as markup
        Console().print(table)


def _cell(value: Any) -> str:
    return printable(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
