"""examples/asgi_service.py, driven as an ASGI server drives it."""

import asyncio
import importlib.util
import json
from pathlib import Path

import pytest
from aio_helpers import member, until
from api_helpers import PATIENCE

from kconsumer import TopicPartition
from kconsumer.testing import EmbeddedCluster

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "asgi_service.py"


@pytest.fixture
def service(monkeypatch):
    """The module, and a cluster with 100 records."""
    with EmbeddedCluster() as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=20)
        cluster.create_topic("flights", 2)
        cluster.produce("flights", [{"value": b"%d" % i, "partition": i % 2} for i in range(100)])
        monkeypatch.setenv("KAFKA", cluster.bootstrap_servers)
        monkeypatch.setenv("TOPIC", "flights")
        spec = importlib.util.spec_from_file_location("asgi_service", EXAMPLE)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module, cluster


class Server:
    """One ASGI server: its lifespan, and GET."""

    def __init__(self, app):
        self.app = app
        self.inbox = asyncio.Queue()
        self.outbox = asyncio.Queue()

    async def __aenter__(self):
        self.life = asyncio.ensure_future(self.app({"type": "lifespan"}, self.inbox.get, self.outbox.put))
        await self.inbox.put({"type": "lifespan.startup"})
        assert (await self.outbox.get())["type"] == "lifespan.startup.complete"
        return self

    async def __aexit__(self, *_):
        await self.inbox.put({"type": "lifespan.shutdown"})
        assert (await self.outbox.get())["type"] == "lifespan.shutdown.complete"
        await self.life

    async def get(self, path):
        sent = []

        async def send(event):
            sent.append(event)

        await self.app({"type": "http", "path": path}, None, send)
        return sent[0]["status"], json.loads(sent[1]["body"])


def test_it_consumes_beside_its_requests_and_commits_at_the_end(service):
    module, cluster = service

    async def main():
        async with Server(module.app) as server:
            await until(lambda: sum(module.seen.values()) == 100)
            assert await server.get("/") == (200, {"seen": 100, "consuming": True})
            assert await server.get("/health") == (200, {"seen": 100, "consuming": True})
        async with member(cluster, group="asgi-service") as other:
            found = await other.committed([TopicPartition("flights", p) for p in (0, 1)], PATIENCE)
            assert [p.offset for p in found] == [50, 50]

    asyncio.run(asyncio.wait_for(main(), 3 * PATIENCE))


def test_a_consumer_that_fails_is_seen_in_health(service):
    module, _ = service

    async def fails(message):
        raise ValueError("no")

    module.work = fails

    async def main():
        async with Server(module.app) as server:
            await until(module.app.consumer.done)
            assert await server.get("/health") == (503, {"seen": 0, "consuming": False})

    asyncio.run(asyncio.wait_for(main(), 3 * PATIENCE))
