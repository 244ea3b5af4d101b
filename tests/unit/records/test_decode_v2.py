"""Decoding of v2 batches: values, offsets, slices, what is claimed and not there."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from record_encoders import (
    CODECS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    batch,
    compress,
    decode,
    expected,
    raw_snappy,
    record,
    record_body,
    varint,
)
from tests.core.records import Job, Pool

BAD_MSG = -199
BAD_COMPRESSION = -198

maybe_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.binary(max_size=10), maybe_bytes), max_size=3)


@st.composite
def batches(draw):
    """Arguments of several batches that follow one another, with gaps as compaction leaves them."""
    out = []
    offset = draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(1, 4))):
        records, delta = [], -1
        for _ in range(draw(st.integers(0, 12))):
            delta += draw(st.integers(1, 3))
            records.append((delta, draw(st.integers(-(1 << 40), 1 << 40)), draw(maybe_bytes), draw(maybe_bytes),
                            draw(headers)))
        last = max(delta, 0) + draw(st.integers(0, 2))
        out.append({
            "records": records, "base_offset": offset, "codec": draw(st.sampled_from(CODECS)),
            "leader_epoch": draw(st.integers(-1, 3)), "base_timestamp": draw(st.integers(0, 1 << 41)),
            "last_offset_delta": last,
        })
        offset += last + 1
    return out, offset


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches(), st.integers(1, 400), st.booleans())
def test_any_slicing_gives_the_same_records(case, budget, check_crcs):
    made, end = case
    data = b"".join(batch(**b) for b in made)
    want = [row for b in made for row in expected(**b)]
    rows, report = decode(data, check_crcs=check_crcs)
    assert rows == want
    assert report["next_offset"] == end
    assert report["records"] == len(want)
    assert report["bytes"] == sum(len(r[2] or b"") + len(r[3] or b"") for r in want)
    assert report["last_leader_epoch"] == made[-1]["leader_epoch"]
    assert report["incomplete_batch_bytes"] == 0
    assert decode(data, check_crcs=check_crcs, budget=budget, capacity=64, lead=3) == (rows, report)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 127, 128, 65535, 65536, 1 << 20, 8 << 20])
@pytest.mark.parametrize("random_bytes", [False, True])
def test_sizes_in_every_codec(codec, size, random_bytes):
    value = os.urandom(size) if random_bytes else bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    value = value[:size]
    records = [(0, 0, None, value, []), (1, 5, value[:40], None, [(b"h", value), (b"n", None)]), (2, 9, b"", b"", [])]
    rows, report = decode(batch(records, codec=codec, base_offset=7), budget=100_000)
    assert report["code"] == 0
    assert rows == expected(records, base_offset=7)


@pytest.mark.parametrize("codec", CODECS)
def test_against_an_independent_encoder(codec):
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    want = []
    for i in range(300):
        key = None if i % 7 == 0 else b"key-%d" % i
        value = None if i % 11 == 0 else b"v" * (i % 50)
        kept = [(f"h{n}", None if n else b"x") for n in range(i % 3)]
        builder.append(i, 1_700_000_000_000 + i, key, value, kept)
        want.append((i, 1_700_000_000_000 + i, key, value, [(k.encode(), v) for k, v in kept], 0, 0))
    rows, report = decode(bytes(builder.build()))
    assert report["code"] == 0, report
    assert [r[:5] for r in rows] == [r[:5] for r in want]


@pytest.mark.parametrize("length", range(16))
@pytest.mark.parametrize("at_the_end", [False, True])
def test_short_values_are_inlined_and_padded(length, at_the_end):
    """The fast copy reads twelve bytes: bytes after the value must not show, nor be read beyond the batch."""
    value = bytes(range(1, length + 1))
    records = [(0, 0, value, value, [])] + ([] if at_the_end else [(1, 0, b"x" * 30, b"y" * 30, [])])
    rows, _ = decode(batch(records))
    assert rows == expected(records)


def test_many_batches_share_blocks():
    pool = Pool()
    data = b"".join(batch([(0, 0, b"k", b"v" * 1000, [])], base_offset=i, codec=ZSTD) for i in range(500))
    job = Job(pool, data)
    job.run()
    assert len(job.rows()) == 500
    assert job.batches[0].pinned_blocks < 20


def test_uncompressed_values_are_views_into_the_fetched_block():
    job = Job(Pool(), b"".join(batch([(0, 0, None, b"v" * 100, [])], base_offset=i) for i in range(9)))
    job.run()
    assert job.batches[0].pinned_blocks == 1


def test_everything_is_given_back():
    pool = Pool()
    for codec in CODECS:
        job = Job(pool, batch([(0, 0, b"k" * 20, b"v" * 5000, [(b"h", b"v")])], codec=codec))
        job.run()
        job.release()
        rows = job.rows()
        assert rows[0][3] == b"v" * 5000, "columns pin what their views need"
        del job
        assert pool.live_bytes == 0


def test_a_released_job_in_the_middle_gives_everything_back():
    pool = Pool()
    for codec in CODECS:
        job = Job(pool, batch([(i, 0, None, os.urandom(1000), []) for i in range(100)], codec=codec))
        job.step(5000)
        job.release()
        del job
        assert pool.live_bytes == 0


# ---- offsets

def test_records_below_the_fetch_offset_are_dropped():
    records = [(i, 0, None, b"v", []) for i in range(10)]
    rows, report = decode(batch(records, base_offset=100), fetch_offset=104)
    assert [r[0] for r in rows] == list(range(104, 110))
    assert report["next_offset"] == 110
    assert report["records"] == 6


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_wholly_below_is_skipped_and_never_moves_back(codec):
    data = batch([(0, 0, None, b"a", [])], base_offset=5, codec=codec) + batch([(0, 0, None, b"b", [])], base_offset=20)
    rows, report = decode(data, fetch_offset=10)
    assert [r[0] for r in rows] == [20]
    rows, report = decode(data, fetch_offset=50)
    assert rows == []
    assert report["next_offset"] == 50


def test_offsets_never_go_backwards_across_batches():
    data = batch([(i, 0, None, b"a", []) for i in range(5)], base_offset=10) * 2
    rows, _report = decode(data)
    assert [r[0] for r in rows] == [10, 11, 12, 13, 14]


def test_compacted_and_empty_batches_move_the_position():
    data = batch([(3, 0, None, b"a", [])], base_offset=10, last_offset_delta=9)
    data += batch([], base_offset=20, last_offset_delta=79)
    rows, report = decode(data)
    assert [r[0] for r in rows] == [13]
    assert report["next_offset"] == 100


def test_position_in_the_middle_of_a_batch_is_after_the_returned_records():
    job = Job(Pool(), batch([(i, 0, None, b"v", []) for i in range(100)], base_offset=1000), capacity=64)
    assert job.step(1 << 30) == "full"
    assert job.report["next_offset"] == 1064
    job.run()
    assert [r[0] for r in job.rows()] == list(range(1000, 1100))


def test_a_buffer_is_not_full_if_the_last_record_fits():
    job = Job(Pool(), batch([(i, 0, None, b"v", []) for i in range(64)]), capacity=64)
    assert job.run() == {"more": 0, "full": 0}


# ---- timestamps, epochs, runs

def test_log_append_time_is_the_same_for_all():
    records = [(i, i * 10, None, b"v", []) for i in range(3)]
    rows, _ = decode(batch(records, base_timestamp=5, max_timestamp=999, log_append=True))
    assert [(r[1], r[6]) for r in rows] == [(999, 1)] * 3


def test_no_timestamp():
    rows, _ = decode(batch([(0, 0, None, b"v", [])], base_timestamp=-1))
    assert rows[0][1] == -1


def test_a_run_ends_where_epoch_or_timestamp_type_change():
    one = [(0, 0, None, b"v", [])]
    data = b"".join([
        batch(one, base_offset=0, leader_epoch=1), batch(one, base_offset=1, leader_epoch=1),
        batch(one, base_offset=2, leader_epoch=2), batch(one, base_offset=3, leader_epoch=2, log_append=True),
        batch([], base_offset=4, leader_epoch=9), batch(one, base_offset=5, leader_epoch=2, log_append=True),
    ])
    job = Job(Pool(), data)
    job.run()
    assert job.batches[0].runs() == [(0, 2, 1, 0), (2, 3, 2, 0), (3, 5, 2, 1)]
    assert job.report["last_leader_epoch"] == 2


# ---- cut off

def test_every_truncation_gives_the_whole_batches():
    first = batch([(0, 0, b"k", b"v" * 20, [])], base_offset=0)
    second = batch([(0, 0, b"k", b"w" * 20, [(b"h", b"x")])], base_offset=1, codec=GZIP)
    whole = first + second
    for cut in range(len(whole)):
        rows, report = decode(whole[:cut])
        assert report["code"] == 0
        assert len(rows) == (cut >= len(first))
        assert report["next_offset"] == len(rows)
        if 12 <= cut < len(first):
            assert report["incomplete_batch_bytes"] == len(first)
        elif cut >= len(first) or cut == 0:
            assert report["incomplete_batch_bytes"] == 0
        else:
            assert report["incomplete_batch_bytes"] > cut


# ---- lies

ONE = record(0, 0, b"key", b"value", [])


@pytest.mark.parametrize(("payload", "count", "cause"), [
    (ONE, 2, "length cannot be read"),
    (ONE + b"\x00", 1, "left over after the last record"),
    (ONE, 0, "left over after the last record"),
    (ONE[:-1], 1, "length goes beyond the batch"),
    (b"\x80" * 6 + ONE, 1, "length cannot be read"),
    (b"\xff\xff\xff\xff\x1f" + ONE, 1, "length cannot be read"),
    (varint(-5) + ONE, 1, "length goes beyond the batch"),
    (varint(0) + ONE, 1, "empty"),
    (varint(1 << 20) + ONE, 1, "length goes beyond the batch"),
    (varint(3) + b"\x00\x00\x00" + bytes(10), 1, "key's length cannot be read"),
    (varint(6) + b"\x00\x00\x00" + varint(500)[:2] + b"x" + bytes(10), 1, "key goes beyond the record"),
    (varint(8) + b"\x00\x00\x00" + varint(-2) + b"aaaa" + bytes(10), 1, "key's length is negative"),
    (varint(8) + b"\x00\x00\x00" + varint(0) + varint(60) + b"bbb" + bytes(60), 1, "value goes beyond the record"),
    (varint(8) + b"\x00\x00\x00" + varint(0) + varint(-3) + b"bbb" + bytes(60), 1, "value's length is negative"),
    (varint(6) + b"\x00\x00\x00\x00\x00" + varint(-1) + bytes(9), 1, "header count is negative"),
    (varint(6) + b"\x00\x00\x00\x00\x00" + varint(9) + bytes(9), 1, "length of a header's key"),
    (varint(8) + b"\x00\x00\x00\x00\x00" + varint(1) + varint(-1) + bytes(9), 1, "header's key is null"),
    (varint(8) + b"\x00\x00\x00\x00\x00" + varint(1) + varint(50) + bytes(90), 1, "header's key goes beyond"),
    (varint(9) + b"\x00\x00\x00\x00\x00" + varint(1) + varint(0) + varint(40) + bytes(90), 1, "header's value goes"),
    (varint(8) + b"\x00\x00\x00\x00\x00" + varint(1) + varint(0) + varint(-2) + bytes(90), 1, "is negative"),
    (varint(7) + b"\x00\x00\x00\x00\x00\x00\x00" + bytes(9), 1, "left over at its end"),
])
@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_a_record_that_lies(payload, count, cause, codec):
    payload = payload.ljust(7 * max(count, 1), b"\x00") if cause != "left over after the last record" else payload
    data = batch(payload=compress(codec, payload), codec=codec, count=count, base_offset=40)
    rows, report = decode(batch([(0, 0, None, b"before", [])], base_offset=39) + data)
    assert report["code"] == BAD_MSG
    assert cause in report["detail"]
    assert "offset 40" in report["detail"]
    assert rows[0][3] == b"before"
    assert (report["error_offset"], report["error_next_offset"]) == (40, 41)


@pytest.mark.parametrize("deltas", [(0, 0), (1, 0), (0, 3), (-1, 0)])
def test_offsets_out_of_order_or_beyond_the_batch(deltas):
    records = [(d, 0, None, b"v", []) for d in deltas]
    _, report = decode(batch(records, last_offset_delta=1))
    assert report["code"] == BAD_MSG
    assert "offset" in report["detail"]


def test_records_before_a_bad_one_are_kept_and_the_position_is_after_them():
    payload = record(0, 0, None, b"good", []) + varint(100) + record_body(1, 0, None, b"bad", [])
    rows, report = decode(batch(payload=payload, count=2, last_offset_delta=9, base_offset=70))
    assert [r[3] for r in rows] == [b"good"]
    assert report["next_offset"] == 71
    assert (report["error_offset"], report["error_next_offset"]) == (70, 80)


@pytest.mark.parametrize(("changes", "cause", "resume"), [
    ({"crc": 1}, "its CRC is 00000001, but the CRC of its bytes is", 6),
    ({"count": -1}, "count is negative", 6),
    ({"count": 1000}, "more than its bytes can hold", 6),
    ({"last_offset_delta": -1}, "last offset is before its first", -1),
    ({"length": 5}, "length is less than a header", -1),
    ({"length": 48}, "length is less than a header", -1),
    ({"length": -1}, "length is less than a header", -1),
    ({"magic": 3}, "magic", -1),
    ({"magic": -1}, "magic", -1),
    ({"base_offset": -1}, "offset is negative", -1),
    ({"base_offset": (1 << 63) - 1}, "last offset is before", -1),
    ({"attributes": 5}, "codec", 6),
    ({"attributes": 7}, "codec", 6),
])
def test_a_header_that_lies(changes, cause, resume):
    arguments = {"records": [(0, 0, None, b"value", [])], "base_offset": 5, **changes}
    rows, report = decode(batch(**arguments) + batch([(0, 0, None, b"x", [])], base_offset=6))
    assert report["code"] in (BAD_MSG, BAD_COMPRESSION)
    assert cause in report["detail"]
    assert rows == []
    assert report["error_offset"] == arguments["base_offset"]
    assert report["error_next_offset"] == resume


def test_reading_continues_past_a_corrupt_batch():
    good = batch([(0, 0, None, b"x", [])], base_offset=6)
    _, report = decode(batch([(0, 0, None, b"v", [])], base_offset=5, crc=1) + good, fetch_offset=5)
    rows, report = decode(good, fetch_offset=report["error_next_offset"])
    assert [r[0] for r in rows] == [6]


def test_a_wrong_crc_is_not_noticed_when_not_asked():
    rows, report = decode(batch([(0, 0, None, b"v", [])], crc=1), check_crcs=False)
    assert report["code"] == 0
    assert len(rows) == 1


def test_a_failed_job_stays_failed():
    job = Job(Pool(), batch([(0, 0, None, b"v", [])], crc=1))
    job.run()
    first = job.report
    assert job.step(100) == "error"
    assert job.report == first


# ---- big ones, in slices

def test_a_large_batch_is_summed_inflated_and_walked_in_slices():
    records = [(i, 0, None, b"x" * 1000, []) for i in range(5000)]
    for codec in CODECS:
        job = Job(Pool(), batch(records, codec=codec))
        steps = job.run(100_000)
        assert steps["more"] > 40, codec
        assert len(job.rows()) == 5000


def test_estimate_follows_the_headers_but_not_beyond_the_bytes():
    records = [(i, 0, None, b"v", []) for i in range(10)]
    assert Job(Pool(), batch(records) * 3).estimate() == 30
    lying = batch(records, count=1 << 30)
    assert Job(Pool(), lying).estimate() <= len(lying)
    lying = batch(records, count=1 << 30, codec=ZSTD)
    assert Job(Pool(), lying).estimate() <= len(lying)
    assert Job(Pool(), batch(records)[:-1]).estimate() == 0
    job = Job(Pool(), batch(records) + batch(records, codec=GZIP, base_offset=10))
    steps = 0
    while job.estimate() > 0:
        assert job.estimate() + job.report["records"] == 20
        job.step(30)
        steps += 1
    assert steps > 5
    assert job.report["records"] == 20


def test_raw_snappy_without_the_java_framing():
    records = [(0, 0, b"k", b"v" * 3000, [])]
    payload = raw_snappy(b"".join(record(*r) for r in records))
    rows, _ = decode(batch(records, codec=SNAPPY, payload=payload))
    assert rows == expected(records)


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_a_record_with_more_headers_than_allowed_fails_and_earlier_records_are_kept(codec):
    headers = [(b"h", None)] * 4
    records = [(0, 0, None, b"a", headers[:3]), (1, 0, None, b"b", headers), (2, 0, None, b"c", [])]
    rows, report = decode(batch(records, codec=codec), max_record_headers=4)
    assert report["code"] == 0
    assert rows == expected(records)
    rows, report = decode(batch(records, codec=codec), max_record_headers=3)
    assert rows == expected(records[:1])
    assert report["code"] == -199
    assert "record 2 of 3: it has 4 headers, but fetch.max.record.headers allows 3" in report["detail"]
    assert report["error_next_offset"] == 3
