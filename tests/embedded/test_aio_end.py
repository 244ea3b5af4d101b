"""AIOConsumer: callbacks, the end, loops and processes; on asyncio's loop and on uvloop."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import time
import types
import warnings
import weakref

import api_helpers
import pytest
from aio_helpers import member, reader, run_on, take, until, values, write
from api_helpers import PATIENCE, settings

from kconsumer import OFFSET_END, Consumer, IllegalStateError, KafkaException, TopicPartition
from kconsumer.aio import AIOConsumer
from kconsumer.testing import EmbeddedCluster

_HEARTBEAT, _LEAVE_GROUP = 12, 13  # API keys
_UNKNOWN_MEMBER_ID = 25


@pytest.fixture(scope="module")
def embedded():
    """A cluster whose groups need not wait for further members."""
    with EmbeddedCluster() as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=20)
        yield cluster


# ---- callbacks


def test_records_in_hand_are_returned_before_a_rebalance_that_comes_while_they_are_collected(
    embedded, topic, run, topic_name, monkeypatch
):
    """The call is woken by something else, and looks for callbacks just as the rebalance arrives."""
    write(embedded, topic, [b"x"] * 40)
    revoked, armed, stop, group = [], [False], threading.Event(), topic_name()
    look, collect, wait = AIOConsumer._attention, AIOConsumer._collect, AIOConsumer._wait

    def collecting(self, out, most):
        more = collect(self, out, most)
        armed[0] = len(out) == 39
        return more

    async def waiting(self, deadline):
        return armed[0] or await wait(self, deadline)

    def looking(self):
        until_s = time.monotonic() + PATIENCE
        while armed[0] and not self._rebalance_waits() and time.monotonic() < until_s:
            time.sleep(0.005)
        return look(self)

    def other():
        with Consumer(settings(embedded, group_id=group)) as consumer:
            consumer.subscribe([topic])
            while not stop.is_set():
                consumer.poll(0.05)

    monkeypatch.setattr(AIOConsumer, "_attention", looking)
    monkeypatch.setattr(AIOConsumer, "_collect", collecting)
    monkeypatch.setattr(AIOConsumer, "_wait", waiting)
    thread = threading.Thread(target=other)

    async def main():
        async with member(embedded, group=group, heartbeat_interval_ms=100) as consumer:
            await consumer.subscribe([topic], on_revoke=lambda _, partitions: revoked.extend(partitions))
            while not await consumer.consume(1, 1.0):
                pass
            thread.start()
            found = await consumer.consume(100_000, PATIENCE)
            armed[0] = False
            assert len(found) == 39 and not revoked
            while not revoked:
                await consumer.poll(0.1)

    try:
        run(main())
    finally:
        stop.set()
        thread.join(PATIENCE)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_coroutine_callbacks_may_await_the_consumer(embedded, topic, run, protocol):
    write(embedded, topic, [b"%d" % i for i in range(10)])

    async def main():
        seen = []
        async with member(embedded, protocol, enable_auto_commit=False) as consumer:

            async def on_assign(given, partitions):
                assert given is consumer
                await given.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
                found = await given.committed([TopicPartition(topic, 0)], PATIENCE)
                seen.append(("committed", found[0].offset))
                await asyncio.sleep(0.01)
                for name in ("poll", "consume", "consume_batch", "close"):
                    with pytest.raises(IllegalStateError):
                        await getattr(given, name)()
                starts = [TopicPartition(p.topic, p.partition, 7 if p.partition == 0 else 0) for p in partitions]
                await (given.incremental_assign if protocol == "consumer" else given.assign)(starts)
                seen.append("assigned")

            async def on_revoke(given, partitions):
                await given.commit(offsets=[TopicPartition(topic, 0, 9)], asynchronous=False)
                seen.append("revoked")

            await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
            assert values(await take(consumer, 3)) == [7, 8, 9]
            await consumer.unsubscribe()
            assert seen == [("committed", 4), "assigned", "revoked"]
            assert (await consumer.committed([TopicPartition(topic, 0)], PATIENCE))[0].offset == 9

    run(main())


def test_a_callback_outlives_the_call_in_which_it_began(embedded, topic, run):
    write(embedded, topic, [b"0"])

    async def main():
        goes_on = asyncio.Event()
        seen = []

        async def on_assign(consumer, partitions):
            seen.append("begun")
            await goes_on.wait()
            seen.append("ended")

        async with member(embedded) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign)
            first = asyncio.ensure_future(consumer.poll())
            await until(lambda: seen)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            second = asyncio.ensure_future(consumer.poll(PATIENCE))
            await asyncio.sleep(0.01)
            assert seen == ["begun"] and not second.done()
            goes_on.set()
            assert (await second).value() == b"0"
            assert seen == ["begun", "ended"]

    run(main())


def test_records_wait_for_a_callback_whose_call_was_cancelled(embedded, numbers, run):
    async def main():
        begun, ends, armed = asyncio.Event(), asyncio.Event(), []

        async def stats_cb(_):
            if armed and not begun.is_set():
                for call in (consumer.poll, consumer.__anext__, consumer.consume):
                    with pytest.raises(IllegalStateError):
                        await call()
                begun.set()
                await ends.wait()

        consumer = AIOConsumer({**settings(embedded, statistics_interval_ms=10), "stats_cb": stats_cb})
        async with consumer:
            await consumer.assign([TopicPartition(numbers, 0, 0)])
            await take(consumer, 1)
            armed.append(True)
            while not begun.is_set():
                asking = asyncio.ensure_future(consumer.list_topics(timeout=PATIENCE))
                await asyncio.wait([asking, asyncio.ensure_future(begun.wait())], timeout=0.05)
                asking.cancel()
            calls = [asyncio.ensure_future(call) for call in (consumer.poll(), anext(consumer), consumer.consume(1))]
            await asyncio.sleep(0.02)
            assert not any(call.done() for call in calls)
            ends.set()
            first, second, third = await asyncio.gather(*calls)
            assert values([first, second, *third]) == [1, 2, 3]

    run(main())


def test_a_task_that_a_callback_made_may_poll_after_it(embedded, topic, run):
    async def main():
        tasks, another = [], asyncio.Event()

        async def work():
            await another.wait()
            return await consumer.poll(0.1)

        async def on_assign(given, partitions):
            tasks.append(asyncio.ensure_future(work()))
            await asyncio.sleep(0)

        async def on_revoke(given, partitions):
            another.set()
            await asyncio.sleep(0.05)

        async with member(embedded) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
            while not tasks:
                await consumer.poll(0.05)
            await consumer.unsubscribe()
            assert await tasks[0] is None

    run(main())


def _begins_tasks_at_once(loop, coroutine, context=None):
    """A task factory as asyncio.eager_task_factory of Python 3.12."""
    context = context or contextvars.copy_context()
    try:
        step = context.run(coroutine.send, None)
    except StopIteration as end:
        future = loop.create_future()
        future.set_result(end.value)
        return future

    @types.coroutine
    def rest():
        nonlocal step
        while True:
            try:
                value = yield step
            except BaseException as raised:
                step = coroutine.throw(raised)
            else:
                try:
                    step = coroutine.send(value)
                except StopIteration as end:
                    return end.value

    async def task():
        return await rest()

    return context.run(lambda: asyncio.Task(task(), loop=loop))


@pytest.mark.parametrize("name", ["poll", "close"])
def test_calls_are_refused_in_callbacks_of_tasks_that_begin_at_once(embedded, topic, name):
    async def main():
        seen = []

        async def on_assign(consumer, partitions):
            with pytest.raises(IllegalStateError):
                await getattr(consumer, name)()
            seen.append(name)

        async with member(embedded) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign)
            asyncio.get_running_loop().set_task_factory(_begins_tasks_at_once)
            try:
                while not seen:
                    await consumer.poll(0.05)
            finally:
                asyncio.get_running_loop().set_task_factory(None)

    run_on("asyncio", main())


def test_a_call_raises_the_exception_of_its_callback(embedded, topic, run):
    async def main():
        async def on_assign(consumer, partitions):
            await asyncio.sleep(0)
            raise ValueError("no")

        async with member(embedded) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign)
            with pytest.raises(ValueError, match="no"):
                await consumer.poll(PATIENCE)
            assert len(await consumer.assignment()) == 2

    run(main())


def test_callbacks_of_the_configuration_may_be_coroutines(embedded, topic, run):
    seen = set()

    def callback(name):
        async def called(*_):
            await asyncio.sleep(0)
            seen.add(name)

        return called

    async def main():
        config = settings(embedded, group_id=f"group-of-{topic}", statistics_interval_ms=10)
        consumer = AIOConsumer({**config, "stats_cb": callback("stats"), "on_commit": callback("commit"),
                                "error_cb": callback("error")})
        async with consumer:
            await consumer.assign([TopicPartition(topic, 0, 0)])
            await consumer.commit(offsets=[TopicPartition(topic, 0, 1)])
            while not {"stats", "commit"} <= seen:
                await consumer.poll(0.05)

    run(main())
    assert "error" not in seen


def test_a_coroutine_error_cb_is_called(unused_port, run):
    async def main():
        seen = []

        async def error_cb(error):
            await asyncio.sleep(0)
            seen.append(error.name())

        async with AIOConsumer({"bootstrap.servers": f"127.0.0.1:{unused_port}", "error_cb": error_cb}) as consumer:
            while not {"_TRANSPORT", "_ALL_BROKERS_DOWN"} <= {*seen}:
                await consumer.poll(0.05)

    run(main())


def test_coroutines_on_lost_and_on_assign_are_called_and_may_seek(embedded, topic, run):
    write(embedded, topic, [b"%d" % i for i in range(10)])

    async def main():
        seen = []

        async def on_assign(consumer, partitions):
            await consumer.assign([TopicPartition(p.topic, p.partition) for p in partitions])
            await consumer.seek(TopicPartition(topic, 0, 8))
            seen.append("assign")

        async def on_lost(consumer, partitions):
            await asyncio.sleep(0.01)
            seen.append(("lost", len(partitions)))

        async with member(embedded, heartbeat_interval_ms=50, session_timeout_ms=6000) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign, on_lost=on_lost)
            assert values(await take(consumer, 2)) == [8, 9]
            embedded.push_request_errors(_HEARTBEAT, [_UNKNOWN_MEMBER_ID])
            while ("lost", 2) not in seen:
                await consumer.poll(0.05)
            assert seen == ["assign", ("lost", 2)]

    run(main())


# ---- the end


class Hangs:
    """A coroutine callback that does not end."""

    def __init__(self):
        self.begun = asyncio.Event()
        self.ended = None

    async def __call__(self, *_):
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except BaseException as raised:
            self.ended = type(raised)
            raise


def test_close_cancels_a_callback_that_outlasts_its_timeout(embedded, topic, run, caplog):
    async def main():
        hangs = Hangs()
        consumer = member(embedded)
        await consumer.subscribe([topic], on_assign=hangs)
        waiting = asyncio.ensure_future(consumer.poll())
        await hangs.begun.wait()
        began = time.monotonic()
        await consumer.close(0.1)
        assert 0.1 <= time.monotonic() - began < PATIENCE
        assert hangs.ended is asyncio.CancelledError
        with pytest.raises(RuntimeError, match="closed"):
            await waiting

    run(main())
    assert "CLOSE: cancelling a callback that has not ended" in caplog.text


def test_a_cancelled_close_cancels_the_callback_that_it_runs(embedded, topic, run):
    write(embedded, topic, [b"0"])

    async def main():
        hangs = Hangs()
        consumer = member(embedded)
        await consumer.subscribe([topic], on_revoke=hangs)
        await take(consumer, 1)
        closing = asyncio.ensure_future(consumer.close())
        await hangs.begun.wait()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await consumer.close()
        assert hangs.ended is asyncio.CancelledError and not consumer._inner._is_open()

    run(main())


def test_the_end_of_the_loop_closes_a_consumer_whose_callback_runs(embedded, topic):
    kept = []

    async def main():
        hangs = Hangs()

        async def work():
            async with member(embedded) as consumer:
                kept.append(consumer)
                await consumer.subscribe([topic], on_assign=hangs)
                await consumer.poll()

        kept.append(asyncio.ensure_future(work()))
        await hangs.begun.wait()

    embedded.track_requests()
    asyncio.run(main())
    assert not kept[1]._inner._is_open()
    assert _leaves(embedded) == 1
    asyncio.run(kept[1].close())


def _leaves(cluster):
    return sum(request.api_key == _LEAVE_GROUP for request in cluster.requests())


def test_calls_are_refused_in_a_callback_that_close_runs(embedded, topic, run):
    write(embedded, topic, [b"0"])

    async def main():
        refused = []

        async def on_revoke(consumer, partitions):
            for call in (consumer.poll, consumer.close, consumer.consume_batch):
                with pytest.raises(IllegalStateError):
                    await call()
                refused.append(call)

        consumer = member(embedded)
        await consumer.subscribe([topic], on_revoke=on_revoke)
        await take(consumer, 1)
        await asyncio.wait_for(consumer.close(), PATIENCE)
        assert len(refused) == 3

    run(main())


def test_close_again_does_nothing_on_any_loop(embedded, numbers):
    async def first():
        consumer = await reader(embedded, numbers)
        await take(consumer, 1)
        await consumer.close()
        return consumer

    consumer = asyncio.run(first())
    for _ in range(2):
        assert asyncio.run(consumer.close()) is None
    unused = AIOConsumer(settings(embedded))
    for _ in range(2):
        assert asyncio.run(unused.close()) is None


@pytest.mark.parametrize("kind", ["poll", "for", "batches"])
def test_a_task_of_a_closed_loop_does_not_keep_its_consumer(embedded, numbers, kind):
    async def wait(consumer):
        if kind == "poll":
            await consumer.poll()
        async for _ in consumer if kind == "for" else consumer.batches():
            pass

    async def main():
        consumer = await reader(embedded, numbers, offset=-1)
        asyncio.ensure_future(wait(consumer))  # noqa: RUF006 - it is dropped on purpose
        await asyncio.sleep(0.02)
        return weakref.ref(consumer)

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    consumer = loop.run_until_complete(main())
    loop.close()
    del loop
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    assert consumer() is None


def test_a_consumer_that_refers_to_its_iterator_is_collected(embedded, numbers, run):
    async def main():
        consumer = await reader(embedded, numbers)
        consumer.iterator = aiter(consumer)
        assert values([await anext(consumer.iterator) for _ in range(3)]) == [0, 1, 2]
        await consumer.seek(TopicPartition(numbers, 0, OFFSET_END))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(consumer.iterator), 0.02)
        return weakref.ref(consumer)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        consumer = run(main())
        gc.collect()
    assert consumer() is None


def test_close_ends_waiting_calls_with_an_error(embedded, topic, run):
    async def main():
        consumer = await reader(embedded, topic)
        tasks = [asyncio.ensure_future(consumer.poll()), asyncio.ensure_future(consumer.consume(5)),
                 asyncio.ensure_future(consumer.consume_batch())]

        async def iterate():
            return [message async for message in consumer]

        iteration = asyncio.ensure_future(iterate())
        await asyncio.sleep(0.01)
        await asyncio.gather(consumer.close(), consumer.close())
        for task in tasks:
            with pytest.raises(RuntimeError, match="closed"):
                await task
        assert await iteration == []
        await consumer.close()
        for call in (consumer.poll(), consumer.assignment(), consumer.consume(), consumer.list_topics()):
            with pytest.raises(RuntimeError, match="closed"):
                await call

    run(main())


def test_close_in_a_cancelled_task_leaves_the_group(embedded, topic, run):
    write(embedded, topic, [b"0"] * 5)

    async def main():
        group = f"group-of-{topic}"
        took = asyncio.Event()

        async def work():
            async with member(embedded, group=group) as consumer:
                await consumer.subscribe([topic])
                await take(consumer, 5)
                await consumer.commit(asynchronous=False)
                took.set()
                await consumer.poll()

        task = asyncio.ensure_future(work())
        await took.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with member(embedded, group=group) as other:
            await other.subscribe([topic])
            assert await other.poll(0.1) is None
            assert (await other.committed([TopicPartition(topic, 0)], PATIENCE))[0].offset == 5

    run(main())


def test_it_belongs_to_the_loop_of_its_first_await(embedded, numbers):
    consumer = AIOConsumer(settings(embedded))
    with pytest.raises(RuntimeError, match="no running event loop"):
        consumer.poll().send(None)
    asyncio.run(consumer.assign([TopicPartition(numbers, 0, 0)]))
    for call in (consumer.poll, consumer.consume, consumer.consume_batch, consumer.assignment, consumer.list_topics,
                 consumer.unsubscribe):
        async def one(call=call):
            await call()

        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(one())
    asyncio.run(consumer.close())  # but it can be closed, as its own loop is


def test_a_record_at_hand_is_not_returned_on_another_loop(embedded, numbers):
    async def first():
        consumer = await reader(embedded, numbers)
        await take(consumer, 1)
        return consumer, aiter(consumer)

    async def following():
        with pytest.raises(RuntimeError, match="another event loop"):
            await anext(consumer)
        with pytest.raises(RuntimeError, match="another event loop"):
            for _ in range(100):
                await anext(iterator)

    loop = asyncio.new_event_loop()
    consumer, iterator = loop.run_until_complete(first())
    asyncio.run(following())
    loop.run_until_complete(consumer.close())
    loop.close()


def test_a_loop_that_cannot_watch_descriptors_is_refused(embedded):
    class Proactor(asyncio.SelectorEventLoop):
        def add_reader(self, *_):
            raise NotImplementedError

    def attempt():
        loop = Proactor()
        consumer = AIOConsumer(settings(embedded))
        with pytest.raises(RuntimeError, match="add_reader"):
            loop.run_until_complete(consumer.assignment())
        loop.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        attempt()
        gc.collect()
        before = _descriptors()
        attempt()
        _until_no_more_than((before,), lambda: (_descriptors(),))


def _descriptors():
    return len(os.listdir("/proc/self/fd"))


def _until_no_more_than(before, measure):
    """The mock's ends of connections, and threads, go a little later. Fewer are right: earlier tests left garbage."""
    def none_is_left():
        gc.collect()
        return all(now <= earlier for now, earlier in zip(measure(), before, strict=True))

    api_helpers.until(none_is_left)


