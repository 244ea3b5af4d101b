"""Codecs beyond the ordinary: limits, bombs, several members, truncation, damage."""

import gzip
import struct

import lz4.frame
import pytest
import snappy
import zstandard
from record_encoders import GZIP, LZ4, SNAPPY, ZSTD, batch, compress, decode, expected, record
from tests.core.records import Job, Pool

BAD_COMPRESSION = -198
RECORDS = [(i, 0, b"k%d" % i, b"value" * 50, []) for i in range(400)]
PLAIN = b"".join(record(*r) for r in RECORDS)
CUT = 5000


def of_payload(codec, payload, count=400):
    return batch(payload=payload, codec=codec, count=count, last_offset_delta=count - 1)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_may_not_inflate_beyond_the_bound(codec):
    data = of_payload(codec, compress(codec, PLAIN))
    rows, report = decode(data, max_inflated_bytes=len(PLAIN))
    assert rows == expected(RECORDS)
    rows, report = decode(data, max_inflated_bytes=len(PLAIN) - 1)
    assert rows == []
    assert report["code"] == BAD_COMPRESSION
    assert f"inflates beyond {len(PLAIN) - 1} bytes" in report["detail"]
    assert report["error_next_offset"] == 400


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_a_bomb_costs_no_more_than_the_bound(codec):
    bomb = compress(codec, bytes(64 << 20))
    pool = Pool()
    job = Job(pool, of_payload(codec, bomb), max_inflated_bytes=1 << 20)
    before = pool.live_bytes
    peak = 0
    while job.step(4096) == "more":
        peak = max(peak, pool.live_bytes - before)
    assert job.report["code"] == BAD_COMPRESSION
    assert peak < 3 << 20


def test_snappy_cannot_claim_more_than_its_bytes_can_hold():
    claim = b"\xff\xff\xff\xff\x07" + b"\x00" * 10  # 2 GiB - 1 out of 15 bytes
    pool = Pool()
    job = Job(pool, of_payload(SNAPPY, claim))
    before = pool.live_bytes
    job.run()
    assert "the length of a block is larger than its bytes can hold" in job.report["detail"]
    assert pool.live_bytes - before < 1 << 20


def test_snappy_at_its_densest():
    """Copies of 64 bytes in 3: the bound on what a block may claim must let them pass."""
    records = [(0, 0, None, bytes(4 << 20), [])]
    payload = snappy.compress(b"".join(record(*r) for r in records))
    rows, report = decode(batch(records, codec=SNAPPY, payload=payload))
    assert report["code"] == 0, report
    assert rows == expected(records)


@pytest.mark.parametrize(("codec", "payload"), [
    (GZIP, gzip.compress(PLAIN[:CUT], mtime=0) + gzip.compress(PLAIN[CUT:], mtime=0)),
    (GZIP, gzip.compress(PLAIN, mtime=0) + b"trailing bytes are ignored"),
    (ZSTD, zstandard.compress(PLAIN[:CUT]) + zstandard.compress(PLAIN[CUT:])),
    (ZSTD, b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstandard.compress(PLAIN)),  # a skippable frame first
    (ZSTD, zstandard.ZstdCompressor(level=19, write_checksum=True).compress(PLAIN)),
    (LZ4, lz4.frame.compress(PLAIN[:CUT]) + lz4.frame.compress(PLAIN[CUT:])),
    (LZ4, lz4.frame.compress(PLAIN, block_linked=True, block_size=lz4.frame.BLOCKSIZE_MAX64KB)),
    (LZ4, lz4.frame.compress(PLAIN, content_checksum=True, block_checksum=True, store_size=False)),
])
def test_several_members_and_other_frame_options(codec, payload):
    for budget in (1, 4096, 1 << 30):
        rows, report = decode(of_payload(codec, payload), budget=budget)
        assert report["code"] == 0, report
        assert rows == expected(RECORDS)


def test_linked_lz4_blocks_survive_a_growing_output():
    records = [(i, 0, None, (b"%d" % i) * 3000, []) for i in range(500)]
    payload = lz4.frame.compress(b"".join(record(*r) for r in records), block_linked=True)
    rows, report = decode(of_payload(LZ4, payload, 500), budget=30_000)
    assert report["code"] == 0, report
    assert rows == expected(records)


def framed(*blocks):
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for block in blocks:
        out += struct.pack(">i", len(block)) + block
    return out


def test_snappy_framing_block_by_block():
    blocks = [snappy.compress(PLAIN[i:i + 1000]) for i in range(0, len(PLAIN), 1000)]
    for payload in (framed(*blocks), framed(*blocks[:3]) + framed(*blocks[3:])):
        rows, report = decode(of_payload(SNAPPY, payload), budget=100)
        assert report["code"] == 0, report
        assert rows == expected(RECORDS)


@pytest.mark.parametrize(("payload", "cause"), [
    (framed(snappy.compress(PLAIN))[:-1], "a block goes beyond the data"),
    (framed(snappy.compress(PLAIN)) + b"\x00", "the data ends too early"),
    (framed(b""), "the length of a block cannot be read"),
    (framed(snappy.compress(PLAIN)[:-1]), "a block is corrupt"),
    (framed() + b"\xff\xff\xff\xff", "a block goes beyond the data"),
])
def test_snappy_framing_that_lies(payload, cause):
    _, report = decode(of_payload(SNAPPY, payload))
    assert report["code"] == BAD_COMPRESSION
    assert "snappy: " + cause in report["detail"]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_every_truncation_of_the_payload_is_an_error(codec):
    records = RECORDS[:4]
    payload = compress(codec, b"".join(record(*r) for r in records))
    for cut in range(len(payload)):
        rows, report = decode(of_payload(codec, payload[:cut], 4))
        if report["code"] == 0:  # what is missing is a trailer without records in it
            assert rows == expected(records)
        else:
            assert rows == []


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_every_flipped_byte_of_the_payload_is_noticed_or_harmless(codec):
    """The batch's CRC is right: it was computed over damaged bytes. Never a crash, never a partial record."""
    records = RECORDS[:4]
    payload = compress(codec, b"".join(record(*r) for r in records))
    for at in range(len(payload)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(payload)
            damaged[at] ^= flip
            rows, report = decode(of_payload(codec, bytes(damaged), 4), max_inflated_bytes=1 << 20)
            assert len(rows) == 4 or report["code"] in (BAD_COMPRESSION, -199)


def test_contexts_are_reused_after_an_error():
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        good = of_payload(codec, compress(codec, PLAIN))
        bad = of_payload(codec, compress(codec, PLAIN)[:-20])
        for _ in range(3):
            assert decode(bad)[1]["code"] == BAD_COMPRESSION
            assert decode(good)[0] == expected(RECORDS)


def test_jobs_in_the_middle_of_a_batch_do_not_disturb_each_other():
    pool = Pool()
    jobs = [Job(pool, of_payload(codec, compress(codec, PLAIN))) for codec in (GZIP, LZ4, ZSTD, SNAPPY) * 2]
    left = list(jobs)
    while left:
        left = [job for job in left if job.step(5000) == "more"]
    for job in jobs:
        assert job.rows() == expected(RECORDS)
