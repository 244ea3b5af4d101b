"""`python -m kconsumer.spark.ingest`, and what spark-submit runs: the command `kconsumer ingest`.

Owns: nothing. Threads: the main one. Never: defines options.
"""

from __future__ import annotations

import sys

from kconsumer.cli import main

if __name__ == "__main__":
    main(["ingest", *sys.argv[1:]])
