"""A streaming query of examples/stream_with_sql.py, twice, into a table of any format; and what is in the table then.

Owns: Program, stream_twice(), rows(). Threads: the test's. Never: imports pyspark: a program may run another one.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kconsumer.testing import KafkaCluster

_PART = 50
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/stream_with_sql.py"
_READ = """
import json, sys
from pyspark.sql import SparkSession
found = SparkSession.builder.getOrCreate().sql(f"SELECT n, offset FROM {sys.argv[1]} ORDER BY offset").collect()
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
        submitted = " ".join(shlex.join(["--conf", setting]) for setting in self.all_settings)
        done = subprocess.run(
            [self.python, *arguments], capture_output=True, text=True, timeout=300, check=False,
            stdin=subprocess.DEVNULL, env={**self.environment, "SPARK_LOCAL_IP": "127.0.0.1",
                                           "PYSPARK_SUBMIT_ARGS": f"{submitted} pyspark-shell"})
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout


def stream_twice(program: Program, kafka: KafkaCluster, topic: str, into: tuple[str, ...], *more: str) -> None:
    """Write numbered records, half of them in each run, as columns n and offset.

    Args:
        program, kafka, topic: what runs, and what it reads.
        into: the checkpoint, the format and the target.
        more: options of the example.
    """
    kafka.create_topic(topic)
    for run in range(2):
        kafka.produce(topic, [b'{"n": %d}' % n for n in range(run * _PART, (run + 1) * _PART)])
        program.run(str(EXAMPLE), kafka.bootstrap_servers, topic, *into,
                    "SELECT value.n, offset FROM records", "--schema", "n INT", *more)


def rows(program: Program, table: str) -> list[list[int]]:
    """(n, offset) of the table's rows, in order."""
    found: list[list[int]] = json.loads(program.run("-c", _READ, table).splitlines()[-1])
    return found


def expected() -> list[list[int]]:
    """The rows after two runs: every record once."""
    return [[n, n] for n in range(2 * _PART)]
