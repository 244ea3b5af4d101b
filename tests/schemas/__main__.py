"""Tries all public schemas in tables of each format, and writes docs/schemas.json; about 40 minutes.

    python tests/schemas [--every N] [--package NAME]

Owns: the counts. Threads: one, with two processes. Never: writes a page: tests/schemas/table.py does.
Fails where a value is wrong.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from packages import PACKAGES, PublicSchema, public_schemas
from trials import Outcome, spark_session, tried

from kconsumer.ingest.table_types import FORMATS

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "schemas.json"
_EVERY_SPARK = 20  # Spark reads the tables of every so many schemas: each takes it seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--every", type=int, default=1, help="try only every Nth schema, and write no results")
    parser.add_argument("--package", help="try only this package, and keep the results of the others")
    every, only = (options := parser.parse_args()).every, options.package
    wanted = [public for public in islice(public_schemas(), 0, None, every) if only in (None, public.package)]
    counts: dict[str, Any] = {}
    for package, kind in PACKAGES.items():
        name, _, version = package.partition("==")
        if only not in (None, name):
            continue
        counts[name] = {"kind": kind, "version": version, "schemas": 0, "types": 0, "wrong": 0, "spark": 0,
                        "refused": {}}
    by_spark = [number % _EVERY_SPARK == 0 for number in range(len(wanted))]
    with ProcessPoolExecutor(2) as pool:
        for public, outcome, is_read in zip(wanted, pool.map(trial, wanted, by_spark, chunksize=8), by_spark,
                                            strict=True):
            found = counts[public.package]
            found["schemas"] += 1
            found["types"] += outcome.types
            found["wrong"] += bool(outcome.wrong)
            found["spark"] += is_read and len(outcome.refused) < len(FORMATS)
            for format, reason in outcome.refused.items():
                found["refused"].setdefault(format, Counter())[reason] += 1
                print(f"refused: {public.name}: {format}: {reason}")
            for wrong in outcome.wrong:
                print(f"WRONG: {public.package}: {public.name}: {wrong}", file=sys.stderr)
    if every == 1:
        kept = {} if only is None else json.loads(RESULTS.read_text(encoding="utf-8"))
        RESULTS.write_text(json.dumps(kept | counts, indent=1) + "\n", encoding="utf-8")
    return 1 if any(found["wrong"] for found in counts.values()) else 0


@functools.cache
def _spark() -> Any:
    return spark_session()


def trial(public: PublicSchema, by_spark: bool) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return tried(public, Path(folder), _spark() if by_spark else None)
        except Exception as error:  # any error of a format's library is a finding
            return Outcome(wrong=[f"{type(error).__name__}: {error}"])


if __name__ == "__main__":
    sys.exit(main())
