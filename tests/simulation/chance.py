"""Owns: Chance, the random numbers of a history.

Threads: the simulation's one. Never: gives other numbers than random.Random with the same seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance(random.Random):
    """random.Random with fewer Python calls for each number. Histories take more than a thousand each."""

    def choice(self, seq: Sequence[T]) -> T:  # type: ignore[override]
        return seq[self.below(len(seq))]

    def randrange(self, start: int, stop: int | None = None) -> int:  # type: ignore[override]
        return self.below(start) if stop is None else start + self.below(stop - start)

    def randint(self, a: int, b: int) -> int:
        return a + self.below(b - a + 1)

    def below(self, n: int) -> int:
        """As random.Random._randbelow()."""
        if n < 1:
            raise ValueError(f"no number is below {n}")
        bits = n.bit_length()
        number = self.getrandbits(bits)
        while number >= n:
            number = self.getrandbits(bits)
        return number
