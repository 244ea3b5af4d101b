"""AIOConsumer: records, cancellation, turns, callbacks, the end; on asyncio's loop and on uvloop."""

import asyncio
import gc
import inspect
import os
import random
import subprocess
import sys
import threading
import warnings

import confluent_kafka
import confluent_kafka.aio
import pytest
from aio_helpers import member, reader, run_on, take, until, values, write
from api_helpers import PATIENCE, settings

from kconsumer import (
    IllegalStateError,
    KafkaException,
    TopicPartition,
    WakeupError,
)
from kconsumer.aio import AIOConsumer
from kconsumer.testing import EmbeddedCluster

RECORDS = 3000


@pytest.fixture(scope="module")
def embedded():
    """A cluster whose groups need not wait for further members."""
    with EmbeddedCluster() as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=20)
        yield cluster


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine on the loop that the parameter names."""
    return lambda main: run_on(request.param, main)


@pytest.fixture(scope="module")
def numbers(embedded):
    """A topic whose records are the numbers 0 … RECORDS - 1, in order."""
    embedded.create_topic("aio-numbers", 1)
    embedded.produce("aio-numbers", [b"%d" % i for i in range(RECORDS)])
    return "aio-numbers"


@pytest.fixture
def topic(embedded, topic_name):
    """An empty topic of two partitions."""
    name = topic_name()
    embedded.create_topic(name, 2)
    return name


# ---- records


def test_every_call_returns_the_records_in_order(embedded, numbers, run):
    async def main():
        async with await reader(embedded, numbers) as consumer:
            found = values(await take(consumer, 5))
            found += values(await consumer.consume(7, PATIENCE))
            batch = await consumer.consume_batch(100, PATIENCE)
            found += values(batch)
            async for message in consumer:
                found.append(int(message.value()))
                if len(found) >= 1500:
                    break
            async for rows in consumer.batches(400):
                assert 0 < len(rows) <= 400
                found += values(rows)
                if len(found) == RECORDS:
                    break
            assert found == list(range(RECORDS))
            assert await consumer.poll(0.01) is None
            assert await consumer.consume(5, 0.01) == []
            assert len(await consumer.consume_batch(5, 0.01)) == 0
            assert (await consumer.position([TopicPartition(numbers, 0)]))[0].offset == RECORDS

    run(main())


def test_an_end_of_partition_is_a_message_for_poll_and_nothing_for_iteration(embedded, topic, run):
    write(embedded, topic, [b"0"])

    async def main():
        async with await reader(embedded, topic, enable_partition_eof=True) as consumer:
            assert (await consumer.poll(PATIENCE)).value() == b"0"
            assert (await consumer.poll(PATIENCE)).error().name() == "_PARTITION_EOF"
            await consumer.seek(TopicPartition(topic, 0, 0))
            iterator = aiter(consumer)
            assert (await anext(iterator)).value() == b"0"
            write(embedded, topic, [b"1"])
            assert (await anext(iterator)).value() == b"1"

    run(main())


def test_the_names_and_parameters_are_those_of_confluent_kafka(embedded, numbers):
    theirs = {name for name in vars(confluent_kafka.aio.AIOConsumer) if not name.startswith("_")}
    assert theirs <= set(dir(AIOConsumer))
    for name in theirs:
        assert inspect.iscoroutinefunction(getattr(AIOConsumer, name)), name
        assert inspect.getdoc(getattr(AIOConsumer, name)), name

    async def main():
        consumer = AIOConsumer(settings(embedded), max_workers=2, executor=None)
        assert await consumer.assign([TopicPartition(numbers, 0, 5)]) is None
        assert await consumer.assignment() == [TopicPartition(numbers, 0, 5)]
        assert await consumer.get_watermark_offsets(TopicPartition(numbers, 0), timeout=PATIENCE) == (0, RECORDS)
        assert numbers in (await consumer.list_topics(timeout=PATIENCE)).topics
        assert await consumer.cluster_id(timeout=PATIENCE) == (await consumer.list_topics()).cluster_id
        found = await consumer.offsets_for_times([TopicPartition(numbers, 0, 0)], timeout=PATIENCE)
        assert [p.topic for p in found] == [numbers]
        assert await consumer.pause([TopicPartition(numbers, 0)]) is None
        assert await consumer.paused() == [TopicPartition(numbers, 0)]
        assert await consumer.resume([TopicPartition(numbers, 0)]) is None
        assert await consumer.unassign() is None
        assert await consumer.consumer_group_metadata() is None
        assert await consumer.close() is None

    asyncio.run(main())


# ---- cancellation


async def _cancelled_at_random(consumer, count, seed):
    """Values of `count` records by calls that are cancelled after random moments; how many were."""
    chance = random.Random(seed)
    found, cancelled = [], 0
    while len(found) < count:
        kind = chance.random()
        wait = chance.choice([0, 0, 1e-6, 1e-5, 1e-4, 1e-3])
        if kind < 0.4:
            call = consumer.poll()
        elif kind < 0.7:
            call = consumer.consume(chance.randrange(1, 20), 0.005)
        elif kind < 0.9:
            call = consumer.consume_batch(chance.randrange(1, 20))
        else:
            call = anext(consumer)
        task = asyncio.ensure_future(call)
        if wait:
            await asyncio.sleep(wait)
        else:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        task.cancel()
        try:
            got = await task
        except asyncio.CancelledError:
            cancelled += 1
            continue
        if got is not None:
            found += values(got if not hasattr(got, "offset") else [got])
    return found, cancelled


async def _cancellations(cluster, topic, most, seed):
    """Cancel until `most` calls have been, while records come singly and in bursts; each must come once, in order."""
    writer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    chance = random.Random(seed)
    written, found, cancelled = 0, [], 0
    async with await reader(cluster, topic) as consumer:
        while cancelled < most:
            burst = chance.choice([1, 1, 1, 2, 5, 300])
            for i in range(written, written + burst):
                writer.produce(topic, b"%d" % i, partition=0)
            writer.poll(0)
            written += burst
            got, more = await _cancelled_at_random(consumer, burst, chance.random())
            found += got
            cancelled += more
        writer.flush()
        assert found == list(range(written))
        assert await consumer.poll(0.05) is None
    return cancelled


def test_a_cancelled_call_takes_nothing(embedded, topic, run):
    assert run(_cancellations(embedded, topic, 3000, 1)) >= 3000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_cancelled_calls_take_nothing(embedded, topic):
    assert asyncio.run(_cancellations(embedded, topic, 100_000, 2)) >= 100_000


def test_timeouts_and_shields_lose_nothing(embedded, topic, run):
    async def main():
        async with await reader(embedded, topic) as consumer:
            shielded = asyncio.ensure_future(consumer.poll())
            for _ in range(3):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.shield(shielded), 0.01)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.poll(), 0.01)
            write(embedded, topic, [b"%d" % i for i in range(10)])
            found = values([await shielded])
            while len(found) < 10:
                try:
                    found += values([await asyncio.wait_for(consumer.poll(), 0.001)])
                except asyncio.TimeoutError:
                    pass
            assert found == list(range(10))

    run(main())


def test_a_cancelled_commit_is_made_all_the_same(embedded, topic, run):
    write(embedded, topic, [b"0"] * 10)

    async def main():
        async with member(embedded, enable_auto_commit=False) as consumer:
            await consumer.subscribe([topic])
            last = (await take(consumer, 10))[-1]
            task = asyncio.ensure_future(consumer.commit(last, asynchronous=False))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])  # it may have been answered meanwhile
            assert [p.offset for p in await consumer.committed([TopicPartition(topic, 0)], PATIENCE)] == [10]

    run(main())


# ---- several tasks


def test_tasks_that_poll_are_served_in_turn(embedded, topic, run):
    async def main():
        async with await reader(embedded, topic) as consumer:
            tasks = [asyncio.ensure_future(consumer.poll()) for _ in range(5)]
            await asyncio.sleep(0.01)
            assert await consumer.poll(0.01) is None, "it waits in line until its timeout"
            tasks[2].cancel()
            await asyncio.sleep(0)
            write(embedded, topic, [b"%d" % i for i in range(4)])
            found = values([await tasks[i] for i in (0, 1, 3, 4)])
            assert found == [0, 1, 2, 3]

    run(main())


class Turns:
    """Counts the turns that the loop gets."""

    seen = 0

    async def count(self):
        while True:
            self.seen += 1
            await asyncio.sleep(0)


def test_other_tasks_get_turns_while_records_are_at_hand(embedded, numbers, run):
    async def main():
        for kind in ("poll", "for", "consume", "batch"):
            async with await reader(embedded, numbers) as consumer:
                await take(consumer, 1)
                await asyncio.sleep(0.05)  # the rest is at hand, as far as one response has it
                turns = Turns()
                beside = asyncio.ensure_future(turns.count())
                await asyncio.sleep(0)
                before, seen = turns.seen, 1
                if kind == "for":
                    async for _ in consumer:
                        seen += 1
                        _work()
                        if seen == RECORDS:
                            break
                while seen < RECORDS:
                    if kind == "poll":
                        seen += await consumer.poll(PATIENCE) is not None
                        _work()
                    elif kind == "consume":
                        seen += len(await consumer.consume(min(100, RECORDS - seen), PATIENCE))
                        _work(40)
                    else:
                        seen += len(await consumer.consume_batch(100, PATIENCE))
                        _work(40)
                assert turns.seen - before > 10, kind
                beside.cancel()

    run(main())


def test_other_tasks_get_turns_while_one_call_collects_large_values(embedded, topic_name, run):
    partitions, count, size = 16, 320, 200_000  # the embedded cluster keeps 5 MB of a partition
    name = topic_name()
    embedded.create_topic(name, partitions)
    embedded.produce(name, [{"value": b"x" * size, "partition": n % partitions} for n in range(count)])

    async def main():
        async with await reader(embedded, name, range(partitions), fetch_buffer_memory=1 << 28) as consumer:
            while (await consumer.metrics())["fetch_buffer_bytes"] < count * size:
                await asyncio.sleep(0.01)
            turns = Turns()
            beside = asyncio.ensure_future(turns.count())
            await asyncio.sleep(0)
            before = turns.seen
            assert len(await consumer.consume(count, PATIENCE)) == count
            assert turns.seen - before > 3
            beside.cancel()

    run(main())


def _work(times=1):
    """An application's work between two records, without an await: some ten microseconds at least."""
    for _ in range(times):
        sum(range(3000))


