"""The public consumer: confluent_kafka.Consumer's methods and callbacks on top of the core.

Owns: Consumer and DeserializingConsumer, the callbacks, the conversion of types. Threads: the application threads; see
each method. Never: reads bytes of the protocol or waits for the network itself (ConsumerCore does both).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from kconsumer import config as _config
from kconsumer._core.consumer.consumer import (
    checked_method,
    core_metrics,
    give_password,
    give_token,
    group_metrics,
    partition_facts,
    report_error,
)
from kconsumer._core.consumer.consumer import ends as _ends
from kconsumer._version import __version__
from kconsumer.consumer.deserializing import Deserializing, K, V
from kconsumer.consumer.group_consumer import GroupConsumer
from kconsumer.data.call import Call
from kconsumer.data.cluster_metadata import BrokerMetadata, ClusterMetadata, PartitionMetadata, TopicMetadata
from kconsumer.data.throttle_event import ThrottleEvent
from kconsumer.data.topic_partition import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    OFFSET_TAIL_BASE,
    TopicPartition,
    check_text,
    coerce,
    coerce_list,
)
from kconsumer.errors import KafkaError, KafkaException, TimeoutError, error_for, exception_for, topic_reason
from kconsumer.errors.printable import printable
from kconsumer.telemetry.consumers import Observation, consumers
from kconsumer.telemetry.partitions import PartitionFacts

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import Message, RecordBatch
    from kconsumer.security.tokens import TokenSource
    from kconsumer.telemetry.metrics import Metrics

__all__ = ["Consumer", "DeserializingConsumer"]

_WARNING, _ERROR = 30, 40  # of logging, which is imported with the first consumer
_LOG_LEVELS = {0: 50, 1: 50, 2: 50, 3: 40, 4: 30, 5: 20, 6: 20, 7: 10}  # syslog → logging
_EARLIEST, _LATEST = -2, -1  # ListOffsets' special timestamps
_ENDS_S = 5.0  # time limit of a request for exporters
_LOGICAL = (OFFSET_BEGINNING, OFFSET_END, OFFSET_STORED, OFFSET_INVALID)

# Without a fix by the user, no records arrive. So poll() returns these errors if there is no error_cb.
_IDENTITY = (KafkaError._AUTHENTICATION, KafkaError._SSL)
# Log lines report connection failures too, with more detail.
_LOGGED_BY_CORE = (KafkaError._TRANSPORT, KafkaError._RESOLVE, KafkaError.REBOOTSTRAP_REQUIRED)

Self = TypeVar("Self", bound="Consumer")


class Consumer(GroupConsumer):
    """A Kafka consumer.

    subscribe() reads as a member of a consumer group, assign() reads given partitions.

    Args:
        config: properties by name (see docs/configuration.md), as a mapping, as keywords, or both.

    Only one thread at a time may use ``poll``, ``consume``, ``consume_batch``, iteration, ``unsubscribe`` and
    ``close``. Every other method may be called from any thread. Callbacks (``error_cb``, ``stats_cb``,
    ``throttle_cb``, ``logger``) run inside any waiting call of this consumer. Rebalance callbacks run inside poll,
    consume, consume_batch, close and unsubscribe.

    Raises:
        ConfigurationError: a property is unknown, of the wrong type, out of range, or refused.
        TypeError: the configuration is not a mapping.
    """

    _tokens: TokenSource | None = None
    _closing = False

    def __init__(self, config: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        merged: dict[str, Any] = {}
        if config is not None or not kwargs:
            if not isinstance(config, Mapping):
                raise TypeError(f"expected configuration dict, not {type(config).__name__}")
            merged.update(config)
        merged.update({_property(name): value for name, value in kwargs.items()})
        self._settings = _config.parse(merged)
        self._tokens = _token_source(self._settings)
        self._open(self._settings, __version__)
        self._settings = self._settings.without_secrets()
        if self._tokens is not None:
            try:
                self._start_tokens(self._tokens)
            except BaseException:
                self.close(0)
                raise
        consumers.opened(self, self._settings.client_id, self._settings.group_id or "")

    def _start_tokens(self, tokens: TokenSource) -> None:
        self._run(tokens.start(self))

    # ---- records. poll() is ConsumerCore's, since a wrapper would cost time per record (see below). The others
    # are written in Python, so that mocks of this class check their arguments.

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Return up to `num_messages` records and consumer errors.

        Args:
            num_messages: 0 … 1,000,000.
            timeout: seconds to wait for more records; None or negative: until there are `num_messages`.

        Returns:
            list of Message, in order; empty at the timeout.

        Raises:
            ValueError: num_messages is out of range. Otherwise as poll(); the next call returns the records again.
        """
        return super().consume(num_messages, timeout)

    def consume_batch(self, max_records: int = 65536, timeout: float | None = None) -> RecordBatch:
        """Return records as columns.

        Args:
            max_records: maximum number of rows, > 0.
            timeout: seconds to wait for the first record; None or negative: no limit.

        Returns:
            RecordBatch, empty at the timeout. It may contain records of several partitions.

        Raises:
            KafkaException: a consumer error (except _PARTITION_EOF, which is ignored). Otherwise as poll().
        """
        return super().consume_batch(max_records, timeout)

    def wakeup(self) -> None:
        """Make the waiting call, or else the next one, raise WakeupError. Thread-safe."""
        super().wakeup()

    # ---- assignment

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; the subscription stays.

        Each partition starts at its ``offset`` (absolute or OFFSET_*). Without one it starts at the group's committed
        offset, and without that at the position that ``auto.offset.reset`` defines. With ``enable.auto.commit`` the
        offsets of the removed partitions are committed first.

        Raises:
            KafkaException: a partition is listed twice, or has a negative offset that is no ``OFFSET_`` constant
                (_INVALID_ARG); the group rebalances cooperatively (_STATE).
            RuntimeError: the consumer is closed.
            TypeError: not an iterable of TopicPartition.
        """
        wanted = coerce_list(partitions)
        self._refuse_duplicates(wanted)
        self._refuse_protocol("COOPERATIVE", "incremental_assign() and incremental_unassign()")
        if not wanted and self._is_subscribed() and not self._in_callback():
            self._settings.logger.warning("assign([]) removes all partitions until the next rebalance and keeps the "
                                          "subscription: call unsubscribe() to leave the group")
        self._replace(wanted)

    def _replace(self, wanted: list[TopicPartition]) -> None:
        self._commit_before_change()
        self._assign(self._plain(wanted), True)
        self._reassigned = True

    def unassign(self) -> None:
        """Remove all partitions from the assignment; the subscription stays. Raises as assign()."""
        self._refuse_protocol("COOPERATIVE", "incremental_assign() and incremental_unassign()")
        self._replace([])

    def incremental_assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the assignment.

        Raises:
            KafkaException: a partition is already assigned (_CONFLICT), or the group rebalances eagerly (_STATE). The
                assignment does not change.
        """
        wanted = coerce_list(partitions)
        self._refuse_duplicates(wanted)
        self._refuse_protocol("EAGER", "assign() and unassign()")
        owned = {(topic, partition) for topic, partition, _ in self._assignment()}
        for p in wanted:
            if (p.topic, p.partition) in owned:
                raise exception_for(KafkaError._CONFLICT, f"{p.topic} [{p.partition}] is already assigned",
                                    topic=p.topic, partition=p.partition)
        self._assign(self._plain(wanted), False)
        self._reassigned = True

    def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions from the assignment.

        Raises:
            KafkaException: a partition is not assigned (_INVALID_ARG), or the group rebalances eagerly (_STATE). The
                assignment does not change.
        """
        gone = coerce_list(partitions)
        self._refuse_protocol("EAGER", "assign() and unassign()")
        owned = {(topic, partition) for topic, partition, _ in self._assignment()}
        for p in gone:
            if (p.topic, p.partition) not in owned:
                raise exception_for(KafkaError._INVALID_ARG, f"{p.topic} [{p.partition}] is not assigned",
                                    topic=p.topic, partition=p.partition)
        removed = [(p.topic, p.partition) for p in gone]
        self._commit_before_change(removed)
        self._unassign(removed)
        self._reassigned = True

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions with their offsets, in the order of assignment."""
        return [TopicPartition(topic, partition, offset) for topic, partition, offset in self._assignment()]

    def _refuse_protocol(self, protocol: str, instead: str) -> None:
        if self._is_subscribed() and self.rebalance_protocol() == protocol:
            raise exception_for(KafkaError._STATE, f"the group's rebalance protocol is {protocol}: call "
                                f"{instead} instead")

    @staticmethod
    def _plain(partitions: Iterable[TopicPartition]) -> list[tuple[str, int, int, int]]:
        return [(p.topic, p.partition, p.offset, -1 if p.leader_epoch is None else p.leader_epoch) for p in partitions]

    @staticmethod
    def _refuse_duplicates(partitions: Iterable[TopicPartition]) -> None:
        seen: set[tuple[str, int]] = set()
        for p in partitions:
            _refuse_offset(p)
            if p.partition < 0:
                raise exception_for(KafkaError._INVALID_ARG, f"{p.topic} [{p.partition}]: a partition number is needed",
                                    topic=p.topic, partition=p.partition)
            if (p.topic, p.partition) in seen:
                raise exception_for(KafkaError._INVALID_ARG, f"duplicate partition {p.topic} [{p.partition}]",
                                    topic=p.topic, partition=p.partition)
            seen.add((p.topic, p.partition))

    # ---- positions

    def seek(self, partition: TopicPartition) -> None:
        """Continue at ``partition.offset``: absolute, OFFSET_BEGINNING, _END or _TAIL.

        Buffered records of the partition are dropped.

        Raises:
            KafkaException: the partition is not assigned (_UNKNOWN_PARTITION if no partition of its topic ever was,
                else _STATE); the consumer has no ``bootstrap.servers`` (_STATE); OFFSET_STORED, or a negative offset
                that is no ``OFFSET_`` constant (_INVALID_ARG).
        """
        p = coerce(partition)
        self._check_open()
        _refuse_offset(p)
        if p.offset == OFFSET_STORED:
            raise exception_for(KafkaError._INVALID_ARG, f"{p.topic} [{p.partition}]: cannot seek to OFFSET_STORED: "
                                "give an offset, OFFSET_BEGINNING or OFFSET_END", topic=p.topic, partition=p.partition)
        if not self._settings.bootstrap_servers:
            raise exception_for(KafkaError._STATE, f"Erroneous state: {p.topic} [{p.partition}] is not being fetched: "
                                "bootstrap.servers is not set", topic=p.topic, partition=p.partition)
        epoch = -1 if p.leader_epoch is None else p.leader_epoch
        if not self._seek(p.topic, p.partition, p.offset, epoch):
            raise self._not_assigned(p, f"{p.topic} [{p.partition}] is not assigned")

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue at the first record of the partitions (None: all assigned).

        Raises as seek().
        """
        self._seek_all(partitions, -2)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue after the last record of the partitions (None: all assigned).

        Raises as seek().
        """
        self._seek_all(partitions, -1)

    def _seek_all(self, partitions: Iterable[TopicPartition] | None, offset: int) -> None:
        for p in self.assignment() if partitions is None else coerce_list(partitions):
            self.seek(TopicPartition(p.topic, p.partition, offset))

    def position(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the offset after the last returned record, per partition.

        The result is OFFSET_INVALID for an unassigned partition, or without a returned record since its assignment or a
        seek.
        """
        found = []
        for p in coerce_list(partitions):
            known = self._position(p.topic, p.partition)
            if known is None:
                found.append(TopicPartition(p.topic, p.partition, OFFSET_INVALID))
            else:
                epoch = known[1] if known[1] >= 0 else None
                found.append(TopicPartition(p.topic, p.partition, known[0], leader_epoch=epoch))
        return found

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of the partitions until resume(). Buffered records are kept.

        As in confluent_kafka, partitions that are not assigned are ignored.
        """
        self._pause_all(partitions, True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """End the pause. Partitions that are not assigned are ignored."""
        self._pause_all(partitions, False)

    def paused(self) -> list[TopicPartition]:
        """Return the paused partitions, in the order of assignment()."""
        return [TopicPartition(topic, partition) for topic, partition in self._paused()]

    def _pause_all(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        for p in coerce_list(partitions):
            self._set_paused(p.topic, p.partition, paused)

    @overload
    def lag(self, partitions: TopicPartition, timeout: float | None = None) -> int | None: ...

    @overload
    def lag(
        self, partitions: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[tuple[str, int], int | None]: ...

    def lag(
        self, partitions: TopicPartition | Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> int | dict[tuple[str, int], int | None] | None:
        """Return the number of records between the position and the end of the log.

        Before the first record, the position is where reading starts. With ``isolation.level=read_committed`` the end
        is the last stable offset.

        While a partition is being read, its latest fetch reports the end, and no request is sent. For the other
        partitions (paused, without a reachable broker, or while the buffer is full) each broker gets one request.

        Args:
            partitions: one TopicPartition, several, or None: all assigned.
            timeout: seconds to wait for brokers; None: ``default.api.timeout.ms`` if set, else no limit; 0: send no
                request.

        Returns:
            int, or for several a dict of (topic, partition) → int. If brokers do not answer in time, the latest fetch
            counts. None if the end or the position is unknown, or the partition is not assigned.
        """
        return self._run(self._lag_call(partitions, timeout))

    def _lag_call(
        self, partitions: TopicPartition | Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> Call[int | dict[tuple[str, int], int | None] | None]:
        if isinstance(partitions, Iterable) or partitions is None:
            wanted = None if partitions is None else [(p.topic, p.partition) for p in coerce_list(partitions)]
            return (yield from self._lags(wanted, timeout))
        p = coerce(partitions)
        return (yield from self._lags([(p.topic, p.partition)], timeout))[p.topic, p.partition]

    def _lags(
        self, partitions: list[tuple[str, int]] | None, timeout: float | None
    ) -> Call[dict[tuple[str, int], int | None]]:
        self._check_open()
        found = {(topic, partition): (at, end, just) for topic, partition, at, end, just in _ends(self, partitions)}
        ends = {where: end for where, (at, end, just) in found.items()}
        unsure = [where for where, (at, _, just) in found.items() if at >= 0 and not just]
        if unsure and timeout != 0:
            try:
                answers = yield self._ask_offsets(
                    [(topic, partition, _LATEST) for topic, partition in unsure], self._limit(timeout))
            except TimeoutError:
                answers = []
            found_ends = zip(unsure, answers, strict=False)
            ends.update((where, offset) for where, (error, offset, *_) in found_ends if not error)
        lags: dict[tuple[str, int], int | None] = dict.fromkeys(found if partitions is None else partitions)
        for where, (at, _, _) in found.items():
            if at >= 0 and ends[where] >= 0:
                lags[where] = max(ends[where] - at, 0)
        return lags

    # ---- requests to brokers

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = None, cached: bool = False
    ) -> tuple[int, int]:
        """Return the low and high watermark of a partition.

        With ``isolation.level=read_committed`` the high one is the last stable offset, where open transactions begin.

        Args:
            timeout: seconds; None: ``default.api.timeout.ms`` if set, else no limit.
            cached: use the values of the last fetch, without a request; OFFSET_INVALID for unknown ones.

        Returns:
            (low, high).

        Raises:
            KafkaException: the broker's error; _TIMED_OUT.
        """
        return self._run(self._get_watermark_offsets_call(partition, timeout, cached))

    def _get_watermark_offsets_call(
        self, partition: TopicPartition, timeout: float | None = None, cached: bool = False
    ) -> Call[tuple[int, int]]:
        p = coerce(partition)
        self._check_open()
        if cached:
            known = self._position(p.topic, p.partition)
            return (OFFSET_INVALID, OFFSET_INVALID) if known is None else (known[2], known[3])
        limit = self._limit(timeout)
        asked = self._ask_offsets([(p.topic, p.partition, _EARLIEST), (p.topic, p.partition, _LATEST)], limit)
        low, high = yield from self._answered(asked, limit)
        for error, *_ in (low, high):
            if error:
                raise _refused(error, p, "cannot fetch the watermarks")
        return low[1], high[1]

    def offsets_for_times(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> list[TopicPartition]:
        """Return per partition the first offset with a timestamp at or after ``offset``.

        ``offset`` is in ms since the epoch.

        Special times: -1: the high watermark; -2: the low watermark; -3: the record with the latest time (KIP-734).

        Returns:
            list of TopicPartition: ``offset`` is the result (OFFSET_END if there is no such record). If one of several
            failed, its ``error`` is set and its ``offset`` is the requested time.

        Raises:
            KafkaException: _TIMED_OUT and the like; the first error if all failed; `partitions` is empty
                (_INVALID_ARG).
        """
        return self._run(self._offsets_for_times_call(partitions, timeout))

    def _offsets_for_times_call(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Call[list[TopicPartition]]:
        asked = coerce_list(partitions)
        self._check_open()
        if not asked:
            raise exception_for(KafkaError._INVALID_ARG, "offsets_for_times() needs at least one partition")
        limit = self._limit(timeout)
        question = self._ask_offsets([(p.topic, p.partition, p.offset) for p in asked], limit)
        answers = yield from self._answered(question, limit)
        if all(error for error, *_ in answers):
            raise _refused(answers[0][0], asked[0], "cannot look up its offset")
        found = []
        for p, (error, offset, _, epoch) in zip(asked, answers, strict=True):
            found.append(TopicPartition(p.topic, p.partition, p.offset if error else offset,
                                        leader_epoch=epoch if epoch >= 0 else None,
                                        error=error_for(error) if error else None))
        return found

    def list_topics(self, topic: str | None = None, timeout: float | None = None) -> ClusterMetadata:
        """Return the brokers and topics of the cluster.

        Args:
            topic: only this topic; None: all topics.
            timeout: seconds; None: ``default.api.timeout.ms`` if set, else no limit; negative: no limit.

        Raises:
            KafkaException: _TIMED_OUT and the like.
        """
        return self._run(self._list_topics_call(topic, timeout))

    def _list_topics_call(self, topic: str | None = None, timeout: float | None = None) -> Call[ClusterMetadata]:
        if topic is not None and not isinstance(topic, str):
            raise TypeError(f"topic must be str or None, not {type(topic).__name__}")
        if topic is not None:
            check_text("topic", topic)
        limit = self._limit(timeout)
        answer = yield from self._answered(self._ask_topics(topic, limit), limit)
        cluster_id, controller, origin, origin_name, brokers, topics = answer
        source = str(origin)
        if origin < -1:  # the connection to a bootstrap server, which has no id yet
            origin, origin_name, source = -1, str(self._settings.bootstrap_servers[-2 - origin]), "bootstrap"
        return ClusterMetadata(
            cluster_id=cluster_id or None,
            controller_id=controller,
            brokers={b[0]: BrokerMetadata(id=b[0], host=b[1], port=b[2]) for b in brokers},
            topics={t[0]: _topic_metadata(t) for t in topics},
            orig_broker_id=origin,
            orig_broker_name=f"{origin_name}/{source}",
        )

    def cluster_id(self, timeout: float | None = None) -> str | None:
        """Return the cluster's id, or None if the broker is too old.

        Timeout as in list_topics().
        """
        return self._run(self._cluster_id_call(timeout))

    def _cluster_id_call(self, timeout: float | None = None) -> Call[str | None]:
        limit = self._limit(timeout)
        answer = yield from self._answered(self._ask_topics(None, limit), limit)
        return answer[0] or None

    def _answered(self, question: Any, limit: float | None) -> Call[Any]:
        """Wait for the answer of brokers.

        Raises:
            KafkaException: at the time limit, with its length and the addresses of the brokers; others unchanged.
        """
        try:
            return (yield question)
        except TimeoutError as error:
            found = error.args[0]
            if limit is None or found.code() != KafkaError._TIMED_OUT:
                raise
            servers = ", ".join(map(str, self._settings.bootstrap_servers))
            raise exception_for(found.code(), f"{found.str()} (waited {limit:g} s; bootstrap.servers: {servers})"
                                ) from error

    def _limit(self, timeout: float | None) -> float | None:
        """Return the time limit of a call: its argument, or default.api.timeout.ms."""
        return self._settings.call_timeout_s if timeout is None and self._is_open() else timeout

    # ---- settings, metrics

    def set_config(self, changes: Mapping[str, Any]) -> None:
        """Change properties of the running consumer.

        Supported: ``fetch.*``, ``max.partition.fetch.bytes`` and ``fetch.buffer.memory``.

        Raises:
            ConfigurationError: a property cannot be changed on a running consumer, or its value is invalid.
        """
        self._check_open()
        self._settings = _config.parse_update(self._settings, changes)
        self._set_fetch_config(self._settings)

    def metrics(self) -> Metrics:
        """Return counters and gauges by name: see ``kconsumer.metrics.METRICS``.

        Thread-safe; sends no request. Names that end in ``_total`` only grow.
        """
        self._check_open()
        lags = self._run(self._lags(None, 0))
        return cast("Metrics", {
            **core_metrics(self), **group_metrics(self), "assigned_partitions": len(lags), "records_lag": lags,
            "records_lag_max": max((lag for lag in lags.values() if lag is not None), default=-1)})

    def _observe(self) -> Observation:
        """Return what exporters need. Sends no request, and works on a closed consumer."""
        facts = [PartitionFacts(*fact) for fact in partition_facts(self)]
        return Observation({**core_metrics(self), **group_metrics(self), "assigned_partitions": len(facts)}, facts)

    def _ask_ends(self, partitions: list[tuple[str, int]]) -> Any:
        """Ask brokers for the ends of partitions; the caller does not wait for the answer."""
        return self._ask_offsets([(topic, partition, _LATEST) for topic, partition in partitions], _ENDS_S)

    # ---- identity

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace ``sasl.username`` and ``sasl.password`` (PLAIN, SCRAM).

        Open connections stay open. New connections and re-authentication use the new values. Thread-safe.

        Raises:
            KafkaException: the consumer does not use PLAIN or SCRAM (_STATE), or an argument is unusable
                (_INVALID_ARG).
            TypeError: an argument is not a str.
        """
        self._refuse_mechanism(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), "user name and password")
        from kconsumer.config.sasl import prepared

        for what, text in (("username", username), ("password", password)):
            if not isinstance(text, str):
                raise TypeError(f"{what} must be str, not {type(text).__name__}")
            problem = prepared(self._settings.sasl_mechanism, text)
            if problem is not None:
                raise exception_for(KafkaError._INVALID_ARG, f"{what} {problem}")
        give_password(self, username, password)

    def set_oauth_token(
        self,
        token: str,
        lifetime_ms: int,
        principal: str = "",
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        """Set the OAUTHBEARER token for new connections and re-authentication.

        Thread-safe.

        Args:
            token: the token.
            lifetime_ms: its expiry, in milliseconds since the epoch.
            principal: ignored; the broker reads it from the token.
            extensions: SASL extensions (KIP-342).

        Raises:
            KafkaException: the consumer does not use OAUTHBEARER (_STATE); the token has expired or is unusable
                (_INVALID_ARG).
            TypeError: an argument has the wrong type.
        """
        self._refuse_mechanism(("OAUTHBEARER",), "a token")
        from kconsumer.security.tokens import check_token

        if isinstance(lifetime_ms, bool) or not isinstance(lifetime_ms, (int, float)):
            raise TypeError(f"lifetime_ms must be a number, not {type(lifetime_ms).__name__}")
        try:
            checked, life_ms, pairs = check_token(token, lifetime_ms / 1000, extensions)
        except ValueError as wrong:
            raise exception_for(KafkaError._INVALID_ARG, str(wrong)) from None
        give_token(self, checked, pairs, life_ms)

    def _refuse_mechanism(self, mechanisms: tuple[str, ...], what: str) -> None:
        self._check_open()
        uses = self._settings.security_protocol.startswith("sasl_")
        if not uses or self._settings.sasl_mechanism not in mechanisms:
            has = f"sasl.mechanism={self._settings.sasl_mechanism}" if uses else (
                f"security.protocol={self._settings.security_protocol}")
            raise exception_for(KafkaError._STATE, f"{what} cannot be set: this consumer has {has}")

    def close(
        self, timeout: float | None = None, membership: Literal["default", "leave", "remain"] = "default"
    ) -> None:
        """Commit, leave the group, close connections and end the network thread.

        The commit happens with ``enable.auto.commit``. A second close() does nothing.

        Args:
            timeout: time limit in seconds (float); None: 5.
            membership: what the group hears (KIP-1092). ``leave``: the member leaves now. ``remain``: it stays until
                its session times out, and the group does not rebalance before. ``default``: a static member
                (``group.instance.id``) stays, any other leaves.

        close() logs exceptions of ``error_cb``, ``stats_cb`` and ``throttle_cb``. It raises those of ``on_commit`` and
        of rebalance callbacks after the consumer is closed.
        """
        super().close(timeout, membership)

    def _closing_call(self, timeout: float | None = None, operation: int = 0) -> Call[None]:
        before = self._closing  # a callback of close() must not call close()
        self._closing = True
        try:
            yield from super()._closing_call(timeout, operation)
        finally:
            self._closing = before
            if not self._is_open():
                consumers.closed(self)
            if self._tokens is not None and not self._is_open():
                self._tokens.stop()

    # ---- callbacks of the core; they run inside calls of the application

    def _on_token_wanted(self) -> Call[None]:
        if self._tokens is not None:
            yield from self._tokens.wanted(self)

    def _on_error(self, error: KafkaError) -> Any:
        if not self._settings.bootstrap_servers and error.code() == KafkaError._ALL_BROKERS_DOWN:
            return None  # no callback: the configuration logged a warning
        if self._settings.error_cb is not None:
            return self._call("error_cb", self._settings.error_cb, error)
        if error.code() in _IDENTITY:
            report_error(self, error)
        elif error.code() not in _LOGGED_BY_CORE:
            self._settings.logger.log(_ERROR if error.fatal() else _WARNING, "%s",
                                      printable(error.str()))
        return None

    def _on_throttle(self, broker: str, broker_id: int, throttle_ms: int) -> Any:
        if self._settings.throttle_cb is None:
            return None
        event = ThrottleEvent(broker, broker_id, throttle_ms / 1000)
        return self._call("throttle_cb", self._settings.throttle_cb, event)

    def _on_stats(self, document: str) -> Any:
        return None if self._settings.stats_cb is None else self._call("stats_cb", self._settings.stats_cb, document)

    def _call(self, name: str, callback: Callable[..., Any], argument: object) -> Any:
        """Call a callback. Its result may be an awaitable."""
        try:
            return callback(argument)
        except Exception:
            if not self._closing:
                raise
            self._log_at_end(name)
        return None

    def _log_at_end(self, name: str) -> None:
        self._settings.logger.log(_ERROR, "%s raised an exception while the consumer was closing", name,
                                  exc_info=True)

    def _on_log(self, level: int, facility: str, text: str) -> None:
        self._settings.logger.log(_LOG_LEVELS.get(level, 20), "%s [%s] %s", facility, self._settings.instance_name,
                                  printable(text))

    # ---- context manager

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        """Close the consumer.

        If an exception ends the block (also GeneratorExit and KeyboardInterrupt), the records of the latest poll,
        consume or consume_batch may not have been processed. So the last commit stops before them, unless the
        application has committed them itself.
        """
        self._processed_only = exc_type is not None
        try:
            self.close()
        finally:
            self._processed_only = False

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a Consumer")


if not TYPE_CHECKING:  # for types, poll() is ConsumerCore's
    _compiled_poll = GroupConsumer.poll

    def _poll(self: Consumer, timeout: float | None = None) -> Message | None:
        return _compiled_poll(self, timeout)

    _poll.__name__, _poll.__qualname__, _poll.__doc__ = "poll", "Consumer.poll", _compiled_poll.__doc__
    Consumer.poll = checked_method(_compiled_poll, _poll)


class DeserializingConsumer(Deserializing[K, V], Consumer):  # type: ignore[misc]  # generic mixin over a C base class
    """A Consumer whose messages have deserialized keys and values.

    ``key.deserializer`` and ``value.deserializer`` make them.
    """


def _refuse_offset(p: TopicPartition) -> None:
    if p.offset < 0 and p.offset > OFFSET_TAIL_BASE and p.offset not in _LOGICAL:
        raise exception_for(KafkaError._INVALID_ARG, f"{p.topic} [{p.partition}]: {p.offset} is not an offset",
                            topic=p.topic, partition=p.partition)


def _token_source(settings: _config.Settings) -> TokenSource | None:
    if not settings.security_protocol.startswith("sasl_") or settings.sasl_mechanism != "OAUTHBEARER":
        return None
    from kconsumer.security.oauth import token_source

    return token_source(settings)


def _property(keyword: str) -> str:
    """Return the property of a keyword argument: ``group_id`` is ``group.id``.

    Callbacks and dotted names do not change.
    """
    if "." in keyword or keyword.endswith("_cb") or keyword in ("on_commit", "log_level"):
        return keyword
    return keyword.replace("_", ".")


def _refused(error: int, p: TopicPartition, what: str) -> KafkaException:
    """Return the exception of a request about one partition; unknown topics get confluent_kafka's code."""
    code = KafkaError._UNKNOWN_PARTITION if error == KafkaError.UNKNOWN_TOPIC_OR_PART else error
    return exception_for(code, f"{p.topic} [{p.partition}]: {what}: {topic_reason(error)}", topic=p.topic,
                         partition=p.partition)


def _topic_metadata(found: tuple[Any, ...]) -> TopicMetadata:
    name, error, _, partitions, _ = found
    return TopicMetadata(
        topic=name,
        error=error_for(error) if error else None,
        partitions={
            p[0]: PartitionMetadata(id=p[0], leader=p[1], replicas=p[2], isrs=p[3],
                                    error=error_for(p[4]) if p[4] else None)
            for p in partitions
        },
    )
