"""The decision after a handler has ended: done, another attempt, a dead letter, or the end of the run.

Owns: Retry, RetryLater, Reject, Failure, and Policy, which chooses. Threads: any; a Policy has no state but its random
numbers. Never: calls a handler; drops a record.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kconsumer.config.values import configuration_error
from kconsumer.errors import SerializationError

__all__ = ["DONE", "REJECTED", "SKIPPED", "Again", "DeadLetters", "Failure", "Fatal", "Outcome", "Policy", "Reject",
           "Retry", "RetryLater"]

_MOST_TRACEBACK: Final = 8192  # characters
_DEAD_LETTER_PAUSES: Final = (0.1, 30.0)  # without a Retry, between attempts to write a dead letter


class RetryLater(Exception):
    """A handler raises it to receive the record again after `seconds`. It does not count as a failed attempt."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        if not seconds >= 0:
            raise ValueError(f"invalid seconds {seconds!r}: expected 0 or more")
        self.seconds = seconds


class Reject(Exception):
    """A handler raises it for a record that no attempt can process: it becomes a dead letter."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Retry:
    """When a handler's exception leads to another attempt.

    Args:
        max_attempts: attempts of a record, the first one included.
        initial: seconds before the second attempt. The time doubles with each attempt.
        maximum: limit in seconds of that time.
        jitter: share of the time that is random: 0.2 is ±20 %.
        on: exceptions that lead to another attempt.
        reject: exceptions that lead to a dead letter at once. They win over `on`.
        end: exceptions that end the run at once. They win over both.

    An exception that none of the three names is final, as after the last attempt.
    """

    max_attempts: int = 5
    initial: float = 0.1
    maximum: float = 30.0
    jitter: float = 0.2
    on: tuple[type[BaseException], ...] = (Exception,)
    reject: tuple[type[BaseException], ...] = ()
    end: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.max_attempts, int) or self.max_attempts < 1:
            raise configuration_error(f"invalid max_attempts {self.max_attempts!r}: expected a whole number from 1 on")
        if not 0 <= self.initial <= self.maximum:
            raise configuration_error(f"invalid initial {self.initial!r}: expected 0 … maximum ({self.maximum!r})")
        if not 0 <= self.jitter <= 1:
            raise configuration_error(f"invalid jitter {self.jitter!r}: expected 0 … 1")

    def pause(self, attempts: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
        """Return the seconds before the next attempt, after `attempts` failed ones."""
        pause = min(self.initial * 2.0 ** min(attempts - 1, 64), self.maximum)
        return pause * (1 + uniform(-self.jitter, self.jitter))


@dataclass(frozen=True)
class Failure:
    """Why a record became a dead letter."""

    reason: str
    attempts: int
    error: BaseException | None
    traceback: str = field(repr=False)


DeadLetters = Callable[[Any, Failure], object]


@dataclass(frozen=True)
class Again:
    """Another attempt after some seconds."""

    seconds: float


@dataclass(frozen=True)
class Fatal:
    """The run ends with this error."""

    error: BaseException


DONE: Final = None  # the handler returned
REJECTED: Final = "rejected"  # the dead letter is written
SKIPPED: Final = "skipped"  # the record did not begin: its partition is leaving, or the run ends
Outcome = Again | Fatal | str | None


class Policy:
    """Decides what an exception leads to.

    Args:
        retry: None: no second attempt, except after RetryLater.
        rejects: whether there are dead letters. Without them a final failure ends the run.
    """

    def __init__(self, retry: Retry | None, rejects: bool) -> None:
        self._retry = retry
        self._rejects = rejects

    def after_handler(self, error: BaseException, attempts: int) -> Again | Fatal | Failure:
        """Return what follows after failed attempt number `attempts`. A Failure asks for a dead letter."""
        try:
            return self._decide(error, attempts)
        except Exception as defect:  # such as an exception class of the handler whose __str__ fails
            return Fatal(defect)

    def _decide(self, error: BaseException, attempts: int) -> Again | Fatal | Failure:
        if isinstance(error, RetryLater):
            return Again(error.seconds)
        retry = self._retry
        if not isinstance(error, Exception) or (retry is not None and isinstance(error, retry.end)):
            return Fatal(error)
        final = isinstance(error, Reject | SerializationError)
        if retry is not None and not final and not isinstance(error, retry.reject) and isinstance(error, retry.on) \
                and attempts < retry.max_attempts:
            return Again(retry.pause(attempts))
        return _failure(error, attempts) if self._rejects else Fatal(error)

    def after_dead_letter(self, error: BaseException, attempts: int) -> Again | Fatal:
        """Return what follows after attempt number `attempts` to write a dead letter has failed."""
        if not isinstance(error, Exception):
            return Fatal(error)
        retry = self._retry or Retry(initial=_DEAD_LETTER_PAUSES[0], maximum=_DEAD_LETTER_PAUSES[1])
        return Again(retry.pause(attempts)) if attempts < retry.max_attempts else Fatal(error)


def _failure(error: Exception, attempts: int) -> Failure:
    reason = error.reason if isinstance(error, Reject) else f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    return Failure(reason, attempts, error, text[-_MOST_TRACEBACK:])
