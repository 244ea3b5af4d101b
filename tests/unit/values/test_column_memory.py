"""The memory of decoded columns: a batch takes what an earlier one gave back, and never what one still holds."""

from __future__ import annotations

import gc
import os
import resource
import threading

import pyarrow as pa
import pytest

from kconsumer.decoding import Json

ROWS = 50_000
DECODER = Json({"id": "int64", "name": "string", "maybe": "bool"})


def batch(seed: int, rows: int = ROWS) -> pa.Array:
    return pa.array([b'{"id":%d,"name":"n%d"%s}' % (seed + i, seed + i, b',"maybe":true' if i % 3 else b"")
                     for i in range(rows)], pa.binary())


def expected(seed: int, rows: int = ROWS) -> list[dict[str, object]]:
    return [{"id": seed + i, "name": f"n{seed + i}", "maybe": True if i % 3 else None} for i in range(rows)]


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.usefixtures("freed_memory_returns")
def test_batches_one_after_another_take_no_new_memory():
    given = batch(0)
    for _ in range(3):
        DECODER.decode(given)
    before = faults()
    for _ in range(20):
        DECODER.decode(given)
    assert faults() - before < 20 * 50  # fresh memory would be several hundred pages a batch


def test_a_batch_that_is_held_is_not_written_to():
    held = [(seed, pa.array(DECODER.decode(batch(seed)))) for seed in (0, 1_000_000)]
    for seed in range(5):
        DECODER.decode(batch(7_000_000 + seed))
    gc.collect()
    for seed, rows in held:
        assert rows.to_pylist() == expected(seed)
    part = held[0][1].field("name")[10:20]
    del held, rows
    gc.collect()
    DECODER.decode(batch(9_000_000))
    assert part.to_pylist() == [f"n{i}" for i in range(10, 20)]


@pytest.mark.parametrize("rows", [1, 63, 4_095, 4_096, 4_097, 8_192, 200_000])
def test_batches_of_other_sizes(rows):
    """Columns grow across the sizes of pieces that are kept, and beyond them."""
    for _ in range(2):
        assert pa.array(DECODER.decode(batch(3, rows))).to_pylist() == expected(3, rows)


def test_long_texts_grow_across_all_sizes():
    texts = ["x" * (1 << order) for order in range(24)]
    rows = [b'{"id":1,"name":"%s"}' % text.encode() for text in texts]
    for _ in range(2):
        assert [row["name"] for row in pa.array(DECODER.decode(rows)).to_pylist()] == texts


def test_threads_and_the_child_of_a_fork():
    """A child may find the lock held for ever."""
    stop = threading.Event()
    wrong: list[object] = []

    def work(seed: int) -> None:
        given, rows = batch(seed, 6_000), expected(seed, 6_000)
        while not stop.is_set():
            if pa.array(DECODER.decode(given)).to_pylist() != rows:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 100_000)]
    for thread in threads:
        thread.start()
    given = batch(5, 6_000)
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if len(DECODER.decode(given)) == 6_000 and not DECODER.decode(given).error_count else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
