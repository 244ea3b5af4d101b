"""The cost of the Python code: importing, parsing a configuration, creating messages. No test asserts on time."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from kconsumer import Message, config

SETTINGS = {"bootstrap.servers": "localhost:9092", "group.id": "g", "auto.offset.reset": "earliest",
            "fetch.min.bytes": 1, "enable.auto.commit": False, "session.timeout.ms": 45_000}


def test_import(benchmark):
    """Measure a whole interpreter: subtract test_bare_interpreter."""
    benchmark.pedantic(subprocess.run, args=([sys.executable, "-c", "import kconsumer"],), kwargs={"check": True},
                       rounds=10)


def test_bare_interpreter(benchmark):
    benchmark.pedantic(subprocess.run, args=([sys.executable, "-c", "pass"],), kwargs={"check": True}, rounds=10)


def test_parse_config(benchmark):
    assert benchmark(config.parse, SETTINGS).fetch_min_bytes == 1


@pytest.fixture
def message():
    return Message("topic", value=b"v" * 100, key=b"k" * 16, partition=3, offset=42, timestamp=(1, 1_700_000_000_000))


def test_make_message(benchmark):
    made = benchmark(Message, "topic", 3, 42, b"k" * 16, b"v" * 100)
    assert made.value() == b"v" * 100


def test_read_message(benchmark, message):
    def read():
        return message.error(), message.topic(), message.partition(), message.offset(), message.value()

    assert benchmark(read) == (None, "topic", 3, 42, b"v" * 100)


def test_pickle_message(benchmark, message):
    assert benchmark(lambda: pickle.loads(pickle.dumps(message))).value() == message.value()