def test_calls_continue_beside_a_waiting_poll(embedded, topic, run):
    async def main():
        async with member(embedded) as consumer:
            await consumer.assign([TopicPartition(topic, 0, 0)])
            waiting = asyncio.ensure_future(consumer.poll())
            await asyncio.sleep(0)
            await consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
            answers = await asyncio.gather(*(consumer.committed([TopicPartition(topic, 0)]) for _ in range(20)))
            assert [answer[0].offset for answer in answers] == [3] * 20
            assert not waiting.done()
            write(embedded, topic, [b"0"])
            assert values([await waiting]) == [0]

    run(main())


def test_wakeup_ends_the_waiting_call(embedded, topic, run):
    async def main():
        async with await reader(embedded, topic) as consumer:
            waiting = asyncio.ensure_future(consumer.poll())
            await asyncio.sleep(0.01)
            await consumer.wakeup()
            with pytest.raises(WakeupError):
                await waiting
            assert await consumer.poll(0.01) is None

    run(main())


# ---- callbacks


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


def test_what_a_callback_raises_leaves_the_call(embedded, topic, run):
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


# ---- the end


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
        gc.collect()
        assert _descriptors() == before


def _descriptors():
    return len(os.listdir("/proc/self/fd"))


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
        before = _descriptors(), threading.active_count(), len(os.listdir("/proc/self/task"))
        for i in range(20):
            run(main(i % 2 == 0))
        gc.collect()
        assert (_descriptors(), threading.active_count(), len(os.listdir("/proc/self/task"))) == before


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
                code = 0 if "fork" in str(refused) else 2
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
    command = [sys.executable, "-c", INTERRUPTED, embedded.bootstrap_servers, f"ctrl-c-{os.getpid()}", numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "polled\n"
        process.send_signal(2)
        assert process.communicate(timeout=PATIENCE)[0] == "revoked\ninterrupted\n"
        assert process.returncode == 0


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
