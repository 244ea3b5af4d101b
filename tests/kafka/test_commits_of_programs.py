"""Programs as users write them, and the ways in which they end: every commit that a real Kafka's consumer accepted is
stored, or the program heard of its failure."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import textwrap
import time

import confluent_kafka
import pytest
from proxy import OFFSET_COMMIT, Proxy
from reading import PATIENCE, write

from kconsumer import Consumer, TopicPartition

pytestmark = pytest.mark.timeout(180)

TOPIC = "programs"
PARTITIONS, RECORDS = 3, 20
PROTOCOLS = ("classic", "consumer")
_numbers = itertools.count()

# What the programs have in common. A commit counts as accepted when commit() has returned.
PRELUDE = """
import asyncio, gc, json, os, signal, sys, threading, time
from kconsumer import Consumer, KafkaException, TopicPartition
from kconsumer.aio import AIOConsumer

def say(**what):
    os.write(1, json.dumps(what).encode() + b"\\n")

def on_commit(error, partitions):
    for p in partitions:
        wrong = error or p.error
        if wrong is not None:
            say(refused=p.partition, offset=p.offset, error=wrong.name())

def member(kind=Consumer, **more):
    return kind({{**{config!r}, "on_commit": on_commit, **more}})

def commit(consumer, offsets):
    consumer.commit(offsets=[TopicPartition({topic!r}, p, o) for p, o in offsets.items()])
    say(accepted=offsets)

def take(consumer, count):
    found = []
    while len(found) < count:
        found += [m for m in consumer.consume(min(count - len(found), 7), 1.0) if m.error() is None]
    return found

def commit_each(consumer, messages):
    for m in messages:
        consumer.commit(m)
        say(accepted={{m.partition(): m.offset() + 1}})

async def reader():
    # An AIOConsumer that has read and committed all records.
    consumer = member(AIOConsumer)
    await consumer.subscribe([TOPIC])
    for _ in range(ALL):
        message = await consumer.getone()
        await consumer.commit(message)
        say(accepted={{message.partition(): message.offset() + 1}})
    return consumer

def offsets_after(messages):
    return {{m.partition(): m.offset() + 1 for m in messages}}

