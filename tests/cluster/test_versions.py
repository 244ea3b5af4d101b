"""The wheel with every supported PySpark, each in a separate environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kconsumer.testing import KafkaCluster
from tests.cluster.shipping import PLAIN, Shipment, environment
from tests.spark.format_jars import iceberg_jars
from tests.spark.programs import Program, expected, ingest_twice, rows

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(900)]
SCHEMA = ("struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
          "timestampType:int,headers:array<struct<key:string,value:binary>>>")


@pytest.mark.parametrize(("version", "limited"), [
    ("4.0", "option maxOffsetsPerTrigger needs PySpark 4.2 or newer, which asks a source how much a trigger may read"),
    ("4.1", "option maxOffsetsPerTrigger needs PySpark 4.2 or newer, which asks a source how much a trigger may read"),
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
    done = subprocess.run(
        [python, Path(__file__).with_name("versions_job.py"), kafka3.bootstrap_servers, topic, tmp_path],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**PLAIN, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"})
    assert done.returncode == 0, done.stderr[-5000:]
    told = json.loads(done.stdout.splitlines()[-1])
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
    ingest_twice(program, kafka3, "iceberg", tmp_path / "state", ["-o", "iceberg", "--table", "lake.db.rows"])
    assert rows(program, "lake.db.rows") == expected()
