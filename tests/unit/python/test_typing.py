"""The findings of mypy --strict in a user's program."""

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


def test_a_users_program(tmp_path):
    pytest.importorskip("mypy")
    package = tmp_path / "stage" / "kconsumer"
    package.mkdir(parents=True)
    for entry in (ROOT / "src" / "kconsumer").iterdir():
        (package / entry.name).symlink_to(entry)
    (package / "_core").symlink_to(ROOT / "src" / "_core")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-version=3.11", "--follow-imports=silent",
         f"--cache-dir={tmp_path / 'cache'}", "--no-error-summary", program.name],
        env={**os.environ, "MYPYPATH": str(tmp_path / "stage")}, cwd=tmp_path, capture_output=True, text=True,
        check=False)
    wrong = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# error" in line]
    refused = [int(line.split(":")[1]) for line in done.stdout.splitlines()
               if line.startswith("program.py:") and ": error:" in line]
    assert sorted(set(refused)) == wrong, done.stdout + done.stderr
