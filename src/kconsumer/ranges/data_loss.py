"""DataLoss: the reaction to lost records of a query.

Owns: the choice between an error and a warning (failOnDataLoss). Threads: the thread that found the loss. Never:
decides where reading continues.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

from kconsumer.errors import KafkaError, exception_for
from kconsumer.errors.printable import printable
from kconsumer.ranges.offsets import OffsetRange, Place

ABSENT: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID)  #: errors of a missing topic

_log = logging.getLogger("kconsumer.ranges")


@dataclass(frozen=True)
class DataLoss:
    """Receives the losses of a query."""

    fail: bool  #: failOnDataLoss
    _logged: set[str] = field(default_factory=set, compare=False, repr=False)

    def report(
        self, place: Place, offset: int, what: str, *, lost: OffsetRange | None = None,
        code: int = KafkaError.OFFSET_OUT_OF_RANGE, cause: BaseException | None = None,
    ) -> None:
        """Raise an error or log a warning about lost records.

        Args:
            place: the partition, or one of several; partition -1: the whole topic.
            offset: the first missing offset; -1: unknown.
            what: the event, with partition and offsets.
            lost: the ranges that are not read.
            code: error code of the exception.
            cause: the broker's error.

        Raises:
            KafkaException: with `what`, if failOnDataLoss is on.
        """
        if self.fail:
            raise exception_for(code, f"{what}. With failOnDataLoss=false the query reads the remaining records",
                                topic=place[0], partition=place[1] if place[1] >= 0 else None,
                                offset=offset if offset >= 0 else None) from cause
        self.note(f"records are lost: {what}" + (f"; not read: {lost}" if lost is not None else ""))

    def note(self, text: str) -> None:
        """Log a warning once: a trigger may be planned several times."""
        if text not in self._logged:
            self._logged.add(text)
            _log.warning("%s", printable(text))
