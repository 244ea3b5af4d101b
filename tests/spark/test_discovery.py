"""How Spark comes to know the source, and what is said where something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceStreamReader

import kconsumer
from kconsumer.errors import ConfigurationError, KafkaException
from kconsumer.spark import compat
from kconsumer.spark.source import KconsumerDataSource
from kconsumer.spark.stream import UnlimitedStreamReader
from kconsumer.testing import KafkaCluster
from tests.spark.conftest import add, partitions
from tests.spark.engine import Engine

SOURCES = Path(kconsumer.__file__).parent.parent
READ = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = session.read.format("kconsumer").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", sys.argv[2])
print("rows:", frame.load().count())
"""


def run(code: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """A folder for PYTHONPATH with the module that a wheel puts beside kconsumer."""
    (tmp_path / "pyspark_kconsumer").symlink_to(SOURCES / "pyspark_kconsumer")
    return str(tmp_path)


def test_a_session_finds_it_by_itself(kafka: KafkaCluster, topic_name: Any, installed: str):
    name = topic_name()
    kafka.create_topic(name)
    kafka.produce(name, [b"1", b"2", b"3"])
    done = run(READ, kafka.bootstrap_servers, name, PYTHONPATH=installed, SPARK_LOCAL_IP="127.0.0.1",
               PYSPARK_PYTHON=sys.executable)
    assert "rows: 3" in done.stdout, done.stderr


def test_spark_finds_the_data_source_by_its_module(installed: str):
    done = run("import pyspark_kconsumer as m; print(m.DefaultSource.__module__, m.DefaultSource.name())",
               PYTHONPATH=installed)
    assert done.stdout == "kconsumer.spark.source kconsumer\n", done.stderr


def test_the_look_up_does_not_fail_where_pyarrow_is_missing(installed: str):
    """A failure would break all other sources too. Only a user of this source gets the error."""
    done = run("import sys; sys.modules['pyarrow'] = None; import pyspark_kconsumer as m\n"
               "print(m.DefaultSource.name()); m.DefaultSource({})", PYTHONPATH=installed)
    assert done.stdout == "kconsumer\n"
    assert "pip install 'kconsumer[spark]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("module", ["pyspark", "pyarrow"])
def test_an_import_error_names_the_missing_package(module: str):
    done = run(f"import sys; sys.modules[{module!r}] = None; import kconsumer; import kconsumer.spark")
    assert done.returncode == 1
    assert "pip install 'kconsumer[spark]'" in done.stderr.splitlines()[-1]


def test_a_pyspark_without_data_sources():
    done = run("import sys, pyspark\nimport importlib.util as u\nfind = u.find_spec\n"
               "u.find_spec = lambda name, *rest: None if name == 'pyspark.sql.datasource' else find(name, *rest)\n"
               "pyspark.__version__ = '3.5.0'\nimport kconsumer.spark")
    assert done.returncode == 1
    assert "PySpark 4.0 or newer is needed for data sources in Python; this is 3.5.0" in done.stderr


# ---- PySpark 4.0 and 4.1

@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "has_admission_control", lambda: False)
    monkeypatch.setattr(compat, "VERSION", "4.1.0")


def stream_reader(servers: str, topic: str, **options: str) -> DataSourceStreamReader:
    source = KconsumerDataSource({"kafka.bootstrap.servers": servers, "subscribe": topic, **options})
    return source.streamReader(source.schema())


@pytest.mark.parametrize("option", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay",
                                    "maxBytesPerTrigger"])
@pytest.mark.usefixtures("older")
def test_limits_need_a_newer_one(option: str):
    with pytest.raises(ConfigurationError) as raised:
        stream_reader("h:1", "t", **{option: "5"})
    assert f"option {option} needs PySpark 4.2 or newer" in raised.value.args[0].str()
    assert "this is 4.1.0" in raised.value.args[0].str()


@pytest.mark.usefixtures("older")
def test_a_stream_without_limits(kafka: KafkaCluster, topic_name: Any):
    name = topic_name()
    kafka.create_topic(name, 2)
    kafka.produce(name, [{"value": b"1", "partition": 1}])
    reader = stream_reader(kafka.bootstrap_servers, name)
    assert isinstance(reader, UnlimitedStreamReader)
    start = reader.initialOffset()
    assert start == reader.latestOffset()
    assert partitions(start) == {name: {"0": 0, "1": 1}}
    kafka.produce(name, [{"value": b"2", "partition": 1}])
    end = reader.latestOffset()
    assert partitions(end) == {name: {"0": 0, "1": 2}}
    (part,) = reader.partitions(start, end)
    (batch,) = reader.read(part)
    assert batch.column("value").to_pylist() == [b"2"]
    reader.stop()


@pytest.mark.usefixtures("older")
def test_a_recreated_topic_and_a_deleted_one(kafka: KafkaCluster, topic_name: Any):
    """Where a query is started again, these versions tell the source its start only with the ranges to plan."""
    name, other = topic_name(), topic_name()
    for topic in (name, other):
        kafka.create_topic(topic)
        add(kafka, topic, 10)
    query = Engine(kafka, subscribe=f"{name},{other}")
    query.run()
    kafka.delete_topic(name)
    kafka.create_topic(name)
    add(kafka, name, 20)
    for _ in range(2):
        with pytest.raises(KafkaException, match=f"topic {name} was deleted and recreated since it was read"):
            query.run()
    assert len(query.run(failOnDataLoss="false")) == 20
    kafka.delete_topic(other)
    with pytest.raises(KafkaException, match=rf"{other} \[0\] are gone"):
        query.run(subscribe=name)
    add(kafka, name, 1)
    assert [row[:3] for row in query.run(subscribe=name, failOnDataLoss="false")] == [(name, 0, 20)]
    assert query.run(subscribe=name) == []
