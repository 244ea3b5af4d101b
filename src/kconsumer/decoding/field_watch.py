"""FieldWatch: which fields of a JSON decoder's schema no record has a value for, which mostly is a wrong name.

Owns: FieldWatch, FieldsSeen. Threads: any. Never: changes what is decoded.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from kconsumer._core.values.values import DecodedValues, ValueSource
from kconsumer.decoding.json_values import Json
from kconsumer.errors.printable import printable


class FieldsSeen:
    """Collects the fields that no record has a value for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.records = 0
        self.without: tuple[str, ...] = ()  #: fields without a value in all records so far

    def add(self, records: int, without: Sequence[str]) -> None:
        """Add records.

        Args:
            records: their number.
            without: the fields that none of them has a value for.
        """
        if not records:
            return
        with self._lock:
            self.without = tuple(name for name in (self.without if self.records else without) if name in without)
            self.records += records

    @property
    def is_complete(self) -> bool:
        """Whether every field has had a value: later records make no difference."""
        return self.records > 0 and not self.without

    def warning(self) -> str | None:
        """Return a sentence about the fields without values; None if there are none, or no records."""
        names = self.without
        if not names:
            return None
        shown = ", ".join(printable(repr(name)) for name in names[:10])
        shown += f" and {len(names) - 10} more" if len(names) > 10 else ""
        return (f"no record has a value for the field{'s' if len(names) > 1 else ''} {shown} "
                f"(of {self.records:,} records): check the schema")


class FieldWatch:
    """A decoder in the place of another one, which notes the fields without values.

    Args:
        decoder: the decoder; only of Json anything is noted, as other formats have the fields in their schemas.
    """

    def __init__(self, decoder: Any, seen: FieldsSeen | None = None) -> None:
        self._decoder = decoder
        self.seen = seen or FieldsSeen()

    def select(self, columns: tuple[str, ...]) -> FieldWatch:
        """Return the same for these fields."""
        return FieldWatch(self._decoder.select(columns), self.seen)

    def decode(self, source: ValueSource) -> DecodedValues:
        """Decode values."""
        made: DecodedValues = self._decoder.decode(source)
        if isinstance(self._decoder, Json):
            self.seen.add(len(made) - made.null_count, () if self.seen.is_complete else made.fields_without_values)
        return made

    def warning(self) -> str | None:
        """Return the warning of the collected fields."""
        return self.seen.warning()
