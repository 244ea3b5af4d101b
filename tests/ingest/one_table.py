"""Runs of an ingestion into one table of any format, by tasks in this process, and the rows that are there then.

Owns: ingest(), rows(), catalog(), the topic that they read. Threads: the test's. Never: compares anything.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from test_values import InProcess

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.testing import EmbeddedCluster

FORMATS = ("parquet", "delta", "iceberg")
_numbers = itertools.count()


def topic(cluster: EmbeddedCluster, *values: Any) -> str:
    """A new topic with these values: JSON, or bytes as they are."""
    name = f"topic{next(_numbers)}"
    cluster.create_topic(name, 1)
    produce(cluster, name, *values)
    return name


def produce(cluster: EmbeddedCluster, name: str, *values: Any) -> None:
    cluster.produce(name, [{"value": value if isinstance(value, bytes) else json.dumps(value).encode()}
                           for value in values])


def catalog(folder: Path) -> dict[str, str]:
    return {"name": "test", "type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}


def options(cluster: EmbeddedCluster, name: str, path: Any, kind: str, catalog_folder: Path | None = None,
            **more: Any) -> IngestOptions:
    given: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap_servers, "topics": (name,), "path": str(path), "format": kind,
        "metadata": ("offset",), "value": "json", "schema": "a INT", **more}
    if kind == "iceberg":
        given.setdefault("table", "space.rows")
        given.setdefault("catalog", catalog(catalog_folder or Path(path).parent))
    return IngestOptions(**given)


def ingest(cluster: EmbeddedCluster, name: str, path: Any, kind: str, catalog_folder: Path | None = None,
           **more: Any) -> None:
    with Ingestion(options(cluster, name, path, kind, catalog_folder, **more), InProcess()) as run:
        run.run()


def rows(path: Any, kind: str, catalog_folder: Path | None = None, table: str = "space.rows") -> pa.Table:
    """All rows, by a library that has not written them."""
    if kind == "delta":
        import deltalake

        return deltalake.DeltaTable(str(path)).to_pyarrow_table()
    if kind == "iceberg":
        return loaded(path, catalog_folder, table).scan().to_arrow()
    return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files(path)], promote_options="default")


def loaded(path: Any, catalog_folder: Path | None = None, table: str = "space.rows") -> Any:
    """A table of PyIceberg."""
    from pyiceberg.catalog import load_catalog

    given = catalog(catalog_folder or Path(path).parent)
    return load_catalog(given.pop("name"), **given).load_table(table)


def files(path: Any) -> Iterable[Path]:
    """The files that a glob for Parquet finds in a folder."""
    return sorted(Path(path).rglob("*.parquet"))


def letters(path: Any) -> int:
    """The number of dead letters in a folder."""
    return sum(pq.read_table(file, partitioning=None).num_rows for file in files(path))
