"""The process that tests/spark/test_garbage.py runs: reads and other Python tasks in one worker, in turns.

    python worker_garbage.py BOOTSTRAP_SERVERS TOPIC STEP...

The steps: `read` reads the topic; `make` has a UDF keep objects in cycles beyond its task, `drop` has it let go of
them, and `look` prints, as JSON, the worker's process id, how many of them are still there, and how many objects are
kept from the collector.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from kconsumer.spark import register

OBJECTS = 1000


def make(batches: Iterator[Any]) -> Iterator[Any]:
    import sys
    import weakref

    class Node:
        pass

    nodes = [Node() for _ in range(OBJECTS)]
    for node in nodes:
        node.other = nodes  # type: ignore[attr-defined]
    sys.kept, sys.made = nodes, [weakref.ref(node) for node in nodes]  # type: ignore[attr-defined]
    yield from batches


def drop(batches: Iterator[Any]) -> Iterator[Any]:
    import sys

    del sys.kept  # type: ignore[attr-defined]
    yield from batches


def look(batches: Iterator[Any]) -> Iterator[Any]:
    import gc
    import json
    import os
    import sys

    import pyarrow as pa

    for _ in batches:
        there = sum(ref() is not None for ref in getattr(sys, "made", ()))
        yield pa.RecordBatch.from_pydict({"found": [json.dumps([os.getpid(), there, gc.get_freeze_count()])]})


def main(servers: str, topic: str, *steps: str) -> None:
    spark = (SparkSession.builder.master("local[1]").appName("garbage").config("spark.ui.enabled", "false")
             .getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    one = spark.range(1, numPartitions=1)
    tasks: dict[str, Callable[..., Any]] = {"make": make, "drop": drop, "look": look}
    for step in steps:
        if step == "read":
            spark.read.format("kconsumer").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load(
                ).write.format("noop").mode("overwrite").save()
        else:
            rows = one.mapInArrow(tasks[step], "found string" if step == "look" else "id long").collect()
            if step == "look":
                print(rows[0].found, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
