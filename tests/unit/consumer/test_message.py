"""Message made by hand: arguments, pickled form and subclasses are those of confluent_kafka.Message."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import confluent_kafka
import pytest

import kconsumer

BOTH = (confluent_kafka, kconsumer)
GETTERS = ("topic", "partition", "offset", "key", "value", "headers", "timestamp", "latency", "leader_epoch",
           "delivery_count", "__len__")
ERROR = "error"


def facts(message: Any) -> tuple[Any, ...]:
    return tuple(getattr(message, getter)() for getter in GETTERS)


def outcomes(make: Any) -> list[Any]:
    """What `make(module)` gives with each library: facts and pickled arguments of a message, or an exception's kind."""
    found = []
    for module in BOTH:
        try:
            message = make(module)
            arguments = message.__reduce__()[1]
            found.append((facts(message), arguments))
        except Exception as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.parametrize("arguments", [
    (), ("t",), ("t", 1, 2, b"k", b"v", [("a", b"1")], None, (1, 5), 5.67, 3, 5), ("t", 0, 0), ("t", -2, -2),
    ("t", 1, 2, None, None, None, None, None, -2.0, -2, -5), ("t", 1, 2, None, None, None, None, None, 0.0, 0, 0),
    ("t", 1, 2, None, "text"), ("t", 1, 2, 7, []), (None, 5), ("t", 2**31), ("t", 0, 2**63), ("t", "x"), ("t", 0, "x"),
    ("t", 0, 0, None, None, None, None, 5), ("t", 0, 0, None, None, None, None, (1, 2, 3)),
    ("t", 0, 0, None, None, None, None, [1, 2]),
    ("t", 0, 0, None, None, None, None, None, "x"), ("t", 0, 0, None, None, None, None, None, 1.0, 2**31),
    ("t", 0, 0, None, None, None, None, None, 1.0, 1, 2**15), tuple(range(12)),
], ids=str)
def test_positional_arguments(arguments):
    theirs, ours = outcomes(lambda module: module.Message(*arguments))
    assert ours == theirs


@pytest.mark.parametrize("keywords", [
    {"topic": "t", "partition": 3, "offset": 9}, {"value": b"v", "latency": 1.5}, {"delivery_count": 2}, {"none": 1},
], ids=str)
def test_keyword_arguments(keywords):
    theirs, ours = outcomes(lambda module: module.Message(**keywords))
    assert ours == theirs


def test_a_message_that_was_never_initialised():
    messages = [module.Message.__new__(module.Message) for module in BOTH]
    assert facts(messages[1]) == facts(messages[0])
    assert facts(pickle.loads(pickle.dumps(messages[1]))) == facts(pickle.loads(pickle.dumps(messages[0])))


@pytest.mark.parametrize("setter", ["set_topic", "set_value", "set_key", "set_headers", "set_error"])
def test_setters(setter):
    for message in (kconsumer.Message(), kconsumer.Message.__new__(kconsumer.Message)):
        marker = object()
        getattr(message, setter)(marker)
        assert getattr(message, setter[len("set_"):])() is marker


def test_methods_refuse_objects_that_are_not_messages():
    for name in (*GETTERS[:-1], ERROR):
        for wrong in (None, object(), confluent_kafka.Message()):
            with pytest.raises(TypeError):
                getattr(kconsumer.Message, name)(wrong)


def test_equality():
    def message(**other: Any) -> kconsumer.Message:
        return kconsumer.Message(**{"topic": "t", "partition": 1, "offset": 2, "key": b"k", "value": b"v",
                                    "headers": [("a", b"")], "timestamp": (1, 4), "leader_epoch": 3, **other})

    assert message() == message()
    assert message() == message(latency=4.0)  # as in confluent_kafka: latency does not belong to the record
    for other in ({"topic": "u"}, {"partition": 2}, {"offset": 3}, {"key": b""}, {"value": None}, {"headers": None},
                  {"timestamp": (1, 5)}, {"leader_epoch": 4}, {"error": 5}):
        assert message() != message(**other)
    assert message() != 1
    with pytest.raises(TypeError):
        hash(message())
    with pytest.raises(TypeError):
        assert message() < message()


class Tagged(kconsumer.Message):
    """As an application adds something of its own to a message."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tag = "mine"


class Slotted(kconsumer.Message):
    __slots__ = ()


def test_a_subclass_keeps_its_own_state():
    message = Tagged("t", 1, 2, b"k", b"v")
    assert (message.tag, message.topic(), message.value(), type(message)) == ("mine", "t", b"v", Tagged)
    assert message == kconsumer.Message("t", 1, 2, b"k", b"v")


def test_a_subclass_is_pickled_as_a_message():
    for again in (pickle.loads(pickle.dumps(Tagged("t", 1, 2))), copy.copy(Tagged("t", 1, 2))):
        assert type(again) is kconsumer.Message
        assert again == kconsumer.Message("t", 1, 2)


def test_instances_of_subclasses_are_not_handed_out_as_messages():
    """Freed messages are kept for the next ones; those of a subclass, even of the same size, must not be among them."""
    for subclass in (Tagged, Slotted):
        kept = [subclass("t") for _ in range(50)]
        del kept
        assert {type(kconsumer.Message()) for _ in range(50)} == {kconsumer.Message}


def test_an_instance_of_a_subclass_in_a_cycle_is_collected():
    message = Tagged()
    message.tag = message
    gone = weakref.ref(message)
    del message
    gc.collect()
    assert gone() is None
