"""Every codec against the Java client's own, values through Kafka's JSON converters, unknown tagged fields included."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from java_peer import JavaPeer, fetch_jars
from protocol_schemas import Field, complete, fields_of, is_flexible, struct_values, valid_versions

from tests.core import protocol as codecs

EXAMPLES = settings(max_examples=10, derandomize=True, deadline=None, database=None,
                    suppress_health_check=list(HealthCheck))

pytestmark = pytest.mark.kafka  # like all that needs Java: not in `make quicktest`, and missing it fails `make test`


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    return fetch_jars()


@pytest.fixture(scope="module")
def schemas(jars) -> dict[str, dict]:
    with zipfile.ZipFile(jars[0]) as archive:
        return {name: parse_schema(archive.read(f"common/message/{name}.json").decode()) for name in codecs.messages()}


def parse_schema(text: str) -> dict:
    return json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))


class Peer(JavaPeer):
    """ProtocolPeer.java in a separate process."""

    def __init__(self, jars: list[Path]) -> None:
        super().__init__("ProtocolPeer.java", jars, "-XX:TieredStopAtLevel=1")

    def ask(self, operation: str, name: str, version: int, payload: str) -> str:
        verdict, answer = self.try_to(operation, name, version, payload)
        assert verdict == "ok", f"{operation} {name} v{version}: {answer}"
        return answer

    def try_to(self, operation: str, name: str, version: int, payload: str) -> tuple[str, str]:
        verdict, _, answer = self.line(f"{operation}\t{name}\t{version}\t{payload}").partition("\t")
        return verdict, answer


@pytest.fixture(scope="module")
def peer(jars):
    peer = Peer(jars)
    yield peer
    peer.close()


def to_json(fields: list[Field], version: int, values: dict) -> dict:
    """As Kafka's converters have it: camelCase, bytes in base64, a uuid in Kafka's own base64."""
    return {f.kafka_name[0].lower() + f.kafka_name[1:]: value_to_json(f, version, values[f.name])
            for f in fields if f.name in values}


def value_to_json(field: Field, version: int, value):
    if value is None:
        return None
    if field.fields is not None:
        if field.is_array:
            return [to_json(field.fields, version, v) for v in value]
        return to_json(field.fields, version, value)
    one = {
        "string": bytes.decode,
        "uuid": lambda v: base64.urlsafe_b64encode(v).decode().rstrip("="),
        "bytes": lambda v: base64.b64encode(v).decode(),
        "records": lambda v: base64.b64encode(v).decode(),
    }.get(field.type, lambda v: v)
    return [one(v) for v in value] if field.is_array else one(value)


def without_what_java_leaves_out(fields: list[Field], version: int, values: dict) -> dict:
    """Its converter prints no tagged field at its default, and of records only that they are there."""
    kept = {}
    for field in fields:
        value = values.get(field.name)
        if field.name not in values or (field.tagged(version) and value == field.default()):
            continue
        if field.type == "records" and value is not None:
            value = b""
        elif field.fields is not None and value is not None:
            inner = field.fields
            value = ([without_what_java_leaves_out(inner, version, v) for v in value] if field.is_array
                     else without_what_java_leaves_out(inner, version, value))
        kept[field.name] = value
    return kept


CASES = [(name, version) for name, (low, high) in codecs.messages().items() for version in range(low, high + 1)]


def test_versions_are_the_schemas(schemas):
    assert {name: (valid_versions(schema)[0], valid_versions(schema)[-1]) for name, schema in schemas.items()} == (
        codecs.messages())


@pytest.mark.parametrize(("name", "version"), [case for case in CASES if case[0].endswith("Request")])
def test_header_versions(name, version, schemas, peer):
    request, response = map(int, peer.ask("headers", name, version, str(schemas[name]["apiKey"])).split())
    assert codecs.header_versions(name, version) == (request, response)
    assert codecs.header_versions(name.replace("Request", "Response"), version) == (response, -1)


@pytest.mark.parametrize(("name", "version"), CASES)
def test_java_reads_and_writes_the_same_values(name, version, schemas, peer):
    fields = fields_of(schemas[name])

    @EXAMPLES
    @given(struct_values(fields, version))
    def check(values):
        ours = codecs.encode(name, version, values)
        theirs = peer.ask("bytes", name, version, json.dumps(to_json(fields, version, values)))
        assert ours.hex() == theirs
        read_by_them = json.loads(peer.ask("json", name, version, ours.hex()))
        assert read_by_them == to_json(fields, version, without_what_java_leaves_out(fields, version, values))
        assert peer.ask("again", name, version, ours.hex()) == ours.hex()
        assert codecs.decode(name, version, bytes.fromhex(theirs)) == (complete(fields, version, values), 0)

    check()


@pytest.mark.parametrize(("name", "version"), CASES)
def test_unknown_tagged_fields_from_java_are_passed_over(name, version, schemas, peer):
    if not is_flexible(schemas[name], version):
        with pytest.raises(AssertionError, match="does not support them"):
            peer.ask("tags", name, version, codecs.encode(name, version, {}).hex())
        return
    fields = fields_of(schemas[name])

    @EXAMPLES
    @given(struct_values(fields, version))
    def check(values):
        plain = codecs.encode(name, version, values)
        tagged = bytes.fromhex(peer.ask("tags", name, version, plain.hex()))
        assert len(tagged) > len(plain)
        assert codecs.decode(name, version, tagged) == (complete(fields, version, values), 0)
        assert codecs.transcode(name, version, tagged) == plain

    check()


@pytest.mark.parametrize(("name", "version"), CASES)
def test_java_and_can_encode_refuse_the_same_values(name, version, schemas, peer):
    """Values of the newest version, asked for in this one."""
    fields = fields_of(schemas[name])
    newest = codecs.messages()[name][1]

    @EXAMPLES
    @given(struct_values(fields, newest))
    def check(values):
        values = complete(fields, newest, values)
        verdict, answer = peer.try_to("older", name, version, json.dumps(to_json(fields, newest, values)))
        refused = codecs.refused_field(name, version, values)
        assert (verdict == "error") == (refused is not None), (refused, answer)
        if refused is None:
            assert codecs.encode(name, version, values).hex() == answer

    check()
