"""FetchSender, through the loop: a Fetch asks for less of large records while the application is slow."""

from stepped_loop import FETCH, batch

from kconsumer import KafkaError

MOST, LEAST = 8 * 1024 * 1024 - 4096, 1024 * 1024
LEAST_WITHOUT_MEMORY = 64 * 1024
FORGET = 32  # responses
PATIENCE = 3  # responses in a row
LARGE, SMALL = 20_000, 2_000


class Reader:
    """One partition whose every response has batches of the same size."""

    def __init__(self, loops, record=LARGE, count=5, **settings):
        self.loop = loops(**settings)
        self.record, self.count = record, count
        self.size = len(batch(0, [b"v" * record] * count))
        self.next = 0
        self.loop.assign(("t", 0, 0))

    def asked(self):
        return self.loop.one(FETCH)["body"]["max_bytes"]

    def fetch(self, times=1, cut=0):
        for _ in range(times):
            records = batch(self.next, [b"v" * self.record] * self.count)
            self.next += self.count
            self.loop.fetched(self.loop.one(FETCH), {0: {"records": records + batch(self.next, [b"v" * 500])[:cut]}})
        return self.asked()

    def take(self):
        """Everything that has arrived."""
        while self.loop.consumer.consume(1000, 0):
            pass
        self.loop.turn()


def test_a_fetch_shrinks_while_the_application_is_slower(loops):
    reader = Reader(loops)
    assert reader.asked() == MOST
    assert reader.fetch() == MOST  # nothing waited when it arrived
    assert reader.fetch(PATIENCE - 1) == MOST
    for expected in (MOST // 2, MOST // 4, LEAST, LEAST):
        assert abs(reader.fetch() - expected) <= reader.size / 2
        reader.fetch(PATIENCE - 1)


def test_it_asks_for_whole_batches(loops):
    """A broker cuts off the last batch at the limit, and would send its beginning without effect."""
    for record, batches in ((400_000, 3), (700_000, 1), (3_000_000, 1)):
        reader = Reader(loops, record=record, count=1)
        assert reader.fetch(1 + 3 * PATIENCE) == batches * reader.size


def test_a_batch_beyond_the_usual_size_does_not_raise_it(loops):
    reader = Reader(loops, record=9_000_000, count=1, fetch_buffer_memory=1 << 30)
    assert reader.fetch(1 + 3 * PATIENCE) == MOST


def test_a_batch_that_is_cut_off_does_not_count(loops):
    reader = Reader(loops, record=400_000, count=1)
    reader.fetch(3 * PATIENCE)
    assert reader.fetch(1, cut=300) == 3 * reader.size


def test_it_grows_as_soon_as_the_application_waits(loops):
    reader = Reader(loops)
    reader.fetch(1 + 3 * PATIENCE)
    for expected in (2 * LEAST, 4 * LEAST, MOST):
        reader.take()
        assert abs(reader.fetch() - expected) <= reader.size / 2


def test_patience_begins_again(loops):
    """One response that the application waited for is enough."""
    reader = Reader(loops)
    for _ in range(10):
        assert reader.fetch(PATIENCE) == MOST
        reader.take()


def test_small_records_are_asked_for_as_before(loops):
    reader = Reader(loops, record=SMALL)
    assert reader.fetch(1 + 3 * PATIENCE) == MOST
    # Also after large ones.
    reader.record = LARGE
    assert reader.fetch(3 * PATIENCE) < MOST / 4
    reader.record = SMALL
    assert reader.fetch() == MOST


def test_a_response_without_records_changes_nothing(loops):
    reader = Reader(loops)
    small = reader.fetch(1 + 3 * PATIENCE)
    reader.take()
    for _ in range(5):
        reader.loop.fetched(reader.loop.one(FETCH), {})
    assert reader.asked() == small


def test_it_falls_with_each_response_that_finds_no_memory_and_grows_slowly(loops):
    reader = Reader(loops, record=100, count=1)
    sizes = [reader.asked()]
    while len(sizes) < 6:
        reader.loop.fail(reader.loop.one(FETCH), KafkaError._CRIT_SYS_RESOURCE)
        while not reader.loop.requests(FETCH):
            reader.loop.advance(100)
        sizes.append(reader.asked())
    assert sizes == [max(MOST // 4**n, LEAST_WITHOUT_MEMORY) for n in range(6)]
    for round in range(9):
        assert abs(reader.asked() - min(LEAST_WITHOUT_MEMORY << round, MOST)) < reader.size
        reader.fetch(FORGET)
        reader.take()


def test_a_late_application_does_not_lift_the_limit_of_the_memory(loops):
    reader = Reader(loops)
    for _ in range(3):
        reader.loop.fail(reader.loop.one(FETCH), KafkaError._CRIT_SYS_RESOURCE)
        while not reader.loop.requests(FETCH):
            reader.loop.advance(100)
    limit = reader.asked()
    assert limit < LEAST
    reader.fetch(2 * PATIENCE)  # nothing is taken
    assert reader.asked() <= max(limit, reader.size)


def test_the_users_limit_holds(loops):
    reader = Reader(loops, fetch_max_bytes=300_000)
    assert reader.asked() == 300_000
    assert reader.fetch(1 + 3 * PATIENCE) == 300_000
