"""Prints the requirements of an extra of the installed kconsumer, one per line: `python tools/requirements.py EXTRA`.

Owns: reading them from the package's metadata, so that `make` can install them without another build. Threads: one.
Never: installs.
"""

from __future__ import annotations

import sys
from importlib.metadata import requires


def main() -> int:
    extra = sys.argv[1]
    parts = [line.partition(";") for line in requires("kconsumer") or ()]
    found = [name.strip() for name, _, condition in parts if f'extra == "{extra}"' in condition.replace("'", '"')]
    print("\n".join(found))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
