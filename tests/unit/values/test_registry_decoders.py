"""Decoders whose schemas come from a registry: ids, evolution, what is said of it, and decoders as objects."""

import json
import logging
import pickle
import struct
import threading

import pyarrow as pa
import pytest
from avro_encoders import encoded, field, record
from registry_client import Client, Reference, Schema
from rows import decoded

from kconsumer.decoding import Avro, Json, RegistryError, SchemaRegistry
from kconsumer.decoding.json_schema import schema_type
from kconsumer.decoding.registry_decoder import Learned

OLD = record(field("a", "int"), field("gone", "string"))
NEW = record(field("a", "long"), field("b", ["null", "string"], default=None))
NEWER = record(field("a", "long"), field("b", ["null", "string"], default=None), field("c", "int", default=7))


def framed(id_, data):
    return b"\0" + struct.pack(">I", id_) + data


def schema(avro, **more):
    return Schema(json.dumps(avro), **more)


def client():
    return Client({1: schema(OLD), 2: schema(NEW)}, {("s", "latest"): schema(NEW)})


ROWS = [
    framed(1, encoded(OLD, {"a": 1, "gone": "x"})[0]),
    framed(2, encoded(NEW, {"a": 2, "b": "y"})[0]),
    framed(1, encoded(OLD, {"a": 3, "gone": ""})[0]),
]
WANTED = [{"a": 1, "b": None}, {"a": 2, "b": "y"}, {"a": 3, "b": None}]


def test_the_newest_schema_of_the_subject_reads_all_writers(caplog):
    server = client()
    decoder = Avro(SchemaRegistry(server), subject="s")
    assert decoder.type is None and repr(decoder) == "Avro(<SchemaRegistry: Client>, subject='s', framing='confluent')"
    assert decoded(decoder, ROWS) == (WANTED, {})
    assert sorted(map(str, server.asked)) == ["('s', 'latest')", "1", "2"]
    assert [r.message for r in caplog.records] == [
        "schema 1 has fields that the decoder's schema lacks; they are skipped: gone"]
    decoded(decoder, ROWS)
    assert len(caplog.records) == 1 and len(server.asked) == 3


def test_a_given_schema_reads_all_writers_and_asks_for_no_subject():
    server = client()
    decoder = Avro(NEWER, registry=SchemaRegistry(server))
    assert decoded(decoder, ROWS)[0] == [{**row, "c": 7} for row in WANTED]
    assert server.asked == [1, 2] and str(decoder.type) == "struct<a: int64 not null, b: string, c: int32 not null>"


def test_a_new_id_in_mid_stream_is_read_as_the_schema_of_the_first_use(caplog):
    server = client()
    decoder = Avro(SchemaRegistry(server), subject="s")
    decoded(decoder, ROWS)
    server.ids[9] = server.versions["s", "latest"] = schema(NEWER)
    rows = [*ROWS, framed(9, encoded(NEWER, {"a": 4, "b": None, "c": 1})[0])]
    assert decoded(decoder, rows) == ([*WANTED, {"a": 4, "b": None}], {})
    assert "skipped: c" in caplog.text
    copy = pickle.loads(pickle.dumps(Avro({"type": "string"}, registry=SchemaRegistry({"url": "mock://x"}))))
    assert copy == Avro({"type": "string"}, registry=SchemaRegistry({"url": "mock://x"}))


def test_ids_that_are_unknown_or_unusable_are_bad_rows(caplog):
    server = client()
    server.ids |= {3: schema("string"), 4: Schema("{}", "JSON"), 5: Schema("no JSON"),
                   6: schema(record(field("a", ["null", "row"])))}
    rows = [framed(id_, b"\x02") for id_ in (3, 4, 5, 6, 7)] + ROWS
    found, bad = decoded(Avro(SchemaRegistry(server), subject="s"), rows)
    assert found == [None] * 5 + WANTED
    unusable = "data with this schema id cannot be converted to the decoder's schema"
    assert bad == {**dict.fromkeys(range(4), unusable), 4: "the schema id is unknown"}
    for id_, text in ((3, "writer's type string"), (4, "its type is JSON, not AVRO"), (5, "not JSON"),
                      (6, "row cannot be read as long")):
        assert any(f"schema {id_} cannot be decoded" in r.message and text in r.message for r in caplog.records), id_


