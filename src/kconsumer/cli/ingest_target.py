"""The target of `kconsumer ingest`, in the forms that it is given in.

Owns: target(). Threads: the main one. Never: looks whether the target is there.
"""

from __future__ import annotations

import click

from kconsumer.cli.terminal import warn

_FORMAT = "parquet"
_FORMATS = ("parquet", "delta", "iceberg", "json", "orc", "csv", "text", "avro", "hudi")  # no path is called like these


def target(
    output: str | None, path: str | None, table: str | None, old_format: str | None, needed: bool = True
) -> tuple[str, str | None]:
    """The format and the path, also from `-o PATH --format FORMAT`, which is how they were given before.

    Args:
        needed: whether one of `path` and `table` must be there; routes have their own.

    Raises:
        click.UsageError: a format is given twice, or neither a path nor a table.
    """
    if old_format is not None:
        warn("--format is deprecated: give -o FORMAT")
    if not needed or output is None or path is not None or table is not None:
        if output is not None and old_format is not None:
            raise click.UsageError("-o and --format both set the format: give one of them")
        return output or old_format or _FORMAT, path
    if old_format is None and output in _FORMATS:
        raise click.UsageError(f"-o {output} sets the format, not the path: give -O PATH or --table too")
    warn("-o PATH is deprecated, since -o is the format of the output in every command: give -O PATH")
    return old_format or _FORMAT, output
