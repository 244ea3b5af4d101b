"""Owns: the measurement of ingestion, in parts: `python -m benchmarks.spark.ingest` (make bench-ingest).

Compares three ways from one topic to a table, in turns: Spark's own pipeline (its Kafka source, from_json or
from_avro, its writer), the direct engine on the same session, and its local runner with two processes. The rows of all
tables are compared. CPU seconds cover the measuring process and its children, without the broker.

Threads: the main thread; Spark and the broker are processes. Never: fails because of a low figure.

Each part runs in a separate process, since a JVM keeps the jars and the settings that it was started with. It writes
its samples to build/bench/ingest/. The report reads all samples there.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import duckdb
from pyspark.sql import DataFrame, SparkSession

from benchmarks.report import machine
from benchmarks.spark import commits, ingest_report, typed
from benchmarks.spark.flights import AVRO, PARTITIONS, PREFIX, SCHEMA, VALUES, WRITING, YEAR, json_values
from benchmarks.spark.ingest_report import LOCAL, OWN, PLAIN, SPARK, YEARLY
from benchmarks.spark.reads import STANDALONE
from benchmarks.spark.usage import cpu_seconds, worker_peaks
from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.ingest.runners.spark import SparkRunner
from kconsumer.testing import KafkaCluster
from tests.spark.connector import connector_jars
from tests.spark.format_jars import DELTA_SETTINGS, avro_jar, delta_jars
from tests.spark.session import session
from tests.spark.standalone import Standalone

SUMS: Final = """count(*), sum(distance), sum(flight), sum(dep_delay), count(arr_delay),
                 epoch_us(min(time_hour)), epoch_us(max(time_hour)), sum(hash(carrier) % 1000),
                 sum(hash(tailnum) % 1000)"""
TOPICS: Final = 10  # that share the partitions of the part `partitions`


@dataclass(frozen=True)
class Case:
    """The values that are read, and the table that is written."""

    value: str = "json"
    table: str = "parquet"
    codec: str = "snappy"  # Spark's default
    days: bool = False  # a partition for each day
    where: str = "local[2]"


CASES: Final = {
    "json-parquet": Case(),
    "avro-parquet": Case("avro"),
    "json-delta": Case(table="delta"),
    "json-parquet-zstd": Case(codec="zstd"),
    "json-parquet-days": Case(codec="zstd", days=True),
    "json-parquet-standalone": Case(where=STANDALONE),
    "avro-parquet-standalone": Case("avro", where=STANDALONE),
    "json-delta-standalone": Case(table="delta", where=STANDALONE),
}


@dataclass(frozen=True)
class Job:
    """One table of one run; `limit`: offsets of a trigger."""

    servers: str
    topics: tuple[str, ...]
    case: Case
    path: str
    limit: int | None = None


# ---- the ways

def spark_pipeline(spark: SparkSession, job: Job) -> list[float]:
    """Spark's own. Returns the milliseconds of each trigger."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    limit = {"maxOffsetsPerTrigger": str(job.limit)} if job.limit else {}
    frame: DataFrame = spark.readStream.format("kafka").options(
        **{"kafka.bootstrap.servers": job.servers, "subscribe": ",".join(job.topics), "startingOffsets": "earliest",
           **limit}).load()
    decoded = f.from_json(f.col("value").cast("string"), SCHEMA) if job.case.value == "json" else \
        from_avro(f.expr(f"substring(value, {len(PREFIX) + 1})"), json.dumps(AVRO))
    frame = frame.select("partition", "offset", decoded.alias("v")).select("partition", "offset", "v.*")
    if job.case.days:
        frame = frame.withColumn("day", f.to_date("time_hour"))
    with tempfile.TemporaryDirectory() as state:
        writer = frame.writeStream.format(job.case.table).option("path", job.path).option("checkpointLocation", state)
        if job.case.days:
            writer = writer.partitionBy("day")
        query = writer.option("compression", job.case.codec).trigger(availableNow=True).start()
        query.awaitTermination()
        return [float(found["durationMs"]["triggerExecution"]) for found in query.recentProgress
                if found["numInputRows"]]


def direct(runner: Any, job: Job) -> list[float]:
    """The direct engine. Returns the milliseconds from one commit to the next, the first from the beginning."""
    value = {"value": "json", "schema": SCHEMA} if job.case.value == "json" else \
        {"value": "avro", "schema": json.dumps(AVRO), "framing": f"skip={len(PREFIX)}"}
    options = IngestOptions(
        bootstrap_servers=job.servers, topics=job.topics, path=job.path, format=job.case.table, codec=job.case.codec,
        metadata=("partition", "offset"), partition_by=("day=to_date(time_hour)",) if job.case.days else (),
        source={"maxOffsetsPerTrigger": str(job.limit)} if job.limit else {}, **value)
    times = [time.monotonic()]
    Ingestion(options, runner).run(on_trigger=lambda _: times.append(time.monotonic()))
    return [(after - before) * 1000 for before, after in pairwise(times)]


