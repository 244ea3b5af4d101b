"""Positions and partitions as they are written on the command line."""

from __future__ import annotations

import click
import pytest

from kconsumer.cli.positions import BEGINNING, END, PartitionsType, Position, PositionType, _offset


@pytest.mark.parametrize(("text", "expected"), [
    ("beginning", BEGINNING),
    ("END", END),
    ("0", Position("offset", 0)),
    ("+17", Position("offset", 17)),
    ("-17", Position("tail", 17)),
    ("-0", END),
    ("@1714564800000", Position("time", 1_714_564_800_000)),
    ("2024-05-01T12:00:00Z", Position("time", 1_714_564_800_000)),
    ("2024-05-01T14:00:00.250+02:00", Position("time", 1_714_564_800_250)),
    # Brokers take the times -1 to -5 for the ends of the partition and the like.
    ("@0", Position("time", 0)), ("@-1", Position("time", 0)), ("@-2", Position("time", 0)),
    (f"@{2**63 - 1}", Position("time", 2**63 - 1)), (f"@{2**63}", Position("time", 2**63 - 1)),
    ("1969-12-31T23:59:59.997Z", Position("time", 0)), ("1970-01-01T00:00:00Z", Position("time", 0)),
])
def test_position(text: str, expected: Position):
    assert PositionType().convert(text, None, None) == expected


def test_a_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch):
    import time

    monkeypatch.setenv("TZ", "Etc/GMT-3")
    time.tzset()
    try:
        assert PositionType().convert("2024-05-01T15:00", None, None) == Position("time", 1_714_564_800_000)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "yesterday", "1.5", "@", "@x", "2024-13-01", "--5"])
def test_no_position(text: str):
    with pytest.raises(click.BadParameter, match=r"invalid position .*expected beginning"):
        PositionType().convert(text, None, None)


@pytest.mark.parametrize(("text", "expected"), [
    ("0", (0,)), ("3,1", (1, 3)), ("0,3-5", (0, 3, 4, 5)), ("2-2, 2", (2,)),
])
def test_partitions(text: str, expected: tuple[int, ...]):
    assert PartitionsType().convert(text, None, None) == expected


@pytest.mark.parametrize("text", ["", ",", "a", "-1", "5-3", "1-", "2147483648", "0-2147483647"])
def test_no_partitions(text: str):
    with pytest.raises(click.BadParameter, match="not a list of partitions"):
        PartitionsType().convert(text, None, None)


@pytest.mark.parametrize(("position", "expected"), [
    (BEGINNING, 10), (END, 20), (Position("tail", 3), 17), (Position("tail", 30), 10), (Position("offset", 12), 12),
    (Position("offset", 3), 10), (Position("offset", 99), 20),
])
def test_an_offset_stays_within_the_partition(position: Position, expected: int):
    assert _offset(position, 10, 20, 0) == expected


@pytest.mark.parametrize(("at_time", "expected"), [(15, 15), (-1, 20), (5, 10)])
def test_the_offset_of_a_time(at_time: int, expected: int):
    assert _offset(Position("time", 1), 10, 20, at_time) == expected
