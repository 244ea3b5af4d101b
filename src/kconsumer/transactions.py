"""Exactly once from Kafka to Kafka: a loop around kconsumer's Consumer and confluent_kafka's transactional Producer.

Owns: ExactlyOnce and Transaction: begin, commit, abort, and the positions that belong to each. Threads: one runs the
loop; stop() may be called from any thread and from signal handlers. Never: commits offsets outside a transaction;
goes on after a transaction whose end is unknown.

The order of events that makes it safe:

1. Only `consume` runs rebalances, and no transaction is open during it. It returns before it would run one if it has
   records. So a revocation waits for the end of the transaction.
2. The network thread may lose partitions meanwhile (session, `rebalance.application.wait.ms`). They come back only
   through on_assign, hence through `consume`. So a partition that is assigned at the end was ours all along.
3. The group's metadata are read before that check. If partitions are lost later, the coordinator refuses the metadata,
   or it has not given the partitions to another member.
4. The next owner asks for stable offsets (KIP-447), and waits for the end of the transaction.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kconsumer.config.values import configuration_error
from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, KafkaException, error_for, exception_for, exception_from

if TYPE_CHECKING:
    import confluent_kafka

    from kconsumer._core.consumer.consumer import Message

__all__ = ["ExactlyOnce", "Transaction", "TransactionAbortedError"]

Self = TypeVar("Self", bound="ExactlyOnce")
_PAUSE_S = 0.1  # before a call to the producer is repeated
_LONGEST_PAUSE_S = 5.0  # between aborted transactions


class TransactionAbortedError(KafkaException):
    """The transaction was aborted and the positions were rewound: the next transaction has its records again."""


class Transaction:
    """The records of a transaction, and what is produced in it: see ExactlyOnce.transaction().

    Iteration returns records until ``max_time`` is over or stop() is called. Only the returned ones belong to the
    transaction, and the next transaction has the others.
    """

    def __init__(self, loop: ExactlyOnce) -> None:
        self._loop = loop
        self._records: list[Message] = []
        self._ends: dict[tuple[str, int], TopicPartition] = {}
        self._taken = 0
        self._until = 0.0
        self._lost = 0
        self._open = False
        self._refusal: BaseException | None = None

    def produce(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> None:
        """Produce a record as part of this transaction; arguments as of ``Producer.produce``.

        Waits while the producer's queue is full.

        Raises:
            KafkaException: the producer's error. Let it leave the block, which aborts the transaction.
            IllegalStateError: no transaction is open.
        """
        if not self._open:
            raise exception_for(KafkaError._STATE, "no transaction is open: produce() is for the records of the block")
        producer = self._loop.producer
        deadline = self._loop._clock() + self._loop._timeout
        while True:
            try:
                producer.produce(topic, value, key, **more)
                break
            except BufferError as full:
                if self._loop._clock() >= deadline:
                    self._refusal = full
                    raise
                producer.poll(_PAUSE_S)
            except _theirs() as error:
                # _STATE: the transaction has failed in the background. The producer says why only to commit or abort.
                if _retriable(error) or _abortable(error) or error.args[0].code() == KafkaError._STATE:
                    self._refusal = error
                raise
        producer.poll(0)

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        at_end = self._taken == len(self._records)
        late = self._taken > 0 and (self._loop._stopping or self._loop._clock() >= self._until)
        if at_end or late:
            raise StopIteration
        self._taken += 1
        return self._records[self._taken - 1]

    def __enter__(self) -> Transaction:
        loop = self._loop
        loop._check_usable()
        try:
            self._records = loop._receive()
        except Exception:
            raise  # no record was taken
        except BaseException as error:
            loop._fail(error)  # a signal may have come after records were taken
            raise
        if self._records:
            try:
                self._begin()
            except BaseException as error:
                loop._fail(error)
                raise
        return self

    def _begin(self) -> None:
        loop = self._loop
        partitions = [TopicPartition(*place) for place in _firsts(self._records)]
        self._ends = {(p.topic, p.partition): p for p in loop.consumer.position(partitions)}
        self._lost, self._until = loop._lost, loop._clock() + loop._max_time
        loop._repeat(lambda _limit: loop.producer.begin_transaction())
        self._open = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not self._open:
            return
        try:
            if error is not None:
                self._abort(error)
                if error is self._refusal:
                    raise _aborted(error) from error
            elif self._taken:
                self._commit()
            else:
                self._abort(None)
        finally:
            self._open = False

    def _commit(self) -> None:
        loop = self._loop
        ends = self._taken_ends()
        try:
            loop._repeat(loop.producer.send_offsets_to_transaction, [p.to_confluent() for p in ends],
                         self._metadata(ends))
        except BaseException as error:
            self._abort(error)
            if isinstance(error, _theirs()) and (_abortable(error) or _retriable(error)):
                raise _aborted(error) from error
            raise
        try:
            loop._repeat(loop.producer.commit_transaction)
        except BaseException as error:
            if not (isinstance(error, _theirs()) and _abortable(error)):
                loop._fail(error)  # it may have been committed
                raise
            self._abort(error)
            raise _aborted(error) from error
        _rewind(loop.consumer, self._records[self._taken:])

    def _metadata(self, ends: list[TopicPartition]) -> bytes | None:
        """Return the group's metadata; with them the coordinator accepts `ends` only while they are ours."""
        consumer = self._loop.consumer
        metadata = consumer.consumer_group_metadata()
        member_id, epoch = consumer._memberid()
        owned = set(consumer.assignment())
        lost = next((p for p in ends if p not in owned), None)
        # Without a member id and an epoch, the coordinator would accept the offsets from anyone.
        if lost is not None or self._loop._lost != self._lost or epoch < 0 or not member_id:
            place = "the partitions" if lost is None else f"{lost.topic} [{lost.partition}]"
            error = error_for(KafkaError._ASSIGNMENT_LOST, f"{place} left this member during the transaction")
            raise exception_from(KafkaError(error.code(), error.str(), txn_requires_abort=True))
        return metadata

    def _taken_ends(self) -> list[TopicPartition]:
        """Return the offsets after the returned records. That of a whole partition is beyond transaction markers."""
        rest = _firsts(self._records[self._taken:])
        return [TopicPartition(*place, rest[place]) if place in rest else self._ends[place]
                for place in _firsts(self._records[:self._taken])]

    def _abort(self, why: BaseException | None) -> None:
        """Abort and rewind. If that fails, `why` is in the chain of the error."""
        loop = self._loop
        if isinstance(why, _theirs()) and _fatal(why):
            loop._fail(why)
            return
        try:
            loop._repeat(loop.producer.abort_transaction)
        except BaseException as error:
            loop._fail(error)
            raise
        _rewind(loop.consumer, self._records)


