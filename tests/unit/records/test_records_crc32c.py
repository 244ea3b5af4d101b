"""CRC32C in every way of this CPU, against published vectors and an independent implementation."""

import os
import platform
import random
from pathlib import Path

import pytest
from kafka.record._crc32c import crc as independent
from tests.core.records import crc32c, crc32c_ways

# RFC 3720 B.4 and the usual check value.
VECTORS = [
    (b"", 0),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


# Around the borders of every loop: 8 bytes, three stretches of 256, and folds of 64 and 256 bytes from 512 on.
SIZES = [1, 7, 8, 9, 63, 511, 512, 513, 575, 576, 577, 767, 768, 769, 1023, 1024, 1025, 1543, 12287, 12288, 12289,
         12288 + 768 + 13, 40000]


@pytest.fixture(params=crc32c_ways())
def way(request):
    return request.param


@pytest.mark.parametrize(("data", "value"), VECTORS)
def test_known_vectors(data, value, way):
    assert crc32c(data, way=way) == value


@pytest.mark.parametrize("size", SIZES)
def test_every_loop_against_an_independent_table(size, way):
    data = os.urandom(size)
    assert crc32c(data, way=way) == independent(data)


def test_all_ways_agree_from_any_split(way):
    data = os.urandom(30000)
    whole = independent(data)
    for _ in range(50):
        cut = random.randrange(len(data))
        assert crc32c(data[cut:], crc32c(data[:cut]), way) == whole
        assert crc32c(data[cut:], crc32c(data[:cut], 0, way)) == whole


def test_one_flipped_bit_changes_the_crc(way):
    data = bytearray(os.urandom(4096))
    good = crc32c(bytes(data), way=way)
    for _ in range(200):
        bit = random.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        assert crc32c(bytes(data), way=way) != good
        data[bit // 8] ^= 1 << bit % 8


@pytest.mark.skipif(platform.machine() != "x86_64", reason="every x86-64 CPU of the last fifteen years has SSE4.2")
def test_the_instruction_is_used():
    assert "instruction" in crc32c_ways()


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="asks Linux for the features of the CPU")
def test_folding_is_used_where_the_cpu_has_it():
    features = set(Path("/proc/cpuinfo").read_text().split())  # in an emulator of another processor: the host's
    has = platform.machine() == "x86_64" and {"avx512f", "vpclmulqdq", "pclmulqdq"} <= features
    assert ("folding" in crc32c_ways()) == has
