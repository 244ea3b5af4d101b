"""A pytest plugin that writes each test's outcome as a line of JSON, for tools/drop_in.py.

Owns: the file that `DROP_IN_OUTCOMES` names. Threads: pytest's thread. Never: replaces anything.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest


def _write(**outcome: Any) -> None:
    with open(os.environ["DROP_IN_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps(outcome) + "\n")


def _why(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines[0] if crash is not None else lines[-1])[:200] if lines else ""


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(test=report.nodeid, outcome="failed", why=f"not collected: {_why(report)}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        why = "" if report.passed else _why(report)
        _write(test=report.nodeid, outcome=report.outcome, why=why)
