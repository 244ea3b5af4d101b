"""The programs in examples/ that need a real Kafka: transactions, and offsets by time."""

from __future__ import annotations

import json
import signal

import pytest
from example_program import Program

from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition

RECORDS = 2000
SECONDS = 60


def fill(kafka, topic, first, count):
    kafka.produce(topic, (json.dumps({"carrier": "AA", "number": n}) for n in range(first, first + count)))


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


def test_enrich_exactly_once_has_each_result_once_although_it_was_killed(kafka, topic_name, tmp_path):
    source, target = topic_name(), topic_name()
    kafka.create_topic(source, partitions=2)
    kafka.create_topic(target, partitions=1)

    def start():
        return Program("enrich_exactly_once.py", kafka, tmp_path, "-i", source, "-o", target, "--id", target,
                       "-g", source, "-X", "session.timeout.ms=6000")

    fill(kafka, source, 0, RECORDS)
    with start() as program:
        program.until(lambda: results(kafka, target), SECONDS)
        program.kill()
    fill(kafka, source, RECORDS, RECORDS)
    with start() as program:
        program.until(lambda: len(results(kafka, target)) >= 2 * RECORDS, SECONDS)
        program.end()
    assert sorted(results(kafka, target)) == list(range(2 * RECORDS))


def test_the_duckdb_example_queries_the_newest_records(kafka, topic_name, tmp_path):
    pytest.importorskip("duckdb", reason="the example needs duckdb")
    topic = topic_name()
    kafka.create_topic(topic, partitions=3)
    fill(kafka, topic, 0, RECORDS)
    sql = "select 'seen ' || count(*) || ' of ' || any_value(value->>'$.carrier') as answer from records"
    with Program("duckdb_live.py", kafka, tmp_path, "-t", topic, "--every", "0.3", "--sql", sql) as program:
        program.shows(f"seen {RECORDS} of AA")
        fill(kafka, topic, RECORDS, RECORDS)
        program.shows(f"seen {2 * RECORDS} of AA")
        program.end(signal.SIGINT)
