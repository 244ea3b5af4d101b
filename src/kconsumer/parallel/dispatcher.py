"""Dispatcher: the part of a parallel consumer that waits for nothing; the faces for threads and asyncio derive from it.

Owns: the Flow, its lock, the offsets to commit, the window's pauses, the reports. Threads: the dispatcher, which is the
thread of run(); the methods for users may be called from any thread. Never: waits for a broker or for work.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import OFFSET_INVALID, TopicPartition
from kconsumer.errors import KafkaError, KafkaException, exception_for, exception_from
from kconsumer.parallel.flow import Commit, Partition, Place, Work
from kconsumer.parallel.gaps import Gaps, decode, origin
from kconsumer.parallel.options import Options, Summary

__all__ = ["ASK_S", "TURN_S", "Dispatcher", "Rebalanced", "offsets_of"]

Rebalanced = Callable[[Any, list[TopicPartition]], Any]

TURN_S: Final = 0.05  # the longest wait of the dispatcher: stop() is seen after it
_MOST_TAKEN: Final = 2000  # records of one call of the consumer
ASK_S: Final = 10.0  # limit of requests in callbacks
_HOT: Final = 10  # keys in status(), records in a log line
_HARMLESS: Final = (KafkaError._PARTITION_EOF, KafkaError._MAX_POLL_EXCEEDED)  # after the latter it joins again


class Dispatcher:
    """The records and offsets between a consumer and its workers."""

    _core: Consumer  # the consumer, or the synchronous one inside of it
    _logger: logging.Logger

    def __init__(self, options: Options) -> None:
        self._options = options
        self._flow = options.flow()
        self._lock = threading.Lock()
        self._clock: Callable[[], float] = time.monotonic
        self._callbacks: dict[str, Rebalanced | None] = {}
        self._stop_asked = self._ran = False
        self._taking = False  # records may have left the consumer that the flow does not know
        self._paused: set[Place] = set()
        self._paused_by_user: set[Place] = set()
        self._ends: dict[Place, int] | None = None  # of until_end
        self._next_commit = 0.0
        self._cluster_id: str | None = None
        self._warned: set[str] = set()
        self._on_commit_of_user: Callable[..., Any] | None = None

    # ---- the face

    def stop(self) -> None:
        """End run(). Thread-safe."""
        self._stop_asked = True

    def lag(self) -> dict[Place, int | None]:
        """Return the number of records that are not done, per assigned partition; None: unknown. Sends no request."""
        lags: dict[Place, int | None] = self._core.metrics()["records_lag"]
        with self._lock:
            return {place: None if lag is None else lag + self._on_their_way(place) for place, lag in lags.items()}

    def _on_their_way(self, place: Place) -> int:
        partition = self._flow.partitions.get(place)
        return 0 if partition is None else partition.records

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the consumer, and those of the workers, named ``parallel_…``."""
        flow = self._flow
        with self._lock:
            own = {
                "parallel_records_done_total": flow.done - flow.rejected,
                "parallel_records_rejected_total": flow.rejected, "parallel_retries_total": flow.retries,
                "parallel_records_in_flight": flow.records, "parallel_bytes_in_flight": flow.bytes,
                "parallel_records_in_work": flow.working(),
            }
        return {**self._core.metrics(), **own}

    def status(self) -> dict[str, Any]:
        """Return what the workers do: for a person, or a health check.

        Returns:
            ``in_work``: number of records. ``oldest``: (topic, partition, offset, key, seconds) of the record that is
            in work for the longest time, or None. ``waiting``, ``delayed``: records that have not begun, and among them
            records between two attempts. ``lanes``: keys with records. ``hot_keys``: (key, waiting records), longest
            first. ``metadata_bytes``: of the latest commits. ``full``: partitions that have their share of the window.
        """
        now, flow = self._clock(), self._flow
        with self._lock:
            oldest = min(self._works(), key=lambda work: work.since, default=None)
            partitions = list(flow.partitions.values())
            hot = sorted((pair for p in partitions for pair in p.lanes.longest(_HOT)), key=lambda pair: -pair[1])
            return {
                "in_work": flow.working(),
                "oldest": None if oldest is None else (
                    *oldest.partition.place, oldest.message.offset(), oldest.key, now - oldest.since),
                "waiting": flow.records - flow.working(), "delayed": flow.ready.delayed,
                "lanes": sum(len(p.lanes) for p in partitions), "hot_keys": hot[:_HOT],
                "metadata_bytes": sum(p.metadata_bytes for p in partitions),
                "full": [p.place for p in partitions if p.held],
            }

    def _works(self) -> list[Work]:
        """Return the records whose handlers run. Called under the lock."""
        raise NotImplementedError

    # ---- the window

    def _all_full(self) -> bool:
        partitions = self._flow.partitions.values()
        return bool(partitions) and all(self._flow.is_full(partition) for partition in partitions)

    def _begin_taking(self) -> int:
        """Pause the full partitions. Return how many records to take."""
        with self._lock:
            room = self._flow.room()
        self._pause_now()
        self._taking = True
        return max(1, min(room, _MOST_TAKEN))

    def _pause_now(self) -> None:
        with self._lock:
            wanted = {place for place, partition in self._flow.partitions.items()
                      if partition.held or place in self._paused_by_user}
        for place in wanted ^ self._paused:
            self._core._set_paused(*place, place in wanted)
        self._paused = wanted

    def _timeout(self, waits: bool) -> float:
        """Return how long the consumer may wait for a record; not at all if `waits` is false."""
        if not waits:
            return 0.0
        with self._lock:
            due = self._flow.ready.next_due
        now = self._clock()
        return max(0.0, min(TURN_S, TURN_S if due is None else due - now, self._next_commit - now))

    def _records(self, messages: list[Any]) -> list[Any]:
        """Return the records. An error after which the consumer does not go on ends the run."""
        if all(message.error() is None for message in messages):
            return messages
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
            elif error.fatal() or not (error.retriable() or error.code() in _HARMLESS):
                self._fail(exception_from(error))
            elif error.code() != KafkaError._PARTITION_EOF:
                self._logger.warning("%s", error.str())
        return records

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._flow.fail(error)

    def _unidentified(self) -> list[tuple[Partition, str | None]]:
        """Return the partitions whose first records have come, with their topic ids."""
        found = []
        for place, partition in self._flow.partitions.items():
            if partition.origin is None:
                position = self._core._position(*place)
                if position is not None and position[0] >= 0:
                    found.append((partition, position[6]))
        return found

    def _identify(self, found: list[tuple[Partition, str | None]]) -> None:
        with self._lock:
            for partition, topic_id in found:
                self._flow.identify(partition, origin(self._cluster_id, topic_id, *partition.place))

    def _at_end(self) -> bool:
        ends = self._ends
        if ends is None or self._flow.records or not self._flow.partitions:
            return False
        for place in self._flow.partitions:
            found = self._core._position(*place)
            if found is None or max(found[0], found[5]) < ends[place]:  # the second is where reading begins
                return False
        return True

    # ---- offsets

    def _commits(self, places: Iterable[Place] | None) -> list[Commit]:
        """Return the watermarks and gaps of these partitions that no commit has yet; None: of all."""
        with self._lock:
            partitions = list(self._flow.partitions.values()) if places is None else [
                self._flow.partitions[place] for place in places if place in self._flow.partitions]
            commits = [self._flow.commit(partition, *self._position(partition)) for partition in partitions]
            overflows, self._flow.overflows = self._flow.overflows, []
        if overflows:
            self._warn_once("overflow", f"the gaps of {overflows[0][0]} [{overflows[0][1]}] exceed "
                            f"metadata_limit={self._options.metadata_limit}: only its lowest offset is committed, and "
                            "a restart repeats the done records above it")
        return [commit for commit in commits if commit is not None]

    def _position(self, partition: Partition) -> tuple[int, int]:
        """Return the offset after all that the flow knows of a partition, and its leader epoch."""
        found = None if self._taking else self._core._position(*partition.place)
        if found is None or found[0] <= partition.rows.last:
            return partition.rows.last + 1, -1
        return found[0], found[1]

    def _on_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> Any:
        self._note_commit(offsets, error)
        return None if self._on_commit_of_user is None else self._on_commit_of_user(error, offsets)

    def _note_commit(self, offsets: list[TopicPartition], error: KafkaError | None = None) -> None:
        for p in offsets:
            failed = p.error or error
            if failed is None or failed.code() == KafkaError._NO_OFFSET:
                continue
            with self._lock:
                partition = self._flow.partitions.get((p.topic, p.partition))
                if partition is None:
                    continue
                if failed.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
                    self._flow.refuse_metadata(partition)
                partition.asked = None
            self._logger.warning("the commit of %s [%d] at %d failed, and is repeated: %s", p.topic, p.partition,
                                 p.offset, failed.str())

    def _forget_commits(self, commits: list[Commit], error: KafkaException) -> bool:
        """Forget commits that failed together. Return whether the broker has refused only their metadata."""
        refused = error.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
        with self._lock:
            for commit in commits:
                partition = self._flow.partitions.get(commit.place)
                if partition is not None:
                    partition.asked = None
                    if refused and commit.metadata is not None:
                        self._flow.refuse_metadata(partition)
        return bool(refused)

    def _warn_once(self, what: str, text: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            self._logger.warning("%s", text)

    # ---- rebalances: they run inside the consumer's calls, which have no record in hand then

    @contextlib.contextmanager
    def _no_record_in_hand(self) -> Iterator[None]:
        taking, self._taking = self._taking, False
        try:
            yield
        finally:
            self._taking = taking

    def _gaps_of(self, committed: list[TopicPartition]) -> dict[Place, Gaps]:
        """Return the gaps that former owners committed."""
        found: dict[Place, Gaps] = {}
        for p in committed:
            gaps = decode(p.metadata)
            if gaps is not None and gaps.base == p.offset:
                found[p.topic, p.partition] = gaps
            elif p.metadata and gaps is None and p.offset != OFFSET_INVALID:
                self._warn_once("foreign", f"the metadata of {p.topic} [{p.partition}] in the group are of another "
                                f"program, and are replaced: {p.metadata[:40]!r}")
        return found

    def _assigned(self, partitions: list[TopicPartition], known: dict[Place, Gaps]) -> None:
        with self._lock:
            for p in partitions:
                place = (p.topic, p.partition)
                self._flow.assign(place, known.get(place))
                self._paused.discard(place)  # an assigned partition is not paused
                self._paused_by_user.discard(place)

    def _left(self, places: list[Place]) -> None:
        with self._lock:
            self._flow.revoked(places)
        self._paused.difference_update(places)
        self._paused_by_user.difference_update(places)

    def _call(self, name: str, partitions: list[TopicPartition]) -> Any:
        callback = self._callbacks.get(name)
        return None if callback is None else callback(self, partitions)

    # ---- the end

    def _enter_run(self) -> None:
        if self._ran:
            raise exception_for(KafkaError._STATE, "run() can be called once: make another parallel consumer")
        self._ran = True
        self._next_commit = self._clock() + self._options.commit_interval

    def _log_unfinished(self, works: list[Work]) -> None:
        places = ", ".join(f"{work.partition.place[0]} [{work.partition.place[1]}] {work.message.offset()}"
                           for work in works[:_HOT])
        self._logger.warning("%d records are still in work after drain_timeout=%s s and will come again: %s",
                             len(works), self._options.drain_timeout, places)

    def _ended(self, settled: bool) -> Summary:
        """Let all partitions go, after the last commit."""
        with self._lock:
            unfinished = [] if settled else self._works()
            self._flow.revoked(list(self._flow.partitions))
        if unfinished:
            self._log_unfinished(unfinished)
        return Summary.of(self._flow, unfinished)


def offsets_of(commits: list[Commit]) -> list[TopicPartition]:
    """Return commits in the form of ``Consumer.commit``."""
    return [TopicPartition(*commit.place, commit.offset, commit.metadata, commit.epoch if commit.epoch >= 0 else None)
            for commit in commits]
