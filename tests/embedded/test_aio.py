"""AIOConsumer: records, cancellation, turns; on asyncio's loop and on uvloop. test_aio_end.py: callbacks, the end."""

import asyncio
import gc
import inspect
import logging
import random
import sys
import time

import confluent_kafka
import confluent_kafka.aio
import pytest
from aio_helpers import RECORDS, member, reader, take, values, write
from api_helpers import PATIENCE, settings

from kconsumer import (
    TopicPartition,
    WakeupError,
)
from kconsumer.aio import AIOConsumer
from kconsumer.aio.calls import LoopCalls
from kconsumer.testing import EmbeddedCluster


@pytest.fixture(scope="module")
def embedded():
    """A cluster whose groups need not wait for further members."""
    with EmbeddedCluster() as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=20)
        yield cluster


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


def test_iteration_reuses_its_awaitable_unless_the_application_keeps_it(embedded, numbers, run):
    async def main():
        async with await reader(embedded, numbers) as consumer:
            await take(consumer, 1)
            iterator = aiter(consumer)
            kept = [iterator.__anext__() for _ in range(3)]
            assert len({id(one) for one in kept}) == 3
            assert kept[-1] in gc.get_referents(iterator), "for the next record"
            assert values([await one for one in kept]) == [1, 2, 3]
            for one in kept:
                with pytest.raises(RuntimeError, match="cannot reuse already awaited"):
                    await one
            assert values([await iterator.__anext__() for _ in range(3)]) == [4, 5, 6]

    run(main())


def test_an_iteration_that_is_dropped_while_it_waits_ends_its_call(embedded, topic, run):
    async def main():
        async with await reader(embedded, topic) as consumer:
            iterator = aiter(consumer)
            awaited = iterator.__anext__()
            awaited.send(None)
            del awaited  # the iterator does not keep it
            write(embedded, topic, [b"7"])
            assert values(await take(consumer, 1)) == [7]
            write(embedded, topic, [b"8"])
            assert values([await anext(iterator)]) == [8]

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


def test_names_and_parameters_match_confluent_kafka(embedded, numbers):
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
        with pytest.raises(TypeError, match="twice"):
            AIOConsumer(settings(embedded), consumer_conf=settings(embedded))
        async with AIOConsumer(consumer_conf=settings(embedded)) as consumer:
            await consumer.assign([TopicPartition(numbers, 0, 5)])
            assert values(await take(consumer, 1)) == [5]

    asyncio.run(main())


def test_max_workers_and_executor_are_logged_as_ignored(embedded, caplog):
    async def main():
        async with AIOConsumer(settings(embedded), max_workers=2):
            pass

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert [r.getMessage() for r in caplog.records if "max_workers" in r.getMessage()] == [
        "max_workers and executor are ignored: AIOConsumer uses none"]


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


async def _ended_early(consumer, chance, found):
    """One call that ends early in one of asyncio's ways. Returns how it ended."""
    tiny = chance.choice([0, 0, 1e-6, 1e-5, 1e-4, 1e-3])
    kind = chance.choice(["wait_for", "wait_for", "timeout", "group", "shield"])

    async def fail():
        await asyncio.sleep(tiny)
        raise LookupError

    async def iterate():
        async for message in consumer:
            found.append(int(message.value()))

    async def fail_together():
        async with asyncio.TaskGroup() as group:
            group.create_task(iterate())
            group.create_task(fail())

    if kind == "wait_for" or sys.version_info < (3, 11):
        found += values([await asyncio.wait_for(consumer.poll(), tiny)])
    elif kind == "timeout":
        async with asyncio.timeout(tiny):
            found += values(await consumer.consume(chance.randrange(1, 9), 1))
    elif kind == "group":
        try:
            # In a separate task: a group that fails leaves its task marked as being cancelled. Before Python 3.11.3,
            # asyncio.timeout() then raises CancelledError in place of TimeoutError (CPython gh-102780).
            await asyncio.ensure_future(fail_together())
        except Exception as raised:
            assert "TaskGroup" in str(raised)
            raise asyncio.TimeoutError from raised
    else:
        shielded = asyncio.ensure_future(consumer.poll())
        try:
            found += values([await asyncio.wait_for(asyncio.shield(shielded), tiny)])
        except asyncio.TimeoutError:
            shielded.cancel()
            await asyncio.wait([shielded])
            if not shielded.cancelled():
                found += values([shielded.result()])
            raise


