"""Recursive Protobuf messages as JSON text: the core's description of each message.

Owns: Form, JsonField, JsonMessage, JsonMessages. Threads: any (pure functions). Never: makes a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kconsumer.decoding import proto_schema as proto
from kconsumer.decoding.proto_schema import Message, ProtoField, ProtoSchema

_G = "google.protobuf."
# Messages that lead to themselves by nature: always JSON, each in the form of Protobuf's JSON mapping.
ALWAYS = frozenset({f"{_G}Struct", f"{_G}Value", f"{_G}ListValue"})


class Form(IntEnum):
    """The core's ProtoJsonForm (values/proto_json.hpp), in its order."""

    OBJECT = 0
    ONLY = 1
    FIELD = 2
    WRAPPER = 3
    TIMESTAMP = 4
    DURATION = 5


_FORMS = {f"{_G}Value": Form.ONLY, f"{_G}Struct": Form.FIELD, f"{_G}ListValue": Form.FIELD,
          f"{_G}Timestamp": Form.TIMESTAMP, f"{_G}Duration": Form.DURATION,
          **{f"{_G}{name}Value": Form.WRAPPER for name in (
              "Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")}}


@dataclass(frozen=True)
class JsonField:
    """The core's ProtoJsonField."""

    number: int
    type: int
    name: str
    repeated: bool = False
    is_null: bool = False
    message: int = -1
    oneof: int = -1
    numbers: tuple[int, ...] = ()
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True)
class JsonMessage:
    """The core's ProtoJsonMessage."""

    form: Form
    is_entry: bool
    fields: tuple[JsonField, ...]


class JsonMessages:
    """The messages of a schema that become JSON, each once: their fields may lead back to them."""

    def __init__(self, schema: ProtoSchema) -> None:
        self._schema = schema
        self._indexes: dict[str, int] = {}
        self._made: list[JsonMessage | None] = []

    def index(self, name: str) -> int:
        """Return the index of a message; its fields' messages are added.

        Raises:
            ProtoSchemaError: the schema lacks a type.
        """
        waiting = [name]
        while waiting:
            found = self._schema.message(waiting.pop())
            if found.name not in self._indexes:
                self._reserve(found.name)
            if self._made[self._indexes[found.name]] is None:
                waiting += self._add(found)
        return self._indexes[name]

    def made(self) -> list[JsonMessage]:
        return [entry for entry in self._made if entry is not None]

    def _reserve(self, name: str) -> int:
        if name not in self._indexes:
            self._indexes[name] = len(self._made)
            self._made.append(None)
        return self._indexes[name]

    def _add(self, message: Message) -> list[str]:
        """Add a message, and return the names of its fields' messages."""
        form = _FORMS.get(message.name, Form.OBJECT)
        if form is not Form.OBJECT and not message.fields:
            form = Form.OBJECT
        self._made[self._reserve(message.name)] = JsonMessage(
            form, message.is_map_entry, tuple(self._field(entry) for entry in message.fields))
        return [entry.type_name for entry in message.fields if entry.type in (proto.MESSAGE, proto.GROUP)]

    def _field(self, entry: ProtoField) -> JsonField:
        message = -1
        by_number: dict[int, str] = {}
        if entry.type in (proto.MESSAGE, proto.GROUP):
            message = self._reserve(self._schema.message(entry.type_name).name)
        if entry.type == proto.ENUM:
            by_number = {number: name for name, number in reversed(self._schema.enum(entry.type_name).values)}
        return JsonField(entry.number, entry.type, entry.name, entry.repeated, entry.type_name == f"{_G}NullValue",
                         message, entry.oneof, tuple(by_number), tuple(by_number.values()))
