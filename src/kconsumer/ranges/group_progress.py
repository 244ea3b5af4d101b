"""GroupProgress: commits a streaming query's progress to a consumer group, for tools that show lag.

Owns: a separate consumer and the thread that commits with it. Threads: the driver's thread calls commit() and close().
Never: delays or fails the query: a failed commit is a warning, and outdated offsets are not committed.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaException
from kconsumer.errors.printable import printable
from kconsumer.ranges.offsets import Offsets
from kconsumer.ranges.options import ReadOptions

_LAST_COMMIT_S: Final = 15.0  # time limit of the last commit, at the end of the query

_log = logging.getLogger("kconsumer.ranges")


class GroupProgress:
    """Commits to ``commitOffsetsToGroup``, a group without members.

    Without it, does nothing.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._group = options.commit_group
        self._config = {**options.driver_config, "group.id": options.commit_group or ""}
        self._changed: threading.Condition | None = None
        self._thread: threading.Thread | None = None
        self._pending: Offsets | None = None
        self._last_reported: Offsets | None = None
        self._closing = False

    def commit(self, offsets: Offsets) -> None:
        """Commit these offsets soon, in the background."""
        if self._group is None or offsets == self._last_reported:
            return
        self._last_reported = offsets
        if self._changed is None or self._thread is None:
            self._changed = threading.Condition()
            self._thread = threading.Thread(target=self._run, args=(self._changed,), name="kconsumer-progress",
                                            daemon=True)
            self._thread.start()
        with self._changed:
            self._pending = offsets
            self._changed.notify()

    def close(self) -> None:
        """Commit the remaining offsets, within a few seconds."""
        if self._changed is None or self._thread is None:
            return
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(_LAST_COMMIT_S)

    def _run(self, changed: threading.Condition) -> None:
        try:
            with Consumer(self._config) as consumer:
                while (offsets := self._next(changed)) is not None:
                    self._commit(consumer, offsets)
        except KafkaException as error:
            _log.warning("the query no longer commits its progress to group %s: %s", self._group,
                         printable(str(error)))

    def _next(self, changed: threading.Condition) -> Offsets | None:
        """Return the offsets to commit next; None: the query has ended."""
        with changed:
            changed.wait_for(lambda: self._pending is not None or self._closing)
            offsets, self._pending = self._pending, None
            return offsets

    def _commit(self, consumer: Consumer, offsets: Offsets) -> None:
        given = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        try:
            done = consumer.commit(offsets=given, asynchronous=False) or []
            failed = [f"{p.topic} [{p.partition}]: {p.error.str()}" for p in done if p.error is not None]
        except KafkaException as error:
            failed = [str(error)]
        if failed:
            _log.warning("cannot commit the progress of the query to group %s: %s", self._group,
                         printable("; ".join(failed[:5])))
