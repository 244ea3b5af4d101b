"""The command `kconsumer`, for a look into topics: `consume`, `topics`, `watermarks`.

Owns: main, and what is said when the extra is missing. Threads: the main one. Never: is imported by the rest of
kconsumer.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command with the process's arguments; does not return."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        sys.exit(f"kconsumer: the command needs click and rich ({error}): pip install 'kconsumer[cli]'")
    from kconsumer.cli.app import cli

    cli(prog_name="kconsumer")
