"""Owns: docs/reliability.json, the figures of `make test-network`, as the tables of docs/reliability.md.

    python tests/network/table.py [--check]

Threads: one. Never: measures anything. ``--check`` changes nothing, and fails where the page differs from the figures.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rates import RECORDS, ROUND_TRIP_MS, WAYS
from scenes import GROUPS, RECOVERY_S, SCENES

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import page_parts

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS, PAGE = DOCS / "reliability.json", DOCS / "reliability.md"


def main() -> int:
    text = _tables(json.loads(RESULTS.read_text(encoding="utf-8")))
    return page_parts.write_or_check(PAGE, "network results", text, "python tests/network/table.py")


def _tables(results: Mapping[str, Any]) -> str:
    names = [f"{kind}, {protocol}" for kind, protocol in GROUPS]
    lines = ["### Seconds until all partitions flow again, after the end of the fault", "",
             *_table(["fault", "scene", "runs", *names], _rows(results, _flows)), "",
             "### The longest time in which a partition delivered nothing new, during the fault, in seconds", "",
             *_table(["fault", "scene", "runs", *names], _rows(results, _stalled)), "",
             "### Records delivered again", "",
             *_table(["fault", "scene", "runs", *names], _rows(results, _duplicates)), "",
             "### Records lost, and commits of two owners: findings of all runs", "",
             *_table(["fault", "scene", "runs", *names], _rows(results, _violations)), ""]
    if "rates" in results:
        rates = results["rates"]
        lines += [f"### MB/s of one consumer at a round trip of {ROUND_TRIP_MS} ms", "",
                  f"The path's ceiling in the same runs: {_middle(rates['ceiling'])} MB/s. The forwarder moves "
                  f"{_middle(rates['MB per CPU second'])} MB in a second of CPU time.", "",
                  *_table(["partitions", "runs", *WAYS],
                          ([str(partitions), str(len(rates["ceiling"])),
                            *(_middle(rates[str(partitions)][way]) for way in WAYS)] for partitions in RECORDS)), ""]
    return "\n".join(lines)


def _rows(results: Mapping[str, Any], cell: Callable[[list[dict[str, Any]]], str]) -> Iterable[list[str]]:
    for name, (text, _) in SCENES.items():
        if name in results:
            runs = results[name]
            yield [text, f"`{name}`", str(len(runs)), *(cell([run[column] for run in runs])
                                                        for column in range(len(GROUPS)))]


def _table(columns: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in [columns, ["---"] * len(columns), *rows]]


def _middle(numbers: Iterable[float]) -> str:
    return f"{statistics.median(numbers):.1f}"


def _flows(outcomes: list[dict[str, Any]]) -> str:
    known = [outcome["flows_s"] for outcome in outcomes]
    return f"> {RECOVERY_S:.0f}" if None in known else _middle(known)


def _stalled(outcomes: list[dict[str, Any]]) -> str:
    return _middle(outcome["stalled_s"] for outcome in outcomes)


def _duplicates(outcomes: list[dict[str, Any]]) -> str:
    return f"{statistics.median(outcome['duplicates'] for outcome in outcomes):,.0f}"


def _violations(outcomes: list[dict[str, Any]]) -> str:
    return str(sum(len(outcome["violations"]) for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
