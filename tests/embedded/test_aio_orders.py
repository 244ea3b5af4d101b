"""AIOConsumer when events come in a rare order: calls that end while others begin, raise or are cancelled."""

import asyncio
import contextlib
import time

import pytest
from aio_helpers import member, reader, take, write
from api_helpers import PATIENCE, settings

from kconsumer import Consumer, TopicPartition, WakeupError
from kconsumer.aio import AIOConsumer


async def _committed(cluster, group, topic):
    async with AIOConsumer(settings(cluster, group_id=group)) as other:
        return (await other.committed([TopicPartition(topic, 0)], PATIENCE))[0].offset


# -- the record in hand after a call that raised


def test_after_wakeup_the_record_in_hand_is_not_committed_by_an_exception(embedded, topic, run):
    write(embedded, topic, [b"%d" % i for i in range(50)])

    async def main():
        group = f"in-hand-{topic}"
        with pytest.raises(LookupError):
            async with member(embedded, group=group) as consumer:
                await consumer.subscribe([topic])
                await take(consumer, 3)
                await consumer.wakeup()
                with pytest.raises(WakeupError):
                    await consumer.poll()
                assert (await consumer.poll(PATIENCE)).offset() == 3
                raise LookupError
        assert await _committed(embedded, group, topic) == 3

    run(main())


def test_after_wakeup_the_record_in_hand_is_not_committed_by_an_exception_sync(embedded, topic):
    write(embedded, topic, [b"%d" % i for i in range(50)])
    config = settings(embedded, group_id=f"in-hand-sync-{topic}")
    with pytest.raises(LookupError), Consumer(config) as consumer:
        consumer.subscribe([topic])
        for _ in range(3):
            assert consumer.poll(PATIENCE) is not None
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll()
        assert consumer.poll(PATIENCE).offset() == 3
        raise LookupError
    with Consumer(config) as other:
        assert other.committed([TopicPartition(topic, 0)], PATIENCE)[0].offset == 3


# -- the end of `async with` that is cancelled


def test_a_cancelled_end_of_async_with_leaves_out_the_record_in_hand(embedded, topic, run):
    write(embedded, topic, [b"%d" % i for i in range(50)])

    async def main():
        group, begun = f"cancelled-end-{topic}", asyncio.Event()
        consumer = member(embedded, group=group)

        async def on_revoke(given, partitions):
            begun.set()
            await asyncio.sleep(0.2)

        async def work():
            async with consumer:
                await consumer.subscribe([topic], on_revoke=on_revoke)
                await take(consumer, 3)
                raise LookupError

        task = asyncio.ensure_future(work())
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        await consumer.close()
        assert await _committed(embedded, group, topic) == 2

    run(main())


# -- close() while a call has not gone to sleep


def test_close_does_not_wait_for_a_call_that_is_about_to_sleep(embedded, topic, run):
    async def main():
        consumer = await reader(embedded, topic)
        await consumer.poll(0.2)
        while not consumer._turn_due():  # then the next call lets the loop run before it looks for records
            pass
        waiting = asyncio.ensure_future(consumer.poll())
        await asyncio.sleep(0)
        began = time.monotonic()
        await consumer.close()
        assert time.monotonic() - began < 4
        with pytest.raises(RuntimeError, match="closed"):
            await waiting

    run(main())


# -- unsubscribe() that waits for another callback


def test_a_cancelled_unsubscribe_leaves_also_if_it_waited_for_a_callback(embedded, topic, run):
    async def main():
        go, begun = asyncio.Event(), asyncio.Event()

        async def on_assign(given, partitions):
            begun.set()
            await go.wait()

        async with member(embedded) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign)
            waiting = asyncio.ensure_future(consumer.poll())
            await begun.wait()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.unsubscribe(), 0.02)
            go.set()
            deadline = time.monotonic() + PATIENCE / 4
            while await consumer.subscription():
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
            assert await consumer.assignment() == []
            waiting.cancel()
            await asyncio.wait([waiting])

    run(main())


def test_unsubscribe_leaves_before_it_raises_what_an_earlier_callback_raised(embedded, topic, run):
    async def main():
        async def on_assign(given, partitions):
            begun.set()
            await asyncio.sleep(0.05)
            raise LookupError

        begun = asyncio.Event()
        async with member(embedded) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign)
            waiting = asyncio.ensure_future(consumer.poll())
            await begun.wait()
            waiting.cancel()
            with pytest.raises(LookupError):
                await consumer.unsubscribe()
            assert await consumer.subscription() == []

    run(main())


