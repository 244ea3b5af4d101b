"""Small files: which of them a compaction writes as one larger file.

Owns: the rules of a whole compaction and of a single step. Threads: any. Never: opens a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

SMALL: Final = 0.75  # files below this part of the target size are small
STEP_FILES: Final = 100  # most files of a step: opening one in an object store takes about 50 ms
_COMMIT_BYTES: Final = 1 << 30  # of replaced files in one commit
_File = TypeVar("_File")


def chosen(
    groups: Sequence[Sequence[_File]], size: Callable[[_File], int], target: int, least: int | None
) -> list[list[_File]]:
    """Return the files that become one file each: those of one step, or with ``least`` None all small files."""
    if least is None:
        return list(bins(groups, size, target))
    found = step(groups, size, target, least)
    return [found] if found else []


def bins(groups: Iterable[Sequence[_File]], size: Callable[[_File], int], target: int) -> Iterator[list[_File]]:
    """Yield the files that become one file, for all small files.

    Args:
        groups: the small files of each partition, oldest first.
        size: returns the bytes of a file.
        target: size of the larger files.
    """
    for group in groups:
        held: list[_File] = []
        total = 0
        for file in group:
            if held and total + size(file) > target:
                if len(held) > 1:
                    yield held
                held, total = [], 0
            held.append(file)
            total += size(file)
        if len(held) > 1:
            yield held


def step(groups: Iterable[Sequence[_File]], size: Callable[[_File], int], target: int, least: int) -> list[_File]:
    """Return the files of one step; none if no partition has enough small files.

    No file is larger than the others together, so that each step at least doubles the size of a row's file. Otherwise
    a file that grows to the target size would be rewritten for every few new files.

    Args:
        least: number of files, unless fewer are enough for a file that is not small.
    """
    best: list[_File] = []
    for group in groups:
        total = count = 0
        order = sorted(range(len(group)), key=lambda n: size(group[n]))
        for n, at in enumerate(order[:STEP_FILES], 1):
            total += size(group[at])
            if total > target:
                break
            if n > 1 and 2 * size(group[at]) <= total and (n >= least or total >= SMALL * target):
                count = n
        if count > len(best):
            best = [group[at] for at in sorted(order[:count])]
    return best


def commits(found: Iterable[list[_File]], size: Callable[[_File], int]) -> Iterator[list[list[_File]]]:
    """Yield the bins of each commit."""
    held: list[list[_File]] = []
    total = 0
    for files in found:
        held.append(files)
        total += sum(map(size, files))
        if total >= _COMMIT_BYTES:
            yield held
            held, total = [], 0
    if held:
        yield held
