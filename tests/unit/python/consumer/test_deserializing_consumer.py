"""The deserializing mixin on a scripted consumer, with our deserializers and confluent_kafka's."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import confluent_kafka.serialization
import pytest

from kconsumer.consumer.deserializing import Deserializing
from kconsumer.errors import (
    ConfigurationError,
    ConsumeError,
    KafkaError,
    KeyDeserializationError,
    SerializationError,
    ValueDeserializationError,
)
from kconsumer.serialization import (
    Deserializer,
    DeserializerBuilder,
    IntegerDeserializer,
    MessageField,
    SerializationContext,
    StringDeserializer,
)


class Message:
    def __init__(self, key: Any = None, value: Any = None, error: KafkaError | None = None) -> None:
        self._key, self._value, self._error = key, value, error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 1

    def headers(self) -> list[tuple[str, bytes]]:
        return [("h", b"1")]

    def error(self) -> KafkaError | None:
        return self._error

    def key(self) -> Any:
        return self._key

    def value(self) -> Any:
        return self._value

    def set_key(self, key: Any) -> None:
        self._key = key

    def set_value(self, value: Any) -> None:
        self._value = value


class Scripted:
    """A consumer that returns what `messages` holds."""

    messages: list[Message | None] = []  # noqa: RUF012

    def __init__(self, config: dict[str, Any], **kwargs: Any) -> None:
        if "broken" in config:
            raise ValueError("broken")
        self.config, self.kwargs = config, kwargs
        self.closed: list[Any] = []
        self.timeouts: list[Any] = []

    def poll(self, timeout: float = -1) -> Message | None:
        self.timeouts.append(timeout)
        return self.messages.pop(0)

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        message = self.poll()  # as the core's: a subclass's poll() is called
        assert message is not None
        return message

    def cluster_id(self, timeout: float) -> str:
        return f"cluster within {timeout}"

    def close(self, *args: Any) -> None:
        self.closed.append(args)

    def __exit__(self, *exc_info: Any) -> None:
        self.closed.append("exit")


class Consumer(Deserializing[Any, Any], Scripted):
    pass


def consumer(*messages: Message | None, **deserializers: Any) -> Consumer:
    made = Consumer({f"{field}.deserializer": value for field, value in deserializers.items()})
    made.messages = list(messages)
    return made


class Recorder(Deserializer):
    """Notes what it is given; fails on demand."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.closes, self.resolver, self.seen = fails, 0, None, []  # type: ignore[var-annotated]

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        assert ctx is not None
        self.seen.append((value, ctx.topic, ctx.field, ctx.headers))
        if self.fails:
            raise SerializationError("no")
        return ("object", value)

    def set_cluster_id_resolver(self, resolver: Any) -> None:
        self.resolver = resolver

    def close(self) -> None:
        self.closes += 1
        if self.fails:
            raise RuntimeError("close failed")


class Builder(DeserializerBuilder):
    def __init__(self, takes: str, made: Any) -> None:
        self.takes, self.made, self.saw = takes, made, None

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Any, dict[str, Any]]:
        self.saw = (dict(conf), is_key)  # type: ignore[assignment]
        conf.pop(self.takes, None)
        return self.made, conf


@pytest.mark.parametrize("module", ["kconsumer.serialization", "confluent_kafka.serialization"])
def test_key_and_value_are_deserialized(module: str) -> None:
    source = confluent_kafka.serialization if module.startswith("confluent") else __import__(module, fromlist=["x"])
    reader = consumer(
        Message(b"\0\0\0\x07", b"caf\xc3\xa9"), key=source.IntegerDeserializer(), value=source.StringDeserializer()
    )
    message = reader.poll(0.5)
    assert (message.key(), message.value()) == (7, "café")
    assert reader.timeouts == [0.5]


def test_without_deserializers_the_bytes_stay() -> None:
    message = consumer(Message(b"k", None)).poll()
    assert (message.key(), message.value()) == (b"k", None)


def test_none_passes_through() -> None:
    assert consumer(None, value=StringDeserializer()).poll(0) is None


def test_the_key_comes_first_and_both_receive_their_position() -> None:
    recorder = Recorder()
    message = consumer(Message(b"k", b"v"), key=recorder, value=recorder).poll()
    headers = [("h", b"1")]
    assert recorder.seen == [(b"k", "t", MessageField.KEY, headers), (b"v", "t", MessageField.VALUE, headers)]
    assert (message.key(), message.value()) == (("object", b"k"), ("object", b"v"))


def test_an_error_is_raised_with_its_message() -> None:
    failed = Message(error=KafkaError(KafkaError._PARTITION_EOF, "end"))
    with pytest.raises(ConsumeError) as raised:
        consumer(failed, value=StringDeserializer()).poll()
    assert raised.value.code == KafkaError._PARTITION_EOF and raised.value.kafka_message is failed


