"""PromQL over a list of scrapes, as much of it as docs/dashboards/alerts.yml uses; promql-parser reads the text."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterator
from typing import Any

import promql_parser as promql

Labels = tuple[tuple[str, str], ...]
Scrape = tuple[float, dict[tuple[str, Labels], float]]

_COMPARED = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le, "==": operator.eq}
_COMBINED = {"sum": sum, "max": max, "min": min}


def names(node: Any) -> Iterator[promql.VectorSelector]:
    """All selectors of an expression."""
    if isinstance(node, promql.VectorSelector):
        yield node
    for inner in ("lhs", "rhs", "expr", "param", "vector_selector"):
        if getattr(node, inner, None) is not None:
            yield from names(getattr(node, inner))
    for argument in getattr(node, "args", ()):
        yield from names(argument)


def evaluate(node: Any, scrapes: list[Scrape]) -> dict[Labels, float]:
    """The value at the last scrape."""
    if isinstance(node, promql.VectorSelector):
        return _selected(node, scrapes[-1])
    if isinstance(node, promql.ParenExpr):
        return evaluate(node.expr, scrapes)
    if isinstance(node, promql.BinaryExpr):
        assert isinstance(node.rhs, promql.NumberLiteral)
        compare = _COMPARED[str(node.op)]
        return {labels: value for labels, value in evaluate(node.lhs, scrapes).items() if compare(value, node.rhs.val)}
    if isinstance(node, promql.AggregateExpr):
        groups: dict[Labels, list[float]] = {}
        for labels, value in evaluate(node.expr, scrapes).items():
            key = tuple((name, text) for name, text in labels if name in node.modifier.labels)
            groups.setdefault(key, []).append(value)
        return {labels: _COMBINED[str(node.op)](values) for labels, values in groups.items()}
    assert isinstance(node, promql.Call) and node.func.name == "increase", node
    (window,) = node.args
    since = scrapes[-1][0] - window.range.total_seconds()
    within = [_selected(window.vector_selector, scrape) for scrape in scrapes if scrape[0] >= since]
    return {labels: _increase([found[labels] for found in within if labels in found]) for labels in within[-1]}


def _increase(values: list[float]) -> float:
    return sum(max(after - before, 0) for before, after in itertools.pairwise(values))


def _selected(node: Any, scrape: Scrape) -> dict[Labels, float]:
    return {labels: value for (name, labels), value in scrape[1].items()
            if name == node.name and all(_matches(matcher, dict(labels)) for matcher in node.matchers.matchers)}


def _matches(matcher: Any, labels: dict[str, str]) -> bool:
    text = labels.get(matcher.name, "")
    return {"Equal": text == matcher.value, "NotEqual": text != matcher.value,
            "Re": re.fullmatch(matcher.value, text) is not None}[str(matcher.op).partition(".")[2]]


def fired(expression: str, after_s: float, scrapes: list[Scrape]) -> list[Labels]:
    """The series for which the rule was true for `after_s` seconds up to some scrape."""
    node = promql.parse(expression)
    since: dict[Labels, float] = {}
    found: list[Labels] = []
    for place, (at, _) in enumerate(scrapes):
        true = evaluate(node, scrapes[: place + 1])
        since = {labels: since.get(labels, at) for labels in true}
        found += [labels for labels, began in since.items() if at - began >= after_s and labels not in found]
    return found
