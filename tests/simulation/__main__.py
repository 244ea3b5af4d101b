"""Owns: the command line of the simulation: one seed with its trace, or a range of seeds.

    python -m tests.simulation --protocol classic --seed 17 [--trace]
    python -m tests.simulation --protocol consumer --seeds 0 2000

Threads: one. Never: goes on after the first seed that fails, unless --keep-going.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import traceback

from .history import History

COLLECT_EVERY = 100  # a released history leaves no cycles; one that failed does


def run(seed: int, protocol: str, tracing: bool) -> tuple[History | None, str]:
    """The history and why it failed ('' where it did not)."""
    history = None
    try:
        history = History(seed, protocol, tracing)
        history.run()
    except Exception:
        return history, traceback.format_exc()
    return history, ""


def show(seed: int, protocol: str) -> bool:
    """Runs one seed with its trace; whether it failed."""
    history, why = run(seed, protocol, True)
    if history is not None:
        print("\n".join(history.cluster.lines))
    print(f"--- seed {seed}, {protocol}: " + (why or "nothing is wrong"))
    return bool(why)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--protocol", choices=["assign", "classic", "consumer"], default="classic")
    parser.add_argument("--seed", type=int, help="run this one and print its trace")
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 200], metavar=("FROM", "TO"))
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    if options.seed is not None:
        return int(show(options.seed, options.protocol))
    gc.freeze()
    gc.disable()
    began, turns, records, failed = time.process_time(), 0, 0, []
    for seed in range(*options.seeds):
        history, why = run(seed, options.protocol, False)
        if history is not None:
            turns += history.simulation.turns
            records += history.records
            history.release()
        del history
        if seed % COLLECT_EVERY == 0:
            gc.collect()
        if why:
            failed.append(seed)
            print(f"seed {seed}: {why.strip().splitlines()[-1]}", flush=True)
            if not options.keep_going:
                break
    count = seed + 1 - options.seeds[0]
    took = time.process_time() - began
    print(f"{options.protocol}: {count} histories, {len(failed)} failed, {records} records, {turns} turns, "
          f"{took:.1f} s of CPU, {1000 * took / count:.1f} ms each")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