@pytest.mark.parametrize(
    ("field", "kind"), [("key", KeyDeserializationError), ("value", ValueDeserializationError)]
)
def test_a_failed_deserializer_leaves_the_bytes(field: str, kind: type[ConsumeError]) -> None:
    message = Message(b"k", b"v")
    deserializers = {"key": Recorder(), "value": Recorder()} | {field: IntegerDeserializer()}
    with pytest.raises(kind) as raised:
        consumer(message, **deserializers).poll()
    assert raised.value.kafka_message is message and (message.key(), message.value()) == (b"k", b"v")
    assert isinstance(raised.value.exception, SerializationError) and raised.value.__cause__ is raised.value.exception


def test_iteration_deserializes() -> None:
    reader = consumer(Message(None, b"a"), Message(None, b"b"), value=StringDeserializer())
    messages = iter(reader)
    assert [next(messages).value() for _ in range(2)] == ["a", "b"]  # once: the base's iterator calls poll()


def test_consume_is_not_offered() -> None:
    with pytest.raises(NotImplementedError, match="poll"):
        consumer().consume(5)


def test_the_configuration_reaches_the_consumer_without_deserializers() -> None:
    config = {"bootstrap.servers": "h", "key.deserializer": StringDeserializer(), "value.deserializer.builder": None}
    made = Consumer(config, logger="l")
    assert made.config == {"bootstrap.servers": "h"} and made.kwargs == {"logger": "l"}
    assert len(config) == 3


def test_builders_see_the_configuration_and_keep_their_properties() -> None:
    key, value = Builder("registry.url", Recorder()), Builder("registry.key", Recorder())
    config = {"bootstrap.servers": "h", "registry.url": "u", "registry.key": "s"}
    made = Consumer(config | {"key.deserializer.builder": key, "value.deserializer.builder": value})
    assert key.saw == (config, True) and value.saw == (config, False)
    assert made.config == {"bootstrap.servers": "h"}
    made.messages = [Message(b"k", b"v")]
    assert made.poll().value() == ("object", b"v")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"key.deserializer": 5}, "invalid value 5 for key.deserializer: expected a callable"),
        (
            {"value.deserializer": StringDeserializer(), "value.deserializer.builder": Builder("", Recorder())},
            "value.deserializer and value.deserializer.builder are both set",
        ),
        ({"key.deserializer.builder": Builder("", 5)}, "invalid value 5 for key.deserializer"),
    ],
)
def test_wrong_deserializers(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Consumer(config)


@pytest.mark.parametrize("result", [None, Recorder(), (Recorder(), None), (1, 2, 3)])
def test_a_builder_must_return_a_pair(result: Any) -> None:
    class Wrong:
        def build(self, conf: Any, is_key: bool) -> Any:
            return result

    with pytest.raises(ConfigurationError, match=r"value.deserializer.builder: build\(\) returned"):
        Consumer({"value.deserializer.builder": Wrong()})


def test_closing_closes_only_the_parts_already_built() -> None:
    ready, built = Recorder(), Recorder()
    made = Consumer({"key.deserializer": ready, "value.deserializer.builder": Builder("", built)})
    made.close(1.5)
    made.close()
    assert made.closed == [(1.5, "default"), (None, "default")] and (ready.closes, built.closes) == (0, 1)


def test_leaving_a_with_block_closes_the_built_parts() -> None:
    built = Recorder()
    made = Consumer({"value.deserializer.builder": Builder("", built)})
    made.__exit__(None, None, None)
    assert made.closed == ["exit"] and built.closes == 1


def test_every_built_deserializer_is_closed_even_if_others_raise(caplog: pytest.LogCaptureFixture) -> None:
    first, second = Recorder(fails=True), Recorder(fails=True)
    made = Consumer({"key.deserializer.builder": Builder("", first), "value.deserializer.builder": Builder("", second)})
    with caplog.at_level(logging.WARNING, logger="kconsumer"), pytest.raises(RuntimeError, match="close failed"):
        made.close()
    assert (first.closes, second.closes) == (1, 1) and len(caplog.records) == 1


def test_a_failed_construction_closes_the_parts_already_built() -> None:
    built = Recorder()
    with pytest.raises(ValueError, match="broken"):
        Consumer({"broken": True, "key.deserializer.builder": Builder("", built)})
    with pytest.raises(ConfigurationError):
        Consumer({"key.deserializer.builder": Builder("", built), "value.deserializer": 5})
    assert built.closes == 2


def test_a_deserializer_may_ask_for_the_cluster_id() -> None:
    recorder = Recorder()
    made = consumer(value=recorder, key=lambda value, ctx: value)
    assert recorder.resolver is not None and recorder.resolver() == "cluster within 60.0"
    gone = weakref.ref(made)
    gc.disable()
    try:
        del made
        assert gone() is None
    finally:
        gc.enable()
    assert recorder.resolver() is None
