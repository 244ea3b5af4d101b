"""Checks topic patterns for constructs that brokers do not support, before it sends them.

Owns: the difference between POSIX extended regular expressions (``group.protocol=classic``, matched in this process,
anywhere after ``^``) and RE2 (``group.protocol=consumer``, matched on the broker, against the whole name).
Threads: any. Never: decides whether a pattern is valid RE2: the broker does (INVALID_REGULAR_EXPRESSION). This module
only names constructs that work under the classic protocol or in Python, but not in RE2.
"""

from __future__ import annotations

__all__ = ["re2_objection"]

_MOST_REPEATS = 1000  # RE2 refuses larger counts
_REPEATS = frozenset("*+?")
_GROUPS = {
    "?=": "a lookahead", "?!": "a lookahead", "?<=": "a lookbehind", "?<!": "a lookbehind", "?>": "an atomic group",
    "?(": "a conditional group", "?P=": "a back-reference", "?P>": "a recursion", "?R": "a recursion",
    "?#": "a comment",
}
_ESCAPES = {
    **dict.fromkeys("123456789", "a back-reference"), **dict.fromkeys("<>", "a word boundary of GNU"),
    **dict.fromkeys("`'", "a text boundary of GNU"), "G": "the end of the last match",
    "K": "a reset of the match", "R": "any line break", "Z": "the end of the text",
}


def re2_objection(pattern: str) -> str | None:
    """Return why a broker's RE2 rejects the pattern; None if no reason is known.

    RE2 patterns must match the whole topic name: ``^logs`` matches only the topic "logs". ``^logs.*`` has the meaning
    of ``^logs`` under the classic protocol.
    """
    depth = 0
    at = 0
    repeated = False  # the previous item is a repetition
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            objection, at = _escape(pattern, at)
        elif char == "[":
            objection, at = _bracket(pattern, at)
        elif char == "(":
            depth += 1
            objection, at = _group(pattern, at)
        elif char == ")":
            depth -= 1
            objection, at = ("it closes a group that is not open" if depth < 0 else None), at + 1
        elif char in _REPEATS or (char == "{" and _count_end(pattern, at)):
            objection, at = _repetition(pattern, at, repeated)
            if objection is None:
                repeated = True
                continue
        else:
            objection, at = None, at + 1
        if objection is not None:
            return objection
        repeated = False
    return "a group is not closed" if depth else None


def _escape(pattern: str, at: int) -> tuple[str | None, int]:
    follows = pattern[at + 1:at + 2]
    if not follows:
        return "it ends in a backslash", at
    if follows == "Q":  # literal up to \E
        end = pattern.find("\\E", at)
        return None, len(pattern) if end < 0 else end + 2
    if follows in _ESCAPES:
        return f"RE2 has no \\{follows} ({_ESCAPES[follows]})", at
    return None, at + 2


def _group(pattern: str, at: int) -> tuple[str | None, int]:
    for opening, meaning in _GROUPS.items():
        if pattern.startswith(opening, at + 1):
            return f"RE2 has no ({opening} ({meaning})", at
    # The ? of (?i) or (?: repeats nothing.
    return None, at + (2 if pattern.startswith("?", at + 1) else 1)


def _bracket(pattern: str, at: int) -> tuple[str | None, int]:
    at += 1
    if pattern.startswith("^", at):
        at += 1
    first = True
    while at < len(pattern):
        if pattern[at] == "]" and not first:
            return None, at + 1
        first = False
        if pattern.startswith(("[.", "[="), at):
            return "RE2 has no collating elements or equivalence classes", at
        if pattern.startswith("[:", at) and pattern.find(":]", at) > 0:
            at = pattern.find(":]", at) + 2
        else:
            at += 2 if pattern[at] == "\\" else 1
    return "a bracket is not closed", at


def _count_end(pattern: str, at: int) -> int:
    """Return the end of a {m,n}; 0 if the brace is only a character."""
    end = pattern.find("}", at)
    if end < 0:
        return 0
    low, comma, high = pattern[at + 1:end].partition(",")
    counted = low.isdecimal() and (not comma or not high or high.isdecimal())
    return end + 1 if counted else 0


def _repetition(pattern: str, at: int, repeated: bool) -> tuple[str | None, int]:
    if repeated:
        return "RE2 does not allow a repeated repetition (as in a** or a*+)", at
    end = at + 1
    if pattern[at] == "{":
        end = _count_end(pattern, at)
        if any(int(n) > _MOST_REPEATS for n in pattern[at + 1:end - 1].split(",") if n):
            return f"RE2 allows at most {_MOST_REPEATS} repetitions", at
    # A following ? means as few as possible.
    return None, end + (1 if pattern.startswith("?", end) else 0)
