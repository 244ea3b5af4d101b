"""Blocks of the docs that need a real Kafka: the texts of the pages, run as they stand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from docs_blocks import ADDRESS, ROOT, Block, blocks

from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition
from kconsumer.testing import KafkaCluster

RECORDS = 20
SECONDS = 60


def marked(page: str) -> list[Block]:
    """The blocks of a page whose mark names this test."""
    return [block for block in blocks(ROOT / "docs" / page) if Path(__file__).name in block.mark]


def enriched(kafka: KafkaCluster) -> list[int]:
    with Consumer({"bootstrap.servers": kafka.bootstrap_servers, "enable.partition.eof": True}) as consumer:
        consumer.assign([TopicPartition("enriched", 0, OFFSET_BEGINNING)])
        found: list[int] = []
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, "no record and no end of the partition"
            if message.error():
                return found
            found.append(json.loads(message.value())["number"])


def test_kafka_to_kafka(kafka: KafkaCluster) -> None:
    loop, transaction = marked("commits.md")
    kafka.create_topic("flights")
    kafka.create_topic("enriched")
    try:
        kafka.produce("flights", [json.dumps({"number": n}) for n in range(RECORDS)])
        handled: list[int] = []

        def enrich(value: bytes) -> bytes:
            handled.append(json.loads(value)["number"])
            if handled[-1] == RECORDS - 1:
                threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()  # as an operator ends the loop
            return value

        names = {"enrich": enrich}
        code = loop.code.replace(ADDRESS, kafka.bootstrap_servers).replace(
            '"group.id": "enrich"', '"group.id": "enrich", "auto.offset.reset": "earliest"')
        exec(compile(code, loop.place, "exec"), names)
        assert enriched(kafka) == list(range(RECORDS))

        kafka.produce("flights", [json.dumps({"number": RECORDS})])
        from kconsumer.transactions import ExactlyOnce

        servers = {"bootstrap.servers": kafka.bootstrap_servers}
        with ExactlyOnce({**servers, "group.id": "enrich"}, {**servers, "transactional.id": "enrich-0"},
                         ["flights"]) as names["loop"]:
            while len(handled) <= RECORDS:
                exec(compile(transaction.code, transaction.place, "exec"), names)
        assert enriched(kafka) == list(range(RECORDS + 1))
    finally:
        kafka.delete_topic("flights")
        kafka.delete_topic("enriched")


def test_the_program_of_kafka_python(kafka: KafkaCluster) -> None:
    [block] = marked("migrating.md")
    kafka.create_topic("flights")
    try:
        kafka.produce("flights", ['{"number": 1}'])
        program = f"import json\n{block.code.replace(ADDRESS, kafka.bootstrap_servers)}"
        with subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "flights 0 {'number': 1}\n"
            finally:
                process.kill()
    finally:
        kafka.delete_topic("flights")


def test_the_pytest_plugin(kafka: KafkaCluster, tmp_path: Path) -> None:
    [block] = marked("testing.md")
    (tmp_path / "app.py").write_text(
        "from kconsumer import Consumer, TopicPartition\n"
        "def count_records(servers, topic):\n"
        "    with Consumer({'bootstrap.servers': servers}) as consumer:\n"
        "        found = consumer.list_topics(topic, timeout=30).topics[topic].partitions\n"
        "        return sum(consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in found)\n",
        encoding="utf-8")
    (tmp_path / "test_app.py").write_text(block.code, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)], cwd=tmp_path,
                          env={**os.environ, "KCONSUMER_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}, check=False,
                          capture_output=True, text=True, timeout=100)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