def checked(path: str, table: str) -> tuple[Any, ...]:
    """Summarize the rows of a table, to compare two tables."""
    if table == "delta":
        import deltalake

        files = deltalake.DeltaTable(path).file_uris()
    else:
        files = [str(file) for file in Path(path).rglob("*.parquet") if "_kconsumer" not in file.parts]
    found: list[tuple[Any, ...]] = duckdb.sql(f"select {SUMS} from read_parquet({files!r})").fetchall()
    return tuple(map(str, found[0]))


def measured(run: Callable[[], list[float]], job: Job) -> dict[str, Any]:
    """{"seconds", "cpu", "triggers": [ms, …], "sums"} of one run.

    Its table stays until the part ends: ext4 avoids the inodes of files that were deleted shortly before. The
    search for others would count as CPU time of the next run.
    """
    cpu, began = cpu_seconds(os.getpid()), time.monotonic()
    spans = run()
    took = time.monotonic() - began
    return {"seconds": took, "cpu": cpu_seconds(os.getpid()) - cpu, "triggers": spans,
            "sums": checked(job.path, job.case.table)}


def new_folder(scratch: Path) -> str:
    return tempfile.mkdtemp(prefix="table-", dir=scratch)


class Bench:
    """A session and a local runner, and the ways that use them."""

    def __init__(self, where: str, delta: bool, scratch: Path) -> None:
        self.scratch = scratch
        self._standalone = Standalone(scratch) if where == STANDALONE else None
        conf = {"spark.jars": ",".join(map(str, [*connector_jars(), avro_jar(), *delta_jars()])),
                **DELTA_SETTINGS} if delta else {}
        self.spark = session(
            "kconsumer benchmark", self._standalone.__enter__().master if self._standalone else where, conf,
            spark_driver_memory="2g", spark_executor_memory="900m", spark_log_level="ERROR",
            spark_sql_streaming_numRecentProgressUpdates="1000")
        self.local = LocalRunner(2)
        self.ways: dict[str, Callable[[Job], list[float]]] = {
            OWN: lambda job: spark_pipeline(self.spark, job),
            SPARK: lambda job: direct(SparkRunner(self.spark), job),
            LOCAL: lambda job: direct(self.local, job)}

    def close(self) -> None:
        self.local.close()
        self.spark.stop()
        if self._standalone:
            self._standalone.__exit__(None, None, None)

    def run(self, way: str, servers: str, topics: tuple[str, ...], case: Case, limit: int | None = None,
            ) -> dict[str, Any]:
        """Measure one run into a new table."""
        job = Job(servers, topics, case, new_folder(self.scratch), limit)
        return measured(lambda: self.ways[way](job), job)


@contextmanager
def bench(where: str = "local[2]", delta: bool = False) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as scratch:
        made = Bench(where, delta, Path(scratch))
        try:
            yield made
        finally:
            made.close()


