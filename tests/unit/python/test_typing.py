"""The findings of mypy --strict and pyright in users' programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# Each line with a comment "error" must be refused, and no other.
PROGRAM = '''
from typing import assert_type

from kconsumer import CommitFailedError, Consumer, DeserializingConsumer, KafkaError, Message, TopicPartition
from kconsumer.serialization import StringDeserializer


def read(consumer: Consumer) -> int:
    message = consumer.poll(1.0)
    message.value()  # error: poll() may return None
    if message is None:
        return 0
    assert_type(message, Message)
    assert_type(message.value(), bytes | None)
    assert_type(message.key(), bytes | None)
    assert_type(message.error(), KafkaError | None)
    text: str = message.value()  # error: a value is bytes
    for each in consumer:
        assert_type(each.value(), bytes | None)
    return sum(len(each.value() or b"") for each in consumer.consume(10, timeout=1))


def read_objects() -> None:
    with DeserializingConsumer[str, dict[str, int]]({"value.deserializer": StringDeserializer()}) as consumer:
        consumer.subscribe(("flights",))
        message = consumer.poll()
        assert_type(message, Message[str, dict[str, int]] | None)
        if message is not None:
            assert_type(message.value(), dict[str, int])
            assert_type(message.key(), str)
        for each in consumer:
            assert_type(each.value(), dict[str, int])
        consumer.poll("1")  # error: seconds are a number


def ask(consumer: Consumer) -> list[str]:
    low, high = consumer.get_watermark_offsets(TopicPartition("flights", 0), timeout=5)
    assert_type(high, int)
    untyped = DeserializingConsumer({"group.id": "g"})
    untyped.close()
    try:
        consumer.commit(asynchronous=False)
    except CommitFailedError as error:
        print(error.topic, low)
    assert_type(consumer.paused(), list[TopicPartition])
    return consumer.subscription()
'''


# A program for confluent_kafka. The type checkers find nothing in it, with its own import and with ours.
OF_CONFLUENT = '''
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    DeserializingConsumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.error import ConsumeError


def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    for partition in partitions:
        partition.offset = OFFSET_BEGINNING
    consumer.assign(partitions)


def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    consumer.commit(asynchronous=False)
    consumer.unassign()


def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
    if error is not None and error.code() == KafkaError._NO_OFFSET:
        return
    print([(p.topic, p.partition, p.offset) for p in partitions if p.error is None])


def describe(message: Message) -> str:
    error = message.error()
    if error is not None:
        return f"{error.name()} {error.str()} {error.fatal()} {error.retriable()}"
    kind, timestamp = message.timestamp()
    topic: str | None = message.topic()
    offset: int | None = message.offset()
    value: bytes | None = message.value()
    place = f"{topic} {message.partition()} {offset} {message.leader_epoch()}"
    return f"{place} {kind} {timestamp} {len(value or b'')} {message.headers()} {message.latency()}"


def main(settings: dict[str, Any]) -> int:
    consumer = Consumer({**settings, "on_commit": on_commit})
    more = Consumer(settings, logger=None)
    more.close()
    consumer.subscribe(["flights"], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
    try:
        message = consumer.poll(timeout=1.0)
        if message is None:
            return 0
        print(describe(message))
        consumer.store_offsets(message=message)
        consumer.commit(message=message, asynchronous=True)
        stored = consumer.commit(message=message, asynchronous=False)
        stored += consumer.commit(offsets=[TopicPartition("flights", 0, 7)], asynchronous=False)
        stored += consumer.commit(asynchronous=False)
        failed = [p for p in stored if p.error]
        records = [record.value() for record in consumer.consume(num_messages=10, timeout=1)]
        low, high = consumer.get_watermark_offsets(TopicPartition("flights", 0), timeout=5, cached=False)
        consumer.pause(consumer.assignment())
        consumer.resume(consumer.assignment())
        consumer.seek(TopicPartition("flights", 0, low))
        offsets = consumer.committed(consumer.position([TopicPartition("flights", 0)]), timeout=5)
        times = consumer.offsets_for_times([TopicPartition("flights", 0, 1)], timeout=5)
        consumer.incremental_assign(times)
        consumer.incremental_unassign(times)
        consumer.unsubscribe()
        consumer.set_sasl_credentials("user", "secret")
        topics = consumer.list_topics("flights", timeout=5).topics
        return high - low + len(failed) + len(records) + len(offsets) + len(topics)
    except KafkaException as raised:
        error: KafkaError = raised.args[0]
        print(error)
        return 1
    finally:
        consumer.close()


def objects(settings: dict[str, Any]) -> None:
    with DeserializingConsumer(settings) as consumer:
        consumer.subscribe(["flights"])
        try:
            message = consumer.poll(1)
        except ConsumeError as raised:
            print(raised.code, raised.name)
            return
        if message is not None:
            print(message.topic(), message.value())
    with Consumer(settings) as plain:
        print(plain.consumer_group_metadata())
'''


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder with the package as it is installed, and beside it the cache that all runs of mypy share."""
    package = tmp_path_factory.mktemp("typing") / "stage" / "kconsumer"
    package.mkdir(parents=True)
    for entry in (ROOT / "src" / "kconsumer").iterdir():
        (package / entry.name).symlink_to(entry)
    (package / "_core").symlink_to(ROOT / "src" / "_core")
    return package.parent


def mypy(program, packages, *, name="program.py"):
    """The findings of mypy --strict in a program: the lines, and the output."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    (packages.parent / name).write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-version=3.11", "--follow-imports=silent",
         f"--cache-dir={packages.parent / 'cache'}", "--no-error-summary", name],
        env={**os.environ, "MYPYPATH": str(packages)}, cwd=packages.parent, capture_output=True, text=True, check=False)
    refused = {int(line.split(":")[1]) for line in done.stdout.splitlines()
               if line.startswith(f"{name}:") and ": error:" in line}
    return sorted(refused), done.stdout + done.stderr


def test_a_users_program(packages):
    wrong = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# error" in line]
    refused, output = mypy(PROGRAM, packages)
    assert refused == wrong, output


@pytest.mark.parametrize("package", ["confluent_kafka", "kconsumer"])
def test_mypy_accepts_a_program_for_confluent_kafka(packages, package):
    refused, output = mypy(OF_CONFLUENT.replace("from confluent_kafka", f"from {package}"), packages)
    assert refused == [], output


@pytest.mark.parametrize("package", ["confluent_kafka", "kconsumer"])
def test_pyright_accepts_a_program_for_confluent_kafka(packages, package):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    program = packages.parent / "program.py"
    program.write_text(OF_CONFLUENT.replace("from confluent_kafka", f"from {package}"))
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(packages)], "reportPrivateUsage": False}
    (packages.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, program.name],
        cwd=packages.parent, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    assert [finding["message"] for finding in found["generalDiagnostics"]] == []


def test_type_checkers_see_what_memberid_returns_before_the_first_join(packages):
    """confluent_kafka's stub says str; it returns None, too."""
    program = "from kconsumer import Consumer\n\ndef name(consumer: Consumer) -> str:\n    return consumer.memberid()\n"
    refused, output = mypy(program, packages)
    assert refused == [4], output
