"""Spark's logs of a query: in its checkpoint, and in its output folder.

Owns: QueryLog, and check_written(), which compares the two. Threads: the driver's thread. Never: writes to them.

A query that writes files numbers its batches in two places. The checkpoint has `offsets` (planned) and `commits`
(done), the output folder has `_spark_metadata` (written). Spark silently skips a batch whose number is already written,
and cannot read a folder without the earlier batches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kconsumer.config.values import configuration_error
from kconsumer.errors import ConfigurationError
from kconsumer.ranges.offsets import Progress, to_json
from kconsumer.spark.ingest.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITTEN: Final = "_spark_metadata"
_COMPACT: Final = ".compact"


class QueryLog:
    """The logs of one query.

    Args:
        checkpoint: its checkpoint.
    """

    def __init__(self, checkpoint: Folder) -> None:
        self.checkpoint = checkpoint

    @property
    def planned(self) -> int | None:
        """Return the newest planned batch."""
        return _newest(self.checkpoint.names("offsets"))

    @property
    def done(self) -> int | None:
        """Return the newest finished batch."""
        return _newest(self.checkpoint.names("commits"))

    def progress(self) -> Progress | None:
        """Return the offsets at which the query continues; None: no batch is finished.

        Raises:
            ConfigurationError: the query does not read Kafka topics.
        """
        done = self.done
        return None if done is None else self.end_of(done)

    def end_of(self, batch: int) -> Progress:
        """Return the end of a batch.

        Raises:
            ConfigurationError: the query does not read Kafka topics.
        """
        text = self.checkpoint.read(f"offsets/{batch}") or ""
        try:
            return Progress.from_json(json.loads(text.splitlines()[2]))
        except (ValueError, IndexError, ConfigurationError):
            raise configuration_error(f"the checkpoint {self.checkpoint} does not belong to a query over Kafka "
                                      "topics") from None


def check_written(log: QueryLog, output: Folder | None) -> None:
    """Check that a folder has the finished batches, and at most a killed run's.

    Args:
        log: of the query that writes to the folder.
        output: the folder; None: a table that does not exist yet.

    Raises:
        ConfigurationError: batches are missing, or the folder has batches of another query.
    """
    newest = None if output is None else _newest(
        name.removesuffix(_COMPACT) for name in output.names(WRITTEN))
    written, done, planned = (-1 if batch is None else batch for batch in (newest, log.done, log.planned))
    where = "the table" if output is None else str(output)
    if written < done:
        there = "has none" if written < 0 else f"ends with batch {written}"
        offsets = json.dumps(to_json(log.end_of(done).offsets))
        raise configuration_error(
            f"the query of the checkpoint {log.checkpoint} has written batches 0 to {done}, but {where} {there}: "
            f"write to the folder of that query, or use another checkpoint with --from '{offsets}'")
    if written > max(done, planned):
        raise configuration_error(
            f"{where} has batches 0 to {written} of another checkpoint, but the next batch of {log.checkpoint} is "
            f"{done + 1}: use the checkpoint of this folder, or write to another folder")


def table_folder(spark: SparkSession, table: str) -> Folder | None:
    """Return the folder of a table of files; None if the table does not exist."""
    from pyspark.errors import AnalysisException

    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'").collect()
    except AnalysisException:
        return None
    return Folder(spark, rows[0].data_type) if rows else None


def _newest(names: Iterable[str]) -> int | None:
    return max((int(name) for name in names if name.isdecimal()), default=None)
