"""JSON Schemas as columns: every declared field of a valid document is in the row, whatever part declares it."""

import json
import logging

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registry_client import Client, Schema

from kconsumer.decoding import Json, SchemaRegistry
from kconsumer.decoding.json_schema import JsonSchemaError, schema_type


def decoded(schema, document, **options):
    """Return the row of a document, and the reasons of errors."""
    server = Client(versions={("s", "latest"): Schema(json.dumps(schema), "JSON")})
    made = Json(SchemaRegistry(server), subject="s", framing="none", **options).decode([json.dumps(document).encode()])
    return pa.array(made).to_pylist()[0], [(bad.field, bad.reason) for bad in made.errors]


def holds(row, document):
    """Return whether a row has all values of a document, in typed columns or as JSON text."""
    if isinstance(document, dict) and isinstance(row, dict):
        return all(name in row and holds(row[name], value) for name, value in document.items())
    if isinstance(document, list) and isinstance(row, list):
        return len(row) == len(document) and all(map(holds, row, document))
    return row == document or (isinstance(row, str) and json.loads(row) == document)


def struct(**properties):
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
IF_A = {"if": struct(kind={"const": "a"}), "then": struct(x=TEXT)}


@pytest.mark.parametrize(("schema", "document", "columns"), [
    ({**struct(id=TEXT), "allOf": [struct(o=struct(n={"type": "integer"}, t=TEXT)), struct(
        o=struct(s={"enum": ["open"]}, t={"minLength": 1}))]}, {"id": "1", "o": {"n": 7, "t": "x", "s": "open"}},
     "struct<id: string, o: struct<n: int64, t: string, s: string>>"),
    ({"$ref": "#/$defs/base", "properties": {"b": TEXT}, "$defs": {"base": struct(a=TEXT)}}, {"a": "x", "b": "y"},
     "struct<b: string, a: string>"),
    ({**struct(o=struct(a=TEXT)), "oneOf": [struct(o={**struct(b=TEXT), "required": ["b"]}), struct(
        o={**struct(c=TEXT), "required": ["c"]})]}, {"o": {"a": "x", "b": "y"}},
     "struct<o: struct<a: string, b: string, c: string>>"),
    ({**struct(kind=TEXT), **IF_A, "else": struct(y=TEXT)}, {"kind": "b", "y": "v"},
     "struct<kind: string, x: string, y: string>"),
    ({**struct(kind=TEXT), "allOf": [IF_A]}, {"kind": "a", "x": "v"}, "struct<kind: string, x: string>"),
    ({**struct(id=TEXT), **IF_A}, {"id": "1", "kind": 5}, "struct<id: string, kind: json, x: string>"),
    ({**struct(kind=TEXT), "allOf": [IF_A, {"if": struct(kind={"const": "b"}), "then": struct(x={"type": "integer"})}]},
     {"kind": "b", "x": 1}, "struct<kind: string, x: json>"),
    ({**struct(a=TEXT), "dependentSchemas": {"a": struct(b=TEXT)}}, {"a": "x", "b": "y"},
     "struct<a: string, b: string>"),
    ({**struct(a=TEXT), "dependencies": {"a": struct(b=TEXT), "b": ["a"]}}, {"a": "x", "b": "y"},
     "struct<a: string, b: string>"),
    ({"oneOf": [struct(a=TEXT)], "anyOf": [struct(b=TEXT)]}, {"a": "x", "b": "y"}, "struct<a: string, b: string>"),
    ({"oneOf": [struct(a=TEXT), struct(b={"type": "integer"})]}, {"a": "x", "b": "y"}, "json"),
    (struct(r={"type": ["array", "boolean", "object"], "properties": {"a": TEXT}}), {"r": [1]}, "struct<r: json>"),
    (struct(r={"allOf": [{"type": ["array", "boolean"]}, {"properties": {"o": TEXT}}]}), {"r": True},
     "struct<r: json>"),
    ({**struct(r={"$ref": "#/$defs/x"}), "$defs": {"x": {"oneOf": [TEXT, {"type": "array"}], "properties": {"z": {}}}}},
     {"r": "t"}, "struct<r: json>"),
    (struct(a={**TEXT, "anyOf": [{"format": "date"}, {"maxLength": 3}]}), {"a": "abc"}, "struct<a: string>"),
    (struct(a={"type": "array", "items": TEXT, "anyOf": [{"items": {"minLength": 1}}, {"maxItems": 0}]}), {"a": ["x"]},
     "struct<a: list<string>>"),
    (struct(a={"prefixItems": [TEXT], "items": {"type": "integer"}}), {"a": ["x", 1]}, "struct<a: list<json>>"),
    ({"$id": "https://x.y/a/root.json", **struct(r={"$ref": "part.json#/$defs/t"}), "$defs": {
        "p": {"$id": "part.json", "$defs": {"t": struct(a=TEXT)}}}}, {"r": {"a": "x"}},
     "struct<r: struct<a: string>>"),
])
def test_every_declared_field_has_a_column(schema, document, columns):
    jsonschema.Draft202012Validator(schema).validate(document)
    row, errors = decoded(schema, document)
    assert errors == [] and str(schema_type(json.dumps(schema))) == columns
    assert holds(json.loads(row) if isinstance(row, str) else row, document)


