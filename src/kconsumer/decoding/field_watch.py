"""FieldWatch: which fields of a JSON decoder's schema no record has a value for, which mostly is a wrong name.

Owns: FieldWatch. Threads: any. Never: changes what is decoded.
"""

from __future__ import annotations

import threading
from typing import Any

from kconsumer._core.values.value_decoder import DecodedValues
from kconsumer._core.values.value_source import ValueSource
from kconsumer.decoding.json_values import Json
from kconsumer.errors.printable import printable


class _Seen:
    """The records so far, and the fields without values among them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.records = 0
        self.without: list[str] | None = None


class FieldWatch:
    """A decoder in the place of another one, which notes the fields without values.

    Args:
        decoder: the decoder; only of Json anything is noted, as other formats have the fields in their schemas.
    """

    def __init__(self, decoder: Any, seen: _Seen | None = None) -> None:
        self._decoder = decoder
        self._seen = seen or _Seen()

    def select(self, columns: tuple[str, ...]) -> FieldWatch:
        """Return the same for these fields."""
        return FieldWatch(self._decoder.select(columns), self._seen)

    def decode(self, source: ValueSource) -> DecodedValues:
        """Decode values."""
        made: DecodedValues = self._decoder.decode(source)
        records = len(made) - made.null_count
        if isinstance(self._decoder, Json) and records:
            with self._seen.lock:
                before = self._seen.without
                if before != []:
                    found = made.fields_without_values
                    self._seen.without = found if before is None else [name for name in before if name in found]
                self._seen.records += records
        return made

    def warning(self) -> str | None:
        """Return a sentence about the fields without values; None if there are none, or no records."""
        names = self._seen.without
        if not names:
            return None
        shown = ", ".join(printable(repr(name)) for name in names[:10])
        shown += f" and {len(names) - 10} more" if len(names) > 10 else ""
        return (f"no record has a value for the field{'s' if len(names) > 1 else ''} {shown} "
                f"(of {self._seen.records:,} records): check the schema")
