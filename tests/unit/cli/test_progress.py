"""How the progress line counts lag."""

from __future__ import annotations

from typing import Any

import pytest

from kconsumer.cli.positions import Span
from kconsumer.cli.progress import Progress
from kconsumer.data.topic_partition import OFFSET_INVALID, TopicPartition


class Positions:
    """A consumer's positions and lags by partition."""

    def __init__(self, positions: dict[int, int], lags: dict[int, int | None]) -> None:
        self.positions = positions
        self.lags = lags

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition("t", p) for p in self.positions]

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("t", p.partition, self.positions[p.partition]) for p in partitions]

    def lag(self, *, timeout: float) -> dict[tuple[str, int], int | None]:
        assert timeout == 0  # a line of progress asks no broker
        return {("t", p): lag for p, lag in self.lags.items()}


@pytest.mark.parametrize(("positions", "lags", "spans", "expected"), [
    ({0: 7}, {0: 13}, [Span(0, 5, 10)], 3),  # to where reading stops, not to the end
    ({0: 12}, {0: 8}, [Span(0, 5, 10)], 0),
    ({0: 7, 1: 20}, {0: 13, 1: 4}, [Span(0, 5, None), Span(1, 0, None)], 17),
    ({0: OFFSET_INVALID}, {0: 9}, [Span(0, 5, 10)], 5),
    ({0: 7, 1: OFFSET_INVALID}, {0: 13, 1: None}, [Span(0, 5, None), Span(1, 0, None)], None),
    ({}, {}, [Span(0, 5, 10)], 0),  # all are done
])
def test_lag(positions: dict[int, int], lags: dict[int, Any], spans: list[Span], expected: int | None):
    assert Progress(False, Positions(positions, lags), spans, None).lag() == expected  # type: ignore[arg-type]
