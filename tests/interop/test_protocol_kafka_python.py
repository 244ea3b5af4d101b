"""Every codec against kafka-python's: what one writes the other reads, byte for byte and value for value."""

from __future__ import annotations

import io
import uuid
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protocol_schemas import Field, complete, fields_of, is_flexible, struct_values, valid_versions

from tests.core import protocol as codecs

kafka_protocol = pytest.importorskip("kafka.protocol.api_message", reason="kafka-python is not installed")
from kafka.protocol.api_data import ApiData  # noqa: E402
from kafka.protocol.api_header import ApiHeader  # noqa: E402
from kafka.protocol.schemas import load_json  # noqa: E402

ApiMessage = kafka_protocol.ApiMessage
EXAMPLES = settings(max_examples=15, derandomize=True, deadline=None, database=None,
                    suppress_health_check=list(HealthCheck))


def kafka_python_class(name: str):
    """A class over kafka-python's plain schema: its own classes rename and reinterpret a few fields."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its way to read its own resources
        try:
            schema = load_json(name)
        except FileNotFoundError:
            return None
        base = {"header": ApiHeader, "data": ApiData}.get(schema["type"], ApiMessage)
        return type(base)(name, (base,), {})


# Versions and fields of Kafka 4.4 that kafka-python does not know.
NEWER = {"ApiVersionsRequest": {"cluster_id": None, "node_id": -1}, "ApiVersionsResponse": {}}
CLASSES = {name: cls for name in codecs.messages() if (cls := kafka_python_class(name)) is not None}
CASES = [(name, version) for name in CLASSES for version in valid_versions(CLASSES[name]._json)]


def to_kafka_python(field_list: list[Field], version: int, values: dict, make):
    """A DataContainer of kafka-python. Defaults of tagged fields stay unset: it would write them."""
    arguments = {}
    for field in field_list:
        value = values.get(field.name)
        if not field.present(version) or (field.tagged(version) and value == field.default()):
            continue
        arguments[field.name] = convert(field, version, value, make)
    return make(version=version, **arguments)


def convert(field: Field, version: int, value, make):
    if value is None:
        return None
    if field.fields is not None:
        inner = getattr(make, field.type)
        if field.is_array:
            return [to_kafka_python(field.fields, version, v, inner) for v in value]
        return to_kafka_python(field.fields, version, value, inner)
    one = {"string": bytes.decode, "uuid": lambda v: uuid.UUID(bytes=v)}.get(field.type, lambda v: v)
    return [one(v) for v in value] if field.is_array else one(value)


def from_kafka_python(field_list: list[Field], version: int, message) -> dict:
    values = {}
    for field in field_list:
        value = getattr(message, field.name)
        if not field.present(version):
            continue
        if value is None and field.tagged(version):
            values[field.name] = field.default()
        elif value is None and field.type == "uuid":
            values[field.name] = bytes(16)
        elif value is None:
            values[field.name] = None
        elif field.fields is not None:
            values[field.name] = ([from_kafka_python(field.fields, version, v) for v in value] if field.is_array
                                  else from_kafka_python(field.fields, version, value))
        else:
            one = {"string": str.encode, "uuid": lambda v: v.bytes, "bytes": bytes,
                   "records": bytes}.get(field.type, lambda v: v)
            values[field.name] = [one(v) for v in value] if field.is_array else one(value)
    return values


def kafka_python_encode(name: str, version: int, values: dict) -> bytes:
    cls = CLASSES[name]
    message = to_kafka_python(fields_of(cls._json), version, values, cls)
    if issubclass(cls, ApiHeader):
        return message.encode(flexible=is_flexible(cls._json, version))
    if issubclass(cls, ApiData):
        return message.encode(version=version, header=False)
    return message.encode(version=version)


def kafka_python_decode(name: str, version: int, data: bytes):
    cls = CLASSES[name]
    if issubclass(cls, ApiHeader):
        return cls.decode(io.BytesIO(data), flexible=is_flexible(cls._json, version))
    if issubclass(cls, ApiData):
        return cls.decode(data, version=version, header=False)
    return cls.decode(data, version=version)


def test_most_messages_are_known_to_kafka_python():
    missing = sorted(set(codecs.messages()) - set(CLASSES))
    assert missing == ["ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse", "ConsumerGroupHeartbeatRequest",
                       "ConsumerGroupHeartbeatResponse", "GetTelemetrySubscriptionsRequest",
                       "GetTelemetrySubscriptionsResponse", "PushTelemetryRequest", "PushTelemetryResponse"]


@pytest.mark.parametrize(("name", "low", "high"), [(n, *v) for n, v in codecs.messages().items() if n in CLASSES])
def test_versions_are_the_schemas(name, low, high):
    assert valid_versions(CLASSES[name]._json) == range(low, high + (name not in NEWER))


@pytest.mark.parametrize(("name", "version"), CASES)
def test_each_library_reads_the_bytes_of_the_other(name, version):
    fields = fields_of(CLASSES[name]._json)

    @EXAMPLES
    @given(struct_values(fields, version))
    def check(values):
        ours = codecs.encode(name, version, values)
        assert ours == kafka_python_encode(name, version, values)
        read_by_them = from_kafka_python(fields, version, kafka_python_decode(name, version, ours))
        assert complete(fields, version, read_by_them) == complete(fields, version, values)
        assert codecs.decode(name, version, ours) == ({**complete(fields, version, values), **NEWER.get(name, {})}, 0)

    check()


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize(("name", "version"), [(n, v) for n, v in CASES if is_flexible(CLASSES[n]._json, v)])
def test_unknown_tagged_fields_at_the_end_are_passed_over_by_both(name, version):
    fields = fields_of(CLASSES[name]._json)
    tags = st.lists(st.tuples(st.integers(50, 2**31 - 1), st.binary(max_size=200)), min_size=1, max_size=3,
                    unique_by=lambda t: t[0])

    @EXAMPLES
    @given(struct_values([f for f in fields if not f.tagged(version)], version), tags)
    def check(values, unknown):
        plain = codecs.encode(name, version, values)
        assert plain[-1] == 0, "the last byte is the count of tagged fields"
        section = uvarint(len(unknown)) + b"".join(uvarint(t) + uvarint(len(b)) + b for t, b in sorted(unknown))
        data = plain[:-1] + section
        assert codecs.decode(name, version, data) == ({**complete(fields, version, values), **NEWER.get(name, {})}, 0)
        theirs = kafka_python_decode(name, version, data)
        assert from_kafka_python(fields, version, theirs) == from_kafka_python(
            fields, version, kafka_python_decode(name, version, plain))
        assert codecs.transcode(name, version, data) == plain

    check()
