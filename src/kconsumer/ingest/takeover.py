"""TakeOver: the checkpoint of a Structured Streaming query, the start of a new job.

Owns: the reading of the checkpoint, and the file kconsumer-taken-over.json in it. Threads: the driver's thread. Never:
changes Spark's files.

The query must not run again, or both would write the same records. The file names the table that continues. The offsets
are read again after the file is written: a query that is still running would have changed them.

Spark plans a batch in `offsets`, writes it, and then notes its end in `commits`. Earlier releases of kconsumer ran such
queries, and wrote their options to kconsumer-ingest.json. The output named there shows whether a killed query had
written its last batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kconsumer.errors import ConfigurationError
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.storage import Storage
from kconsumer.ranges.offsets import Progress

TAKEN_OVER: Final = "kconsumer-taken-over.json"
_OPTIONS: Final = "kconsumer-ingest.json"
_DEAD_LETTERS: Final = "dead-letters"  # the checkpoint of the query that wrote them, in the checkpoint
_FILES: Final = ("parquet", "json", "orc", "csv", "text", "avro")  # Spark lists their batches in the output's folder
_WRITTEN: Final = "_spark_metadata"
_COMPACT: Final = ".compact"


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
        self._storage = checkpoint
        self._folder = checkpoint.open()
        self._topics = frozenset(topics)
        self._pattern = None if pattern is None else re.compile(pattern)
        self._by = by

    def progress(self) -> Progress:
        """Return the offsets at which the query ended.

        Raises:
            IngestError: the folder is not the checkpoint of a query over Kafka topics, its newest batch is not
                written, dead letters are missing, another table has taken it over, or it has topics that the job does
                not read.
        """
        taken = self._json(TAKEN_OVER)
        if taken is not None and taken.get("by") != self._by:
            raise IngestError(f"{taken.get('by')} has already taken over the checkpoint {self._uri}")
        found = self._end_of(f"offsets/{self._last_batch()}")
        self._check_dead_letters(found)
        others = sorted({topic for topic, _ in found.offsets if not self._reads(topic)})
        if others:
            raise IngestError(f"the checkpoint {self._uri} has offsets of topics which this job does not read: "
                              f"{', '.join(others)}")
        return found

    def cluster(self) -> str | None:
        """Return the id of the Kafka cluster; None if the checkpoint does not have it."""
        return self._options().get("cluster")

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

    def _options(self) -> Mapping[str, Any]:
        """Return the options of the query, if an earlier release of kconsumer ran it."""
        return (self._json(_OPTIONS) or {}).get("options") or {}

    def _last_batch(self) -> int:
        planned, done = self._newest("offsets"), self._newest("commits")
        if planned is not None and done != planned and self._has_written(planned):
            return planned
        if done is None:
            raise IngestError(f"{self._uri} has no finished batch: use the checkpoint of a Structured Streaming query; "
                              "if the query has written nothing, start a new job without --take-over")
        if planned != done:
            raise IngestError(f"batch {planned} of the checkpoint {self._uri} is not finished (the newest finished one "
                              f"is {done}): run its query until it ends, then take it over. If the query is stopped "
                              f"and its output has nothing of the batch, remove {self._uri}/offsets/{planned} instead")
        return done

    def _has_written(self, batch: int) -> bool:
        """Return whether the output has this batch, as far as the options of the query show."""
        options = self._options()
        path, form = options.get("path"), options.get("format")
        if not path:
            return False
        # Hadoop writes file:/path.
        output = replace(self._storage, uri=re.sub("^file:/+(?=[^/])", "/", path))
        if form in _FILES:
            names = (name.rpartition("/")[2].removesuffix(_COMPACT)
                     for name, _ in output.open().files(_WRITTEN, recursive=False))
            return any(name.isdecimal() and int(name) >= batch for name in names)
        if form == "delta":
            return self._newest_in_delta(output) >= batch
        return False

    def _newest_in_delta(self, output: Storage) -> int:
        """Return the newest batch in a Delta table: a transaction of the query's id; -1: none."""
        from deltalake import DeltaTable

        settings = dict(output.options)
        if not DeltaTable.is_deltatable(output.uri, settings):
            return -1
        query = (self._json("metadata") or {})["id"]
        found = DeltaTable(output.uri, storage_options=settings).transaction_version(query)
        return -1 if found is None else int(found)

    def _check_dead_letters(self, end: Progress) -> None:
        """Check that the second query, which wrote the dead letters, has reached the end of the output."""
        if self._options().get("bad_records") != "dead-letter":
            return
        done = self._newest(f"{_DEAD_LETTERS}/commits")
        if done is None or self._end_of(f"{_DEAD_LETTERS}/offsets/{done}") != end:
            raise IngestError(f"the query of the checkpoint {self._uri} was killed before it wrote all dead letters: "
                              "run it with kconsumer 0.1 until it ends. To continue without them, remove the file "
                              f"{_OPTIONS} from the checkpoint")

    def _end_of(self, name: str) -> Progress:
        """Return the offsets in a file of Spark's log."""
        lines = self._folder.read(name).decode("utf-8", "replace").splitlines()
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
