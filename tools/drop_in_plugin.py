"""A pytest plugin that puts kconsumer's classes into confluent_kafka, and replaces clusters in containers.

Owns: the replacement of names. Threads: pytest's thread. Never: is loaded by our own tests, or changes the checkout.

`DROP_IN_CLIENT` says what is replaced. ``confluent_kafka``: nothing. ``consumer``: what ``kconsumer.compat`` replaces.
``names``: all public names that both packages have, as if a program imported them from kconsumer. ``kconsumer``: these
names in confluent_kafka's own modules too. `BROKERS` names the cluster.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def _load_cimpl() -> types.ModuleType:
    """Import confluent_kafka's extension module before its package, whose modules copy names from it."""
    package = importlib.util.find_spec("confluent_kafka")
    assert package is not None and package.submodule_search_locations
    folder = Path(package.submodule_search_locations[0])
    file = next(path for path in folder.iterdir() if path.name.startswith("cimpl.") and path.suffix in (".so", ".pyd"))
    spec = importlib.util.spec_from_file_location("confluent_kafka.cimpl", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["confluent_kafka.cimpl"] = module
    return module


def _replace_in_extension() -> None:
    """Replace the names in the extension module, before confluent_kafka's other modules copy them."""
    import kconsumer

    cimpl = _load_cimpl()
    for name in kconsumer.__all__:
        if hasattr(cimpl, name):
            setattr(cimpl, name, getattr(kconsumer, name))


def _replace() -> None:
    """Replace every public name that confluent_kafka and kconsumer share."""
    import confluent_kafka.error

    import kconsumer
    import kconsumer.error

    for ours, theirs in ((kconsumer, confluent_kafka), (kconsumer.error, confluent_kafka.error)):
        for name in ours.__all__:
            if not name.startswith("_") and hasattr(theirs, name):
                setattr(theirs, name, getattr(ours, name))


def _replace_aio() -> None:
    """Replace AIOConsumer, also in its defining module: tests import it from there."""
    if importlib.util.find_spec("confluent_kafka.aio") is None:
        return
    import confluent_kafka.aio
    import confluent_kafka.aio._AIOConsumer as defining

    import kconsumer.aio

    confluent_kafka.aio.AIOConsumer = defining.AIOConsumer = kconsumer.aio.AIOConsumer  # type: ignore[misc]


def _stand_in_for_trivup() -> None:
    """Replace trivup: the fixtures import it, but do not need it if the environment names a cluster (BROKERS)."""
    for name in ("trivup", "trivup.clusters", "trivup.clusters.KafkaCluster"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["trivup.clusters.KafkaCluster"].KafkaCluster = None  # type: ignore[attr-defined]  # a stand-in module


class _Network:
    """Stands in for a network of containers."""

    def __enter__(self) -> _Network:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def stop(self) -> None:
        """Stand in for the end of a container."""


def _stand_in_for_testcontainers() -> None:
    """Replace testcontainers, whose fixtures quix-streams' tests need; pytest_configure() replaces the container."""
    for name in ("testcontainers", "testcontainers.core", "testcontainers.core.container",
                 "testcontainers.core.network", "testcontainers.postgres"):
        sys.modules[name] = types.ModuleType(name)
    for name, cls in (("container", "DockerContainer"), ("network", "Network")):
        setattr(sys.modules[f"testcontainers.core.{name}"], cls, _Network)
    sys.modules["testcontainers.postgres"].PostgresContainer = _Network  # type: ignore[attr-defined]  # a stand-in


def pytest_configure() -> None:
    """Give tests that start a container or wait for one the running cluster instead."""
    brokers = os.environ["BROKERS"]
    if "tests.containerhelper" in sys.modules:  # quix-streams
        helper = sys.modules["tests.containerhelper"].ContainerHelper
        helper.create_kafka_container = staticmethod(lambda _network: (_Network(), brokers, brokers))
        helper.start_kafka_container = staticmethod(lambda _container: None)


def pytest_collection_modifyitems() -> None:
    """Give streamz' tests a producer and their topics, which a container would have."""
    streamz = sys.modules.get("streamz.tests.test_kafka")
    if streamz is None:
        return
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    brokers = {"bootstrap.servers": os.environ["BROKERS"]}
    admin, service = AdminClient(brokers), streamz.kafka_service

    def create(name: str, partitions: int) -> None:
        for made in admin.create_topics([NewTopic(name, partitions)]).values():
            made.result(20)

    @contextlib.contextmanager
    def with_topic() -> Iterator[Any]:
        with service() as (producer, topic):
            create(topic, 1)
            yield producer, topic

    create("test-partitions", 2)
    streamz._kafka[0], streamz.kafka_service = Producer(brokers), with_topic


if os.environ["DROP_IN_CLIENT"] == "kconsumer":
    _replace_in_extension()
if os.environ["DROP_IN_CLIENT"] in ("kconsumer", "names"):
    _replace()
    _replace_aio()
elif os.environ["DROP_IN_CLIENT"] == "consumer":
    import kconsumer.compat

    kconsumer.compat.install()
_stand_in_for_trivup()
_stand_in_for_testcontainers()
