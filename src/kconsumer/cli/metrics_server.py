"""`--metrics-port`: the metrics of this process for Prometheus.

Owns: the HTTP server. Threads: the main thread; prometheus-client serves in its own. Never: serves without the option.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from kconsumer.cli.terminal import Failure


@contextmanager
def serving(port: int | None) -> Iterator[None]:
    """Serve the metrics on a port of all addresses; None: not at all."""
    if port is None:
        yield
        return
    try:
        from kconsumer.telemetry.prometheus import Collector
    except ImportError as error:
        raise click.UsageError(f"--metrics-port: {error}") from error
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    Collector().register(registry)
    try:
        server, thread = start_http_server(port, registry=registry)
    except OSError as error:
        raise Failure(f"cannot serve metrics on port {port}: {error.strerror}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
