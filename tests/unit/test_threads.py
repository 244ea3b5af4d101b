"""Methods that several threads may call, called from several threads, against a cluster in a separate process.

It is what tools/sanitize.sh runs under ThreadSanitizer: the brokers live in another process, so that all that is
watched is the consumer. KCONSUMER_THREAD_SECONDS (default 1) says how long each part goes on.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kconsumer import Consumer, KafkaError, KafkaException, TopicPartition
from tests.core import inside

pytestmark = pytest.mark.embedded

SECONDS = float(os.environ.get("KCONSUMER_THREAD_SECONDS", "1"))
PARTITIONS, PER_PARTITION = 4, 2000
COMPRESSED = 30_000  # in some hundred batches

CLUSTER = f"""
import sys
from kconsumer.testing import EmbeddedCluster
with EmbeddedCluster(2) as cluster:
    cluster.create_topic("threads", {PARTITIONS})
    cluster.produce("threads", [
        {{"value": b"%d" % n, "partition": p}} for n in range({PER_PARTITION}) for p in range({PARTITIONS})])
    for codec in ("lz4", "zstd"):
        cluster.create_topic(codec, 1)
        cluster.produce(codec, [b"%d " % n * 30 for n in range({COMPRESSED})],
                        {{"compression.type": codec, "batch.size": 30_000, "linger.ms": 100}})
    print(cluster.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """The address of brokers in a process that no sanitizer watches."""
    clean = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONPATH")}
    with subprocess.Popen([sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=clean) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[Consumer]:
    with Consumer({
        "bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "enable.partition.eof": True,
        "fetch.wait.max.ms": 20, "fetch.buffer.memory": 1 << 20, "statistics.interval.ms": 10,
        "stats_cb": lambda document: None, "error_cb": lambda error: None, "debug": "all", "logger": Quiet(),
    }) as one:
        one.assign([TopicPartition("threads", p, 0) for p in range(PARTITIONS)])
        yield one


class Quiet:
    """A logger that drops what it is given."""

    def log(self, *args: object, **kwargs: object) -> None:
        pass


def hammer(*calls: Callable[[int], object], seconds: float = SECONDS) -> None:
    """Runs each call in a separate thread, over and over, until the time is over; the first exception is raised."""
    end = time.monotonic() + seconds
    failures: list[BaseException] = []

    def run(call: Callable[[int], object]) -> None:
        n = 0
        try:
            while time.monotonic() < end and not failures:
                call(n)
                n += 1
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def places(partition: int | None = None, offset: int = -1001) -> list[TopicPartition]:
    return [TopicPartition("threads", p, offset) for p in range(PARTITIONS) if partition in (None, p)]


def read(consumer: Consumer) -> Callable[[int], None]:
    """Takes records in all three ways; per partition and assignment they must be consecutive between seeks."""

    def call(n: int) -> None:
        if n % 3 == 0:
            taken = consumer.consume(200, 0.05)
        elif n % 3 == 1:
            taken = list(consumer.consume_batch(200, 0.05))
        else:
            taken = [m for m in (consumer.poll(0.01) for _ in range(50)) if m is not None]
        for message in taken:
            if message.error() is None:
                assert message.value() == b"%d" % message.offset()
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF

    return call


def test_start_consume_seek_pause_close(bootstrap: str) -> None:
    end = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < end or rounds < 3:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest",
                             "fetch.wait.max.ms": 20})
        consumer.assign(places(offset=0))
        assert len(consumer.consume(500, 10)) == 500
        consumer.seek(TopicPartition("threads", 1, PER_PARTITION - 1))
        consumer.pause(places(0))
        seen = {}
        while 1 not in seen:
            for message in consumer.consume(100, 0.2):
                seen.setdefault(message.partition(), message.offset())
        assert seen[1] == PER_PARTITION - 1
        assert 0 not in seen
        consumer.resume(places(0))
        assert consumer.poll(10) is not None
        assert consumer.get_watermark_offsets(TopicPartition("threads", 2), 10) == (0, PER_PARTITION)
        consumer.close()
        rounds += 1


