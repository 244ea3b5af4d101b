"""ParallelConsumer: many workers on each partition.

Owns: the dispatcher's loop: records to the workers, offsets to the group, rebalances. Threads: run() and the callbacks
of the consumer are the dispatcher; stop(), status(), lag(), pause() and resume() may be called from any thread. Never:
commits a record before its handler has returned, or begins a record of a partition that is leaving.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from kconsumer.data.topic_partition import OFFSET_INVALID, TopicPartition
from kconsumer.errors import KafkaError, KafkaException, exception_for, exception_from
from kconsumer.parallel.attempt import Attempt, Handler, call_of
from kconsumer.parallel.flow import Commit, Flow, Partition, Place, Work
from kconsumer.parallel.gaps import Gaps, decode, origin
from kconsumer.parallel.options import Executor, Options, Summary, worker_count
from kconsumer.parallel.pool import Performer, Pool, Threads
from kconsumer.parallel.processes import Processes, check_importable
from kconsumer.parallel.signals import ended_by_signals
from kconsumer.parallel.source import Source, checked_config
from kconsumer.spawning import refuse_in_starting_worker

__all__ = ["ParallelConsumer"]

Self = TypeVar("Self", bound="ParallelConsumer")
Rebalanced = Callable[[Any, list[TopicPartition]], object]

_TURN_S: Final = 0.05  # the longest wait of the dispatcher: stop() is seen after it
_MOST_TAKEN: Final = 2000  # records of one call of the consumer
_ASK_S: Final = 10.0  # limit of requests in callbacks
_LATEST: Final = -1
_HOT: Final = 10  # keys in status(), records in a log line
_HARMLESS: Final = (KafkaError._PARTITION_EOF, KafkaError._MAX_POLL_EXCEEDED)  # after the latter it joins again
_END_S: Final = 1.0  # for threads that have no record in work


class ParallelConsumer:
    """Handle the records of a group with many workers, in the order of their keys.

    Args:
        config: properties, as of ``Consumer`` and ``DeserializingConsumer``. ``group.id`` is needed,
            ``enable.auto.commit=true`` is refused, and ``partition.assignment.strategy`` is ``cooperative-sticky`` by
            default. Workers call the deserializers, several at the same time.
        order: "key": records of one partition with the same key begin one after the other, in the order of their
            offsets; records without a key have no order. "partition": as if all records of a partition had the same
            key. "none": no order.
        executor: "threads"; "processes": the handler, which a module defines at its top level, runs in spawned
            processes; "inline": it runs in the thread of run().
        workers: number of threads (default 64) or of processes (default: the number of CPUs).
        max_in_flight: limit of the records that wait or are in work. A partition has an equal share of it.
        max_in_flight_bytes: limit of their bytes.
        commit_interval: seconds between commits.
        drain_timeout: seconds that a revocation and the end wait for records in work. Below
            ``max.poll.interval.ms``.
        handler_timeout: seconds after which a handler that has not returned is reported in the log. A process is killed
            then, and replaced: a failed attempt of its record.
        retry: which exceptions of the handler lead to another attempt; None: none.
        dead_letter: called with (message, Failure) for a record that failed finally. The record is done when the call
            returns. None: such a record ends the run.
        stop_if_bad: end the run if more than this share of the latest 1,000 records (at least 100) failed finally.
        middleware: callables with (message, proceed), which call ``proceed()`` to run the handler. The first one is the
            outermost.
        metadata_limit: ``offset.metadata.max.bytes`` of the brokers.

    Raises:
        ConfigurationError: an argument or a property is invalid.
    """

    def __init__(
        self, config: Mapping[str, Any], *, executor: Executor = "threads", workers: int | None = None, **options: Any,
    ) -> None:
        self._options = Options(**options)
        self._executor = executor
        self._workers = worker_count(workers, executor)
        if executor == "processes":
            refuse_in_starting_worker()
        self._flow: Flow = self._options.flow()
        self._clock: Callable[[], float] = time.monotonic
        self._pool = Pool(self._flow, self._clock, ())
        self._callbacks: dict[str, Rebalanced | None] = {}
        self._stop_asked = self._ran = False
        self._signal: int | None = None
        self._taking = False  # records may have left the consumer that the flow does not know
        self._paused: set[Place] = set()
        self._paused_by_user: set[Place] = set()
        self._ends: dict[Place, int] | None = None  # of until_end
        self._next_commit = 0.0
        self._cluster_id: str | None = None
        self._warned: set[str] = set()
        self._reported: set[Work] = set()
        found = checked_config(config)
        self._on_commit_of_user = found.get("on_commit")
        self._source = Source({**found, "on_commit": self._on_commit})
        self._logger: logging.Logger = self._source._settings.logger
        try:
            self._options.check_limits(self._source._settings.max_poll_interval_ms)
        except BaseException:
            self._source.close()
            raise

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the group and close the consumer."""
        self._source.close()

    # ---- the face

    def subscribe(
        self, topics: Iterable[str], on_assign: Rebalanced | None = None, on_revoke: Rebalanced | None = None,
        on_lost: Rebalanced | None = None,
    ) -> None:
        """Join the group; arguments as of ``Consumer.subscribe``.

        The callbacks receive this object. on_revoke runs after the partitions' work has ended and is committed.
        """
        self._callbacks = {"assign": on_assign, "revoke": on_revoke, "lost": on_lost or on_revoke}
        self._source.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def run(self, handle: Handler, *, until_end: bool = False, signals: bool = False) -> Summary:
        """Call `handle` with each record, until stop() is called.

        At the end nothing new begins, records in work are awaited (``drain_timeout``), and the done ones are committed.

        Args:
            handle: called with a Message, by several threads at the same time. It may raise RetryLater and Reject.
            until_end: return when the ends that the partitions had at their assignment are reached.
            signals: SIGTERM returns from run(), SIGINT raises KeyboardInterrupt, both after that end; a second signal
                ends the process. Only in the main thread, and for signals that still have their default handler.

        Returns:
            Summary.

        Raises:
            Exception: of the handler, if neither `retry` nor `dead_letter` accepts it; of a callback.
            KafkaException: the consumer has a fatal error, or the last commit failed.
            IllegalStateError: run() was called before.
        """
        if self._ran:
            raise exception_for(KafkaError._STATE, "run() can be called once: make another ParallelConsumer")
        self._ran = True
        options = self._options
        call = call_of(handle, self._source.deserializer, options.middleware)
        attempt = Attempt(call, options.policy(), options.dead_letter)
        self._pool = Pool(self._flow, self._clock, self._performers(call, attempt))
        self._ends = {} if until_end else None
        with ended_by_signals(self._on_signal) if signals else contextlib.nullcontext():
            self._pool.start()
            try:
                self._loop(attempt)
            except BaseException as error:
                with self._pool.lock:
                    self._flow.fail(error)
            summary = self._finish()
        if self._flow.failure is not None:
            raise self._flow.failure
        if self._signal == signal.SIGINT:
            raise KeyboardInterrupt
        return summary

    def stop(self) -> None:
        """End run(). Thread-safe."""
        self._stop_asked = True

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions."""
        return self._source.assignment()

    def lag(self) -> dict[Place, int | None]:
        """Return the number of records that are not done, per assigned partition; None: unknown."""
        lags: dict[Place, int | None] = self._source.lag()
        with self._pool.lock:
            return {place: None if lag is None else lag + self._on_their_way(place) for place, lag in lags.items()}

    def _on_their_way(self, place: Place) -> int:
        partition = self._flow.partitions.get(place)
        return 0 if partition is None else partition.records

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the consumer, and those of the workers, named ``parallel_…``."""
        flow = self._flow
        with self._pool.lock:
            own = {
                "parallel_records_done_total": flow.done - flow.rejected,
                "parallel_records_rejected_total": flow.rejected, "parallel_retries_total": flow.retries,
                "parallel_records_in_flight": flow.records, "parallel_bytes_in_flight": flow.bytes,
                "parallel_records_in_work": flow.working(),
            }
        return {**self._source.metrics(), **own}

    def status(self) -> dict[str, Any]:
        """Return what the workers do: for a person, or a health check.

        Returns:
            ``in_work``: number of records. ``oldest``: (topic, partition, offset, key, seconds) of the record that is
            in work for the longest time, or None. ``waiting``, ``delayed``: records that have not begun, and among them
            records between two attempts. ``lanes``: keys with records. ``hot_keys``: (key, waiting records), longest
            first. ``metadata_bytes``: of the latest commits. ``full``: partitions that have their share of the window.
        """
        now, flow = self._clock(), self._flow
        with self._pool.lock:
            works = self._pool.in_work()
            oldest = min(works, key=lambda work: work.since, default=None)
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

    def seek(self, partition: TopicPartition) -> None:
        """Continue at ``partition.offset``, as ``Consumer.seek``. Gaps of a former owner do not hide its records."""
        place = (partition.topic, partition.partition)
        with self._pool.lock:
            if place in self._flow.partitions:
                self._flow.partitions[place].forget_known()
        self._source.seek(partition)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Receive no records of these partitions until resume(). Received ones are handled."""
        self._paused_by_user.update((p.topic, p.partition) for p in partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """End the pause."""
        self._paused_by_user.difference_update((p.topic, p.partition) for p in partitions)

    # ---- the loop

    def _performers(self, call: Handler, attempt: Attempt) -> list[Performer]:
        if self._executor == "processes":
            check_importable(call)
            return [Processes(call, attempt, self._options.handler_timeout) for _ in range(self._workers)]
        return [Threads(attempt) for _ in range(self._workers)]

    def _on_signal(self, number: int) -> None:
        self._signal = number
        self.stop()

    def _loop(self, attempt: Attempt) -> None:
        pool, flow = self._pool, self._flow
        self._next_commit = self._clock() + self._options.commit_interval
        while not self._stop_asked and not flow.stopping:
            pool.turn()
            if self._window_is_full():
                pool.wait(lambda: not self._all_full(), _TURN_S)
            self._pause_full()
            pool.add(self._take(self._timeout()))
            self._taking = False
            if not self._workers:
                self._work_inline(attempt)
            if self._clock() >= self._next_commit:
                self._next_commit = self._clock() + self._options.commit_interval
                self._commit()
                self._report_slow()
            if self._ends is not None and self._at_end():
                return

    def _all_full(self) -> bool:
        partitions = self._flow.partitions.values()
        return bool(partitions) and all(self._flow.is_full(partition) for partition in partitions)

    def _window_is_full(self) -> bool:
        with self._pool.lock:
            return self._all_full()

    def _pause_full(self) -> None:
        with self._pool.lock:
            wanted = {place for place, partition in self._flow.partitions.items()
                      if self._flow.is_full(partition) or place in self._paused_by_user}
        if wanted != self._paused:
            self._source.pause([TopicPartition(*place) for place in wanted - self._paused])
            self._source.resume([TopicPartition(*place) for place in self._paused - wanted])
            self._paused = wanted

    def _timeout(self) -> float:
        with self._pool.lock:
            ready, due = self._flow.ready, self._flow.ready.next_due
            if ready and not self._workers:
                return 0.0
        now = self._clock()
        return max(0.0, min(_TURN_S, _TURN_S if due is None else due - now, self._next_commit - now))

    def _take(self, timeout: float) -> list[Any]:
        with self._pool.lock:
            room = self._flow.room()
        self._taking = True
        found = self._source.take(max(1, min(room, _MOST_TAKEN)), timeout)
        if any(message.error() is not None for message in found):
            found = self._records(found)
        self._identify()
        return found

    def _records(self, messages: list[Any]) -> list[Any]:
        """Return the records. An error after which the consumer does not go on is raised after they are added."""
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
            elif error.fatal() or not (error.retriable() or error.code() in _HARMLESS):
                with self._pool.lock:
                    self._flow.fail(exception_from(error))
            elif error.code() != KafkaError._PARTITION_EOF:
                self._logger.warning("%s", error.str())
        return records

    def _identify(self) -> None:
        """Ask for the topic ids of partitions whose first records have come."""
        for place, partition in self._flow.partitions.items():
            if partition.origin is None:
                found = self._source._position(*place)
                if found is None or found[0] < 0:
                    continue  # no record yet
                if self._cluster_id is None:
                    with contextlib.suppress(KafkaException):
                        self._cluster_id = self._source.cluster_id(_ASK_S)
                with self._pool.lock:
                    self._flow.identify(partition, origin(self._cluster_id, found[6], *place))

    def _work_inline(self, attempt: Attempt) -> None:
        until = self._clock() + _TURN_S
        while self._clock() < until:
            with self._pool.lock:
                taken = self._flow.take(1, self._clock())
            if not taken:
                return
            outcome = attempt(taken[0])
            with self._pool.lock:
                self._flow.finish(taken[0], outcome, self._clock())

    def _at_end(self) -> bool:
        ends = self._ends
        assert ends is not None
        if self._flow.records or not self._flow.partitions:
            return False
        for place in self._flow.partitions:
            found = self._source._position(*place)
            if found is None or max(found[0], found[5]) < ends[place]:  # the second is where reading begins
                return False
        return True

    def _report_slow(self) -> None:
        limit, now = self._options.handler_timeout, self._clock()
        if limit is None or self._executor != "threads":
            return
        with self._pool.lock:
            works = set(self._pool.in_work())
        self._reported &= works
        for work in works - self._reported:
            if now - work.since > limit:
                self._reported.add(work)
                topic, partition = work.partition.place
                self._logger.warning("the handler has worked for %.1f s on %s [%d] offset %d, key %r",
                                     now - work.since, topic, partition, work.message.offset(), work.key)

    def _finish(self) -> Summary:
        """End the work: see run()."""
        pool, flow = self._pool, self._flow
        with pool.lock:
            flow.stop()
        settled = pool.drain(None, self._options.drain_timeout)
        try:
            self._commit(wait=True)
        except KafkaException as error:
            with pool.lock:
                flow.fail(error)
        with pool.lock:
            unfinished = [] if settled else pool.in_work()
            flow.revoked(list(flow.partitions))
        if unfinished:
            self._log_unfinished(unfinished)
        pool.end(_END_S)
        return Summary.of(flow, unfinished)

    def _log_unfinished(self, works: list[Work]) -> None:
        places = ", ".join(f"{work.partition.place[0]} [{work.partition.place[1]}] {work.message.offset()}"
                           for work in works[:_HOT])
        self._logger.warning("%d records are still in work after drain_timeout=%s s and will come again: %s",
                             len(works), self._options.drain_timeout, places)

    # ---- offsets

    def _commit(self, places: Iterable[Place] | None = None, wait: bool = False) -> None:
        """Commit the watermarks and gaps of these partitions; None: of all."""
        found: list[Commit] = []
        with self._pool.lock:
            partitions = list(self._flow.partitions.values()) if places is None else [
                self._flow.partitions[place] for place in places if place in self._flow.partitions]
            for partition in partitions:
                commit = self._flow.commit(partition, *self._position(partition))
                if commit is not None:
                    found.append(commit)
            overflows, self._flow.overflows = self._flow.overflows, []
        if overflows:
            self._warn_once("overflow", f"the gaps of {overflows[0][0]} [{overflows[0][1]}] exceed "
                            f"metadata_limit={self._options.metadata_limit}: only its lowest offset is committed, and "
                            "a restart repeats what is done above it")
        if not found:
            return
        offsets = [TopicPartition(*commit.place, commit.offset, commit.metadata,
                                  commit.epoch if commit.epoch >= 0 else None) for commit in found]
        try:
            if not wait:
                self._source.commit(offsets=offsets, asynchronous=True)
                return
            self._note_commit(self._source.commit(offsets=offsets, asynchronous=False))
        except KafkaException:
            self._forget_commits(found)
            raise

    def _position(self, partition: Partition) -> tuple[int, int]:
        """Return the offset after all that the flow knows of a partition, and its leader epoch."""
        found = None if self._taking else self._source._position(*partition.place)
        if found is None or found[0] <= partition.rows.last:
            return partition.rows.last + 1, -1
        return found[0], found[1]

    def _on_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> object:
        self._note_commit(offsets, error)
        return None if self._on_commit_of_user is None else self._on_commit_of_user(error, offsets)

    def _note_commit(self, offsets: list[TopicPartition], error: KafkaError | None = None) -> None:
        for p in offsets:
            failed = p.error or error
            if failed is None or failed.code() == KafkaError._NO_OFFSET:
                continue
            with self._pool.lock:
                partition = self._flow.partitions.get((p.topic, p.partition))
                if partition is None:
                    continue
                if failed.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
                    self._flow.refuse_metadata(partition)
                partition.asked = None
            self._logger.warning("the commit of %s [%d] at %d failed, and is repeated: %s", p.topic, p.partition,
                                 p.offset, failed.str())

    def _forget_commits(self, commits: list[Commit]) -> None:
        with self._pool.lock:
            for commit in commits:
                if commit.place in self._flow.partitions:
                    self._flow.partitions[commit.place].asked = None

    def _warn_once(self, what: str, text: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            self._logger.warning("%s", text)

    # ---- rebalances; these run inside the consumer's calls, which have no record in hand then

    @contextlib.contextmanager
    def _no_record_in_hand(self) -> Iterator[None]:
        taking, self._taking = self._taking, False
        try:
            yield
        finally:
            self._taking = taking

    def _on_assign(self, _: object, partitions: list[TopicPartition]) -> None:
        with self._no_record_in_hand():
            known = self._gaps(partitions)
            if self._ends is not None:
                self._find_ends(partitions)
            with self._pool.lock:
                for p in partitions:
                    place = (p.topic, p.partition)
                    self._flow.assign(place, known.get(place))
                    self._paused.discard(place)
                    self._paused_by_user.discard(place)
            self._call("assign", partitions)

    def _gaps(self, partitions: list[TopicPartition]) -> dict[Place, Gaps]:
        """Return the gaps that former owners committed."""
        try:
            committed = self._source.committed(partitions, timeout=_ASK_S)
        except KafkaException as error:
            self._logger.warning("cannot read the gaps of the group, and records may be repeated: %s", error)
            return {}
        found: dict[Place, Gaps] = {}
        for p in committed:
            gaps = decode(p.metadata)
            if gaps is not None and gaps.base == p.offset:
                found[p.topic, p.partition] = gaps
            elif p.metadata and gaps is None and p.offset != OFFSET_INVALID:
                self._warn_once("foreign", f"the metadata of {p.topic} [{p.partition}] in the group are of another "
                                f"program, and are replaced: {p.metadata[:40]!r}")
        return found

    def _find_ends(self, partitions: list[TopicPartition]) -> None:
        assert self._ends is not None
        queries = [(p.topic, p.partition, _LATEST) for p in partitions]
        for (topic, partition, _), (error, offset, *_rest) in zip(
                queries, self._source._list_offsets(queries, _ASK_S), strict=True):
            if error:
                raise exception_for(error, f"{topic} [{partition}]: cannot find the end of the partition")
            self._ends[topic, partition] = offset

    def _on_revoke(self, _: object, partitions: list[TopicPartition]) -> None:
        places = [(p.topic, p.partition) for p in partitions]
        with self._no_record_in_hand():
            with self._pool.lock:
                self._flow.drain(places)
            if not self._pool.drain(places, self._options.drain_timeout):
                with self._pool.lock:
                    leaving = set(places)
                    self._log_unfinished([w for w in self._pool.in_work() if w.partition.place in leaving])
            try:
                self._commit(places, wait=True)
            except KafkaException as error:
                self._logger.warning("the commit before a revocation failed, and records are repeated: %s", error)
            self._leave(places)
            self._call("revoke", partitions)

    def _on_lost(self, _: object, partitions: list[TopicPartition]) -> None:
        with self._no_record_in_hand():
            self._leave([(p.topic, p.partition) for p in partitions])
            self._call("lost", partitions)

    def _leave(self, places: list[Place]) -> None:
        with self._pool.lock:
            self._flow.revoked(places)
        self._paused.difference_update(places)
        self._paused_by_user.difference_update(places)

    def _call(self, name: str, partitions: list[TopicPartition]) -> None:
        callback = self._callbacks.get(name)
        if callback is not None:
            callback(self, partitions)
