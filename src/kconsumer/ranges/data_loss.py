"""DataLoss: what happens when records that a query was to read are gone.

Owns: the decision between failing and telling (failOnDataLoss). Threads: the one of whoever found it. Never: decides
what is read instead.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

from kconsumer.errors import KafkaError, exception_for
from kconsumer.errors.printable import printable
from kconsumer.ranges.offsets import OffsetRange, Place

ABSENT: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID)  #: errors of a topic that is not there

_log = logging.getLogger("kconsumer.ranges")


@dataclass(frozen=True)
class DataLoss:
    """Where a loss is reported."""

    fail: bool  #: failOnDataLoss
    _said: set[str] = field(default_factory=set, compare=False, repr=False)

    def report(
        self, place: Place, offset: int, what: str, *, lost: OffsetRange | None = None,
        code: int = KafkaError.OFFSET_OUT_OF_RANGE, cause: BaseException | None = None,
    ) -> None:
        """Fail the query, or log what it misses.

        Args:
            place: the partition, or one of several; partition -1: all of the topic.
            offset: the first offset that is missing; -1: not known.
            what: what has happened, naming partition and offsets.
            lost: exactly what is not read.
            code: of the exception.
            cause: the broker's error.

        Raises:
            KafkaException: `what`, with failOnDataLoss.
        """
        if self.fail:
            raise exception_for(code, f"{what}. With failOnDataLoss=false the query reads the remaining records",
                                topic=place[0], partition=place[1] if place[1] >= 0 else None,
                                offset=offset if offset >= 0 else None) from cause
        self.note(f"records are lost: {what}" + (f"; not read: {lost}" if lost is not None else ""))

    def note(self, text: str) -> None:
        """Log a warning, once: a trigger may be planned several times."""
        if text not in self._said:
            self._said.add(text)
            _log.warning("%s", printable(text))
