"""Message sets of v0 and v1: plain, wrapped, cut off, lying; and magic changing within one response."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from record_encoders import GZIP, LZ4, NONE, SNAPPY, batch, compress, decode, message, old_lz4, raw_snappy
from tests.core.records import Job, Pool

BAD_MSG = -199
OLD_CODECS = [NONE, GZIP, SNAPPY, LZ4]
maybe_bytes = st.none() | st.binary(max_size=30)


def wrap(inner: bytes, offset: int, magic: int, codec: int, **options) -> bytes:
    data = old_lz4(inner) if codec == LZ4 and magic == 0 else compress(codec, inner)
    return message(offset, magic, None, data, codec=codec, **options)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_against_an_independent_encoder(magic, codec):
    """Its lz4 for v0 has the broken header checksum; its wrapper's offset is set as a broker would."""
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    want = []
    for i in range(200):
        key = None if i % 5 == 0 else b"k%d" % i
        value = None if i % 9 == 0 else b"v" * i
        builder.append(i, 1000 + i, key, value)
        want.append((i, 1000 + i if magic else -1, key, value, [], -1, 0 if magic else -1))
    data = bytes(builder.build())
    if codec:
        data = (199).to_bytes(8, "big") + data[8:]
    rows, report = decode(data)
    assert report["code"] == 0, report
    assert rows == want
    assert report["next_offset"] == 200
    assert report["last_leader_epoch"] == -1
    assert decode(data, budget=1, capacity=64) == (rows, report)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("header_of_today", [False, True])
def test_lz4_with_either_header_checksum(magic, header_of_today):
    inner = message(0, magic, None, b"v" * 100)
    data = compress(LZ4, inner) if header_of_today else old_lz4(inner)
    rows, report = decode(message(0, magic, None, data, codec=LZ4))
    assert report["code"] == 0, report
    assert rows[0][3] == b"v" * 100


def test_lz4_with_a_damaged_header_checksum():
    data = bytearray(old_lz4(message(0, 0, None, b"v" * 100)))
    data[6] ^= 0x55
    _, report = decode(message(0, 0, None, bytes(data), codec=LZ4))
    assert report["code"] == -198
    assert "lz4" in report["detail"]


def test_v2_does_not_accept_the_broken_lz4_header():
    _, report = decode(batch(payload=old_lz4(b"x" * 20), codec=LZ4, count=1))
    assert report["code"] == -198


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_inner_offsets_of_v1_are_relative_and_compacted(codec):
    inner = b"".join(message(o, 1, None, b"v", timestamp=o) for o in (0, 2, 5))
    rows, report = decode(wrap(inner, 105, 1, codec))
    assert [(r[0], r[1]) for r in rows] == [(100, 0), (102, 2), (105, 5)]
    assert report["next_offset"] == 106


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_inner_offsets_of_v0_are_absolute(codec):
    inner = b"".join(message(o, 0, None, b"v") for o in (100, 102, 105))
    rows, _ = decode(wrap(inner, 105, 0, codec))
    assert [r[0] for r in rows] == [100, 102, 105]


def test_raw_snappy_in_a_message():
    rows, _ = decode(message(0, 1, None, raw_snappy(message(0, 1, None, b"v")), codec=SNAPPY))
    assert rows[0][3] == b"v"


def test_log_append_time_of_the_wrapper_is_everyones():
    inner = b"".join(message(o, 1, None, b"v", timestamp=5) for o in range(3))
    rows, _ = decode(wrap(inner, 2, 1, GZIP, timestamp=777, log_append=True))
    assert [(r[1], r[6]) for r in rows] == [(777, 1)] * 3
    rows, _ = decode(message(0, 1, None, b"v", timestamp=888, log_append=True))
    assert [(r[1], r[6]) for r in rows] == [(888, 1)]


def test_a_fetch_offset_in_the_middle_of_a_wrapper():
    inner = b"".join(message(o, 1, None, b"v", timestamp=0) for o in range(10))
    rows, report = decode(wrap(inner, 59, 1, GZIP), fetch_offset=57)
    assert [r[0] for r in rows] == [57, 58, 59]
    rows, report = decode(wrap(inner, 59, 1, GZIP), fetch_offset=60)
    assert rows == []
    assert report["next_offset"] == 60


def test_magic_may_change_within_a_response():
    data = b"".join([
        message(0, 0, b"a", b"0"), wrap(message(0, 1, b"b", b"1", timestamp=1), 1, 1, GZIP),
        batch([(0, 0, b"c", b"2", [(b"h", b"x")])], base_offset=2, leader_epoch=4), message(3, 1, b"d", None),
    ])
    job = Job(Pool(), data)
    job.run()
    assert [(r[0], r[2], r[3], r[4]) for r in job.rows()] == [
        (0, b"a", b"0", []), (1, b"b", b"1", []), (2, b"c", b"2", [(b"h", b"x")]), (3, b"d", None, []),
    ]
    assert job.batches[0].runs() == [(0, 1, -1, -1), (1, 2, -1, 0), (2, 3, 4, 0), (3, 4, -1, 0)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), maybe_bytes, maybe_bytes), min_size=1, max_size=20),
       st.sampled_from([0, 1]), st.sampled_from(OLD_CODECS), st.integers(1, 200))
