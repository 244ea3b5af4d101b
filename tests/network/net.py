"""Owns: a network of namespaces joined by the compiled forwarder (forwarder.cpp), and three Kafka brokers in it.

Nodes: brokers 1 to 3, the control (this process, the producer: no fault reaches its paths to the brokers) and the
members. Namespaces end with the forwarder, the forwarder with this process.
Threads: one. Never: changes the network of the machine: everything happens in namespaces made here.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from kconsumer.testing import KafkaCluster

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "network"
BROKERS = (1, 2, 3)
CONTROL, MEMBERS, NODES = 4, 5, 5
_CLONE_NEWNET = 0x40000000


class NoNamespacesError(Exception):
    """Neither root nor a user namespace may make network namespaces and TUN devices here."""


def _compiled() -> Path:
    source, program = HERE / "forwarder.cpp", BUILD / "forwarder"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["c++", "-O2", "-std=c++17", "-o", str(made), str(source)], check=True)
        made.rename(program)
    return program


class Net:
    """The namespaces and the paths between them. This process moves into the control's namespace."""

    def __init__(self) -> None:
        self._forwarder = subprocess.Popen(
            [str(_compiled()), str(NODES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        assert self._forwarder.stdout is not None and self._forwarder.stderr is not None
        ready = self._forwarder.stdout.readline().split()
        if not ready:
            raise NoNamespacesError(self._forwarder.stderr.read().strip() or "the forwarder did not start")
        self._spaces = [f"/proc/{self._forwarder.pid}/fd/{number}" for number in ready[1:]]
        self.enter(CONTROL)

    def close(self) -> None:
        """End the forwarder, and with it the network."""
        assert self._forwarder.stdin is not None
        self._forwarder.stdin.close()
        self._forwarder.wait(10)

    def enter(self, node: int) -> None:
        """Move this thread to a node: its further sockets and processes belong there."""
        space = os.open(self._spaces[node - 1], os.O_RDONLY | os.O_CLOEXEC)
        if ctypes.CDLL(None, use_errno=True).setns(space, _CLONE_NEWNET) < 0:
            raise NoNamespacesError(f"setns: {os.strerror(ctypes.get_errno())}")
        os.close(space)

    def inside(self, node: int) -> list[str]:
        """Return the start of a command that runs in a node's namespace."""
        return ["nsenter", f"--net={self._spaces[node - 1]}", "--"]

    @staticmethod
    def address(node: int) -> str:
        """Return a node's IPv4 address."""
        return f"10.77.0.{node}"

    def order(self, command: str) -> str:
        """Send a command to the forwarder (see forwarder.cpp) and return its answer."""
        assert self._forwarder.stdin is not None and self._forwarder.stdout is not None
        self._forwarder.stdin.write(command + "\n")
        self._forwarder.stdin.flush()
        return self._forwarder.stdout.readline().strip()

    def forwarded_bytes(self) -> int:
        """Return the bytes of all packets forwarded so far."""
        return int(self.order("stats").split()[1])

    def cpu_s(self) -> float:
        """Return the CPU time that the forwarder has used."""
        fields = Path(f"/proc/{self._forwarder.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def between(self, brokers: Sequence[int], settings: str, *, to_brokers: bool = True,
                to_members: bool = True) -> None:
        """Change the paths between the members and some brokers, in one direction or both."""
        for broker in brokers:
            if to_brokers:
                self.order(f"link {MEMBERS} {broker} {settings}")
            if to_members:
                self.order(f"link {broker} {MEMBERS} {settings}")

    def isolate(self, broker: int, drop: int) -> None:
        """Cut a broker from the other brokers, but not from its clients, or undo that."""
        for other in BROKERS:
            if other != broker:
                self.order(f"link {broker} {other} drop={drop}")
                self.order(f"link {other} {broker} drop={drop}")

    def clear(self) -> None:
        """Make every path fast and without loss again."""
        self.order("link * * drop=0 delay_us=0 jitter_us=0 loss_ppm=0 rate_bps=0 mtu=0")
        self.order("offload 1")


class NetCluster(KafkaCluster):
    """Three brokers, each in its node of the network."""

    def __init__(self, net: Net, **config: object) -> None:
        super().__init__(3, config=config, heap="256m")
        self._net = net

    def _place(self, number: int) -> tuple[str, Sequence[str]]:
        return self._net.address(number), self._net.inside(number)


class NetworkOfBrokers:
    """A network and its brokers, as a context manager."""

    def __init__(self, **config: object) -> None:
        self.net = Net()
        self.cluster = NetCluster(self.net, **config)

    def __enter__(self) -> NetworkOfBrokers:
        try:
            self.net.clear()
            self.cluster.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop the brokers, then the network."""
        self.cluster.stop()
        self.net.close()
