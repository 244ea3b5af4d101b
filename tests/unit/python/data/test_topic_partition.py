"""topic_partition.py against confluent_kafka's TopicPartition."""

from __future__ import annotations

import copy
import pickle
import sys

import confluent_kafka
import pytest

from kconsumer.data import topic_partition
from kconsumer.data.topic_partition import TopicPartition, coerce, coerce_list, offset_tail
from kconsumer.errors import KafkaError

Theirs = confluent_kafka.TopicPartition
BOTH = pytest.mark.parametrize("cls", [TopicPartition, Theirs])
NAMES = ("topic", "partition", "offset", "leader_epoch", "metadata", "error")


def test_constants_are_confluent_kafkas() -> None:
    names = [name for name in dir(confluent_kafka) if name.startswith(("OFFSET_", "TIMESTAMP_"))]
    assert len(names) == 7
    assert {name: getattr(topic_partition, name) for name in names} == {
        name: getattr(confluent_kafka, name) for name in names
    }


def test_offset_tail_counts_from_the_end() -> None:
    assert offset_tail(0) == -2000 and offset_tail(5) == -2005
    with pytest.raises(ValueError):
        offset_tail(-1)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("t",), {}),
        (("t", 1, 5), {}),
        (("", 0), {}),
        (("t", -7, -5), {}),
        (("t", 1, -2, "m", 4), {}),
        (("t",), {"metadata": "m", "leader_epoch": 4}),
        (("t",), {"leader_epoch": -1}),
        (("t",), {"leader_epoch": -5}),
        (("t", True), {}),
        (("t", 2**31 - 1, 2**63 - 1), {}),
        (("täglich", 1), {"metadata": "ü"}),
    ],
)
def test_is_made_as_confluent_kafka_makes_it(args, kwargs) -> None:  # type: ignore[no-untyped-def]
    ours, theirs = TopicPartition(*args, **kwargs), Theirs(*args, **kwargs)
    assert [getattr(ours, name) for name in NAMES] == [getattr(theirs, name) for name in NAMES]
    assert repr(ours) == repr(theirs) and str(ours) == str(theirs)


@BOTH
@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((), TypeError),
        ((1,), TypeError),
        (("t", "a"), TypeError),
        (("t", 1.5), TypeError),
        (("t", 1, None), TypeError),
        (("t", 1, 0, 5), TypeError),
        (("t", 1, 0, b"m"), TypeError),
        (("t", 1, 0, "m", "e"), TypeError),
        (("t\0x",), ValueError),
        (("t", 2**40), OverflowError),
        (("t", 1, 2**70), OverflowError),
    ],
)
def test_refuses_arguments_that_confluent_kafka_refuses(
    cls: type, args: tuple[object, ...], error: type[Exception],
) -> None:
    with pytest.raises(error):
        cls(*args)


def test_metadata_and_leader_epoch_may_be_none() -> None:
    bare = TopicPartition("t", 1, 2, None, None)
    assert bare.metadata is None and bare.leader_epoch is None


def test_error_must_be_an_error() -> None:
    with pytest.raises(TypeError):
        TopicPartition("t", error=3)  # type: ignore[arg-type]


@BOTH
def test_partition_and_offset_can_be_set(cls: type) -> None:
    partition = cls("t")
    partition.partition, partition.offset = 3, -2
    assert (partition.partition, partition.offset) == (3, -2)
    with pytest.raises(TypeError):
        partition.offset = "x"
    with pytest.raises(TypeError):
        partition.partition = None