class ExactlyOnce:
    """Consume, process, produce: each input record has its results in the output exactly once.

    A context manager. Entering the block ends the transactions of an earlier process with the same
    ``transactional.id``, and subscribes. Readers of the output need ``isolation.level=read_committed``.

    Args:
        consumer: properties, or a Consumer. ``group.id`` is needed; ``enable.auto.commit`` must be off (the default
            here) and ``isolation.level`` read_committed. The loop closes a consumer that it made.
        producer: properties of ``confluent_kafka.Producer`` with a ``transactional.id`` that no other running process
            has, or a Producer before init_transactions().
        topics: names and patterns, as of ``Consumer.subscribe``.
        max_records: most records of a transaction.
        max_wait: seconds to collect records for a transaction.
        max_time: seconds after which no further record begins. Keep it and the time of one record below
            ``transaction.timeout.ms`` and ``max.poll.interval.ms``.
        timeout: limit in seconds of each step with brokers, repetitions included.
        max_aborts: run() raises after so many aborted transactions in a row.
        on_assign, on_revoke, on_lost: as of ``Consumer.subscribe``. No transaction is open when they run.

    Raises:
        ConfigurationError: a property contradicts exactly once.
        ImportError: confluent_kafka is not installed.
    """

    def __init__(
        self,
        consumer: Mapping[str, Any] | Consumer,
        producer: Mapping[str, Any] | confluent_kafka.Producer,
        topics: list[str],
        *,
        max_records: int = 500,
        max_wait: float = 0.1,
        max_time: float = 10.0,
        timeout: float = 60.0,
        max_aborts: int = 10,
        on_assign: Callable[[Consumer, list[TopicPartition]], object] | None = None,
        on_revoke: Callable[[Consumer, list[TopicPartition]], object] | None = None,
        on_lost: Callable[[Consumer, list[TopicPartition]], object] | None = None,
    ) -> None:
        self.producer = _producer(producer)
        self._owned = not isinstance(consumer, Consumer)
        self.consumer = consumer if isinstance(consumer, Consumer) else Consumer(
            {"enable.auto.commit": False, **consumer})
        self._topics, self._max_records, self._max_wait = topics, max_records, max_wait
        self._max_time, self._timeout, self._max_aborts = max_time, timeout, max_aborts
        self._callbacks = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost or on_revoke}
        self._clock: Callable[[], float] = time.monotonic
        self._stopping = False
        self._lost = 0  # counts losses of partitions
        self._failure: BaseException | None = None
        try:
            _check(self.consumer)
        except BaseException:
            self._close()
            raise

    def __enter__(self: Self) -> Self:
        try:
            self._repeat(self.producer.init_transactions)
            # All three are needed, also if they do nothing: see the second event above.
            self.consumer.subscribe(self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke,
                                    on_lost=self._on_lost)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._close()

    def run(self, handle: Callable[[Message, Transaction], object], *, signals: Iterable[int] = ()) -> None:
        """Handle records in transactions until stop() is called.

        An exception of `handle` aborts the transaction, rewinds the positions, and is raised. A second run() reads
        these records again: to go on after a bad record, catch its exception in `handle`. Transactions that the
        brokers refuse are repeated.

        Args:
            handle: called with each record and its Transaction, whose produce() it may call. It runs again for a record
                whose transaction was aborted.
            signals: signals that call stop(), such as ``signal.SIGTERM``; from the main thread only.

        Raises:
            KafkaException: the producer or the consumer is fenced or has a fatal error; the end of a transaction is
                unknown (_TIMED_OUT); `max_aborts` is reached (TransactionAbortedError).
        """
        aborts = 0
        with _stopped_by(signals, self.stop):
            try:
                while not self._stopping:
                    try:
                        self._run_one(handle)
                        aborts = 0
                    except TransactionAbortedError as error:
                        aborts += 1
                        self._log(f"transaction {aborts} in a row was aborted, its records are read again: {error}")
                        if aborts >= self._max_aborts:
                            raise
                        self._pause(min(_PAUSE_S * 2 ** aborts, _LONGEST_PAUSE_S))
            finally:
                self._stopping = False

    def stop(self) -> None:
        """End run() after the record in work, whose transaction is committed. Thread-safe."""
        self._stopping = True

    def transaction(self) -> Transaction:
        """Return the next transaction, a context manager: run() with your own loop around it.

        Entering the block receives records and begins. At its end the offsets of the records that the iteration
        returned are sent, and the transaction is committed. Without records nothing is begun. An exception aborts,
        rewinds, and leaves the block.

        Raises:
            TransactionAbortedError: brokers refused the transaction; the next one has its records again.
            KafkaException: as run().
            IllegalStateError: an earlier transaction ended in an error after which the loop cannot go on.
        """
        return Transaction(self)

    def _run_one(self, handle: Callable[[Message, Transaction], object]) -> None:
        with self.transaction() as transaction:
            for message in transaction:
                handle(message, transaction)

    # ---- the consumer's side

    def _receive(self) -> list[Message]:
        received = self.consumer.consume(self._max_records, self._max_wait)
        records = [message for message in received if message.error() is None]
        for message in received:
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                continue
            if error.fatal() or not (error.retriable() or error.code() == KafkaError._MAX_POLL_EXCEEDED):
                _rewind(self.consumer, records)
                raise exception_from(error)
            self._log(error.str())  # after _MAX_POLL_EXCEEDED the consumer joins its group again
        return records

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> object:
        return self._call("on_assign", consumer, partitions)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> object:
        self._lost += 1
        return self._call("on_revoke", consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> object:
        self._lost += 1
        return self._call("on_lost", consumer, partitions)

    def _call(self, name: str, consumer: Consumer, partitions: list[TopicPartition]) -> object:
        callback = self._callbacks[name]
        return None if callback is None else callback(consumer, partitions)

    # ---- the producer's side

    def _repeat(self, call: Callable[..., object], *arguments: object) -> None:
        """Call the producer with a time limit as last argument, and again after a retriable error until the limit."""
        deadline = self._clock() + self._timeout
        while True:
            try:
                call(*arguments, max(deadline - self._clock(), _PAUSE_S))
                return
            except _theirs() as error:
                if _fatal(error) or _abortable(error) or not _retriable(error) or self._clock() >= deadline:
                    raise
            self.producer.poll(_PAUSE_S)

    def _pause(self, seconds: float) -> None:
        until = self._clock() + seconds
        while not self._stopping and self._clock() < until:
            self.producer.poll(_PAUSE_S)

    # ---- the end

    def _fail(self, error: BaseException) -> None:
        self._failure = error

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise exception_for(KafkaError._STATE, f"the loop has ended: {self._failure}: start another ExactlyOnce"
                                ) from self._failure

    def _close(self) -> None:
        if self._owned:
            self.consumer.close()

    def _log(self, text: str) -> None:
        self.consumer._settings.logger.log(logging.WARNING, "%s", text)


def _firsts(records: list[Message]) -> dict[tuple[str, int], int]:
    """Return the first offset of each partition in the records."""
    found: dict[tuple[str, int], int] = {}
    for message in records:
        found.setdefault((message.topic(), message.partition()), message.offset())  # type: ignore[arg-type]  # of records
    return found


def _rewind(consumer: Consumer, records: list[Message]) -> None:
    """Read these records again, those of lost partitions excepted."""
    for (topic, partition), offset in _firsts(records).items():
        with contextlib.suppress(KafkaException):  # it is not assigned any more: its next owner reads them
            consumer.seek(TopicPartition(topic, partition, offset))


def _check(consumer: Consumer) -> None:
    settings = consumer._settings
    if settings.group_id is None:
        raise configuration_error("exactly once needs a group.id")
    if settings.enable_auto_commit:
        raise configuration_error("enable.auto.commit=true would commit offsets outside the transactions: "
                                  "set it to false")
    if settings.isolation_level != "read_committed":
        raise configuration_error(f"isolation.level={settings.isolation_level} would read offsets of open "
                                  "transactions: set it to read_committed")
    consumer.consumer_group_metadata()  # refuses ids that no transaction can have


def _producer(producer: Any) -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise ImportError("kconsumer.transactions needs a producer: pip install 'kconsumer[transactions]'") from error
    if not isinstance(producer, Mapping):
        return producer
    if not producer.get("transactional.id"):
        raise configuration_error("exactly once needs a transactional.id of the producer, which no other running "
                                  "process has")
    return confluent_kafka.Producer(dict(producer))


def _theirs() -> Any:
    import confluent_kafka

    return confluent_kafka.KafkaException


def _fatal(error: Any) -> bool:
    return bool(error.args[0].fatal())


def _abortable(error: Any) -> bool:
    return bool(error.args[0].txn_requires_abort())


def _retriable(error: Any) -> bool:
    return bool(error.args[0].retriable())


def _aborted(error: BaseException) -> TransactionAbortedError:
    cause = error.args[0] if isinstance(error, _theirs()) else error_for(KafkaError._QUEUE_FULL)
    return TransactionAbortedError(KafkaError(cause.code(), cause.str(), txn_requires_abort=True))


@contextlib.contextmanager
def _stopped_by(signals: Iterable[int], stop: Callable[[], None]) -> Iterator[None]:
    """Let signals call `stop`; give them their former handlers back afterwards."""
    before: dict[int, Any] = {}
    try:
        for number in signals:
            before[number] = signal.signal(number, lambda *_: stop())
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
