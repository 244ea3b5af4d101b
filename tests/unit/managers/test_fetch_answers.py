"""FetchSender, through the loop: what a broker leaves out of its answers, as Kafka does."""

import pytest
from stepped_loop import FETCH, METADATA, batch

NO_SESSION, SESSION = 0, 500
ENDLESS = 1 << 40


class Broker:
    """Answers each Fetch with at most one batch of a partition.

    Only the first batch of an answer may exceed the limits (KIP-74). In a session it names only partitions that have
    changed (KIP-227).
    """

    def __init__(self, loop, ends, *, session, sizes=None):
        self.loop, self.ends, self.session = loop, ends, session
        self.sizes = sizes or {}
        self.asked = {}  # by partition, in the order of the request
        self.told = {}

    def answer(self, request):
        if request["body"]["session_epoch"] <= 0:
            self.asked, self.told = {}, {}
        for topic in request["body"]["topics"]:
            for partition in topic["partitions"]:
                self.asked[partition["partition"]] = partition
        for number in self.loop.forgotten(request):
            self.asked.pop(number)
            self.told.pop(number, None)
        left, parts = request["body"]["max_bytes"], {}
        for number, partition in self.asked.items():
            end = self.ends[number]
            found = self.batch(number, partition["fetch_offset"])
            is_first = not any(part["records"] for part in parts.values())
            if not is_first and len(found) > min(left, partition["partition_max_bytes"]):
                found = b""
            left = max(left - len(found), 0)
            if found or self.told.get(number) != end:
                parts[number] = {"records": found, "high_watermark": end, "last_stable_offset": end}
                self.told[number] = end
        self.loop.fetched(request, parts, session=self.session)

    def batch(self, number, offset):
        return batch(offset, [b"x" * self.sizes.get(number, 10)]) if offset < self.ends[number] else b""

    def serve(self, rounds=20):
        """(partition, offset) of each message that the application gets; "end" instead of the offset of an error."""
        got = []
        for _ in range(rounds):
            for request in self.loop.requests(FETCH):
                self.answer(request)
            while self.loop.requests(METADATA):
                self.loop.answer_metadata()
            self.loop.advance(10)
            got += [(m.partition(), "end" if m.error() else m.offset()) for m in self.loop.consumer.consume(1000, 0)]
        return got


@pytest.mark.parametrize("large", [0, 1])
def test_a_partition_with_large_batches_is_read_beside_others(loops, large):
    """Without a session each request names both, and an answer has room for one large batch, if that is the first."""
    loop = loops(max_partition_fetch_bytes=1000)
    loop.assign(("t", 0, 0), ("t", 1, 0))
    broker = Broker(loop, {0: ENDLESS, 1: ENDLESS}, session=NO_SESSION, sizes={large: 5000})
    read = [partition for partition, _ in broker.serve(100)]
    assert read.count(large) > 10
    assert read.count(1 - large) > 10


# -- ends of partitions in a session


def test_the_end_comes_again_after_a_seek_to_it(loops):
    """Nothing has changed there, so that the broker does not name the partition."""
    loop = loops(enable_partition_eof=True)
    broker = Broker(loop, {0: 3}, session=SESSION)
    loop.assign(("t", 0, 0))
    assert broker.serve() == [(0, 0), (0, 1), (0, 2), (0, "end")]
    loop.consumer._seek("t", 0, 3, -1)
    assert broker.serve() == [(0, "end")]


def test_the_end_of_an_empty_partition_comes_again_after_an_assign(loops):
    loop = loops(enable_partition_eof=True)
    broker = Broker(loop, {0: 2, 1: 0}, session=SESSION)
    for _ in range(2):
        loop.assign(("t", 0, 0), ("t", 1, 0))
        assert sorted(broker.serve(), key=str) == [(0, "end"), (0, 0), (0, 1), (1, "end")]
