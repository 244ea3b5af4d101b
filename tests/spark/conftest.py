"""Every test in this folder is marked ``spark``; one local Spark of two cores serves them all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from kconsumer.testing import KafkaCluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))  # Spark's first query is slow where the machine is busy


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """These modules import pyspark, which is not there where its tests are not wanted."""
    return True if "not spark" in config.option.markexpr else None


Names = Callable[[], str]
AsDaemon = Callable[..., Callable[..., Any]]


def delete_before(kafka: KafkaCluster, topic: str, offset: int, partition: int = 0) -> None:
    """Delete the first records of a partition, as retention does."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        future.result(30)


def partitions(document: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The offsets of a stream, without what Spark's source does not see in them (the ids of the topics)."""
    return {topic: offsets for topic, offsets in document.items() if offsets}


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The condition's value, once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)
    return found


def add(kafka: KafkaCluster, topic: str, *counts: int) -> None:
    kafka.produce(topic, [{"value": b"%d" % n, "partition": p} for p, count in enumerate(counts) for n in range(count)])


@pytest.fixture
def filled(kafka: KafkaCluster, topic_name: Names) -> Callable[..., str]:
    """``filled(10, 0, 5)``: a new topic with so many records on its partitions."""

    def make(*counts: int) -> str:
        name = topic_name()
        kafka.create_topic(name, len(counts))
        add(kafka, name, *counts)
        return name

    return make


def grow_topic(kafka: KafkaCluster, topic: str, count: int) -> None:
    """Give a topic so many partitions."""
    from confluent_kafka.admin import AdminClient, NewPartitions

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.create_partitions([NewPartitions(topic, count)]).values():
        future.result(30)
    until(lambda: len(kafka.leaders(topic)) == count and -1 not in kafka.leaders(topic).values())


@pytest.fixture
def grow(kafka: KafkaCluster) -> Callable[[str, int], None]:
    return lambda topic, count: grow_topic(kafka, topic, count)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all tests."""
    from tests.spark.session import session

    found = session("kconsumer tests", spark_sql_shuffle_partitions="2",
                    spark_sql_warehouse_dir=str(tmp_path_factory.mktemp("warehouse")))
    found.sparkContext.setLogLevel("OFF")  # tests that fail a query on purpose
    yield found
    found.stop()


@pytest.fixture
def read(spark: Any, kafka: KafkaCluster) -> Callable[..., Any]:
    """``read(subscribe="t", **options)``: a DataFrame of the session's cluster."""

    def load(**options: Any) -> Any:
        texts = {name.replace("__", "."): str(value) for name, value in options.items()}
        return spark.read.format("kconsumer").options(
            **{"kafka.bootstrap.servers": kafka.bootstrap_servers, **texts}).load()

    return load


@pytest.fixture
def as_daemon(monkeypatch: pytest.MonkeyPatch) -> AsDaemon:
    """``as_daemon(function)``: the function as one of pyspark's daemon, which this process is then."""

    def make(function: FunctionType, main: str = "pyspark.daemon") -> Callable[..., Any]:
        spec = SimpleNamespace(name=main)
        monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=spec))
        names = {**function.__globals__, "__spec__": spec}
        return FunctionType(function.__code__.replace(co_name=function.__name__.partition("_of_")[0]), names)

    return make
