"""Runs of an ingestion in which the types of the values change, and which a SIGKILL ends at a call of the table.

Owns: the changes, the runs, the check of the table. Threads: the main one; each run is a process. Never: looks into the
engine, except for the calls of the functions of kconsumer/ingest/tables and of the driver's steps: each is a moment.

    python tests/ingest/evolution_kills.py [--every N] [--format parquet,delta,iceberg]
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Final

import fastavro
from one_table import FORMATS, ingest, options, produce, rows, topic
from test_values import InProcess, _schema

from kconsumer.decoding import SchemaRegistry
from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest import options as options_module
from kconsumer.testing import EmbeddedCluster

_MOMENTS: Final = ("/kconsumer/ingest/tables/", "/kconsumer/ingest/driver.py")
_NEWER_AT: Final = 4  # the request from which on the registry has the second schema: after the first commit
CHANGES: Final = ("given schema", "registry's schema")


def _money(digits: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": 2}


def _record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": type_} for field, type_ in fields]}


# A type that widens, in a list too; a decimal with more digits; null that gets a type; new fields at each depth; a
# field that is gone; a field that is renamed.
OLD: Final = _record("R", ("a", "int"), ("money", _money(5)), ("none", "null"), ("gone", "int"), ("former", "int"),
                     ("l", {"type": "array", "items": _record("I", ("x", "int"))}))
NEW: Final = _record("R", ("a", "long"), ("money", _money(9)), ("none", ["null", "string"]), ("renamed", "int"),
                     ("l", {"type": "array", "items": _record("I", ("x", "long"), ("y", ["null", "int"]))}),
                     ("new", ["null", "string"]))
for _field in (NEW["fields"][2], NEW["fields"][5], NEW["fields"][4]["type"]["items"]["fields"][1]):
    _field["default"] = None
NEW["fields"][3]["aliases"] = ["former"]


def _values(kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the values of both schemas; the large ones are for columns that widen."""
    large, price = (2**40, Decimal("1234567.89")) if kind == "iceberg" else (7, Decimal("1.25"))
    return ([{"a": 1, "money": Decimal("1.25"), "none": None, "gone": 2, "former": 3, "l": [{"x": 4}]}],
            [{"a": large, "money": price, "none": "n", "renamed": 5, "l": [{"x": large, "y": 6}], "new": "v"},
             {"a": 8, "money": Decimal("0.01"), "none": None, "renamed": 9, "l": [], "new": None}])


