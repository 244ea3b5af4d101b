"""ParallelConsumer: many workers on each partition.

Owns: the dispatcher's loop: records to the workers, offsets to the group, rebalances. Threads: run() and the callbacks
of the consumer are the dispatcher; stop(), status(), lag(), pause() and resume() may be called from any thread. Never:
commits a record before its handler has returned, or begins a record of a partition that is leaving.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaException
from kconsumer.parallel.attempt import Attempt, Handler, call_of
from kconsumer.parallel.dispatcher import ASK_S, TURN_S, Dispatcher, Rebalanced, offsets_of
from kconsumer.parallel.flow import Place, Work
from kconsumer.parallel.gaps import Gaps
from kconsumer.parallel.options import Executor, Options, Summary, worker_count
from kconsumer.parallel.pool import Performer, Pool, Threads
from kconsumer.parallel.processes import Processes, check_importable
from kconsumer.parallel.signals import ended_by_signals
from kconsumer.parallel.source import Source, checked_config
from kconsumer.spawning import refuse_in_starting_worker

__all__ = ["ParallelConsumer"]

Self = TypeVar("Self", bound="ParallelConsumer")

_END_S: Final = 1.0  # for threads that have no record in work


class ParallelConsumer(Dispatcher):
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
        super().__init__(Options(**options))
        self._executor = executor
        self._workers = worker_count(workers, executor)
        if executor == "processes":
            refuse_in_starting_worker()
        self._pool = Pool(self._flow, self._lock, self._clock, ())
        self._signal: int | None = None
        self._reported: set[Work] = set()
        found = checked_config(config)
        self._on_commit_of_user = found.get("on_commit")
        self._core = self._source = Source({**found, "on_commit": self._on_commit})
        self._logger = self._source._settings.logger
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
        self._enter_run()
        options = self._options
        call = call_of(handle, self._source.deserializer, options.middleware)
        attempt = Attempt(call, options.policy(), options.dead_letter)
        self._pool = Pool(self._flow, self._lock, self._clock, self._performers(call, attempt))
        self._ends = {} if until_end else None
        with ended_by_signals(self._on_signal) if signals else contextlib.nullcontext():
            try:
                self._pool.start()
                self._loop(attempt)
            except BaseException as error:
                self._fail(error)
            summary = self._finish()
        if self._flow.failure is not None:
            raise self._flow.failure
        if self._signal == signal.SIGINT:
            raise KeyboardInterrupt
        return summary

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions."""
        return self._source.assignment()

    def seek(self, partition: TopicPartition) -> None:
        """Continue at ``partition.offset``, as ``Consumer.seek``. Gaps of a former owner do not hide its records."""
        place = (partition.topic, partition.partition)
        with self._lock:
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

    def _works(self) -> list[Work]:
        return self._pool.in_work()

    def _loop(self, attempt: Attempt) -> None:
        pool, flow = self._pool, self._flow
        while not self._stop_asked and not flow.stopping:
            pool.turn()
            if self._window_is_full():
                pool.wait(lambda: not self._all_full(), TURN_S)
            count = self._begin_taking()
            found = self._source.take(count, self._timeout(bool(self._workers) or not flow.ready))
            self._identify_all()
            pool.add(self._records(found))
            self._taking = False
            if not self._workers:
                self._work_inline(attempt)
            if self._clock() >= self._next_commit:
                self._next_commit = self._clock() + self._options.commit_interval
                self._commit()
                self._report_slow()
            if self._at_end():
                return

    def _window_is_full(self) -> bool:
        with self._lock:
            return self._all_full()

    def _identify_all(self) -> None:
        found = self._unidentified()
        if found:
            if self._cluster_id is None:
                with contextlib.suppress(KafkaException):
                    self._cluster_id = self._source.cluster_id(ASK_S)
            self._identify(found)

    def _work_inline(self, attempt: Attempt) -> None:
        until = self._clock() + TURN_S
        while self._clock() < until:
            with self._lock:
                taken = self._flow.take(1, self._clock())
            if not taken:
                return
            outcome = attempt(taken[0])
            with self._lock:
                self._flow.finish(taken[0], outcome, self._clock())

    def _report_slow(self) -> None:
        limit, now = self._options.handler_timeout, self._clock()
        if limit is None or self._executor != "threads":
            return
        with self._lock:
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
        with self._lock:
            self._flow.stop()
        settled = self._pool.drain(None, self._options.drain_timeout)
        try:
            self._commit(wait=True)
        except KafkaException as error:
            self._fail(error)
        summary = self._ended(settled)
        self._pool.end(_END_S)
        return summary

    # ---- what waits for brokers or for work

    def _commit(self, places: list[Place] | None = None, wait: bool = False) -> None:
        """Commit the watermarks and gaps of these partitions; None: of all."""
        for again in (False, True):  # again: what failed, without metadata that the broker refused
            commits = self._commits(places)
            if not commits:
                return
            try:
                found = self._source.commit(offsets=offsets_of(commits), asynchronous=not wait)
            except KafkaException as error:
                if not self._forget_commits(commits, error) or again:
                    raise
                continue
            if found is None:
                return
            self._note_commit(found)

    def _on_assign(self, _: object, partitions: list[TopicPartition]) -> None:
        with self._no_record_in_hand():
            known: dict[Place, Gaps] = {}
            try:
                known = self._gaps_of(self._source.committed(partitions, timeout=ASK_S))
            except KafkaException as error:
                self._logger.warning("cannot read the gaps of the group, and records may be repeated: %s", error)
            if self._ends is not None:
                self._ends.update(((p.topic, p.partition), self._source.get_watermark_offsets(p, ASK_S)[1])
                                  for p in partitions)
            self._assigned(partitions, known)
            self._call("assign", partitions)
            if self._paused_by_user.intersection((p.topic, p.partition) for p in partitions):
                # The consumer would assign after this callback, and return a record before the pause.
                cooperative = self._source.rebalance_protocol() == "COOPERATIVE"
                (self._source.incremental_assign if cooperative else self._source.assign)(partitions)
                self._pause_now()

    def _on_revoke(self, _: object, partitions: list[TopicPartition]) -> None:
        places = [(p.topic, p.partition) for p in partitions]
        with self._no_record_in_hand():
            with self._lock:
                self._flow.drain(places)
            if not self._pool.drain(places, self._options.drain_timeout):
                with self._lock:
                    works = [work for work in self._works() if work.partition.place in set(places)]
                self._log_unfinished(works)
            try:
                self._commit(places, wait=True)
            except KafkaException as error:
                self._logger.warning("the commit before a revocation failed, and records are repeated: %s", error)
            self._left(places)
            self._call("revoke", partitions)

    def _on_lost(self, _: object, partitions: list[TopicPartition]) -> None:
        with self._no_record_in_hand():
            self._left([(p.topic, p.partition) for p in partitions])
            self._call("lost", partitions)
