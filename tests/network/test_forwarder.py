"""The paths of the forwarder do what the scenes rely on: cuts by direction, forgotten connections, delay and MTU.

Run as a program it tries the paths in namespaces, and prints what it saw as JSON.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time

import pytest
from net import BROKERS, MEMBERS, Net, NoNamespacesError

IMPOSSIBLE = 77
PORT = 7_001
SILENT_S = 1.5  # longer than the first repetitions of TCP
BIG = 200_000


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("c++"), reason="needs Linux and a C++ compiler")
def test_paths() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    if done.returncode == IMPOSSIBLE:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen.pop("delay_s") >= 0.2
    assert seen == {
        "open": True, "cut to broker": [False, True], "after the cut": [True, True], "forgotten": [False, False],
        "new connection": True, "small packets": BIG, "the large one was refused": True,
    }


def _arrives(source: socket.socket, target: socket.socket) -> bool:
    """Send a byte; whether it arrives in time."""
    source.send(b"x")
    target.settimeout(SILENT_S)
    try:
        return target.recv(1) == b"x"
    except TimeoutError:
        return False


def _try_paths(net: Net) -> dict[str, object]:
    net.enter(BROKERS[0])
    listener = socket.create_server((net.address(BROKERS[0]), PORT))
    net.enter(MEMBERS)

    def connect() -> tuple[socket.socket, socket.socket]:
        member = socket.create_connection((net.address(BROKERS[0]), PORT), 10)
        return member, listener.accept()[0]

    seen: dict[str, object] = {}
    member, broker = connect()
    seen["open"] = _arrives(member, broker) and _arrives(broker, member)
    net.between(BROKERS, "drop=1", to_members=False)
    seen["cut to broker"] = [_arrives(member, broker), _arrives(broker, member)]
    net.between(BROKERS, "drop=0")
    broker.settimeout(10)
    seen["after the cut"] = [broker.recv(1) == b"x", _arrives(broker, member)]
    net.between(BROKERS, "delay_us=100000")
    began = time.monotonic()
    _arrives(member, broker), _arrives(broker, member)
    seen["delay_s"] = time.monotonic() - began
    net.clear()
    net.order(f"forget {MEMBERS} {BROKERS[0]}")
    seen["forgotten"] = [_arrives(member, broker), _arrives(broker, member)]
    member, broker = connect()
    seen["new connection"] = _arrives(member, broker) and _arrives(broker, member)
    net.order("offload 0")
    net.between(BROKERS, "mtu=600")
    dropped = int(net.order("stats").split()[2])
    member.sendall(b"x" * BIG)
    member.shutdown(socket.SHUT_WR)
    broker.settimeout(10)
    seen["small packets"] = sum(len(part) for part in iter(lambda: broker.recv(65536), b""))
    seen["the large one was refused"] = int(net.order("stats").split()[2]) > dropped
    return seen


def main() -> int:
    try:
        net = Net()
    except NoNamespacesError as error:
        print(error, file=sys.stderr)
        return IMPOSSIBLE
    net.clear()
    print(json.dumps(_try_paths(net)))
    net.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
