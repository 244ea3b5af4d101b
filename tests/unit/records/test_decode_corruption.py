"""Small batches with every byte flipped and every length cut: the same records or an error, never anything else."""

import random

import pytest
from record_encoders import CODECS, GZIP, batch, compress, decode, message

RECORDS = [(0, 0, b"k", b"value", [(b"h", b"x"), (b"n", None)]), (1, 5, None, b"", []), (2, 7, b"", None, [])]
NOT_SUMMED = range(16)  # base offset, length, leader epoch: the CRC begins after them


@pytest.mark.parametrize("codec", CODECS)
def test_a_flipped_byte_of_a_summed_field_is_always_noticed(codec):
    data = batch(RECORDS, codec=codec, base_offset=3)
    right, _ = decode(data)
    assert len(right) == 3
    for at in range(len(data)):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= flip
            rows, report = decode(bytes(damaged), budget=7)
            if at not in NOT_SUMMED:
                assert report["code"] != 0, (at, flip)
                assert rows == []
            elif 8 <= at < 12:
                assert rows == [] and (report["code"] != 0 or report["incomplete_batch_bytes"] > len(data))
            else:
                assert report["code"] != 0 or [r[1:5] for r in rows] == [r[1:5] for r in right]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", range(5))
def test_without_the_crc_damage_never_crashes_and_rows_stay_in_bounds(codec, seed):
    dice = random.Random(seed)
    data = batch(RECORDS, codec=codec) + batch(RECORDS, base_offset=3)
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        rows, report = decode(bytes(damaged), check_crcs=False, max_inflated_bytes=1 << 20, budget=64,
                              read_committed=dice.random() < 0.5)
        assert report["records"] == len(rows)
        assert [r[0] for r in rows] == sorted({r[0] for r in rows}), "offsets rise"
        assert not rows or report["next_offset"] > rows[-1][0]
        assert sum(len(r[2] or b"") + len(r[3] or b"") for r in rows) == report["bytes"]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_flipped_byte_of_a_message_is_noticed(magic, wrapped):
    data = message(0, magic, b"k", b"value")
    if wrapped:
        data = message(0, magic, None, compress(GZIP, data), codec=GZIP)
    right, _ = decode(data)
    assert len(right) == 1
    for at in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= flip
            rows, report = decode(bytes(damaged))
            if at >= 12:
                assert report["code"] != 0, (at, flip)
            assert rows == [] or rows[0][2:4] == right[0][2:4]