TOPIC = {topic!r}
ALL = {count}
"""

PROGRAMS = {
    "sys.exit": """
        consumer = member()
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL))
        sys.exit(0)
    """,
    "sys.exit in a with block": """
        with member() as consumer:
            consumer.subscribe([TOPIC])
            commit_each(consumer, take(consumer, ALL))
            sys.exit(0)
    """,
    **{f"exception in a with block, automatic commits {automatic}": f"""
        try:
            with member(**{{"enable.auto.commit": {automatic}}}) as consumer:
                consumer.subscribe([TOPIC])
                commit_each(consumer, take(consumer, ALL))
                raise ValueError
        except ValueError:
            pass
    """ for automatic in (False, True)},
    "SIGTERM handler that closes": """
        consumer = member()
        consumer.subscribe([TOPIC])
        messages = take(consumer, ALL)
        closed = []
        def close(*_):
            consumer.close()
            closed.append(True)
        signal.signal(signal.SIGTERM, close)
        commit_each(consumer, messages)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        try:
            while not closed:
                consumer.poll(1.0)
        except Exception as error:
            say(raised=repr(error))
    """,
    "SIGTERM handler that exits": """
        consumer = member()
        consumer.subscribe([TOPIC])
        messages = take(consumer, ALL)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        commit_each(consumer, messages)
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            consumer.poll(1.0)
    """,
    "close in another thread while one polls": """
        consumer = member()
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL))
        tried = threading.Event()
        def close():
            try:
                consumer.close()
            except (RuntimeError, KafkaException) as error:
                say(raised=repr(error))
            tried.set()
        threading.Timer(0.1, close).start()
        try:
            while not tried.is_set():
                consumer.poll(0.2)
        except RuntimeError as error:
            say(raised=repr(error))
    """,
    "commit in on_revoke of unsubscribe, without close": """
        consumer = member()
        messages = []
        consumer.subscribe([TOPIC], on_revoke=lambda *_: commit(consumer, offsets_after(messages)))
        messages += take(consumer, ALL)
        consumer.unsubscribe()
    """,
    "dropped": """
        consumer = member()
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL))
        del consumer
    """,
    **{f"in a cycle {when}": f"""
        class Worker:
            def __init__(self):
                self.consumer = member()
                self.consumer.subscribe([TOPIC], on_revoke=self.revoked)
            def revoked(self, consumer, partitions):
                pass
        gc.disable()
        worker = Worker()
        commit_each(worker.consumer, take(worker.consumer, ALL))
        {drop}
    """ for when, drop in (("that is collected", "del worker; gc.collect()"), ("at the end of the interpreter", ""))},
    "a daemon thread polls at the end of the interpreter": """
        consumer = member()
        consumer.subscribe([TOPIC])
        done = threading.Event()
        def work():
            commit_each(consumer, take(consumer, ALL))
            done.set()
            while True:
                consumer.poll(1.0)
        threading.Thread(target=work, daemon=True).start()
        done.wait()
    """,
    "held by the traceback of the exception that ends the program": """
        sys.excepthook = lambda *_: None
        def work():
            consumer = member()
            consumer.subscribe([TOPIC])
            commit_each(consumer, take(consumer, ALL))
            raise ValueError
        try:
            work()
        except ValueError as error:
            kept = error
    """,
    "fork, the child ends, the parent closes": """
        consumer = member()
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL))
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        consumer.close()
    """,
    "fork, the child closes, the parent closes": """
        consumer = member()
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL))
        child = os.fork()
        if child == 0:
            consumer.close()
            del consumer
            os._exit(0)
        consumer.close()
        os.waitpid(child, 0)
    """,
    "commit, assign, close": """
        consumer = member()
        consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(3)])
        commit_each(consumer, take(consumer, ALL))
        consumer.assign([TopicPartition(TOPIC, 0, 5)])
        consumer.close()
    """,
    "commit, unassign, drop": """
        consumer = member()
        consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(3)])
        commit_each(consumer, take(consumer, ALL))
        consumer.unassign()
        del consumer
    """,
    "a member commits, assigns itself, closes": """
        consumer = member()
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL))
        try:
            consumer.assign([TopicPartition(TOPIC, 0, 5)])
        except KafkaException as error:
            say(raised=repr(error))
        consumer.close()
    """,
    "a member commits, unsubscribes, assigns, commits, closes": """
        consumer = member()
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL - 20))
        consumer.unsubscribe()
        consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(3)])
        commit_each(consumer, take(consumer, ALL))
        consumer.close()
    """,
    "pause, seek and commit": """
        consumer = member()
        consumer.subscribe([TOPIC])
        messages = take(consumer, ALL)
        for m in messages:
            place = TopicPartition(m.topic(), m.partition())
            consumer.pause([place])
            consumer.commit(m)
            say(accepted={m.partition(): m.offset() + 1})
            consumer.seek(TopicPartition(m.topic(), m.partition(), 3))
            consumer.resume([place])
        consumer.close()
    """,
    "pause, seek and commit, with automatic commits": """
        consumer = member(**{"enable.auto.commit": True})
        consumer.subscribe([TOPIC])
        messages = take(consumer, ALL)
        for m in messages:
            place = TopicPartition(m.topic(), m.partition())
            consumer.seek(TopicPartition(m.topic(), m.partition(), 3))
            consumer.pause([place])
        commit_each(consumer, messages)
        consumer.close()
        say(automatic=True)
    """,
    **{f"KeyboardInterrupt in on_revoke of {end}": f"""
        messages = []
        consumer = member()
        def on_revoke(*_):
            commit(consumer, offsets_after(messages))
            raise KeyboardInterrupt
        consumer.subscribe([TOPIC], on_revoke=on_revoke)
        messages += take(consumer, ALL)
        try:
            consumer.{end}()
        except KeyboardInterrupt:
            say(interrupted=True)
    """ for end in ("close", "unsubscribe")},
    "KeyboardInterrupt in on_revoke of a rebalance": """
        messages = []
        consumer, other = member(), member()
        def on_revoke(_, partitions):
            commit(consumer, offsets_after(messages))
            raise KeyboardInterrupt
        consumer.subscribe([TOPIC], on_revoke=on_revoke)
        messages += take(consumer, ALL)
        other.subscribe([TOPIC])
        try:
            while True:
                consumer.poll(0.1)
                other.poll(0.1)
        except KeyboardInterrupt:
            say(interrupted=True)
    """,
    "SIGINT while close waits": """
        signal.signal(signal.SIGINT, signal.default_int_handler)
        consumer = member()
        consumer.subscribe([TOPIC], on_revoke=lambda *_: os.kill(os.getpid(), signal.SIGINT))
        commit_each(consumer, take(consumer, ALL))
        try:
            consumer.close()
        except KeyboardInterrupt:
            say(interrupted=True)
    """,
    "SIGINT while it commits, then close": """
        signal.signal(signal.SIGINT, signal.default_int_handler)
        consumer = member()
        consumer.subscribe([TOPIC])
        messages = take(consumer, ALL)
        commit_each(consumer, messages)
        try:
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True:
                consumer.commit(messages[-1])
        except KeyboardInterrupt:
            say(interrupted=True)
        consumer.close()
    """,
    "close in atexit": """
        import atexit
        consumer = member()
        atexit.register(consumer.close)
        consumer.subscribe([TOPIC])
        commit_each(consumer, take(consumer, ALL))
    """,
    "commit in atexit": """
        import atexit
        consumer = member()
        consumer.subscribe([TOPIC])
        messages = take(consumer, ALL)
        atexit.register(commit_each, consumer, messages)
    """,
    "a loop that ends by break": """
        consumer = member()
        consumer.subscribe([TOPIC])
        count = 0
        for m in consumer:
            commit_each(consumer, [m])
            count += 1
            if count == ALL:
                break
    """,
    "commit in on_assign, then the end": """
        consumer = member()
        consumer.subscribe([TOPIC], on_assign=lambda *_: commit(consumer, {0: 7, 1: 8, 2: 9}))
        while not consumer.assignment():
            consumer.poll(0.1)
    """,
    "commit in on_assign that raises": """
        consumer = member()
        def on_assign(*_):
            commit(consumer, {0: 7, 1: 8, 2: 9})
            raise KeyboardInterrupt
        consumer.subscribe([TOPIC], on_assign=on_assign)
        try:
            while True:
                consumer.poll(0.1)
        except KeyboardInterrupt:
            pass
    """,
    "commit without a subscription, at once the end": """
        consumer = member()
        commit(consumer, {0: 7, 1: 8, 2: 9})
    """,
    "an event loop polls in a daemon thread": """
        done = threading.Event()
        async def work():
            consumer = await reader()
            done.set()
            while True:
                await consumer.poll(1.0)
        threading.Thread(target=asyncio.run, args=(work(),), daemon=True).start()
        done.wait()
    """,
    "an event loop runs for ever in a daemon thread": """
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        kept = asyncio.run_coroutine_threadsafe(reader(), loop).result()
    """,
    "an event loop is blocked in a daemon thread": """
        done = threading.Event()
        async def work():
            kept = await reader()
            done.set()
            time.sleep(60)
        threading.Thread(target=asyncio.run, args=(work(),), daemon=True).start()
        done.wait()
    """,
    "sys.exit in a coroutine": """
        async def work():
            global kept
            kept = await reader()
            sys.exit(0)
        asyncio.run(work())
    """,
    "sys.exit in a coroutine that has the only reference": """
        async def work():
            kept = await reader()
            sys.exit(0)
        asyncio.run(work())
    """,
    "an event loop that is not closed": """
        loop = asyncio.new_event_loop()
        kept = loop.run_until_complete(reader())
    """,
}

# Programs that end while one commit of each consumer is in flight. They state when they end.
IN_FLIGHT = {
    "a consumer": """
        consumer = member()
        commit(consumer, {0: 7})
    """,
    "two consumers": """
        consumers = [member(), member()]
        for consumer in consumers:
            commit(consumer, {0: 7})
    """,
    "two consumers of daemon threads": """
        def work(done):
            consumer = member()
            commit(consumer, {0: 7})
            done.set()
            consumer.poll(60)
        for done in (threading.Event(), threading.Event()):
            threading.Thread(target=work, args=(done,), daemon=True).start()
            done.wait()
    """,
    "an event loop in a daemon thread": """
        done = threading.Event()
        async def work():
            consumer = member(AIOConsumer)
            await consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7)])
            done.set()
            await consumer.poll(60)
        threading.Thread(target=asyncio.run, args=(work(),), daemon=True).start()
        done.wait()
    """,
    "an event loop that has ended": """
        consumer = member(AIOConsumer)
        asyncio.run(consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7)]))
    """,
}
# The end of a program waits for commits as long as a busy machine may take for them, not for a second only.
PATIENT = """
from kconsumer.consumer import at_exit
at_exit.LIMIT_S = 20
"""
WARNING = "the program ended before the last commits of group"


def stored(cluster, group):
    """The group's committed offsets, as librdkafka reads them."""
    asking = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    try:
        found = asking.committed([confluent_kafka.TopicPartition(TOPIC, p) for p in range(PARTITIONS)], PATIENCE)
        return {p.partition: p.offset for p in found}
    finally:
        asking.close()


