"""Consumers and fork(): a child can use its own consumers only, and may drop, close or leave any of them.

Each case runs in a separate process: a fault there is a signal, a hang ends by the alarm of the child.
"""

import subprocess
import sys

import pytest

RECORDS = 200
LARGE = 5000  # a value of this size stays in its arena until value() is called

PRELUDE = """
import faulthandler, gc, multiprocessing, os, signal, sys, threading, traceback, uuid
from kconsumer import Consumer, TopicPartition
faulthandler.enable()
SERVERS, TOPIC, MODE = sys.argv[1:4]


def consumer(**more):
    config = {"bootstrap.servers": SERVERS, "auto.offset.reset": "earliest"}
    if MODE != "assigned":
        config.update({"group.id": f"fork-{uuid.uuid4()}", "group.protocol": MODE, "statistics.interval.ms": 20})
    made = Consumer({**config, **more})
    if MODE == "assigned":
        made.assign([TopicPartition(TOPIC, 0)])
    else:
        made.subscribe([TOPIC])
    return made


def take(consumer, *offsets):
    found = [consumer.poll(20).offset() for _ in offsets]
    assert found == list(offsets), found


def refused(call):
    try:
        call()
    except RuntimeError as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError("the parent's consumer can be used")


def in_child(body, ends=os._exit):
    '''Run body() in a forked child, which must end well. It ends as the test says: at once or as a program does.'''
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            body()
            gc.collect()
        except SystemExit:  # of a grandchild
            raise
        except BaseException:
            traceback.print_exc()
            os._exit(99)
        ends(0)
    status = os.waitpid(pid, 0)[1]
    assert status == 0, f"the child ended with {status:#x}"
"""

MODES = pytest.mark.parametrize("mode", ["assigned", "classic", "consumer"])
ENDS = pytest.mark.parametrize("ends", ["os._exit", "sys.exit"])


@pytest.fixture(scope="module")
def topic(embedded):
    name = "forked"
    embedded.create_topic(name)
    embedded.produce(name, (b"v%d" % i + b"." * LARGE for i in range(RECORDS)))
    return name


