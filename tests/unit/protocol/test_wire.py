"""The reader against bytes that lie: every error names the message and the field, and nothing reads on after it."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest

from tests.core import protocol as codecs

BAD_MSG = -199
ALL = [(name, version) for name, (low, high) in codecs.messages().items() for version in range(low, high + 1)]


def error_of(name: str, version: int, data: bytes) -> codecs.WireFormatError:
    with pytest.raises(codecs.WireFormatError) as raised:
        codecs.decode(name, version, data)
    assert raised.value.code == BAD_MSG
    assert str(raised.value).startswith(f"{name} v{version}: field {raised.value.field}: ")
    return raised.value


@pytest.mark.parametrize(("name", "version"), ALL)
def test_cut_at_every_byte(name, version):
    whole = codecs.sample(name, version)
    assert codecs.decode(name, version, whole)[1] == 0
    for length in range(len(whole)):
        error = error_of(name, version, whole[:length])
        assert error.field


@pytest.mark.parametrize(("name", "version"), ALL)
def test_every_byte_replaced_decodes_or_fails_cleanly(name, version):
    whole = codecs.sample(name, version)
    for at in range(len(whole)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            data = whole[:at] + bytes([byte]) + whole[at + 1:]
            try:
                again = codecs.transcode(name, version, data)
            except codecs.WireFormatError as error:
                assert str(error).startswith(f"{name} v{version}: field {error.field}: ")
            else:
                assert codecs.decode(name, version, again)[1] == 0


def test_an_array_longer_than_the_bytes_left():
    head = struct.pack(">ihi", 0, 0, 0)
    error = error_of("FetchResponse", 11, head + struct.pack(">i", 2_000_000) + bytes(31))
    assert str(error) == "FetchResponse v11: field responses: length 2000000 exceeds the 31 bytes left (at byte 14)"


def test_an_array_whose_elements_cannot_fit():
    # Five topics take at least six bytes each.
    error = error_of("FetchResponse", 11, struct.pack(">ihii", 0, 0, 0, 5) + bytes(29))
    assert "field responses: length 5 is too large for the 29 bytes left" in str(error)


def test_a_compact_array_longer_than_the_bytes_left():
    # varint 0x7fffffff, stored plus one
    error = error_of("FetchResponse", 12, struct.pack(">ihi", 0, 0, 0) + b"\xff\xff\xff\xff\x0f" + bytes(3))
    assert error.field == "responses"
    assert "length 4294967294 exceeds the 3 bytes left" in str(error)


@pytest.mark.parametrize("length", [-2, -(2**31)])
def test_a_negative_array_length(length):
    error = error_of("FetchResponse", 11, struct.pack(">ihii", 0, 0, 0, length) + bytes(31))
    assert (error.field, f"negative length {length} " in str(error)) == ("responses", True)


def test_null_where_none_is_allowed():
    error = error_of("FetchResponse", 11, struct.pack(">ihii", 0, 0, 0, -1))
    assert "field responses: null, which this version does not allow" in str(error)
    error = error_of("FetchResponse", 12, struct.pack(">ihi", 0, 0, 0) + b"\0" + b"\0")
    assert "field responses: null, which this version does not allow" in str(error)


def test_null_topics_are_allowed_from_metadata_v1():
    assert "null" in str(error_of("MetadataRequest", 0, struct.pack(">i", -1)))
    assert codecs.decode("MetadataRequest", 1, struct.pack(">i", -1))[0]["topics"] is None


@pytest.mark.parametrize("length", [-2, -32768])
def test_a_negative_string_length(length):
    error = error_of("SaslHandshakeRequest", 1, struct.pack(">h", length) + b"PLAIN")
    assert (error.field, f"negative length {length} " in str(error)) == ("mechanism", True)


def test_a_compact_string_longer_than_any_string():
    body = struct.pack(">hi", 0, 0) + b"\x81\x80\x04" + bytes(70000)  # length 65536
    error = error_of("HeartbeatRequest", 4, body[6:])
    assert "field group_id: length 65536 exceeds the limit of 32767 bytes for a string" in str(error)


def test_negative_and_oversized_bytes():
    assert "negative length -7 " in str(error_of("SaslAuthenticateRequest", 0, struct.pack(">i", -7)))
    error = error_of("SaslAuthenticateRequest", 0, struct.pack(">i", 2**31 - 1) + b"abc")
    assert "field auth_bytes: length 2147483647 exceeds the 3 bytes left" in str(error)


@pytest.mark.parametrize("varint", [b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x10"])
def test_an_overlong_varint(varint):
    error = error_of("SaslAuthenticateRequest", 2, varint + bytes(10))
    assert "field auth_bytes: varint longer than 32 bits" in str(error)


def test_a_padded_varint_is_read():
    assert codecs.decode("SaslAuthenticateRequest", 2, b"\x83\x00ab\x00") == ({"auth_bytes": b"ab"}, 0)


def test_records_longer_than_the_frame():
    values = {"responses": [{"topic": b"t", "partitions": [{"records": b"0123456789"}]}]}
    whole = codecs.encode("FetchResponse", 11, values)
    lying = whole.replace(struct.pack(">i", 10) + b"0123456789", struct.pack(">i", 11) + b"0123456789")
    error = error_of("FetchResponse", 11, lying)
    assert "field PartitionData.records: length 11 exceeds the 10 bytes left" in str(error)


def tagged(*fields: tuple[int, int, bytes]) -> bytes:
    """A FetchResponse v16 without topics, with tagged fields (tag, size said, content)."""
    body = struct.pack(">ihi", 0, 0, 0) + b"\x01" + bytes([len(fields)])
    return body + b"".join(bytes([tag, size]) + content for tag, size, content in fields)


NODE = struct.pack(">i", 3) + b"\x02h" + struct.pack(">i", 9092) + b"\x00\x00"


def test_a_known_tagged_field_with_its_size():
    values, left = codecs.decode("FetchResponse", 16, tagged((0, len(NODE) + 1, b"\x02" + NODE)))
    assert values["node_endpoints"] == [{"node_id": 3, "host": b"h", "port": 9092, "rack": None}]
    assert left == 0


def test_a_tagged_field_cannot_reach_beyond_its_size():
    error = error_of("FetchResponse", 16, tagged((0, len(NODE), b"\x02" + NODE), (9, 1, b"x")))
    assert error.field.startswith("NodeEndpoint.")


def test_a_tagged_field_shorter_than_its_size():
    error = error_of("FetchResponse", 16, tagged((0, len(NODE) + 2, b"\x02" + NODE + b"x"), (9, 1, b"x")))
    assert "field tagged_fields: the length of tagged field 0 differs from its declared size" in str(error)


def test_a_tagged_field_longer_than_the_message():
    error = error_of("FetchResponse", 16, tagged((77, 100, b"short")))
    assert "field tagged_fields: length 100 exceeds the 5 bytes left" in str(error)


def test_unknown_tagged_fields_without_end():
    # A count of four thousand million, of which none follows.
    body = struct.pack(">ihi", 0, 0, 0) + b"\x01" + b"\xff\xff\xff\xff\x0f"
    assert error_of("FetchResponse", 16, body).field == "tagged_fields"


def test_bytes_after_a_message_are_left_to_the_caller():
    assert codecs.decode("HeartbeatResponse", 4, codecs.sample("HeartbeatResponse", 4) + b"more")[1] == 4


def test_an_array_grows_as_its_elements_arrive():
    topics = [{"name": b"topic-%d" % i, "partitions": []} for i in range(5000)]
    whole = codecs.encode("MetadataResponse", 12, {"topics": topics})
    assert [t["name"] for t in codecs.decode("MetadataResponse", 12, whole)[0]["topics"]] == [t["name"] for t in topics]
    names = [b"%d" % i for i in range(5000)]
    whole = codecs.encode("SaslHandshakeResponse", 1, {"mechanisms": names})
    assert codecs.decode("SaslHandshakeResponse", 1, whole)[0]["mechanisms"] == names


MEMORY_PROBE = """
import resource, sys
from tests.core import protocol as codecs
head = bytes(10) + bytes.fromhex("81bf9201")  # 2.4 million topics
body = head + b"\\x02t\\x01\\0" + bytes(3 * 10_000_000)  # the bytes are there, but the second topic is none
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    codecs.decode("FetchResponse", 12, body)
except codecs.WireFormatError as error:
    assert error.field == "FetchableTopicResponse.topic", error.field
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_not_taken_for_elements_that_never_come():
    # In a separate process: the test measures a peak.
    grown = int(subprocess.run([sys.executable, "-c", MEMORY_PROBE], check=True, capture_output=True).stdout)
    assert grown // (1024 if sys.platform == "darwin" else 1) < 10 * 1024  # KiB; 2.4 million structs are 173 MB


