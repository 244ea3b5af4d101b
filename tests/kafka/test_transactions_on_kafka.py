"""kconsumer.transactions on a real Kafka: a ledger of the output, read with read_committed, has each input once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition
from kconsumer.testing import KafkaCluster

MEMBER = Path(__file__).with_name("exactly_once_member.py")
RECORDS = 2000
PARTITIONS = 4
SECONDS = 90
SESSION_MS = 6000
CONFIG = {"group.consumer.heartbeat.interval.ms": 500, "group.consumer.min.heartbeat.interval.ms": 500,
          "group.consumer.min.session.timeout.ms": 1000, "group.consumer.session.timeout.ms": SESSION_MS}
CLASSIC = ["group.protocol=classic", f"session.timeout.ms={SESSION_MS}"]
PROTOCOLS = {
    "classic": CLASSIC,
    "cooperative": [*CLASSIC, "partition.assignment.strategy=cooperative-sticky"],
    "consumer": ["group.protocol=consumer"],
}


@pytest.fixture(scope="module")
def kafka():
    with KafkaCluster(1, config=CONFIG) as cluster:
        yield cluster


class Members:
    """Processes of one group, with the output of each in a file."""

    def __init__(self, kafka, source, target, folder, properties):
        self.kafka, self.source, self.target, self.folder, self.properties = kafka, source, target, folder, properties
        self.running = []
        self.logs = []

    def start(self, name, kill_at=0):
        log = self.folder / f"{len(self.logs)}-{name}.log"
        self.logs.append(log)
        with open(log, "w") as out:
            process = subprocess.Popen([sys.executable, "-u", str(MEMBER), self.kafka.bootstrap_servers, self.source,
                                        self.target, f"{self.target}-{name}", str(kill_at), *self.properties],
                                       stdout=out, stderr=subprocess.STDOUT)
        self.running.append(process)
        return process

    def output(self):
        return "\n".join(f"{log.name}: {log.read_text()}" for log in self.logs)

    def dies(self, process):
        assert process.wait(SECONDS) == -signal.SIGKILL, self.output()
        self.running.remove(process)

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, self.output()
        self.running.remove(process)

    def ends(self):
        for process in list(self.running):
            self.end(process)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        for process in self.running:
            process.kill()
            process.wait()


def ledger(kafka, topic, isolation="read_committed"):
    """How often each key is in the output."""
    found = Counter()
    with Consumer({"bootstrap.servers": kafka.bootstrap_servers, "enable.partition.eof": True,
                   "isolation.level": isolation}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, "no record and no end of the partition"
            if message.error():
                return found
            found[message.key().decode()] += 1


def until(condition, members):
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, members.output()
        for process in members.running:
            assert process.poll() is None, members.output()
    return found


@pytest.fixture
def topics(kafka, topic_name):
    source, target = topic_name(), topic_name()
    kafka.create_topic(source, partitions=PARTITIONS)
    kafka.create_topic(target, partitions=1)
    return source, target


def fill(kafka, source, count):
    """Write so many records, the same number to each partition."""
    kafka.produce(source, ({"value": b"%d" % n, "partition": n % PARTITIONS} for n in range(count)))


def expected(records):
    return Counter(f"{partition}:{offset}" for partition in range(PARTITIONS)
                   for offset in range(records // PARTITIONS))


@pytest.mark.parametrize("properties", [*PROTOCOLS.values(), [*CLASSIC, "group.instance.id=one"]],
                         ids=[*PROTOCOLS, "static"])
def test_a_kill_between_the_offsets_and_the_commit_repeats_and_loses_nothing(kafka, topics, tmp_path, properties):
    source, target = topics
    fill(kafka, source, RECORDS)
    with Members(kafka, source, target, tmp_path, properties) as members:
        for kill_at in (1, 3, 5):
            members.dies(members.start("one", kill_at))
        members.start("one")
        until(lambda: len(ledger(kafka, target)) >= RECORDS, members)
        members.ends()
    assert ledger(kafka, target) == expected(RECORDS)
    assert sum(ledger(kafka, target, "read_uncommitted").values()) > RECORDS  # the killed processes had written results


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_that_come_go_and_die_repeat_and_lose_nothing(kafka, topics, tmp_path, protocol):
    source, target = topics
    written = 0

    def write():
        nonlocal written
        fill(kafka, source, RECORDS // 10)
        written += RECORDS // 10

    with Members(kafka, source, target, tmp_path, PROTOCOLS[protocol]) as members:
        first = members.start("one")
        write()
        until(lambda: ledger(kafka, target), members)
        members.start("two")
        dying = members.start("three", 2)
        deadline = time.monotonic() + SECONDS
        while dying.poll() is None:  # it gets partitions while records arrive
            assert time.monotonic() < deadline, members.output()
            write()
        members.dies(dying)
        members.end(first)
        members.start("four")
        write()
        until(lambda: len(ledger(kafka, target)) >= written, members)
        members.ends()
    assert ledger(kafka, target) == expected(written)
