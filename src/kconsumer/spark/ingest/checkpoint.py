"""The guard of a checkpoint: the settings of an ingestion, and whether a restart matches them.

Owns: the file kconsumer-ingest.json in the checkpoint, and the comparison. Threads: the driver's thread. Never: changes
Spark's files there.

A checkpoint has offsets and the number of the next trigger, but not the target of the records. With another path, that
output would lack the first records. With other topics or another schema, the output would contain two forms.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kconsumer.config.values import configuration_error
from kconsumer.ingest.takeover import TAKEN_OVER
from kconsumer.ranges.offsets import Progress
from kconsumer.spark.ingest.folder import Folder
from kconsumer.spark.ingest.options import IngestOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FILE: Final = "kconsumer-ingest.json"
# 1: Spark's functions decoded the values. An older kconsumer refuses 2, because it would decode by other rules.
_BY_SPARK: Final = 1
_BY_SOURCE: Final = 2
_LABELS: Final = {
    "cluster": "Kafka cluster", "topics": "topics", "pattern": "pattern", "format": "format", "path": "path",
    "table": "table", "partition_by": "partitioning", "select": "selection", "headers": "includeHeaders",
    "decoding": "decoding", "schema": "schema", "message": "message", "descriptors": "descriptors",
    "skip_bytes": "bytes to skip", "bad_records": "bad records", "dead_letters": "path of dead letters",
    "time_zone": "time zone",
}

Record = dict[str, Any]


def load(folder: Folder) -> dict[str, Any] | None:
    """Read the file; None if there is no file.

    Raises:
        ConfigurationError: the file is damaged.
    """
    text = folder.read(FILE)
    if text is None:
        return _parsed(folder.read_replacement(FILE))
    found = _parsed(text)
    if found is None:
        raise configuration_error(f"the file {FILE} in the checkpoint {folder} is not JSON: restore it, or start with "
                                  "another checkpoint and another output")
    return found


def refuse_taken_over(folder: Folder) -> None:
    """Refuse a checkpoint that another job has taken over.

    Raises:
        ConfigurationError: the direct engine has taken over the checkpoint.
    """
    text = folder.read(TAKEN_OVER)
    if text is not None:
        raise configuration_error(
            f"{(_parsed(text) or {}).get('by', 'another job')} has taken over the checkpoint {folder} (--take-over): "
            f"continue with that job. If it never ran, remove the file {TAKEN_OVER} from the checkpoint")


def _parsed(text: str | None) -> dict[str, Any] | None:
    try:
        return dict(json.loads(text or ""))
    except ValueError:
        return None


def record_of(
    options: IngestOptions, *, cluster: str | None, path: str | None, dead_letters: str | None,
    schema: StructType | None, time_zone: str,
) -> Record:
    """Return the settings that a restart must keep.

    They contain qualified paths, the id of the Kafka cluster, and the session's time zone.
    """
    decoding = options.decoding
    given = {name.lower(): value for name, value in options.source.items()}
    avro = json.dumps(json.loads(decoding.schema or ""), sort_keys=True) if decoding.kind == "avro" else None
    return {
        "version": _BY_SPARK if decoding.kind == "raw" else _BY_SOURCE,
        "cluster": cluster,
        "topics": sorted(options.topics) or None,
        "pattern": options.pattern,
        "format": options.format.lower(),
        "path": path,
        "table": options.table,
        "partition_by": list(options.partition_by),
        "select": list(options.select),
        "headers": given.get("includeheaders", "false").strip().lower(),
        "decoding": decoding.kind,
        "schema": schema.simpleString() if schema is not None else avro,
        "message": decoding.message,
        "descriptors": None if decoding.descriptors is None else hashlib.sha256(decoding.descriptors).hexdigest(),
        "skip_bytes": decoding.skip_bytes,
        "bad_records": options.bad or None,
        "dead_letters": dead_letters,
        "time_zone": time_zone,
    }


def check(recorded: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    """Compare two records.

    Three changes are allowed. Added topics are read from their beginning. The handling of bad records may change if
    they failed the runs so far, because none was written. Other brokers of the same cluster are allowed. In another
    cluster, the same offsets are other records.

    Raises:
        ConfigurationError: the restart contradicts the checkpoint; the message has both values.
    """
    if recorded.get("version") not in (_BY_SPARK, _BY_SOURCE):
        raise configuration_error(f"the checkpoint {where} belongs to another version of kconsumer: {FILE} has version "
                                  f"{recorded.get('version')!r}, this one writes {wanted.get('version')}")
    open_now = ("bad_records", "dead_letters") if recorded.get("bad_records") == "fail" else ()
    wrong = [name for name in _LABELS if name not in open_now and not _fits(name, recorded.get(name), wanted.get(name))]
    if wrong:
        said = "; ".join(f"{_LABELS[name]}: {_shown(recorded.get(name))} there, {_shown(wanted.get(name))} now"
                         for name in wrong)
        raise configuration_error(f"the checkpoint {where} was created with other options: {said}; use the old "
                                  "options, or start again with another checkpoint and another output")


def was_decoded_by_spark(recorded: Mapping[str, Any]) -> bool:
    """Return whether an older kconsumer wrote it, and Spark decoded the values."""
    return recorded.get("version") == _BY_SPARK and recorded.get("decoding") != "raw"


def check_foreign(progress: Progress, topics: tuple[str, ...], where: str) -> None:
    """Check the checkpoint of another query, of which only the topics are known.

    Args:
        progress: the end of its newest batch.
        topics: the requested topics; empty with a pattern.
        where: the checkpoint.
    """
    known = {topic for topic, _ in progress.offsets}
    if topics and not known <= set(topics):
        raise configuration_error(f"the checkpoint {where} belongs to a query that reads other topics: "
                                  f"{_shown(sorted(known))} there, {_shown(sorted(topics))} now")


def _fits(name: str, old: Any, new: Any) -> bool:
    if name == "topics" and old and new:
        return set(old) <= set(new)
    if name == "cluster" and (old is None or new is None):
        return True  # unknown
    if name == "time_zone" and old is None:
        return True  # an older version did not write it
    return bool(old == new)


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
