"""The methods of AIOConsumer that are Consumer's with `await`. Made by tools/generate_aio.py: do not edit.

Owns: their signatures and docstrings, which are Consumer's. Threads: the loop's. Never: does anything itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from kconsumer.aio.calls import LoopCalls
from kconsumer.consumer.group_consumer import Rebalanced
from kconsumer.data.cluster_metadata import ClusterMetadata
from kconsumer.data.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import Message
    from kconsumer.telemetry.metrics import Metrics

__all__ = ["Methods"]


class Methods(LoopCalls):
    """AIOConsumer's methods that are Consumer's with `await`."""

    async def subscribe(
        self,
        topics: Iterable[str],
        on_assign: Rebalanced | None = None,
        on_revoke: Rebalanced | None = None,
        on_lost: Rebalanced | None = None,
    ) -> None:
        """Join the group and read its assigned partitions.

        Replaces an earlier subscription.

        Args:
            topics: at least one name, or patterns that begin with ``^``. Under ``group.protocol=classic`` these are
                POSIX extended regular expressions that match anywhere after the ``^``. Under ``consumer`` they are RE2:
                the broker matches them against whole names (``^logs.*``, not ``^logs``).
            on_assign: called with (consumer, list of TopicPartition) for new partitions. If it does not call assign()
                or incremental_assign(), the consumer does.
            on_revoke: called in the same way before partitions are revoked. If the callback does not unassign them, the
                consumer does.
            on_lost: called in the same way after the member was fenced and lost its partitions. Default: on_revoke.

        The callbacks run inside poll, consume, consume_batch, close and unsubscribe.

        Raises:
            TypeError: topics is not an iterable of str, or a callback is not callable.
            ValueError: a topic has a NUL character or more than 32,767 bytes.
            KafkaException: no ``group.id`` (_STATE); no topic, an empty or duplicate name, or an invalid pattern
                (_INVALID_ARG).
        """
        self._enter()
        self._inner.subscribe(topics, on_assign, on_revoke, on_lost)

    async def subscription(self) -> list[str]:
        """Return the names and patterns of the latest subscribe(), in order.

        The list is empty without a subscription.
        """
        self._enter()
        return self._inner.subscription()

    async def memberid(self) -> str | None:
        """Return the id of this member in the group, or None before it has one.

        With ``group.protocol=consumer`` the consumer creates the id before it joins (KIP-1082).
        """
        self._enter()
        return self._inner.memberid()

    async def rebalance_protocol(self) -> str:
        """Return ``"EAGER"``, ``"COOPERATIVE"``, or ``"NONE"`` outside a group.

        ``group.protocol=consumer`` is ``"COOPERATIVE"``.
        """
        self._enter()
        return self._inner.rebalance_protocol()

    async def consumer_group_metadata(self) -> bytes | None:
        """Return the data for a transactional producer's commit of offsets.

        Pass it to ``confluent_kafka.Producer.send_offsets_to_transaction``. It has librdkafka's serialized form. The
        result is None without a ``group.id``.

        Raises:
            KafkaException: ``group.id``, ``group.instance.id`` or the member's id has a character that the producer
                refuses (_INVALID_ARG): it accepts ASCII letters, digits, punctuation and spaces.
        """
        self._enter()
        return self._inner.consumer_group_metadata()

    async def store_offsets(
        self, message: Message | list[Message] | None=None, offsets: Iterable[TopicPartition] | None=None
    ) -> None:
        """Store offsets for the next automatic commit, or commit() without arguments.

        Args:
            message: store the offset after this Message, or after the last records of this RecordBatch or list of
                messages.
            offsets: store these.

        Raises:
            KafkaException: ``enable.auto.offset.store`` is on (_INVALID_ARG); none of the partitions is assigned
                (_UNKNOWN_PARTITION if no partition of the topic ever was, else _STATE).
            ValueError: both arguments, or neither.
        """
        self._enter()
        self._inner.store_offsets(message, offsets)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
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
        self._enter()
        self._inner.assign(partitions)

    async def unassign(self) -> None:
        """Remove all partitions from the assignment; the subscription stays. Raises as assign()."""
        self._enter()
        self._inner.unassign()

    async def incremental_assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the assignment.

        Raises:
            KafkaException: a partition is already assigned (_CONFLICT), or the group rebalances eagerly (_STATE). The
                assignment does not change.
        """
        self._enter()
        self._inner.incremental_assign(partitions)

    async def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions from the assignment.

        Raises:
            KafkaException: a partition is not assigned (_INVALID_ARG), or the group rebalances eagerly (_STATE). The
                assignment does not change.
        """
        self._enter()
        self._inner.incremental_unassign(partitions)

    async def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions with their offsets, in the order of assignment."""
        self._enter()
        return self._inner.assignment()

    async def seek(self, partition: TopicPartition) -> None:
        """Continue at ``partition.offset``: absolute, OFFSET_BEGINNING, _END or _TAIL.

        Buffered records of the partition are dropped.

        Raises:
            KafkaException: the partition is not assigned (_UNKNOWN_PARTITION if no partition of its topic ever was,
                else _STATE); the consumer has no ``bootstrap.servers`` (_STATE); OFFSET_STORED, or a negative offset
                that is no ``OFFSET_`` constant (_INVALID_ARG).
        """
        self._enter()
        self._inner.seek(partition)

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None=None) -> None:
        """Continue at the first record of the partitions (None: all assigned).

        Raises as seek().
        """
        self._enter()
        self._inner.seek_to_beginning(partitions)

    async def seek_to_end(self, partitions: Iterable[TopicPartition] | None=None) -> None:
        """Continue after the last record of the partitions (None: all assigned).

        Raises as seek().
        """
        self._enter()
        self._inner.seek_to_end(partitions)

    async def position(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the offset after the last returned record, per partition.

        The result is OFFSET_INVALID for an unassigned partition, or without a returned record since its assignment or a
        seek.
        """
        self._enter()
        return self._inner.position(partitions)

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of the partitions until resume(). Buffered records are kept.

        As in confluent_kafka, partitions that are not assigned are ignored.
        """
        self._enter()
        self._inner.pause(partitions)

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """End the pause. Partitions that are not assigned are ignored."""
        self._enter()
        self._inner.resume(partitions)

    async def paused(self) -> list[TopicPartition]:
        """Return the paused partitions, in the order of assignment()."""
        self._enter()
        return self._inner.paused()

    async def set_config(self, changes: Mapping[str, Any]) -> None:
        """Change properties of the running consumer.

        Supported: ``fetch.*``, ``max.partition.fetch.bytes`` and ``fetch.buffer.memory``.

        Raises:
            ConfigurationError: a property cannot be changed on a running consumer, or its value is invalid.
        """
        self._enter()
        self._inner.set_config(changes)

    async def metrics(self) -> Metrics:
        """Return counters and gauges by name: see ``kconsumer.metrics.METRICS``.

        Thread-safe; sends no request. Names that end in ``_total`` only grow.
        """
        self._enter()
        return self._inner.metrics()

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace ``sasl.username`` and ``sasl.password`` (PLAIN, SCRAM).

        Open connections stay open. New connections and re-authentication use the new values. Thread-safe.

        Raises:
            KafkaException: the consumer does not use PLAIN or SCRAM (_STATE), or an argument is unusable
                (_INVALID_ARG).
            TypeError: an argument is not a str.
        """
        self._enter()
        self._inner.set_sasl_credentials(username, password)

    async def set_oauth_token(
        self, token: str, lifetime_ms: int, principal: str='', extensions: Mapping[str, str] | None=None
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
        self._enter()
        self._inner.set_oauth_token(token, lifetime_ms, principal, extensions)

    async def wakeup(self) -> None:
        """Make the waiting call, or else the next one, raise WakeupError. Thread-safe."""
        self._enter()
        self._inner.wakeup()

    @overload
    async def commit(
        self,
        message: Message | list[Message] | None = None,
        offsets: Iterable[TopicPartition] | None = None,
        asynchronous: Literal[True] = True,
    ) -> None: ...

    @overload
    async def commit(
        self,
        message: Message | list[Message] | None = None,
        offsets: Iterable[TopicPartition] | None = None,
        *,
        asynchronous: Literal[False],
    ) -> list[TopicPartition]: ...

    @overload
    async def commit(
        self,
        message: Message | list[Message] | None,
        offsets: Iterable[TopicPartition] | None,
        asynchronous: Literal[False],
    ) -> list[TopicPartition]: ...

    @overload
    async def commit(
        self,
        message: Message | list[Message] | None = None,
        offsets: Iterable[TopicPartition] | None = None,
        asynchronous: bool = True,
        **kwargs: Any,
    ) -> list[TopicPartition] | None: ...

    async def commit(
        self,
        message: Message | list[Message] | None = None,
        offsets: Iterable[TopicPartition] | None = None,
        asynchronous: bool = True,
        **kwargs: Any,
    ) -> list[TopicPartition] | None:
        """Commit offsets to the group.

        Args:
            message: commit the offset after this Message, or after the last records of this RecordBatch or list of
                messages.
            offsets: commit these (``offset`` is the next one to read; ``metadata`` is stored with it). Without
                `message` and `offsets`: the stored offsets.
            asynchronous: True: return at once; ``on_commit`` gets the result. False: wait for the result.

        Returns:
            None if asynchronous, else the list of TopicPartition, each with its ``error``. Without `message` and
            `offsets` it has each assigned partition; ``offset`` is OFFSET_INVALID for those without a new offset.

        Raises:
            KafkaException: the commit failed; there were no offsets to commit (_NO_OFFSET).
            ValueError: both message and offsets.
            TypeError: message is neither a Message, a list of them nor a RecordBatch.
        """
        return await self._call(self._inner._commit_call(message, offsets, asynchronous, **kwargs))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None=None
    ) -> list[TopicPartition]:
        """Return the committed offsets of the group.

        Args:
            partitions: the partitions.
            timeout: seconds; None: ``default.api.timeout.ms`` if set, else no limit; negative: no limit.

        Returns:
            list of TopicPartition: ``offset`` (OFFSET_INVALID without a commit), ``metadata`` (None if the commit has
            none), ``leader_epoch``, ``error``.

        Raises:
            KafkaException: the coordinator's error, _TIMED_OUT.
        """
        return await self._call(self._inner._committed_call(partitions, timeout))

    @overload
    async def lag(self, partitions: TopicPartition, timeout: float | None=None) -> int | None: ...

    @overload
    async def lag(
        self, partitions: Iterable[TopicPartition] | None=None, timeout: float | None=None
    ) -> dict[tuple[str, int], int | None]: ...

    async def lag(
        self, partitions: TopicPartition | Iterable[TopicPartition] | None=None, timeout: float | None=None
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
        return await self._call(self._inner._lag_call(partitions, timeout))

    async def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None=None, cached: bool=False
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
        return await self._call(self._inner._get_watermark_offsets_call(partition, timeout, cached))

    async def offsets_for_times(
        self, partitions: Iterable[TopicPartition], timeout: float | None=None
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
        return await self._call(self._inner._offsets_for_times_call(partitions, timeout))

    async def list_topics(self, topic: str | None=None, timeout: float | None=None) -> ClusterMetadata:
        """Return the brokers and topics of the cluster.

        Args:
            topic: only this topic; None: all topics.
            timeout: seconds; None: ``default.api.timeout.ms`` if set, else no limit; negative: no limit.

        Raises:
            KafkaException: _TIMED_OUT and the like.
        """
        return await self._call(self._inner._list_topics_call(topic, timeout))

    async def cluster_id(self, timeout: float | None=None) -> str | None:
        """Return the cluster's id, or None if the broker is too old.

        Timeout as in list_topics().
        """
        return await self._call(self._inner._cluster_id_call(timeout))
