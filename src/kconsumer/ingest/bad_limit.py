"""BadLimit: how many bad records an ingestion commits.

Owns: the option's forms, the check before a commit, and the trial before a new job creates its table. Threads: the
driver's thread. Never: writes anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from kconsumer.config.values import configuration_error
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.output import Output
from kconsumer.ingest.task import described
from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.reading import RangeReading

_IN_A_ROW: Final = 1000
_TRIED: Final = 10_000  # most records of a trial: most of them are tombstones
_FORM: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%|(\d{1,18})", re.ASCII)


@dataclass(frozen=True)
class BadLimit:
    """The most bad records of a commit; without a share and a count: fewer than 1,000 in a row."""

    percent: float | None = None  #: of the records that the commit adds
    count: int | None = None

    @classmethod
    def parse(cls, text: str) -> BadLimit:
        """Parse such as ``1%`` or ``100``.

        Raises:
            ConfigurationError: the text has another form.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None or (found[1] is not None and float(found[1]) > 100):
            raise configuration_error(f"invalid max_bad {text!r}: expected a share such as 1%, or a number of records")
        return cls(None if found[1] is None else float(found[1]), None if found[2] is None else int(found[2]))

    @property
    def is_default(self) -> bool:
        return self.percent is None and self.count is None

    def is_exceeded(self, bad: int, rows: int, in_a_row: int) -> bool:
        if self.count is not None:
            return bad > self.count
        if self.percent is not None:
            return bad * 100 > self.percent * rows
        return in_a_row >= _IN_A_ROW


class BadRecords:
    """Checks the bad records of a run."""

    def __init__(self, limit: BadLimit) -> None:
        self._limit = limit
        self._in_a_row = 0  # at the end of the last trigger

    def try_first(self, read: ReadOptions, output: Output, ranges: Sequence[OffsetRange]) -> None:
        """Decode the first records of a job that has not had a good one, until there is one.

        Raises:
            IngestError: there are only bad ones, or 1,000 of them before a good one.
        """
        if output.decoder is None:
            return
        tried = bad = 0
        first = ""
        for wanted in ranges:
            for batch in RangeReading(read, wanted, _IN_A_ROW).batches():
                decoded = batch.decode(value=output.decoder, metadata=[])
                [values], errors = pa.record_batch(decoded).columns, decoded.errors
                if len(values) > values.null_count:
                    return
                if errors and not bad:
                    first = described(batch, errors[0])
                bad += len(errors)
                if bad >= _IN_A_ROW:
                    return self._refuse_all(bad, sum(found.size for found in ranges), first, ranges)
                tried += len(batch)
                if tried >= _TRIED:
                    return
        if bad:
            self._refuse_all(bad, bad, first, ranges)

    def _refuse_all(self, bad: int, rows: int, first: str, ranges: Sequence[OffsetRange]) -> None:
        if self._limit.is_default or self._limit.is_exceeded(bad, rows, bad):
            raise IngestError(f"cannot decode any of the first {bad:,} records: {first}. {_remedy(ranges)}")

    def check(self, results: Sequence[TaskResult], proven: bool) -> None:
        """Check the records of a trigger.

        Args:
            proven: a record of the job could be decoded before.

        Raises:
            IngestError: too many are bad.
        """
        unreadable = next((result for result in results if result.unreadable), None)
        if unreadable is not None and self._limit.is_default:
            raise IngestError(f"cannot decode a writer's schema: {unreadable.unreadable}. Without --schema, "
                              f"the columns follow the newest schema of the registry. {_remedy(unreadable.ranges)}")
        bad, rows, good = (sum(getattr(result, name) for result in results) for name in ("bad", "rows", "good"))
        self._in_a_row = max((result.bad_in_a_row for result in results), default=0) if good else self._in_a_row + bad
        is_lost = self._limit.is_default and not proven and not good
        if bad and (is_lost or self._limit.is_exceeded(bad, rows, self._in_a_row)):
            worst = next(result for result in results if result.bad)
            what = f"{self._in_a_row:,} records in a row" if self._limit.is_default else f"{bad:,} of {rows:,} records"
            raise IngestError(f"cannot decode {what}: {worst.first_bad}. {_remedy(worst.ranges)}")


def _remedy(ranges: Sequence[OffsetRange]) -> str:
    start = json.dumps({ranges[0].topic: {str(ranges[0].partition): ranges[0].start}})
    return ("These records are not committed: correct the schema and run again, or accept bad records with max_bad "
            "(--max-bad 100%) or dead_letters (--dead-letter PATH). To read committed records again, start another job "
            f"at their offsets (--job NAME --from '{start}')")
