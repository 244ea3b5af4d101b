"""What Spark's engine does with a streaming reader, without Spark: triggers, the checkpoint, a kill between two steps.

Owns: Engine. Threads: the test's. Never: decides what a reader is to answer.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from kconsumer.spark import KconsumerDataSource
from kconsumer.spark.stream import UnlimitedStreamReader
from kconsumer.testing import KafkaCluster
from tests.spark.conftest import partitions

QUICK = {"fetchOffset.retryIntervalMs": "10", "kafkaConsumer.pollTimeoutMs": "20000"}


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes | None


class Engine:
    """A query into a sink that takes each batch as a whole, once; `log` and `committed` are its checkpoint.

    Args:
        cluster: the brokers, or their addresses.
        options: of the source, with __ for the dots; those of a run come on top.
    """

    def __init__(self, cluster: KafkaCluster | str, **options: Any) -> None:
        self._servers = cluster if isinstance(cluster, str) else cluster.bootstrap_servers
        self._options = {"startingOffsets": "earliest", **options}
        self.log: list[str] = []  # the end of each batch, as Spark writes it down
        self.committed = 0  # so many of them are done
        self.rows: list[Row] = []
        self.triggers: list[int] = []  # the rows of each batch of the last run
        self.before_tasks: Callable[[], object] = lambda: None  # between planning and reading

    def run(self, available_now: bool = True, most: int = 1000, **options: Any) -> list[Row]:
        """Start the query, read all there is, stop it; the rows of this run.

        Args:
            available_now: with that trigger. Else triggers follow each other until one has nothing to do.
            most: triggers, after which it is stopped.
            options: of this run.
        """
        reader = self._reader(options)
        before = len(self.rows)
        self.triggers = []
        try:
            if available_now and isinstance(reader, SupportsTriggerAvailableNow):
                reader.prepareForTriggerAvailableNow()
            if self.committed < len(self.log):
                self._batch(reader)
            for _ in range(most):
                if not self._plan(reader):
                    break
                self._batch(reader)
        finally:
            reader.stop()
        return self.rows[before:]

    def run_killed(self, after: str, **options: Any) -> None:
        """Start the query, and kill it once its next batch has been planned or (`after` "tasks") read."""
        reader = self._reader(options)
        try:
            if self.committed == len(self.log) and not self._plan(reader):
                return
            if after == "tasks":
                self._read(reader)
        finally:
            reader.stop()

    def offsets(self, topic: str, partition: int = 0) -> list[int]:
        """Of the rows, in the order in which they came."""
        return [row.offset for row in self.rows if (row.topic, row.partition) == (topic, partition)]

    def end(self) -> dict[str, dict[str, int]]:
        """The offsets in the checkpoint, as Spark's source sees them."""
        return partitions(json.loads(self.log[-1]))

    def _reader(self, options: dict[str, Any]) -> Any:
        texts = {name.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
                 for name, value in {**self._options, **options}.items()}
        source = KconsumerDataSource({"kafka.bootstrap.servers": self._servers, **QUICK, **texts})
        return source.streamReader(source.schema())

    def _start(self, reader: Any, batch: int) -> Any:
        return json.loads(self.log[batch - 1]) if batch > 0 else _through_json(reader.initialOffset())

    def _plan(self, reader: Any) -> bool:
        start = self._start(reader, len(self.log))
        if isinstance(reader, UnlimitedStreamReader):
            end = json.dumps(reader.latestOffset())
        else:
            end = json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit()))
        if self.log and self.log[-1] == end:
            return False
        self.log.append(end)
        return True

    def _batch(self, reader: Any) -> None:
        rows = self._read(reader)
        self.rows += rows
        self.triggers.append(len(rows))
        self.committed = len(self.log)
        reader.commit(json.loads(self.log[-1]))

    def _read(self, reader: Any) -> list[Row]:
        batch = len(self.log) - 1
        parts = reader.partitions(self._start(reader, batch), json.loads(self.log[batch]))
        self.before_tasks()
        rows = []
        for part in parts:
            task, copy = pickle.loads(pickle.dumps((reader, part)))
            for found in task.read(copy):
                columns = [found.column(name).to_pylist() for name in ("topic", "partition", "offset", "value")]
                rows += map(Row, *columns)
        return rows


def _through_json(document: Any) -> Any:
    return json.loads(json.dumps(document))
