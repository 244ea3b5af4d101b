"""serialization/ against confluent_kafka.serialization."""

from __future__ import annotations

import confluent_kafka.serialization as theirs
import pytest

from kconsumer import serialization as ours
from kconsumer.errors import KafkaException

PI = b"\x40\x09\x21\xfb\x54\x44\x2d\x18"
DATA = [None, b"", b"\0", b"\0\0\0\x07", b"\xff\xff\xff\xfe", PI, b"caf\xc3\xa9", b"\xff"]


def outcome(module, name: str, args: tuple[object, ...], data: bytes | None) -> object:  # type: ignore[no-untyped-def]
    try:
        return getattr(module, name)(*args)(data, None)
    except module.SerializationError:
        return "SerializationError"


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("IntegerDeserializer", ()),
        ("DoubleDeserializer", ()),
        ("StringDeserializer", ()),
        ("StringDeserializer", ("latin-1",)),
        ("StringDeserializer", ("ascii",)),
    ],
)
def test_deserializes_as_confluent_kafka(name: str, args: tuple[object, ...], data: bytes | None) -> None:
    assert outcome(ours, name, args, data) == outcome(theirs, name, args, data)


def test_the_codec_has_confluent_kafkas_name() -> None:
    assert ours.StringDeserializer(codec="ascii").codec == theirs.StringDeserializer(codec="ascii").codec == "ascii"


def test_a_wrong_length_is_named() -> None:
    with pytest.raises(ours.SerializationError, match="expected 4 bytes, not 3"):
        ours.IntegerDeserializer()(b"abc")


def test_serialization_error_is_a_kafka_exception() -> None:
    assert issubclass(ours.SerializationError, KafkaException)


def test_fields_are_confluent_kafkas() -> None:
    assert {field.name: field.value for field in ours.MessageField} == {
        field.name: field.value for field in theirs.MessageField
    }
    for field in ours.MessageField:
        other = theirs.MessageField[field.name]
        assert field == other and hash(field) == hash(other) and str(field) == str(other)


def test_the_context_has_confluent_kafkas_attributes() -> None:
    args = ("t", ours.MessageField.KEY, [("h", b"1")])
    assert vars(ours.SerializationContext(*args)) == vars(theirs.SerializationContext(*args))
    assert ours.SerializationContext("t", ours.MessageField.VALUE).headers is None


def test_the_bases_have_confluent_kafkas_methods() -> None:
    for name in ("Deserializer", "DeserializerBuilder"):
        public = {item for item in dir(getattr(theirs, name)) if not item.startswith("_")}
        assert public == {item for item in dir(getattr(ours, name)) if not item.startswith("_")}
    with pytest.raises(NotImplementedError):
        ours.Deserializer()(b"")
    with pytest.raises(NotImplementedError):
        ours.DeserializerBuilder().build({}, True)
    assert ours.Deserializer().close() is None  # type: ignore[func-returns-value]
