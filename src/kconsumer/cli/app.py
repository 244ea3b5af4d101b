"""The commands and their options, and the only place that converts errors into exit codes.

Owns: the click program. Threads: the main thread. Never: reads a record itself.

Exit codes: 0 success, 1 Kafka refused or is unreachable, 2 wrong usage, 130 ended by Ctrl-C. If the reader of a pipe
ends (`| head`), the command ends without a message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kconsumer._version import __version__
from kconsumer.cli import connect, consuming, decoded_output, demo, ingesting, inspecting, metrics_server, output
from kconsumer.cli import top as top_view
from kconsumer.cli.decoders import DECODED, decoder_of, registry_of
from kconsumer.cli.exit_codes import SIGINT_EXIT
from kconsumer.cli.positions import BEGINNING, END, PartitionsType, PositionType
from kconsumer.cli.property_sources import PROPERTIES_PAGE, connection
from kconsumer.cli.terminal import Failure
from kconsumer.errors import ConfigurationError, KafkaException

F = TypeVar("F", bound=Callable[..., Any])


_FORMS = (*output.FORMS, *DECODED)


class _Program(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except ConfigurationError as error:
            raise click.UsageError(connect.reason(error), self._subcommand(ctx)) from error
        except KafkaException as error:
            raise Failure(connect.reason(error)) from error
        except BrokenPipeError:
            _drop_stdout()
            ctx.exit(0)
        except KeyboardInterrupt:
            ctx.exit(SIGINT_EXIT)

    def _subcommand(self, ctx: click.Context) -> click.Context:
        """Return a context of the subcommand that has failed: the usage in the message is then its usage."""
        name = ctx.invoked_subcommand or ""
        command = self.get_command(ctx, name)
        return ctx if command is None else click.Context(command, ctx, name)


def _drop_stdout() -> None:
    """Discard the buffered output: its reader is gone, and Python must not fail again at exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


_connection = connection("-X", help="A property of the consumer; may be repeated. A secret may be @FILE. See "
                                    f"{PROPERTIES_PAGE}")
_timeout = click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=30.0, show_default=True,
                        metavar="SECONDS", help="Time limit for an answer of the brokers.")


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="kconsumer")
def cli() -> None:
    """Inspect Kafka topics and write them as tables."""


@cli.command()
@click.argument("topic")
@_connection
@_timeout
@click.option("-p", "--partitions", type=PartitionsType(), metavar="LIST",
              help="Partitions to read, such as 0,3-5. Default: all.")
@click.option("--from", "start", type=PositionType(), default=BEGINNING, metavar="POSITION", show_default="beginning",
              help="Start position in each partition.")
@click.option("--to", "stop", type=PositionType(), default=END, metavar="POSITION", show_default="end",
              help="End position, exclusive. Default: the end offset when the command starts.")
@click.option("-f", "--follow", is_flag=True, help="Wait for new records at the end.")
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Stop after N records.")
@click.option("-o", "--output", "kind", type=click.Choice(["text", "json", "table", "arrow", "parquet"]),
              show_default="text, of decoded records json",
              help="Format: text (see --format), JSON lines, table of decoded records, Arrow stream, Parquet file.")
@click.option("-O", "--file", "path", type=click.Path(dir_okay=False, writable=True, path_type=Path), metavar="PATH",
              help="Write to this file instead of standard output.")
@click.option("--format", "template", metavar="FORMAT", help=r"Template for text output. Default: '%v\n'.")
@click.option("--key", "key_form", type=click.Choice(_FORMS), default="utf-8", show_default=True,
              help="Encoding of keys in text and JSON; avro, json, protobuf: decode them.")
@click.option("--value", "value_form", type=click.Choice(_FORMS), default="utf-8", show_default=True,
              help="Encoding of values and headers in text and JSON; avro, json, protobuf: decode values.")
@click.option("--registry", metavar="URL", help="Schema registry with the schemas.")
@click.option("--registry-property", "registry_properties", multiple=True, metavar="NAME=VALUE",
              help="Property of the registry client, such as basic.auth.user.info=@FILE; repeatable.")
@click.option("--schema", metavar="SCHEMA",
              help="Schema of values, or @FILE: Avro, JSON of field names and types, FileDescriptorSet, .proto file.")
@click.option("--key-schema", metavar="SCHEMA", help="Schema of keys, or @FILE.")
@click.option("--subject", metavar="NAME", help="Subject of the values' schema. Default: TOPIC-value.")
@click.option("--key-subject", metavar="NAME", help="Subject of the keys' schema. Default: TOPIC-key.")
@click.option("--message", metavar="NAME",
              help="Message of a Protobuf schema. Default: its first message.")
@click.option("--on-error", type=click.Choice(["show", "fail", "stop"]), default="show", show_default=True,
              help="Records that cannot be decoded: show them; show them and exit with 1; stop at the first one.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), metavar="PORT",
              help="Serve metrics for Prometheus on this port. Needs kconsumer[prometheus].")
