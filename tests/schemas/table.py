"""Owns: docs/schemas.json, the counts of `make public-schemas`, as the table of docs/reliability.md.

    python tests/schemas/table.py [--check]

Threads: one. Never: tries a schema. ``--check`` changes nothing, and fails where the page differs from the counts.
"""

from __future__ import annotations

import json
import sys
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
    packages = results["packages"]
    refused = " | ".join(f"refused by {format}" for format in FORMATS)
    lines = [f"| package | schemas | number | types | wrong values | {refused} |", f"| {' | '.join(['---'] * 8)} |"]
    for name, found in packages.items():
        lines.append(_row(f"{name} {found['version']}", found["kind"], [found]))
    lines.append(_row("all", "", list(packages.values())))
    lines += ["", "Reasons of the refusals, each with the number of tables:", ""]
    lines += [f"- {count}: {reason}" for reason, count in results["reasons"].items()] or ["- none"]
    return "\n".join(lines) + "\n"


def _row(name: str, kind: str, counts: list[Mapping[str, Any]]) -> str:
    cells = [sum(found[key] for found in counts) for key in ("schemas", "types", "wrong")]
    cells += [sum(found["refused"].get(format, 0) for found in counts) for format in FORMATS]
    return f"| {name} | {kind} | {' | '.join(f'{cell:,}' for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main())
