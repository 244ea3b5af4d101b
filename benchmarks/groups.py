"""Owns: the cost of rebalances: `python -m benchmarks.groups`, on one real broker.

Rolling bounce: 8 members under a constant rate are closed and started again one after another. It reports the
moves of partitions, and how long records waited in partitions that stayed and that moved, side by side for kconsumer,
confluent-kafka and the Java client (members as in tests/groups). Heartbeats: how late they reach the broker while the
application holds the GIL for 10 s, stamped by a proxy before the broker. Crowd: how long 200 members need to share
2,000 partitions, and how long when one more joins. Subscription: kconsumer's rates with a group, relative to its
rates without one.

Threads: the main thread, and one for the proxy. Never: judges a figure; exits with 1 only if a scenario went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import statistics
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.clients.registry import Client, python_program
from benchmarks.runner import in_turn, run_program
from benchmarks.topics import TOPICS, load
from kconsumer.testing import KafkaCluster

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "groups"))

from scene import BROKER, CLASSIC, CONSUMER, HEARTBEAT_MS, MODULES, Scene  # noqa: E402 - path set above
from verdict import Verdict  # noqa: E402 - likewise

KINDS = ("kconsumer", "confluent", "java")
CASES = {  # name → (protocol, static)
    "cooperative-sticky": (CLASSIC, False),
    "cooperative-sticky, static": (CLASSIC, True),
    "consumer protocol": (CONSUMER, False),
    "consumer protocol, static": (CONSUMER, True),
}
HEARTBEATS = {CLASSIC: 12, CONSUMER: 68}  # API keys
GIL_SECONDS = 10.0
METHODS = ("poll", "consume", "consume_batch")
SECTIONS = ("bounce", "heartbeats", "crowd", "subscription")


def bounce(cluster: KafkaCluster, kind: str, case: str, given: argparse.Namespace) -> Verdict:
    """Bounce every member once. The verdict counts only events after the first bounce."""
    protocol, static = CASES[case]
    name = "".join(c if c.isalnum() else "-" for c in f"{kind}-{case}")
    with Scene(cluster, name, protocol, given.partitions) as scene:
        scene.write(given.rate)
        group = [scene.member(kind, f"m{n}", static=static) for n in range(given.members)]
        scene.stable(group)
        scene.flowing(group)
        began = time.monotonic()
        for n in range(given.members):
            scene.close(group[n])
            if not static:  # the others take over, whatever the client's start time
                scene.stable(group[:n] + group[n + 1:])
            group[n] = scene.member(kind, f"m{n}", static=static)
            scene.stable(group)
            scene.flowing(group)
            time.sleep(0.5)
        return scene.verdict(silence_s=None, since=began)


def row(kind: str, case: str, found: Verdict) -> dict[str, Any]:
    kept = list(found.silence.values())
    moved = sorted(seconds for waits in found.handover.values() for seconds in waits)
    return {
        "client": kind, "case": case, "moves": len(found.moves), "repeated": found.repeated,
        "kept_worst_s": max(found.silence.values(), default=0.0),
        "kept_median_of_partitions_s": statistics.median(kept) if kept else 0.0,
        "moved_worst_s": max(moved, default=0.0), "moved_median_s": statistics.median(moved) if moved else 0.0,
    }


class Proxy:
    """A TCP proxy that records when each request arrived, by client id and API key. It runs in a separate thread."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], list[float]] = defaultdict(list)
        self._target = 0
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self, target: int) -> None:
        self._target = target
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        answers = self._loop.create_task(self._answers(back_reader, writer))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                size = await reader.readexactly(4)
                request = await reader.readexactly(struct.unpack(">i", size)[0])
                self._note(request)
                back_writer.write(size + request)
                await back_writer.drain()
        answers.cancel()
        back_writer.close()
        writer.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 20):
                writer.write(data)
                await writer.drain()
        writer.close()

    def _note(self, request: bytes) -> None:
        key, _, _, length = struct.unpack_from(">hhih", request)
        self.seen[request[10:10 + max(length, 0)].decode(), key].append(time.monotonic())


