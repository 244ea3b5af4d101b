"""``python -m kconsumer.compat SCRIPT [ARGS]``: runs a program for confluent_kafka with kconsumer's consumers.

Owns: the command line. Threads: the main thread. Never: handles an exception of the program.
"""

from __future__ import annotations

import os
import runpy
import sys

from kconsumer.compat import install

_USAGE = "usage: python -m kconsumer.compat SCRIPT [ARGS], or -m MODULE [ARGS] instead of SCRIPT"


def main() -> None:
    """Replace the consumers, then run the program as ``python`` would."""
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    program = arguments[is_module:]
    if not program or program[0].startswith("-"):
        sys.exit(_USAGE)
    install()
    sys.argv[:] = program
    if is_module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