# -- a callback of unsubscribe() that does not end


def test_close_abandons_the_callback_of_an_unsubscribe(embedded, topic, run):
    write(embedded, topic, [b"0"])

    async def main():
        begun = asyncio.Event()

        async def on_revoke(given, partitions):
            begun.set()
            for _ in range(2):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)

        consumer = member(embedded)
        await consumer.subscribe([topic], on_revoke=on_revoke)
        await take(consumer, 1)
        leaving = asyncio.ensure_future(consumer.unsubscribe())
        await begun.wait()
        callback = consumer._callbacks_task
        await consumer.close(0.1)
        assert not consumer._inner._is_open()
        leaving.cancel()
        callback.cancel()
        await asyncio.wait([leaving, callback])

    run(main())


def test_close_after_the_loop_of_an_unsubscribe_was_closed(embedded, topic):
    write(embedded, topic, [b"0"])
    kept = []

    async def first():
        begun = asyncio.Event()

        async def on_revoke(given, partitions):
            begun.set()
            await asyncio.Event().wait()

        consumer = member(embedded)
        await consumer.subscribe([topic], on_revoke=on_revoke)
        await take(consumer, 1)
        kept.append(asyncio.ensure_future(consumer.unsubscribe()))
        await begun.wait()
        return consumer

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    consumer = loop.run_until_complete(first())
    loop.close()
    asyncio.run(consumer.close())
    assert not consumer._inner._is_open()
    kept[0]._log_destroy_pending = False


# -- the end of a loop


def test_the_end_of_the_loop_closes_a_consumer_whose_close_has_just_begun(embedded, topic):
    write(embedded, topic, [b"%d" % i for i in range(3)])
    kept = []

    async def main():
        kept.append(consumer := member(embedded))
        await consumer.subscribe([topic])
        await take(consumer, 3)
        kept.append(asyncio.ensure_future(consumer.close()))

    asyncio.run(main())
    assert not kept[0]._inner._is_open()


@pytest.mark.parametrize("callback", ["on_assign", "on_revoke"])
def test_the_end_of_the_loop_lets_a_task_unsubscribe_and_close(embedded, topic, callback):
    write(embedded, topic, [b"0"])
    kept = []

    async def main():
        begun = asyncio.Event()

        async def hangs(given, partitions):
            begun.set()
            await asyncio.Event().wait()

        async def work():
            if callback == "on_assign":
                try:
                    await consumer.poll()
                finally:
                    await consumer.unsubscribe()  # must not raise what the cancelled callback did
                    await consumer.close()
            try:
                await consumer.unsubscribe()
            finally:
                await consumer.close()

        kept.append(consumer := member(embedded))
        await consumer.subscribe([topic], **{callback: hangs})
        if callback == "on_revoke":
            await take(consumer, 1)
        kept.append(asyncio.ensure_future(work()))
        if callback == "on_assign":
            await begun.wait()

    asyncio.run(main())
    assert not kept[0]._inner._is_open()
    assert kept[1].cancelled()  # no IllegalStateError


# -- batches()


def test_batches_go_on_after_a_cancelled_call(embedded, topic, run):
    async def main():
        async with await reader(embedded, topic) as consumer:
            batches = consumer.batches()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(batches), 0.02)
            write(embedded, topic, [b"0"])
            assert len(await asyncio.wait_for(anext(batches), PATIENCE)) == 1
            await consumer.close()
            assert await anext(batches, None) is None

    run(main())


# -- a cancelled consume()


def test_a_cancelled_consume_returns_its_records_if_another_task_pauses(embedded, topic, run):
    count = 6000
    write(embedded, topic, [b"x" * 600] * count)

    async def pauses(consumer, partitions):
        while True:
            await consumer.pause(partitions)
            await asyncio.sleep(0)
            await consumer.resume(partitions)
            await asyncio.sleep(0)

    async def read():
        async with await reader(embedded, topic, (0, 1)) as consumer:
            other = asyncio.ensure_future(pauses(consumer, [TopicPartition(topic, 1)]))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.consume(10**6), 0.3)
            other.cancel()
            return [message.offset() for message in await take(consumer, count)]

    async def main():
        for _ in range(3):
            assert await read() == list(range(count))

    run(main())


