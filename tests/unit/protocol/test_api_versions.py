"""The version table of a connection."""

from __future__ import annotations

import struct

import pytest

from tests.core import protocol as codecs

READY, ASK_V0, REFUSED = range(3)
FETCH, METADATA = 1, 3


def response(version: int, *apis: tuple[int, int, int], error_code: int = 0) -> bytes:
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in apis]
    return codecs.encode("ApiVersionsResponse", version, {"error_code": error_code, "api_keys": keys})


def table(*apis: tuple[int, int, int]) -> codecs.VersionTable:
    filled = codecs.VersionTable()
    assert filled.accept(response(3, *apis), 3) == (READY, 0, "")
    return filled


@pytest.mark.parametrize(("low", "high", "picked"), [
    (4, 18, 12), (4, 11, 11), (12, 12, 12), (0, 4, 4), (13, 18, -1), (0, 3, -1),
])
def test_the_highest_common_version(low, high, picked):
    assert table((FETCH, 4, 12)).pick(FETCH, low, high) == picked


def test_an_api_the_broker_does_not_offer():
    versions = table((FETCH, 4, 12))
    assert versions.pick(METADATA, 0, 13) == -1
    assert versions.range(METADATA) == (-1, -1)


def test_nothing_is_known_before_the_answer():
    versions = codecs.VersionTable()
    assert not versions.known()
    assert versions.pick(FETCH, 0, 18) == -1


def test_clear_forgets():
    versions = table((FETCH, 4, 12))
    assert versions.known()
    versions.clear()
    assert not versions.known()
    assert versions.pick(FETCH, 4, 12) == -1


def test_a_second_answer_replaces_the_first():
    versions = table((FETCH, 4, 12), (METADATA, 0, 9))
    assert versions.accept(response(0, (FETCH, 0, 5)), 0)[0] == READY
    assert versions.range(FETCH) == (0, 5)
    assert versions.pick(METADATA, 0, 9) == -1


def test_unsupported_names_the_api_both_ranges_and_the_broker():
    code, detail = table((FETCH, 0, 3)).unsupported(FETCH, 4, 18, b"kafka1:9092/1")
    assert code == -165
    assert detail == "broker kafka1:9092/1 supports Fetch (API 1) v0 to v3, but v4 to v18 is needed"
    _, detail = table().unsupported(FETCH, 12, 12, b"kafka1:9092/1")
    assert detail == "broker kafka1:9092/1 does not offer Fetch (API 1), but v12 is needed"


def test_an_old_broker_is_asked_again_and_its_body_not_read():
    versions = codecs.VersionTable()
    garbage = struct.pack(">h", 35) + b"\xff" * 20
    assert versions.accept(garbage, 3) == (ASK_V0, 0, "")
    assert not versions.known()
    assert versions.accept(response(0, (FETCH, 0, 11)), 0)[0] == READY
    assert versions.pick(FETCH, 4, 18) == 11


def test_the_same_answer_to_v0_is_final():
    outcome, code, detail = codecs.VersionTable().accept(struct.pack(">h", 35), 0)
    assert (outcome, code) == (REFUSED, 35)
    assert "ApiVersions v0" in detail


def test_another_error_is_final():
    outcome, code, _ = codecs.VersionTable().accept(response(3, error_code=58), 3)
    assert (outcome, code) == (REFUSED, 58)


def test_a_body_that_does_not_parse():
    outcome, code, detail = codecs.VersionTable().accept(response(3, (FETCH, 0, 3))[:-3], 3)
    assert (outcome, code) == (REFUSED, -199)
    assert detail.startswith("ApiVersionsResponse v3: field ")
    outcome, code, detail = codecs.VersionTable().accept(b"\0", 3)
    assert (outcome, code) == (REFUSED, -199)
    assert "field error_code" in detail


def test_invalid_ranges_and_unknown_numbers_are_not_offered():
    versions = table((FETCH, 5, 4), (METADATA, -3, 2), (-7, 0, 1), (127, 0, 2), (128, 0, 2), (32767, 0, 2))
    assert [versions.range(key) for key in (FETCH, METADATA, -7, 128, 32767)] == [(-1, -1)] * 5
    assert versions.range(127) == (0, 2)


def test_api_names():
    assert codecs.api_name(FETCH) == "Fetch"
    assert codecs.api_name(68) == "ConsumerGroupHeartbeat"
    assert codecs.api_name(999) == "unknown API"
