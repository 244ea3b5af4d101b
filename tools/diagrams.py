"""Draws the diagrams of docs/threads.md and docs/members.md from the tables in the core's source.

Owns: DIAGRAMS, the sources of each diagram; fill(), which writes them between their marks in a page. Threads: one.
Never: invents a state, an event or a thread: everything drawn comes from the source. A source in another form is an
error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import page_parts

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "src" / "_core"


def _read(path: str) -> str:
    return (CORE / path).read_text(encoding="utf-8")


def _enum(text: str, name: str, prefix: str) -> list[tuple[str, str]]:
    """Return (member without its prefix, comment) of a C++ enum, without the count at its end."""
    body = re.search(rf"enum {name}\b[^{{]*{{(.*?)}};", text, re.S)
    if body is None:
        raise SystemExit(f"diagrams: enum {name} is not found")
    members = re.findall(rf"^\s*{prefix}(\w+)[^,/\n]*,?[ \t]*(?://\s*(.*))?$", body.group(1), re.M)
    if not members:
        raise SystemExit(f"diagrams: enum {name} has no members")
    return [(member, comment.strip()) for member, comment in members if f"{prefix}{member}" != "MEMBER_STATES"]


def _mermaid(lines: list[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])


# ---- member states


def transitions() -> tuple[dict[str, list[str]], set[str]]:
    """Return the transitions of state/member_state.hpp (state → states, in order), and MEMBER_EXITS."""
    text = _read("state/member_state.hpp")
    states = [state for state, _ in _enum(text, "MemberState", "MEMBER_")]
    exits_text = re.search(r"MEMBER_EXITS = (.*?);", text, re.S)
    table = re.search(r"MEMBER_TRANSITIONS\[MEMBER_STATES\] = {(.*?)^};", text, re.S | re.M)
    if exits_text is None or table is None:
        raise SystemExit("diagrams: the table of moves between member states is not found")
    exits = set(re.findall(r"member_bit\(MEMBER_(\w+)\)", exits_text.group(1)))
    rows = re.findall(r"/\* (\w+)\s*\*/(.*?)(?=/\*|\Z)", table.group(1), re.S)
    found = {}
    for state, row in rows:
        allowed = set(re.findall(r"member_bit\(MEMBER_(\w+)\)", row)) | (exits if "MEMBER_EXITS" in row else set())
        found[state] = [s for s in states if s in allowed]
    if list(found) != states:
        raise SystemExit(f"diagrams: the table has rows for {list(found)}, the enum {states}")
    return found, exits


def member_states() -> str:
    """Draw the state machine. States that may leave to all of MEMBER_EXITS share one box, with its exits once."""
    table, exits = transitions()
    inside = [state for state, to in table.items() if exits <= set(to)]
    lines = ["stateDiagram-v2", "    [*] --> UNSUBSCRIBED", '    state "member of the group" as member {']
    lines += [f"        {a} --> {b}" for a in inside for b in table[a] if b in inside]
    lines.append("    }")
    lines += [f"    member --> {state}" for state in table if state in exits]
    lines += [f"    {a} --> {b}" for a, to in table.items() for b in to
              if not (a in inside and (b in inside or b in exits))]
    return _mermaid(lines)


def member_table() -> str:
    """Return the transitions as a table, with the event that each state waits for."""
    table, exits = transitions()
    said = dict(_enum(_read("state/member_state.hpp"), "MemberState", "MEMBER_"))
    lines = ["| state | what it is | leaves to |", "| --- | --- | --- |"]
    for state, to in table.items():
        all_exits = exits <= set(to)
        names = [f"`{s}`" for s in to if not (all_exits and s in exits)] + (["*exits*"] if all_exits else [])
        lines.append(f"| `{state}` | {said[state]} | {', '.join(names)} |")
    named = ", ".join(f"`{state}`" for state in table if state in exits)
    return "\n".join([*lines, "", f"*Exits*: {named}."])


# ---- threads

_HEAD = re.compile(r"\b[Tt]hreads?: (.*?)(?=\bNever:|\n\s*\n|\Z)", re.S)
_LAYERS = ("network", "events", "state", "managers", "consumer")


def _thread_of(head: str) -> str:
    """Return N, A or both from the thread line of a file's head; empty for values and parts of their user."""
    if re.match(r"(any|one|said|each|that of)\b", head):
        return ""
    letters = set(re.findall(r"\b[ANR]\b|\bshared\b", head))
    if "application" in head:
        letters.add("A")
    if head.startswith(("N runs", "N (", "N;", "N.", "N on", "every method N")):
        return "N"
    if head.startswith(("A.", "A,", "A;", "A (")):
        return "A"
    return "both" if letters & {"shared", "A"} else ""