async def _early_ends(cluster, topic, most):
    writer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    chance = random.Random(5)
    written, ended, found = 0, 0, []
    async with await reader(cluster, topic) as consumer:
        while ended < most:
            burst = chance.choice([1, 1, 2, 5, 50])
            for i in range(written, written + burst):
                writer.produce(topic, b"%d" % i, partition=0)
            writer.poll(0)
            written += burst
            for _ in range(chance.randrange(3, 30)):
                try:
                    await _ended_early(consumer, chance, found)
                except asyncio.TimeoutError:
                    ended += 1
        writer.flush()
        found += values(await take(consumer, written - len(found)))
        assert found == list(range(written))
        assert await consumer.poll(0.05) is None


def test_calls_that_time_out_or_fail_with_their_group_take_nothing(embedded, topic, run):
    run(_early_ends(embedded, topic, 1500))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_calls_that_time_out_take_nothing(embedded, topic):
    asyncio.run(_early_ends(embedded, topic, 100_000))


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


async def _any_call(consumer, chance, found):
    """One call of any kind; its records go to `found` before another task runs."""
    kind = chance.choice(["poll", "consume", "batch", "for", "getone", "getmany"])
    if kind == "poll":
        message = await consumer.poll(chance.choice([0, 0.001, None]))
        found += [] if message is None else values([message])
    elif kind == "consume":
        found += values(await consumer.consume(chance.randrange(1, 300), chance.choice([0, 0.001, 0.01])))
    elif kind == "batch":
        found += values(await consumer.consume_batch(chance.randrange(1, 50), 0.01))
    elif kind == "for":
        last = len(found) + chance.randrange(1, 100)
        async for message in consumer:
            found.append(int(message.value()))
            if len(found) >= last:
                break
    elif kind == "getone":
        found += values([await consumer.getone()])
    else:
        for together in (await consumer.getmany(timeout_ms=5, max_records=chance.randrange(1, 80))).values():
            found += values(together)


def test_tasks_in_different_calls_that_are_cancelled_at_random_lose_nothing(embedded, topic, run):
    count = 4000
    chance = random.Random(3)

    async def work(consumer, found):
        while len(found) < count:
            await _any_call(consumer, chance, found)

    async def main():
        async with await reader(embedded, topic) as consumer:
            found, written = [], 0
            tasks = [asyncio.ensure_future(work(consumer, found)) for _ in range(5)]
            while len(found) < count:
                burst = min(chance.choice([1, 3, 200, 500]), count - written)
                write(embedded, topic, [b"%d" % i for i in range(written, written + burst)])
                written += burst
                for _ in range(chance.randrange(30)):
                    await asyncio.sleep(chance.choice([0, 0, 1e-4, 1e-3]))
                    cancelled = tasks.pop(chance.randrange(5))
                    cancelled.cancel()
                    await asyncio.wait([cancelled])
                    assert cancelled.cancelled() or cancelled.result() is None
                    tasks.append(asyncio.ensure_future(work(consumer, found)))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert found == list(range(count))

    run(main())


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


