"""Batches of a few kilobytes that inflate to hundreds of megabytes, or to a record of ten million headers.

On the code before, 3 kB of zstd took up to 322 MiB with a buffer of 1 MB, and ``headers()`` of 695 bytes made 700 MB.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from lying_broker import LyingBroker
from measured import Measured, measure
from record_encoders import CODECS, GZIP, LZ4, NONE, SNAPPY, ZSTD, batch, compress, varint

MIB = 1 << 20
LIMIT = 100_000_000        # where neither fetch.buffer.memory nor fetch.max.inflated.batch.bytes is more
CODEC = 9 * MIB            # SECURITY.md: zstd's window of up to 8 MiB, with the tables around it
BESIDES = 16 * MIB         # what any consumer takes for its first response
BAD_COMPRESSION, BAD_MSG = -198, -199
ROUTINE_WINDOW, LARGEST_WINDOW = 21, 27  # of zstd's levels 3 and 22

UNTIL_THE_END = """
consumer.assign([TopicPartition("flights", p, 0) for p in range(config_partitions)])
found.update(codes=[], said=[], lengths=[])
while len(found["codes"]) < config_partitions:
    message = consumer.poll(1)
    if message is not None:
        error = message.error()
        found["codes"].append(error.code() if error else 0)
        found["said"].append(error.str() if error else "")
        found["lengths"].append(len(message))
    del message
"""


def block(kind: int, size: int, content: bytes, last: bool = False) -> bytes:
    return struct.pack("<I", last | kind << 1 | size << 3)[:3] + content


def zstd_frame(head: bytes, zeros: int, tail: bytes, window_log: int) -> bytes:
    """A zstd frame at its best ratio: four bytes for each 128 KiB of zeros."""
    largest = 128 << 10
    out = [struct.pack("<IBB", 0xFD2FB528, 0, (window_log - 10) << 3), block(0, len(head), head)]
    out += [block(1, largest, b"\0")] * (zeros // largest)
    return b"".join([*out, block(1, zeros % largest, b"\0"), block(0, len(tail), tail, last=True)])


def of_zeros(codec: int, size: int, window_log: int = ROUTINE_WINDOW, base_offset: int = 0) -> bytes:
    """A batch of one record whose value is `size` zeros."""
    head = b"\0" + varint(0) + varint(0) + varint(-1) + varint(size)
    head = varint(len(head) + size + 1) + head
    payload = (zstd_frame(head, size, b"\0", window_log) if codec == ZSTD
               else compress(codec, head + bytes(size) + b"\0"))
    return batch(codec=codec, payload=payload, count=1, last_offset_delta=0, base_offset=base_offset)


def of_headers(count: int) -> bytes:
    """A batch of one record with `count` headers that have neither names nor values."""
    head = b"\0" + varint(0) + varint(0) + varint(-1) + varint(-1) + varint(count)
    head = varint(len(head) + 2 * count) + head
    return batch(codec=ZSTD, payload=zstd_frame(head, 2 * count, b"", ROUTINE_WINDOW), count=1, last_offset_delta=0)


def read(partitions: list[bytes], program: str = UNTIL_THE_END, **config: Any) -> Measured:
    """Each partition has one batch."""
    with LyingBroker({"flights": [[(0, 0, data)] for data in partitions]}) as broker:
        measured = measure(f"config_partitions = {len(partitions)}\n" + program, {
            "bootstrap.servers": broker.bootstrap_servers, "fetch.buffer.memory": MIB, "max.partition.fetch.bytes": 0,
            **{name.replace("_", "."): value for name, value in config.items()}})
    assert not broker.failures
    return measured


@pytest.mark.parametrize(("codec", "window_log"), [
    (GZIP, 0), (SNAPPY, 0), (LZ4, 0), (ZSTD, ROUTINE_WINDOW), (ZSTD, 23), (ZSTD, 25), (ZSTD, LARGEST_WINDOW),
])
def test_inflating_stays_within_the_documented_memory(codec, window_log):
    bomb = of_zeros(codec, 3 * LIMIT, window_log)
    if codec == ZSTD:
        assert len(bomb) < 10_000
    report = read([bomb])
    assert report.found["codes"] == [BAD_COMPRESSION]
    assert "flights [0] at offset 0: " in report.found["said"][0]
    assert f"{LIMIT} bytes (fetch.max.inflated.batch.bytes)" in report.found["said"][0]
    assert report.peak <= LIMIT + CODEC + BESIDES


@pytest.mark.parametrize("window_log", [ROUTINE_WINDOW, LARGEST_WINDOW])
def test_many_batches_take_no_more_than_two(window_log):
    """Eight come in one response, and each is just within what is allowed. The one that the application is at stays
    until its next call, while the next one is inflated."""
    size = LIMIT - 100 if window_log == ROUTINE_WINDOW else LIMIT // 2
    known = read([of_zeros(ZSTD, size, window_log)] * 8)
    assert known.found["codes"] == [0] * 8
    assert known.found["lengths"] == [size] * 8
    assert known.peak <= 2 * LIMIT + CODEC + BESIDES


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != NONE])
def test_a_batch_larger_than_the_buffer_is_read(codec):
    known = read([of_zeros(codec, LIMIT // 2)])
    assert (known.found["codes"], known.found["lengths"]) == ([0], [LIMIT // 2])


def test_only_the_filled_part_of_the_largest_window_counts():
    """A batch of a few megabytes at level 22 asks for 128 MiB and uses a few."""
    known = read([of_zeros(ZSTD, 2 * MIB, LARGEST_WINDOW)], fetch_max_inflated_batch_bytes=2 * MIB + 100)
    assert known.found["codes"] == [0]
    report = read([of_zeros(ZSTD, LIMIT - 100, LARGEST_WINDOW)])
    assert report.found["codes"] == [BAD_COMPRESSION]
    assert "and a window of up to" in report.found["said"][0]


@pytest.mark.parametrize(("most", "size", "code"), [
    (MIB, 2 * MIB, BAD_COMPRESSION), (3 * MIB, 2 * MIB, 0), (3 * LIMIT, 2 * LIMIT, 0),
])
def test_the_limit_is_a_property(most, size, code):
    assert read([of_zeros(ZSTD, size)], fetch_max_inflated_batch_bytes=most).found["codes"] == [code]


def test_a_record_of_ten_million_headers():
    bomb = of_headers(10_000_000)
    assert len(bomb) < 800
    report = read([bomb], UNTIL_THE_END.replace("del message", "message is None or message.headers()"))
    assert report.found["codes"] == [BAD_MSG]
    assert "flights [0] at offset 0: " in report.found["said"][0]
    assert "it has 10000000 headers, but fetch.max.record.headers allows 10000" in report.found["said"][0]
    assert report.peak <= 20_000_000 + BESIDES


@pytest.mark.parametrize(("most", "count", "code"), [(10_000, 10_000, 0), (10_000, 10_001, BAD_MSG), (3, 3, 0),
                                                     (3, 4, BAD_MSG), (2**31 - 1, 50_000, 0)])
def test_the_number_of_headers_is_a_property(most, count, code):
    known = read([of_headers(count)], UNTIL_THE_END.replace("del message", """
    if message is not None and not error:
        found["headers"] = len(message.headers())"""), fetch_max_record_headers=most)
    assert known.found["codes"] == [code]
    assert code or known.found["headers"] == count
