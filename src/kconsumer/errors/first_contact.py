"""Errors of a client before any broker has answered, as one error.

Owns: FirstContact. Threads: the thread that runs the client's callbacks. Never: prints or logs.
"""

from __future__ import annotations

from typing import Final

from kconsumer.errors import KafkaError, KafkaException, exception_for

_MOST_CAUSES: Final = 3


class FirstContact:
    """Collects the failures of connections until a broker has answered.

    A client retries for ever. A command or a query that has never reached a broker should end instead.

    Args:
        remedy: what the user should check, for the message.
    """

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self._causes: dict[str, None] = {}
        self.over = False  #: True: a broker has answered, or the error was raised

    def note(self, error: KafkaError) -> None:
        """Handle an error of ``error_cb``, unless `over`.

        Raises:
            KafkaException: every broker has failed.
        """
        if self.over:
            return
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._causes[error.str()] = None
            return
        self.over = True  # close() must not raise it again
        raise exception_for(error.code(), f"cannot connect to Kafka: {self.causes() or error.str()}: {self._remedy}")

    def causes(self) -> str:
        """Return why no broker has answered so far; empty if unknown."""
        causes = list(self._causes)
        more = len(causes) - _MOST_CAUSES
        return "; ".join(causes[:_MOST_CAUSES]) + (f"; and {more} more" if more > 0 else "")

    def explained(self, error: KafkaException) -> KafkaException:
        """Return the error of the first call.

        It includes the causes if no broker answered in time.
        """
        found = error.args[0] if error.args else None
        if self.over or not self._causes or not isinstance(found, KafkaError) or found.code() != KafkaError._TIMED_OUT:
            return error
        return exception_for(found.code(), f"{found.str()}: {self.causes()}")
