"""The command `kconsumer`: `consume`, `topics` and `watermarks` inspect topics; `ingest` writes tables.

Owns: main, and the message about the missing extra. Threads: the main thread. Never: is imported by the rest of
kconsumer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kconsumer.cli.exit_codes import SIGINT_EXIT

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with these arguments, or the process's arguments.

    Does not return.
    """
    try:
        import click  # noqa: F401 - checks that it is installed
        import rich  # noqa: F401 - checks that it is installed
    except ImportError as error:
        sys.exit(f"kconsumer: the command needs click and rich ({error}): pip install 'kconsumer[cli]'")
    try:
        from kconsumer.cli.app import cli
    except KeyboardInterrupt:
        sys.exit(SIGINT_EXIT)
    cli(arguments, prog_name="kconsumer")
