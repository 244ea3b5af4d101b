"""A pytest plugin that runs aiokafka's consumer tests without Docker, with kconsumer under aiokafka's names.

Owns: the fixtures that aiokafka's conftest.py makes with a container; the replacement of AIOKafkaConsumer. Threads:
pytest's thread. Never: is loaded by our own tests.

`DROP_IN_CLIENT` is ``kconsumer`` or ``aiokafka`` (nothing is replaced); `BROKERS` names the cluster.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import Any

import aiokafka
import aiokafka.consumer
import pytest

if os.environ["DROP_IN_CLIENT"] == "kconsumer":
    from aiokafka_face import AIOKafkaConsumer

    aiokafka.AIOKafkaConsumer = aiokafka.consumer.AIOKafkaConsumer = AIOKafkaConsumer  # type: ignore[misc,assignment]


@pytest.fixture(scope="class")
def setup_test_class(request: Any) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    hosts = os.environ["BROKERS"].split(",")
    request.cls.loop, request.cls.hosts = loop, hosts
    host, _, port = hosts[0].rpartition(":")
    request.cls.kafka_host, request.cls.kafka_port = host, int(port)
    request.cls.kafka_version = os.environ["DROP_IN_KAFKA"]
    yield
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def collect_garbage() -> Iterator[None]:
    yield
    gc.collect()
