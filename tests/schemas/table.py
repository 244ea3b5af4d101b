"""Owns: docs/schemas.json, the counts of `make public-schemas`, as the table of docs/reliability.md.

    python tests/schemas/table.py [--check]

Threads: one. Never: tries a schema. ``--check`` changes nothing, and fails where the page differs from the counts.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import page_parts

DOCS = Path(__file__).resolve().parents[2] / "docs"
FORMATS = ("parquet", "delta", "iceberg")


def main() -> int:
    text = table(json.loads((DOCS / "schemas.json").read_text(encoding="utf-8")))
    return page_parts.write_or_check(DOCS / "reliability.md", "schema results", text, "python tests/schemas/table.py")


def table(results: Mapping[str, Any]) -> str:
    titles = " | ".join(f"refused by {format}" for format in FORMATS)
    lines = [f"| package | schemas | number | types | wrong values | {titles} |", f"| {' | '.join(['---'] * 8)} |"]
    for name, found in results.items():
        lines.append(_row(f"{name} {found['version']}", found["kind"], [found]))
    lines.append(_row("all", "", list(results.values())))
    reasons: Counter[str] = Counter()
    for found in results.values():
        for refused in found["refused"].values():
            reasons.update(refused)
    lines += ["", "Reasons of the refusals, each with the number of tables:", ""]
    lines += [f"- {count}: {reason}" for reason, count in reasons.items()]
    return "\n".join(lines) + "\n"


def _row(name: str, kind: str, counts: list[Mapping[str, Any]]) -> str:
    cells = [sum(found[key] for found in counts) for key in ("schemas", "types", "wrong")]
    cells += [sum(sum(found["refused"].get(format, {}).values()) for found in counts) for format in FORMATS]
    return f"| {name} | {kind} | {' | '.join(f'{cell:,}' for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main())