def test_consume_batch_returns_rows_at_hand_in_one_step(embedded, numbers, run, monkeypatch):
    """A call that has to look at more than the buffer takes its turn among the exclusive calls."""
    turns = []
    take_turn = LoopCalls._take_turn

    def noted(self, deadline):
        turns.append(deadline)
        return take_turn(self, deadline)

    async def main():
        async with await reader(embedded, numbers) as consumer:
            found = values(await take(consumer, 1))
            await asyncio.sleep(0.05)  # the rest is at hand, as far as one response has it
            monkeypatch.setattr(LoopCalls, "_take_turn", noted)
            calls = 0
            while len(found) < RECORDS:
                batch = await consumer.consume_batch(5, PATIENCE)
                assert 0 < len(batch) <= 5
                found += values(batch)
                calls += 1
            assert found == list(range(RECORDS))
            assert len(turns) < calls / 2
            with pytest.raises(ValueError, match="max_records"):
                await consumer.consume_batch(0)

    run(main())


def test_consume_batch_without_rows_leaves_the_wakeup_of_a_call_that_asks(embedded, topic, run):
    """1. The answer of a broker writes to the descriptor. 2. Before the loop looks, consume_batch() finds no rows.

    If it drained the descriptor, the call that asks would return only after consume_batch().
    """
    async def main():
        async with await reader(embedded, topic) as consumer:
            place = TopicPartition(topic, 0)
            await consumer.get_watermark_offsets(place)  # the connections are open from here on
            assert len(await consumer.consume_batch(5, 0.1)) == 0  # and consume_batch() looks for rows at hand first
            asking = asyncio.ensure_future(consumer.get_watermark_offsets(place))
            while not consumer._asking:
                if asking.done():  # the answer was faster than the loop
                    asking = asyncio.ensure_future(consumer.get_watermark_offsets(place))
                await asyncio.sleep(0)
            [question] = consumer._asking
            until = time.monotonic() + PATIENCE
            while not question.done:
                assert time.monotonic() < until
                time.sleep(0.001)  # not asyncio's: the loop must not look
            time.sleep(0.02)  # between the answer and the write to the descriptor
            consumer._turn_done()  # else the loop gets a turn first
            assert len(await consumer.consume_batch(5, 1.0)) == 0
            assert asking.done()
            assert await asking == (0, 0)

    run(main())


def test_consume_collects_until_something_else_must_precede_the_next_record(embedded, numbers, run, monkeypatch):
    """A slice ends for a look at the clock. That alone costs no pass through the loop around it."""
    found = []  # every step, and what it returned

    def noted(name, step):
        def note(self, *arguments):
            result = step(self, *arguments)
            found.append((name, result))
            return result

        return note

    for name in ("_collect", "_turn_done", "_attention"):
        monkeypatch.setattr(LoopCalls, name, noted(name, getattr(LoopCalls, name)))

    async def main():
        async with await reader(embedded, numbers) as consumer:
            await take(consumer, 1)
            while (await consumer.metrics())["fetch_buffer_records"] < RECORDS - 1:
                await asyncio.sleep(0.01)
            found.clear()
            assert values(await consumer.consume(RECORDS - 1, PATIENCE)) == list(range(1, RECORDS))
            reasons = [name for name, result in found if name == "_turn_done" or (name == "_attention" and result)]
            assert sum(name == "_collect" for name, _ in found) <= 1 + len(reasons), found

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


def test_unsubscribe_ends_a_consume_and_its_records_go_to_the_next_member(embedded, topic, run):
    write(embedded, topic, [b"%d" % i for i in range(5)])

    async def main():
        group = f"group-of-{topic}"
        async with member(embedded, "consumer", group) as consumer:
            await consumer.subscribe([topic])
            waiting = asyncio.ensure_future(consumer.consume(100, PATIENCE))
            while (await consumer.metrics())["fetched_records_total"] < 5:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            await consumer.unsubscribe()
            assert await asyncio.wait_for(waiting, PATIENCE / 2) == []
        async with member(embedded, "consumer", group) as other:
            await other.subscribe([topic])
            assert values(await take(other, 5)) == [0, 1, 2, 3, 4]

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
