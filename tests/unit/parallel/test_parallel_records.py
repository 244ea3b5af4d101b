"""run_records: retries, dead letters, rejects, the end of a run; without a broker or a thread."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest

from kconsumer import ConfigurationError, Message
from kconsumer.parallel import Failure, Reject, Retry, RetryLater, TooManyRejectedError, run_records
from kconsumer.parallel.outcomes import Fatal, Policy


def messages(count: int, keys: int = 3) -> list[Message]:
    return [Message("t", n % 2, n // 2, b"k%d" % (n % keys), b"%d" % n, leader_epoch=0) for n in range(count)]


class Fails:
    """Raises `errors`, one for each attempt, for the record with this value; handles everything else."""

    def __init__(self, value: bytes, *errors: BaseException) -> None:
        self.value, self.errors = value, list(errors)
        self.handled: list[bytes] = []

    def __call__(self, message: Any) -> None:
        if message.value() == self.value and self.errors:
            raise self.errors.pop(0)
        self.handled.append(message.value())


@pytest.mark.parametrize("order", ["key", "partition", "none"])
def test_each_record_is_handled_once(order: Any) -> None:
    handle = Fails(b"")
    assert run_records(handle, messages(50), order=order).done == 50
    assert sorted(map(int, handle.handled)) == list(range(50))


def test_a_retry_keeps_the_order_of_its_key_and_blocks_no_other() -> None:
    handle = Fails(b"0", OSError("one"), OSError("two"))
    summary = run_records(handle, messages(12), retry=Retry(on=(OSError,)))
    assert (summary.done, summary.retries) == (12, 2)
    of_key = [value for value in handle.handled if int(value) % 6 == 0]
    assert of_key == [b"0", b"6"]
    assert handle.handled.index(b"0") > handle.handled.index(b"1")


def test_order_partition_holds_back_the_whole_partition() -> None:
    handle = Fails(b"0", OSError("one"))
    run_records(handle, messages(12), order="partition", retry=Retry(on=(OSError,)))
    assert [value for value in handle.handled if int(value) % 2 == 0] == [b"0", b"2", b"4", b"6", b"8", b"10"]


def test_the_last_attempt_ends_the_run_without_dead_letters() -> None:
    handle = Fails(b"3", *[OSError(str(n)) for n in range(9)])
    with pytest.raises(OSError, match="2"):
        run_records(handle, messages(12), retry=Retry(max_attempts=3, on=(OSError,)))
    assert len(handle.errors) == 6


@pytest.mark.parametrize(("retry", "error"), [
    (None, ValueError("bad")), (Retry(on=(OSError,)), ValueError("bad")), (None, Reject("bad")),
    (Retry(on=(OSError,), reject=(FileNotFoundError,)), FileNotFoundError("bad")), (Retry(), Reject("bad"))])
def test_a_final_failure_becomes_a_dead_letter_at_once(retry: Retry | None, error: Exception) -> None:
    letters: list[tuple[bytes, Failure]] = []
    handle = Fails(b"3", error)
    summary = run_records(handle, messages(12), retry=retry,
                          dead_letter=lambda message, failure: letters.append((message.value(), failure)))
    assert (summary.done, summary.rejected, summary.retries) == (11, 1, 0)
    ((value, failure),) = letters
    assert value == b"3"
    assert "bad" in failure.reason
    assert failure.attempts == 1
    assert failure.error is error
    assert "bad" in failure.traceback


@pytest.mark.parametrize(("retry", "error"), [
    (Retry(end=(MemoryError,)), MemoryError()), (None, SystemExit(3)), (Retry(), GeneratorExit())])
def test_errors_that_end_the_run_whatever_there_is(retry: Retry | None, error: BaseException) -> None:
    letters: list[Any] = []
    with pytest.raises(type(error)):
        run_records(Fails(b"3", error), messages(12), retry=retry, dead_letter=lambda *letter: letters.append(letter))
    assert letters == []


class Unprintable(Exception):
    def __str__(self) -> str:
        raise LookupError("no text")


class ForgetsReason(Reject):
    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(("retry", "error", "raised"), [
    (None, Unprintable(), LookupError), (None, ForgetsReason(), AttributeError),
    (Retry(on=[OSError]), OSError(), TypeError)])  # type: ignore[arg-type]  # a list is the user's error
def test_an_error_that_cannot_be_judged_ends_the_run(
        retry: Retry | None, error: Exception, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        run_records(Fails(b"3", error), messages(12), retry=retry, dead_letter=lambda *_: None)
    policy = Policy(retry, rejects=True)
    assert isinstance(policy.after_handler(error, 1), Fatal)


def test_retry_later_needs_no_retry_and_is_no_failed_attempt() -> None:
    letters: list[Failure] = []
    handle = Fails(b"3", *[RetryLater(5) for _ in range(7)], OSError("first"), OSError("second"))
    run_records(handle, messages(12), retry=Retry(max_attempts=2), dead_letter=lambda _, why: letters.append(why))
    assert [(why.reason, why.attempts) for why in letters] == [("OSError: second", 2)]


def test_a_dead_letter_that_cannot_be_written_is_tried_again_without_the_handler() -> None:
    refusals = [OSError("no broker"), OSError("no broker")]
    calls: list[bytes] = []
    written: list[bytes] = []

    def handle(message: Any) -> None:
        calls.append(message.value())
        if message.value() == b"3":
            raise Reject("poison")

    def bury(message: Any, failure: Failure) -> None:
        if refusals:
            raise refusals.pop()
        written.append(message.value())

    assert run_records(handle, messages(12), dead_letter=bury).rejected == 1
    assert written == [b"3"]
    assert calls.count(b"3") == 1


def test_dead_letters_that_can_never_be_written_end_the_run() -> None:
    def bury(message: Any, failure: Failure) -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        run_records(Fails(b"3", Reject("poison")), messages(12), dead_letter=bury)


def test_a_deserializer_that_fails_is_a_reject_with_raw_bytes() -> None:
    def deserialize(message: Any) -> Any:
        message.set_value(int(message.value()))
        return message

    letters: list[Any] = []
    found: list[int] = []
    records = [*messages(3), Message("t", 0, 9, b"k", b"not a number", leader_epoch=0)]
    run_records(lambda message: found.append(message.value()), records, deserialize=deserialize,
                dead_letter=lambda message, failure: letters.append(message.value()))
    assert found == [0, 1, 2]
    assert letters == [b"not a number"]


def test_another_attempt_deserializes_the_raw_value_again() -> None:
    def deserialize(message: Any) -> Any:
        message.set_value(int(message.value()))
        return message

    errors = [OSError("once")]
    found: list[int] = []

    def handle(message: Any) -> None:
        if errors:
            raise errors.pop()
        found.append(message.value())

    run_records(handle, messages(1), deserialize=deserialize, retry=Retry())
    assert found == [0]


def test_another_attempt_after_a_failed_middleware_deserializes_the_raw_value_again() -> None:
    def deserialize(message: Any) -> Any:
        message.set_value([message.value()])
        return message

    errors = [OSError("once")]
    found: list[Any] = []

    def middleware(message: Any, proceed: Any) -> Any:
        result = proceed()
        if errors:
            raise errors.pop()
        return result

    run_records(lambda message: found.append(message.value()), messages(1), deserialize=deserialize,
                middleware=[middleware], retry=Retry())
    assert found == [[b"0"], [b"0"]]


def test_too_many_rejects_end_the_run_but_only_after_a_hundred_records() -> None:
    def handle(message: Any) -> None:
        if int(message.value()) % 10 == 0:
            raise Reject("bad")

    letters: list[Any] = []
    assert run_records(handle, messages(99), stop_if_bad=0.05, dead_letter=lambda *a: letters.append(a)).rejected == 10
    with pytest.raises(TooManyRejectedError, match=r"stop_if_bad=0\.05: the last reason is 'bad'"):
        run_records(handle, messages(500), stop_if_bad=0.05, dead_letter=lambda *a: letters.append(a))
    assert run_records(handle, messages(500), stop_if_bad=0.2, dead_letter=lambda *a: letters.append(a)).rejected == 50


def test_middleware_surrounds_the_handler_and_context_does_not_leak() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="none")
    before: list[str] = []
    order: list[str] = []

    def outer(message: Any, proceed: Any) -> Any:
        before.append(name.get())
        name.set(message.value().decode())
        order.append("outer")
        return proceed()

    def inner(message: Any, proceed: Any) -> Any:
        order.append("inner")
        return proceed()

    run_records(lambda message: order.append(name.get()), messages(2), middleware=[outer, inner])
    assert before == ["none", "none"]
    assert order == ["outer", "inner", "0", "outer", "inner", "1"]


@pytest.mark.parametrize("given", [{"max_attempts": 0}, {"initial": 5.0, "maximum": 1.0}, {"jitter": 2.0}])
def test_invalid_retries_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        Retry(**given)


def test_the_pause_doubles_up_to_the_maximum_with_some_jitter() -> None:
    retry = Retry(initial=1.0, maximum=5.0, jitter=0.0)
    assert [retry.pause(n) for n in (1, 2, 3, 4, 2000)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    shaken = Retry(initial=1.0, jitter=0.5)
    assert shaken.pause(1, lambda low, high: low) == 0.5
    assert shaken.pause(1, lambda low, high: high) == 1.5
