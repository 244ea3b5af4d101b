"""`--take-over` of checkpoints that Spark wrote: every record is in the old output or in the new table, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kconsumer.ingest import IngestError, Ingestion, IngestOptions, LocalRunner
from kconsumer.spark import register
from kconsumer.testing import EmbeddedCluster

Names = Callable[[], str]
SOURCES = {"kconsumer": {}, "typed": {"value.format": "json", "value.schema": "n INT"}}


class Query:
    """A query in two batches of 40 records, with the options file of the engine that earlier releases had."""

    def __init__(self, spark: Any, cluster: EmbeddedCluster, topic: str, folder: Path, **source: str) -> None:
        self._spark = spark
        self._cluster = cluster
        self._topic = topic
        self.folder = folder
        self._source = source
        self._written = 0
        register(spark)
        cluster.create_topic(topic, 2)
        for _ in range(2):
            self.produce()
            self.run()
        options = {"version": 2, "topics": [topic], "format": "parquet", "path": f"file:{folder}/rows",
                   "bad_records": "column"}
        (folder / "state/kconsumer-ingest.json").write_text(json.dumps({"options": options}))

    def produce(self) -> None:
        first, self._written = self._written, self._written + 40
        self._cluster.produce(self._topic, [
            {"value": b'{"n": %d}' % n, "partition": n % 2} for n in range(first, self._written)])

    def run(self) -> None:
        rows = self._spark.readStream.format("kconsumer").options(**{
            "kafka.bootstrap.servers": self._cluster.bootstrap_servers, "subscribe": self._topic,
            "startingOffsets": "earliest", **self._source}).load()
        query = rows.writeStream.format("parquet").option("checkpointLocation", f"{self.folder}/state").trigger(
            availableNow=True).start(f"{self.folder}/rows")
        assert query.awaitTermination(120)

    def forget(self, *files: str) -> None:
        """Remove files, and what Spark's local file system has beside them."""
        for file in files:
            path = self.folder / file
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    def take_over(self) -> None:
        """Continue with a job."""
        options = IngestOptions(
            bootstrap_servers=self._cluster.bootstrap_servers, topics=(self._topic,), metadata=("partition", "offset"),
            path=f"{self.folder}/table", take_over=f"{self.folder}/state")
        with Ingestion(options, LocalRunner(1)) as run:
            run.run()

    def check(self) -> None:
        """Every record is in one of the two outputs."""
        old = self._spark.read.parquet(f"{self.folder}/rows").select("partition", "offset").collect()
        new = pq.read_table(self.folder / "table").select(["partition", "offset"]).to_pylist()
        found = sorted([tuple(row) for row in old] + [(row["partition"], row["offset"]) for row in new])
        assert found == [(partition, n) for partition in range(2) for n in range(self._written // 2)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("killed", ["no", "after the output", "before the output"])
def test_a_checkpoint_of_a_query_of_files(
    spark: Any, embedded: EmbeddedCluster, topic_name: Names, tmp_path: Path, *, source: str, killed: str,
):
    query = Query(spark, embedded, topic_name(), tmp_path, **SOURCES[source])
    query.produce()
    last = str(max(int(path.name) for path in (tmp_path / "state/commits").iterdir() if path.name.isdigit()))
    if killed != "no":
        query.forget(f"state/commits/{last}")
    if killed == "before the output":
        query.forget(f"rows/_spark_metadata/{last}")
        with pytest.raises(IngestError, match=f"batch {last} .* is not finished .* remove .*/offsets/{last} instead"):
            query.take_over()
        query.forget(f"state/offsets/{last}")
    query.take_over()
    query.check()