def in_turns(ways: Iterable[str], rounds: int, run: Callable[[str], dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """way → its rounds, after one that warms up; without rounds, the one.

    Raises:
        SystemExit: two tables have different rows.
    """
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for way, kept in samples.items():
            sample = run(way)
            if number > 0 or rounds == 0:
                kept.append(sample)
    sums = {tuple(sample["sums"]) for kept in samples.values() for sample in kept}
    if len(sums) != 1:
        raise SystemExit(f"benchmark: the tables differ: {sums}")
    return samples


# ---- the parts

def compare(case: Case, records: int, rounds: int) -> dict[str, Any]:
    """One topic into one kind of table."""
    with KafkaCluster(1, quick_start=False) as cluster, bench(case.where, case.table == "delta") as made:
        cluster.create_topic("flights", PARTITIONS)
        cluster.produce("flights", VALUES[case.value](records), WRITING)
        samples = in_turns(made.ways, rounds, lambda way: made.run(way, cluster.bootstrap_servers, ("flights",), case))
        peaks = worker_peaks()
    about = f"{records:,} {case.value} records into {case.table}, {case.codec}"
    return {"about": about + (", a partition for each of 10 days" if case.days else "") + f", {case.where}",
            "records": records, "samples": samples, "peaks": peaks}


def year(records: int, rounds: int) -> dict[str, Any]:
    """One task into a partition for each of many days, and the same task into one file."""
    cases = {PLAIN: Case(codec="zstd"), YEARLY: Case(codec="zstd", days=True)}
    runners = {name: LocalRunner(1) for name in cases}
    with KafkaCluster(1, quick_start=False) as cluster, tempfile.TemporaryDirectory() as scratch, ExitStack() as ends:
        for runner in runners.values():
            ends.callback(runner.close)
        cluster.create_topic("flights", PARTITIONS)
        cluster.produce("flights", json_values(records, days=YEAR), WRITING)

        def run(way: str) -> dict[str, Any]:
            job = Job(cluster.bootstrap_servers, ("flights",), cases[way], new_folder(Path(scratch)))
            return measured(lambda: direct(runners[way], job), job)

        samples = in_turns(cases, rounds, run)
        peaks = worker_peaks()
    return {"about": f"one local process, {records:,} json records into parquet, zstd, a partition for each of {YEAR} "
                     "days and none", "records": records, "samples": samples, "peaks": peaks}


def triggers(rows: int, count: int, rounds: int) -> dict[str, Any]:
    """Triggers of so many rows, several in each run."""
    partitions = 1 if rows == 1 else PARTITIONS
    with KafkaCluster(1, quick_start=False) as cluster, bench() as made:
        cluster.create_topic("flights", partitions)
        cluster.produce("flights", json_values(rows * count, partitions), WRITING)
        samples = in_turns(made.ways, rounds, lambda way: made.run(
            way, cluster.bootstrap_servers, ("flights",), Case(), rows))
    return {"about": f"{count} triggers of {rows:,} rows", "records": rows, "samples": samples}


def partitions(count: int, ways: tuple[str, ...], rounds: int) -> dict[str, Any]:
    """One record in each of many partitions, in one trigger.

    Spark's own pipeline writes a file for each partition, and takes minutes for a thousand of them.
    """
    # Small indexes: otherwise a broker reserves 20 MiB for each partition.
    with KafkaCluster(1, config={"log.index.size.max.bytes": 65_536}, heap="1500m", quick_start=False) as cluster, \
            bench() as made:
        names = tuple(f"flights-{number}" for number in range(TOPICS))
        for name in names:
            cluster.create_topic(name, count // TOPICS)
            cluster.produce(name, json_values(count // TOPICS, count // TOPICS), WRITING)
        samples = in_turns(ways, rounds, lambda way: made.run(way, cluster.bootstrap_servers, names, Case()))
    return {"about": f"a record in each of {count:,} partitions", "records": count, "samples": samples}


def parts(records: int, rounds: int) -> dict[str, Callable[[], dict[str, Any]]]:
    small = min(records, 1_000_000)
    return {
        **{name: lambda case=case: compare(case, records, rounds) for name, case in CASES.items()},  # type: ignore[misc]
        "year": lambda: year(records, rounds),
        "trigger-1": lambda: triggers(1, 25, rounds),
        "trigger-1000": lambda: triggers(1_000, 25, rounds),
        "trigger-1000000": lambda: triggers(small, 2, rounds),
        "partitions-1000": lambda: partitions(1_000, (OWN, SPARK, LOCAL), 0),
        "partitions-10000": lambda: partitions(10_000, (SPARK, LOCAL), 1),
        "commits": lambda: commits.measure(rounds),
        "typed-json": lambda: typed.measure("json", records, rounds),
        "typed-avro": lambda: typed.measure("avro", records, rounds),
    }


def measure(name: str, records: int, rounds: int) -> None:
    """Measure one part and keep its samples."""
    began = time.monotonic()
    found = parts(records, rounds)[name]()
    ingest_report.keep(name, {"machine": machine(), "began": time.strftime("%Y-%m-%d"), **found})
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    known = list(parts(0, 0))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark.ingest",
        description="Topic to table: Spark's own pipeline and the direct engine; typed columns through Spark.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", action="store_true", help="measure nothing; make the report of what is there")
    parser.add_argument("--publish", action="store_true", help="put the report into docs/benchmarks-ingest.md")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(known):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    spawn = multiprocessing.get_context("spawn")
    for name in () if given.report else given.parts or known:
        part = spawn.Process(target=measure, args=(name, given.records, given.rounds), name=name)
        part.start()
        part.join()
        if part.exitcode:
            raise SystemExit(f"benchmark: {name} ended with {part.exitcode}")
    print(ingest_report.write(known, given.publish))


if __name__ == "__main__":
    main()
