"""Spark Connect: the source and an ingestion on a server, which the client reaches over gRPC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kconsumer.testing import EmbeddedCluster

PROGRAM = Path(__file__).with_name("connect_job.py")


def test_a_batch_a_stream_and_an_ingestion_over_spark_connect(embedded: EmbeddedCluster, tmp_path: Path):
    embedded.create_topic("connected", 2)
    embedded.produce("connected", [{"value": b"%d" % n, "partition": n % 2} for n in range(100)])
    done = subprocess.run(
        [sys.executable, str(PROGRAM), embedded.bootstrap_servers, "connected", str(tmp_path)], capture_output=True,
        text=True, timeout=280, stdin=subprocess.DEVNULL, check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [100, 100, 105, 110]