@BOTH
@pytest.mark.parametrize("name", ["topic", "metadata", "leader_epoch", "error", "anything"])
def test_nothing_else_can_be_set(cls: type, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(cls("t"), name, None)


def test_attributes_out_of_range_are_refused() -> None:
    partition = TopicPartition("t")
    with pytest.raises(OverflowError):
        partition.partition = 2**31
    with pytest.raises(OverflowError):
        partition.offset = 2**63


@BOTH
def test_compares_by_topic_and_partition(cls: type) -> None:
    first, second = cls("t", 1, 5), cls("t", 2)
    assert first == cls("t", 1, 9, "m") and hash(first) == hash(cls("t", 1)) and first != second
    assert first < second and cls("a", 5) < cls("b", 2) and second > first and first <= cls("t", 1) and second >= first
    assert sorted([second, cls("a", 9), first]) == [cls("a", 9), first, second]
    assert len({first, cls("t", 1), second}) == 2


def test_differs_from_other_types_without_an_exception() -> None:
    assert TopicPartition("t", 1) != ("t", 1) and TopicPartition("t") != None  # noqa: E711
    with pytest.raises(TypeError):
        TopicPartition("t") < 3  # type: ignore[operator]  # noqa: B015


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_keep_everything(duplicate) -> None:  # type: ignore[no-untyped-def]
    partition = TopicPartition("t", 1, 2, "m", 3, error=KafkaError(1, "x"))
    again = duplicate(partition)
    assert again is not partition and [getattr(again, name) for name in NAMES] == ["t", 1, 2, 3, "m", KafkaError(1)]
    assert repr(again) == repr(partition)


@pytest.mark.parametrize("args", [("t",), ("t", 1, 2), ("t", 1, 2, "m"), ("t", 1, 2, "m", 7), ("t", 1, -1001, "", 0)])
def test_goes_to_confluent_kafka_and_back(args: tuple[object, ...]) -> None:
    ours = TopicPartition(*args)  # type: ignore[arg-type]
    theirs = ours.to_confluent()
    assert type(theirs) is Theirs
    back = coerce(theirs)
    assert isinstance(back, TopicPartition)
    assert [getattr(back, name) for name in NAMES] == [getattr(ours, name) for name in NAMES]


def test_to_confluent_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match="confluent_kafka"):
        TopicPartition("t").to_confluent()


def test_coerce_keeps_our_own() -> None:
    partition = TopicPartition("t")
    assert coerce(partition) is partition


@pytest.mark.parametrize("wrong", [None, "t", ("t", 1), 5, {"topic": "t"}, confluent_kafka.Message("t", 1, 2)])
def test_coerce_names_the_wrong_type(wrong: object) -> None:
    with pytest.raises(TypeError, match=f"expected a TopicPartition, not {type(wrong).__name__}"):
        coerce(wrong)


def test_coerce_list_takes_any_mixture() -> None:
    ours, theirs = TopicPartition("t", 1), Theirs("t", 2, 5)
    mixed = coerce_list([ours, theirs])
    assert mixed[0] is ours and mixed[1].offset == 5 and all(isinstance(item, TopicPartition) for item in mixed)
    assert coerce_list(iter(())) == []


@pytest.mark.parametrize("wrong", ["abc", b"abc", None, 5, TopicPartition("t")])
def test_coerce_list_wants_a_list(wrong: object) -> None:
    with pytest.raises(TypeError, match="expected a list of TopicPartition"):
        coerce_list(wrong)  # type: ignore[arg-type]


def test_coerce_list_names_the_element() -> None:
    with pytest.raises(TypeError, match="element 1: expected a TopicPartition, not str"):
        coerce_list([TopicPartition("t"), "u"])


def test_texts_that_the_protocol_cannot_carry():
    longest = "é" * 16383 + "x"
    from_a_broker = (b"\xff" * 32767).decode("utf-8", "surrogateescape")
    for text in (longest, from_a_broker):
        assert TopicPartition(text, 0, metadata=text).metadata == text
    for arguments in ({"topic": longest + "x"}, {"topic": "t", "metadata": longest + "x"}):
        with pytest.raises(ValueError, match=r"(topic|metadata): 32768 bytes exceed Kafka's limit of 32767"):
            TopicPartition(**arguments)