def test_elements_take_no_more_than_their_share_of_memory():
    # An empty topic has three bytes on the wire and 72 in memory.
    error = error_of("FetchResponse", 12, bytes(10) + b"\x81\xad\xe2\x04" + bytes(30_000_000))
    assert "field responses: 10000000 elements would take more than 6 times the memory of the message" in str(error)
    # So do strings: one byte and 32.
    error = error_of("ConsumerProtocolSubscription", 0, struct.pack(">i", 2_000_000) + bytes(4_000_000))
    assert "field topics: 2000000 elements would take more than 6 times" in str(error)


def test_a_small_message_has_no_limit_of_elements_per_byte():
    topics = [{"name": b"", "partitions": []}] * 40_000
    assert len(codecs.decode("OffsetFetchResponse", 6, codecs.encode("OffsetFetchResponse", 6, {"topics": topics}))[0][
        "topics"]) == 40_000


def test_more_brokers_than_a_cluster_has():
    most = codecs.encode("MetadataResponse", 12, {"brokers": [{"node_id": i} for i in range(10_000)]})
    assert len(codecs.decode("MetadataResponse", 12, most)[0]["brokers"]) == 10_000
    error = error_of("MetadataResponse", 12, codecs.encode(
        "MetadataResponse", 12, {"brokers": [{"node_id": i} for i in range(10_001)]}))
    assert "field brokers: 10001 elements, but at most 10000 are accepted" in str(error)


