"""Ingestion on a real Kafka whose drivers, workers and broker are killed at random moments: each record once.

Owns: the kills and the check of the table; test_ingest_kills.py runs a few, `make soak` a hundred:

    python -m tests.ingest.kills [--kills N] [--seed S] [--format parquet,delta,iceberg]

Threads: the main one, and a timer that restarts the broker. Never: looks into the engine; it starts the command, and
reads tables through polars and pyiceberg. The same seed makes the same kills, at not quite the same moments.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

from kconsumer.testing import KafkaCluster
from tests.spark.standalone import descendants, kill_one

FORMATS = ("parquet", "delta", "iceberg")
VICTIMS = ("driver", "driver", "driver", "worker", "broker")
PARTITIONS = 4  # and one for bad records
EACH = 2_000  # records that are added before each kill
BAD = 10  # bad records, too
SCHEMA = "id BIGINT, text STRING"
RUN_S = 120
REFUSED = "cannot connect to Kafka"


class Killing:
    """One table, and the runs that write it."""

    def __init__(self, cluster: KafkaCluster, folder: Path, kind: str, chance: random.Random) -> None:
        self.cluster = cluster
        self.folder = folder
        self.kind = kind
        self._chance = chance
        self.topic = f"kills-{uuid.uuid4().hex[:8]}"
        self.total = self.bad = 0
        self.killed: Counter[str] = Counter()
        cluster.create_topic(self.topic, PARTITIONS + 1)

    # ---- the topic

    def fill(self, count: int = EACH) -> None:
        first, self.total = self.total, self.total + count
        self.cluster.produce(self.topic, (
            {"value": json.dumps({"id": n, "text": text_of(n)}).encode(), "partition": n % PARTITIONS}
            for n in range(first, self.total)))
        self.cluster.produce(self.topic, ({"value": b"?", "partition": PARTITIONS} for _ in range(BAD)))
        self.bad += BAD

    # ---- runs

    def command(self, *more: str) -> list[str]:
        target = ["-O", str(self.folder / "table")]
        if self.kind == "iceberg":
            target += ["--table", "space.rows"]
            for name, value in self.catalog().items():
                target += ["--catalog", f"{name}={value}"]
        return [sys.executable, "-m", "kconsumer", "ingest", self.topic, "-b", self.cluster.bootstrap_servers,
                "--value", "json", "--schema", SCHEMA, "--metadata", "partition,offset", "--runner", "local",
                "--workers", "2", "--option", "maxOffsetsPerTrigger=400", "-o", self.kind,
                "--bad-records", "dead-letter", "--dead-letter", str(self.folder / "letters"), *target, *more]

    def catalog(self) -> dict[str, str]:
        return {"name": "kills", "type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db",
                "warehouse": f"file://{self.folder}"}

    def start(self, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command("--metrics", "-", *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def start_and_wait(self) -> subprocess.Popen[str]:
        """A run, at a random moment after some of its commits: any moment must do."""
        process = self.start()
        assert process.stdout is not None
        for _ in range(self._chance.randrange(0, 4)):
            process.stdout.readline()  # a commit
        time.sleep(self._chance.random() * 0.1)
        return process

    def run(self, *more: str) -> None:
        """A run that nothing disturbs."""
        done = subprocess.run(self.command(*more), capture_output=True, text=True, check=False, timeout=RUN_S)
        assert done.returncode == 0, done.stderr

    def kill(self) -> None:
        """A run that is killed, or whose worker or broker is."""
        victim = self._chance.choice(VICTIMS)
        process = self.start_and_wait()
        getattr(self, f"_kill_{victim}")(process)
        self.killed[victim] += 1
        _, errors = process.communicate(timeout=RUN_S)
        # A run that begins while the broker is away may say so and end.
        away = victim == "broker" and REFUSED in errors
        assert victim == "driver" or away or process.returncode == 0, errors
        self.check_reader()

    def _kill_driver(self, process: subprocess.Popen[str]) -> None:
        process.kill()

    def _kill_worker(self, process: subprocess.Popen[str]) -> None:
        kill_one(descendants(process.pid, "multiprocessing.spawn"))

    def _kill_broker(self, process: subprocess.Popen[str]) -> None:
        broker = self.cluster.broker_ids[0]
        self.cluster.kill(broker)
        back = threading.Timer(self._chance.random() * 2, self.cluster.restart, (broker,))
        back.start()
        back.join()

    # ---- the table

    def files(self) -> list[str]:
        """The table's own files, by its own account."""
        path = self.folder / "table"
        if self.kind == "delta":
            import deltalake

            return list(deltalake.DeltaTable(str(path)).file_uris()) if deltalake.DeltaTable.is_deltatable(
                str(path)) else []
        if self.kind == "iceberg":
            from pyiceberg.catalog import load_catalog

            given = self.catalog()
            with closing(load_catalog(given.pop("name"), **given)) as catalog:
                if not catalog.table_exists("space.rows"):
                    return []
                return [task.file.file_path.removeprefix("file://")
                        for task in catalog.load_table("space.rows").scan().plan_files()]
        return [str(file) for file in path.glob("*.parquet")]

    def rows(self) -> list[tuple[Any, ...]]:
        files = self.files()
        if not files:
            return []
        columns = ["partition", "offset", "id", "text"]
        return pl.concat([pl.read_parquet(file, columns=columns) for file in files]).rows()

    def letters(self) -> list[tuple[int, int]]:
        """The places of the dead letters, as their readers see them."""
        found = [pl.read_parquet(file, columns=["partition", "offset"])
                 for file in (self.folder / "letters").glob("*.parquet")]
        return pl.concat(found).rows() if found else []

    def expected(self) -> list[tuple[Any, ...]]:
        return [(n % PARTITIONS, n // PARTITIONS, n, text_of(n)) for n in range(self.total)]

    def check_reader(self) -> None:
        """No row is there twice, and none that was not written."""
        wrong = Counter(self.rows()) - Counter(self.expected())
        assert not wrong, f"{self.kind}: rows that must not be there: {list(wrong)[:5]}"
        twice = [place for place, times in Counter(self.letters()).items() if times > 1]
        assert not twice, f"{self.kind}: dead letters that are there twice: {twice[:5]}"

    def finish(self) -> None:
        """After a run that nothing disturbs every record is there once, and every file belongs to the table."""
        self.fill(100)  # so that there is a claim, which removes what dead runs have left
        self.run()
        rows = self.rows()
        assert sorted(rows) == sorted(self.expected()), f"{self.kind}: {self.total} records, {len(rows)} rows"
        assert sorted(self.letters()) == [(PARTITIONS, n) for n in range(self.bad)]
        self.run("--vacuum")
        there = {file.name for file in (self.folder / "table").rglob("*.parquet*") if "_delta_log" not in file.parts}
        assert there == {Path(file).name for file in self.files()}


def text_of(n: int) -> str:
    return f"{n * 2654435761 % 2**32:x}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill ingestion at random moments, and look at its tables.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--format", default=",".join(FORMATS))
    given = parser.parse_args()
    formats = given.format.split(",")
    chance = random.Random(given.seed)
    print(f"kills of ingestion, seed {given.seed}", flush=True)
    with KafkaCluster(1) as cluster, tempfile.TemporaryDirectory() as folder:
        for n, kind in enumerate(formats):
            killing = Killing(cluster, Path(folder, kind), kind, chance)
            killing.folder.mkdir()
            for _ in range(given.kills // len(formats) + (n < given.kills % len(formats))):
                killing.fill()
                killing.kill()
            killing.finish()
            print(f"{kind}: {killing.total:,} records, each once; killed: {dict(killing.killed)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
