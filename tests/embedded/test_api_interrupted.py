"""Calls that something comes between: another thread, a callback's own call, a signal, the interpreter's end."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from api_helpers import PATIENCE, offsets, poll_until, reader, take, until

import kconsumer
from kconsumer import Consumer, TopicPartition

RECORDS = 200
EXCLUSIVE = {
    "poll": lambda c: c.poll(PATIENCE),
    "consume": lambda c: c.consume(5, PATIENCE),
    "consume_batch": lambda c: c.consume_batch(timeout=PATIENCE),
    "next": next,
}


@pytest.fixture(scope="module")
def topic(embedded):
    name = "interrupted"
    embedded.create_topic(name)
    embedded.produce(name, (b"v%d" % i for i in range(RECORDS)))
    return name


@pytest.fixture
def drained(embedded, topic):
    """A consumer with nothing left to read: its calls wait."""
    with reader(embedded, topic) as consumer:
        take(consumer, RECORDS)
        yield consumer


@contextmanager
def handler_of(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def signal_after(seconds, number):
    """This process gets the signal a little later."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    try:
        yield
    finally:
        timer.join()


# ---- another thread


@pytest.mark.parametrize("name", [*EXCLUSIVE, "close"])
def test_a_second_thread_inside_is_refused(drained, name):
    before = drained.metrics()["poll_waits_total"]
    waiting = threading.Thread(target=lambda: drained.poll(PATIENCE))
    waiting.start()
    until(lambda: drained.metrics()["poll_waits_total"] > before)
    call = EXCLUSIVE.get(name, lambda c: c.close())
    with pytest.raises(kconsumer.IllegalStateError):
        call(drained)
    assert waiting.is_alive()
    drained.seek(TopicPartition(drained.assignment()[0].topic, 0, 0))  # any other call works, and ends the wait
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_other_threads_steer_a_reader(embedded, topic):
    stop = threading.Event()
    failures = []

    def steer(consumer):
        here = [TopicPartition(topic, 0)]
        try:
            while not stop.is_set():
                consumer.pause(here)
                consumer.resume(here)
                consumer.seek(TopicPartition(topic, 0, 10))
                consumer.position(here)
                consumer.lag()
                consumer.metrics()
                consumer.set_config({"fetch.wait.max.ms": 5})
        except BaseException as error:
            failures.append(error)

    with reader(embedded, topic) as consumer:
        threads = [threading.Thread(target=steer, args=(consumer,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 2
        last = None
        while time.monotonic() < deadline:
            for m in consumer.consume(20, 0.01):
                assert m.value() == b"v%d" % m.offset()
                assert last is None or m.offset() in (last + 1, 10, 0)
                last = m.offset()
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert failures == []
        consumer.seek(TopicPartition(topic, 0, 0))
        assert offsets(take(consumer, RECORDS)) == list(range(RECORDS))


def test_a_slow_callback_elsewhere_does_not_hold_up_a_call(embedded, topic):
    """The thread of list_topics is in stats_cb, events go on coming: the reader keeps its deadline, and its core."""
    inside, leave = threading.Event(), threading.Event()

    def slow(_):
        inside.set()
        leave.wait(PATIENCE)

    with reader(embedded, topic, statistics_interval_ms=20, stats_cb=slow) as consumer:
        until(lambda: consumer.metrics()["fetched_records_total"] == RECORDS)
        asking = threading.Thread(target=lambda: [consumer.list_topics(timeout=PATIENCE) for _ in range(1000)
                                                  if not inside.is_set()])
        asking.start()
        assert inside.wait(PATIENCE)
        time.sleep(0.1)  # another document is due
        try:
            assert offsets(take(consumer, 10)) == list(range(10))
            assert len(consumer.consume(RECORDS - 10, PATIENCE)) == RECORDS - 10
            for call in (lambda: consumer.poll(0.5), lambda: consumer.consume(3, 0.5),
                         lambda: consumer.consume_batch(timeout=0.5)):
                began, cpu = time.monotonic(), time.thread_time()
                got = call()
                assert got is None or len(got) == 0
                assert 0.4 < time.monotonic() - began < PATIENCE / 2
                assert time.thread_time() - cpu < 0.2, "the wait spins"
        finally:
            leave.set()
            asking.join(PATIENCE)


# ---- a call from a callback


@pytest.mark.parametrize("name", [*EXCLUSIVE, "close"])
def test_a_call_from_a_callback_is_refused(embedded, topic, name):
    raised = []

    def call_again(_):
        try:
            EXCLUSIVE.get(name, lambda c: c.close())(consumer)
        except Exception as error:
            raised.append(error)

    with reader(embedded, topic, statistics_interval_ms=30, stats_cb=call_again) as consumer:
        take(consumer, 5)
        poll_until(consumer, lambda: raised)
        assert isinstance(raised[0], kconsumer.IllegalStateError)


def test_other_calls_from_a_callback_work(embedded, topic):
    seen = []

    def ask(_):
        seen.append((consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE), consumer.assignment()))

    with reader(embedded, topic, statistics_interval_ms=30, stats_cb=ask) as consumer:
        poll_until(consumer, lambda: seen)
        assert seen[0] == ((0, RECORDS), [TopicPartition(topic, 0)])


# ---- signals


@pytest.mark.parametrize("name", EXCLUSIVE)
@pytest.mark.parametrize("endless", [False, True], ids=["with a timeout", "for ever"])
def test_ctrl_c_ends_a_wait_at_once(drained, name, endless):
    call = {"poll": lambda c: c.poll(), "consume": lambda c: c.consume(5), "next": next,
            "consume_batch": lambda c: c.consume_batch()}[name] if endless else EXCLUSIVE[name]
    began = time.monotonic()
    with handler_of(signal.SIGINT, signal.default_int_handler), signal_after(0.2, signal.SIGINT):
        with pytest.raises(KeyboardInterrupt):
            call(drained)
    assert time.monotonic() - began < PATIENCE / 2
    assert drained.poll(0) is None  # goes on working


def test_ctrl_c_ends_a_question():
    with kconsumer.testing.EmbeddedCluster(1) as cluster:
        cluster.set_rtt(60_000)
        with Consumer({"bootstrap.servers": cluster.bootstrap_servers}) as consumer:
            began = time.monotonic()
            with handler_of(signal.SIGINT, signal.default_int_handler), signal_after(0.2, signal.SIGINT):
                with pytest.raises(KeyboardInterrupt):
                    consumer.list_topics(timeout=PATIENCE)
            assert time.monotonic() - began < PATIENCE / 2


def test_records_of_an_interrupted_consume_come_again(embedded, topic):
    with reader(embedded, topic) as consumer:
        take(consumer, 7)
        until(lambda: consumer.metrics()["fetched_records_total"] == RECORDS)
        with handler_of(signal.SIGINT, signal.default_int_handler), signal_after(0.3, signal.SIGINT):
            with pytest.raises(KeyboardInterrupt):
                consumer.consume(RECORDS, PATIENCE)
        assert consumer.position([TopicPartition(topic, 0)])[0].offset == 7
        assert offsets(consumer.consume(RECORDS - 7, PATIENCE)) == list(range(7, RECORDS))


def test_a_signal_that_is_handled_goes_unnoticed(drained):
    seen = []
    began = time.monotonic()
    with handler_of(signal.SIGUSR1, lambda *_: seen.append(1)), signal_after(0.2, signal.SIGUSR1):
        assert drained.poll(0.8) is None
    assert seen == [1]
    assert time.monotonic() - began > 0.7


def test_a_call_from_a_signal_handler_is_refused(drained):
    raised = []

    def call_again(*_):
        for call in (*EXCLUSIVE.values(), lambda c: c.close()):
            try:
                call(drained)
            except Exception as error:
                raised.append(error)
        drained.wakeup()

    before = drained.metrics()["poll_waits_total"]

    def send():
        until(lambda: drained.metrics()["poll_waits_total"] > before)
        os.kill(os.getpid(), signal.SIGUSR1)

    with handler_of(signal.SIGUSR1, call_again):
        sending = threading.Thread(target=send)
        sending.start()
        with pytest.raises(kconsumer.WakeupError):
            drained.poll()
        sending.join()
    assert len(raised) == len(EXCLUSIVE) + 1
    assert all(isinstance(error, kconsumer.IllegalStateError) for error in raised)


def test_a_wakeup_from_a_signal_handler_ends_the_wait(drained):
    with handler_of(signal.SIGTERM, lambda *_: drained.wakeup()), signal_after(0.2, signal.SIGTERM):
        began = time.monotonic()
        with pytest.raises(kconsumer.WakeupError):
            drained.poll()
        assert time.monotonic() - began < PATIENCE / 2


def test_signals_never_reach_the_network_thread(drained):
    """Were one delivered there, the main thread would sleep on: many in a row find no such case."""
    seen = []
    with handler_of(signal.SIGUSR1, lambda *_: seen.append(1)):
        for i in range(20):
            with signal_after(0.01, signal.SIGUSR1):
                drained.poll(0.03)
            assert len(seen) == i + 1


def test_records_of_an_interrupted_reader_at_full_rate_come_exactly_once(embedded, topic_name):
    """Ctrl-C at any moment, over and over: nothing is lost, nothing comes twice."""
    name = topic_name()
    count = 20_000
    embedded.create_topic(name)
    embedded.produce(name, (b"%d" % i for i in range(count)))
    found, interrupts, armed = [], 0, False

    def interrupt(*_):
        if armed:
            raise KeyboardInterrupt

    with reader(embedded, name) as consumer, handler_of(signal.SIGALRM, interrupt):
        # The first call waits for the connection, longer than the timer does.
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0007)
        deadline = time.monotonic() + 4 * PATIENCE
        try:
            while len(found) < count and time.monotonic() < deadline:
                got = []
                try:
                    armed = True
                    got = consumer.consume(500, 0.5)
                    armed = False
                except KeyboardInterrupt:
                    armed = False
                    interrupts += 1
                before = len(found)
                found += [m.offset() for m in got]
                # The interrupt may have come after consume returned: what was returned counts.
                where = consumer_position(consumer, name)
                if where > (found[-1] + 1 if found else 0):
                    found += list(range(before, where))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert interrupts > 0
    assert found == list(range(count))


def consumer_position(consumer, topic):
    return consumer.position([TopicPartition(topic, 0)])[0].offset


# ---- the interpreter's end

EXITING = """
import sys, threading
from kconsumer import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "auto.offset.reset": "earliest"})
consumer.assign([TopicPartition(sys.argv[2], 0)])
consumer.itself = consumer
assert consumer.poll(20).offset() == 0
threading.Thread(target=lambda: consumer.poll(60), daemon=True).start()
"""


def run_python(code, cluster, topic):
    return subprocess.run([sys.executable, "-c", code, cluster.bootstrap_servers, topic], timeout=90, check=False,
                          capture_output=True, text=True)


def test_the_interpreter_ends_with_a_consumer_open(embedded, topic):
    done = run_python(EXITING, embedded, topic)
    assert (done.returncode, done.stderr) == (0, "")
