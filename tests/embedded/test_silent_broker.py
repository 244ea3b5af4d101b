"""A port that accepts connections and never answers: the errors name its address and the time limit."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

import kconsumer
from kconsumer import Consumer, KafkaError, TopicPartition
from kconsumer.aio import AIOConsumer

PLACE = TopicPartition("flights", 0)
CALLS = {
    "list_topics": lambda consumer: consumer.list_topics(timeout=0.3),
    "cluster_id": lambda consumer: consumer.cluster_id(timeout=0.3),
    "get_watermark_offsets": lambda consumer: consumer.get_watermark_offsets(PLACE, timeout=0.3),
    "offsets_for_times": lambda consumer: consumer.offsets_for_times([PLACE], timeout=0.3),
}


@pytest.fixture
def address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"127.0.0.1:{silent.getsockname()[1]}"


def check(error: KafkaError, address: str) -> None:
    assert error.code() == KafkaError._TIMED_OUT
    assert error.str().endswith(f" (waited 0.3 s; bootstrap.servers: {address})")


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_the_consumer(address, call):
    with Consumer({"bootstrap.servers": address}) as consumer, pytest.raises(kconsumer.TimeoutError) as caught:
        CALLS[call](consumer)
    check(caught.value.args[0], address)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_the_asynchronous_consumer(address, call):
    async def main() -> None:
        async with AIOConsumer({"bootstrap.servers": address}) as consumer:
            await CALLS[call](consumer)

    with pytest.raises(kconsumer.TimeoutError) as caught:
        asyncio.run(main())
    check(caught.value.args[0], address)


def test_a_scan(address):
    with pytest.raises(kconsumer.TimeoutError) as caught:
        next(kconsumer.scan({"bootstrap.servers": address}, "flights", timeout=0.3).batches())
    check(caught.value.args[0], address)


def test_an_address_of_ipv6_has_brackets():
    with Consumer({"bootstrap.servers": "[::1]:9,localhost:9"}) as consumer:
        assert list(map(str, consumer._settings.bootstrap_servers)) == ["[::1]:9", "localhost:9"]
