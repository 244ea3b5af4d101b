"""Handlers that a worker process imports."""

from __future__ import annotations

import os
import signal
import time
from typing import Any


class Note:
    """Appends the value of each record to a file, in one write. Some values do something else before."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, message: Any) -> None:
        if message.value() == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if message.value() == b"hang":
            time.sleep(3600)
        if message.value() == b"raise":
            raise ArithmeticError("asked for")
        if message.value() == b"odd":
            raise Odd(1, 2)
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, message.value() + b" %d\n" % os.getpid())
        finally:
            os.close(file)


class Odd(Exception):
    """An exception that cannot be restored from its arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("odd")
