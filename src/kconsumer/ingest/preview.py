"""Preview: the effects of a start of a job, without the start.

Owns: preview(), and the text of its result. Threads: the caller's thread. Never: writes to the table, the folder of
dead letters or a checkpoint, or commits offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kconsumer.ingest.driver import State
from kconsumer.ingest.ingestion import SystemClock, driver_of, table_of
from kconsumer.ingest.options import IngestOptions
from kconsumer.ingest.output import Output
from kconsumer.ingest.task import described
from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.reading import RangeReading

_SHOWN: Final = 20  # partitions
_SAMPLED: Final = 1000  # records


@dataclass(frozen=True)
class Preview:
    """The effects of a start; the text is for people."""

    table: str
    format: str
    job: str
    exists: bool  #: whether the table has columns already
    columns: tuple[tuple[str, str, str], ...]  #: name, type, and what happens to it
    ranges: tuple[OffsetRange, ...]  #: of the first trigger
    lag: int  #: offsets that later triggers read
    sampled: int  #: records that were read
    bytes_per_record: float  #: of their keys and values
    bad: int  #: of these records
    first_bad: str | None

    def __str__(self) -> str:
        width = max((len(name) for name, _, _ in self.columns), default=0)
        state = "exists" if self.exists else "new"
        lines = [f"table {self.table} ({self.format}, {state}), job {self.job}", "columns:"]
        lines += [f"  {name:{width}}  {type_}: {what}" for name, type_, what in self.columns]
        offsets = sum(found.size for found in self.ranges)
        first = f", {offsets:,} in the first trigger" if self.lag else ""
        lines.append(f"offsets: {offsets + self.lag:,} in all{first}")
        lines += [f"  {found}: {found.size:,}" for found in self.ranges[:_SHOWN]]
        if len(self.ranges) > _SHOWN:
            lines.append(f"  and {len(self.ranges) - _SHOWN:,} more partitions")
        if self.sampled:
            size = self.bytes_per_record * (offsets + self.lag)
            lines.append(f"size: about {size / 1e6:,.1f} MB of keys and values, by {self.sampled:,} records of "
                         f"{self.bytes_per_record:,.0f} bytes")
            bad = f"; the first: {self.first_bad}" if self.first_bad else ""
            lines.append(f"bad records: {self.bad:,} of these {self.sampled:,}{bad}")
        return "\n".join(lines)


class _NoRunner:
    """In the place of a runner."""

    parallelism = 1

    def map(self, tasks: Sequence[Any], what: str) -> list[Any]:
        raise NotImplementedError("a preview runs no tasks")

    def close(self) -> None:
        pass


def preview(options: IngestOptions) -> Preview:
    """Return the effects of a start with these options, without a change.

    Raises:
        IngestError, ConfigurationError, KafkaException: the start would fail with it.
    """
    table = table_of(options, reads_only=True)
    output = options.output("")
    with ExitStack() as stack:
        driver = driver_of(options, table, _NoRunner(), SystemClock(), stack, on_trigger=None)
        while driver.state in (State.OPEN, State.PLAN):
            driver.step()
        known, after = table.preview(output.schema(), [column.name for column in output.partitions])
        plan = driver.plan
        ranges = () if plan is None else tuple(found for task in plan.tasks for found in task.ranges)
        sampled, size, bad, first_bad = _sample(options.read_options(), output, ranges)
    columns = _columns(known, after, output.schema())
    return Preview(options.name, options.format, options.job, known is not None, columns, ranges,
                   0 if plan is None else plan.lag, sampled, size / max(sampled, 1), bad, first_bad)


def _sample(read: ReadOptions, output: Output, ranges: Sequence[OffsetRange]) -> tuple[int, int, int, str | None]:
    """Return the records that were read, their bytes, the bad ones, and the place and reason of the first of these."""
    for wanted in sorted(ranges, key=lambda found: -found.size):
        for batch in RangeReading(read, wanted, _SAMPLED).batches():
            errors = [] if output.decoder is None else batch.decode(value=output.decoder, metadata=[]).errors
            return len(batch), batch.nbytes, len(errors), described(batch, errors[0]) if errors else None
    return 0, 0, 0, None


def _columns(known: pa.Schema | None, after: pa.Schema, wanted: pa.Schema) -> tuple[tuple[str, str, str], ...]:
    found = []
    for field in after:
        before = None if known is None or field.name not in known.names else known.field(field.name).type
        if before is None:
            what = "new"
        elif before != field.type:
            what = f"changes from {before}"
        elif field.name not in wanted.names:
            what = "null, as the schema lacks it"
        elif wanted.field(field.name).type != field.type:
            what = f"keeps its type, as {wanted.field(field.name).type} is converted"
        else:
            what = "as it is"
        found.append((field.name, str(field.type), what))
    for name in wanted.names:
        if name not in after.names:
            found.append((name, str(wanted.field(name).type), "left out by evolve=ignore"))
    return tuple(found)
