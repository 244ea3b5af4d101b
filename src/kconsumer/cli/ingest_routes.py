"""The routes of `kconsumer ingest`: --route and --route-schema.

Owns: the two options, and their effect on the others. Threads: the main thread. Never: opens a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kconsumer.ingest import IngestOptions


@dataclass(frozen=True)
class Route:
    """One table."""

    topics: tuple[str, ...]
    target: str  #: a path; for Iceberg the name of the table


def read_routes(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> tuple[Route, ...]:
    """TOPIC[,TOPIC…]=PATH_OR_TABLE."""
    found = []
    for text in given:
        names, equals, target = text.partition("=")
        topics = tuple(name.strip() for name in names.split(",") if name.strip())
        if not equals or not topics or not target.strip():
            raise click.BadParameter(f"{text!r} is not TOPIC=PATH_OR_TABLE", ctx, param)
        found.append(Route(topics, target.strip()))
    return tuple(found)


def read_schemas(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """Parse TOPIC=TEXT, or TOPIC=@FILE."""
    found = {}
    for text in given:
        topic, equals, schema = text.partition("=")
        if not equals or not topic.strip() or not schema.strip():
            raise click.BadParameter(f"{text!r} is not TOPIC=TEXT or TOPIC=@FILE", ctx, param)
        if schema.startswith("@"):
            try:
                schema = Path(schema[1:]).read_text(encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise click.BadParameter(str(error), ctx, param) from error
        found[topic.strip()] = schema
    return found


def route_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to the command."""
    for option in reversed((
        click.option("--route", "routes", multiple=True, metavar="TOPIC=PATH_OR_TABLE", callback=read_routes,
                     help="Write this topic into this table (iceberg: NAMESPACE.NAME, with its files below "
                          "-O); may be repeated; replaces TOPIC and -O. TOPIC,TOPIC=… writes both into one table."),
        click.option("--route-schema", "schemas", multiple=True, metavar="TOPIC=TEXT|@FILE", callback=read_schemas,
                     help="The --schema of one route; may be repeated. With a registry and no schema, each "
                          "topic uses the newest schema of TOPIC-value."),
    )):
        command = option(command)
    return command


def routed(
    routes: Sequence[Route], schemas: Mapping[str, str], *, topics: Sequence[str], path: str | None,
    format_: str, start: str, schema: str | None, dead_letters: str | None, make: Callable[..., IngestOptions],
    **more: Any,
) -> list[IngestOptions]:
    """Return the options of each route.

    Args:
        make: IngestOptions with all options that the routes share.

    Raises:
        click.UsageError: options contradict each other.
    """
    if topics or more.get("pattern") is not None:
        raise click.UsageError("--route sets the topics: remove TOPIC, -t and --pattern")
    if more.pop("table", None) is not None:
        raise click.UsageError("--route sets the tables: remove --table, and use --route TOPIC=NAMESPACE.NAME")
    if more.get("take_over") is not None:
        raise click.UsageError("--take-over needs a run with one table: remove --route")
    if (format_ == "iceberg") != (path is not None):
        raise click.UsageError("--route with iceberg needs -O PATH, the folder of all files" if path is None else
                               "--route sets the paths: remove -O")
    known = {topic for route in routes for topic in route.topics}
    for topic in schemas:
        if topic not in known:
            raise click.UsageError(f"--route-schema {topic}=… has no route: the routes have {', '.join(sorted(known))}")
    starts = _starts(start, known)
    letters = [None if dead_letters is None else f"{dead_letters.rstrip('/')}/{_last(route.target)}"
               for route in routes]
    return [make(
        topics=route.topics, format=format_, start=starts(route), schema=_schema(route, schemas, schema),
        path=route.target if path is None else f"{path.rstrip('/')}/{route.target.replace('.', '/')}",
        table=None if path is None else route.target, dead_letters=folder, **more)
        for route, folder in zip(routes, letters, strict=True)]


def _schema(route: Route, schemas: Mapping[str, str], default: str | None) -> str | None:
    found = {schemas[topic] for topic in route.topics if topic in schemas}
    if len(found) > 1:
        raise click.UsageError(f"the topics {', '.join(route.topics)} have different schemas, but one table "
                               f"{route.target}: use one route per topic")
    return next(iter(found), default)


def _starts(start: str, known: set[str]) -> Callable[[Route], str]:
    """Return the start of each route: its topics' part of a JSON position."""
    if not start.startswith("{"):
        return lambda route: start
    found = json.loads(start)
    missing = known - found.keys()
    if missing:
        raise click.UsageError(f"--from lacks the topics {', '.join(sorted(missing))} of the routes")
    return lambda route: json.dumps({topic: found[topic] for topic in route.topics})


def _last(target: str) -> str:
    return target.rstrip("/").rpartition("/")[2]
