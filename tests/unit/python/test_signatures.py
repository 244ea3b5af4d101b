"""Every public class and method says how it is called: to a reader, to inspect, and to mocks made from it."""

import inspect
from unittest.mock import create_autospec, patch

import pytest

import kconsumer

CLASSES = sorted(name for name in kconsumer.__all__ if isinstance(getattr(kconsumer, name), type))
METHODS = sorted({
    (name, method) for name in CLASSES for method in dir(getattr(kconsumer, name))
    if not method.startswith("_") and callable(getattr(getattr(kconsumer, name), method))
    and method not in dir(Exception) and method not in dir(int)
})


def parameters(of):
    return list(inspect.signature(of).parameters)


@pytest.mark.parametrize(("name", "method"), METHODS, ids=map(".".join, METHODS))
def test_a_method_has_a_signature_and_a_docstring(name, method):
    found = getattr(getattr(kconsumer, name), method)
    assert "args" not in parameters(found)
    assert inspect.getdoc(found)


def test_compiled_functions_have_signatures():
    assert parameters(kconsumer.Consumer.poll) == ["self", "timeout"]
    assert inspect.signature(kconsumer.Consumer.poll).parameters["timeout"].default is None
    assert parameters(kconsumer.Message.value) == ["self"]
    assert parameters(kconsumer.Message.set_key) == ["self", "key"]
    assert parameters(kconsumer.Message)[:3] == ["topic", "partition", "offset"]
    assert parameters(kconsumer.RecordBatch.to_arrow) == ["self", "schema"]


@pytest.mark.parametrize("name", CLASSES)
def test_mocks_can_be_made(name):
    create_autospec(getattr(kconsumer, name))
    create_autospec(getattr(kconsumer, name), instance=True)


def test_a_mocked_consumer_answers_and_checks_its_arguments():
    consumer = create_autospec(kconsumer.Consumer, instance=True)
    consumer.poll.return_value = None
    assert consumer.poll(1.0) is None
    consumer.poll.assert_called_once_with(1.0)
    consumer.consume(10, timeout=1)
    for wrong in (lambda: consumer.poll(1, 2), lambda: consumer.poll(seconds=1), lambda: consumer.consume(10, 1, 2),
                  lambda: consumer.consume_batch(limit=5), lambda: consumer.commit(None, None, True, 5),
                  lambda: consumer.wakeup(1)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(AttributeError):
        consumer.no_such_method()


def test_poll_of_an_instance_is_the_compiled_method():
    """Mocks read the signature from the class; a call through an instance costs nothing more."""
    consumer = kconsumer.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    try:
        assert inspect.isbuiltin(consumer.poll)
        assert list(inspect.signature(consumer.poll).parameters) == ["timeout"]
        assert inspect.isfunction(kconsumer.Consumer.poll)
        assert consumer.poll(0) is consumer.poll(timeout=0) is kconsumer.Consumer.poll(consumer, 0) is None
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            consumer.poll(seconds=0)
        with pytest.raises(TypeError, match="at most 1 positional argument"):
            consumer.poll(0, 1)
        method = vars(kconsumer.Consumer)["poll"]
        for arguments in ((), ("no consumer",), ("no consumer", 0)):
            with pytest.raises(TypeError):
                method(*arguments)
        with patch.object(kconsumer.Consumer, "poll", autospec=True, return_value=5):
            assert consumer.poll(0) == 5
            with pytest.raises(TypeError):
                consumer.poll(0, 1)
        assert consumer.poll(0) is None
    finally:
        consumer.close()


def test_a_subclass_extends_poll():
    class Counting(kconsumer.Consumer):
        polls = 0

        def poll(self, timeout=None):
            self.polls += 1
            return super().poll(timeout)

    with Counting({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}) as consumer:
        assert consumer.poll(0) is None
        assert consumer.polls == 1


@pytest.mark.parametrize("name", [
    "CommitFailedError", "ConsumeError", "InvalidArgumentError", "KeyDeserializationError", "LogTruncationError",
    "NetworkError", "NoOffsetError", "RecordTooLargeError", "SerializationError", "ValueDeserializationError",
    "IsolationLevel", "OFFSET_TAIL_BASE", "PARTITION_UA", "libversion", "version",
])
def test_documented_names_can_be_imported(name):
    assert name in kconsumer.__all__
    assert getattr(kconsumer, name) is not None


def test_every_public_error_is_in_the_package():
    from kconsumer import errors

    found = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert found <= set(kconsumer.__all__)


def test_versions():
    assert kconsumer.version() == kconsumer.__version__
    text, number = kconsumer.libversion()
    major, minor, revision = (int(part) for part in text.split(".")[:3])
    assert (text, number) == (kconsumer.__version__, major * 2**24 + minor * 2**16 + revision * 2**8 + 255)