def test_reading_while_other_threads_seek_and_pause(consumer: Consumer) -> None:
    def control(n: int) -> None:
        p = n % PARTITIONS
        consumer.seek(TopicPartition("threads", p, n * 37 % PER_PARTITION))
        consumer.pause(places(p))
        consumer.position(places())
        consumer.resume(places(p))
        consumer.seek_to_beginning(places((p + 1) % PARTITIONS))

    def look(n: int) -> None:
        consumer.position(places())
        consumer.assignment()
        consumer.lag()
        consumer.metrics()
        consumer.get_watermark_offsets(TopicPartition("threads", 0), cached=True)

    hammer(read(consumer), control, look)


def test_reading_while_other_threads_assign(consumer: Consumer) -> None:
    def assign(n: int) -> None:
        consumer.assign(places(offset=n % PER_PARTITION))
        consumer.incremental_unassign(places(n % PARTITIONS))
        consumer.incremental_assign(places(n % PARTITIONS, 0))

    def change(n: int) -> None:
        consumer.set_config({"fetch.min.bytes": 1 + n % 5, "max.partition.fetch.bytes": 10_000 + n % 7 * 1000})

    hammer(read(consumer), assign, change)


def test_reading_while_other_threads_ask(consumer: Consumer) -> None:
    def ask(n: int) -> None:
        consumer.list_topics("threads", 60)
        consumer.get_watermark_offsets(TopicPartition("threads", n % PARTITIONS), 60)
        consumer.offsets_for_times(places(offset=0), 60)
        consumer.lag(timeout=60)

    hammer(read(consumer), ask, ask)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_two_threads_inflate(bootstrap: str, codec: str) -> None:
    """An application that waits decodes, and the network thread inflates ahead of it."""
    end = time.monotonic() + SECONDS
    rounds = 0
    with Consumer({"bootstrap.servers": bootstrap, "group.id": "g"}) as consumer:
        while time.monotonic() < end or rounds < 3 or not inside.inflated_ahead(consumer):
            assert time.monotonic() < end + 60
            consumer.assign([TopicPartition(codec, 0, 0)])
            expected = 0
            while expected < COMPRESSED:
                for message in consumer.consume_batch(COMPRESSED, 10):
                    assert message.offset() == expected
                    assert message.value() == b"%d " % expected * 30
                    expected += 1
                if rounds % 3 == 2 and expected > COMPRESSED // 3:
                    break  # what lies ahead is not wanted any more
            rounds += 1


def test_wakeup_from_another_thread(consumer: Consumer) -> None:
    raised = []

    def wait(n: int) -> None:
        try:
            consumer.consume(1_000_000, 0.5)
        except KafkaException as e:
            raised.append(e)

    def wake(n: int) -> None:
        consumer.wakeup()
        consumer.position(places())

    hammer(wait, wake, seconds=SECONDS / 2)
    assert raised
    with contextlib.suppress(KafkaException):
        consumer.poll(0)  # the last one is sticky


def test_two_readers_are_distinguished(consumer: Consumer) -> None:
    """One of them is refused, neither is harmed."""
    refused = []

    def call(n: int) -> None:
        try:
            consumer.consume(50, 0.02)
        except KafkaException as e:
            refused.append(e.args[0].code())

    hammer(call, call, call, seconds=SECONDS / 2)
    assert set(refused) <= {KafkaError._STATE}


def test_closing_while_other_threads_call(bootstrap: str) -> None:
    """Each call ends: with its result, with an error, or with RuntimeError as the consumer is closed."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.assign(places(offset=0))
        start = threading.Barrier(4)

        def use(call: Callable[[], object], start: threading.Barrier = start) -> None:
            start.wait()
            with contextlib.suppress(RuntimeError, KafkaException):
                while True:
                    call()

        calls = [functools.partial(consumer.list_topics, timeout=5), consumer.seek_to_beginning, consumer.lag]
        threads = [threading.Thread(target=use, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        start.wait()
        consumer.poll(0.01)
        consumer.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()


def test_dropping_consumers_without_closing_them(bootstrap: str) -> None:
    end = time.monotonic() + SECONDS / 2
    while time.monotonic() < end:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.assign(places(offset=0))
        kept = consumer.consume(20, 5)
        del consumer
        assert [m.value() for m in kept] == [b"%d" % m.offset() for m in kept]
