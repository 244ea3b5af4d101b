"""The methods of AIOConsumer that are Consumer's with `await`. Made by tools/generate_aio.py: do not edit.

Owns: their signatures and docstrings, which are Consumer's. Threads: the loop's. Never: does anything itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from kconsumer.aio.calls import LoopCalls
from kconsumer.consumer.group_consumer import Rebalanced
from kconsumer.data.cluster_metadata import ClusterMetadata
from kconsumer.data.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kconsumer._core.consumer.message import Message
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
        """Join the group and read what it assigns of the topics. Replaces an earlier subscription.

        Args:
            topics: at least one name, or patterns that begin with ``^``: POSIX extended regular expressions under
                ``group.protocol=classic``, found anywhere after the ``^``; RE2 under ``consumer``, matched by the
                broker against whole names (``^logs.*``, not ``^logs``).
            on_assign: called with (consumer, list of TopicPartition) when partitions are given; where it does not call
                assign() or incremental_assign(), that is done for it.
            on_revoke: called so before partitions go; what it does not unassign is unassigned after it.
            on_lost: called so when partitions are gone already, the member having been fenced; on_revoke if not given.

        The callbacks run inside poll, consume, consume_batch, close and unsubscribe.

        Raises:
            TypeError: not an iterable of str, or a callback that cannot be called.
            KafkaException: no ``group.id`` (_STATE); no topic, an empty name, a name that is given twice, or a pattern
                that cannot be read (_INVALID_ARG).
        """
        self._enter()
        self._inner.subscribe(topics, on_assign, on_revoke, on_lost)

    async def subscription(self) -> list[str]:
        """The names and patterns of the latest subscribe(), in its order; empty where there is no subscription."""
        self._enter()
        return self._inner.subscription()

    async def memberid(self) -> str | None:
        """The member's id in the group, as the coordinator knows it; None while there is none. Under
        ``group.protocol=consumer`` the consumer makes it itself, before it joins (KIP-1082)."""
        self._enter()
        return self._inner.memberid()

    async def rebalance_protocol(self) -> str:
        """``"EAGER"``, ``"COOPERATIVE"`` (so under ``group.protocol=consumer``), or ``"NONE"`` outside a group."""
        self._enter()
        return self._inner.rebalance_protocol()

    async def consumer_group_metadata(self) -> bytes | None:
        """What a transactional producer needs to commit this consumer's offsets
        (``confluent_kafka.Producer.send_offsets_to_transaction``): librdkafka's serialized form. None without a
        ``group.id``."""
        self._enter()
        return self._inner.consumer_group_metadata()

    async def store_offsets(
        self, message: Message | None=None, offsets: Iterable[TopicPartition] | None=None
    ) -> None:
        """Store offsets to be committed by the next commit() without arguments or automatic commit.

        Args:
            message: the offset after it; or a RecordBatch.
            offsets: these.

        Raises:
            KafkaException: ``enable.auto.offset.store`` is on (_INVALID_ARG); none of the partitions is assigned
                (_UNKNOWN_PARTITION where no partition of the topic ever was, else _STATE).
            ValueError: both or none of the arguments.
        """
        self._enter()
        self._inner.store_offsets(message, offsets)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; each partition starts at its ``offset`` (absolute or OFFSET_*), or where none is
        given at the group's committed offset, and where there is none as ``auto.offset.reset`` says. What stands to be
        committed of the partitions that go is committed (``enable.auto.commit``).

        Raises:
            KafkaException: a partition is named twice (_INVALID_ARG); the group rebalances cooperatively (_STATE).
            RuntimeError: the consumer is closed.
            TypeError: not an iterable of TopicPartition.
        """
        self._enter()
        self._inner.assign(partitions)

    async def unassign(self) -> None:
        """Drop the whole assignment. Raises as assign()."""
        self._enter()
        self._inner.unassign()

    async def incremental_assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the assignment.

        Raises:
            KafkaException: one is assigned already (_CONFLICT), the group rebalances eagerly (_STATE); nothing is
                changed then.
        """
        self._enter()
        self._inner.incremental_assign(partitions)

    async def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions from the assignment.

        Raises:
            KafkaException: one is not assigned (_INVALID_ARG), the group rebalances eagerly (_STATE); nothing is
                changed then.
        """
        self._enter()
        self._inner.incremental_unassign(partitions)

    async def assignment(self) -> list[TopicPartition]:
        """The assigned partitions in the order they were given, each with the offset that was given with it."""
        self._enter()
        return self._inner.assignment()

    async def seek(self, partition: TopicPartition) -> None:
        """Go on at ``partition.offset`` (absolute or OFFSET_BEGINNING, OFFSET_END, OFFSET_TAIL).

        What is buffered of the partition is dropped.

        Raises:
            KafkaException: the partition is not assigned (_UNKNOWN_PARTITION where no partition of its topic ever was,
                else _STATE); the consumer has no ``bootstrap.servers`` (_STATE); OFFSET_STORED (_INVALID_ARG).
        """
        self._enter()
        self._inner.seek(partition)

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None=None) -> None:
        """Go on at the first record of the partitions (None: of all assigned). Raises as seek()."""
        self._enter()
        self._inner.seek_to_beginning(partitions)

    async def seek_to_end(self, partitions: Iterable[TopicPartition] | None=None) -> None:
        """Go on behind the last record of the partitions (None: of all assigned). Raises as seek()."""
        self._enter()
        self._inner.seek_to_end(partitions)

    async def position(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The offset after the last record returned, per partition; OFFSET_INVALID where none was since the assignment
        or a seek, and where the partition is not assigned."""
        self._enter()
        return self._inner.position(partitions)

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of the partitions until resume(); what is buffered is kept. As in confluent_kafka, one
        that is not assigned (any more) is passed over."""
        self._enter()
        self._inner.pause(partitions)

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """End the pause; what is not assigned is passed over."""
        self._enter()
        self._inner.resume(partitions)

    async def paused(self) -> list[TopicPartition]:
        """The assigned partitions that are paused, in the order of assignment()."""
        self._enter()
        return self._inner.paused()

    async def set_config(self, changes: Mapping[str, Any]) -> None:
        """Change properties of the running fetcher: ``fetch.*``, ``max.partition.fetch.bytes``,
        ``fetch.buffer.memory``.

        Raises:
            ConfigurationError: a property cannot be changed while running, or its value is refused.
        """
        self._enter()
        self._inner.set_config(changes)

    async def metrics(self) -> Metrics:
        """Counters and gauges by name, with units and sources in docs/metrics.md and ``kconsumer.metrics.METRICS``.

        From any thread, without asking the network thread or a broker. Names that end in ``_total`` only grow.
        """
        self._enter()
        return self._inner.metrics()

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace ``sasl.username`` and ``sasl.password`` (PLAIN, SCRAM). Connections that stand are kept; the next
        ones, and those that authenticate anew, use these. From any thread.

        Raises:
            KafkaException: the consumer does not use PLAIN or SCRAM (_STATE), or one of them cannot be used
                (_INVALID_ARG).
            TypeError: not strings.
        """
        self._enter()
        self._inner.set_sasl_credentials(username, password)

    async def set_oauth_token(
        self, token: str, lifetime_ms: int, principal: str='', extensions: Mapping[str, str] | None=None
    ) -> None:
        """Set the OAUTHBEARER token that the next connections, and those that authenticate anew, use. From any thread.

        Args:
            token: the token.
            lifetime_ms: when it expires, in milliseconds since the epoch.
            principal: ignored: the broker takes it from the token.
            extensions: SASL extensions (KIP-342).

        Raises:
            KafkaException: the consumer does not use OAUTHBEARER (_STATE); the token has expired, or cannot be sent
                (_INVALID_ARG).
            TypeError: an argument of another type.
        """
        self._enter()
        self._inner.set_oauth_token(token, lifetime_ms, principal, extensions)

    async def wakeup(self) -> None:
        """Make the exclusive call that waits, or else the next one, raise WakeupError. From any thread."""
        self._enter()
        self._inner.wakeup()

    async def commit(
        self,
        message: Message | None = None,
        offsets: Iterable[TopicPartition] | None = None,
        asynchronous: bool = True,
        **kwargs: Any,
    ) -> list[TopicPartition] | None:
        """Commit offsets to the group.

        Args:
            message: commits the offset after it; or a RecordBatch: those after its last records.
            offsets: commits these (``offset`` is the next one to be read; ``metadata`` goes with it).
                With neither: what is stored (store_offsets), or was returned (``enable.auto.offset.store``).
            asynchronous: True: return at once; the ``on_commit`` callback tells the outcome. False: wait for it.

        Returns:
            None, or (not asynchronous) the list of TopicPartition with the ``error`` of each.

        Raises:
            KafkaException: the commit failed; nothing stood to be committed (_NO_OFFSET).
            ValueError: both message and offsets.
            TypeError: message is neither a Message nor a RecordBatch.
        """
        return await self._call(self._inner._commit_call(message, offsets, asynchronous, **kwargs))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None=None
    ) -> list[TopicPartition]:
        """The group's committed offsets.

        Args:
            partitions: of which.
            timeout: seconds; None: ``default.api.timeout.ms`` if it is set, else no bound; negative: no bound.

        Returns:
            list of TopicPartition: ``offset`` (OFFSET_INVALID where none is committed), ``metadata`` (None where none
            was given), ``leader_epoch``, ``error``.

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
        """Records between the position (where none was returned yet: where reading starts) and the end of the log;
        with ``isolation.level=read_committed`` the end is the last stable offset.

        Where a fetch has just told the end, nobody is asked: so it is while the partition is being read. Of the others
        (paused, its broker gone, the buffer full for a while) the brokers are asked, in one request each.

        Args:
            partitions: one TopicPartition, several, or None: all that are assigned.
            timeout: seconds to wait for brokers; None: ``default.api.timeout.ms`` if it is set, else no bound; 0: none
                is asked.

        Returns:
            int, or of several a dict of (topic, partition) → int; what brokers do not tell in time is as the latest
            fetch told. None where that is not known, no position is yet, or the partition is not assigned.
        """
        return await self._call(self._inner._lag_call(partitions, timeout))

    async def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None=None, cached: bool=False
    ) -> tuple[int, int]:
        """The first offset of the partition and the one after its last; with ``isolation.level=read_committed`` the
        last stable one, which transactions that are still open hold back.

        Args:
            timeout: seconds; None: ``default.api.timeout.ms`` if it is set, else no bound.
            cached: as the last fetch told, without asking; OFFSET_INVALID for what is not known.

        Returns:
            (low, high).

        Raises:
            KafkaException: the broker's error; _TIMED_OUT.
        """
        return await self._call(self._inner._get_watermark_offsets_call(partition, timeout, cached))

    async def offsets_for_times(
        self, partitions: Iterable[TopicPartition], timeout: float | None=None
    ) -> list[TopicPartition]:
        """The first offset whose timestamp is at least ``offset`` (milliseconds since the epoch), per partition.

        Special times: -1 the end (as get_watermark_offsets() has it), -2 the beginning, -3 the record of the greatest
        timestamp (KIP-734).

        Returns:
            list of TopicPartition: ``offset`` is the answer (OFFSET_END where no record is that young), ``error`` set
            where one of several failed (``offset`` is then the time asked for).

        Raises:
            KafkaException: _TIMED_OUT and the like; the error of the first where all failed; no partition is given
                (_INVALID_ARG).
        """
        return await self._call(self._inner._offsets_for_times_call(partitions, timeout))

    async def list_topics(self, topic: str | None=None, timeout: float | None=None) -> ClusterMetadata:
        """The cluster's brokers and topics.

        Args:
            topic: only this one; None: all.
            timeout: seconds; None: ``default.api.timeout.ms`` if it is set, else no bound; negative: no bound.

        Raises:
            KafkaException: _TIMED_OUT and the like.
        """
        return await self._call(self._inner._list_topics_call(topic, timeout))

    async def cluster_id(self, timeout: float | None=None) -> str | None:
        """The cluster's id: str, or None where the broker is too old to report one. Timeout as in list_topics()."""
        return await self._call(self._inner._cluster_id_call(timeout))
