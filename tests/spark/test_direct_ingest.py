"""The direct engine on Spark's executors, and its tables as Spark and others read them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kconsumer.ingest import IngestError, Ingestion, IngestOptions
from kconsumer.ingest.runners.spark import SparkRunner
from kconsumer.testing import KafkaCluster
from tests.spark.format_jars import DELTA_SETTINGS, delta_jars
from tests.spark.programs import Program, rows

pytest.importorskip("deltalake")
Names = Callable[[], str]
SCHEMA = "id BIGINT, text STRING, time TIMESTAMP, price DECIMAL(10, 2), tags ARRAY<STRING>, more STRUCT<a: INT>"


def value(n: int) -> bytes:
    return json.dumps({"id": n, "text": f"text {n}" if n % 7 else None, "time": "2024-02-29T23:59:59.999999+02:00",
                       "price": n / 4, "tags": ["a", str(n)], "more": {"a": n}}).encode()


@pytest.fixture
def topic(kafka: KafkaCluster, topic_name: Names) -> str:
    name = topic_name()
    kafka.create_topic(name, 3)
    kafka.produce(name, ({"value": value(n) if n % 100 != 50 else b"{", "partition": n % 3} for n in range(3_000)))
    return name


def options(kafka: KafkaCluster, topic: str, path: Path, **more: Any) -> IngestOptions:
    return IngestOptions(**{**dict(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), path=str(path),
                                   value="json", schema=SCHEMA, metadata=("partition", "offset")), **more})


@pytest.mark.parametrize("way", ["rdd", "mapInArrow"])
def test_a_topic_becomes_a_delta_table(spark: Any, kafka: KafkaCluster, topic: str, tmp_path: Path, way: str):
    runner = SparkRunner(spark)
    assert runner.parallelism == 2
    if way == "mapInArrow":  # as with a session of Spark Connect
        runner._context = None
    triggers: list[Any] = []
    with Ingestion(options(kafka, topic, tmp_path / "out", format="delta", source={"maxOffsetsPerTrigger": "2000"}),
                   runner) as ingestion:
        ingestion.run(triggers.append)
    assert [trigger.rows for trigger in triggers] == [1_998, 1_002]
    frame = pl.read_delta(str(tmp_path / "out"))
    assert frame.select("partition", "offset").n_unique() == frame.height == 3_000
    good = frame.filter(pl.col("bad_record").is_null())
    assert good["id"].sum() == sum(n for n in range(3_000) if n % 100 != 50)
    assert good["more"].struct.field("a").cast(pl.Int64).equals(good["id"])


def test_a_bad_record_fails_the_run_by_its_name(spark: Any, kafka: KafkaCluster, topic: str, tmp_path: Path):
    with Ingestion(options(kafka, topic, tmp_path, bad_records="fail"), SparkRunner(spark)) as ingestion, \
            pytest.raises(IngestError, match=rf"{topic} \[\d\] at offset \d+: the value ends too early"):
        ingestion.run()


def test_a_task_that_is_tried_again_writes_nothing_twice(
    spark: Any, kafka: KafkaCluster, topic: str, tmp_path: Path
):
    from kconsumer.ingest.runners import spark as runner_module

    marker, whole = str(tmp_path / "killed"), runner_module._run

    def run(numbered: Any) -> Any:
        result = whole(numbered)
        try:
            Path(marker).touch(exist_ok=False)
        except FileExistsError:
            return result
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    class Retrying(SparkRunner):
        """local[2] fails a job at its first failed task; a cluster tries four times."""

        def _as_rdd(self, packed: list[bytes], what: str) -> dict[int, bytes]:
            try:
                return dict(self._context.parallelize(list(enumerate(packed)), len(packed)).map(run).collect())
            except Exception:
                return dict(self._context.parallelize(list(enumerate(packed)), len(packed)).map(run).collect())

    out = tmp_path / "out"
    with Ingestion(options(kafka, topic, out, format="delta"), Retrying(spark)) as ingestion:
        ingestion.run()
    assert Path(marker).exists()
    frame = pl.read_delta(str(out))
    assert frame.select("partition", "offset").n_unique() == frame.height == 3_000
    kafka.produce(topic, [{"value": value(1), "partition": 0}])
    with Ingestion(options(kafka, topic, out, format="delta"), SparkRunner(spark)) as ingestion:
        ingestion.run()  # its claim removes what the first attempts have written
    files = {path.name for path in out.rglob("*.parquet")}
    assert files == {Path(uri).name for uri in _uris(out)}


def _uris(out: Path) -> list[str]:
    import deltalake

    return list(deltalake.DeltaTable(str(out)).file_uris())


def test_spark_reads_the_parquet(spark: Any, kafka: KafkaCluster, topic: str, tmp_path: Path):
    with Ingestion(options(kafka, topic, tmp_path, partition_by=("hour=hour(time)",)), SparkRunner(spark)) as ingestion:
        ingestion.run()
    frame = spark.read.parquet(str(tmp_path))
    assert frame.count() == 3_000
    assert dict(frame.dtypes) == {
        "partition": "int", "offset": "bigint", "id": "bigint", "text": "string", "time": "timestamp",
        "price": "decimal(10,2)", "tags": "array<string>", "more": "struct<a:int>", "hour": "int",
        "bad_record": "struct<reason:string,field:string,position:bigint,value:binary>"}
    row = frame.where("id = 9").first()
    assert (row["price"], row["tags"], row["more"]["a"], row["hour"]) == (pytest.approx(2.25), ["a", "9"], 9, 21)
    assert frame.where("id = 9 and time = timestamp '2024-02-29 21:59:59.999999'").count() == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_spark_reads_the_delta_table(spark: Any, kafka: KafkaCluster, topic: str, tmp_path: Path):
    with Ingestion(options(kafka, topic, tmp_path / "out", format="delta", partition_by=("day=to_date(time)",)),
                   SparkRunner(spark)) as ingestion:
        ingestion.run()
    settings = [f"spark.jars={','.join(map(str, delta_jars()))}",
                *(f"{name}={value}" for name, value in DELTA_SETTINGS.items())]
    program = Program(sys.executable, {**os.environ, "PYSPARK_PYTHON": sys.executable}, settings)
    found = rows(program, f"(select id as n, `offset` from delta.`{tmp_path}/out` where id is not null)")
    assert sorted(found) == sorted([n, n // 3] for n in range(3_000) if n % 100 != 50)


def test_executors_write_to_the_drivers_relative_path(
    spark: Any, kafka: KafkaCluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)  # the executor keeps the directory in which Spark was started
    with Ingestion(options(kafka, topic, Path("out"), format="delta"), SparkRunner(spark)) as ingestion:
        ingestion.run()
    assert pl.read_delta(str(tmp_path / "out")).height == 3_000