def test_a_registry_that_is_away_fails_the_call_and_loses_nothing():
    server = client()
    decoder = Avro(SchemaRegistry(server, retries=0), subject="s")
    server.failures = [OSError("away")]
    with pytest.raises(RegistryError, match="newest schema of subject s from the schema registry: away"):
        decoder.decode(ROWS)
    server.failures = []
    decoded(decoder, ROWS[:1])
    server.failures = [OSError("away")]
    with pytest.raises(RegistryError, match="cannot fetch schema 2") as raised:
        decoder.decode(ROWS)
    assert raised.value.missing == (2,)
    assert decoded(decoder, ROWS) == (WANTED, {})


def test_projection_warns_of_no_field_that_was_left_out_on_purpose(caplog):
    server = client()
    decoder = Avro(SchemaRegistry(server), subject="s")
    chosen = decoder.select(["b"])
    assert chosen is decoder.select(("b",)) and chosen != decoder
    assert decoded(chosen, ROWS)[0] == [{"b": row["b"]} for row in WANTED]
    assert decoded(decoder, ROWS)[0] == WANTED
    assert [r.message.rpartition(": ")[2] for r in caplog.records] == ["gone"]
    assert server.asked.count(("s", "latest")) == 1
    with pytest.raises(ValueError, match="no field 'x'"):
        decoder.select(["x"]).decode(ROWS)


def test_references_are_resolved():
    point = record(field("x", "int"), name="Point", namespace="n")
    line = record(field("from", "n.Point"), field("to", "Point"), name="Line", namespace="n")
    top = record(field("line", "n.Line"), field("at", "n.Point"))
    whole = record(field("line", record(field("from", point), field("to", "Point"), name="Line", namespace="n")),
                   field("at", "n.Point"))
    server = Client(
        {1: schema(top, references=(Reference("n.Line", "line", 1), Reference("n.Point", "point", 1)))},
        {("line", 1): schema(line, references=(Reference("n.Point", "point", 1),)), ("point", 1): schema(point)})
    server.versions["s", "latest"] = server.ids[1]
    row = {"line": {"from": {"x": 1}, "to": {"x": 2}}, "at": {"x": 3}}
    data = framed(1, encoded(whole, row)[0])
    assert decoded(Avro(SchemaRegistry(server), subject="s"), [data]) == ([row], {})


def test_the_subject_must_be_known():
    registry = SchemaRegistry(client())
    with pytest.raises(ValueError, match="the subject of these values is unknown"):
        Avro(registry).decode(ROWS)
    with pytest.raises(ValueError, match="needs subject="):
        Avro(registry).resolved()
    with pytest.raises(RegistryError, match="subject t-value is not in the schema registry"):
        Avro(registry).resolved("t")
    assert len(Avro(registry).decode([])) == 0
    server = Client(versions={("t-key", "latest"): schema(NEW)})
    assert str(Avro(SchemaRegistry(server)).resolved("t", key=True).type) == "struct<a: int64 not null, b: string>"


def test_a_decoder_that_was_resolved_stays_so():
    server = client()
    decoder = Avro(SchemaRegistry(server), subject="s").resolved()
    server.versions["s", "latest"] = schema(NEWER)
    assert decoder.resolved() is decoder
    assert decoded(decoder, ROWS)[0] == WANTED


def test_without_framing_the_newest_schema_is_also_the_writer_schema():
    decoder = Avro(SchemaRegistry(client()), subject="s", framing="skip=1")
    assert decoded(decoder, [b"?" + ROWS[1][5:]])[0] == WANTED[1:2]


