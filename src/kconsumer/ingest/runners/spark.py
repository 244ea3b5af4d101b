"""SparkRunner: tasks on the executors of a Spark session.

Owns: sending a task to an executor and its result back. Threads: the driver's thread. Never: sends a record through the
JVM.

A classic session runs the tasks as an RDD. Spark Connect does not have RDDs: there mapInArrow runs the tasks, which are
rows of a DataFrame.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.task import Task, run_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = "number int, result binary"


class SparkRunner:
    """Runs tasks on a Spark session's executors.

    Spark's configuration defines retries.

    Args:
        spark: the session, classic or of Spark Connect; close() does not stop it.
        job: the name of the job group in Spark's UI.
        parallelism: number of parallel tasks; default: Spark's cores.
    """

    def __init__(self, spark: SparkSession, job: str = "kconsumer ingest", parallelism: int | None = None) -> None:
        self._spark: Any = spark
        self._job = job
        self._context = None if _is_connect(spark) else spark.sparkContext
        self.parallelism = parallelism or self._default_parallelism()

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        packed = [pickle.dumps(task) for task in tasks]
        found = self._as_rdd(packed, what) if self._context is not None else self._as_frame(packed)
        results = [pickle.loads(found[n]) for n in range(len(tasks))]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    def close(self) -> None:
        """Do nothing: the session continues."""

    def _default_parallelism(self) -> int:
        if self._context is not None:
            return int(self._context.defaultParallelism)
        # The server checks a default value as if it were set, and 0 is not allowed: None has no such check.
        return int(self._spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or 2)

    def _as_rdd(self, packed: list[bytes], what: str) -> dict[int, bytes]:
        assert self._context is not None
        self._context.setJobGroup(self._job, what, interruptOnCancel=True)
        try:
            return dict(self._context.parallelize(list(enumerate(packed)), len(packed)).map(_run).collect())
        except Exception as error:
            raise IngestError(f"{what}: {_reason(error)}") from error

    def _as_frame(self, packed: list[bytes]) -> dict[int, bytes]:
        rows = [(n, bytearray(task)) for n, task in enumerate(packed)]
        frame = self._spark.createDataFrame(rows, "number int, task binary").repartitionByRange(len(rows), "number")
        try:
            found = frame.mapInArrow(_run_batches, _SCHEMA).collect()
        except Exception as error:
            raise IngestError(f"the tasks of a trigger failed: {_reason(error)}") from error
        return {row["number"]: bytes(row["result"]) for row in found}


def _is_connect(spark: Any) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _run(numbered: tuple[int, bytes]) -> tuple[int, bytes]:
    """Run a task on an executor. Errors that a retry cannot fix are results."""
    number, packed = numbered
    try:
        return number, pickle.dumps(run_task(pickle.loads(packed)))
    except IngestError as error:
        return number, pickle.dumps(error)


def _run_batches(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        for row in batch.to_pylist():
            number, result = _run((row["number"], row["task"]))
            yield pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), pa.array([result], pa.binary())],
                                             names=["number", "result"])


def _reason(error: Exception) -> str:
    """Return the error message of a task, without Spark's stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if ("Error: " in line or "Exception: " in line)
           and not line.startswith(("at ", "Caused")) and "SparkException" not in line and "PythonExc" not in line]
    return own[-1] if own else lines[0] if lines else type(error).__name__