# -- pauses beside getone(partition)


def test_a_pause_of_a_partition_that_was_assigned_beside_getone_holds(embedded, topic, run):
    async def main():
        both = [TopicPartition(topic, p, 0) for p in (0, 1)]
        async with await reader(embedded, topic, (0, 1)) as consumer:
            waiting = asyncio.ensure_future(consumer.getone(both[0]))
            await asyncio.sleep(0.02)
            await consumer.assign(both)
            await consumer.pause([both[1]])
            assert await consumer.paused() == [both[1]]
            await asyncio.sleep(0.02)
            embedded.produce(topic, [{"value": b"0", "partition": p} for p in (1, 0)])
            assert (await waiting).partition() == 0
            assert await consumer.paused() == [both[1]]
            assert await consumer.poll(0.2) is None

    run(main())


# -- RuntimeError of a callback


def test_an_iteration_that_close_ends_raises_the_runtime_error_of_its_callback(embedded, topic, run):
    async def main():
        begun = asyncio.Event()

        async def on_assign(given, partitions):
            begun.set()
            await asyncio.sleep(0.05)
            raise RuntimeError("of the application")

        async def iterate():
            return [message async for message in consumer]

        consumer = member(embedded)
        await consumer.subscribe([topic], on_assign=on_assign)
        iteration = asyncio.ensure_future(iterate())
        await begun.wait()
        await consumer.close()
        with pytest.raises(RuntimeError, match="of the application"):
            await iteration

    run(main())


# -- turns of the loop


def test_the_loop_gets_its_turn_when_records_begin_to_take_longer(embedded, topic, run):
    write(embedded, topic, [b"0"] * 5000)

    async def main():
        gaps = []

        async def tick():
            before = time.perf_counter()
            while True:
                await asyncio.sleep(0)
                now = time.perf_counter()
                gaps.append(now - before)
                before = now

        async with await reader(embedded, topic) as consumer:
            ticking = asyncio.ensure_future(tick())
            count = 0
            async for _ in consumer:
                count += 1
                if count > 4000:
                    if count == 4001:
                        gaps.clear()
                    until_ = time.perf_counter() + 0.005
                    while time.perf_counter() < until_:
                        pass
                if count == 4200:
                    break
            ticking.cancel()
        assert len(gaps) > 100  # a turn for nearly each of the 200 records; without: 64 of them pass in a row

    run(main())


# -- the assignment that on_assign changes


def test_on_assign_that_gives_up_an_older_partition_commits_it(embedded, topic, topic_name):
    write(embedded, topic, [b"0"] * 5)
    second = topic_name()
    embedded.create_topic(second, 1)
    config = settings(embedded, group_id=f"gives-up-{topic}", partition_assignment_strategy="cooperative-sticky",
                      session_timeout_ms=6000, heartbeat_interval_ms=300, auto_commit_interval_ms=600000)
    done = []

    def on_assign(consumer, partitions):
        if partitions[0].topic == second:
            consumer.incremental_assign(partitions)
            consumer.incremental_unassign([TopicPartition(topic, 0)])
            done.append(True)

    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        for _ in range(5):
            assert consumer.poll(PATIENCE) is not None
        consumer.subscribe([topic, second], on_assign=on_assign)
        deadline = time.monotonic() + PATIENCE
        while not done:
            consumer.poll(0.1)
            assert time.monotonic() < deadline
    with Consumer(config) as other:
        assert other.committed([TopicPartition(topic, 0)], PATIENCE)[0].offset == 5


# -- a question that is asked while the network thread ends


def test_close_ends_a_call_that_asks_while_it_ends(embedded, numbers):
    """The moment lies between the answer to close() and the end of the network thread: one close() in 70 meets it."""

    async def ask(consumer):
        with pytest.raises(RuntimeError):
            while True:
                await consumer.get_watermark_offsets(TopicPartition(numbers, 0))

    async def main():
        deadline = time.monotonic() + 8
        for _ in range(400):
            consumer = await reader(embedded, numbers)
            await take(consumer, 1)
            asking = [asyncio.ensure_future(ask(consumer)) for _ in range(4)]
            await asyncio.sleep(0.005)
            await consumer.close()
            _, pending = await asyncio.wait(asking, timeout=PATIENCE / 2)
            for task in pending:
                task.cancel()
            assert not pending
            if time.monotonic() > deadline:
                break

    asyncio.run(main())