def test_threads_that_use_a_new_decoder_ask_once():
    server = client()
    decoder = Avro(SchemaRegistry(server), subject="s")
    found = []
    threads = [threading.Thread(target=lambda: found.append(decoded(decoder, ROWS)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [WANTED] * 8 and len(server.asked) == 3


def test_decoders_of_a_mock_registry_can_be_pickled_after_their_first_use():
    confluent = pytest.importorskip("confluent_kafka.schema_registry", reason="the extra [registry] is not installed")
    registry = SchemaRegistry({"url": "mock://decoders"})
    registry.client.register_schema("s", confluent.Schema(json.dumps(NEW), "AVRO"))
    decoder = Avro(registry, subject="s")
    rows = [framed(1, ROWS[1][5:])]
    assert decoded(decoder, rows)[0] == WANTED[1:2]
    copy = pickle.loads(pickle.dumps(decoder))
    registry.client.register_schema("s", confluent.Schema(json.dumps(NEWER), "AVRO"))
    assert copy == decoder and hash(copy) == hash(decoder) and decoded(copy, rows)[0] == WANTED[1:2]
    assert decoded(Avro(registry, subject="s"), rows)[0] == [{**WANTED[1], "c": 7}]
    with pytest.raises(TypeError, match="mock client"):
        pickle.dumps(Avro(SchemaRegistry(registry.client), subject="s"))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, TypeError, "needs a schema or a SchemaRegistry"),
        ({"schema": "int", "subject": "s"}, ValueError, "subject= needs a registry"),
        ({"schema": SchemaRegistry(client()), "registry": SchemaRegistry(client())}, TypeError, "two registries"),
        ({"schema": "int", "registry": {"url": "x"}}, TypeError, "expected a SchemaRegistry, not dict"),
        ({"schema": SchemaRegistry(client()), "writers": {1: "int"}}, ValueError, "cannot combine a registry"),
    ],
    ids=["nothing", "subject", "two", "config", "writers"])
def test_arguments_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        Avro(**arguments)


# ---- JSON Schema

PERSON = {
    "type": "object",
    "$defs": {"tag": {"type": "string"}, "tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}},
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"}, "score": {"type": "number"}, "small": {"type": "integer", "connect.type": "int16"},
        "name": {"type": ["null", "string"]}, "ok": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "born": {"type": "string", "format": "date"}, "seen": {"type": "string", "format": "date-time"},
        "blob": {"type": "string", "contentEncoding": "base64"}, "level": {"enum": ["a", "b", None]},
        "extra": {"type": "object", "additionalProperties": {"type": "integer"}}, "any": True,
        "mixed": {"type": ["string", "integer"]}, "number": {"type": ["integer", "number"]},
        "tree": {"$ref": "#/$defs/tree"}, "address": {"$ref": "address.json"},
        "both": {"allOf": [{"properties": {"x": {"type": "integer"}}}, {"properties": {"y": {"type": "string"}}}]},
        "items": {"type": "array"}, "open": {"type": "object"},
    },
}
ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}}
PERSON_TYPE = (
    "struct<id: int64, score: float64, small: int16, name: string, ok: bool, tags: list<string>, born: date32, "
    "seen: timestamp[us, UTC], blob: binary, level: string, extra: map<string, int64>, any: json, mixed: json, "
    "number: float64, tree: struct<next: json>, address: struct<city: string>, both: struct<x: int64, y: string>, "
    "items: list<json>, open: json>")


def test_json_schema_becomes_columns():
    newest = Schema(json.dumps(PERSON), "JSON", (Reference("address.json", "address", 1),))
    server = Client({5: newest}, {("p", "latest"): newest, ("address", 1): Schema(json.dumps(ADDRESS), "JSON")})
    decoder = Json(SchemaRegistry(server), subject="p")
    assert str(decoder.resolved().type) == PERSON_TYPE
    row = {"id": 1, "name": None, "tags": ["x"], "extra": {"k": 2}, "address": {"city": "Y"}, "mixed": 3, "small": 4}
    made = decoder.decode([framed(5, json.dumps(row).encode()), framed(6, b'{"id": 2}')])
    found = pa.array(made).to_pylist()
    assert made.errors == [] and found[1]["id"] == 2
    assert {name: found[0][name] for name in row} == {**row, "extra": [("k", 2)], "mixed": "3"}


