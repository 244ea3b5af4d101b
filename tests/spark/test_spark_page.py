"""The Spark examples of docs/spark.md and README.md, and the `kconsumer ingest` lines of all pages, run as they stand.

`localhost:9092` becomes the cluster's address, `/data` a temporary folder and the cluster's master `local[2]`. The
topics of the examples are there, and the checkpoint of a query that has read TAKEN records of each partition of
flights. tests/cluster runs the page's part about shipping to a cluster.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kconsumer.testing import EmbeddedCluster
from tests.docs_blocks import ADDRESS, ROOT, blocks, commands

PAGE = ROOT / "docs" / "spark.md"
RECORDS = 300
PARTITIONS = 3
STAYS = {"hotels": 40, "hostels": 20}
TAKEN = 10


@pytest.fixture(scope="module")
def flights() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("flights", partitions=PARTITIONS)
        cluster.produce("flights", ({"partition": i % PARTITIONS, "value": json.dumps(
            {"carrier": "AA", "dest": "LAX", "distance": i, "time_hour": f"2013-01-{1 + i % 2:02} 05:00:00"})}
            for i in range(RECORDS)))
        for topic, count in STAYS.items():
            cluster.create_topic(topic, partitions=2)
            cluster.produce(topic, ({"partition": i % 2, "value": json.dumps({"name": f"{topic} {i}", "stars": i % 6})}
                                    for i in range(count)))
        yield cluster


def adapted(text: str, cluster: EmbeddedCluster, folder: Path) -> str:
    return text.replace(ADDRESS, cluster.bootstrap_servers).replace("/data", str(folder)).replace(
        "spark://host:7077", "local[2]").replace('"state/', f'"{folder}/state/').replace('"out/', f'"{folder}/out/')


def test_the_python_blocks_run(spark: Any, flights: EmbeddedCluster, tmp_path: Path) -> None:
    names = {"spark": spark}
    found = [block for block in blocks(PAGE) if block.language == "python"]
    assert len(found) == 4
    for block in found:
        exec(compile("\n" * (block.line - 1) + adapted(block.code, flights, tmp_path), str(PAGE), "exec"), names)
    assert names["frame"].where("bad_record is null and distance = offset * 3 + partition").count() == RECORDS
    assert spark.read.json(f"{tmp_path}/out/far").count() == RECORDS - 201
    assert names["query"].awaitTermination(120)
    assert spark.read.parquet(str(tmp_path / "flights")).count() == RECORDS


def test_the_block_of_the_readme_runs(spark: Any, flights: EmbeddedCluster, tmp_path: Path) -> None:
    (block,) = [block for block in blocks(ROOT / "README.md") if "spark.read" in block.code]
    names = {"spark": spark}
    exec(compile("\n" * (block.line - 1) + adapted(block.code, flights, tmp_path), str(block.page), "exec"), names)
    assert names["frame"].where("carrier = 'AA' and distance = offset * 3 + partition").count() == RECORDS


def ingestions() -> Iterator[Any]:
    """The commands that end by themselves."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for place, line in commands(page):
            if re.match(r"kconsumer ingest|spark-submit .*ingest", line) and "--trigger" not in line:
                yield pytest.param(line, id=place)


def write_checkpoint(folder: Path) -> None:
    """A checkpoint as Spark writes it, of a query whose only batch has ended."""
    offsets = json.dumps({"flights": {str(partition): TAKEN for partition in range(PARTITIONS)}})
    for name, lines in (("offsets", ["v1", '{"batchWatermarkMs":0}', offsets]),
                        ("commits", ["v1", '{"nextBatchWatermarkMs":0}'])):
        (folder / name).mkdir(parents=True)
        (folder / name / "0").write_text("\n".join(lines))


def expected(words: list[str]) -> dict[str, int]:
    """Path of a table to the number of its rows, after a command of these words."""
    options = list(pairwise(words))
    routes = [value.partition("=") for option, value in options if option == "--route"]
    if routes:
        counts = {"flights": RECORDS, **STAYS}
        return {path: sum(counts[topic] for topic in topics.split(",")) for topics, _, path in routes}
    rows = RECORDS - (TAKEN * PARTITIONS if "--take-over" in words else 0)
    return {path: rows for option, path in options if option == "-O"}


@pytest.mark.parametrize("line", ingestions())
def test_a_command_of_the_docs_ingests(line: str, spark: Any, flights: EmbeddedCluster, tmp_path: Path) -> None:
    line = adapted(line, flights, tmp_path)
    words = shlex.split(line, comments=True)
    if "--take-over" in words:
        write_checkpoint(tmp_path / words[words.index("--take-over") + 1])
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
                   "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    # A table must be there to be compacted.
    for command in ([line.replace("--compact", ""), line] if "--compact" in words else [line]):
        done = subprocess.run(["bash", "-c", command], env=environment, cwd=tmp_path, text=True, capture_output=True,
                              timeout=200, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, done.stderr
    delta, iceberg = (("-o", kind) in pairwise(words) for kind in ("delta", "iceberg"))
    for path, rows in expected(words).items():
        table = str(tmp_path / path)
        found = DeltaTable(table).to_pyarrow_table().num_rows if delta else \
            spark.read.options(recursiveFileLookup=iceberg, pathGlobFilter="*.parquet").parquet(table).count()
        assert (path, found) == (path, rows)
