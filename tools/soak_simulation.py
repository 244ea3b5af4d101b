"""Owns: the long form of the simulation: histories of every protocol, on and on, where the last run left off.

Usage: python tools/soak_simulation.py [--seconds N] [--histories N] [--state FILE]. Ranges of seeds are run by a
process per core; what is done is kept in a file (default build/soak-simulation.json), so that the next run goes on from
there, until every protocol has had its histories (default 1,000,000). Exit status 1 when a seed failed; each is
printed, and is run again by `python -m tests.simulation --protocol P --seed N`.

Threads: one a process that it starts. Never: goes on into a range after the time is up.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROTOCOLS = ("classic", "consumer", "assign")
RANGE = 250


def run(protocol: str, first: int, end: int) -> list[str]:
    """The lines about seeds that failed."""
    done = subprocess.run([sys.executable, "-m", "tests.simulation", "--protocol", protocol, "--seeds", str(first),
                           str(end), "--keep-going"], cwd=ROOT, text=True, capture_output=True, check=False)
    failed = [f"{protocol} {line}" for line in done.stdout.splitlines() if re.match(r"seed \d+:", line)]
    if done.returncode != 0 and not failed:
        failed = [f"{protocol} seeds {first} to {end}: the process ended with {done.returncode}: {done.stderr[-500:]}"]
    return failed


def load(path: Path) -> dict[str, Any]:
    if path.exists():
        return json.loads(path.read_text())
    return {"next": dict.fromkeys(PROTOCOLS, 0), "failed": []}


def due(done: dict[str, int], histories: int) -> list[tuple[str, int]]:
    """The next range of each core: of whichever protocol has had the fewest."""
    ahead = dict(done)
    ranges = []
    for _ in range(os.cpu_count() or 1):
        protocol = min(PROTOCOLS, key=ahead.__getitem__)
        if ahead[protocol] < histories:
            ranges.append((protocol, ahead[protocol]))
            ahead[protocol] += RANGE
    return ranges


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the simulation for a long time.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--histories", type=int, default=1_000_000, help="of each protocol")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "soak-simulation.json")
    options = parser.parse_args()
    state = load(options.state)
    until = time.monotonic() + options.seconds
    failed = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        while time.monotonic() < until:
            ranges = due(state["next"], options.histories)
            if not ranges:
                break
            asked = [pool.submit(run, p, first, min(first + RANGE, options.histories)) for p, first in ranges]
            for (protocol, first), answer in zip(ranges, asked, strict=True):
                lines = answer.result()
                failed += len(lines)
                state["failed"] += lines
                state["next"][protocol] = min(first + RANGE, options.histories)
                for line in lines:
                    print(line, flush=True)
            options.state.parent.mkdir(parents=True, exist_ok=True)
            options.state.write_text(json.dumps(state, indent=1))
    done = ", ".join(f"{state['next'][p]} {p}" for p in PROTOCOLS)
    print(f"soak: {done} histories done, {failed} failed in this run, {len(state['failed'])} in all")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
