"""Protobuf schemas as the text of .proto files, compiled by protoc."""

from __future__ import annotations

import logging
import pickle

import pyarrow as pa
import pytest
from registry_client import Client, Reference, Schema

from kconsumer.decoding import Protobuf, SchemaRegistry
from kconsumer.decoding.proto_text import compile_text

pytest.importorskip("grpc_tools", reason="the extra [protoc] is not installed")

TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1;
  google.protobuf.Timestamp at = 2;
  repeated Line lines = 3;
}
message Line { string item = 1; }
"""
ORDER = b"\x08\x07\x12\x02\x08\x05\x1a\x03\x0a\x01x"


def test_a_text_is_a_schema():
    decoder = Protobuf(TEXT, "shop.Order", unit="s")
    assert decoder == Protobuf(compile_text(TEXT), "shop.Order", unit="s") and decoder == Protobuf(TEXT, unit="s")
    for one in (decoder, pickle.loads(pickle.dumps(decoder))):
        (row,) = pa.array(one.decode([ORDER])).to_pylist()
        assert (row["id"], row["at"].timestamp(), row["lines"]) == (7, 5, [{"item": "x"}])
    assert pa.array(Protobuf(TEXT, "shop.Line").decode([b"\x0a\x01y"])).to_pylist() == [{"item": "y"}]


def test_texts_of_writers():
    new = TEXT.replace("int64 id = 1;", "int64 id = 1; string note = 4;")
    decoder = Protobuf(new, "shop.Order", writers={1: TEXT, 2: new}, framing="confluent", columns=["id", "note"])
    rows = decoder.decode([b"\0\0\0\0\1\0\x08\x07", b"\0\0\0\0\2\0\x08\x08\x22\x01n"])
    assert pa.array(rows).to_pylist() == [{"id": 7, "note": ""}, {"id": 8, "note": "n"}]


@pytest.mark.parametrize(("text", "match"), [
    ("", "has no message"), ("syntax = \"proto3\";", "has no message"), ("message", "Expected message name"),
    ('syntax = "proto3"; message A { B b = 1; }', '"B" is not defined'),
    ('syntax = "proto3"; import "other.proto"; message A {}', r"other\.proto: File not found"),
    ('syntax = "proto3"; import "/etc/passwd"; message A {}', "/etc/passwd"),
    ("message A { \ud800 }", "surrogates not allowed"), ("message A {" * 2_000, "invalid .proto text"),
])
def test_texts_that_are_not_valid(text, match):
    with pytest.raises(ValueError, match=match) as raised:
        Protobuf(text)
    assert len(str(raised.value)) < 1_200 and "absl" not in str(raised.value)


@pytest.mark.parametrize("name", ["../up.proto", "/etc/x.proto", "", "a\0.proto", "a/../../b.proto"])
def test_names_of_imports_stay_in_the_folder(name):
    with pytest.raises(ValueError, match=r"of an imported \.proto file"):
        compile_text(TEXT, [(name, "")])


class TextClient(Client):
    """A client of a registry that knows no other form of a schema than its text."""

    def get_schema(self, id_, fmt=None):
        return super().get_schema(id_)

    def get_latest_version(self, subject, fmt=None):
        return super().get_latest_version(subject)

    def get_version(self, subject, version, deleted=False, fmt=None):
        return super().get_version(subject, version, deleted)


def test_a_registry_that_returns_texts(caplog):
    line = 'syntax = "proto3"; package shop; message Line { string item = 1; }'
    order = 'syntax = "proto3"; package shop; import "line.proto"; message Order { int64 id = 1; Line line = 2; }'
    client = TextClient(
        ids={1: Schema(order, "PROTOBUF", [Reference("line.proto", "line", 1)]),
             2: Schema("message Order {", "PROTOBUF")},
        versions={("orders-value", "latest"): Schema(order, "PROTOBUF", [Reference("line.proto", "line", 1)]),
                  ("line", 1): Schema(line, "PROTOBUF")})
    for schema in (*client.ids.values(), *client.versions.values()):
        schema.schema_id = 1
    for version in list(client.versions):
        client.versions[version].schema = client.versions[version]
    with caplog.at_level(logging.WARNING, "kconsumer.decoding"):
        decoder = Protobuf(SchemaRegistry(client), subject="orders-value")
        rows = decoder.decode([b"\0\0\0\0\1\0\x08\x07\x12\x03\x0a\x01x", b"\0\0\0\0\2\0\x08\x07"])
    assert pa.array(rows).to_pylist() == [{"id": 7, "line": {"item": "x"}}, None]
    assert "schema 2 cannot be decoded: invalid .proto text" in caplog.text
