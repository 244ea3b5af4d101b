"""Which objects the collections between tasks examine."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kconsumer.spark import garbage
from kconsumer.testing import EmbeddedCluster
from tests.spark.conftest import AsDaemon

PROGRAM = Path(__file__).with_name("worker_garbage.py")


@pytest.fixture(autouse=True)
def melt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(garbage, "_frozen", False)
    assert gc.get_freeze_count() == 0
    yield
    gc.unfreeze()


def manager(tasks: list[Callable[[], None]]) -> None:
    """As pyspark's daemon calls the tasks of a worker."""
    for task in tasks:
        code = task()  # noqa: F841


def manager_of_another_version(tasks: list[Callable[[], None]]) -> None:
    for task in tasks:
        result = task()  # noqa: F841


def nothing() -> None:
    pass


def test_a_worker_settles_once(as_daemon: AsDaemon):
    counts = []

    def count() -> None:
        counts.append(gc.get_freeze_count())

    as_daemon(manager)([garbage.freeze_imports])
    count()
    kept = [[] for _ in range(100)]
    as_daemon(manager)([garbage.freeze_imports, count])
    assert counts[0] > 1000
    assert counts[1] == counts[0]
    assert all(gc.is_tracked(one) for one in kept)


def test_a_worker_that_has_run_another_task_is_left_alone(as_daemon: AsDaemon):
    as_daemon(manager)([nothing, garbage.freeze_imports])
    assert gc.get_freeze_count() == 0


def test_a_daemon_that_is_not_known_is_left_alone(as_daemon: AsDaemon):
    as_daemon(manager_of_another_version)([garbage.freeze_imports])
    assert gc.get_freeze_count() == 0
    garbage._frozen = False
    garbage.freeze_imports()  # and one that calls tasks from elsewhere
    assert gc.get_freeze_count() == 0


def test_no_other_process_does(as_daemon: AsDaemon):
    as_daemon(manager, "pytest.__main__")([garbage.freeze_imports])
    assert gc.get_freeze_count() == 0


# ---- in pyspark's own workers

def looked(cluster: EmbeddedCluster, *steps: str) -> list[list[int]]:
    """(process id, objects that are still there, how many are kept from the collector) at each `look`."""
    cluster.create_topic("-".join(steps), 1)
    cluster.produce("-".join(steps), [b"x"] * 10)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), cluster.bootstrap_servers, "-".join(steps), *steps], capture_output=True,
        text=True, timeout=280, stdin=subprocess.DEVNULL, check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[list[int]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len({pid for pid, *_ in found}) == 1  # all steps had one worker
    return found


def test_objects_of_earlier_tasks_are_collected(embedded: EmbeddedCluster):
    """A UDF's objects are alive when the worker comes to its first read, and garbage later."""
    found = looked(embedded, "make", "read", "look", "drop", "look")
    assert [there for _, there, _ in found] == [1000, 0]


def test_objects_of_later_tasks_are_collected(embedded: EmbeddedCluster):
    """Also where the worker keeps from the collector what was imported."""
    found = looked(embedded, "read", "make", "read", "look", "drop", "look")
    assert [there for _, there, _ in found] == [1000, 0]
    assert all(kept > 10_000 for *_, kept in found)
