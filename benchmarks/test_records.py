"""The time to decode record batches into columns, without a network: `pytest benchmarks`. No test asserts on time."""

from __future__ import annotations

import pytest

from benchmarks.conftest import BATCH_RECORDS, BATCHES
from tests.core import records as core_records


@pytest.mark.parametrize("check_crcs", [True, False], ids=["crc", "no-crc"])
def test_decode_uncompressed(benchmark, encoded, check_crcs):
    data = encoded("none")
    pool = core_records.Pool()
    records, _ = benchmark(core_records.bench, pool, data, 1, check_crcs=check_crcs)
    assert records == BATCHES * BATCH_RECORDS
    benchmark.extra_info["records"] = records


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_decode_compressed(benchmark, encoded, codec):
    data = encoded(codec)
    pool = core_records.Pool()
    records, _ = benchmark(core_records.bench, pool, data, 1)
    assert records == BATCHES * BATCH_RECORDS
    benchmark.extra_info["records"] = records
    benchmark.extra_info["encoded_bytes"] = len(data)


@pytest.mark.parametrize("way", core_records.crc32c_ways())
def test_crc32c(benchmark, way):
    data = bytes(1 << 20)
    assert benchmark(core_records.crc32c, data, 0, way) == core_records.crc32c(data)
