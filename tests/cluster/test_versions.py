"""The wheel with every supported PySpark, each in a separate environment."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.testing import EmbeddedCluster, KafkaCluster
from tests.cluster.shipping import PLAIN, Shipment, environment
from tests.spark import nested
from tests.spark.format_jars import iceberg_jars
from tests.spark.programs import Program, expected, rows, stream_twice

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(900)]
SCHEMA = ("struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
          "timestampType:int,headers:array<struct<key:string,value:binary>>>")


def output(python: Path, *arguments: str | Path) -> list[str]:
    """The lines that a program of PySpark prints, with nothing of the environment that the tests run in."""
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**PLAIN, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"})
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize(("version", "limited"), [
    ("4.0", "option maxOffsetsPerTrigger needs PySpark 4.2 or newer, which limits the size of a trigger"),
    ("4.1", "option maxOffsetsPerTrigger needs PySpark 4.2 or newer, which limits the size of a trigger"),
    ("4.2", [10, 10]),
    ("4.3", [10, 10]),
])
def test_each_pyspark(
    shipment: Shipment, kafka3: KafkaCluster, tmp_path: Path, version: str, limited: str | list[int]
):
    topic = f"version-{version}"
    kafka3.create_topic(topic, 2)
    kafka3.produce(topic, [{"value": b"%d" % n, "partition": n % 2, "headers": [("h", b"1")]} for n in range(20)])
    python = environment(tmp_path / "environment", f"pyspark=={version}.*", f"{shipment.wheel}[spark]") / "bin/python"
    job = Path(__file__).with_name("versions_job.py")
    told = json.loads(output(python, job, kafka3.bootstrap_servers, topic, tmp_path)[-1])
    assert told["version"].startswith(f"{version}.")
    assert told["schema"] == SCHEMA
    assert told["batch"] == told["streamed"] == {"0": list(range(10)), "1": list(range(10))}
    if isinstance(limited, str):
        assert limited in told["limited"]
    else:
        assert told["limited"] == limited


def test_iceberg(shipment: Shipment, kafka3: KafkaCluster, tmp_path: Path):
    """Its newest jar is for Spark 4.1; 4.2 cannot load it."""
    python = environment(tmp_path / "environment", "pyspark==4.1.*", f"{shipment.wheel}[spark,cli]") / "bin/python"
    settings = [f"spark.jars={','.join(map(str, iceberg_jars()))}",
                "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.lake.type=hadoop",
                f"spark.sql.catalog.lake.warehouse={tmp_path}/lake"]
    program = Program(str(python), {**PLAIN, "PYSPARK_PYTHON": str(python)}, settings)
    stream_twice(program, kafka3, "iceberg", (f"{tmp_path}/state", "iceberg", "lake.db.rows"))
    assert rows(program, "lake.db.rows") == expected()


# Prints the rows of a table as JSON, and for each condition the ids of its rows. Arguments: the jars of Iceberg, a
# file of the table's metadata, and conditions.
READ_ICEBERG = """
import json, sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.sql.session.timeZone", "UTC").config("spark.jars", sys.argv[1]).getOrCreate())
table = spark.read.format("iceberg").load(sys.argv[2])
print(table.schema.simpleString())
print(json.dumps([json.loads(row) for row in table.orderBy("id").toJSON().collect()]))
print(json.dumps([[row.id for row in table.where(text).orderBy("id").collect()] for text in sys.argv[3:]]))
"""


@pytest.mark.parametrize("compacted", [False, True])
def test_spark_reads_an_iceberg_table_of_the_direct_engine(kafka3: KafkaCluster, tmp_path: Path, compacted: bool):
    """It skips files by partitions of every transform, and finds the same rows, also after a compaction."""
    from pyiceberg.catalog import load_catalog

    topic = f"iceberg-direct-{compacted}"
    kafka3.create_topic(topic, 2)
    values = [{"id": n, "price": n / 8, "at": f"2026-{n % 5 + 1:02d}-01T12:00:00+02:00",
               "place": {"x": n, "tags": ["a", None]}} for n in range(100)]
    kafka3.produce(topic, [
        {"value": json.dumps(value).encode(), "partition": n % 2} for n, value in enumerate(values)])
    catalog = {"name": "lake", "type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db",
               "warehouse": f"file://{tmp_path}/lake"}
    options = IngestOptions(
        bootstrap_servers=kafka3.bootstrap_servers, topics=(topic,), path=str(tmp_path / "rows"),
        format="iceberg", table="db.rows", catalog=catalog, value="json", metadata=("partition", "offset"),
        schema="id BIGINT, price DECIMAL(10,3), at TIMESTAMP, place STRUCT<x: INT, tags: ARRAY<STRING>>",
        source={"maxOffsetsPerTrigger": "50"},
        partition_by=("month(at)", "bucket(2, id)", "truncate(4000, price)"))
    with Ingestion(options, LocalRunner(processes=2)) as ingestion:
        ingestion.run()
        if compacted:
            assert ingestion.compact() > 10
    metadata = load_catalog(**catalog).load_table("db.rows").metadata_location

    python = environment(tmp_path / "environment", "pyspark==4.1.*") / "bin/python"
    conditions = ["at < '2026-02-15'", "id = 41", "price < 5.5 and id in (3, 4, 70)", "at = '2026-03-01 10:00:00'"]
    schema, text, chosen = output(
        python, "-c", READ_ICEBERG, ",".join(map(str, iceberg_jars())), metadata, *conditions)[-3:]
    assert json.loads(chosen) == [[n for n in range(100) if n % 5 < 2], [41], [3, 4],
                                  [n for n in range(100) if n % 5 == 2]]
    found = json.loads(text)
    assert "id:bigint,price:decimal(10,3),at:timestamp,place:struct<x:int,tags:array<string>>" in schema
    for n, row in enumerate(found):
        assert (row["id"], row["partition"], row["offset"]) == (n, n % 2, n // 2)
        assert Decimal(str(row["price"])) == Decimal(n) / 8
        assert datetime.fromisoformat(row["at"]) == datetime(2026, n % 5 + 1, 1, 10, tzinfo=timezone.utc)
        assert row["place"] == {"x": n, "tags": ["a", None]}
    assert len(found) == len(values)


@pytest.mark.parametrize("compacts", [False, True])
def test_spark_reads_new_nested_fields_of_an_iceberg_table(tmp_path: Path, compacts: bool):
    from pyiceberg.catalog import load_catalog

    catalog = {"name": "lake", "type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db",
               "warehouse": f"file://{tmp_path}/lake"}
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        nested.write(lambda records: cluster.produce("t", records), compacts, topics=("t",), format="iceberg",
                     bootstrap_servers=cluster.bootstrap_servers, path=str(tmp_path / "rows"), table="db.rows",
                     catalog=catalog)
    metadata = load_catalog(**catalog).load_table("db.rows").metadata_location
    python = environment(tmp_path / "environment", "pyspark==4.1.*") / "bin/python"
    text = output(python, "-c", nested.READ, "iceberg", metadata,
                  f"spark.jars={','.join(map(str, iceberg_jars()))}")[-1]
    assert json.loads(text) == nested.ROWS
