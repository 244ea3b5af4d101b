"""Decoders from a command's options: --value avro, --schema, --registry and similar ones.

Owns: DECODED, decoder_of, registry_of. Threads: the main thread. Never: decodes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from kconsumer.decoding import Avro, Decoder, Json, Protobuf, SchemaRegistry

DECODED: Final = ("avro", "json", "protobuf")


def registry_of(url: str | None, properties: Sequence[str]) -> SchemaRegistry | None:
    """Return the registry of --registry and --registry-property.

    @FILE means a file's content.

    Raises:
        click.UsageError: a property is not name=value, its file cannot be read, or there is no URL.
    """
    if url is None:
        if properties:
            raise click.UsageError("--registry-property needs --registry")
        return None
    config = {"url": url}
    for text in properties:
        name, found, value = text.partition("=")
        if not found or not name:
            raise click.UsageError(f"invalid --registry-property {text!r}: expected NAME=VALUE")
        config[name] = _content("--registry-property", value).decode().rstrip("\n") if value[:1] == "@" else value
    registry = SchemaRegistry(config)
    try:
        registry.client  # noqa: B018 - makes the client here: an invalid property is wrong usage
    except (ImportError, ValueError, TypeError) as error:
        raise click.UsageError(f"--registry: {error}") from error
    return registry


def decoder_of(form: str, registry: SchemaRegistry | None, schema: str | None, message: str | None,
               subject: str | None = None) -> Decoder | None:
    """The decoder of a form; None for JSON without a schema and a registry: its values will suggest one.

    Raises:
        click.UsageError: an option is missing, or the schema is invalid.
    """
    if schema is None and registry is None and form != "json":
        raise click.UsageError(f"{form} needs the schema of the data: set --registry or --schema")
    if subject is not None and registry is None:
        raise click.UsageError("--subject and --key-subject need --registry")
    if message is not None and form != "protobuf":
        raise click.UsageError("--message is for protobuf only")
    try:
        match form:
            case "avro":
                return Avro(None if schema is None else _text(schema), registry=registry, subject=subject)
            case "json":
                return None if schema is None and registry is None else Json(_fields(schema), registry=registry,
                                                                              subject=subject)
        given: Any = None if schema is None else _content("--schema", schema)
        if schema is not None and schema.endswith(".proto"):
            given = given.decode()
        return Protobuf(given, message, registry=registry, subject=subject)
    except (ValueError, TypeError, ImportError) as error:
        raise click.UsageError(f"invalid schema: {error}") from error


def _fields(schema: str | None) -> Any:
    """Return the fields and their types from JSON, or a type's name."""
    if schema is None:
        return None
    text = _text(schema)
    return json.loads(text) if text.lstrip().startswith(("{", "[")) else text


def _text(schema: str) -> str:
    return _content("--schema", schema).decode() if schema.startswith("@") else schema


def _content(option: str, value: str) -> bytes:
    path = Path(value.removeprefix("@"))
    try:
        return path.read_bytes()
    except OSError as error:
        raise click.UsageError(f"{option}: cannot read {path}: {error.strerror}") from error
