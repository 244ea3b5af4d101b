"""Mocks of our classes, made from their specification, work where those of confluent_kafka's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock, Mock, create_autospec

import confluent_kafka
import pytest

import kconsumer

NAMES = ["Consumer", "DeserializingConsumer", "KafkaError", "KafkaException", "Message", "TopicPartition"]
MAKERS: list[Callable[[Any], Any]] = [
    lambda cls: Mock(spec=cls), lambda cls: MagicMock(spec=cls), lambda cls: Mock(spec_set=cls),
    lambda cls: create_autospec(cls, instance=True),
]
# As programs call them; create_autospec() checks the arguments.
CALLS: dict[str, list[Callable[[Any], Any]]] = {
    "Consumer": [
        lambda c: c.subscribe(["t"]), lambda c: c.subscribe(["t"], on_assign=print, on_revoke=print, on_lost=print),
        lambda c: c.poll(), lambda c: c.poll(1.0), lambda c: c.poll(timeout=1.0), lambda c: c.consume(10, 1.0),
        lambda c: c.consume(num_messages=10, timeout=1.0), lambda c: c.assign([]), lambda c: c.unassign(),
        lambda c: c.incremental_assign([]), lambda c: c.incremental_unassign([]), lambda c: c.assignment(),
        lambda c: c.commit(), lambda c: c.commit(None), lambda c: c.commit(message=None, asynchronous=False),
        lambda c: c.commit(offsets=[], asynchronous=True), lambda c: c.store_offsets(message=None),
        lambda c: c.store_offsets(offsets=[]), lambda c: c.committed([], timeout=1), lambda c: c.position([]),
        lambda c: c.seek(None), lambda c: c.pause([]), lambda c: c.resume([]), lambda c: c.list_topics(),
        lambda c: c.list_topics("t", timeout=1), lambda c: c.get_watermark_offsets(None, timeout=1, cached=True),
        lambda c: c.offsets_for_times([], timeout=1), lambda c: c.memberid(), lambda c: c.consumer_group_metadata(),
        lambda c: c.set_sasl_credentials("u", "p"), lambda c: c.unsubscribe(), lambda c: c.close(),
    ],
    "Message": [
        lambda m: m.error(), lambda m: m.key(), lambda m: m.value(), lambda m: m.topic(), lambda m: m.partition(),
        lambda m: m.offset(), lambda m: m.timestamp(), lambda m: m.headers(), lambda m: m.latency(),
        lambda m: m.leader_epoch(), lambda m: m.set_value(b""), lambda m: m.set_key(b""), lambda m: m.set_headers([]),
    ],
    "KafkaError": [lambda e: e.code(), lambda e: e.name(), lambda e: e.str(), lambda e: e.fatal(),
                   lambda e: e.retriable(), lambda e: e.txn_requires_abort()],
    "TopicPartition": [lambda p: p.topic, lambda p: p.partition, lambda p: p.offset, lambda p: p.error,
                       lambda p: p.metadata, lambda p: p.leader_epoch],
}


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", MAKERS, ids=["Mock", "MagicMock", "spec_set", "autospec"])
def test_a_mock_has_all_that_confluent_kafkas_has(name: str, make: Callable[[Any], Any]) -> None:
    ours, theirs = (make(getattr(library, name)) for library in (kconsumer, confluent_kafka))
    assert isinstance(ours, getattr(kconsumer, name))
    for word in public(getattr(confluent_kafka, name)):
        assert hasattr(ours, word) == hasattr(theirs, word), word
    with pytest.raises(AttributeError):
        ours.no_such_word  # noqa: B018


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("make", MAKERS, ids=["Mock", "MagicMock", "spec_set", "autospec"])
def test_a_mock_takes_the_calls_of_programs(name: str, make: Callable[[Any], Any]) -> None:
    for library in (kconsumer, confluent_kafka):
        mock = make(getattr(library, name))
        for call in CALLS[name]:
            call(mock)


@pytest.mark.parametrize("name", ["Consumer", "Message", "KafkaError", "TopicPartition"])
def test_special_methods_are_those_of_confluent_kafka(name: str) -> None:
    """MagicMock configures the ones that its specification has."""
    wanted = ("__len__", "__str__", "__hash__", "__eq__", "__lt__", "__enter__", "__exit__")
    ours, theirs = (getattr(library, name) for library in (kconsumer, confluent_kafka))
    assert [word for word in wanted if hasattr(theirs, word) and not hasattr(ours, word)] == []