def test_no_descriptor_and_no_thread_is_left(embedded, numbers, run):
    async def main(closed):
        consumer = await reader(embedded, numbers)
        await take(consumer, 1)
        if closed:
            await consumer.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        run(main(True))
        gc.collect()
        before = _left()
        for i in range(20):
            run(main(i % 2 == 0))
        _until_no_more_than(before, _left)


def _left():
    return _descriptors(), threading.active_count(), len(os.listdir("/proc/self/task"))


def _runs_leave_nothing(cluster, topic, count):
    """So many asyncio.run(), whose consumers end in each of four ways."""
    async def main(way):
        consumer = member(cluster) if way == 3 else AIOConsumer(settings(cluster))
        await consumer.assign([TopicPartition(topic, 0, 0)])
        await take(consumer, 1)
        if way % 2:
            await consumer.close()
        elif way == 0:
            asyncio.ensure_future(consumer.poll())  # noqa: RUF006 - the end of the loop cancels it
            await asyncio.sleep(0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(main(1))
        gc.collect()
        before = _left()
        for i in range(count):
            asyncio.run(main(i % 4))
        _until_no_more_than(before, _left)


def test_fifty_runs_leave_nothing(embedded, numbers):
    _runs_leave_nothing(embedded, numbers, 50)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_thousand_runs_leave_nothing(embedded, numbers):
    _runs_leave_nothing(embedded, numbers, 1000)


def test_a_dropped_consumer_warns_once_and_is_closed(embedded, numbers, run):
    async def main():
        consumer = await reader(embedded, numbers)
        await take(consumer, 1)
        return consumer

    kept = [run(main())]
    with pytest.warns(ResourceWarning, match="AIOConsumer was not closed") as told:
        kept.clear()
        gc.collect()
    assert len(told) == 1


def test_a_child_of_a_fork_is_refused(embedded, numbers):
    async def main():
        consumer = await reader(embedded, numbers)
        await take(consumer, 1)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                await consumer.poll(1)
            except RuntimeError as refused:
                code = 0 if "fork" in str(refused) and await consumer.close() is None else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert values(await take(consumer, 1)) == [1]
        await consumer.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that this process has threads
        asyncio.run(main())


INTERRUPTED = """
import asyncio, os, signal, sys
from kconsumer.aio import AIOConsumer

async def main():
    config = {"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "auto.offset.reset": "earliest"}
    async with AIOConsumer(config) as c:
        await c.subscribe([sys.argv[3]], on_revoke=lambda *_: print("revoked", flush=True))
        await c.poll()
        print("polled", flush=True)
        while True:
            await c.poll()

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_leaves_the_group(embedded, numbers):
    embedded.track_requests()
    command = [sys.executable, "-c", INTERRUPTED, embedded.bootstrap_servers, f"ctrl-c-{os.getpid()}", numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "polled\n"
        process.send_signal(2)
        assert process.communicate(timeout=PATIENCE)[0] == "revoked\ninterrupted\n"
        assert process.returncode == 0
    assert _leaves(embedded) == 1


def test_bad_arguments_are_refused(embedded):
    async def main():
        async with AIOConsumer(settings(embedded)) as consumer:
            with pytest.raises(ValueError, match="num_messages"):
                await consumer.consume(1_000_001)
            with pytest.raises(ValueError, match="max_records"):
                await consumer.consume_batch(0)
            with pytest.raises(TypeError):
                await consumer.poll("soon")
            with pytest.raises(KafkaException, match=r"group\.id"):
                await consumer.subscribe(["t"])
            with pytest.raises(TypeError, match="unexpected"):
                await consumer.commit(wrong=1)

    asyncio.run(main())
    with pytest.raises(TypeError):
        AIOConsumer(5)


def test_close_on_the_loop_of_the_second_run(embedded, numbers):
    """A consumer whose loop ended while a task was in poll() can be closed on another loop."""
    async def first():
        consumer = await reader(embedded, numbers, offset=-1)
        task = asyncio.ensure_future(consumer.poll())
        await asyncio.sleep(0.01)
        return consumer, task

    loop = asyncio.new_event_loop()
    consumer, task = loop.run_until_complete(first())
    task._log_destroy_pending = False
    loop.close()
    asyncio.run(consumer.close())
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(consumer.poll())


def test_no_executor_is_needed(embedded):
    with pytest.raises(ValueError, match="max_workers"):
        AIOConsumer(settings(embedded), max_workers=0)
