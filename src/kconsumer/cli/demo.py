"""`kconsumer demo`: the data of the guides, on an embedded cluster or a running one.

Owns: the options and the text on standard output. Threads: the main thread. Never: ends by itself.
"""

from __future__ import annotations

import errno
import threading
from contextlib import suppress

import click

from kconsumer.cli.property_sources import connection
from kconsumer.cli.terminal import Failure

_FORMATS = ("JSON", "Avro, with its schema in the registry", "Protobuf, with its schema in the registry")


_PORT = click.IntRange(0, 65_535)


@click.command()
@connection("-X", help="A property of confluent_kafka's clients for -b; may be repeated.", brokers_required=False)
@click.option("--port", type=_PORT, default=9092, show_default=True, metavar="PORT",
              help="Port of the embedded cluster; 0: a free one.")
@click.option("--registry-port", type=_PORT, default=8081, show_default=True, metavar="PORT",
              help="Port of the schema registry; 0: a free one.")
def demo(*, properties: dict[str, str], port: int, registry_port: int) -> None:
    """Serve topics with invented flights, and a schema registry, until Ctrl-C.

    Without -b it starts an embedded cluster, which needs no Java and loses the records at its end. With -b it creates
    the topics on a running cluster, which keeps them. It refuses topics that exist. All guides of the documentation
    read these topics.
    """
    from kconsumer.testing import ClusterError  # here, so that other commands start without it
    from kconsumer.testing.demo import COUNT, PARTITIONS, TOPICS, Demo

    try:
        with Demo(properties or None, port=port, registry_port=registry_port) as made:
            for topic, form in zip(TOPICS, _FORMATS, strict=True):
                click.echo(f"{topic:<16}  {COUNT:,} records in {PARTITIONS} partitions: {form}")
            click.echo(f"{'brokers':<16}  {made.bootstrap_servers}\n{'schema registry':<16}  {made.registry_url}\n"
                       f"Try in another terminal: kconsumer consume flights -b {made.bootstrap_servers} -n 3")
            click.echo("Ctrl-C ends the registry; the topics stay." if properties else
                       "Ctrl-C ends the demo and drops its records.")
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise Failure(f"port {port} or {registry_port} is in use: choose others with --port and --registry-port, or "
                      f"use -b localhost:{port}") from error
    except (ClusterError, ImportError) as error:
        raise Failure(str(error)) from error
