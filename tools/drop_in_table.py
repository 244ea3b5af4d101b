"""Writes the results of `make drop-in` into docs/migrating.md.

    python tools/drop_in_table.py [--check]

Owns: the table there. Threads: one. Never: runs a test. ``--check`` changes nothing, and fails where the page differs
from docs/drop-in.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import page_parts
from drop_in_suites import PROGRAMS, Suite

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS, PAGE = DOCS / "drop-in.json", DOCS / "migrating.md"


def main() -> int:
    text = table(json.loads(RESULTS.read_text(encoding="utf-8")))
    return page_parts.write_or_check(PAGE, "drop-in results", text, "python tools/drop_in_table.py")


def table(results: Mapping[str, Any]) -> str:
    """Return the table, and the list of the tests that differ."""
    rows = [("project", "version", "tests", "pass with confluent_kafka", "differ: consumers", "differ: all names"),
            ("---",) * 6]
    differing: dict[str, list[str]] = {}
    for suite in PROGRAMS:
        found = results[suite.name]
        theirs, *others = (found[client] for client in suite.clients)
        rows.append((suite.name, found["version"], str(others[0]["tests"]), str(theirs["passed"]),
                     *(str(len(other["differ"])) for other in others)))
        for test, reason in _reasons(suite, others):
            differing.setdefault(f"{suite.name}: {reason}", []).append(test.rpartition("::")[2].partition("[")[0])
    lines = [f"| {' | '.join(row)} |" for row in rows] + ["", "The tests that differ:", ""]
    lines += [f"- {reason} ({', '.join(f'`{test}`' for test in dict.fromkeys(tests))})"
              for reason, tests in differing.items()]
    return "\n".join(lines) + "\n"


def _reasons(suite: Suite, others: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    """Find the reason of each test that differs. A test without one is an error."""
    for test in sorted({test for other in others for test in other["differ"]}):
        yield test, suite.expected.get(test) or suite.expected_of_names[test]


if __name__ == "__main__":
    sys.exit(main())