@pytest.fixture(scope="module")
def proxy(kafka):
    """The way to the broker, on which a commit takes so long that no program ends after it by chance."""
    with Proxy(kafka) as proxy:
        proxy.lag(OFFSET_COMMIT, 0.15)
        yield proxy


@pytest.fixture
def faulty(kafka):
    """A way to the broker whose faults are those of one test."""
    with Proxy(kafka) as proxy:
        yield proxy


@pytest.fixture(scope="module", autouse=True)
def _topic(kafka):
    kafka.create_topic(TOPIC, partitions=PARTITIONS)
    write(kafka, TOPIC, range(PARTITIONS), RECORDS)
    with Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "first"}) as first:
        first.committed([TopicPartition(TOPIC, 0)], PATIENCE)  # now the broker has its topic of offsets


@pytest.fixture
def group():
    return f"programs-{next(_numbers)}"


class Ended:
    """A program that has run to its end, and its statements."""

    def __init__(self, way, group, text, protocol="classic", beginning=PATIENT):
        config = {"bootstrap.servers": way.bootstrap_servers, "group.id": group, "group.protocol": protocol,
                  "auto.offset.reset": "earliest", "enable.auto.commit": False}
        program = beginning + PRELUDE.format(config=config, topic=TOPIC, count=PARTITIONS * RECORDS)
        program += textwrap.dedent(text)
        program += "\nsay(ends=time.monotonic())\n"
        ended = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, check=False, capture_output=True,
                               text=True)
        self.ended_s = time.monotonic()
        self.log = ended.stderr
        self.said = [json.loads(line) for line in ended.stdout.splitlines()]
        print(self.log, [line for line in self.said if "accepted" not in line])
        assert ended.returncode == 0

    def about(self, what):
        return [line for line in self.said if what in line]

    @property
    def waited_s(self):
        """From its last statement to the end of the process."""
        return self.ended_s - self.about("ends")[0]["ends"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("ending", PROGRAMS)
def test_the_commits_of_a_program_that_ends_by(kafka, proxy, group, protocol, ending):
    ended = Ended(proxy, group, PROGRAMS[ending], protocol)
    accepted = {}
    for line in ended.about("accepted"):
        accepted.update({int(p): offset for p, offset in line["accepted"].items()})
    assert set(accepted) == set(range(PARTITIONS))
    assert ended.about("refused") == []
    assert stored(kafka, group) == accepted


@pytest.mark.parametrize("program", IN_FLIGHT)
def test_the_end_waits_for_a_commit_that_is_sent_again(kafka, faulty, group, program):
    """The connection breaks, and the commit waits for its backoff and for the coordinator."""
    faulty.cut(OFFSET_COMMIT, 1)
    faulty.lag(OFFSET_COMMIT, 0.1)
    ended = Ended(faulty, group, IN_FLIGHT[program])
    assert faulty.cuts(OFFSET_COMMIT) == 1
    assert ended.about("refused") == []
    assert stored(kafka, group)[0] == 7
    assert WARNING not in ended.log


@pytest.mark.parametrize("program", IN_FLIGHT)
def test_a_program_whose_commit_gets_no_answer_ends_after_a_second_with_a_warning(kafka, faulty, group, program):
    faulty.lag(OFFSET_COMMIT, 2 * PATIENCE)
    for attempt in range(3):  # a busy machine makes it longer
        ended = Ended(faulty, f"{group}-{attempt}", IN_FLIGHT[program], beginning="")
        assert ended.log.count(f"{WARNING} {group}-{attempt}: ") == (2 if program.startswith("two") else 1)
        if ended.waited_s < 1.8:
            break
    assert 0.9 < ended.waited_s < 1.8


def test_the_callbacks_of_commits_run_before_the_program_ends(proxy, group):
    """One of them raises an exception, which ends the wait for no other."""
    ended = Ended(proxy, group, """
        def told(error, partitions):
            say(told=[[p.partition, p.offset] for p in partitions])
            raise ValueError(partitions[0].offset)
        done = threading.Event()
        def work():
            consumer = member(on_commit=told)
            commit(consumer, {0: 7})
            time.sleep(0.1)
            commit(consumer, {1: 8})
            done.set()
            time.sleep(60)
        threading.Thread(target=work, daemon=True).start()
        done.wait()
    """)
    assert [line["told"] for line in ended.about("told")] == [[[0, 7]], [[1, 8]]]
    assert "ValueError: 7" in ended.log
    assert "ValueError: 8" in ended.log


@pytest.mark.parametrize("is_coroutine", [False, True])
def test_the_callbacks_of_commits_after_the_end_of_the_event_loop(kafka, proxy, group, is_coroutine):
    """A coroutine cannot run any more; the commit is stored all the same."""
    ended = Ended(proxy, group, f"""
        {"async def" if is_coroutine else "def"} told(error, partitions):
            say(told=partitions[0].offset)
        consumer = member(AIOConsumer, on_commit=told)
        asyncio.run(consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7)]))
    """)
    assert stored(kafka, group)[0] == 7
    assert [line["told"] for line in ended.about("told")] == ([] if is_coroutine else [7])
    assert ("a callback did not run" in ended.log) == is_coroutine
    assert "never awaited" not in ended.log
