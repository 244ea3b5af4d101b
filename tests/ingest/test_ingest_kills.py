"""`kconsumer ingest` with processes and a broker that are killed, and two runs of one job at once."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kconsumer.testing import KafkaCluster
from tests.ingest.kills import FORMATS, RUN_S, Killing

# Each test starts up to ten Python processes with two workers each, one after the other. Each of them has its own
# deadline, kills.RUN_S; on a machine with much other work they need most of it.
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """A cluster for this module alone, because its broker is killed."""
    with KafkaCluster(1) as found:
        yield found


@pytest.mark.parametrize(("kind", "kills"), [("parquet", 4), ("delta", 3), ("iceberg", 3)])
def test_each_record_is_there_once_after_kills(cluster: KafkaCluster, tmp_path: Path, kind: str, kills: int):
    killing = Killing(cluster, tmp_path, kind, random.Random(kills))
    for _ in range(kills):
        killing.fill()
        killing.kill()
    assert killing.killed.total() == kills
    killing.finish()


@pytest.mark.parametrize("kind", FORMATS)
def test_of_two_runs_of_a_job_one_fails(cluster: KafkaCluster, tmp_path: Path, kind: str):
    """Both run at an interval. One of them fails at its next claim or commit and says why; the other one goes on."""
    killing = Killing(cluster, tmp_path, kind, random.Random(0))
    killing.fill()
    runs = [killing.start("--trigger", "1s") for _ in range(2)]
    try:
        until = time.monotonic() + 3 * RUN_S
        while all(process.poll() is None for process in runs):
            assert time.monotonic() < until, "both runs go on"
            killing.fill(100)
            time.sleep(0.3)
            killing.check_reader()
        (ended,) = (process for process in runs if process.poll() is not None)
        (left,) = (process for process in runs if process is not ended)
        _, errors = ended.communicate(timeout=RUN_S)
        assert ended.returncode == 1, errors
        assert "another run" in errors
        left.send_signal(signal.SIGTERM)
        _, errors = left.communicate(timeout=RUN_S)
        assert left.returncode == 0, errors
    finally:
        for process in runs:
            if process.poll() is None:
                process.kill()
                process.communicate()
    killing.finish()
