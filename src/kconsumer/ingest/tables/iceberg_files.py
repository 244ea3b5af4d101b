"""Data files of Iceberg tables, as PyIceberg's manifests describe them.

Owns: data_file, partition_record, LiveFiles, delete_manifests, own_properties. Threads: any. Never: commits, or writes
a file of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

_METRICS: Final = "write.metadata.metrics."  # the properties that select the statistics of columns
_PARTITION: Final = 3  # the position of the partition in Iceberg's struct of a data file
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
OURS: Final = "kconsumer."  # prefix of the properties with offsets, in tables and in summaries of snapshots


def data_file(table: Any, path: str, partition: Any, schema: Any) -> Any:
    """Return the entry of a Parquet file for a manifest; its footer is read.

    Args:
        table: a table of PyIceberg.
        path: the URI of the file.
        partition: the values of the table's partition fields, as a record of PyIceberg. PyIceberg would derive them
            from the footer, which has no bounds for long texts and for NaN, and none that tell a bucket.
        schema: the table's schema, with the names of the columns in the file.

    Raises:
        FileNotFoundError: the file does not exist.
    """
    from pyiceberg.io.pyarrow import parquet_file_to_data_file
    from pyiceberg.partitioning import PartitionSpec

    metadata = table.metadata
    plain = 1 + max(spec.spec_id for spec in metadata.partition_specs)
    given = {"partition_specs": [*metadata.partition_specs, PartitionSpec(spec_id=plain)], "default_spec_id": plain,
             "schemas": [schema], "current_schema_id": schema.schema_id}
    try:
        found = parquet_file_to_data_file(table.io, metadata.model_copy(update=given), path)
    except OverflowError:  # PyIceberg reads bounds as Python's dates, which end in the year 9999
        given["properties"] = {name: text for name, text in metadata.properties.items()
                               if not name.startswith(_METRICS)} | {f"{_METRICS}default": "counts"}
        found = parquet_file_to_data_file(table.io, metadata.model_copy(update=given), path)
    found[_PARTITION] = partition
    found.spec_id = metadata.default_spec_id
    return found


def partition_record(table: Any, partition: Sequence[tuple[str, str | None]]) -> Any:
    """Return a file's partition as a record of PyIceberg.

    Args:
        table: a table of PyIceberg.
        partition: the names and values that the task has reported, in the order of the table's partition fields.
    """
    from pyiceberg.transforms import IdentityTransform, TruncateTransform, VoidTransform
    from pyiceberg.typedef import Record

    spec, texts = table.spec(), [text for _, text in partition]
    values: list[Any] = []
    for field, result in zip(spec.fields, spec.partition_type(table.schema()).fields, strict=True):
        if isinstance(field.transform, VoidTransform):
            values.append(None)
            continue
        text = texts.pop(0)
        if text is None:
            values.append(None)
        elif isinstance(field.transform, IdentityTransform | TruncateTransform):
            values.append(_value(text, result.field_type))
        else:
            values.append(int(text))
    return Record(*values)


def _value(text: str, found: Any) -> Any:
    """The value of a partition, in the form of Iceberg's manifests, from the text of writing.value_text()."""
    from pyiceberg import types

    if isinstance(found, types.StringType):
        return text
    if isinstance(found, types.BooleanType):
        return text == "true"
    if isinstance(found, types.IntegerType | types.LongType):
        return int(text)
    if isinstance(found, types.FloatType | types.DoubleType):
        return float(text)
    if isinstance(found, types.DecimalType):
        return Decimal(text)
    if isinstance(found, types.DateType):
        return (date.fromisoformat(text) - _EPOCH.date()).days
    if isinstance(found, types.TimeType):
        at = time.fromisoformat(text)
        return timedelta(hours=at.hour, minutes=at.minute, seconds=at.second,
                         microseconds=at.microsecond) // timedelta(microseconds=1)
    if isinstance(found, types.TimestampType | types.TimestamptzType):
        return (datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(
            microseconds=1)
    return bytes.fromhex(text)


class LiveFiles:
    """The data files of snapshots. A manifest never changes, so that each is read once."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}

    def of(self, io: Any, snapshot: Any) -> list[str]:
        """Return the paths of the data files of a snapshot, which PyIceberg reads by `io`."""
        from pyiceberg.manifest import ManifestContent

        found = []
        for manifest in snapshot.manifests(io):
            if manifest.content == ManifestContent.DATA:
                if manifest.manifest_path not in self._known:
                    self._known[manifest.manifest_path] = [
                        entry.data_file.file_path for entry in manifest.fetch_manifest_entry(io)]
                found += self._known[manifest.manifest_path]
        return found


def delete_manifests(table: Any) -> set[str]:
    """Return the manifests with deleted rows of the current snapshot."""
    from pyiceberg.manifest import ManifestContent

    snapshot = table.current_snapshot()
    return set() if snapshot is None else {
        manifest.manifest_path for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DELETES}


def own_properties(table: Any) -> Mapping[str, str]:
    """Return the offsets in the summary of the current snapshot, for a snapshot that does not change them."""
    snapshot = table.current_snapshot()
    summary = None if snapshot is None else snapshot.summary
    return {} if summary is None else {
        name: text for name, text in summary.additional_properties.items() if name.startswith(OURS)}
