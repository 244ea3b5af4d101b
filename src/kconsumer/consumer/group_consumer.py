"""A consumer's group: subscription with callbacks, stored offsets, commits; compatible with confluent_kafka.

Owns: GroupConsumer, the part of Consumer that needs a ``group.id``. Threads: the application thread;
rebalance callbacks run only inside poll, consume, consume_batch, close and unsubscribe. Never: waits for a rebalance.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from kconsumer._core.consumer.consumer import GroupCore, Message
from kconsumer.consumer import at_exit
from kconsumer.data.call import OF_CALLBACKS, Call, awaited
from kconsumer.data.topic_partition import OFFSET_INVALID, TopicPartition, check_text, coerce_list
from kconsumer.errors import KafkaError, KafkaException, error_for, exception_for
from kconsumer.groups.patterns import re2_objection

if TYPE_CHECKING:
    from kconsumer.config import Settings
    from kconsumer.groups.assignors import Assignor

__all__ = ["GroupConsumer"]

Rebalanced = Callable[[Any, list[TopicPartition]], Any]

# Brokers do not distinguish null and empty metadata. confluent_kafka sends the NUL that ends its C string, so an empty
# text is one character for the broker. Readers stop at the first NUL, for commits of any client.
_EMPTY_METADATA = "\0"
# librdkafka's serialized rd_kafka_consumer_group_metadata_t, which transactional producers read.
_GROUP_METADATA_MAGIC = b"CGMDv2:"


class GroupConsumer(GroupCore):
    """The part of Consumer for consumer groups."""

    _settings: Settings
    _on_assign: Rebalanced | None = None
    _on_revoke: Rebalanced | None = None
    _on_lost: Rebalanced | None = None
    _topics: Sequence[str] = ()
    _reassigned = False  # whether the running callback changed the assignment itself
    _committed_last: tuple[str, int] | None = None  # a partition of the latest commit that named some
    _watched = False  # at_exit knows this consumer

    # ---- subscription

    def subscribe(
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
        self._check_open()
        if isinstance(topics, (str, bytes)) or not isinstance(topics, Iterable):
            raise TypeError(f"expected a list of topic names such as ['flights'], not {topics!r}")
        topics = list(topics)
        if not all(isinstance(topic, str) for topic in topics):
            raise TypeError("expected list of unicode strings")
        for topic in topics:
            check_text("topic", topic)
        for name, callback in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} expects a callable")
        if not topics:
            raise exception_for(KafkaError._INVALID_ARG, "subscribe() needs at least one topic: call unsubscribe() to "
                                "leave the group")
        if not all(topics):
            raise exception_for(KafkaError._INVALID_ARG, "the name of a topic is empty")
        if len(set(topics)) < len(topics):
            twice = next(topic for topic in topics if topics.count(topic) > 1)
            raise exception_for(KafkaError._INVALID_ARG, f"duplicate topic {twice!r}")
        if self._settings.group_protocol == "consumer":
            self._refuse_patterns(topics)
        self._subscribe(sorted(t for t in topics if not t.startswith("^")),
                        sorted(t for t in topics if t.startswith("^")),
                        on_assign is not None, on_revoke is not None or on_lost is not None)
        self._topics = topics
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost

    @staticmethod
    def _refuse_patterns(topics: list[str]) -> None:
        for pattern in topics:
            objection = re2_objection(pattern) if pattern.startswith("^") else None
            if objection is not None:
                raise exception_for(KafkaError._INVALID_ARG, f"brokers cannot match the topic pattern {pattern!r} "
                                    f"(group.protocol=consumer): {objection}")

    def unsubscribe(self) -> None:
        """Leave the group: run on_revoke, commit (``enable.auto.commit``), unassign.

        Without a subscription it does nothing.
        """
        self._run(self._unsubscribe_call())

    def _unsubscribe_call(self) -> Call[None]:
        yield from super()._unsubscribe_call()
        self._reassigned = True  # in a callback: the consumer must not assign afterwards
        self._topics = []

    def subscription(self) -> list[str]:
        """Return the names and patterns of the latest subscribe(), in order.

        The list is empty without a subscription.
        """
        self._check_open()
        return list(self._topics)

    def _face(self) -> Any:
        """The consumer object that callbacks receive."""
        return self

    def _on_rebalance(self, kind: str, partitions: list[tuple[str, int]], eager: bool) -> Call[None]:
        """Run the callback for the core, then assign or unassign if the callback did not.

        Partitions that are "given up" have left the assignment already.
        """
        lost = self._on_lost or self._on_revoke
        callback = {"assign": self._on_assign, "revoke": self._on_revoke, "lost": lost, "given up": lost}[kind]
        self._reassigned = False
        try:
            if callback is not None:
                found = [TopicPartition(topic, partition) for topic, partition in partitions]
                yield from awaited(callback(self._face(), found))
        finally:
            if not self._reassigned and kind != "given up":
                if kind == "assign":
                    self._assign([(topic, partition, OFFSET_INVALID, -1) for topic, partition in partitions], eager)
                elif eager:
                    self._assign([], True)
                else:
                    self._unassign(partitions)

    def memberid(self) -> str | None:
        """Return the id of this member in the group, or None before it has one.

        With ``group.protocol=consumer`` the consumer creates the id before it joins (KIP-1082).
        """
        member_id: str = self._memberid()[0]
        return member_id or None

    def rebalance_protocol(self) -> str:
        """Return ``"EAGER"``, ``"COOPERATIVE"``, or ``"NONE"`` outside a group.

        ``group.protocol=consumer`` is ``"COOPERATIVE"``.
        """
        member_id, epoch = self._memberid()
        if not member_id or (epoch < 0 and self._settings.group_protocol == "consumer" and not self._is_subscribed()):
            return "NONE"
        return "COOPERATIVE" if self._cooperative() else "EAGER"

    def _cooperative(self) -> bool:
        return self._settings.group_protocol == "consumer" or self._settings.cooperative

    def consumer_group_metadata(self) -> bytes | None:
        """Return the data for a transactional producer's commit of offsets.

        Pass it to ``confluent_kafka.Producer.send_offsets_to_transaction``. It has librdkafka's serialized form. The
        result is None without a ``group.id``.

        Raises:
            KafkaException: ``group.id``, ``group.instance.id`` or the member's id has a character that the producer
                refuses (_INVALID_ARG): it accepts ASCII letters, digits, punctuation and spaces.
        """
        self._check_open()
        group = self._settings.group_id
        if group is None:
            return None
        member_id, epoch = self._memberid()
        instance = self._settings.group_instance_id
        for name, text in (("group.id", group), ("group.instance.id", instance or ""), ("member id", member_id)):
            if not (text.isascii() and text.isprintable()):
                raise exception_for(KafkaError._INVALID_ARG, f"the {name} {text!r} cannot be part of a transaction: "
                                    "librdkafka's producer accepts printable ASCII only; choose another group.id, "
                                    "group.instance.id or client.id")
        return b"".join((
            _GROUP_METADATA_MAGIC, struct.pack("=i", epoch), group.encode(), b"\0",
            member_id.encode("utf-8", "surrogateescape"), b"\0",  # the broker's id may contain any bytes
            b"\1" if instance is None else b"\0" + instance.encode() + b"\0",
        ))

    # ---- offsets

    @overload
    def commit(
        self, message: Message | list[Message] | None = None,
        offsets: Iterable[TopicPartition] | None = None, asynchronous: Literal[True] = True,
    ) -> None: ...

    @overload
    def commit(
        self, message: Message | list[Message] | None = None,
        offsets: Iterable[TopicPartition] | None = None, *,
        asynchronous: Literal[False],
    ) -> list[TopicPartition]: ...

    @overload
    def commit(
        self, message: Message | list[Message] | None, offsets: Iterable[TopicPartition] | None,
        asynchronous: Literal[False],
    ) -> list[TopicPartition]: ...

    @overload
    def commit(
        self, message: Message | list[Message] | None = None,
        offsets: Iterable[TopicPartition] | None = None, asynchronous: bool = True, **kwargs: Any,
    ) -> list[TopicPartition] | None: ...

    def commit(
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
        return self._run(self._commit_call(message, offsets, asynchronous, **kwargs))

    def _commit_call(
        self, message: Any = None, offsets: Any = None, asynchronous: bool = True, **kwargs: Any
    ) -> Call[list[TopicPartition] | None]:
        if "async" in kwargs:
            asynchronous = kwargs.pop("async")
        if kwargs:
            raise TypeError(f"commit() got an unexpected keyword argument {next(iter(kwargs))!r}")
        self._check_open()
        given = self._given(message, offsets, "commit")
        asked = self._ask_commit(given, not asynchronous, self._settings.on_commit is not None)
        if asked is not None:
            return _partitions((yield asked))
        self._watch_commits(given)
        return None

    def _watch_commits(self, given: list[Any] | None) -> None:
        """Let the end of the interpreter wait for an asynchronous commit."""
        if given:
            self._committed_last = given[-1][:2]
        elif self._committed_last is None:
            self._committed_last = next((p[:2] for p in self._assignment()), None)
        if not self._watched:
            self._watched = True
            at_exit.watch(self)

    # ---- the end of the interpreter (at_exit)

    def _ask_end_of_commits(self, limit_s: float) -> Any:
        """Return a Question that is answered when the accepted commits have ended, or None without commits.

        The coordinator answers a question about committed offsets after the commits before it.
        """
        if self._committed_last is None or not self._has_thread():
            return None
        return self._ask_committed([self._committed_last], limit_s)

    def _serve_at_exit(self) -> None:
        """Run the callbacks that wait. Their exceptions end no wait for commits."""
        try:
            self._serve()
        except OF_CALLBACKS:
            self._settings.logger.exception("a callback raised an exception at the end of the program")

    def _end_at_exit(self, asked: Any) -> None:
        """Report commits without an answer. The consumer, when it is freed, does not wait for them again."""
        try:
            if asked.done:
                asked.take()
                return
        except TimeoutError:
            pass
        self._await_no_commits()
        self._settings.logger.warning(
            "the program ended before the last commits of group %s: their records may be read again; call close() "
            "before the program ends", self._settings.group_id)

    def store_offsets(self, message: Message | list[Message] | None = None,
                      offsets: Iterable[TopicPartition] | None = None) -> None:
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
        self._check_open()
        if message is None and offsets is None:
            raise ValueError("expected either message or offsets")
        given = self._given(message, offsets, "store")
        assert given is not None
        if self._settings.enable_auto_offset_store:
            raise exception_for(KafkaError._INVALID_ARG, "StoreOffsets failed: enable.auto.offset.store must be set to "
                                "false if the application stores offsets")
        if self._store_offsets(given) == 0 and given:
            raise self._not_assigned(TopicPartition(*given[-1][:2]), "StoreOffsets failed: none of the partitions is "
                                     "assigned")

    def _not_assigned(self, p: TopicPartition, what: str) -> KafkaException:
        """Return confluent_kafka's error: its code depends on whether the topic ever had an assignment."""
        code = KafkaError._STATE if self._was_assigned(p.topic) else KafkaError._UNKNOWN_PARTITION
        return exception_for(code, what, topic=p.topic, partition=p.partition)

    def committed(self, partitions: Iterable[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
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
        return self._run(self._committed_call(partitions, timeout))

    def _committed_call(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Call[list[TopicPartition]]:
        wanted = [(p.topic, p.partition) for p in coerce_list(partitions)]
        self._check_open()
        limit = self._settings.call_timeout_s if timeout is None else timeout
        return _partitions((yield self._ask_committed(wanted, limit)))

    @staticmethod
    def _given(message: Any, offsets: Any, what: str) -> list[tuple[str, int, int, int, str | None]] | None:
        """Return the arguments of commit and store_offsets in the core's form; None without both."""
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if offsets is not None:
            return [(p.topic, p.partition, p.offset, -1 if p.leader_epoch is None else p.leader_epoch,
                     _EMPTY_METADATA if p.metadata == "" else p.metadata) for p in coerce_list(offsets)]
        if message is None:
            return None
        if isinstance(message, Message):
            error, topic = message.error(), message.topic()
            partition, offset, epoch = message.partition(), message.offset(), message.leader_epoch()
            if error is not None or topic is None:
                raise exception_for(KafkaError._INVALID_ARG, f"Cannot {what} offsets for message with error: "
                                    f"'{error.str() if error else 'no topic'}'")
            # Without an offset there is nothing to commit: commit() reports _NO_OFFSET.
            return [(topic, -1 if partition is None else partition, OFFSET_INVALID if offset is None else offset + 1,
                     -1 if epoch is None else epoch, None)]
        if hasattr(message, "next_offsets"):
            return [(topic, partition, offset, -1, None)
                    for (topic, partition), offset in message.next_offsets.items()]
        if isinstance(message, list):
            each = [given for one in message for given in GroupConsumer._given(one, None, what) or ()]
            last = {given[:2]: given for given in sorted(each, key=lambda given: given[2])}
            return list(last.values())
        raise TypeError(f"expected Message, list of messages or RecordBatch, not {type(message).__name__}")

    # ---- callbacks of the core

    def _assign_group(self, name: str, members: list[Any], topics: list[Any]) -> Call[list[Any]]:
        """Run the application's assignor: this member leads the group, which chose that assignor."""
        from kconsumer.groups.assignors import assign_group

        return assign_group(self._own_assignor(name), members, topics, self._settings.cooperative)

    def _assignors_user_data(self, topics: list[str]) -> Call[list[Any]]:
        from kconsumer.groups.assignors import user_data_of

        return user_data_of(self._settings.own_assignors, topics)

    def _on_assignment(self, name: str, partitions: list[Any], user_data: bytes | None, generation: int) -> Call[None]:
        from kconsumer.groups.assignors import pass_assignment

        return pass_assignment(self._own_assignor(name), partitions, user_data, generation)

    def _own_assignor(self, name: str) -> Assignor:
        return next(assignor for assignor in self._settings.own_assignors if assignor.name == name)

    def _on_commit(self, code: int, detail: str, offsets: list[Any]) -> Any:
        if self._settings.on_commit is None:
            return None
        return self._settings.on_commit(error_for(code, detail) if code else None, _partitions(offsets))


def _partitions(found: Iterable[tuple[str, int, int, int, str, int]]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, partition, offset, metadata=metadata.partition("\0")[0] if metadata else None,
                       leader_epoch=epoch if epoch >= 0 else None, error=error_for(error) if error else None)
        for topic, partition, offset, epoch, metadata, error in found
    ]