@click.pass_context
def consume(
    ctx: click.Context, /, *, topic: str, properties: dict[str, str], timeout: float, kind: str | None,
    path: Path | None, template: str | None, key_form: str, value_form: str, quiet: bool, registry: str | None,
    registry_properties: tuple[str, ...], schema: str | None, key_schema: str | None, subject: str | None,
    key_subject: str | None, message: str | None, on_error: str, metrics_port: int | None, **what: Any,
) -> None:
    """Write the records of TOPIC to standard output or a file.

    Without --follow the command ends at --to in every partition. It shows the progress (records, rate, lag) on standard
    error if that is a terminal and the records go elsewhere.

    \b
    Examples:
      kconsumer consume flights -b localhost:9092 -n 10 -o json
      kconsumer consume flights -b localhost:9092 --from -100 --follow

    \b
    POSITION is one of
      beginning, end     of the partition
      1234               this offset
      -100               this number of offsets before the end
      2024-05-01T12:00Z  the first record at or after this time (ISO 8601; without a zone: local time)
      @1714564800000     the same, in milliseconds since 1970

    Decoded records are JSON lines, a table, Arrow or Parquet. With --value json, but without --schema and --registry,
    the schema is inferred from the first records.

    \b
    FORMAT consists of text and
      %k %v  key, value (nothing for null)    %K %V  their lengths in bytes (-1 for null)
      %t %p %o  topic, partition, offset      %T     timestamp, milliseconds since 1970
      %h     headers, as name=value,…         %%     a percent sign; also \\n \\t \\r \\0 \\\\ \\xHH
    """
    decoded = value_form in DECODED or key_form in DECODED
    kind = kind or ("json" if decoded else "text")
    if template is not None and kind != "text":
        raise click.UsageError("--format needs text output: remove it, or set -o text", ctx)
    if what["follow"] and what["stop"] != END:
        raise click.UsageError("--follow and --to contradict each other: use one of them", ctx)
    if decoded:
        found = registry_of(registry, registry_properties)
        value, key = (_decoder(form, found, given, message, called) for form, given, called in (
            (value_form, schema, subject), (key_form, key_schema, key_subject)))
        decoders = decoded_output.Decoders(value, key, on_error, topic)
        writer = decoded_output.open_writer(kind, path, decoders)
    elif (kind == "table" or registry or registry_properties or schema or key_schema or subject or key_subject
          or message or on_error != "show"):
        raise click.UsageError("-o table, --on-error and the options of schemas need --value or --key avro, json or "
                               "protobuf", ctx)
    else:
        writer = output.open_writer(kind, path, template, key_form, value_form)
    with metrics_server.serving(metrics_port), connect.consumer(properties) as consumer:
        consuming.run(consumer, topic, writer, timeout, show_progress=not quiet and _free_terminal(path), **what)
    if decoded:
        decoders.finish()


def _decoder(form: str, registry: Any, schema: str | None, message: str | None, subject: str | None) -> Any:
    """The decoder of a key or value; None: it is not decoded; "infer": its values will suggest the schema."""
    if form not in DECODED:
        if schema is not None or subject is not None:
            raise click.UsageError("a schema needs avro, json or protobuf")
        return None
    return decoder_of(form, registry, schema, message, subject) or "infer"


def _free_terminal(path: Path | None) -> bool:
    return sys.stderr.isatty() and (path is not None or not sys.stdout.isatty())


_listing = click.option("-o", "--output", "kind", type=click.Choice(["text", "json"]), default="text",
                        show_default=True, help="Table (tab-separated if not on a terminal) or JSON lines.")


@cli.command()
@click.argument("names", nargs=-1, metavar="[TOPIC]…")
@_connection
@_timeout
@_listing
@click.option("-a", "--all", "internal", is_flag=True, help="Include topics whose names begin with two underscores.")
def topics(*, names: tuple[str, ...], properties: dict[str, str], timeout: float, kind: str,
           internal: bool) -> None:
    """List the topics, or the partitions of the given TOPICs."""
    with connect.consumer(properties) as consumer:
        if names:
            inspecting.show_partitions(consumer, names, timeout, kind)
        else:
            inspecting.show_topics(consumer, internal, timeout, kind)


@cli.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC…")
@_connection
@_timeout
@_listing
def watermarks(*, names: tuple[str, ...], properties: dict[str, str], timeout: float,
               kind: str) -> None:
    """Show the low and high watermark of each partition.

    The last column is their difference. With -X isolation.level=read_committed the end is the last stable offset.
    """
    with connect.consumer(properties) as consumer:
        inspecting.show_watermarks(consumer, names, timeout, kind)


@cli.command()
@click.argument("group")
@_connection
@_timeout
@_listing
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; may be repeated.")
def lag(*, group: str, properties: dict[str, str], timeout: float, kind: str, topics: tuple[str, ...]) -> None:
    """Show how far GROUP is behind, in records and in seconds.

    The seconds are the age of the first record that the group has not committed. One batch of each late partition is
    read for it. The command does not join the group.
    """
    inspecting.show_lag(properties, group, topics, timeout, kind)


@cli.command()
@click.argument("group")
@_connection
@_timeout
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; may be repeated.")
@click.option("--interval", type=click.FloatRange(min=0.1), default=2.0, show_default=True, metavar="SECONDS",
              help="Time between readings.")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N readings.")
def top(*, group: str, properties: dict[str, str], timeout: float, topics: tuple[str, ...], interval: float,
        count: int | None) -> None:
    """Show the topics of GROUP with rates and lag, until Ctrl-C.

    Green: caught up. Yellow: the lag falls. Red: the lag does not fall. The rates are those of the committed offsets
    and of the ends of the partitions. The command does not join the group.
    """
    top_view.run(properties, group, topics, timeout, interval_s=interval, count=count)


cli.add_command(demo.demo)
cli.add_command(ingesting.ingest)
