"""Owns: the parts of the benchmark against Spark's own Kafka source: `python -m benchmarks.spark --help`.

Threads: the main thread; Spark and the broker are processes. Never: fails because of a low figure.

Each part writes its samples to build/bench/spark/. The report covers all samples there, so parts can run one at a time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.report import machine
from benchmarks.spark import reads, report, scale, streams
from benchmarks.topics import Topic

PARTITIONS = 8
TOPICS = {topic.name: topic for topic in (
    Topic("small", "100 B, uncompressed, 8 partitions", 5_000_000, partitions=PARTITIONS),
    Topic("large", "10 kB, uncompressed, 8 partitions", 200_000, value_bytes=10_000, partitions=PARTITIONS),
    Topic("lz4", "100 B, lz4, 8 partitions", 5_000_000, partitions=PARTITIONS, codec="lz4"),
    Topic("zstd", "100 B, zstd, 8 partitions", 5_000_000, partitions=PARTITIONS, codec="zstd"),
    Topic("p100", "100 B, uncompressed, 100 partitions", 5_000_000, partitions=100),
)}
QUICK = 0.1

Part = Callable[[float, int], dict[str, Any]]  # of a factor for the records, and the number of rounds


def read(topic: str, where: str, factor: float, rounds: int) -> dict[str, Any]:
    return reads.measure(TOPICS[topic].scaled(factor), rounds, where)


def triggers(topic: Topic, count: int, factor: float, rounds: int) -> dict[str, Any]:
    scaled = topic.scaled(factor)
    return streams.triggers(scaled, scaled.records // count, rounds)


def latency(factor: float, rounds: int) -> dict[str, Any]:
    return streams.latency(500, 20.0 * factor + 2.0, rounds)


PARTS: dict[str, Part] = {
    **{name: partial(read, name, reads.LOCAL) for name in TOPICS},
    **{f"{name}-standalone": partial(read, name, reads.STANDALONE) for name in ("small", "large")},
    "triggers": partial(triggers, TOPICS["small"], 10),
    "tiny-triggers": partial(triggers, Topic("tiny", "100 B, uncompressed, 8 partitions", 40_000, partitions=8), 40),
    "latency": latency,
    "scale": lambda factor, _rounds: scale.measure(round(10_000 * factor)),
}


def run(name: str, quick: bool, rounds: int) -> None:
    began = time.monotonic()
    found = PARTS[name](QUICK if quick else 1.0, rounds)
    report.BUILD.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"part": name, "quick": quick, "machine": machine(), "began": time.strftime("%Y-%m-%d"), **found},
                      indent=1)
    (report.BUILD / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark",
        description="Reads the same topics with Spark's own source, kconsumer, and ready-made batches.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one round: shows that all works")
    parser.add_argument("--rounds", type=int, help="default 3; --quick: 1")
    parser.add_argument("--report", action="store_true", help="measure nothing; make the report of what is there")
    parser.add_argument("--publish", action="store_true", help="put the report into docs/benchmarks-spark.md too")
    given = parser.parse_args()
    unknown = set(given.parts) - PARTS.keys()
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    if not given.report:
        for name in given.parts or PARTS:
            run(name, given.quick, given.rounds or (1 if given.quick else 3))
    print(report.write(list(PARTS), given.publish))


if __name__ == "__main__":
    main()
