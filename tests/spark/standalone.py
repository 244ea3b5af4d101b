"""A Spark master and its workers, each a separate process, for tests that kill them.

Owns: Standalone, processes(), kill_one(). Threads: the test's. Never: looks into Spark; its logs tell all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_START_S = 300.0  # a JVM, on a machine that may be busy
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
# What of our environment a cluster's processes get besides: all else would be there on no other host.
_PASSED_ON = ("HOME", "PATH", "JAVA_HOME", "LANG", "TMPDIR")


class Standalone:
    """A standalone cluster on loopback: a context manager.

    Args:
        folder: for logs, and ``work-1``, ``work-2``, … of the workers, below which executors run.
        home: of Spark; None: that of the pyspark here.
        workers: how many.
        environment: variables of all processes, which have no others but the most common ones.
        hosts: each worker has a separate address, 127.0.0.2 and so on (Linux has them): Spark runs no task twice
            at once on one host.
    """

    def __init__(
        self, folder: Path, home: Path | None = None, workers: int = 2, environment: Mapping[str, str] | None = None,
        hosts: bool = False,
    ) -> None:
        self._folder = folder
        self._home = home or _home_of_pyspark()
        self._workers = range(1, workers + 1)
        self._environment = dict(environment or {})
        self._hosts = hosts
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.master = ""

    def __enter__(self) -> Standalone:
        try:
            self._launch("master", _MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            self.master = self._wait_for("master", "Starting Spark master at ").split()[0]
            for number in self._workers:
                self._launch_worker(number)
            for number in self._workers:
                self._wait_for(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self._end()

    @property
    def workers(self) -> list[int]:
        """Their numbers."""
        return list(self._workers)

    def work(self, number: int) -> Path:
        """The folder below which a worker's executors run."""
        return self._folder / f"work-{number}"

    def executors(self) -> list[int]:
        """The processes of all executors."""
        return [pid for number in self._workers
                for pid in descendants(self._processes[f"worker-{number}"].pid, "CoarseGrainedExecutorBackend")]

    def kill_worker(self, number: int) -> None:
        """SIGKILL to a worker and to its executors with their Python processes, as if their host had gone."""
        worker = self._processes[f"worker-{number}"]
        for pid in [*descendants(worker.pid), worker.pid]:
            kill_one([pid])
        worker.wait(30)

    def restart_worker(self, number: int) -> None:
        """Start a worker that was killed again."""
        self._launch_worker(number)
        self._wait_for(f"worker-{number}", "Successfully registered with master")

    # ---- how

    def _launch_worker(self, number: int) -> None:
        host = f"127.0.0.{number + 1}" if self._hosts else "127.0.0.1"
        self._launch(f"worker-{number}", _WORKER, "--host", host, "--cores", "1", "--memory", "1g",
                     "--webui-port", "0", "--work-dir", str(self.work(number)), self.master, host=host)

    def _launch(self, name: str, *command: str, host: str = "127.0.0.1") -> None:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {"SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": host, "SPARK_NO_DAEMONIZE": "1",
                        "SPARK_DAEMON_MEMORY": "256m", **self._environment}
        with open(self._folder / f"{name}.log", "wb") as log:
            self._processes[name] = subprocess.Popen(
                [str(self._home / "bin" / "spark-class"), *command], stdout=log, stderr=log, cwd=self._folder,
                stdin=subprocess.DEVNULL, env=environment)

    def _end(self) -> None:
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()

    def _wait_for(self, name: str, text: str) -> str:
        """The rest of the line after the text in a process's log."""
        deadline = time.monotonic() + _START_S
        while True:
            _, found, rest = (self._folder / f"{name}.log").read_text(errors="replace").partition(text)
            if found and "\n" in rest:
                return rest.splitlines()[0]
            assert self._processes[name].poll() is None and time.monotonic() < deadline, self.log(name)
            time.sleep(0.1)

    def log(self, name: str) -> str:
        """The log of a process."""
        return (self._folder / f"{name}.log").read_text(errors="replace")


def _home_of_pyspark() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


# ---- processes

def processes() -> Iterator[tuple[int, str]]:
    """(pid, command line) of all that run here."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue


def ancestors(pid: int) -> Iterator[int]:
    """Its parent, and so on."""
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return
        yield pid


def descendants(parent: int, contains: str = "") -> list[int]:
    """Processes below another one, whose command lines have the text."""
    return [pid for pid, command in processes() if contains in command and parent in ancestors(pid)]


def kill_one(pids: list[int]) -> None:
    """SIGKILL to the first; it may just have ended by itself."""
    for pid in pids[:1]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def wait_until(condition: Callable[[], object], what: Callable[[], str], seconds: float = 300.0) -> None:
    """Until it is true; `what` is said where it does not come to be."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)
