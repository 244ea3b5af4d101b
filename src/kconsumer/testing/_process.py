"""Owns: child processes that end with this one, and reserved loopback ports.

Threads: one at a time: the thread that owns the cluster. Never: uses Kafka.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kconsumer.testing._errors import ClusterError


class Ports:
    """Ports on 127.0.0.1, reserved until the cluster ends.

    On Linux the kernel gives the port of a bound socket with SO_REUSEADDR, which does not listen, to no other process.
    A server that names the port can still bind it. So there is no race, even during a broker's restart. On other
    systems another process could take the port before the broker binds it.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self) -> int:
        """Return a free port and reserve it."""
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        if sys.platform == "linux":
            self._held.append(holder)
        else:
            holder.close()
        return port

    def release(self) -> None:
        """Release all ports."""
        while self._held:
            self._held.pop().close()


class Children:
    """Starts programs with their output in files. They die with this process."""

    def __init__(self, directory: Path) -> None:
        """The watchdog removes ``directory`` if this process dies."""
        # -I -S: only the standard library, in any environment. A new session: Ctrl-C does not reach it.
        script = Path(__file__).with_name("_watchdog.py")
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        self._write_to_watchdog(f"rm {directory}")

    def _write_to_watchdog(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        try:
            self._watchdog.stdin.write(os.fsencode(line) + b"\n")
            self._watchdog.stdin.flush()
        except BrokenPipeError:
            raise ClusterError("the watchdog process of the test cluster was killed") from None

    def spawn(
        self, command: Sequence[str], log: Path, cwd: Path, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """Run a program; append stdout and stderr to ``log``. ``stdin`` as for Popen."""
        with open(log, "ab") as out:
            child = subprocess.Popen(command, stdin=stdin, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                                     start_new_session=True)
        self._write_to_watchdog(f"+{child.pid}")
        return child

    def pause(self, child: subprocess.Popen[bytes]) -> None:
        """SIGSTOP a program and wait until all its threads have stopped."""
        child.send_signal(signal.SIGSTOP)
        if child.returncode is None and sys.platform == "linux":
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self, child: subprocess.Popen[bytes]) -> None:
        """SIGCONT a stopped program."""
        child.send_signal(signal.SIGCONT)

    def end(self, child: subprocess.Popen[bytes], graceful_s: float = 0.0) -> None:
        """End a program: SIGTERM for ``graceful_s`` seconds if positive, then SIGKILL."""
        if child.poll() is None and graceful_s > 0:
            child.send_signal(signal.SIGTERM)
            self.resume(child)  # a stopped process handles SIGTERM only after it continues
            try:
                child.wait(graceful_s)
            except subprocess.TimeoutExpired:
                pass
        if child.poll() is None:
            child.kill()
            child.wait()
        self._write_to_watchdog(f"-{child.pid}")

    def close(self) -> None:
        """End the watchdog, which kills all remaining programs and removes the directory."""
        assert self._watchdog.stdin is not None
        try:
            self._write_to_watchdog("end")  # a forked child may hold the pipe open
        except ClusterError:
            pass  # it was killed
        self._watchdog.stdin.close()
        self._watchdog.wait()