@contextlib.contextmanager
def proxied_cluster() -> Iterator[tuple[KafkaCluster, Proxy]]:
    """Start a broker that advertises the proxy's address."""
    proxy = Proxy()
    config = {**BROKER, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
    with KafkaCluster(1, config=config, quick_start=False) as cluster:
        proxy.start(int(cluster.bootstrap_servers.rsplit(":", 1)[1]))
        try:
            yield cluster, proxy
        finally:
            proxy.stop()


def heartbeats(kinds: list[str]) -> list[dict[str, Any]]:
    """Return the delays of heartbeats beyond their interval during GIL_SECONDS without the GIL."""
    found = []
    with proxied_cluster() as (cluster, proxy):
        for kind in kinds:
            for protocol, key in HEARTBEATS.items():
                with Scene(cluster, f"heartbeats-{kind}-{protocol}", protocol) as scene:
                    scene.write(600)
                    name = f"{kind}-{protocol}"
                    member = scene.member(kind, name)
                    scene.stable([member])
                    scene.flowing([member])
                    time.sleep(2.0)
                    began = time.monotonic()
                    member.do("hold_gil", seconds=GIL_SECONDS)
                    stamps = [t for t in proxy.seen[name, key] if began <= t <= began + GIL_SECONDS]
                    late = [1000 * (b - a) - HEARTBEAT_MS for a, b in itertools.pairwise(stamps)]
                    found.append({"client": kind, "protocol": protocol, "heartbeats": len(stamps),
                                  "late_median_ms": statistics.median(late) if late else None,
                                  "late_worst_ms": max(late, key=abs) if late else None})
                    scene.verdict(silence_s=None)
    return found


def crowd(kinds: list[str], members: int, partitions: int) -> list[dict[str, Any]]:
    """Run one process with many consumers for each library and protocol."""
    found = []
    with KafkaCluster(1, config={"group.consumer.max.size": members + 1}, quick_start=False) as cluster:
        cluster.create_topic("crowd", partitions, config={"segment.index.bytes": 4096})
        for kind in kinds:
            for protocol in HEARTBEATS:
                command = [sys.executable, "-m", "benchmarks.clients.crowd_drop_in", "--bootstrap",
                           cluster.bootstrap_servers, "--topic", "crowd", "--partitions", str(partitions), "--members",
                           str(members), "--protocol", protocol, "--library", MODULES[kind]]
                entry = json.loads(run_program(command, f"crowd {kind}")[0])
                found.append({"client": kind, "protocol": protocol, **entry})
                print(found[-1], flush=True)
    return found


def subscription(rounds: int) -> list[dict[str, Any]]:
    """Run kconsumer with assign() and in a separate group, in turns: the median ratio of the rates for each method."""
    found = []
    topic = TOPICS["plain"]
    clients = {}
    for method in METHODS:
        for protocol in (None, *HEARTBEATS):
            more = [] if protocol is None else ["--group", protocol]
            clients[method, protocol] = Client(f"{method} {protocol or 'assign'}", "", python_program(
                "drop_in", "--library", "kconsumer", "--method", method, *more), "")
    with KafkaCluster(1, heap="1g", config={"group.initial.rebalance.delay.ms": 0}, quick_start=False) as cluster:
        load(cluster, topic)
        samples, failed = in_turn(clients.values(), cluster.bootstrap_servers, topic, rounds, print)
    if failed:
        raise SystemExit(f"failed: {failed}")
    rates = {key: [s.rate for s in samples if s.client == client.name] for key, client in clients.items()}
    for method in METHODS:
        for protocol in HEARTBEATS:
            pairs = list(zip(rates[method, protocol], rates[method, None], strict=True))
            ratios = sorted(own / other for own, other in pairs)
            found.append({"method": method, "protocol": protocol, "rounds": rounds,
                          "records_per_s": statistics.median(own for own, _ in pairs),
                          "ratio_to_assign": statistics.median(ratios), "least": ratios[0], "most": ratios[-1]})
    return found


def table(rows: list[dict[str, Any]]) -> str:
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for entry in rows:
        shown = (f"{value:.3f}" if isinstance(value, float) else str(value) for value in entry.values())
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS), help="clients, separated by commas")
    parser.add_argument("--cases", default=";".join(CASES), help="separated by semicolons")
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--rate", type=float, default=10_000, help="records a second")
    parser.add_argument("--rounds", type=int, default=15, help="of the subscription section")
    parser.add_argument("--sections", default=",".join(SECTIONS), help="separated by commas")
    given = parser.parse_args()
    kinds, results = given.kinds.split(","), {}
    sections = given.sections.split(",")
    if "bounce" in sections:
        rows = []
        with KafkaCluster(1, config=BROKER, quick_start=False) as cluster:
            for case in given.cases.split(";"):
                for kind in kinds:
                    found = bounce(cluster, kind, case, given)
                    rows.append(row(kind, case, found))
                    print(rows[-1], flush=True)
        results["bounce"] = rows
        print(table(rows))
    python = [kind for kind in kinds if kind != "java"]
    if "heartbeats" in sections:
        results["heartbeats"] = heartbeats(python)
        print(table(results["heartbeats"]))
    if "crowd" in sections:
        results["crowd"] = crowd(python, members=200, partitions=2000)
        print(table(results["crowd"]))
    if "subscription" in sections:
        results["subscription"] = subscription(given.rounds)
        print(table(results["subscription"]))
    out = ROOT / "build" / "bench"
    out.mkdir(parents=True, exist_ok=True)
    (out / "groups.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
