"""`kconsumer consume`: reads spans of partitions and passes their records to a writer.

Owns: the loop and its end. Threads: the main thread. Never: knows the form of the output.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator

from kconsumer._core.consumer.consumer import RecordBatch
from kconsumer.cli.connect import partitions_of
from kconsumer.cli.output import Writer
from kconsumer.cli.positions import Position, Span, resolve
from kconsumer.cli.progress import Progress
from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, exception_for
from kconsumer.scanning.reading import within

_MAX_RECORDS = 65_536
_LOOK_S = 0.1  # interval between checks of positions, which also pass hidden records


def run(
    consumer: Consumer, topic: str, writer: Writer, timeout: float, *, partitions: tuple[int, ...] | None,
    start: Position, stop: Position, follow: bool, count: int | None, show_progress: bool,
) -> None:
    """Read and write until the end, `count` records, or an exception.

    The written records are complete.
    """
    spans = _spans(consumer, topic, partitions, start, None if follow else stop, timeout)
    with writer, Progress(show_progress, consumer, spans.values(), count) as progress:
        if count == 0:
            return
        left = count
        consumer.assign([TopicPartition(topic, span.partition, span.start) for span in spans.values()])
        for batch in _batches(consumer, topic, spans):
            part = batch if left is None else batch[:left]
            writer.write(part)
            progress.add(len(part))
            if left is not None:
                left -= len(part)
                if left == 0:
                    return


def _spans(  # noqa: PLR0917 - only run() calls it
    consumer: Consumer, topic: str, partitions: tuple[int, ...] | None, start: Position, stop: Position | None,
    timeout: float,
) -> dict[int, Span]:
    """Return the spans to read, by partition, without empty ones."""
    there = [found.id for found in partitions_of(consumer, topic, timeout)]
    for partition in partitions or ():
        if partition not in there:
            raise exception_for(KafkaError._UNKNOWN_PARTITION, f"{topic} [{partition}]: there is no such partition",
                                topic=topic, partition=partition)
    spans = resolve(consumer, topic, list(partitions or there), start=start, stop=stop, timeout=timeout)
    return {span.partition: span for span in spans if span.end is None or span.start < span.end}


def _batches(consumer: Consumer, topic: str, spans: dict[int, Span]) -> Iterator[RecordBatch]:
    """Yield the records of the spans. A finished partition is removed from the assignment."""
    active = dict(spans)
    ends = {partition: span.end for partition, span in spans.items() if span.end is not None}
    while active:
        batch = consumer.consume_batch(_MAX_RECORDS, _LOOK_S)
        if len(batch):
            yield from within(batch, ends)
        else:
            _raise_if_pipe_closed()
        done = [p for p in consumer.position([TopicPartition(topic, p) for p in active])
                if (end := active[p.partition].end) is not None and p.offset >= end]
        if done:
            consumer.incremental_unassign(done)
            for p in done:
                del active[p.partition]


def _raise_if_pipe_closed() -> None:
    """Raise if the reader of the pipe is gone. Only a write would report it, and without records there is none."""
    try:
        stdout = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    watch = select.poll()
    watch.register(stdout, 0)
    if any(event & select.POLLERR for _, event in watch.poll(0)):
        raise BrokenPipeError
