"""Batch and stream through Kerberos: workers find the realm where the driver does, the keytab under the option's path.

The job is a separate process, since the Kerberos library reads its environment once and workers have that of the JVM.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kconsumer.testing import KafkaCluster
from tests.kafka.kerberos import REALM, WITHOUT_KDC, Kdc, missing_programs

pytestmark = pytest.mark.skipif(bool(missing_programs()), reason=WITHOUT_KDC)

RECORDS = {0: 300, 1: 200}
JOB = """
import json, sys
from tests.spark.session import session

options, folder = json.loads(sys.argv[1]), sys.argv[2]
spark = session("kerberos")
try:
    counts = {r.partition: r["count"] for r in
              spark.read.format("kconsumer").options(**options).load().groupBy("partition").count().collect()}
    query = (spark.readStream.format("kconsumer").options(**options).option("startingOffsets", "earliest").load()
             .writeStream.format("parquet").option("path", folder + "/rows")
             .option("checkpointLocation", folder + "/state").trigger(availableNow=True).start())
    query.awaitTermination(120)
    print(json.dumps({"batch": counts, "stream": spark.read.parquet(folder + "/rows").count()}))
except Exception as error:
    print(json.dumps({"error": str(error)}))
finally:
    spark.stop()
"""


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    with Kdc() as one:
        yield one


@pytest.fixture(scope="module")
def cluster(kdc: Kdc) -> Iterator[KafkaCluster]:
    with KafkaCluster(listeners={"KRB": kdc.listener()}, java_options=kdc.java_options) as one:
        one.create_topic("t", 2)
        one.produce("t", [{"value": b"%d" % n, "partition": p} for p, count in RECORDS.items() for n in range(count)])
        yield one


def run(kdc: Kdc, cluster: KafkaCluster, folder: Path, keytab: Path) -> dict[str, object]:
    options = {"kafka.bootstrap.servers": cluster.bootstrap("KRB"), "subscribe": "t", "minPartitions": "4",
               "kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "GSSAPI",
               "kafka.sasl.kerberos.service.name": "kafka", "kafka.sasl.kerberos.keytab": str(keytab),
               "kafka.sasl.kerberos.principal": f"alice@{REALM}"}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", JOB, json.dumps(options), str(folder)], check=False, capture_output=True, text=True,
        timeout=240, env=os.environ | kdc.environment | {"PYTHONPATH": str(root)}, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-5000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_keytab(kdc: Kdc, cluster: KafkaCluster, tmp_path: Path) -> None:
    found = run(kdc, cluster, tmp_path, kdc.add("alice", "alice.keytab"))
    assert found == {"batch": {str(p): count for p, count in RECORDS.items()}, "stream": sum(RECORDS.values())}


def test_a_keytab_that_is_not_there(kdc: Kdc, cluster: KafkaCluster, tmp_path: Path) -> None:
    found = run(kdc, cluster, tmp_path, tmp_path / "no.keytab")
    assert "no.keytab" in str(found["error"])
