"""Fixtures that every folder of tests may use: the clusters, started once a session and only when asked for."""

from __future__ import annotations

import base64
import faulthandler
import itertools
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from kconsumer.testing import EmbeddedCluster, KafkaCluster

_names = itertools.count(1)
_HANGS_SECONDS = 300  # the stop of all clusters of a session takes a few
_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """No example of a property has a time limit: a busy machine would break it.

    A job that a shell put into the background ignores SIGINT, and so would every program that a test starts.
    """
    config.stash[_stderr] = os.dup(2)  # while pytest does not capture it
    hypothesis.settings.register_profile("no deadline", deadline=None)
    hypothesis.settings.load_profile("no deadline")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _ending(config: pytest.Config) -> Iterator[None]:
    """Ends this process with the stacks of its threads if the block hangs: `timeout` limits only what a test does."""
    faulthandler.dump_traceback_later(_HANGS_SECONDS, exit=True, file=config.stash[_stderr])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with _ending(item.config):
        return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    """A thread that is alive at the end of the process may hang it, too."""
    faulthandler.dump_traceback_later(_HANGS_SECONDS, exit=True, file=config.stash[_stderr])


@pytest.fixture
def freed_memory_returns() -> None:
    """For tests that measure memory: AddressSanitizer (`make sanitize`) keeps what is freed."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("AddressSanitizer keeps what is freed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`, a file's tests stay in one process, in their order; tests/groups does as a whole, since its scenarios
    are started together."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "tests/groups" if file.startswith("tests/groups/") else file

    return ByFile(config, log)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes topic names that no other test uses: session clusters are shared."""
    test = "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]
    return lambda: f"{test}-{next(_names)}"


@pytest.fixture(scope="session")
def embedded() -> Iterator[EmbeddedCluster]:
    """An embedded cluster of 3 brokers. A test that injects faults starts its own."""
    with EmbeddedCluster(3) as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=0)  # a first member would wait 3 s for others
        yield cluster


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """A real Kafka of one broker. Missing Java is an error, not a skip: without it nothing would be proved."""
    with KafkaCluster(1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka3() -> Iterator[KafkaCluster]:
    """A real Kafka of three brokers, each in a separate rack. A test that kills one restarts it before it ends."""
    with KafkaCluster(3, racks=["rack-1", "rack-2", "rack-3"]) as cluster:
        yield cluster


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _line(record: Mapping[str, Any]) -> str:
    line = dict(record)
    for name in ("key", "value"):
        if name in line:
            line[name] = _text(line[name])
    if "headers" in line:
        line["headers"] = [[name, _text(value)] for name, value in line["headers"]]
    return json.dumps(line)


@pytest.fixture(scope="session")
def java_produce() -> Callable[..., list[tuple[int, int]]]:
    """``java_produce(cluster, topic, records, codec="none", **properties)``: writes with the Java producer.

    A record is a mapping with any of key, value (bytes or None), headers (pairs), timestamp (ms), partition; or one of
    the directives ``{"flush": True}`` and ``{"transaction": "begin" | "commit" | "abort"}`` (the latter with
    ``transactional_id=…``). Properties are the producer's, with underscores for dots. Returns (partition, offset) of
    each record in order.
    """

    def produce(
        cluster: KafkaCluster, topic: str, records: Iterable[Mapping[str, Any]], codec: str = "none", **properties: Any
    ) -> list[tuple[int, int]]:
        settings = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
        out = cluster.run_java(
            Path(__file__).parent / "java" / "ProduceMatrix.java",
            [cluster.bootstrap_servers, topic, codec, *settings],
            stdin="\n".join(map(_line, records)).encode(),
        )
        places = [json.loads(line) for line in out.splitlines()]
        return [(place["partition"], place["offset"]) for place in places]

    return produce
