"""`kconsumer ingest`: the command line of the ingestion.

Owns: the command and its options. Threads: the main thread. Never: imports PySpark or pyarrow before the command runs:
`--help` works without them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from kconsumer.cli.direct_ingesting import direct_options, run_direct
from kconsumer.cli.property_sources import connection, read_pairs
from kconsumer.errors import ConfigurationError
from kconsumer.ranges.option_values import OFFSETS_EXAMPLE, offsets

_START = {"beginning": "earliest", "end": "latest"}
_INSTEAD: Final = "{} was removed with the engine structured-streaming: {}"
_QUERY: Final = ("write such a query around kconsumer's source for Spark, as in "
                 "https://kconsumer.github.io/kconsumer/spark/#ingestion")
# What to do instead of the options of the former engine.
_REMOVED: Final = {
    "checkpoint": "the table keeps the progress; continue an existing checkpoint with --take-over CHECKPOINT and a new "
                  "table",
    "select": _QUERY, "sink": _QUERY, "sample": "set the schema with --schema",
}


def _pairs(*names: str, help: str) -> Callable[[Any], Any]:
    return click.option(*names, multiple=True, metavar="NAME=VALUE", callback=read_pairs, help=help)


def _refuse_engine(_ctx: click.Context, param: click.Parameter, given: str | None) -> None:
    if given not in (None, "direct"):
        raise click.UsageError(_INSTEAD.format(f"--engine {given}", f"remove --engine; {_REMOVED['checkpoint']}. For "
                                               f"SQL or another sink, {_QUERY}"))


def _refuse(_ctx: click.Context, param: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise click.UsageError(_INSTEAD.format(param.opts[0], _REMOVED[str(param.name)]))


def _removed(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that the next release will not know, hidden: their use is an error that names the alternative."""
    for names in (("--checkpoint",), ("--select",), ("--sink-option", "sink"), ("--sample",)):
        command = click.option(*names, hidden=True, expose_value=False, callback=_refuse)(command)
    return click.option("--engine", hidden=True, expose_value=False, callback=_refuse_engine)(command)


def _text_or_file(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    if given is None or not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(str(error), ctx, param) from error


def _position(ctx: click.Context, param: click.Parameter, given: str) -> str:
    """Return a position in the form of startingOffsets, Spark's option."""
    if given in (*_START, *_START.values()):
        return _START.get(given, given)
    try:
        offsets("--from", given)
    except ConfigurationError as error:
        raise click.BadParameter(f"{given!r} is not beginning, end or offsets such as {OFFSETS_EXAMPLE}", ctx,
                                 param) from error
    return given


@click.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]…")
@connection("-X", "--kafka", help="A property of the consumers; may be repeated. A secret may be @FILE. See "
                                  "Configuration at https://kconsumer.github.io/kconsumer/")
@click.option("-t", "--topic", "old_topics", multiple=True, hidden=True)
@click.option("--pattern", metavar="REGEX",
              help="Read every topic whose name matches, including new ones. Not together with TOPIC.")
@click.option("--from", "start", default="beginning", show_default=True, metavar="POSITION", callback=_position,
              help='Start of a new table: beginning, end, or {"TOPIC": {"0": 123}}.')
@_removed
@direct_options
@click.option("--trigger", default="available-now", show_default=True, metavar="WHEN",
              help="available-now: read to the end offsets at the start, then exit; 10s: every 10 s; "
                   "continuous=10s: as soon as there is enough for files of --target-file-size, and at least every "
                   "10 s.")
@click.option("-o", "--output", metavar="FORMAT", show_default="parquet",
              help="Format of the table: parquet, delta or iceberg.")
@click.option("-O", "--path", metavar="PATH", help="Path of the table.")
@click.option("--table", metavar="NAMESPACE.NAME", help="iceberg: the table's name in the catalog.")
@click.option("--format", "old_format", hidden=True)
@click.option("--partition-by", multiple=True, metavar="NAME[=SQL]",
              help="A column to partition the output by, or a new one, such as 'day=to_date(timestamp)'; iceberg: "
                   "also a transform, such as 'month(ts)', 'bucket(16, id)'; may be repeated.")
@click.option("--value", "kind", type=click.Choice(["raw", "json", "avro", "protobuf"]), default="raw",
              show_default=True, help="Format of the values.")
@click.option("--schema", metavar="TEXT|@FILE", callback=_text_or_file,
              help="JSON: Spark's schema, such as 'carrier STRING, miles INT', or its JSON form. Avro: the schema. "
                   "Protobuf: the .proto file.")
@click.option("--descriptors", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Protobuf: a file of protoc --descriptor_set_out --include_imports.")
@click.option("--message", metavar="NAME", help="Protobuf: the full name of the message.")
@click.option("--columns", metavar="NAME,…", default="",
              help="Fields of the value to write; a.b is field b of a, of its items or of its values. Default: all.")
@click.option("--recursion", type=click.IntRange(0, 10), default=1, show_default=True, metavar="N",
              help="Avro, Protobuf: levels of a type within itself that become columns; deeper ones are JSON text.")
@click.option("--max-types", type=click.IntRange(1, 10_000_000), default=10_000, show_default=True, metavar="N",
              help="Most types of the value's columns, with all nested ones.")
@click.option("--skip-bytes", type=click.IntRange(min=0), default=0, metavar="N",
              help="As --framing skip=N.")
@click.option("--bad-records", type=click.Choice(["column", "dead-letter", "fail"]),
              help="For values that cannot be decoded: a column with the reason, --dead-letter, or the run fails. "
                   "Default: column.")
@click.option("--dead-letter", metavar="PATH",
              help="Folder for Parquet files of the bad records, each with its reason.")
@click.option("--max-bad", metavar="SHARE|NUMBER",
              help="Most bad records of a commit, such as 1% or 100; with more, the run fails without the commit. "
                   "Default without --dead-letter: 1,000 bad records in a row fail, and in a job that has never had a "
                   "good record any number.")
@_pairs("--option", "source", help="An option of the source, such as maxOffsetsPerTrigger=1000000; may be repeated.")
@_pairs("--conf", help="A property of Spark's configuration, such as spark.master='local[4]'; may be repeated.")
@click.option("--metrics", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
              help="Append a line of JSON per trigger to this file; - is standard output.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
@click.pass_context
def ingest(ctx: click.Context, /, **given: Any) -> None:
    """Write TOPICs as tables, each record exactly once.

    A second run with the same table continues where the last run ended, even if it was killed.
    SIGTERM and Ctrl-C end a run after the current trigger.

    \b
    Example:
      kconsumer ingest flights -b localhost:9092 -O out/flights --runner local \\
        --value json --schema 'carrier STRING, distance INT'
    """
    run_direct(ctx, **given)