def _framed(schema: dict[str, Any], number: int, value: dict[str, Any]) -> bytes:
    made = io.BytesIO()
    fastavro.schemaless_writer(made, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + made.getvalue()


class Registry:
    """As confluent_kafka's client; the newest schema is the first one until it was asked for some times."""

    def __init__(self, newer_at: int) -> None:
        self._left = newer_at

    def get_schema(self, schema_id: int, *more: Any, **rest: Any) -> Any:
        return _schema((OLD, NEW)[schema_id - 1])

    def get_latest_version(self, subject: str, *more: Any) -> Any:
        self._left -= 1
        number = 1 if self._left > 0 else 2
        return type("Registered", (), {"schema": _schema((OLD, NEW)[number - 1]), "schema_id": number, "version": 1})()


@dataclass(frozen=True)
class Scene:
    """A topic with values of both schemas, and the table of a format."""

    cluster: EmbeddedCluster
    folder: Path
    kind: str
    change: str

    def run(self, kill_at: int) -> int | None:
        """Run into a new table. Return the number of moments; None if the process was killed at one of them."""
        old, new = _values(self.kind)
        of = topic(self.cluster, *(_framed(OLD, 1, value) for value in old))
        path = self.folder / str(kill_at) / "table"
        path.parent.mkdir(parents=True)
        given: dict[str, Any] = {"value": "avro", "schema": None, "registry": {"url": "http://localhost:1"},
                                 "bad_records": "fail", "source": {"maxOffsetsPerTrigger": "1"}}
        if self.change == CHANGES[0]:
            self._with_registry(99, lambda: ingest(self.cluster, of, path, self.kind, **given))
        produce(self.cluster, of, *(_framed(NEW, 2, value) for value in new))
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["deltalake", "fastavro", "kconsumer.ingest", "pyiceberg.io.pyarrow"])
        receiver, sender = context.Pipe(duplex=False)
        newer_at = 1 if self.change == CHANGES[0] else _NEWER_AT
        process = context.Process(target=_run, args=(
            (self.cluster.bootstrap_servers, of, path, self.kind), given, newer_at, kill_at, sender))
        process.start()
        sender.close()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
        moments = receiver.recv() if process.exitcode == 0 else None
        self._with_registry(1, lambda: ingest(self.cluster, of, path, self.kind, **given))
        self._check(path, [*old, *new])
        self._with_registry(1, lambda: self._tidy(options(self.cluster, of, path, self.kind, **given)))
        self._check(path, [*old, *new])
        return moments

    def _tidy(self, chosen: IngestOptions) -> None:
        with Ingestion(chosen, InProcess()) as run:
            assert run.vacuum() == []  # the run after the kill has removed what that left
            if self.kind != "parquet":
                assert run.compact() > 0

    def _with_registry(self, newer_at: int, act: Any) -> None:
        real, options_module.SchemaRegistry = options_module.SchemaRegistry, _registry(newer_at)
        try:
            act()
        finally:
            options_module.SchemaRegistry = real

    def _check(self, path: Path, values: list[dict[str, Any]]) -> None:
        """Compare the rows. If the schema changes within a run, a record may be read with its own or the newer one."""
        found = rows(path, self.kind).sort_by("offset").to_pylist()
        for row, value in zip(found, values, strict=True):
            expected = {"a": value["a"], "money": value["money"], "none": value["none"], "gone": value.get("gone"),
                        "former": value.get("former"), "renamed": value.get("renamed"), "new": value.get("new"),
                        "l": [{"y": None, **item} for item in value["l"]]}
            newer = expected if self.change == CHANGES[0] else {
                **expected, "gone": None, "former": None, "renamed": value.get("renamed", value.get("former"))}
            assert {name: row.get(name) for name in expected} in (expected, newer), (self.kind, path.parent.name)


def _registry(newer_at: int) -> Any:
    client = Registry(newer_at)
    return lambda config: SchemaRegistry(client)


def _run(place: tuple[str, str, Path, str], more: dict[str, Any], newer_at: int, kill_at: int, sender: Any) -> None:
    """Run an ingestion in this process, which ends itself at the moment of that number."""
    servers, name, path, kind = place
    options_module.SchemaRegistry = _registry(newer_at)
    chosen = options(SimpleNamespace(bootstrap_servers=servers), name, path, kind, **more)
    moments = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal moments
        if event == "call" and any(part in frame.f_code.co_filename for part in _MOMENTS):
            moments += 1
            if moments == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)
    with Ingestion(chosen, InProcess()) as run:
        run.run()
    sys.setprofile(None)
    sender.send(moments)


def kills(scene: Scene, every: int) -> int:
    """Kill runs at every so many moments, and return the number of kills."""
    moments = scene.run(0)
    assert moments is not None
    for kill_at in range(1, moments + 1, every):
        assert scene.run(kill_at) is None, kill_at
    return len(range(1, moments + 1, every))


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill ingestion at each step of a change of types.")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--format", default=",".join(FORMATS))
    given = parser.parse_args()
    with EmbeddedCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        for kind in given.format.split(","):
            for number, change in enumerate(CHANGES):
                done = kills(Scene(cluster, Path(folder, f"{kind}{number}"), kind, change), given.every)
                print(f"{kind}, {change}: {done} kills, each record once with its value", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
