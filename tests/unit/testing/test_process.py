"""Ports that stay ours, and child processes that end with us."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from kconsumer.testing import ClusterError
from kconsumer.testing._probe import metadata
from kconsumer.testing._process import Children, Ports

SLEEP = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]


def wait_for_end(pid: int) -> None:
    """Returns when a process that is not our child is gone; the test's timeout bounds it."""
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process hold a port for another")
def test_a_reserved_port_is_not_assigned_twice_but_can_be_bound() -> None:
    ports = Ports()
    port = ports.take()
    others = [socket.socket() for _ in range(200)]
    for other in others:
        other.bind(("127.0.0.1", 0))
    assert port not in {other.getsockname()[1] for other in others}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 2)
    for _ in range(2):  # a restart finds it free again
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        socket.create_connection(("127.0.0.1", port), 2).close()
        server.close()
    ports.release()
    for other in others:
        other.close()


def test_ports_differ() -> None:
    ports = Ports()
    taken = [ports.take() for _ in range(50)]
    assert len(set(taken)) == 50
    ports.release()


def test_a_child_writes_its_log_and_ends_gracefully_or_not(tmp_path: Path) -> None:
    children = Children(tmp_path / "removed")
    log = tmp_path / "log"
    graceful = children.spawn(SLEEP, log, tmp_path)
    while "up" not in log.read_text():
        pass
    children.end(graceful, graceful_s=30)
    assert graceful.returncode == -signal.SIGTERM
    killed = children.spawn(SLEEP, log, tmp_path)
    children.pause(killed)
    children.end(killed)
    assert killed.returncode == -signal.SIGKILL
    children.end(killed)  # ending what has ended changes nothing
    assert killed.returncode == -signal.SIGKILL
    children.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_paused_child_stands_still(tmp_path: Path) -> None:
    children = Children(tmp_path / "removed")
    busy = [children.spawn(["sh", "-c", "while :; do :; done"], tmp_path / "log", tmp_path) for _ in range(8)]
    try:
        for _ in range(5):
            for child in busy:
                children.pause(child)
                state = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
                assert state == "T"
                children.resume(child)
        children.end(busy[0])
        children.pause(busy[0])  # what has ended is left alone
    finally:
        for child in busy:
            children.end(child)
        children.close()


def test_a_stubborn_child_is_killed_after_its_time(tmp_path: Path) -> None:
    children = Children(tmp_path / "removed")
    log = tmp_path / "log"
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP[2]
    child = children.spawn([sys.executable, "-c", deaf], log, tmp_path)
    while "up" not in log.read_text():
        pass
    children.end(child, graceful_s=0.1)
    assert child.returncode == -signal.SIGKILL
    children.close()


@pytest.mark.parametrize("how", ["os._exit(0)", "os.kill(os.getpid(), 9)", "sys.exit(3)"])
def test_children_and_files_go_with_the_parent(tmp_path: Path, how: str) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    script = f"""
        import os, sys
        from pathlib import Path
        from kconsumer.testing._process import Children
        children = Children(Path({str(directory)!r}))
        child = children.spawn({SLEEP!r}, Path({str(tmp_path / "log")!r}), Path("."))
        child.returncode = 0  # no warning about a child still running
        print(child.pid, flush=True)
        {how}
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    wait_for_end(int(done.stdout))
    while directory.exists():
        pass


def test_children_go_with_the_parent_though_a_forked_child_lives_on(tmp_path: Path) -> None:
    script = f"""
        import os, time
        from pathlib import Path
        from kconsumer.testing._process import Children
        children = Children(Path({str(tmp_path / "data")!r}))
        child = children.spawn({SLEEP!r}, Path({str(tmp_path / "log")!r}), Path("."))
        forked = os.fork()  # inherits the watchdog's pipe
        if forked == 0:
            os.close(1)
            os.close(2)
            time.sleep(600)
        print(child.pid, forked, flush=True)
        os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    child, forked = map(int, done.stdout.split())
    wait_for_end(child)
    os.kill(forked, signal.SIGKILL)


def test_a_close_does_not_wait_for_a_forked_child(tmp_path: Path) -> None:
    script = f"""
        import os, time
        from pathlib import Path
        from kconsumer.testing._process import Children
        children = Children(Path({str(tmp_path / "data")!r}))
        reader, writer = os.pipe()
        forked = os.fork()  # inherits the watchdog's pipe
        if forked == 0:
            os.read(reader, 1)
            os._exit(0)
        children.close()
        os.write(writer, b"x")
        os.waitpid(forked, 0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


def test_a_killed_watchdog_is_reported(tmp_path: Path) -> None:
    children = Children(tmp_path / "removed")
    os.kill(children._watchdog.pid, signal.SIGKILL)
    children._watchdog.wait()
    with pytest.raises(ClusterError, match="watchdog process of the test cluster was killed"):
        children.spawn([sys.executable, "-c", "pass"], tmp_path / "log", tmp_path)


@pytest.mark.parametrize(
    "answer, error",
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "does not speak Kafka"),
        (b"\x00\x00\x00\x08\x00", "closed the connection"),
    ],
)
def test_a_server_that_is_not_a_kafka_broker(answer: bytes, error: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            link, _ = server.accept()
            with link:
                link.recv(1024)
                link.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(OSError, match=error):
            metadata(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
