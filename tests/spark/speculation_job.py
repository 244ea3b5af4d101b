"""A job of the direct engine whose first task is slow once in each table, so that Spark starts a second attempt.

    python speculation_job.py MASTER FOLDER [NAME=VALUE...]

FOLDER/options.json has the options of each table, by the name of its topic; the pairs are settings of Spark's. The
slow attempt closes one file of several, writes its task, its process and the names of its files to
FOLDER/TOPIC-slow.json, and waits for ever. After each table the job writes the rows of its triggers to
FOLDER/TOPIC-done.json. In the end it keeps the session until its standard input ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from kconsumer.ingest import Ingestion, IngestOptions, task
from kconsumer.ingest.runners import spark as runner_module
from kconsumer.ingest.runners.spark import SparkRunner


def write(path: str, found: Any) -> None:
    """A reader sees the whole file or none."""
    Path(f"{path}.new").write_text(json.dumps(found))
    os.rename(f"{path}.new", path)


def slow_once(run: Callable[[Any], Any], note: str) -> Callable[[Any], Any]:
    """The function that runs a task, with a first attempt of the first one that does not end."""

    class SlowWriter(task.FileWriter):
        def _finish(self, values: Any) -> None:
            super()._finish(values)
            write(note, {"task": TaskContext.get().taskAttemptId(), "process": os.getpid(), "files": self._names})
            while True:
                time.sleep(1)

    def slow(numbered: Any) -> Any:
        if numbered[0] or TaskContext.get().attemptNumber() or os.path.exists(note):
            return run(numbered)
        original, task.FileWriter = task.FileWriter, SlowWriter
        try:
            return run(numbered)
        finally:
            task.FileWriter = original

    return slow


def main(master: str, folder: str, *settings: str) -> None:
    builder = (SparkSession.builder.master(master).appName("speculation").config("spark.ui.enabled", "false")
               .config("spark.cores.max", "2").config("spark.executor.memory", "512m")
               .config("spark.driver.memory", "512m"))
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    run = runner_module._run
    for name, given in json.loads(Path(folder, "options.json").read_text()).items():
        runner_module._run = slow_once(run, f"{folder}/{name}-slow.json")
        rows: list[int] = []
        with Ingestion(IngestOptions(**given, topics=(name,)), SparkRunner(spark, parallelism=2)) as ingestion:
            ingestion.run(lambda trigger, rows=rows: rows.append(trigger.rows))
        write(f"{folder}/{name}-done.json", rows)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
