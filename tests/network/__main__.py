"""Owns: the command that runs scenes and keeps their figures: ``python tests/network [SCENE ...] [--results FILE]``.

A user other than root runs it in a user namespace. Results of scenes that do not run this time stay in the file.
A scene that fails is left out, and fails the command at its end.
Threads: one. Never: judges the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

from net import NetworkOfBrokers, NoNamespacesError
from rates import run as run_rates
from scenes import GROUPS, SCENES, SESSION_MS, SHORT, broker_config, run

IMPOSSIBLE = 77  # exit status: no namespaces here; the reason is on stderr
RATES = "rates"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/network")
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join([*SCENES, *SHORT, RATES]))
    parser.add_argument("--results", type=Path, help="JSON file that takes the figures of each scene when it ends")
    parser.add_argument("--kind", choices=["kconsumer", "confluent"], help="only groups of this client")
    parser.add_argument("--session-ms", type=int, default=SESSION_MS)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() != 0:
        probe = subprocess.run(["unshare", "-Urn", "true"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            print(probe.stderr.strip(), file=sys.stderr)
            return IMPOSSIBLE
        os.execvp("unshare", ["unshare", "-Ur", sys.executable, *sys.argv])
    groups = [group for group in GROUPS if options.kind in (None, group[0])]
    names = options.scenes or [*SCENES, RATES]
    try:
        brokers = NetworkOfBrokers(**broker_config(options.session_ms))
    except NoNamespacesError as error:
        print(error, file=sys.stderr)
        return IMPOSSIBLE
    with brokers:
        failed = 0
        for name in names:
            try:
                figures = run_rates(brokers, options.rounds) if name == RATES else [
                    run(brokers, name, groups, options.session_ms) for _ in range(options.rounds)]
            except Exception:  # the other scenes are still worth their time
                traceback.print_exc()
                failed = 1
            else:
                _keep(options.results, name, figures)
    return failed


def _keep(results: Path | None, name: str, figures: object) -> None:
    if results is not None:
        known = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
        results.write_text(json.dumps({**known, name: figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
