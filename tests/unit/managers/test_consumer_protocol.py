"""The bytes that members of a classic group exchange: what is written, and what is read of others, hostile ones too."""

from __future__ import annotations

import struct

import pytest

from tests.core import inside as core
from tests.core import protocol as codecs

MEMBER = {"member_id": "x", "topics": ["b", "a"], "owned": {"b": [2, 1], "a": [0]}, "generation": 7, "rack": "r1",
          "user_data": b"data"}
READ = {"topics": ["a", "b"], "owned": [("a", [0]), ("b", [1, 2])], "generation": 7, "rack": "r1", "user_data": b"data"}


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def test_subscription_is_version_3_and_sorted():
    assert core.encode_subscription(MEMBER) == b"".join([
        struct.pack(">hi", 3, 2), string("a"), string("b"), struct.pack(">i", 4), b"data",
        struct.pack(">i", 2), string("a"), struct.pack(">ii", 1, 0), string("b"), struct.pack(">iii", 2, 1, 2),
        struct.pack(">i", 7), string("r1")])
    assert core.decode_subscription("x", core.encode_subscription(MEMBER)) == READ


def test_subscription_without_owned_partitions():
    data = core.encode_subscription({"member_id": "x", "topics": []})
    assert data == struct.pack(">hiiiih", 3, 0, -1, 0, -1, -1)
    assert core.decode_subscription("x", data) == {
        "topics": [], "owned": [], "generation": -1, "rack": "", "user_data": None}


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 32767])
def test_subscriptions_of_every_version(version):
    values = {"topics": [b"a"], "user_data": b"u", "owned_partitions": [{"topic": b"a", "partitions": [3]}],
              "generation_id": 5, "rack_id": b"r"}
    known = min(version, 3)
    body = codecs.encode("ConsumerProtocolSubscription", known, dict(list(values.items())[:known + 2]))
    newer = b"a field of a later version" if version > 3 else b""
    read = core.decode_subscription("x", struct.pack(">h", version) + body + newer)
    assert read == {"topics": ["a"], "user_data": b"u", "owned": [("a", [3])] if version >= 1 else [],
                    "generation": 5 if version >= 2 else -1, "rack": "r" if version >= 3 else ""}


def test_a_subscription_that_cannot_be_read_names_its_member():
    whole = core.encode_subscription(MEMBER)
    named = "the subscription of group member consumer-1: ConsumerProtocolSubscription"
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=named):
            core.decode_subscription("consumer-1", whole[:length])
    with pytest.raises(ValueError, match="member consumer-1: ConsumerProtocolSubscription: unsupported version -1"):
        core.decode_subscription("consumer-1", b"\xff\xff" + whole[2:])
    with pytest.raises(ValueError, match="exceeds the 0 bytes left"):
        core.decode_subscription("consumer-1", struct.pack(">hi", 3, 2**31 - 1))


def test_values_too_long_for_the_wire_are_not_written():
    long = "x" * 32768
    for change in ({"topics": [long]}, {"rack": long}, {"owned": {long: [0]}}):
        with pytest.raises(ValueError, match="too long"):
            core.encode_subscription(MEMBER | change)
    with pytest.raises(ValueError, match="too long"):
        core.encode_assignment({long: [0]})
    assert core.user_data("sticky", {long: [0]}, 1) is None


def test_assignment():
    data = core.encode_assignment([("b", [1]), ("a", [2, 0]), ("b", [0, 1]), ("c", [])], b"leader's")
    assert data == b"".join([struct.pack(">hi", 3, 2), string("a"), struct.pack(">iii", 2, 0, 2),
                             string("b"), struct.pack(">iii", 2, 0, 1), struct.pack(">i", 8), b"leader's"])
    assert core.decode_assignment(data) == ([("a", [0, 2]), ("b", [0, 1])], b"leader's")


@pytest.mark.parametrize("version", [0, 1, 3, 9])
def test_assignments_of_every_version(version):
    body = core.encode_assignment({"a": [1]})[2:]
    assert core.decode_assignment(struct.pack(">h", version) + body + b"more") == ([("a", [1])], None)


def test_empty_bytes_are_an_empty_assignment():
    assert core.decode_assignment(b"") == ([], None)


def test_an_assignment_with_a_nul_in_a_topics_name_is_refused():
    with pytest.raises(ValueError, match="a topic's name contains a NUL character"):
        core.decode_assignment(core.encode_assignment([("a", [0]), ("b\0", [1])], None))


def test_an_assignment_that_cannot_be_read():
    whole = core.encode_assignment({"a": [1]}, b"u")
    for length in range(1, len(whole)):
        with pytest.raises(ValueError, match="ConsumerProtocolAssignment"):
            core.decode_assignment(whole[:length])
    with pytest.raises(ValueError, match="unsupported version -2"):
        core.decode_assignment(struct.pack(">h", -2) + whole[2:])


def test_user_data_of_assignors_that_need_none():
    assert core.user_data("range", {"a": [0]}, 3) is core.user_data("roundrobin", {"a": [0]}, 3) is None


def test_user_data_of_sticky():
    assert core.user_data("sticky") is None
    data = core.user_data("sticky", {"b": [1], "a": [2, 0]}, 9)
    assert data == b"".join([struct.pack(">i", 2), string("a"), struct.pack(">iii", 2, 0, 2),
                             string("b"), struct.pack(">iii", 1, 1, 9)])
    assert core.read_sticky_user_data(data) == ([("a", [0, 2]), ("b", [1])], 9)
    assert core.read_sticky_user_data(data[:-4]) == ([("a", [0, 2]), ("b", [1])], -1)  # version 0


def test_user_data_of_sticky_that_cannot_be_read_is_nothing_remembered():
    data = core.user_data("sticky", {"a": [2, 0]}, 9)
    for length in range(len(data) - 4):
        assert core.read_sticky_user_data(data[:length]) == ([], -1)
    for bad in (struct.pack(">i", -1), struct.pack(">i", 2**31 - 1), b"\xff" * 40):
        assert core.read_sticky_user_data(bad) == ([], -1)
    assert core.read_sticky_user_data(struct.pack(">ii", 0, -5)) == ([], -1)


def test_user_data_of_cooperative_sticky():
    assert core.user_data("cooperative-sticky") == struct.pack(">i", -1)
    assert core.user_data("cooperative-sticky", {"a": [0]}, 12) == struct.pack(">i", 12)
    assert core.read_cooperative_user_data(struct.pack(">i", 12)) == 12
    assert core.read_cooperative_user_data(core.user_data("sticky", {"a": [0]}, 4)) == 4  # librdkafka's
    for bad in (b"", b"\x00", struct.pack(">i", -7), b"\xff" * 11):
        assert core.read_cooperative_user_data(bad) == -1
