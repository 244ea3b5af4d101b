"""Compiles the text of .proto files to a FileDescriptorSet, with protoc.

Owns: compile_text. Threads: any. Never: parses the language itself: protoc runs in a separate process, from the package
grpcio-tools (the extra `protoc`).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path, PurePosixPath

MAIN = "schema.proto"
_SECONDS = 60
_MOST_SHOWN = 1000  # longest shown part of protoc's messages, in characters
_LOG = re.compile(r"WARNING: All log messages|[IW]\d{4} ")  # lines that do not concern the text


class ProtoTextError(ValueError):
    """Text that is not a valid .proto file, or a file that it imports is missing."""


def compile_text(text: str, imports: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return the FileDescriptorSet of a .proto file and its imports.

    The file itself is last.

    Args:
        text: of the file.
        imports: (name, text) of imported files; google/protobuf's own files are not needed.

    Raises:
        ImportError: grpcio-tools is not installed.
        ProtoTextError: a text is invalid, or an import is missing.
    """
    try:
        import_module("grpc_tools")
    except ImportError as error:
        raise ImportError("a .proto text needs protoc: pip install 'kconsumer[protoc]', or pass a generated class or a "
                          "FileDescriptorSet (protoc --include_imports --descriptor_set_out)") from error
    with tempfile.TemporaryDirectory() as folder:
        for name, written in (*imports, (MAIN, text)):
            _write(Path(folder), name, written)
        out = Path(folder, "descriptors")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports",
                   f"--descriptor_set_out={out}", MAIN]
        try:
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ProtoTextError(f"invalid .proto text: protoc did not end within {_SECONDS} s") from error
        if done.returncode:
            lines = [line for line in done.stderr.replace(f"{folder}/", "").splitlines() if not _LOG.match(line)]
            shown = "; ".join(lines)[:_MOST_SHOWN]
            raise ProtoTextError(f"invalid .proto text: {shown or f'protoc ended with {done.returncode}'}")
        return out.read_bytes()


def _write(folder: Path, name: str, text: str) -> None:
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\0" in name:
        raise ProtoTextError(f"invalid name {name!r} of an imported .proto file: expected a relative path")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_text(text, encoding="utf-8")
    except UnicodeEncodeError as error:
        raise ProtoTextError(f"invalid .proto text: {error}") from error
