"""Fixtures of the in-process benchmarks: records, created once, without a broker."""

from __future__ import annotations

import struct

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.topics import keys, values

BATCH_RECORDS = 5000
BATCHES = 10
_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture(scope="session")
def encoded():
    """Return a function: codec name → BATCHES batches in a broker's form, encoded by kafka-python."""
    pool = values(100)

    def encode(codec: str) -> bytes:
        out = bytearray()
        for number in range(BATCHES):
            builder = DefaultRecordBatchBuilder(
                magic=2, compression_type=_CODECS[codec], is_transactional=False, producer_id=-1, producer_epoch=-1,
                base_sequence=-1, batch_size=1 << 30)
            for offset, key in enumerate(keys(BATCH_RECORDS)):
                builder.append(offset, timestamp=1_700_000_000_000 + offset, key=key,
                               value=pool[(number * BATCH_RECORDS + offset) % len(pool)], headers=[])
            batch = bytearray(builder.build())
            struct.pack_into(">q", batch, 0, number * BATCH_RECORDS)  # the base offset; the CRC does not cover it
            out += batch
        return bytes(out)

    return encode
