"""What `kconsumer ingest` does with its options.

Owns: the options of the table, the tasks and the job, and the run. Threads: the main thread. Never: imports PySpark
unless the runner is spark.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kconsumer.cli.connect import check_brokers, reason
from kconsumer.cli.exit_codes import SIGINT_EXIT
from kconsumer.cli.ingest_progress import IngestProgress
from kconsumer.cli.ingest_routes import Route, route_options, routed
from kconsumer.cli.ingest_signals import signals
from kconsumer.cli.ingest_target import target
from kconsumer.cli.property_sources import read_pairs
from kconsumer.cli.terminal import Failure, shown_log, warn
from kconsumer.errors import ConfigurationError, KafkaException
from kconsumer.ranges.option_values import words

if TYPE_CHECKING:
    from kconsumer.ingest import IngestOptions
    from kconsumer.ingest.runners.protocol import Runner

_BROKERS: Final = ("bootstrap.servers", "metadata.broker.list")
_LIBRARIES: Final = frozenset({
    "deltalake", "_internal", "pyiceberg", "pyarrow", "httpx", "httpx2", "requests", "sqlalchemy", "botocore",
    "authlib"})
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class _Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # not generic in all versions of click
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = value.strip().lower().removesuffix("ib").removesuffix("b")
        number, unit = (text, "") if text[-1:].isdecimal() else (text[:-1], text[-1:])
        if not number.isdecimal() or unit not in _BYTES or int(number) == 0:
            self.fail(f"{value!r} is not a size such as 128M", param, ctx)
        return int(number) * _BYTES[unit]


def direct_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the table, the tasks and the job."""
    for option in reversed((
        click.option("--runner", type=click.Choice(["spark", "local"]),
                     help="Where tasks run. local: in processes on this machine; spark: on the executors "
                          "of a Spark session. Default: spark if PySpark is installed."),
        click.option("--workers", type=click.IntRange(min=1), metavar="N",
                     help="Number of processes of the local runner. Default: one per CPU."),
        click.option("--job", default="kconsumer", show_default=True, metavar="NAME",
                     help="Name under which the table keeps the offsets. Jobs with different names are "
                          "independent."),
        click.option("--metadata", metavar="NAME[=COLUMN],…", default="topic,partition,offset,timestamp,key",
                     show_default=True, help="Columns of the record; also timestamp_type, leader_epoch, "
                                             "headers."),
        click.option("--nested", is_flag=True, help="The value is a struct; default: its fields are columns."),
        click.option("--framing", metavar="none|confluent|skip=N",
                     help="Bytes before each value. Default: none, or confluent with a registry."),
        click.option("--schema-registry", "registry", multiple=True, metavar="NAME=VALUE", callback=read_pairs,
                     help="A property of the registry's client, such as url=http://localhost:8081; may be "
                          "repeated."),
        click.option("--sort-by", multiple=True, metavar="COLUMN", help="Sort within files; may be repeated."),
        click.option("--codec", default="zstd", show_default=True, help="The compression of the files."),
        click.option("--target-file-size", "file_size", type=_Size(), default=128 << 20, show_default="128M",
                     metavar="SIZE", help="Target size of a file."),
        click.option("--evolve", type=click.Choice(["add", "fail", "ignore"]), default="add", show_default=True,
                     help="What to do with columns and nested fields that the table lacks."),
        click.option("--storage-option", "storage", multiple=True, metavar="NAME=VALUE", callback=read_pairs,
                     help="A setting of the table's file system, such as AWS_ENDPOINT_URL=…; may be repeated."),
        click.option("--catalog", multiple=True, metavar="NAME=VALUE", callback=read_pairs,
                     help="iceberg: a property of the catalog, such as type=sql; name=NAME selects one from "
                          "PyIceberg's configuration; may be repeated."),
        click.option("--take-over", metavar="CHECKPOINT",
                     help="A new job continues where the Structured Streaming query of this checkpoint ended."),
        click.option("--vacuum", is_flag=True,
                     help="Only remove uncommitted files of earlier runs of the job."),
        click.option("--plan", is_flag=True,
                     help="Only print what a start would do: columns and their changes, offsets, size, and bad records "
                          "of a sample. Errors are those of a start. Nothing is written."),
        click.option("--compact", is_flag=True,
                     help="Only rewrite small files of Delta and Iceberg tables as larger ones."),
        click.option("--compact-after", type=click.IntRange(2, 100), metavar="FILES",
                     help="With --trigger, rewrite small files also between triggers, once a partition of the "
                          "Delta or Iceberg table has so many of them. Default: never."),
    )):
        command = option(command)
    return route_options(command)


