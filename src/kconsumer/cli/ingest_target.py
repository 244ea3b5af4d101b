"""The target of `kconsumer ingest`, in all forms of its options.

Owns: target(). Threads: the main thread. Never: checks whether the target exists.
"""

from __future__ import annotations

import click

from kconsumer.cli.terminal import warn

_FORMAT = "parquet"
_FORMATS = ("parquet", "delta", "iceberg", "json", "orc", "csv", "text", "avro", "hudi")  # a path never has these names


def target(
    output: str | None, path: str | None, old_format: str | None, needed: bool = True
) -> tuple[str, str | None]:
    """Return the format and the path, also from the deprecated `-o PATH --format FORMAT`.

    Args:
        needed: whether a path is required; routes have their own.

    Raises:
        click.UsageError: the format is set twice, or there is no path.
    """
    if old_format is not None:
        warn("--format is deprecated: use -o FORMAT")
    if not needed or output is None or path is not None:
        if output is not None and old_format is not None:
            raise click.UsageError("-o and --format both set the format: use one of them")
        return output or old_format or _FORMAT, path
    if old_format is None and output in _FORMATS:
        raise click.UsageError(f"-o {output} sets the format, not the path: set -O PATH too")
    warn("-o PATH is deprecated, since -o sets the format in every command: use -O PATH")
    return old_format or _FORMAT, output
