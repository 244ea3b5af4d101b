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
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROTOCOLS = ("classic", "consumer", "assign")
RANGE = 500


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


class Ranges:
    """The ranges of seeds: handed out to workers, and what is done of each protocol without a gap."""

    def __init__(self, done: dict[str, int], histories: int) -> None:
        self.done = done
        self.histories = histories
        self.ahead = dict(done)
        self.open: set[tuple[str, int]] = set()

    def take(self) -> tuple[str, int, int] | None:
        """The next range (protocol, first, end), of whichever protocol has had the fewest; None: all are taken."""
        protocol = min(PROTOCOLS, key=self.ahead.__getitem__)
        first = self.ahead[protocol]
        if first >= self.histories:
            return None
        self.ahead[protocol] = min(first + RANGE, self.histories)
        self.open.add((protocol, first))
        return protocol, first, self.ahead[protocol]

    def end(self, protocol: str, first: int) -> None:
        self.open.discard((protocol, first))
        self.done[protocol] = min([start for p, start in self.open if p == protocol] + [self.ahead[protocol]])


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the simulation for a long time.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--histories", type=int, default=1_000_000, help="of each protocol")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "soak-simulation.json")
    options = parser.parse_args()
    state = load(options.state)
    ranges = Ranges(state["next"], options.histories)
    until = time.monotonic() + options.seconds
    failed = 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal failed
        while time.monotonic() < until:
            with lock:
                taken = ranges.take()
            if taken is None:
                return
            lines = run(*taken)
            with lock:
                ranges.end(*taken[:2])
                failed += len(lines)
                state["failed"] += lines
                for line in lines:
                    print(line, flush=True)
                options.state.parent.mkdir(parents=True, exist_ok=True)
                options.state.write_text(json.dumps(state, indent=1))

    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        for worker in [pool.submit(work) for _ in range(cores)]:
            worker.result()
    done = ", ".join(f"{state['next'][p]} {p}" for p in PROTOCOLS)
    print(f"soak: {done} histories done, {failed} failed in this run, {len(state['failed'])} in all")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
