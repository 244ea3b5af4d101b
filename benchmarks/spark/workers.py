"""Owns: the effect of kconsumer's changes in pyspark's workers on a small task: `python -m benchmarks.spark.workers`.

Measures the milliseconds of a task: a batch read of 2,000 records in 60 tasks on local[1]. It runs with both changes
(kconsumer.spark.garbage and kconsumer.spark.latency), without each one, and without both. `--pyspark FOLDER` uses the
PySpark that `pip install --target FOLDER` has put there.

Threads: the main thread; every measurement runs in a separate process. Never: changes the package: a measured process
without a change replaces its function by one that does nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import machine
from kconsumer.testing import EmbeddedCluster

ROOT = Path(__file__).resolve().parents[2]
TASKS = 60
RECORDS = 2_000
READS = 5
WITHOUT = ("", "garbage", "latency", "garbage latency")
# In every Python process that has its folder on PYTHONPATH, before anything else is imported.
_REPLACE = """
import os, sys, types
for name, function in (("garbage", "freeze_imports"), ("latency", "disable_tcp_delays")):
    if name in os.environ["WITHOUT"].split():
        module = types.ModuleType(f"kconsumer.spark.{name}")
        setattr(module, function, lambda: None)
        sys.modules[module.__name__] = module
"""


def measure(servers: str) -> None:
    """Print the milliseconds of a task in each read, after a first one that does not count."""
    from pyspark.sql import SparkSession

    from kconsumer.spark import register

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    for _ in range(READS + 1):
        began = time.monotonic()
        spark.read.format("kconsumer").options(
            **{"kafka.bootstrap.servers": servers, "subscribe": "small", "minPartitions": str(TASKS)}).load(
            ).write.format("noop").mode("overwrite").save()
        print((time.monotonic() - began) * 1000 / TASKS, flush=True)
    print(spark.version, flush=True)
    spark.stop()


def without(names: str, servers: str, pyspark: str | None) -> tuple[str, list[float]]:
    """PySpark's version, and the milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(_REPLACE, encoding="utf-8")
        paths = [folder, *([pyspark] if pyspark else []), str(ROOT)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.spark.workers", "--measure", servers], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, check=True, cwd=ROOT,
            env={**os.environ, "WITHOUT": names, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable,
                 "SPARK_LOCAL_IP": "127.0.0.1"})
    *times, version = done.stdout.split()
    return version, [float(text) for text in times[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures a small task with and without each intervention.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pyspark", help="a folder with another PySpark")
    parser.add_argument("--measure", metavar="SERVERS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.measure)
        return
    found: dict[str, list[float]] = {names: [] for names in WITHOUT}
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("small", 1)
        cluster.produce("small", [b"%d" % n for n in range(RECORDS)])
        for _ in range(given.rounds):
            for names in WITHOUT:
                version, times = without(names, cluster.bootstrap_servers, given.pyspark)
                found[names] += times
    here = machine()
    print(f"PySpark {version}, Python {here['python']}, {here['cores']} cores ({here['cpu']})")
    for names, times in found.items():
        print(f"without {names or 'nothing'}: {statistics.median(times):.1f} ms a task "
              f"({min(times):.1f}-{max(times):.1f})")


if __name__ == "__main__":
    main()
