"""CRC32C in hardware and by table, against published vectors and an independent implementation."""

import os
import platform
import random

import pytest
from kafka.record._crc32c import crc as independent

from kconsumer._core.records.records_testing import crc32c, crc32c_in_hardware

# RFC 3720 B.4 and the usual check value.
VECTORS = [
    (b"", 0),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize(("data", "value"), VECTORS)
def test_known_vectors(data, value, portable):
    assert crc32c(data, portable=portable) == value


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 767, 768, 769, 1543, 12287, 12288, 12289, 12288 + 768 + 13, 40000])
def test_every_loop_against_an_independent_table(size, portable):
    data = os.urandom(size)
    assert crc32c(data, portable=portable) == independent(data)


def test_hardware_and_table_agree_from_any_split():
    data = os.urandom(30000)
    whole = crc32c(data)
    for _ in range(50):
        cut = random.randrange(len(data))
        assert crc32c(data[cut:], crc32c(data[:cut])) == whole
        assert crc32c(data[cut:], crc32c(data[:cut], portable=True), portable=True) == whole


@pytest.mark.skipif(platform.machine() != "x86_64", reason="every x86-64 CPU of the last fifteen years has SSE4.2")
def test_hardware_is_chosen():
    assert crc32c_in_hardware()
