"""Exactly once into files: a query under load whose driver, executors, Python workers and broker are killed.

After each kill what has died is started again. In the end the driver is killed, still under load, and a last run reads
the rest: every record is in the Parquet files once.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kconsumer.testing import KafkaCluster
from tests.spark.standalone import Standalone, descendants, kill_one, wait_until

PARTITIONS = 3
PER_SECOND = 2_000  # less than a query of short triggers reads, or the rest takes longer than the kills
JOB = Path(__file__).with_name("ingest_job.py")
Kill = Callable[["Query"], None]


class Load:
    """A thread that writes numbered records until it is stopped; the producer retries over the broker's restarts."""

    def __init__(self, cluster: KafkaCluster, topic: str, per_second: int) -> None:
        from confluent_kafka import Producer

        self._per_turn = per_second // 50
        self._producer = Producer({
            "bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 20,
            "message.timeout.ms": 120_000, "compression.type": "lz4"})
        self._topic = topic
        self._stop = threading.Event()
        self._failed: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            self._producer.poll(0)
            for _ in range(self._per_turn):
                try:
                    self._producer.produce(self._topic, b"%d" % self.count, partition=self.count % PARTITIONS,
                                           on_delivery=self._on_delivery)
                except BufferError:  # the broker is away
                    break
                self.count += 1

    def _on_delivery(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failed.append(str(error))

    def stop(self) -> None:
        """No more of them."""
        self._stop.set()
        self._thread.join()

    def end(self) -> int:
        """How many records there are."""
        self.stop()
        assert self._producer.flush(120) == 0
        assert self._failed == []
        return self.count


class Query:
    """The job's process and what belongs to it."""

    def __init__(
        self, cluster: KafkaCluster, topic: str, folder: Path, master: str, settings: Sequence[str] = ()
    ) -> None:
        self.cluster = cluster
        self.topic = topic
        self.folder = folder
        self._master = master
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, trigger: str = "forever") -> None:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with open(self.folder / "job.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(JOB), self._master, self.cluster.bootstrap_servers, self.topic, str(self.folder),
                 trigger, *self._settings], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment,
                start_new_session=True)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def committed(self) -> int:
        """How many triggers are over, in all runs."""
        return sum(1 for _ in (self.folder / "checkpoint/commits").glob("[0-9]*"))

    def wait_for_triggers(self, more: int, seconds: float = 300.0) -> None:
        """Until so many more triggers are over; a query that died is started again."""
        wanted, deadline = self.committed() + more, time.monotonic() + seconds
        while self.committed() < wanted:
            assert time.monotonic() < deadline, self.tail()
            if self.process.poll() is not None:
                self.start()
            time.sleep(0.1)

    def finish(self) -> None:
        """Read the rest in a run that is left alone."""
        for _ in range(3):
            self.start("all")
            if self.process.wait(600) == 0:
                return
            assert "failed to connect back" in self.tail(), self.tail()  # Spark gives Python ten seconds to start
        raise AssertionError(self.tail())

    def kill(self) -> None:
        """SIGKILL to the driver: its Python process and its JVM."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(30)

    def descendants(self, contains: str) -> list[int]:
        """Processes below the driver whose command line has the text."""
        return descendants(self.process.pid, contains)

    def tail(self) -> str:
        return "\n".join((self.folder / "job.log").read_text(errors="replace").splitlines()[-40:])


# ---- kills

def kill_driver(query: Query) -> None:
    query.kill()
    query.start()


def kill_worker(query: Query) -> None:
    """A Python worker of an executor: of the daemon and its children the second that began."""
    kill_found(lambda: sorted(query.descendants("pyspark.daemon"))[1:], query)


def kill_broker(query: Query) -> None:
    query.cluster.kill(1)
    query.cluster.restart(1)


def kill_found(find: Callable[[], list[int]], query: Query) -> None:
    """SIGKILL to the first, once there is one."""
    found: list[int] = []

    def look() -> list[int]:
        found[:] = find()
        return found

    wait_until(look, query.tail)
    kill_one(found)


def mixed(kinds: list[Kill], count: int, noise: random.Random) -> list[Kill]:
    """So many kills, of each kind about as often, in any order."""
    kills = (kinds * count)[:count]
    noise.shuffle(kills)
    return kills


@contextlib.contextmanager
def loaded(query: Query, spark: Any) -> Iterator[None]:
    """Write records while the query runs; after the block, kill the query, let it end its work and check its output."""
    load = Load(query.cluster, query.topic, PER_SECOND)
    query.start()
    try:
        yield
        query.kill()
        count = load.end()
        query.finish()
    finally:
        load.stop()
        query.kill()
    check(query, count, spark)


def survive(query: Query, kills: list[Kill], spark: Any, noise: random.Random) -> None:
    with loaded(query, spark):
        for kill in kills:
            query.wait_for_triggers(2)
            time.sleep(noise.random() * 2)
            kill(query)
        query.wait_for_triggers(1)


def check(query: Query, count: int, spark: Any) -> None:
    """Every record is in the files once."""
    rows = spark.read.parquet(str(query.folder / "rows"))
    found = rows.selectExpr("partition", "offset", "cast(value AS STRING) AS n").cache()
    assert found.count() == count
    assert found.select("n").distinct().count() == count
    assert found.select("partition", "offset").distinct().count() == count
    assert found.where(f"cast(n AS LONG) < 0 OR cast(n AS LONG) >= {count}").count() == 0
    found.unpersist()


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    """A broker to be killed."""
    with KafkaCluster(1) as cluster:
        cluster.create_topic("killed", PARTITIONS)
        yield cluster


LOCAL = [kill_driver, kill_worker, kill_broker]


def test_a_kill_of_each_kind(spark: Any, cluster: KafkaCluster, tmp_path: Path):
    """The driver last: the run that reads the rest is its restart."""
    survive(Query(cluster, "killed", tmp_path, "local[2,20]"), [kill_worker, kill_broker], spark, random.Random(1))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_kills(spark: Any, cluster: KafkaCluster, tmp_path: Path):
    noise = random.Random(1)
    survive(Query(cluster, "killed", tmp_path, "local[2,20]"), mixed(LOCAL, 10, noise), spark, noise)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_kills_on_a_standalone_cluster(spark: Any, cluster: KafkaCluster, tmp_path: Path):
    """Executors and Python workers are processes of other hosts, so to say, of which one goes now and then."""
    noise = random.Random(2)

    def kill_executor(query: Query) -> None:
        kill_found(standalone.executors, query)

    def kill_host(query: Query) -> None:
        number = noise.choice(standalone.workers)
        standalone.kill_worker(number)
        query.wait_for_triggers(1)  # with what is left
        standalone.restart_worker(number)

    with Standalone(tmp_path) as standalone:
        kinds = [kill_driver, kill_executor, kill_host, kill_broker]
        survive(Query(cluster, "killed", tmp_path, standalone.master), mixed(kinds, 10, noise), spark, noise)


# ---- speculation

SPECULATION = (
    "spark.speculation=true", "spark.speculation.interval=100ms", "spark.speculation.quantile=0.1",
    "spark.speculation.multiplier=1.1", "spark.speculation.minTaskRuntime=100ms", "spark.eventLog.enabled=true",
    "spark.eventLog.compress=false")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_tasks_that_run_twice_at_once(spark: Any, cluster: KafkaCluster, tmp_path: Path):
    """Speculation: a Python worker hangs in its task, another executor runs it too, and the first goes on later."""
    events = tmp_path / "events"
    events.mkdir()
    with Standalone(tmp_path, hosts=True) as standalone:
        query = Query(cluster, "killed", tmp_path, standalone.master, (*SPECULATION, f"spark.eventLog.dir={events}"))
        with loaded(query, spark):
            query.wait_for_triggers(2)
            for number in range(4):
                workers = [pid for executor in standalone.executors()
                           for pid in sorted(descendants(executor, "pyspark.daemon"))[1:]]
                stopped = workers[number % len(workers)]
                os.kill(stopped, signal.SIGSTOP)
                try:
                    query.wait_for_triggers(2)  # which a task of that worker holds up until it is run elsewhere
                finally:
                    try:
                        os.kill(stopped, signal.SIGCONT)
                    except ProcessLookupError:  # Spark ends a worker whose task is not wanted any more
                        pass
                query.wait_for_triggers(1)
    assert any(speculative(path) for path in events.rglob("*") if path.is_file())


def speculative(events: Path) -> int:
    """How many tasks were begun a second time, beside the first."""
    starts = (line for line in events.read_text(errors="replace").splitlines() if "SparkListenerTaskStart" in line)
    return sum('"Speculative":true' in line for line in starts)
