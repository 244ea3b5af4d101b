"""A few kilobytes that inflate beyond the bound: the batch stops its partition, and the error names the batch."""

import gzip
import struct

import pytest
from stepped_loop import FETCH, crc32c, inside, records, varint

BAD_COMPRESSION = -198
BOUND = 100_000_000  # LARGEST_INFLATED_BYTES of managers/fetch_sender.pxi


def squeezed(base, size):
    """A gzip batch of one record with a value of so many zeros."""
    record = b"\x00\x00" + varint(0) + varint(-1) + varint(size) + bytes(size) + b"\x00"
    body = gzip.compress(varint(len(record)) + record, 1)
    tail = struct.pack(">hiqqqhii", 1, 0, 0, 0, -1, -1, -1, 1) + body
    return struct.pack(">qiibI", base, 9 + len(tail), 0, 2, crc32c(tail)) + tail


def serve(loop, data):
    """The answer to the Fetch that is out."""
    for request in loop.requests(FETCH):
        loop.fetched(request, data, turns=0)
    loop.turn(3)


@pytest.mark.parametrize(("size", "refused"), [(BOUND // 2, False), (BOUND + 1, True)])
def test_a_batch_that_inflates_beyond_the_bound_stops_its_partition(loop, size, refused):
    loop.assign(("t", 0, 0))
    bomb = squeezed(2, size)
    assert len(bomb) < size // 100
    serve(loop, {0: {"records": records(0, 2) + bomb}})
    assert [loop.consumer.poll(10).offset() for _ in range(2)] == [0, 1]
    while (message := loop.poll()) is None:
        loop.turn()
    if not refused:
        assert (message.error(), len(message.value())) == (None, size)
        return
    assert message.error().code() == BAD_COMPRESSION
    assert "inflates beyond 100000000 bytes" in message.error().str() and "t [0]" in message.error().str()
    loop.turn()
    assert inside.partition(loop.consumer, "t", 0)["state"] == "STOPPED"