@pytest.mark.parametrize(("schema", "columns"), [
    ({"$defs": {"a": {"$anchor": "foo", "type": "integer"}}, "properties": {"x": {"$ref": "#foo"}}},
     "struct<x: int64>"),
    ({"definitions": {"a": {"$id": "#foo", "type": "integer"}}, "properties": {"x": {"$ref": "#foo"}}},
     "struct<x: int64>"),
    ({"properties": {"a": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     "struct<a: int64>"),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "oneOf": [
        {"properties": {"b": {"type": "string"}, "c": {"type": "string"}}},
        {"properties": {"a": {"const": 5}, "c": {"type": "integer"}}}]}, "struct<a: int64, b: string, c: json>"),
    ({"type": "string", "anyOf": [{"maxLength": 3}, {"pattern": "^x"}]}, "string"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int64"),
    ({"enum": 5}, "json"),
    ({"properties": {"a": {"connect.type": ["int8"], "type": "integer"}}}, "struct<a: int64>"),
    ({"properties": {"a\0": {"type": "integer"}}}, "json"),
    ({"properties": {"\ud800": {"type": "integer"}}}, "json"),
])
def test_json_schemas_and_their_columns(schema, columns):
    text = json.dumps(schema)
    assert str(schema_type(text)) == columns
    server = Client({1: Schema(text, "JSON")}, {("s", "latest"): Schema(text, "JSON")})
    assert Json("json", registry=SchemaRegistry(server)).decode([framed(1, b"{}")]).errors == []


def test_the_unit_of_date_times_of_a_json_schema():
    text = json.dumps({"properties": {"t": {"type": "string", "format": "date-time"}}})
    server = Client({1: Schema(text, "JSON")}, {("s", "latest"): Schema(text, "JSON")})
    row = framed(1, b'{"t":"2024-01-01T00:00:00.123456789Z"}')
    micros = Json(SchemaRegistry(server), subject="s")
    assert [bad.reason for bad in micros.decode([row]).errors] == ["the value has more digits than the type keeps"]
    nanos = Json(SchemaRegistry(server), subject="s", unit="ns")
    assert pa.array(nanos.decode([row])).field("t").cast(pa.int64()).to_pylist() == [1704067200123456789]
    with pytest.raises(ValueError, match="invalid unit 'day': expected s, ms, us or ns"):
        Json(SchemaRegistry(server), unit="day")
    with pytest.raises(ValueError, match="unit= needs a registry"):
        Json("int64", unit="ns")


def test_json_schemas_that_are_refused():
    for text, type_, message in (("{", "JSON", "not JSON"), ("{}", "AVRO", "it is not of type JSON, but AVRO")):
        server = Client(versions={("s", "latest"): Schema(text, type_)})
        with pytest.raises(ValueError, match=f"newest schema of subject s: .*{message}"):
            Json(SchemaRegistry(server), subject="s").resolved()
    definitions = {f"l{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/l{n + 1}"} for k in "abcdefgh"}}
                   for n in range(9)} | {"l9": {"type": "string"}}
    laughs = {"$defs": definitions, "$ref": "#/$defs/l0"}
    server = Client(versions={("s", "latest"): Schema(json.dumps(laughs), "JSON")})
    with pytest.raises(ValueError, match=r"more than 10,000 types: choose columns without 'a' \(which has 9,999 "):
        Json(SchemaRegistry(server), subject="s").resolved()


