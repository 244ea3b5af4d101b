"""The figures of a scene, from traces that were made up: each case is a way to call a group recovered too early."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scenes import PARTITIONS, Written, _early, _flows, _recovered, _stalls

ENDED = 100.0
NAMES = [f"t/{number}" for number in range(PARTITIONS)]


def read(when: float, partition: str, first: int, last: int) -> dict[str, Any]:
    return {"t": when, "e": "read", "p": partition, "o": [first, last], "n": last - first + 1}


def commit(when: float, sent: float, ok: bool = True) -> dict[str, Any]:
    return {"t": when, "e": "commit", "sent": sent, "ok": ok}


def group(*members: tuple[set[str], list[dict[str, Any]]]) -> Any:
    made = []
    for owned, events in members:
        said = lambda kind, since=0.0, events=events: [  # noqa: E731
            e for e in events if e["e"] == kind and e["t"] >= since]
        made.append(SimpleNamespace(name="m", said=said, owned=lambda owned=owned: owned))
    return SimpleNamespace(topic="t", members=made)


def all_read(when: float, first: int, last: int) -> list[dict[str, Any]]:
    return [read(when, name, first, last) for name in NAMES]


def test_records_that_come_again_are_not_flow() -> None:
    found = _flows(group((set(NAMES), [*all_read(90, 0, 50), *all_read(101, 20, 50), read(103, "t/0", 51, 60)])), ENDED)
    assert found == {name: 3.0 if name == "t/0" else None for name in NAMES}


def test_a_group_has_recovered_when_each_member_has_committed() -> None:
    flow = [*all_read(90, 0, 50), *all_read(101, 51, 60)]
    half = set(NAMES[:3]), set(NAMES[3:])
    both = commit(102, 101.5)
    assert _recovered(group((half[0], [*flow, both]), (half[1], [both])), ENDED)
    assert not _recovered(group((half[0], [*flow, both]), (half[1], [])), ENDED)
    assert not _recovered(group((half[0], [*flow, both]), (half[1], [commit(102, 101.5, ok=False)])), ENDED)
    assert not _recovered(group((half[0], [*flow, both]), (half[1], [commit(102, 99.0)])), ENDED), "sent before the end"
    assert not _recovered(group((set(NAMES), [*flow, both]), (half[1], [both])), ENDED), "owned twice"


def test_stall_is_the_longest_time_without_progress_in_the_fault() -> None:
    found = _stalls(group((set(NAMES), [*all_read(90, 0, 50), *all_read(94, 51, 60)])), 88.0, ENDED)
    assert set(found.values()) == {6.0}


def test_reads_above_the_high_watermark_are_found() -> None:
    written = Written([{"e": "acked", "t": 80.0, "o": [50]}, {"e": "acked", "t": 99.0, "o": [60]}], "t")
    trace = [read(80, "t/0", 0, 49), read(85, "t/0", 50, 59)]
    found = _early(group((set(NAMES), trace)), written)
    assert found == ["m: read t/0 [50, 59] 14.0 s before its acknowledgement"]