def test_what_stands_beside_a_reference_counts_since_draft_2019():
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"base": struct(a=TEXT)},
              "$ref": "#/definitions/base", "properties": {"b": TEXT}}
    assert str(schema_type(json.dumps(schema))) == "struct<a: string>"


@pytest.mark.parametrize("schema", [
    {"$ref": "#/$defs/none"}, {"allOf": [struct(a=TEXT), {"$ref": "other.json"}]}, struct(a={"$ref": "#none"}),
    {"type": "array", "items": {"$ref": "#/$defs/none"}}, {"if": True, "then": {"$ref": "x"}},
])
def test_a_reference_without_a_target_is_an_error(schema):
    with pytest.raises(JsonSchemaError, match=r"no schema for \$ref '.*': add it to the schema or its references"):
        schema_type(json.dumps(schema))


def test_properties_without_a_type_mean_an_object():
    schema = {"properties": {"r": {"properties": {"a": TEXT}}}}
    assert decoded(schema, {"r": True}) == (None, [("r", "expected struct, found a boolean")])
    assert decoded(schema, {"r": {"a": "x"}}) == ({"r": {"a": "x"}}, [])
    assert decoded(schema, {"r": True}, untyped="json") == ({"r": "true"}, [])
    assert decoded(struct(r=struct(a=TEXT)), {"r": {"a": "x"}}, untyped="json") == ({"r": {"a": "x"}}, [])
    with pytest.raises(ValueError, match="invalid untyped 'x': expected object or json"):
        Json(SchemaRegistry(Client()), untyped="x")
    with pytest.raises(ValueError, match="untyped= needs a registry"):
        Json("int64", untyped="json")


def test_fields_without_a_column_are_logged_once(caplog):
    schema = struct(a=TEXT, o={**struct(b=TEXT), "patternProperties": {"^x-": TEXT}})
    server = Client(versions={("s", "latest"): Schema(json.dumps({**schema, "additionalProperties": TEXT}), "JSON")})
    decoder = Json(SchemaRegistry(server), subject="s", framing="none")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            decoder.decode([b"{}"])
    assert [record.message for record in caplog.records] == [
        "the schema of subject s declares fields by pattern, which have no column; they are skipped: *, o.*"]


# ---- declarations in random places of a schema. A field has the same type wherever it is declared.

LEAVES = {"a": TEXT, "b": {"type": "integer"}, "c": {"type": "array", "items": TEXT}}
VALUES = {"a": "x", "b": 7, "c": ["y"]}


def schemas(depth):
    below = schemas(depth - 1) if depth else st.nothing()
    fields = {name: st.just(leaf) for name, leaf in LEAVES.items()}
    if depth:
        fields |= {"o": below, "l": below.map(lambda inner: {"type": "array", "items": inner})}
    properties = st.fixed_dictionaries({}, optional=fields)
    parts = st.lists(below, min_size=1, max_size=2)
    more = {"allOf": parts, "anyOf": parts, "if": below, "then": below, "else": below,
            "dependentSchemas": st.fixed_dictionaries({"a": below})} if depth else {}
    return st.builds(lambda own, extra: {"type": "object", "properties": own, **extra}, properties,
                     st.fixed_dictionaries({}, optional=more))


def declared(schema):
    """Return a document with each field that a schema declares anywhere."""
    found = {}
    places = [schema, *schema.get("allOf", []), *schema.get("anyOf", []), *schema.get("dependentSchemas", {}).values(),
              *(schema[name] for name in ("if", "then", "else")
                if name in schema and "if" in schema and ("then" in schema or "else" in schema))]
    for place in places[1:]:
        found = merged(found, declared(place))
    for name, below in schema["properties"].items():
        if name in VALUES:
            value = VALUES[name]
        else:
            value = declared(below) if name == "o" else [declared(below["items"])]
        found = merged(found, {name: value})
    return found


def merged(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{name: merged(one[name], value) if name in one else value for name, value in other.items()}}
    if isinstance(one, list) and isinstance(other, list) and isinstance(one[0], dict):
        return [merged(one[0], other[0])]
    return other


@settings(deadline=None, max_examples=60)
@given(schemas(2))
def test_declarations_in_any_part_become_columns(schema):
    document = declared(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    row, errors = decoded(schema, document)
    assert errors == [] and holds(json.loads(row) if isinstance(row, str) else row, document)
