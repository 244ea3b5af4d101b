"""Batches that another thread inflates before the decoder reaches them: only the time differs."""

import pytest
from record_encoders import GZIP, LZ4, NONE, SNAPPY, ZSTD, batch, compress, control_batch, decode, record
from tests.core.records import Job, Pool

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
EACH = 200


def records(value=b"value" * 30):
    return [(i, 0, b"k%d" % i, value, []) for i in range(EACH)]


def payload(codec, value=b"value" * 30):
    return compress(codec, b"".join(record(*r) for r in records(value)))


def one(codec, number, **more):
    return batch(payload=payload(codec), codec=codec, base_offset=EACH * number, count=EACH,
                 last_offset_delta=EACH - 1, **more)


def several(codec, count=6):
    return b"".join(one(codec, n) for n in range(count))


def rows_of(job):
    return [row for arena in job.batches for row in arena.rows()]


def finish(job, budget=1 << 40):
    """Decodes to the end, with a batch inflated ahead before every slice."""
    steps = []
    while not steps or steps[-1] in ("more", "full"):
        job.inflate_ahead()
        steps.append(job.step(budget))
    return steps[-1]


@pytest.mark.parametrize("budget", [4096, 1 << 40])
@pytest.mark.parametrize("codec", CODECS)
def test_the_records_are_the_same(codec, budget):
    data = several(codec)
    rows, report = decode(data)
    pool = Pool()
    job = Job(pool, data)
    assert job.offer()
    assert finish(job, budget) == "done"
    assert rows_of(job) == rows
    assert job.report == report
    assert job.bytes_ahead == 0
    job.release()


@pytest.mark.parametrize("codec", CODECS)
def test_batches_inflated_ahead_are_freed_with_the_job(codec):
    pool = Pool()
    job = Job(pool, several(codec))
    job.offer()
    before = pool.live_bytes
    assert job.inflate_ahead() and job.bytes_ahead > 0 and pool.live_bytes > before
    job.release()
    assert job.bytes_ahead == 0
    del job
    assert pool.live_bytes == 0


def test_the_decoder_waits_for_a_batch_that_another_thread_inflates():
    pool = Pool()
    data = several(ZSTD, 2)
    job = Job(pool, data)
    job.offer()
    begin, end = job.claim()
    assert (begin, end) == (0, len(data) // 2)
    assert job.step(1 << 40) == "wait" and job.step(1 << 40) == "wait"
    assert rows_of(job) == []
    assert job.inflate_ahead()  # the next one, meanwhile
    job.give_up()
    assert job.step(1 << 40) == "done"
    assert rows_of(job) == decode(data)[0]


def test_a_released_job_keeps_the_batch_that_a_thread_inflates():
    pool = Pool()
    job = Job(pool, several(ZSTD, 2))
    job.offer()
    assert job.claim() is not None
    assert job.step(1 << 40) == "wait"
    before = pool.live_bytes
    job.release()
    assert pool.live_bytes == before  # the claim still reads the fetched bytes
    job.give_up()
    assert pool.live_bytes < before
    assert job.claim() is None and not job.inflate_ahead()
    del job
    assert pool.live_bytes == 0


def test_a_claim_that_comes_to_nothing_leaves_the_batch_to_the_decoder():
    """Damaged: the decoder reaches it in order, after the records before it, and reports the damage."""
    pool = Pool()
    bad = batch(payload=payload(ZSTD)[:-9], codec=ZSTD, base_offset=EACH, count=EACH, last_offset_delta=EACH - 1)
    data = one(ZSTD, 0) + bad + one(ZSTD, 2)
    job = Job(pool, data)
    job.offer()
    assert finish(job, 4096) == "error"
    rows, report = decode(data)
    assert len(rows) == EACH and rows_of(job) == rows
    assert job.report == report and report["error_offset"] == EACH


def test_a_wrong_crc_counts_although_it_was_inflated():
    pool = Pool()
    data = bytearray(several(LZ4, 2))
    data[len(data) // 2 + 17] ^= 1  # of the second batch's CRC
    job = Job(pool, bytes(data))
    job.offer()
    assert job.inflate_ahead()
    assert job.step(1 << 40) == "error"
    assert "its CRC is" in job.report["detail"] and job.report["error_offset"] == EACH
    job.release()
    assert job.bytes_ahead == 0


@pytest.mark.parametrize("codec", CODECS)
def test_the_bound_on_a_batch_holds(codec):
    size = len(b"".join(record(*r) for r in records()))
    pool = Pool()
    job = Job(pool, several(codec, 1), max_inflated_bytes=size - 1)
    job.offer()
    job.inflate_ahead()
    assert job.bytes_ahead == 0
    assert job.step(1 << 40) == "error"
    assert f"inflates beyond {size - 1} bytes" in job.report["detail"]


def test_long_inflations_are_left_to_the_decoder():
    """A batch that becomes 64 MiB: no more than a slice of it is tried."""
    pool = Pool()
    bomb = batch(payload=compress(ZSTD, bytes(64 << 20)), codec=ZSTD, count=1, last_offset_delta=0)
    job = Job(pool, bomb + one(ZSTD, 1), max_inflated_bytes=1 << 30)
    job.offer()
    before = pool.live_bytes
    assert job.inflate_ahead()
    assert pool.live_bytes - before < 16 << 20 and job.bytes_ahead == 0
    assert job.inflate_ahead() and job.bytes_ahead > 0


def test_aborted_batches_that_were_inflated_are_dropped():
    data = (one(ZSTD, 0, producer_id=7, transactional=True) + control_batch(EACH, 7, False)
            + one(ZSTD, 2, producer_id=7, transactional=True) + control_batch(3 * EACH, 7, True))
    pool = Pool()
    job = Job(pool, data, read_committed=True, aborted=[(7, 0)])
    job.offer()
    while job.inflate_ahead():
        pass
    assert job.step(1 << 40) == "done"
    assert [row[0] for row in rows_of(job)] == list(range(2 * EACH, 3 * EACH))
    job.release()
    assert job.bytes_ahead == 0


@pytest.mark.parametrize("data", [
    b"", one(NONE, 0), several(ZSTD, 1)[:-1], one(ZSTD, 0)[:60], bytes(61), b"\xff" * 61,
])
def test_nothing_to_inflate(data):
    assert not Job(Pool(), data).offer()


def test_batches_that_are_not_compressed_are_passed_over():
    data = one(ZSTD, 0) + one(NONE, 1) + one(ZSTD, 2) + one(ZSTD, 3)[:-1]
    pool = Pool()
    job = Job(pool, data)
    job.offer()
    assert job.claim()[0] == 0
    job.give_up()
    assert job.claim()[0] == len(one(ZSTD, 0) + one(NONE, 1))
    job.give_up()
    assert job.claim() is None
    assert job.step(1 << 40) == "done" and len(rows_of(job)) == 3 * EACH


def test_small_batches_share_a_block():
    pool = Pool()
    job = Job(pool, several(SNAPPY, 40))
    job.offer()
    while job.inflate_ahead():
        pass
    assert job.step(1 << 40) == "done"
    assert len(rows_of(job)) == 40 * EACH
    assert job.batches[0].pinned_blocks < 20
