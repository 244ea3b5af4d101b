"""Programs as users write them, and the ways in which they end: every commit that a real Kafka's consumer accepted is
stored, or the program heard of its failure."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import textwrap

import confluent_kafka
import pytest
from proxy import OFFSET_COMMIT, Proxy
from reading import PATIENCE, write

pytestmark = pytest.mark.timeout(180)

TOPIC = "programs"
PARTITIONS, RECORDS = 3, 20
PROTOCOLS = ("classic", "consumer")
_numbers = itertools.count()

# What the programs have in common. A commit counts as accepted when commit() has returned.
PRELUDE = """
import gc, json, os, signal, sys, threading, time
from kconsumer import Consumer, KafkaException, TopicPartition

def say(**what):
    os.write(1, json.dumps(what).encode() + b"\\n")

def on_commit(error, partitions):
    for p in partitions:
        wrong = error or p.error
        if wrong is not None:
            say(refused=p.partition, offset=p.offset, error=wrong.name())

def member(**more):
    return Consumer({{**{config!r}, "on_commit": on_commit, **more}})

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
    "exception in a with block": """
        try:
            with member() as consumer:
                consumer.subscribe([TOPIC])
                commit_each(consumer, take(consumer, ALL))
                raise ValueError
        except ValueError:
            pass
    """,
    "exception in a with block, with automatic commits": """
        try:
            with member(**{"enable.auto.commit": True}) as consumer:
                consumer.subscribe([TOPIC])
                commit_each(consumer, take(consumer, ALL))
                raise ValueError
        except ValueError:
            pass
    """,
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
    "dropped in a cycle": """
        class Worker:
            def __init__(self):
                self.consumer = member()
                self.consumer.subscribe([TOPIC], on_revoke=self.revoked)
            def revoked(self, consumer, partitions):
                pass
        worker = Worker()
        commit_each(worker.consumer, take(worker.consumer, ALL))
        del worker
        gc.collect()
    """,
    "in a cycle at the end of the interpreter": """
        class Worker:
            def __init__(self):
                self.consumer = member()
                self.consumer.subscribe([TOPIC], on_revoke=self.revoked)
            def revoked(self, consumer, partitions):
                pass
        gc.disable()
        worker = Worker()
        commit_each(worker.consumer, take(worker.consumer, ALL))
    """,
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
    "KeyboardInterrupt in on_revoke of close": """
        messages = []
        consumer = member()
        def on_revoke(*_):
            commit(consumer, offsets_after(messages))
            raise KeyboardInterrupt
        consumer.subscribe([TOPIC], on_revoke=on_revoke)
        messages += take(consumer, ALL)
        try:
            consumer.close()
        except KeyboardInterrupt:
            say(interrupted=True)
    """,
    "KeyboardInterrupt in on_revoke of unsubscribe": """
        messages = []
        consumer = member()
        def on_revoke(*_):
            commit(consumer, offsets_after(messages))
            raise KeyboardInterrupt
        consumer.subscribe([TOPIC], on_revoke=on_revoke)
        messages += take(consumer, ALL)
        try:
            consumer.unsubscribe()
        except KeyboardInterrupt:
            say(interrupted=True)
    """,
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
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
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
}


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
        proxy.lag(OFFSET_COMMIT, 0.3)
        yield proxy


@pytest.fixture(scope="module", autouse=True)
def _topic(kafka):
    kafka.create_topic(TOPIC, partitions=PARTITIONS)
    write(kafka, TOPIC, range(PARTITIONS), RECORDS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("ending", PROGRAMS)
def test_the_commits_of_a_program_that_ends_by(kafka, proxy, protocol, ending):
    group = f"programs-{next(_numbers)}"
    config = {"bootstrap.servers": proxy.bootstrap_servers, "group.id": group, "group.protocol": protocol,
              "auto.offset.reset": "earliest", "enable.auto.commit": False}
    program = PRELUDE.format(config=config, topic=TOPIC, count=PARTITIONS * RECORDS)
    ended = subprocess.run([sys.executable, "-c", program + textwrap.dedent(PROGRAMS[ending])], timeout=PATIENCE,
                           check=False, capture_output=True, text=True)
    said = [json.loads(line) for line in ended.stdout.splitlines()]
    print(ended.stderr, [line for line in said if "accepted" not in line])
    assert ended.returncode == 0
    accepted = {}
    for line in said:
        accepted.update({int(p): offset for p, offset in line.get("accepted", {}).items()})
    assert set(accepted) == set(range(PARTITIONS))
    assert [line for line in said if "refused" in line] == []
    assert stored(kafka, group) == accepted
