"""Messages of the command on standard error, and its failures.

Owns: warn, shown_log, Failure, Reports. Threads: the main thread; log lines come from any. Never: writes unescaped text
of brokers or producers, which could control the terminal; writes to standard output.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from kconsumer.errors import KafkaError, KafkaException, exception_for
from kconsumer.errors.first_contact import FirstContact
from kconsumer.errors.printable import printable

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")  # in messages of deltalake, for example
_AGAIN_S: Final = 60.0  # repeated warnings are shown again after this time
_FAIL: Final = "FAIL"  # facility of log lines about connections, which error_cb reports too


def _shown(text: str, keep: str = "") -> str:
    return printable(_COLOUR.sub("", text), keep)


def say(text: str) -> None:
    """Write one line, escaped."""
    # Not click.echo, which bypasses sys.stderr: rich replaces it while a line of progress follows a run.
    print(f"kconsumer: {_shown(text)}", file=sys.stderr)


def warn(text: str) -> None:
    """Write one line of warning, escaped."""
    say(f"warning: {text}")


@contextmanager
def shown_log() -> Iterator[None]:
    """Show the warnings and errors that kconsumer logs while a command runs, escaped."""
    logger, handler = logging.getLogger("kconsumer"), _LogLines(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _LogLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname.lower()}: {record.getMessage()}")


class Failure(click.ClickException):
    """Ends the command with exit code 1 and its message, which may have line feeds."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(f"kconsumer: {_shown(self.format_message(), keep=chr(10))}", file=file, err=True)


class Reports:
    """Collects the reports of a consumer while a command runs.

    Until a broker has answered, connection failures are collected. When all brokers have failed, they become one error
    that ends the command. After that each is a warning, repeated after a minute at the earliest.

    Args:
        debug: whether to show log lines of all levels, with repetitions.
        clock: monotonic seconds.
    """

    def __init__(self, debug: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._debug = debug
        self._clock = clock
        self._contact = FirstContact("check -b/--bootstrap-servers")
        self._failed = False
        self._shown: dict[str, float] = {}
        self.logger = logging.Logger("kconsumer", logging.DEBUG if debug else logging.WARNING)
        self.logger.addHandler(_Handler(self))

    def connected(self) -> None:
        """Note that a broker has answered."""
        self._contact.over = True

    def error(self, error: KafkaError) -> None:
        """Handle an error: the consumer's ``error_cb``.

        After the failure of the first call, errors are ignored: close() reports the same connections again.

        Raises:
            KafkaException: no broker is reachable, and none has answered before.
        """
        if self._failed:
            return
        if self._contact.over:
            self._warn(error.str())
        else:
            self._contact.note(error)

    def explained(self, error: KafkaException) -> KafkaException:
        """Return the error of the first call, which ends the command.

        It includes the reasons if no broker answered in time. Without a known one, it names the way to the log.
        """
        self._failed = True
        explained = self._contact.explained(error)
        found = explained.args[0]
        if explained is not error or self._contact.over or self._debug or found.code() != KafkaError._TIMED_OUT:
            return explained
        return exception_for(found.code(), f"{found.str()}: -X debug=broker shows the log")

    def log(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if self._debug:
            say(f"{record.levelname.lower()}: {text}")
        elif not (isinstance(record.args, tuple) and record.args[:1] == (_FAIL,)):
            self._warn(text)

    def _warn(self, text: str) -> None:
        now = self._clock()
        if now - self._shown.get(text, now - _AGAIN_S) >= _AGAIN_S:
            self._shown[text] = now
            warn(text)


class _Handler(logging.Handler):
    def __init__(self, reports: Reports) -> None:
        super().__init__()
        self._reports = reports

    def emit(self, record: logging.LogRecord) -> None:
        self._reports.log(record)
