"""Frames: size, request header, response header."""

from __future__ import annotations

import struct

import pytest

from tests.core import protocol as codecs


def test_a_request_with_a_plain_header():
    body = codecs.encode("MetadataRequest", 8, {"topics": None})
    header = struct.pack(">hhi", 3, 8, 77) + struct.pack(">h", 2) + b"me"
    frame = codecs.metadata_frame(8, 1, 77, b"me")
    assert frame == struct.pack(">i", len(header + body)) + header + body


def test_a_request_with_a_flexible_header_keeps_the_plain_client_id():
    body = codecs.encode("MetadataRequest", 12, {"topics": None})
    header = struct.pack(">hhi", 3, 12, -1) + struct.pack(">h", 2) + b"me" + b"\0"
    frame = codecs.metadata_frame(12, 2, -1, b"me")
    assert frame == struct.pack(">i", len(header + body)) + header + body


def test_an_empty_client_id_is_not_null():
    assert codecs.metadata_frame(8, 1, 0, b"")[12:14] == b"\0\0"


def test_a_client_id_too_long_for_the_wire():
    with pytest.raises(ValueError, match="too long"):
        codecs.metadata_frame(8, 1, 0, b"x" * 32768)


def test_response_headers():
    assert codecs.response_header(struct.pack(">i", 5) + b"body", 0) == (5, 4)
    assert codecs.response_header(struct.pack(">i", 5) + b"\0body", 1) == (5, 4)
    assert codecs.response_header(struct.pack(">i", 5) + b"\x01\x63\x02hibody", 1) == (5, 4)


def test_a_response_header_that_is_cut():
    with pytest.raises(codecs.WireFormatError, match="ResponseHeader v0: field correlation_id: needs 4 bytes, 3 left"):
        codecs.response_header(b"\0\0\0", 0)
