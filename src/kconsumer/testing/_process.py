"""Owns: child processes that cannot outlive this one, and loopback ports that no other process can take.

Threads: one at a time, that of the cluster's owner. Never: knows Kafka.
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
    """Ports on 127.0.0.1, held for the life of the cluster.

    On Linux a socket that is bound with SO_REUSEADDR but does not listen keeps the kernel from giving its port to
    any other process, while a server that names the port may still bind it: no race, also across a broker's restart.
    Elsewhere the port is only chosen (and could in theory be taken before the broker binds it).
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self) -> int:
        """A free port."""
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
        """Let all ports go."""
        while self._held:
            self._held.pop().close()


class Children:
    """Starts programs, their output in files, and kills them with this process, however it ends."""

    def __init__(self, directory: Path) -> None:
        """``directory`` is removed by the watchdog should this process die."""
        # -I -S: nothing but the standard library, whatever the environment; a new session: Ctrl-C is not for it.
        script = Path(__file__).with_name("_watchdog.py")
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        self._tell(f"rm {directory}")

    def _tell(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        try:
            self._watchdog.stdin.write(os.fsencode(line) + b"\n")
            self._watchdog.stdin.flush()
        except BrokenPipeError:
            raise ClusterError("the watchdog process of the test cluster was killed") from None

    def spawn(
        self, command: Sequence[str], log: Path, cwd: Path, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """Run a program; stdout and stderr are appended to ``log``. ``stdin`` as for Popen."""
        with open(log, "ab") as out:
            child = subprocess.Popen(command, stdin=stdin, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                                     start_new_session=True)
        self._tell(f"+{child.pid}")
        return child

    def pause(self, child: subprocess.Popen[bytes]) -> None:
        """SIGSTOP a program and wait until all its threads stand: the kernel lets each run until it looks."""
        child.send_signal(signal.SIGSTOP)
        if child.returncode is None and sys.platform == "linux":
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self, child: subprocess.Popen[bytes]) -> None:
        """SIGCONT a paused program."""
        child.send_signal(signal.SIGCONT)

    def end(self, child: subprocess.Popen[bytes], graceful_s: float = 0.0) -> None:
        """End a program: SIGTERM and a wait of ``graceful_s`` seconds if that is positive, then SIGKILL."""
        if child.poll() is None and graceful_s > 0:
            child.send_signal(signal.SIGTERM)
            self.resume(child)  # a stopped process acts on SIGTERM only once it goes on
            try:
                child.wait(graceful_s)
            except subprocess.TimeoutExpired:
                pass
        if child.poll() is None:
            child.kill()
            child.wait()
        self._tell(f"-{child.pid}")

    def close(self) -> None:
        """Let the watchdog end; it kills whatever still runs and removes the directory."""
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        self._watchdog.wait()
