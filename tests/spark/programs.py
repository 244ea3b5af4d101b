"""The ingestion as a process, twice, into a table of any format; and what is in the table then.

Owns: Program, ingest_twice(), rows(). Threads: the test's. Never: imports pyspark: a program may run another one.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kconsumer.testing import KafkaCluster

_PART = 50
_READ = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("=", 1))
found = builder.getOrCreate().sql(f"SELECT n, offset FROM {sys.argv[1]} ORDER BY offset").collect()
print(json.dumps([list(row) for row in found]))
"""
_SETTINGS = ("spark.master=local[2]", "spark.ui.enabled=false", "spark.sql.shuffle.partitions=2")


@dataclass(frozen=True)
class Program:
    """A Python, and what its Spark is set to."""

    python: str
    environment: Mapping[str, str]
    settings: Sequence[str]

    @property
    def all_settings(self) -> list[str]:
        return [*_SETTINGS, *self.settings]

    def run(self, *arguments: str) -> str:
        """What it prints."""
        done = subprocess.run([self.python, *arguments], capture_output=True, text=True, timeout=300, check=False,
                              env={**self.environment, "SPARK_LOCAL_IP": "127.0.0.1"}, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout


def ingest_twice(program: Program, kafka: KafkaCluster, topic: str, state: Path, target: Sequence[str]) -> None:
    """Numbered records, half of them for each run, as columns n and offset."""
    kafka.create_topic(topic)
    given = [part for setting in program.all_settings for part in ("--conf", setting)]
    for run in range(2):
        kafka.produce(topic, [b'{"n": %d}' % n for n in range(run * _PART, (run + 1) * _PART)])
        program.run("-m", "kconsumer", "ingest", "-b", kafka.bootstrap_servers, topic, "--checkpoint", str(state),
                    "--value", "json", "--schema", "n INT", "--bad-records", "fail", "--select", "value.n", "--select",
                    "offset", *given, *target)


def rows(program: Program, table: str) -> list[list[int]]:
    """(n, offset) of the table's rows, in order."""
    found: list[list[int]] = json.loads(program.run("-c", _READ, table, *program.all_settings).splitlines()[-1])
    return found


def expected() -> list[list[int]]:
    """The rows after two runs: every record once."""
    return [[n, n] for n in range(2 * _PART)]
