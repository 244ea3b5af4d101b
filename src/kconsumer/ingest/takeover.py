"""TakeOver: the checkpoint of a Structured Streaming query, the start of a new job.

Owns: the reading of the checkpoint, and the file kconsumer-taken-over.json in it. Threads: the driver's thread. Never:
changes Spark's files.

The query must not run again, or both would write the same records. So the file names the table that continues, and
`kconsumer ingest --checkpoint` refuses a checkpoint with this file. The offsets are read again after the file is
written: a query that is still running would have changed them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from kconsumer.errors import ConfigurationError
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.storage import Storage
from kconsumer.ranges.offsets import Progress

TAKEN_OVER: Final = "kconsumer-taken-over.json"
_OPTIONS: Final = "kconsumer-ingest.json"


class TakeOver:
    """The take-over of one checkpoint by one job.

    Args:
        checkpoint: the folder.
        topics: the job's topics; empty with a pattern.
        pattern: a regular expression that matches a part of the names of the job's topics.
        by: the job and its table, for the file.
    """

    def __init__(self, checkpoint: Storage, topics: Sequence[str], pattern: str | None, by: str) -> None:
        self._uri = checkpoint.uri
        self._folder = checkpoint.open()
        self._topics = frozenset(topics)
        self._pattern = None if pattern is None else re.compile(pattern)
        self._by = by

    def progress(self) -> Progress:
        """Return the offsets at which the query ended.

        Raises:
            IngestError: the folder is not the checkpoint of a query over Kafka topics, its newest batch is not
                finished, another table has taken it over, or it has topics that the job does not read.
        """
        taken = self._json(TAKEN_OVER)
        if taken is not None and taken.get("by") != self._by:
            raise IngestError(f"{taken.get('by')} has already taken over the checkpoint {self._uri}")
        planned, done = self._newest("offsets"), self._newest("commits")
        if done is None:
            raise IngestError(f"{self._uri} has no finished batch: use the checkpoint of a Structured Streaming query")
        if planned != done:
            raise IngestError(f"batch {planned} of the checkpoint {self._uri} is not finished (the newest finished one "
                              f"is {done}): run its query until it ends, then take it over")
        found = self._end_of(done)
        others = sorted({topic for topic, _ in found.offsets if not self._reads(topic)})
        if others:
            raise IngestError(f"the checkpoint {self._uri} has offsets of topics which this job does not read: "
                              f"{', '.join(others)}")
        return found

    def cluster(self) -> str | None:
        """Return the id of the Kafka cluster; None if the checkpoint does not have it."""
        options = (self._json(_OPTIONS) or {}).get("options") or {}
        return options.get("cluster")

    def finish(self, progress: Progress) -> None:
        """Write the file that ends the query, before the first commit of the job.

        Args:
            progress: the offsets as they were read.

        Raises:
            IngestError: the query is running.
        """
        self._folder.create(TAKEN_OVER, json.dumps({"by": self._by}).encode() + b"\n")
        if self.progress() != progress:
            raise IngestError(f"the query of the checkpoint {self._uri} is running: stop it, then take it over")

    def _reads(self, topic: str) -> bool:
        return topic in self._topics if self._pattern is None else self._pattern.search(topic) is not None

    def _end_of(self, batch: int) -> Progress:
        lines = self._folder.read(f"offsets/{batch}").decode("utf-8", "replace").splitlines()
        try:
            _, _, offsets = lines
            return Progress.from_json(json.loads(offsets))
        except (ValueError, ConfigurationError):
            raise IngestError(f"the checkpoint {self._uri} does not belong to a query over one source of Kafka "
                              "topics") from None

    def _newest(self, name: str) -> int | None:
        names = (path.rpartition("/")[2] for path, _ in self._folder.files(name, recursive=False))
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def _json(self, name: str) -> dict[str, Any] | None:
        if not self._folder.exists(name):
            return None
        try:
            return dict(json.loads(self._folder.read(name)))
        except (ValueError, TypeError):
            raise IngestError(f"the file {name} in the checkpoint {self._uri} is not JSON") from None