def run_direct(
    ctx: click.Context, *, conf: dict[str, str], metrics: str | None, quiet: bool, runner: str | None,
    workers: int | None, vacuum: bool, compact: bool, plan: bool, **given: Any,
) -> None:
    """Run the command.

    Raises:
        Failure: the run fails.
        click.UsageError: an option or a property is invalid, options contradict each other, or pyarrow is missing.
    """
    runner = runner or ("local" if vacuum or compact or plan else _default_runner(conf, workers))
    if conf and runner != "spark":
        raise click.UsageError("--conf needs the runner on Spark: set --runner spark")
    if workers is not None and runner != "local":
        raise click.UsageError("--workers needs the local runner: set --runner local")
    try:
        from kconsumer.ingest import Ingestion, Routes
        from kconsumer.ingest.errors import IngestError
    except ImportError as error:
        raise click.UsageError(str(error)) from error
    try:
        with ExitStack() as stack:
            found = _options(**given)
            tables = found if isinstance(found, list) else [found]
            if plan:
                _show(tables, given["properties"])
                return
            tasks = _runner(stack, runner, workers, conf, tables[0].job)
            run: Any = Routes(found, tasks) if isinstance(found, list) else Ingestion(found, tasks)
            stack.enter_context(run)
            if vacuum or compact:
                _maintain(run, vacuum, compact)
                return
            check_brokers(given["properties"])
            targets = [options.name for options in tables]
            with shown_log(), IngestProgress(quiet, metrics, targets, given["dead_letter"]) as progress, \
                    signals(run.stop, progress) as received:
                run.run(progress.trigger, progress.look)
    except IngestError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{_one_line(error)}: check that kconsumer can write to -O, --dead-letter and --metrics"
                      ) from error
    except ConfigurationError as error:
        raise click.UsageError(reason(error), ctx) from error
    except KafkaException as error:
        raise Failure(reason(error)) from error
    except Exception as error:
        if not _is_of_a_library(error):
            raise
        raise Failure(f"{type(error).__name__}: {_one_line(error)}") from error
    if received and received[0] == signal.SIGINT:
        ctx.exit(SIGINT_EXIT)


def _default_runner(conf: Mapping[str, str], workers: int | None) -> str:
    if workers is not None:
        return "local"
    return "spark" if conf or find_spec("pyspark") is not None else "local"


def _runner(stack: ExitStack, name: str, workers: int | None, conf: Mapping[str, str], job: str) -> Runner:
    if name == "local":
        from kconsumer.ingest import LocalRunner

        return LocalRunner(workers)
    try:
        from kconsumer.cli.spark_session import session
        from kconsumer.ingest.runners.spark import SparkRunner

        return SparkRunner(stack.enter_context(session(conf)), f"kconsumer ingest {job}")
    except ImportError as error:
        raise click.UsageError(f"--runner spark needs PySpark ({error}): pip install 'kconsumer[spark]', or set "
                               "--runner local") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _is_of_a_library(error: Exception) -> bool:
    """Return whether the library of a table or a registry raised it: such an error is about the user's data."""
    modules = [base.__module__ for base in type(error).__mro__]
    modules += [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(name.split(".")[0] in _LIBRARIES for name in modules)


def _show(tables: list[IngestOptions], properties: Mapping[str, str]) -> None:
    from kconsumer.ingest.preview import preview

    check_brokers(properties)
    for options in tables:
        click.echo(preview(options))


def _maintain(run: Any, vacuum: bool, compact: bool) -> None:
    if vacuum:
        names = run.vacuum()
        for name in names:
            click.echo(name)
        click.echo(f"{len(names)} files removed", err=True)
    if compact:
        click.echo(f"{run.compact()} files written as larger ones", err=True)


def _options(
    *, topics: tuple[str, ...], old_topics: tuple[str, ...], properties: Mapping[str, str], output: str | None,
    path: str | None, old_format: str | None, start: str, kind: str, skip_bytes: int, framing: str | None,
    descriptors: Path | None, dead_letter: str | None, bad_records: str | None, metadata: str, columns: str,
    nested: bool, file_size: int, routes: tuple[Route, ...], schemas: dict[str, str], **more: Any,
) -> IngestOptions | list[IngestOptions]:
    """Return the options of the run; a list with --route."""
    from kconsumer.ingest import IngestOptions

    if old_topics:
        warn("-t is deprecated: pass the topics as arguments")
    format_, path = target(output, path, old_format, needed=not routes)
    if schemas and not routes:
        raise click.UsageError("--route-schema needs --route: without it, use --schema")
    if skip_bytes and framing is not None:
        raise click.UsageError("--skip-bytes and --framing contradict each other: use one of them")
    if dead_letter is not None and bad_records is None:
        bad_records = "dead-letter"
    brokers = next(properties[name] for name in _BROKERS if properties.get(name))
    shared: dict[str, Any] = dict(
        bootstrap_servers=brokers, descriptors=None if descriptors is None else descriptors.read_bytes(),
        kafka={n: v for n, v in properties.items() if n not in _BROKERS}, value=kind,
        framing=f"skip={skip_bytes}" if skip_bytes else framing, bad_records=bad_records,
        metadata=words(metadata), columns=words(columns), flatten=not nested,
        target_file_bytes=file_size, **more)
    topics += old_topics
    if routes:
        return routed(routes, schemas, topics=topics, path=path, format_=format_, start=start,
                      dead_letters=dead_letter, make=IngestOptions, **shared)
    if path is None:
        raise click.UsageError("-O is missing: set the path of the table")
    return IngestOptions(topics=topics, path=path, format=format_, start=start, dead_letters=dead_letter, **shared)
