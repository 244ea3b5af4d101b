"""Record batches and message sets built byte by byte, so that tests can also make what no producer makes.

A record is (offset delta, timestamp delta, key, value, headers); headers are (key, value) pairs of bytes.
"""

import gzip
import struct
import zlib

import lz4.frame
import snappy
import zstandard
from kafka.codec import lz4_encode_old_kafka, snappy_encode

from tests.core import records as core_records

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]


def compress(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.compress(data, 1, mtime=0)  # the time would get into names of tests
    if codec == SNAPPY:
        return snappy_encode(data)
    if codec == LZ4:
        return lz4.frame.compress(data)
    if codec == ZSTD:
        stream = zstandard.ZstdCompressor().compressobj()  # no content size in the header, as in the Java client
        return stream.compress(data) + stream.flush()
    return data


def raw_snappy(data: bytes) -> bytes:
    return snappy.compress(data)


def old_lz4(data: bytes) -> bytes:
    return lz4_encode_old_kafka(data)


def varint(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record_body(offset_delta, timestamp_delta, key, value, headers=()) -> bytes:
    body = b"\x00" + varint(timestamp_delta) + varint(offset_delta) + field(key) + field(value) + varint(len(headers))
    for name, content in headers:
        body += varint(len(name)) + name + field(content)
    return body


def record(*args) -> bytes:
    body = record_body(*args)
    return varint(len(body)) + body


def batch(
    records=(), *, base_offset=0, codec=NONE, leader_epoch=0, base_timestamp=0, max_timestamp=0, log_append=False,
    transactional=False, control=False, producer_id=-1, last_offset_delta=None, count=None, magic=2, payload=None,
    crc=None, length=None, attributes=0,
) -> bytes:
    """A v2 batch; `payload` replaces the (compressed) records, and what is None follows from the records."""
    if payload is None:
        payload = compress(codec, b"".join(record(*r) for r in records))
    if last_offset_delta is None:
        last_offset_delta = records[-1][0] if records else 0
    attributes |= codec | 8 * log_append | 16 * transactional | 32 * control
    tail = struct.pack(
        ">hiqqqhii", attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id, -1, -1,
        len(records) if count is None else count,
    ) + payload
    if crc is None:
        crc = core_records.crc32c(tail)
    if length is None:
        length = 9 + len(tail)
    return struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc) + tail


def control_batch(base_offset: int, producer_id: int, commit: bool, codec=NONE) -> bytes:
    marker = (0, 0, struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 7), ())
    return batch([marker], base_offset=base_offset, producer_id=producer_id, transactional=True, control=True,
                 codec=codec)


def message(offset, magic, key, value, *, timestamp=-1, codec=NONE, log_append=False, crc=None, size=None) -> bytes:
    """One message of v0 or v1."""
    body = struct.pack(">bb", magic, codec | 8 * log_append)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for data in (key, value):
        body += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    if crc is None:
        crc = zlib.crc32(body)
    return struct.pack(">qiI", offset, len(body) + 4 if size is None else size, crc) + body


def expected(records, *, base_offset=0, base_timestamp=0, leader_epoch=0, **_):
    """Rows as Arena.rows() gives them."""
    return [
        (base_offset + delta, base_timestamp + ts, key, value, list(headers), leader_epoch, 0)
        for delta, ts, key, value, headers in records
    ]


def decode(data: bytes, *, budget=1 << 40, **options):
    """(rows, report) of a job over `data`."""
    job = core_records.Job(core_records.Pool(), data, **options)
    job.run(budget)
    return job.rows(), job.report
