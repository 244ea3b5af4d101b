"""A job for spark-submit: the direct engine writes a topic as Parquet, its tasks on the executors.

    spark-submit … direct_job.py BOOTSTRAP_SERVERS TOPIC FOLDER OFFSETS_PER_TRIGGER WORKER

Writes FOLDER/table, and a line of JSON for each trigger to FOLDER/direct-metrics. Each attempt of a task notes in
FOLDER/attempts where it runs and, at its end, that it has ended. From the second trigger on, an attempt below the
folder WORKER writes its file, notes the file's name, and waits for ever: the test kills that worker.
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


def noting(run: Callable[[Any], Any], notes: str, worker: str, is_held: bool) -> Callable[[Any], Any]:
    """The function that runs a task, with notes about each attempt."""

    def attempt(numbered: Any) -> Any:
        import kconsumer

        name = f"{notes}/{TaskContext.get().taskAttemptId()}"

        class Held(task.FileWriter):
            def _finish(self, values: Any) -> None:
                super()._finish(values)
                write("held", self._names)
                while True:
                    time.sleep(1)

        def write(ending: str, found: Any) -> None:
            Path(f"{name}.new").write_text(json.dumps(found))
            os.rename(f"{name}.new", f"{name}.{ending}")

        write("begun", [os.getcwd(), sys.prefix, kconsumer.__file__])
        original = task.FileWriter
        if is_held and Path.cwd().is_relative_to(worker):
            task.FileWriter = Held
        try:
            result = run(numbered)
        finally:
            task.FileWriter = original
        write("ended", None)
        return result

    return attempt


def main(servers: str, topic: str, folder: str, limit: str, worker: str) -> None:
    spark = SparkSession.builder.appName(f"ingestion of {topic}").getOrCreate()
    options = IngestOptions(bootstrap_servers=servers, topics=(topic,), path=f"{folder}/table",
                            metadata=("partition", "offset"), source={"maxOffsetsPerTrigger": limit})
    notes, run = f"{folder}/attempts", runner_module._run
    os.mkdir(notes)
    runner_module._run = noting(run, notes, worker, False)
    with open(Path(folder, "direct-metrics"), "w") as metrics, Ingestion(options, SparkRunner(spark)) as ingestion:

        def after(trigger: Any) -> None:
            print(trigger.as_json(), file=metrics, flush=True)
            runner_module._run = noting(run, notes, worker, True)

        ingestion.run(on_trigger=after)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