def test_any_slicing_gives_the_same_records(records, magic, codec, budget):
    inner, want, offset = [], [], 99
    for gap, key, value in records:
        offset += gap
        relative = offset - 100 if magic == 1 and codec else offset
        inner.append(message(relative, magic, key, value, timestamp=offset))
        want.append((offset, offset if magic else -1, key, value, [], -1, 0 if magic else -1))
    data = b"".join(inner)
    if codec:
        data = wrap(data, offset, magic, codec)
        base = want[0][0] - (records[0][0] - 1) if magic else 0
        assert base in (0, 100)
    rows, report = decode(data)
    assert rows == want
    assert decode(data, budget=budget, capacity=64) == (rows, report)


@pytest.mark.parametrize("magic", [0, 1])
def test_every_truncation_gives_the_whole_messages(magic):
    parts = [message(0, magic, b"k", b"v"), wrap(message(1 - magic, magic, None, b"w"), 1, magic, GZIP)]
    whole = b"".join(parts)
    for cut in range(len(whole)):
        rows, report = decode(whole[:cut])
        assert report["code"] == 0
        assert len(rows) == (cut >= len(parts[0]))
        if 12 <= cut < len(parts[0]):
            assert report["incomplete_batch_bytes"] == len(parts[0])


INNER = message(0, 1, None, b"v")


@pytest.mark.parametrize(("data", "cause"), [
    (message(5, 1, None, b"v", crc=7), "its CRC is 00000007"),
    (message(5, 0, None, b"v", crc=7), "its CRC is 00000007"),
    (message(5, 0, None, b"", size=13) + bytes(20), "length is less than a header"),
    (message(5, 1, None, b"", size=16) + bytes(20), "goes beyond"),
    (message(5, 1, None, b"v", codec=4), "codec"),
    (message(5, 1, None, b"v", codec=7), "codec"),
    (message(5, 1, None, None, codec=1), "holds no messages"),
    (message(5, 1, None, gzip.compress(b"", mtime=0), codec=1), "holds no messages"),
    (message(5, 1, None, b"", codec=1), "gzip: the data ends too early"),
    (message(5, 1, None, b"junk", codec=1), "gzip"),
    (message(5, 1, None, b"junk", codec=2), "snappy"),
    (message(5, 1, None, b"junkjunk", codec=3), "lz4"),
    (wrap(INNER[:-1], 5, 1, GZIP), "goes beyond its bytes"),
    (wrap(INNER + b"x", 5, 1, GZIP), "cut off"),
    (wrap(wrap(INNER, 0, 1, GZIP), 5, 1, GZIP), "compressed again"),
    (wrap(message(0, 0, None, b"v"), 5, 1, GZIP), "different magic"),
    (wrap(message(0, 1, None, b"v", crc=1), 5, 1, GZIP), "CRC of a message inside"),
    (wrap(message(-3, 1, None, b"v"), 5, 1, GZIP), "out of range"),
    (wrap(message(6, 1, None, b"v"), 5, 1, GZIP), "out of range"),
    (wrap(message(6, 0, None, b"v"), 5, 0, GZIP), "out of range"),
    (wrap(INNER + INNER, 5, 1, GZIP), "not after the previous offset"),
    (wrap(message(1, 1, None, b"v") + INNER, 5, 1, GZIP), "out of range"),
    (message((1 << 63) - 1, 1, None, b"v"), "largest"),
])
def test_lies(data, cause):
    rows, report = decode(message(4, 1, None, b"before") + data)
    assert report["code"] in (BAD_MSG, -198), report
    assert cause in report["detail"]
    assert rows[0][3] == b"before"
    if cause != "largest":
        assert report["error_offset"] == 5
    assert report["next_offset"] >= 5


def test_a_bad_wrapper_begins_where_reading_was():
    inner = b"".join(message(o, 1, None, b"v", crc=o) for o in range(10))
    _, report = decode(wrap(inner, 59, 1, GZIP), fetch_offset=52)
    assert (report["error_offset"], report["error_next_offset"]) == (52, 60)


def test_reading_continues_past_a_bad_message():
    _, report = decode(message(5, 1, None, b"v", crc=7))
    assert report["error_next_offset"] == 6


def test_a_message_with_wrong_field_lengths():
    for at in (18, 22):  # key length, value length of a v0 message
        for wrong in (-2, 5, 1 << 30):
            data = bytearray(message(0, 0, b"", b""))
            data[at:at + 4] = wrong.to_bytes(4, "big", signed=True)
            _, report = decode(bytes(data), check_crcs=False)
            assert report["code"] == BAD_MSG, (at, wrong)