def test_columns_and_max_types_admit_a_large_json_schema():
    definitions: dict[str, object] = {f"l{n}": {"type": "object", "properties": {
        k: {"$ref": f"#/$defs/l{n + 1}"} for k in "abcdefgh"}} for n in range(5)} | {"l5": {"type": "string"}}
    text = json.dumps({"$defs": definitions, "$ref": "#/$defs/l0"})
    registry = SchemaRegistry(Client(versions={("s", "latest"): Schema(text, "JSON")}))
    with pytest.raises(ValueError, match="more than 10,000 types"):
        Json(registry, subject="s").resolved()
    some = Json(registry, subject="s", columns=["b.c.d", "e.f.g.a.b"], framing="none").resolved()
    assert some.type is not None and str(some.type) == (
        "struct<b: struct<c: struct<d: struct<" + ", ".join(
            f"{k}: struct<{', '.join(f'{m}: string' for m in 'abcdefgh')}>" for k in "abcdefgh") +
        ">>>, e: struct<f: struct<g: struct<a: struct<b: string>>>>>")
    value = {"a": 5, "e": {"f": {"g": {"a": {"b": "x"}}}}}
    assert pa.array(some.decode([json.dumps(value).encode()])).to_pylist() == [
        {"b": None, "e": {"f": {"g": {"a": {"b": "x"}}}}}]
    with pytest.raises(ValueError, match=r"no field 'b\.x'"):
        Json(registry, subject="s", columns=["b.x"]).resolved()
    whole = Json(registry, subject="s", framing="none", max_types=100_000).resolved()
    assert str(whole.type).count("string") == 8**5
    with pytest.raises(ValueError, match="more than 1,000 types: choose columns without 'a'"):
        whole._remade(whole.type, max_types=1000)
    with pytest.raises(ValueError, match="invalid max_types 0"):
        Json("int64", max_types=0)


def test_lost_fields_of_a_json_writer_are_logged_once(caplog):
    person = Schema(json.dumps(PERSON), "JSON", (Reference("address.json", "address", 1),))
    server = Client({1: person, 2: Schema("[]", "AVRO")}, {("address", 1): Schema(json.dumps(ADDRESS), "JSON")})
    decoder = Json({"id": "int64", "address": {"street": "string"}}, registry=SchemaRegistry(server))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            made = decoder.decode([framed(1, b'{"id": 1}'), framed(2, b'{"id": 2}'), framed(3, b"{}")])
    assert pa.array(made).to_pylist() == [{"id": 1, "address": None}, {"id": 2, "address": None},
                                          {"id": None, "address": None}]
    assert [r.message.partition(":")[0] for r in caplog.records] == [
        "schema 1 has fields that the decoder's schema lacks; they are skipped", "schema 2",
        "the schema registry does not have schema 3"]
    server = Client({1: Schema(json.dumps(PERSON), "JSON")}, failures=[OSError("away")])
    with pytest.raises(RegistryError, match="schema 1 from"):
        Json("json", registry=SchemaRegistry(server, retries=0)).decode([framed(1, b"{}")])


def test_a_call_keeps_its_schemas_even_if_other_calls_drop_them():
    learned = Learned(2)

    def ask(references):
        if 1 in references:  # another thread meanwhile
            learned.of([7, 8, 9], ask, make)
        return dict.fromkeys(references, "schema")

    def make(reference, found):
        return reference

    assert learned.of([1, 2, 3], ask, make) == {1: 1, 2: 2, 3: 3}
    assert learned.of([3, 4, 5, 1], ask, make) == {3: 3, 4: 4, 5: 5, 1: 1}


def test_threads_share_a_decoder_of_many_writers():
    server = client()
    server.ids = dict.fromkeys(range(100_000), schema("int"))
    decoder = Avro("int", registry=SchemaRegistry(server))
    bad = []

    def work(first):
        for n in range(60):
            out = decoder.decode([framed(first + 40 * n + i, b"\x02") for i in range(40)])
            bad.extend(out.errors)

    threads = [threading.Thread(target=work, args=(10_000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bad == []


def test_lost_fields_of_given_writers_are_logged_once(caplog):
    decoder = Avro(NEW, writers={1: OLD, 2: NEW}, framing="confluent")
    decoded(decoder, ROWS[1:2])
    assert not caplog.records
    decoded(decoder, ROWS)
    decoded(decoder.select(["a"]), ROWS)
    assert [r.message for r in caplog.records] == [
        "schema 1 has fields that the decoder's schema lacks; they are skipped: gone"]


def test_a_decoder_cannot_be_changed():
    decoder = Avro(NEW, writers={1: OLD}, framing="confluent")
    with pytest.raises(AttributeError, match="immutable"):
        del decoder.type
    with pytest.raises(TypeError):
        decoder.options["framing"] = "none"
    with pytest.raises(TypeError):
        decoder.options["writers"][2] = OLD
    assert pickle.loads(pickle.dumps(decoder)) == decoder
