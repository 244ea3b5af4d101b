"""Owns: the long form of the model of Spark's streams: 500 random sequences of operations.

Usage: python tools/soak_spark.py [--sequences N] [--seconds N] [--state FILE]. Sequences run in parts, each on a
separate broker. A file (default build/soak-spark.json) stores the progress, and the next run continues there. Its 500
sequences have other seeds; without the file, the seeds depend on the date. Exit status 1 if a seed failed; each failed
seed is printed. `python -m tests.spark.model --seeds N N+1` runs one again and prints every operation.

Threads: one; a part is a process. Never: starts a part after the time is over.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PART = 25
SEEDS_A_DAY = 1_000


def run(first: int, end: int) -> list[str]:
    """Return the lines about failed seeds."""
    done = subprocess.run([sys.executable, "-m", "tests.spark.model", "--seeds", str(first), str(end)], cwd=ROOT,
                          text=True, capture_output=True, check=False)
    failed = [line for line in done.stdout.splitlines() if re.match(r"seed \d+:", line)]
    if done.returncode != 0 and not failed:
        failed = [f"seeds {first} to {end}: the process ended with {done.returncode}: {done.stderr[-500:]}"]
    return failed


def load(path: Path, sequences: int) -> dict[str, Any]:
    if not path.exists():
        first = date.today().toordinal() * SEEDS_A_DAY
        return {"first": first, "next": first, "failed": []}
    found: dict[str, Any] = json.loads(path.read_text())
    if found["next"] >= found["first"] + sequences:
        found["first"] = found["next"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the model of Spark's streams for a long time.")
    parser.add_argument("--seconds", type=float, default=math.inf, help="default: no limit")
    parser.add_argument("--sequences", type=int, default=500)
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "soak-spark.json")
    options = parser.parse_args()
    state = load(options.state, options.sequences)
    last = state["first"] + options.sequences
    until = time.monotonic() + options.seconds
    failed = 0
    while time.monotonic() < until and state["next"] < last:
        end = min(state["next"] + PART, last)
        for line in run(state["next"], end):
            failed += 1
            state["failed"].append(line)
            print(line, flush=True)
        state["next"] = end
        options.state.parent.mkdir(parents=True, exist_ok=True)
        options.state.write_text(json.dumps(state, indent=1))
    done = state["next"] - state["first"]
    print(f"soak: {done} sequences done, {failed} failed in this run, {len(state['failed'])} in all")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
