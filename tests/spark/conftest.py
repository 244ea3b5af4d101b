"""Every test in this folder is marked ``spark``; one local Spark of two cores serves them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
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


def delete_before(kafka: KafkaCluster, topic: str, offset: int) -> None:
    """Delete the first records of partition 0, as retention does."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


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
