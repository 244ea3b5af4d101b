"""ParallelConsumer with processes, on the embedded cluster."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from parallel_handlers import Note

from kconsumer import ConfigurationError
from kconsumer.parallel import ParallelConsumer, RemoteError, Retry, WorkerDiedError
from kconsumer.testing import EmbeddedCluster


@pytest.fixture
def consumers(embedded: EmbeddedCluster, topic_name: Callable[[], str]) -> Iterator[Callable[..., ParallelConsumer]]:
    """Makes a consumer of a topic with these values, one key for each."""
    made: list[ParallelConsumer] = []

    def make(values: list[bytes], **options: Any) -> ParallelConsumer:
        topic = topic_name()
        embedded.create_topic(topic, 1)
        embedded.produce(topic, [(value, value) for value in values])
        made.append(ParallelConsumer(
            {"bootstrap.servers": embedded.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest",
             "group.protocol": "consumer"}, executor="processes", workers=2, **options))
        made[-1].subscribe([topic])
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


def lines(path: Path) -> list[tuple[str, int]]:
    return [(value, int(pid)) for value, pid in map(str.split, path.read_text().splitlines())]


NUMBERS = [b"%d" % n for n in range(200)]


def test_processes_handle_each_record_once_and_end(consumers: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    assert consumers(NUMBERS).run(Note(str(path)), until_end=True).done == 200
    found = lines(path)
    assert sorted(int(value) for value, _ in found) == list(range(200))
    pids = {pid for _, pid in found}
    assert os.getpid() not in pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(("value", "options", "what"), [
    (b"kill", {}, "exit code -9"), (b"hang", {"handler_timeout": 0.5}, "handler_timeout=0.5")])
def test_a_worker_that_dies_is_a_failed_attempt_and_is_replaced(
        consumers: Any, tmp_path: Path, value: bytes, options: dict[str, Any], what: str) -> None:
    path, letters = tmp_path / "ledger", []
    summary = consumers([*NUMBERS[:50], value, *NUMBERS[50:100]], retry=Retry(max_attempts=2, initial=0.01),
                        dead_letter=lambda message, failure: letters.append((message.value(), failure)),
                        **options).run(Note(str(path)), until_end=True)
    ((letter, failure),) = letters
    assert letter == value
    assert failure.attempts == 2
    assert isinstance(failure.error, WorkerDiedError)
    assert what in failure.reason
    assert {int(value) for value, _ in lines(path)} == set(range(100))
    assert (summary.done, summary.rejected) == (100, 1)


def test_without_retry_the_death_of_a_worker_ends_the_run(consumers: Any, tmp_path: Path) -> None:
    with pytest.raises(WorkerDiedError, match="exit code -9"):
        consumers([b"kill"]).run(Note(str(tmp_path / "ledger")))


def test_a_process_that_cannot_import_its_handler_ends_the_run_without_dead_letters(
        consumers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters: list[Any] = []
    monkeypatch.setattr(Note, "__reduce__", lambda self: (os._exit, (3,)))
    with pytest.raises(WorkerDiedError, match="exit code 3 before its first record"):
        consumers(NUMBERS, dead_letter=lambda *letter: letters.append(letter)).run(Note(str(tmp_path / "ledger")))
    assert letters == []


def test_an_exception_brings_its_traceback_along(consumers: Any, tmp_path: Path) -> None:
    with pytest.raises(ArithmeticError, match="asked for") as found:
        consumers([b"raise"]).run(Note(str(tmp_path / "ledger")))
    assert "parallel_handlers.py" in str(found.value.__cause__)


def test_an_exception_that_cannot_be_sent_has_its_text(consumers: Any, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="Odd: odd"):
        consumers([b"odd"]).run(Note(str(tmp_path / "ledger")))


def test_a_handler_that_no_process_can_import_is_refused(consumers: Any) -> None:
    with pytest.raises(ConfigurationError, match="top level of a module"):
        consumers([b"1"]).run(lambda message: None)


def test_a_handler_that_hangs_leaves_no_process(consumers: Any, tmp_path: Path) -> None:
    path, letters = tmp_path / "ledger", []
    consumer = consumers([b"hang", *NUMBERS[:20]], drain_timeout=0.2,
                         dead_letter=lambda *letter: letters.append(letter))
    done = threading.Thread(target=stop_at, args=(consumer, 20), daemon=True)
    done.start()
    summary = consumer.run(Note(str(path)))
    done.join(60)
    assert len(summary.unfinished) == 1
    assert letters == []
    assert not [child for child in multiprocessing.active_children() if child.name == "kconsumer-worker"]


def stop_at(consumer: ParallelConsumer, count: int) -> None:
    """Call stop() when so many records are done."""
    until = time.monotonic() + 60
    while consumer.metrics()["parallel_records_done_total"] < count and time.monotonic() < until:
        time.sleep(0.005)
    consumer.stop()
