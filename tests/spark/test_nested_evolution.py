"""Spark reads tables whose nested fields were added by the direct engine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from kconsumer.testing import EmbeddedCluster
from tests.spark.format_jars import DELTA_SETTINGS, delta_jars
from tests.spark.nested import READ, ROWS, write
from tests.spark.programs import Program


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "compacts"), [("parquet", False), ("delta", False), ("delta", True)])
def test_spark_reads_new_nested_fields(tmp_path: Path, kind: str, compacts: bool):
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        write(lambda records: cluster.produce("t", records), compacts, topics=("t",), path=str(tmp_path / "rows"),
              format=kind, bootstrap_servers=cluster.bootstrap_servers)
    settings = [f"spark.jars={','.join(map(str, delta_jars()))}",
                *(f"{name}={value}" for name, value in DELTA_SETTINGS.items())] if kind == "delta" else []
    program = Program(sys.executable, {**os.environ, "PYSPARK_PYTHON": sys.executable}, settings)
    text = program.run("-c", READ, kind, str(tmp_path / "rows"), *program.all_settings).splitlines()[-1]
    assert json.loads(text) == ROWS
