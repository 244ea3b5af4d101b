"""DeadLetterTopic.replay without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kconsumer import Message, TopicPartition
from kconsumer.parallel import DeadLetterTopic

HEADERS = [("kconsumer.dlq.topic", b"orders")]


class Letters:
    """A consumer of a topic with two partitions. It returns `messages` in this order."""

    def __init__(self, messages: list[Message], ends: dict[int, int]) -> None:
        self._messages, self._ends = messages, ends
        self._positions = dict.fromkeys(ends, 0)
        self.committed_offsets: dict[int, int] = {}

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=dict.fromkeys(self._ends))})

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return partitions

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, self._ends[partition.partition]

    def assign(self, partitions: list[TopicPartition]) -> None:
        pass

    def poll(self, timeout: float) -> Message:
        message = self._messages.pop(0)
        self._positions[message.partition()] = message.offset() + 1
        return message

    def commit(self, message: Message, asynchronous: bool) -> None:
        self.committed_offsets[message.partition()] = message.offset() + 1

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.partition, self._positions[p.partition]) for p in partitions]


class Written:
    def __init__(self) -> None:
        self.values: list[bytes] = []

    def produce(self, topic: str, value: bytes, key: bytes, on_delivery: Any, headers: Any) -> None:
        self.values.append(value)
        on_delivery(None, None)


def test_a_replay_leaves_dead_letters_of_its_own_time_to_the_next_one() -> None:
    def letter(partition: int, offset: int) -> Message:
        return Message("dlq", partition, offset, b"key", b"%d %d" % (partition, offset), headers=HEADERS)

    # Offset 1 of partition 0 was written after the replay had asked for the ends.
    letters: Any = Letters([letter(0, 0), letter(0, 1), letter(1, 0)], {0: 1, 1: 1})
    producer = Written()
    assert DeadLetterTopic(producer, "dlq")._replay(letters, lambda _: True, 60.0) == 2
    assert producer.values == [b"0 0", b"1 0"]
    assert letters.committed_offsets == {0: 1, 1: 1}
