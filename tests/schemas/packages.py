"""Owns: public packages with real schemas, and the schemas in them. Threads: the caller's.

The packages are downloaded with pip into build/schemas at the first use, and nothing of them is executed. Versions are
fixed, so that the counts of docs/reliability.md can be compared. Never: decodes anything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fastavro
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

FOLDER: Final = Path(__file__).resolve().parents[2] / "build" / "schemas"
PACKAGES: Final = {  # package and version → kind of its schemas
    "acryl-datahub==1.7.0.17": "avro", "lsst-alert-packet==30.2026.2700": "avro", "fastavro==1.13.1": "avro",
    "googleapis-common-protos==1.76.0": "protobuf", "temporalio==1.35.0": "protobuf",
    "cfn-lint==1.58.0": "json", "check-jsonschema==0.39.0": "json",
    "cyclonedx-python-lib==11.12.0": "json", "altair==6.3.0": "json", "nbformat==5.11.1": "json",
}
_ENDINGS: Final = {"avro": ".avsc", "protobuf": ".proto", "json": ".json"}
# As a field they have a column of another type, which the schemas that use them try. As a row they are plain messages.
_WELL_KNOWN: Final = [f"google.protobuf.{name}" for name in ("Timestamp", "Duration", "Struct", "Value", "ListValue")]
_IMPORT: Final = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"', re.M)


@dataclass(frozen=True)
class PublicSchema:
    """A schema; of Protobuf a message, with the descriptors of its file and all imports."""

    package: str
    kind: str
    name: str  #: the file, and the message
    schema: Any


def public_schemas() -> Iterator[PublicSchema]:
    """Yield all schemas, each content once, in the same order every time."""
    for package, kind in PACKAGES.items():
        folder = _unpacked(package)
        found = sorted(folder.rglob(f"*{_ENDINGS[kind]}"))
        seen = set()
        for name, schema in {"avro": _avro, "json": _json, "protobuf": _protobuf}[kind](folder, found):
            content = name.rpartition(":")[2] if kind == "protobuf" else json.dumps(schema, sort_keys=True)
            if content not in seen:
                seen.add(content)
                yield PublicSchema(package.partition("==")[0], kind, name, schema)


def _unpacked(package: str) -> Path:
    """Download a package, and return the folder with its schemas."""
    folder = FOLDER / package
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation", "-d", folder,
                    *(["--no-binary", ":all:"] if package.startswith("fastavro") else []), package], check=True)
    archive = next(path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    ending = _ENDINGS[PACKAGES[package]]
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(folder, [name for name in opened.namelist() if name.endswith(ending)])
    else:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, [member for member in packed if member.name.endswith(ending)], filter="data")
    archive.unlink()
    (folder / "complete").touch()
    return folder


def _avro(folder: Path, files: list[Path]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas that fastavro accepts; other ones are not Avro, or refer to other files."""
    for path in files:
        try:
            schema = fastavro.schema.load_schema(path, _write_hint=False)
        except (fastavro.schema.SchemaParseException, fastavro.repository.SchemaRepositoryError, ValueError, KeyError,
                fastavro.schema.UnknownType):
            continue
        if isinstance(schema, list) or "protocol" in schema:
            continue  # several types, none of which is that of a value
        yield str(path.relative_to(folder)), schema


def _json(folder: Path, files: list[Path]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas of objects that need no other file."""
    for path in files:
        try:
            schema = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        if not isinstance(schema, dict) or not ("$schema" in schema or "typeName" in schema):
            continue
        if not any(name in schema for name in ("properties", "allOf", "oneOf", "anyOf", "$ref")) or re.search(
                r'"\$ref": "[^#]', json.dumps(schema)):
            continue
        yield str(path.relative_to(folder)), schema


def _protobuf(folder: Path, files: list[Path]) -> Iterator[tuple[str, Any]]:
    """Yield (file:message, descriptors) of all messages with fields."""
    roots = {folder}
    for path in files:
        for name in _IMPORT.findall(path.read_text(encoding="utf-8")):
            roots |= {Path(str(other)[:-len(name)]) for other in files if str(other).endswith(f"/{name}")}
    includes = [f"-I{root}" for root in sorted(roots, key=lambda root: -len(root.parts))]
    includes.append(f"-I{Path(protoc.__file__).parent / '_proto'}")
    made = folder / "descriptors"
    for path in files:
        if protoc.main(["protoc", *includes, "--include_imports", f"--descriptor_set_out={made}", str(path)]):
            raise RuntimeError(f"protoc cannot compile {path}")
        data = made.read_bytes()
        file = descriptor_pb2.FileDescriptorSet.FromString(data).file[-1]
        for message in _messages(file.package, file.message_type):
            if message not in _WELL_KNOWN:
                yield f"{path.relative_to(folder)}:{message}", data


def _messages(prefix: str, messages: Any) -> Iterator[str]:
    for message in messages:
        name = f"{prefix}.{message.name}".lstrip(".")
        if message.field and not message.options.map_entry:
            yield name
        yield from _messages(name, message.nested_type)
