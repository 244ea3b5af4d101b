"""Owns: the long form of the random models: seeds on and on, from where the last run left off.

    python tools/soak_seeds.py simulation [--seconds N] [--seeds N]     histories of each protocol, tests.simulation
    python tools/soak_seeds.py spark [--seconds N] [--seeds N]          sequences of operations, tests.spark.model

Parts of the seeds are run by processes. A file, build/soak-MODEL.json, has what is done, so that the next run goes on
from there; after --seeds of them it begins the next series. Exit status 1 if a seed failed. Each one is printed;
`python -m tests.simulation --protocol P --seed N` or `python -m tests.spark.model --seeds N N+1` runs it again.

Threads: one for each process that it starts. Never: begins a part after the time is up.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Model:
    """A model: what runs its seeds, by the name of the series."""

    commands: dict[str, list[str]]
    part: int  # seeds of a process
    seeds: int  # of a series, unless --seeds is given
    first: int  # of the first series
    processes: int


MODELS: Final = {
    "simulation": Model({protocol: ["tests.simulation", "--keep-going", "--protocol", protocol]
                         for protocol in ("classic", "consumer", "assign")}, 500, 1_000_000, 0, os.cpu_count() or 1),
    # Each process starts a broker. Without the file, the seeds depend on the date.
    "spark": Model({"spark": ["tests.spark.model"]}, 25, 500, date.today().toordinal() * 1_000, 1),
}


def run(command: list[str], name: str, first: int, end: int) -> list[str]:
    """Return the lines about seeds that failed."""
    done = subprocess.run([sys.executable, "-m", *command, "--seeds", str(first), str(end)], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    failed = [f"{name} {line}" for line in done.stdout.splitlines() if re.match(r"seed \d+:", line)]
    if done.returncode != 0 and not failed:
        failed = [f"{name} seeds {first} to {end}: the process ended with {done.returncode}: {done.stderr[-500:]}"]
    return failed


class Seeds:
    """The parts of the seeds: handed out to workers, and what is done of each series without a gap."""

    def __init__(self, state: dict[str, Any], model: Model, seeds: int) -> None:
        self._part = model.part
        self.done: dict[str, int] = state.setdefault("next", dict.fromkeys(model.commands, model.first))
        first: dict[str, int] = state.setdefault("first", dict.fromkeys(model.commands, model.first))
        for name, at in self.done.items():
            if at >= first[name] + seeds:
                first[name] = at
        self._last = {name: at + seeds for name, at in first.items()}
        self._ahead = dict(self.done)
        self._open: set[tuple[str, int]] = set()

    def take(self) -> tuple[str, int, int] | None:
        """Return the next part (series, first, end), of the series with the most seeds left; None: all are taken."""
        name = max(self._ahead, key=lambda name: self._last[name] - self._ahead[name])
        first = self._ahead[name]
        if first >= self._last[name]:
            return None
        self._ahead[name] = min(first + self._part, self._last[name])
        self._open.add((name, first))
        return name, first, self._ahead[name]

    def end(self, name: str, first: int) -> None:
        self._open.discard((name, first))
        self.done[name] = min([start for other, start in self._open if other == name] + [self._ahead[name]])


def soak(model: Model, path: Path, seeds: int, seconds: float) -> int:
    """Run parts until the series or the time is over. Return the number of seeds that failed."""
    state: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"failed": []}
    parts = Seeds(state, model, seeds)
    until = time.monotonic() + seconds
    failed = 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal failed
        while time.monotonic() < until:
            with lock:
                taken = parts.take()
            if taken is None:
                return
            name, first, end = taken
            lines = run(model.commands[name], name, first, end)
            with lock:
                parts.end(name, first)
                failed += len(lines)
                state["failed"] += lines
                for line in lines:
                    print(line, flush=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(state, indent=1))

    with ThreadPoolExecutor(model.processes) as pool:
        for worker in [pool.submit(work) for _ in range(model.processes)]:
            worker.result()
    done = ", ".join(f"{at - state['first'][name]} {name}" for name, at in parts.done.items())
    print(f"soak: {done} seeds of this series done, {failed} failed in this run, {len(state['failed'])} in all")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a random model for a long time.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--seconds", type=float, default=math.inf, help="default: no limit")
    parser.add_argument("--seeds", type=int, help="of a series")
    options = parser.parse_args()
    model = MODELS[options.model]
    path = ROOT / "build" / f"soak-{options.model}.json"
    return int(soak(model, path, options.seeds or model.seeds, options.seconds) > 0)


if __name__ == "__main__":
    sys.exit(main())
