"""Owns: running scenarios side by side: most of a scenario is waiting for a timer of the group.

Threads: the test session's, and WORKERS more that run scenarios. When the first test of this folder is called, all
selected scenarios start, in order; each test then returns its result. Never: starts a cluster that no test needs.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from scene import BROKER, KEPT, Scene

from kconsumer.testing import KafkaCluster

WORKERS = 5
OLDER = "3.9.1"


class Scenes:
    """Makes scenes on clusters that are started when first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clusters: dict[str, KafkaCluster] = {}
        self._three = threading.Lock()
        self._running: set[Scene] = set()

    def cluster(self, kind: str = "one") -> KafkaCluster:
        """``one`` and ``older`` are shared by scenes that do nothing to brokers; ``three`` comes through `faulty`."""
        with self._lock:
            if kind not in self._clusters:
                made = {
                    "one": lambda: KafkaCluster(1, config=BROKER),
                    "older": lambda: KafkaCluster(1, version=OLDER, config={"group.min.session.timeout.ms": 1000}),
                    "three": lambda: KafkaCluster(3, config=BROKER, heap="384m"),
                }[kind]()
                made.start()
                self._clusters[kind] = made
            return self._clusters[kind]

    @contextmanager
    def __call__(self, name: str, protocol: str, cluster: KafkaCluster | None = None, **more: Any) -> Iterator[Scene]:
        with Scene(cluster or self.cluster(), name, protocol, **more) as scene:
            self._running.add(scene)
            try:
                yield scene
            finally:
                self._running.discard(scene)

    @contextmanager
    def faulty(self, name: str, *protocols: str, **more: Any) -> Iterator[tuple[KafkaCluster, list[Scene]]]:
        """Three brokers to break, and a scene for each protocol that goes through it. One scenario at a time."""
        with self._three, ExitStack() as stack:
            cluster = self.cluster("three")
            scenes = [stack.enter_context(self(f"{name}-{protocol}", protocol, cluster, **more))
                      for protocol in protocols]
            try:
                yield cluster, scenes
            except BaseException:
                KEPT.mkdir(parents=True, exist_ok=True)
                for broker in cluster.broker_ids:
                    shutil.copy(cluster.log_path(broker), KEPT / f"{name}-broker-{broker}.log")
                raise
            finally:
                for broker in cluster.broker_ids:
                    if cluster.pid(broker) is None:
                        cluster.restart(broker)
                    else:
                        cluster.resume(broker)

    def close(self) -> None:
        for scene in list(self._running):  # an interrupted session: their threads end as their processes do
            for process in scene.processes:
                process.kill()
        for cluster in self._clusters.values():
            cluster.stop()


class Ahead:
    """The scenarios of a session on their way."""

    def __init__(self, items: list[pytest.Function], scenes: Scenes) -> None:
        self._scenes = scenes
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="scenario")
        self._futures: dict[str, Future[None]] = {}
        for item in items:
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            self._futures[item.nodeid] = self._pool.submit(item.obj, scenes, **parameters)

    def result(self, item: pytest.Function) -> None:
        """Return the result of a scenario. After the last one the clusters end: five idle brokers use CPU time."""
        try:
            self._futures.pop(item.nodeid).result()
        finally:
            if not self._futures:
                self._scenes.close()

    def close(self) -> None:
        for future in self._futures.values():
            future.cancel()

    def join(self) -> None:
        self._pool.shutdown()
