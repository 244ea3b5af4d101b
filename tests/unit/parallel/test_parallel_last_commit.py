"""The commits that a revocation and the end of a run wait for, without a broker."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kconsumer import KafkaError, KafkaException, Message, TopicPartition
from kconsumer.parallel import ParallelConsumer
from kconsumer.parallel.dispatcher import Dispatcher
from kconsumer.parallel.options import Options
from kconsumer.parallel.outcomes import DONE

TOO_LARGE = KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)


class Broker:
    """Stores commits. It refuses all metadata: for a partition, or for the whole request."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self.stored: dict[int, int] = {}

    def _position(self, topic: str, partition: int) -> None:
        return None

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        if self._whole and any(p.metadata for p in offsets):
            raise KafkaException(TOO_LARGE)
        self.stored.update({p.partition: p.offset for p in offsets if not p.metadata})
        return [TopicPartition(p.topic, p.partition, p.offset, p.metadata, error=TOO_LARGE if p.metadata else None)
                for p in offsets]


class Consumer(ParallelConsumer):
    def __init__(self, broker: Any) -> None:
        Dispatcher.__init__(self, Options())
        self._source = self._core = broker
        self._logger = logging.getLogger(__name__)


@pytest.mark.parametrize("whole", [True, False])
def test_the_last_commit_is_repeated_without_metadata_that_the_broker_refuses(whole: bool) -> None:
    broker = Broker(whole)
    consumer = Consumer(broker)
    flow = consumer._flow
    for number in range(2):
        flow.identify(flow.assign(("t", number)), b"12345678")
        flow.add([Message("t", number, n, None, b"v", leader_epoch=0) for n in range(4)])
    for work in flow.take(8, 0.0):
        if work.partition.place[1] == 0 or work.message.offset() != 1:
            flow.finish(work, DONE, 0.0)
    consumer._commit(wait=True)
    assert broker.stored == {0: 4, 1: 1}


def test_another_failure_of_the_last_commit_is_raised_at_once() -> None:
    calls: list[Any] = []

    class Fenced(Broker):
        def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
            calls.append(offsets)
            raise KafkaException(KafkaError(KafkaError.FENCED_INSTANCE_ID))

    consumer = Consumer(Fenced(whole=True))
    consumer._flow.assign(("t", 0))
    consumer._flow.add([Message("t", 0, 0, None, b"v", leader_epoch=0)])
    with pytest.raises(KafkaException):
        consumer._commit(wait=True)
    assert len(calls) == 1
