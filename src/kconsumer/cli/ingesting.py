"""`kconsumer ingest`: the command line of the ingestion job.

Owns: the command's options, Spark's session, and the signals. Threads: the main thread. Never: imports PySpark before
the command runs: `--help` works without it.

SIGTERM and SIGINT end the run after the current trigger, a second signal ends it at once.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kconsumer.cli.connect import check_brokers
from kconsumer.cli.direct_ingesting import direct_options, run_direct, without_direct
from kconsumer.cli.exit_codes import SIGINT_EXIT
from kconsumer.cli.ingest_progress import IngestProgress
from kconsumer.cli.ingest_signals import signals
from kconsumer.cli.ingest_target import target
from kconsumer.cli.property_sources import connection, read_pairs
from kconsumer.cli.spark_session import session
from kconsumer.cli.terminal import Failure, warn
from kconsumer.errors import ConfigurationError
from kconsumer.ranges.option_values import OFFSETS_EXAMPLE, offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kconsumer.spark.ingest import IngestOptions

_BROKERS = ("bootstrap.servers", "metadata.broker.list")
_START = {"beginning": "earliest", "end": "latest"}


def _pairs(*names: str, help: str) -> Callable[[Any], Any]:
    return click.option(*names, multiple=True, metavar="NAME=VALUE", callback=read_pairs, help=help)


def _text_or_file(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    if given is None or not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
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
              help='Start of a new table or checkpoint: beginning, end, or {"TOPIC": {"0": 123}}.')
@click.option("--engine", type=click.Choice(["direct", "structured-streaming"]),
              help="direct: tasks write the table, which also stores the offsets; structured-streaming: Spark's "
                   "queries write it, with a --checkpoint. Default: direct, without --checkpoint.")
@click.option("--checkpoint", metavar="PATH", help="structured-streaming: folder for the progress.")
@direct_options
@click.option("--trigger", default="available-now", show_default=True, metavar="WHEN",
              help="available-now: read to the end offsets at the start, then exit; 10s: every 10 s; direct: "
                   "continuous=10s: as soon as there is enough for files of --target-file-size, and at least every "
                   "10 s; structured-streaming: once: all in one trigger.")
@click.option("-o", "--output", metavar="FORMAT", show_default="parquet",
              help="direct: parquet, delta, iceberg; structured-streaming: any format of Spark's stream writer.")
@click.option("-O", "--path", metavar="PATH", help="Path of the output.")
@click.option("--table", metavar="NAME", help="Table to write to, instead of --path.")
@click.option("--format", "old_format", hidden=True)
@click.option("--partition-by", multiple=True, metavar="NAME[=SQL]",
              help="A column to partition the output by, or a new one, such as 'day=to_date(timestamp)'; iceberg: "
                   "also a transform, such as 'month(ts)', 'bucket(16, id)'; may be repeated.")
@click.option("--select", multiple=True, metavar="SQL",
              help="structured-streaming: a column of the output, such as 'value.*' or 'cast(key as string) as key'; "
                   "may be repeated. Default: all.")
@click.option("--value", "kind", type=click.Choice(["raw", "json", "avro", "protobuf"]), default="raw",
              show_default=True, help="Format of the values.")
@click.option("--schema", metavar="TEXT|@FILE", callback=_text_or_file,
              help="JSON: Spark's schema, such as 'carrier STRING, miles INT', or its JSON form. direct needs it; "
                   "structured-streaming infers a missing one from a sample. Avro: the schema.")
@click.option("--sample", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N",
              help="structured-streaming: number of records for the inferred schema.")
@click.option("--descriptors", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Protobuf: a file of protoc --descriptor_set_out --include_imports.")
@click.option("--message", metavar="NAME", help="Protobuf: the full name of the message.")
@click.option("--skip-bytes", type=click.IntRange(min=0), default=0, metavar="N",
              help="structured-streaming: bytes to skip at the start of a value: 5 for Avro with a schema registry.")
@click.option("--bad-records", type=click.Choice(["column", "dead-letter", "fail"]),
              help="For values that cannot be decoded: a column with the reason, --dead-letter, or the run fails. "
                   "Default: column.")
@click.option("--dead-letter", metavar="PATH",
              help="Folder for Parquet files of the bad records, each with its reason.")
@_pairs("--option", "source", help="An option of the source, such as maxOffsetsPerTrigger=1000000; may be repeated.")
@_pairs("--sink-option", "sink", help="An option of the output's format; may be repeated.")
@_pairs("--conf", help="A property of Spark's configuration, such as spark.master='local[4]'; may be repeated.")
@click.option("--metrics", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
              help="Append a line of JSON per trigger to this file; - is standard output.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
@click.pass_context
def ingest(
    ctx: click.Context, /, *, engine: str | None, conf: dict[str, str], metrics: str | None, quiet: bool, **given: Any,
) -> None:
    """Write TOPICs as tables, each record exactly once.

    A second run with the same table (or --checkpoint) continues where the last run ended, even if it was killed.
    SIGTERM and Ctrl-C end a run after the current trigger.

    \b
    Example:
      kconsumer ingest flights -b localhost:9092 -O out/flights --runner local \\
        --value json --schema 'carrier STRING, distance INT'
    """
    if engine == "direct" or (engine is None and given["checkpoint"] is None):
        run_direct(ctx, conf=conf, metrics=metrics, quiet=quiet, **given)
        return
    if given["checkpoint"] is None:
        raise click.UsageError("--engine structured-streaming needs --checkpoint, the folder for the progress")
    without_direct(ctx, given)
    try:
        from kconsumer.spark import ingest as _job  # noqa: F401 - checks that PySpark is installed
    except ImportError as error:
        raise click.UsageError(str(error)) from error
    from pyspark.errors import PySparkException

    options = _options(**given)
    check_brokers(given["properties"])
    try:
        with session(conf) as spark:
            stopped = _run(spark, options, quiet, metrics)
    except PySparkException as error:
        raise Failure(_reason(error)) from error
    except OSError as error:
        raise Failure(str(error)) from error
    if stopped == signal.SIGINT:
        ctx.exit(SIGINT_EXIT)


def _options(
    *, kind: str, schema: str | None, sample: int, descriptors: Path | None, message: str | None, skip_bytes: int,
    start: str, dead_letter: str | None, bad_records: str | None, **given: Any,
) -> IngestOptions:
    from kconsumer.spark.ingest import Decoding, IngestOptions

    decoding = Decoding(kind, schema, sample, None if descriptors is None else descriptors.read_bytes(), message,
                        skip_bytes)
    if dead_letter is not None and bad_records is None:
        bad_records = "dead-letter"
    return IngestOptions(decoding=decoding, start=start, dead_letters=dead_letter,
                         bad_records=bad_records, **_ends(**given))


def _ends(
    *, topics: tuple[str, ...], old_topics: tuple[str, ...], properties: dict[str, str], output: str | None,
    path: str | None, table: str | None, old_format: str | None, **more: Any,
) -> dict[str, Any]:
    """Map the command line to the fields of IngestOptions."""
    if old_topics:
        warn("-t is deprecated: pass the topics as arguments")
    format_, path = target(output, path, table, old_format)
    brokers = next(properties[name] for name in _BROKERS if properties.get(name))
    return {**more, "topics": topics + old_topics, "format": format_, "path": path, "table": table,
            "bootstrap_servers": brokers,
            "kafka": {name: value for name, value in properties.items() if name not in _BROKERS}}


def _run(spark: SparkSession, options: IngestOptions, quiet: bool, metrics: str | None) -> int | None:
    """Run the job. Return the signal that ended it; None: it ended by itself."""
    from kconsumer.spark.ingest import Ingestion

    run = Ingestion(spark, options)
    target = options.table if options.path is None else options.path
    with IngestProgress(quiet, metrics, [str(target)], options.dead_letters) as progress, \
            signals(run.stop, progress) as received:
        run.start()
        run.wait(progress.trigger, progress.look)
    return received[0] if received else None


def _reason(error: Exception) -> str:
    """Return Spark's error message, without the stacks of its processes."""
    lines = str(error).splitlines()
    kept = [line for line in lines[: next((n for n, line in enumerate(lines) if "JVM stacktrace" in line), len(lines))]
            if not line.lstrip().startswith("at ")]
    return "\n".join(kept[:20]).strip() or type(error).__name__