@pytest.fixture
def run(embedded, topic):
    def run(code, mode="assigned", **names):
        for name, value in names.items():
            code = code.replace(name, value)
        done = subprocess.run([sys.executable, "-c", PRELUDE + code, embedded.bootstrap_servers, topic, mode],
                              timeout=240, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return run


# ---- a consumer of the parent's, in the child

REFUSED = """
parents = consumer()
take(parents, 0, 1, 2)
descriptors = len(os.listdir("/proc/self/fd"))


def child():
    global parents
    here = [TopicPartition(TOPIC, 0)]
    for call in (lambda: parents.poll(0), lambda: parents.consume(1, 0), lambda: parents.consume_batch(timeout=0),
                 lambda: next(parents), lambda: parents.assign(here), lambda: parents.assignment(),
                 lambda: parents.seek(here[0]), lambda: parents.position(here), lambda: parents.pause(here),
                 lambda: parents.list_topics(timeout=1), lambda: parents.wakeup(), lambda: parents.metrics(),
                 lambda: parents.subscribe([TOPIC]), lambda: parents.unsubscribe(), lambda: parents.commit(),
                 lambda: parents.committed(here), lambda: parents.memberid()):
        refused(call)
    parents.close()
    del parents, call
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) < descriptors
    own = consumer()
    take(own, 0, 1)
    own.close()


in_child(child, ENDS)
take(parents, *range(3, 100))
parents.close()
"""


@ENDS
@MODES
def test_a_child_cannot_use_the_parents_consumer_and_the_parent_continues(run, mode, ends):
    run(REFUSED, mode, ENDS=ends)


NOT_TOUCHED = """
from tests.core.inside import network_thread_of, stop_asked
parents = consumer()
take(parents, 0)
thread = network_thread_of(parents)


def child():
    global parents
    del parents
    gc.collect()
    # Asked to stop, it would have been joined as well.
    assert not stop_asked(thread)


in_child(child)
take(parents, 1, 2)
parents.close()
assert stop_asked(thread)
"""


@MODES
def test_a_child_that_drops_its_parents_consumer_joins_no_thread(run, mode):
    run(NOT_TOUCHED, mode)


BUSY = """
parents = consumer()
take(parents, 0)
stopping = False


def read():
    expected = 1
    while not stopping:
        for message in parents.consume(3, 0.01):
            assert message.error() is None, message.error()
            assert message.offset() == expected, (message.offset(), expected)
            expected += 1
        if expected == RECORDS:
            parents.seek(TopicPartition(TOPIC, 0, 0))
            expected = 0


def child():
    global parents
    refused(lambda: parents.poll(0))
    del parents
    gc.collect()
    own = Consumer({"bootstrap.servers": SERVERS})
    own.assign([TopicPartition(TOPIC, 0, 7)])
    take(own, 7)


reader = threading.Thread(target=read)
reader.start()
try:
    for _ in range(10):
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(60)
        assert process.exitcode == 0, process.exitcode
        in_child(child)
finally:
    stopping = True
    reader.join()
parents.close()
""".replace("RECORDS", str(RECORDS))


@MODES
def test_a_fork_while_another_thread_polls(run, mode):
    """In the child that thread is gone, in the middle of whatever it did; so is the network thread."""
    run(BUSY, mode)


KEPT = """
parents = consumer()
first = parents.poll(20)
messages = parents.consume(5, 20)
batch = parents.consume_batch(timeout=20)


def child():
    global parents, messages, batch
    assert first.value().startswith(b"v0."), first.value()[:10]
    assert [m.value()[:2] for m in messages] == [b"v1", b"v2", b"v3", b"v4", b"v5"]
    assert batch[0].value().startswith(b"v6.")
    del parents
    assert batch[1].value().startswith(b"v7.")
    del messages, batch
    gc.collect()


in_child(child, ENDS)
assert first.value().startswith(b"v0.") and batch[0].value().startswith(b"v6.")
parents.close()
"""


@ENDS
def test_messages_and_batches_of_the_parent_are_readable_in_the_child(run, ends):
    run(KEPT, ENDS=ends)


# ---- a consumer that was made in the child

OWN = {
    "dropped": "own = consumer(); take(own, 0, 1); del own; gc.collect()",
    "dropped at once": "own = consumer(); del own; gc.collect()",
    "in a cycle": "own = consumer(); take(own, 0); own.itself = own; del own; gc.collect()",
    "closed": "own = consumer(); take(own, 0, 1); own.close(); del own; gc.collect()",
    "left open": "globals()['own'] = consumer(); take(own, 0, 1)",
}


@ENDS
@pytest.mark.parametrize("what", OWN)
@MODES
def test_a_consumer_made_in_the_child(run, mode, what, ends):
    run(f"""
def child():
    for _ in range(3 if MODE == "assigned" else 1):
        {OWN[what]}


in_child(child, {ends})
""", mode)


STOPPED_FIRST = """
from tests.core.inside import network_thread_of, stop_asked
from tests.core.inside import mark_end
stopped = []


class Marker:
    def __del__(self):
        stopped.append(stop_asked(self.thread))


def child():
    own = consumer()
    marker = Marker()
    marker.thread = network_thread_of(own)
    mark_end(own, marker)
    del marker
    del own
    assert stopped == [True], stopped


in_child(child)
"""


@pytest.mark.parametrize("mode", ["classic", "consumer"])
def test_the_network_thread_of_a_child_process_ends_before_its_memory(run, mode):
    run(STOPPED_FIRST, mode)


GENERATIONS = """
parents = consumer()
take(parents, 0)


def child():
    global parents
    own = consumer()
    take(own, 0, 1)

    def grandchild():
        global parents
        nonlocal own
        refused(lambda: parents.poll(0))
        refused(lambda: own.poll(0))
        del parents, own
        gc.collect()
        mine = consumer()
        take(mine, 0)
        del mine
        gc.collect()

    in_child(grandchild, ENDS)
    take(own, 2, 3)
    del own
    gc.collect()
    refused(lambda: parents.poll(0))


in_child(child, ENDS)
take(parents, 1, 2)
parents.close()
"""


@ENDS
@MODES
def test_a_grandchild(run, mode, ends):
    run(GENERATIONS, mode, ENDS=ends)


# ---- a fork in the middle of a call

FORKING = """
forked = []


def fork(*_):
    '''Fork; the child goes on in the call that this interrupts.'''
    if forked:
        return
    forked.append(os.fork())
    if forked[0] == 0:
        signal.alarm(60)


def after(call):
    '''Make the call until it has forked. In the child it must be refused, and the consumer can be dropped.'''
    try:
        while not forked:
            call()
    except RuntimeError as error:
        if not forked or forked[0] != 0 or "fork" not in str(error):
            raise
        return True
    assert forked[0] != 0, "the child goes on with the parent's consumer"
    status = os.waitpid(forked[0], 0)[1]
    assert status == 0, f"the child ended with {status:#x}"
    return False
"""

IN_CALLBACK = FORKING + """
hooks = {"stats_cb": {"stats_cb": fork, "statistics.interval.ms": 20},
         "logger": {"logger": type("Logger", (), {"log": fork})(), "debug": "all"},
         "on_commit": {"on_commit": fork, "auto.commit.interval.ms": 20}}
parents = consumer(**hooks.get("WHAT", {}))
if "WHAT" in ("on_assign", "on_revoke"):
    parents.subscribe([TOPIC], **{"WHAT": fork})
calls = {"poll": lambda: parents.poll(0.1), "consume": lambda: parents.consume(2, 0.1),
         "consume_batch": lambda: parents.consume_batch(timeout=0.1),
         "list_topics": lambda: parents.list_topics(timeout=20), "unsubscribe": lambda: parents.unsubscribe(),
         "close": lambda: parents.close()}
if "WHAT" in ("on_commit", "on_revoke"):
    take(parents, 0, 1, 2)
if after(calls["CALL"]):
    del parents, calls
    gc.collect()
    os._exit(0)
if "CALL" in ("poll", "consume", "consume_batch", "list_topics"):
    assert parents.list_topics(timeout=20).topics
parents.close()
"""

CALLBACKS = [(what, call) for what in ("stats_cb", "logger", "on_commit", "on_assign")
             for call in ("poll", "consume", "consume_batch")]
CALLBACKS += [("stats_cb", "list_topics"), ("on_revoke", "unsubscribe"), ("on_revoke", "close")]


@pytest.mark.parametrize(("what", "call"), CALLBACKS)
def test_a_fork_in_a_callback(run, what, call):
    run(IN_CALLBACK, "classic", WHAT=what, CALL=call)


IN_SIGNAL = FORKING + """
parents = consumer()
parents.seek(TopicPartition(TOPIC, 0, RECORDS)) if MODE == "assigned" else None
signal.signal(signal.SIGUSR1, fork)
calls = {"poll": lambda: parents.poll(5), "consume": lambda: parents.consume(500, 5),
         "consume_batch": lambda: parents.consume_batch(timeout=5)}
waits = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
waits.start()
if after(calls["CALL"]):
    del parents, calls
    gc.collect()
    os._exit(0)
parents.close()
"""


@pytest.mark.parametrize("call", ["poll", "consume", "consume_batch"])
def test_a_fork_in_a_signal_handler(run, call):
    run(IN_SIGNAL.replace("RECORDS", str(RECORDS)), CALL=call)
