"""Attempt: what a worker does with one record.

Owns: the call of the handler inside its context and middleware, and the call for a dead letter. Threads: any worker,
several at a time. Never: changes a Flow.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import Any

from kconsumer.parallel.flow import OPEN, Work
from kconsumer.parallel.outcomes import DONE, REJECTED, SKIPPED, DeadLetters, Failure, Outcome, Policy, RetryLater

__all__ = ["Attempt", "Handler", "Middleware", "call_of"]

Handler = Callable[[Any], object]
Middleware = Callable[[Any, Callable[[], object]], object]


def call_of(handle: Handler, deserialize: Callable[[Any], Any] | None, middleware: Sequence[Middleware]) -> Handler:
    """Return a handler that deserializes, and that runs inside the middleware, the first one outermost.

    After an exception the message has its raw key and value again: for the next attempt, and for the dead letter.
    """
    inner = handle if deserialize is None else functools.partial(_deserialized, handle, deserialize)
    for around in reversed(middleware):
        inner = functools.partial(_inside, around, inner)
    if deserialize is not None and middleware:  # a middleware may raise after the handler has returned
        inner = functools.partial(_raw_after_error, inner)
    return inner


def _inside(around: Middleware, inner: Handler, message: Any) -> object:
    return around(message, functools.partial(inner, message))


def _deserialized(handle: Handler, deserialize: Callable[[Any], Any], message: Any) -> object:
    return _raw_after_error(lambda raw: handle(deserialize(raw)), message)


def _raw_after_error(inner: Handler, message: Any) -> object:
    key, value = message.key(), message.value()
    try:
        return inner(message)
    except BaseException:
        message.set_key(key)
        message.set_value(value)
        raise


class Attempt:
    """Calls the handler for a record, and decides what follows.

    Args:
        call: the handler; each record runs in a copy of the context in which the Attempt was made.
        policy: decides what an exception leads to.
        dead_letter: called with the message and its Failure; None: there are no dead letters.
    """

    def __init__(self, call: Handler, policy: Policy, dead_letter: DeadLetters | None) -> None:
        self._call = call
        self._policy = policy
        self._dead_letter = dead_letter
        self._context = contextvars.copy_context()

    def __call__(self, work: Work) -> Outcome:
        """Make one attempt."""
        if work.partition.state != OPEN:
            return SKIPPED
        if work.failure is None:
            try:
                self._context.copy().run(self._call, work.message)
                return DONE
            except BaseException as error:
                found = self.failed(work, error)
                if found is not None:
                    return found
        return self.bury(work)

    def failed(self, work: Work, error: BaseException) -> Outcome:
        """Return what follows after a handler's exception; None: a dead letter, which bury() writes."""
        if not isinstance(error, RetryLater):
            work.attempts += 1
        found = self._policy.after_handler(error, work.attempts)
        if not isinstance(found, Failure):
            return found
        work.failure = found
        return None

    def bury(self, work: Work) -> Outcome:
        """Write the dead letter."""
        assert self._dead_letter is not None
        assert work.failure is not None
        try:
            self._context.copy().run(self._dead_letter, work.message, work.failure)
        except BaseException as error:
            work.letters += 1
            return self._policy.after_dead_letter(error, work.letters)
        return REJECTED
