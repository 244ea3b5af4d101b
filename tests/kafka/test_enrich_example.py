"""examples/enrich_exactly_once.py on a real Kafka: killed in the middle, started again, every result there once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "enrich_exactly_once.py"
RECORDS = 2000
SECONDS = 60


def results(kafka, topic):
    """The numbers of all records that read_committed returns."""
    numbers = []
    with Consumer({"bootstrap.servers": kafka.bootstrap_servers, "enable.partition.eof": True}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None
            if message.error():
                return numbers
            numbers.append(json.loads(message.value())["number"])
            assert json.loads(message.value())["carrier_name"] == "American"


def test_each_result_is_there_once_although_the_program_was_killed(kafka, topic_name, tmp_path):
    source, target = topic_name(), topic_name()
    kafka.create_topic(source, partitions=2)
    kafka.create_topic(target, partitions=1)

    def start():
        with open(tmp_path / "log", "a") as log:
            return subprocess.Popen(
                [sys.executable, "-u", str(EXAMPLE), "-b", kafka.bootstrap_servers, "-i", source, "-o", target,
                 "--id", target, "-g", source], stdout=log, stderr=subprocess.STDOUT)

    def fill(first, count):
        kafka.produce(source, (json.dumps({"carrier": "AA", "number": n}) for n in range(first, first + count)))

    def wait_for(count):
        deadline = time.monotonic() + SECONDS
        while len(results(kafka, target)) < count:
            assert program.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()

    fill(0, RECORDS)
    program = start()
    try:
        wait_for(1)
        program.kill()
        program.wait()
        fill(RECORDS, RECORDS)
        program = start()
        wait_for(2 * RECORDS)
        program.send_signal(signal.SIGTERM)
        assert program.wait(SECONDS) == 0, (tmp_path / "log").read_text()
    finally:
        program.kill()
        program.wait()
    assert sorted(results(kafka, target)) == list(range(2 * RECORDS))
