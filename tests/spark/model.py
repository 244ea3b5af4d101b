"""A query under ordinary operations in random order, and an oracle of the rows that it must have.

Owns: Sequence: one random sequence of operations. Threads: the test's. Never: looks at how the query works; the oracle
knows what was written, deleted and asked for, and nothing else.

    python -m tests.spark.model --seeds 7 8         # one sequence, every operation printed
    python -m tests.spark.model --seeds 0 500       # tools/soak_seeds.py does this in parts

What must hold for every partition: the query has each record that was there when it was read exactly once, in order,
with its value. A record is missing only where an operation took it away first, and then a run with failOnDataLoss=true
has failed. Without such a loss no run fails.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kconsumer.errors import KafkaException
from kconsumer.ranges.consumers import close_idle
from kconsumer.testing import KafkaCluster
from tests.spark.conftest import delete_before, grow_topic
from tests.spark.engine import Engine, Row

MOST_TOPICS: Final = 3
MOST_PARTITIONS: Final = 4
STEPS: Final = (8, 16)
LOSSY: Final = {"failOnDataLoss": "false"}
#: what a restart may change
OPTIONS: Final[tuple[dict[str, str], ...]] = (
    {}, {"maxOffsetsPerTrigger": "3"}, {"maxOffsetsPerTrigger": "17"}, {"maxBytesPerTrigger": "40"},
    {"minPartitions": "5"}, {"maxRecordsPerPartition": "2"}, {"kafka__isolation__level": "read_committed"},
)


@dataclass
class Part:
    """A partition of one incarnation of a topic."""

    values: list[bytes] = field(default_factory=list)  # by offset
    low: int = 0  # what is before it was deleted
    read: int = 0  # what the query has, or has passed


@dataclass
class Topic:
    """One incarnation."""

    parts: list[Part]
    known: bool = False  # a batch of the query has it


class Wrong(Exception):
    """The query did not do what it promises."""


class Sequence:
    """A seed decides all of it."""

    def __init__(self, kafka: KafkaCluster, seed: int, say: Callable[[str], object] = lambda _: None) -> None:
        self._kafka = kafka
        self._random = random.Random(seed)
        self._say = say
        self._prefix = f"model-{seed}-{time.monotonic_ns()}-"
        self._topics: dict[str, Topic] = {}
        self._names: list[str] = []
        self._written = 0
        self._gone: set[str] = set()  # topics that the query knew in an incarnation that is deleted
        self._engine = Engine(kafka, subscribePattern=f"^{self._prefix}")

    def run(self) -> None:
        """Raises Wrong."""
        steps: list[tuple[int, Callable[[], None]]] = [
            (6, self._append), (2, self._retention), (2, self._recreate), (2, self._grow), (2, self._add),
            (1, self._delete), (4, self._restart), (3, self._kill)]
        weights = [weight for weight, _ in steps]
        try:
            self._add()
            self._append()
            for _ in range(self._random.randint(*STEPS)):
                (_, step), = self._random.choices(steps, weights)
                step()
            self._restart()
        finally:
            for name in list(self._topics):
                self._kafka.delete_topic(name)

    # ---- operations

    def _pick(self) -> tuple[str, Topic]:
        return self._random.choice(sorted(self._topics.items(), key=lambda item: item[0]))

    def _append(self) -> None:
        name, topic = self._pick()
        records = []
        for _ in range(self._random.randint(1, 30)):
            number = self._random.randrange(len(topic.parts))
            value = b"%d" % self._written
            self._written += 1
            topic.parts[number].values.append(value)
            records.append({"value": value, "partition": number})
        self._kafka.produce(name, records)
        self._say(f"append {len(records)} to {name}")

    def _retention(self) -> None:
        name, topic = self._pick()
        number = self._random.randrange(len(topic.parts))
        part = topic.parts[number]
        before = self._random.randint(part.low, len(part.values))
        if before > part.low:
            delete_before(self._kafka, name, before, number)
            part.low = before
        self._say(f"delete {name} [{number}] before {before} of {len(part.values)}, read {part.read}")

    def _recreate(self) -> None:
        name, _ = self._pick()
        self._remove(name)
        self._create(name)
        self._say(f"recreate {name} with {len(self._topics[name].parts)} partitions")
        if self._random.random() < 0.7:
            self._append()

    def _grow(self) -> None:
        name, topic = self._pick()
        if len(topic.parts) < MOST_PARTITIONS:
            topic.parts.append(Part())
            grow_topic(self._kafka, name, len(topic.parts))
            self._say(f"grow {name} to {len(topic.parts)}")

    def _add(self) -> None:
        """A new topic, or one of the name of a deleted one."""
        if len(self._topics) >= MOST_TOPICS:
            return
        deleted = [name for name in self._names if name not in self._topics]
        if deleted and self._random.random() < 0.5:
            name = self._random.choice(deleted)
        else:
            name = f"{self._prefix}{len(self._names)}"
            self._names.append(name)
        self._create(name)
        self._say(f"add {name} with {len(self._topics[name].parts)} partitions")

    def _delete(self) -> None:
        if len(self._topics) > 1:
            name, _ = self._pick()
            self._remove(name)
            self._say(f"delete {name}")

    def _create(self, name: str) -> None:
        count = self._random.randint(1, 3)
        self._kafka.create_topic(name, count)
        self._topics[name] = Topic([Part() for _ in range(count)])

    def _remove(self, name: str) -> None:
        self._kafka.delete_topic(name)
        topic = self._topics.pop(name)
        if topic.known:
            self._gone.add(name)

    # ---- runs

    def _options(self) -> dict[str, str]:
        return dict(self._random.choice(OPTIONS))

    def _kill(self) -> None:
        """In the middle of a batch: planned, or read and not yet written down."""
        after, options = self._random.choice(["planning", "tasks"]), self._options()
        batches, (must, may) = len(self._engine.log), self._harm()
        self._pass_what_was_never_there()
        try:
            self._engine.run_killed(after, **options)
            said = "killed"
        except KafkaException as error:
            if not (must or may):
                raise Wrong("it failed although nothing is lost") from error
            said = f"failed: {error}"
        self._say(f"kill after {after}, with {options}: {said}; batches {batches} to {len(self._engine.log)}")
        if len(self._engine.log) > batches:
            for name in self._engine.end():
                self._topics[name].known = True

    def _restart(self) -> None:
        """Read all there is, and where that fails, what there still is."""
        if self._random.random() < 0.3:
            close_idle()
        options, available_now = self._options(), self._random.random() < 0.5
        must, may = self._harm()
        self._pass_what_was_never_there()
        before = len(self._engine.rows)
        if self._strictly(must, may, available_now, options):
            self._engine.run(available_now, **options, **LOSSY)
        self._check_rows(self._engine.rows[before:])
        if again := self._engine.run(**options):
            raise Wrong(f"read once more: {again}")

    def _strictly(self, must: list[str], may: list[str], available_now: bool, options: dict[str, str]) -> bool:
        """Whether a run failed; where something is lost it must."""
        engine = self._engine
        before = len(engine.rows)
        failed: KafkaException | None = None
        try:
            engine.run(available_now, **options)
        except KafkaException as error:
            failed = error
        self._say(f"run with {options}: {len(engine.rows) - before} rows, "
                  f"{f'failed: {failed}' if failed else 'done'}; lost: {must}, perhaps {may}")
        if failed is None and must:
            raise Wrong(f"nothing was said of {must}")
        if failed is not None and not (must or may):
            raise Wrong("it failed although nothing is lost") from failed
        return failed is not None

    def _harm(self) -> tuple[list[str], list[str]]:
        """Losses that the query must report; and losses that it may report: a first batch that did not finish begins
        at the beginning that exists when it runs again."""
        found = [f"{name} is gone" for name in sorted(self._gone)]
        deleted = [f"{name} [{number}] from {part.read} to {part.low}" for name, topic in sorted(self._topics.items())
                   for number, part in enumerate(topic.parts) if part.low > part.read]
        if self._engine.committed:
            return found + deleted, []
        return found, deleted

    def _pass_what_was_never_there(self) -> None:
        """A query begins with what there is when it is started."""
        if not self._engine.log:
            for topic in self._topics.values():
                for part in topic.parts:
                    part.read = part.low

    def _check_rows(self, rows: list[Row]) -> None:
        found = _by_partition(rows)
        for name, topic in sorted(self._topics.items()):
            topic.known = True
            for number, part in enumerate(topic.parts):
                wanted = [*enumerate(part.values)][max(part.read, part.low):]
                _compare(name, number, found.pop((name, number), []), wanted)
                part.read = len(part.values)
        if found:
            raise Wrong(f"rows of partitions that are not there: {sorted(found)}")
        self._gone.clear()


_Rows = list[tuple[int, bytes | None]]


def _by_partition(rows: list[Row]) -> dict[tuple[str, int], _Rows]:
    found: dict[tuple[str, int], _Rows] = {}
    for row in rows:
        found.setdefault((row.topic, row.partition), []).append((row.offset, row.value))
    return found


def _compare(name: str, number: int, has: _Rows, wanted: Any) -> None:
    if has != wanted:
        missing = [pair for pair in wanted if pair not in has]
        more = [pair for pair in has if pair not in wanted]
        raise Wrong(f"{name} [{number}]: {len(has)} rows, expected {len(wanted)}; missing {missing[:5]}, too many "
                    f"{more[:5]}{'' if missing or more else ': twice, or in another order'}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Random sequences of operations on topics that a query reads.")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FIRST", "END"), required=True)
    options = parser.parse_args()
    first, end = options.seeds
    logging.getLogger("kconsumer").setLevel(logging.CRITICAL)
    failed = 0
    with KafkaCluster(1) as kafka:
        for seed in range(first, end):
            try:
                Sequence(kafka, seed, print if end - first == 1 else lambda _: None).run()
            except Exception as error:
                failed += 1
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{end - first} sequences, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