def test_too_long_for_the_wire_is_refused_when_writing():
    with pytest.raises(ValueError, match="too long"):
        codecs.encode("SaslHandshakeRequest", 1, {"mechanism": b"x" * 32768})
    assert len(codecs.encode("SaslHandshakeRequest", 1, {"mechanism": b"x" * 32767})) == 32769


@pytest.mark.parametrize(("values", "plain", "flexible"), [
    ({"unsigned_16": 0xFFFE, "unsigned_32": 0xFFFFFFFD, "number": -0.5, "integers": [1, -(2**63)]},
     struct.pack(">HIdiqq", 0xFFFE, 0xFFFFFFFD, -0.5, 2, 1, -(2**63)),
     struct.pack(">HId", 0xFFFE, 0xFFFFFFFD, -0.5) + b"\x03" + struct.pack(">qq", 1, -(2**63))),
    ({"unsigned_16": 0, "unsigned_32": 0, "number": 0.0, "integers": None},
     bytes(14) + struct.pack(">i", -1), bytes(15)),
    ({"unsigned_16": 0, "unsigned_32": 0, "number": 0.0, "integers": []}, bytes(18), bytes(14) + b"\x01"),
])
def test_types_that_no_message_has(values, plain, flexible):
    assert codecs.through_the_wire(values, False) == (plain, values)
    assert codecs.through_the_wire(values, True) == (flexible, values)
