"""Owns: the measurement of commits of large jobs: the part `commits` of benchmarks.spark.ingest.

Each commit of the job changes the offsets of 10,000 partitions and adds 600 files, in each table format on the local
disk. Only the commit is measured: the files are copies of one file, made before.

Threads: the main thread. Never: needs a broker or Spark.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from benchmarks.spark.flights import SCHEMA, json_values
from kconsumer.decoding import Json
from kconsumer.ingest import IngestOptions
from kconsumer.ingest.ddl import parse_schema
from kconsumer.ingest.ingestion import table_of
from kconsumer.ingest.manifest import Commit, FileEntry
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.tables.protocol import Table
from kconsumer.ingest.writing import FileWriter
from kconsumer.ranges.offsets import Progress

FORMATS: Final = ("parquet", "delta", "iceberg")
PARTITIONS: Final = 10_000
TOPICS: Final = 10
FILES: Final = 600
ROWS: Final = 100_000


def measure(commits: int) -> dict[str, Any]:
    """{"about", "records", "samples": {format: [{"seconds", "open", "log_bytes", "resident"}, …]}}."""
    decoded = Json(parse_schema(SCHEMA)).decode([record["value"] for record in json_values(ROWS)])
    rows = pa.Table.from_struct_array(pa.array(decoded))
    samples = {}
    for form in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            samples[form] = _commits(form, Path(folder), rows, commits)
    return {"about": f"{PARTITIONS:,} partitions move and {FILES} files are added in each commit",
            "records": PARTITIONS, "samples": samples}


def _commits(form: str, folder: Path, rows: Any, commits: int) -> list[dict[str, float]]:
    topics = tuple(f"flights-{number}" for number in range(TOPICS))
    iceberg = {"table": "bench.flights", "catalog": {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db",
                                                     "warehouse": f"file://{folder}"}} if form == "iceberg" else {}
    options = IngestOptions(bootstrap_servers="localhost:9092", topics=topics, path=str(folder / "table"), format=form,
                            value="json", schema=SCHEMA, **iceberg)
    table = table_of(options)
    table.open()
    table.prepare(rows.schema, ())
    table.claim(1, "cluster")
    entry = _file(table, rows, "parquet.staged" if form == "parquet" else "parquet")
    found = []
    for number in range(1, commits + 1):
        files = tuple(_copy(table, entry, f"{number}-{copy}") for copy in range(FILES))
        offsets = {(topic, partition): number * 1_000_000
                   for topic in topics for partition in range(PARTITIONS // TOPICS)}
        before, began = _log_bytes(folder), time.monotonic()
        table.commit(Commit(Progress(offsets, dict.fromkeys(topics, "AAAAAAAAAAAAAAAAAAAAAA")), files))
        took, after = time.monotonic() - began, _log_bytes(folder)
        again, began = table_of(options), time.monotonic()
        if len(again.open().progress.offsets) != PARTITIONS:
            raise SystemExit(f"benchmark: {form} has lost offsets")
        found.append({"seconds": took, "open": time.monotonic() - began, "log_bytes": after - before,
                      "resident": _resident()})
    return found


def _file(table: Table, rows: Any, ending: str) -> FileEntry:
    """A file as a task writes it."""
    writer = FileWriter(table.storage, table.staging, f"first-%d.{ending}", rows.schema, FileOptions())
    for batch in rows.to_batches():
        writer.write(batch)
    return writer.close()[0]


def _copy(table: Table, entry: FileEntry, name: str) -> FileEntry:
    path = entry.path.replace("first-0", name)
    shutil.copyfile(f"{table.storage.uri}/{entry.path}", f"{table.storage.uri}/{path}")
    return replace(entry, path=path)


def _log_bytes(folder: Path) -> int:
    """Of all files but those with rows."""
    return sum(file.stat().st_size for file in folder.rglob("*")
               if file.is_file() and not file.name.endswith((".parquet", ".staged")))


def _resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