def _modules() -> dict[str, dict[str, list[str]]]:
    """Return thread → layer → modules, from the heads of modules in layers with several threads."""
    found: dict[str, dict[str, list[str]]] = {"A": {}, "both": {}, "N": {}}
    for layer in _LAYERS:
        for path in sorted((CORE / layer).iterdir()):
            if path.suffix not in (".pyx", ".pxi", ".hpp"):
                continue
            head = _HEAD.search("\n".join(path.read_text(encoding="utf-8").splitlines()[:9]))
            if head is None:
                raise SystemExit(f"diagrams: {path} does not say which thread runs it")
            text = re.sub(r"\s*\n(?://)?\s*", " ", head.group(1))
            thread = _thread_of(text)
            if path.suffix == ".hpp" and any(path.with_suffix(other).exists() for other in (".pyx", ".pxi")):
                continue  # the Cython file of the same name stands for both
            if path.suffix == ".pyx" and "\ninclude " in path.read_text(encoding="utf-8"):
                continue  # the files that it includes stand for it
            if thread:
                found[thread].setdefault(layer, []).append(path.stem)
    if not all(found.values()):
        raise SystemExit(f"diagrams: a thread without modules: {found}")
    return found


def threads() -> str:
    """Draw the modules of each thread, with the shared ones in between."""
    modules = _modules()
    titles = {"A": "application threads (A)", "both": "shared, each under the lock it names",
              "N": "network thread (N)"}
    lines = ["flowchart LR"]
    for thread, title in titles.items():
        lines.append(f'    subgraph {thread}["{title}"]')
        lines += [f'        {thread}_{layer}["<b>{layer}</b><br>{"<br>".join(stems)}"]'
                  for layer, stems in modules[thread].items()]
        lines.append("    end")
    lines += ["    A <--> both", "    both <--> N"]
    return _mermaid(lines)


# ---- queues


def events() -> str:
    """Draw every kind of event between the two threads, with its manager."""
    kinds = [kind for kind, _ in _enum(_read("events/application_event.hpp"), "ApplicationEventType", "EVENT_")]
    processor = _read("consumer/application_event_processor.pxi")
    served = dict(re.findall(r"event\.type == EVENT_(\w+)[^\n]*\n\s+self\.(\w+)", processor))
    if set(served) != set(kinds):
        raise SystemExit(f"diagrams: the processor serves {sorted(served)}, the enum has {sorted(kinds)}")
    backward = [kind for kind, _ in _enum(_read("events/background_event.hpp"), "BackgroundEventType", "BACKGROUND_")]
    rebalances = [kind for kind, _ in _enum(_read("events/rebalance_event.hpp"), "RebalanceKind", "REBALANCE_")]
    lines = ["flowchart LR", '    application(["application thread"])', '    network(["network thread"])']
    managers = list(dict.fromkeys(served[kind] for kind in kinds))
    lines += [f'    {manager}["{manager}"]' for manager in managers]
    lines += [f'    application -- "{"<br>".join(k for k in kinds if served[k] == m)}" --> {m}' for m in managers]
    lines += [f'    network -- "{"<br>".join(backward)}" --> background["callbacks,<br>in any call that waits"]',
              f'    network -- "{"<br>".join(rebalances)}" --> rebalance["rebalance callbacks,<br>in exclusive calls"]',
              '    network -- "decoded records" --> records["poll · consume · consume_batch"]']
    return _mermaid(lines)


def event_table() -> str:
    """Return a table of the events from the network thread, and the bits that announce them."""
    background = _read("events/background_event.hpp")
    lines = ["| event | what runs |", "| --- | --- |"]
    lines += [f"| `{kind}` | {said} |" for kind, said in _enum(background, "BackgroundEventType", "BACKGROUND_")]
    lines += [f"| `{kind}` (rebalance) | {said} |"
              for kind, said in _enum(_read("events/rebalance_event.hpp"), "RebalanceKind", "REBALANCE_")]
    lines += ["", "| bit of the attention word | when it is set |", "| --- | --- |"]
    lines += [f"| `{bit}` | {said or 'the consumer is closed'} |"
              for bit, said in _enum(background, "Attention", "ATTENTION_")]
    return "\n".join(lines)


DIAGRAMS: dict[str, Callable[[], str]] = {
    "member-states": member_states,
    "member-table": member_table,
    "threads": threads,
    "events": events,
    "event-table": event_table,
}


def fill(page: str) -> str:
    """Return the page with every diagram updated from the source."""

    def drawn(name: str, _: str) -> str:
        if name not in DIAGRAMS:
            raise SystemExit(f"diagrams: there is none called {name}")
        return f"{DIAGRAMS[name]()}\n"

    return page_parts.filled(page, "diagram", drawn)
