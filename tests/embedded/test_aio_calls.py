"""AIOConsumer's getone and getmany, DeserializingAIOConsumer, assignors and an oauth_cb that are coroutines."""

import asyncio
import json
import time

import pytest
from aio_helpers import member, reader, take, until, values, write
from api_helpers import PATIENCE, settings

from kconsumer import Assignor, KafkaException, TopicPartition, ValueDeserializationError
from kconsumer.aio import AIOConsumer, DeserializingAIOConsumer
from kconsumer.testing import EmbeddedCluster


@pytest.fixture(scope="module")
def embedded():
    """A cluster whose groups need not wait for further members."""
    with EmbeddedCluster() as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=20)
        yield cluster


# ---- aiokafka's calls


def test_getone_and_getmany(embedded, topic, run):
    embedded.produce(topic, [{"value": b"%d" % i, "partition": i % 2} for i in range(20)])

    async def main():
        async with await reader(embedded, topic, (0, 1), enable_partition_eof=True) as consumer:
            one, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
            assert values([await consumer.getone(other), await consumer.getone(other)]) == [1, 3]
            assert await consumer.paused() == []
            found = {one: [], other: []}
            while sum(map(len, found.values())) < 17:
                for partition, messages in (await consumer.getmany(timeout_ms=5000, max_records=3)).items():
                    assert 0 < len(messages) <= 3
                    found[partition] += values(messages)
            found[one if len(found[one]) < 10 else other] += values([await consumer.getone()])
            assert found == {one: list(range(0, 20, 2)), other: list(range(5, 20, 2))}
            assert await consumer.getmany() == {}
            await consumer.pause([other])
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.getone(one), 0.01)
            assert await consumer.paused() == [other]

    run(main())


@pytest.mark.parametrize("made", [AIOConsumer, DeserializingAIOConsumer])
def test_calls_for_different_partitions_at_once(embedded, topic, run, made):
    """Each pauses the partitions of the others: without turns both would wait for ever."""
    one, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    embedded.produce(topic, [{"value": b"%d" % i, "partition": i % 2} for i in range(20)], {"linger.ms": 500})

    async def main():
        async with made(settings(embedded)) as consumer:
            await consumer.assign([TopicPartition(topic, p, -2) for p in (0, 1)])

            async def take(partition, count):
                return values([await consumer.getone(partition) for _ in range(count)])

            assert await asyncio.gather(take(one, 5), take(other, 5)) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
            many = await asyncio.gather(*(consumer.getmany(p, timeout_ms=5000, max_records=4) for p in (one, other)))
            assert [values(next(iter(found.values()))) for found in many] == [[10, 12, 14, 16], [11, 13, 15, 17]]
            assert await take(one, 1) == [18]
            waiting = asyncio.ensure_future(consumer.getone(one))  # nothing comes, and others go on
            await asyncio.sleep(0.01)
            assert await asyncio.wait_for(take(other, 1), PATIENCE) == [19]
            began = time.monotonic()
            assert await consumer.getmany(other, timeout_ms=300) == {}
            assert 0.25 < time.monotonic() - began < PATIENCE
            waiting.cancel()
            await asyncio.wait([waiting])
            assert await consumer.paused() == []
            embedded.produce(topic, [{"value": b"20", "partition": 0}])
            assert await take(one, 1) == [20]

    run(main())


def test_getone_of_a_partition_leaves_the_pauses_of_the_application(embedded, topic, run):
    async def main():
        async with await reader(embedded, topic, (0, 1)) as consumer:
            one, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
            waiting = asyncio.ensure_future(consumer.getone(one))
            await asyncio.sleep(0.02)
            assert await consumer.paused() == []
            await consumer.pause([other])
            assert await consumer.paused() == [other]
            write(embedded, topic, [b"0"])
            assert values([await waiting]) == [0]
            assert await consumer.paused() == [other]

            waiting = asyncio.ensure_future(consumer.getone(one))
            await asyncio.sleep(0.02)
            await consumer.resume([other])
            assert await consumer.paused() == []
            embedded.produce(topic, [{"value": b"1", "partition": 1}])
            assert values([await consumer.poll(PATIENCE)]) == [1]  # between two turns of getone()
            await asyncio.sleep(0.05)
            await consumer.assign([TopicPartition(topic, p, -2 if p else 1) for p in (0, 1)])
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(waiting), 0.3)  # what has been assigned since is left out too
            write(embedded, topic, [b"2"])
            assert values([await waiting]) == [2]

    run(main())


@pytest.mark.parametrize("made", [AIOConsumer, DeserializingAIOConsumer])
def test_getmany_returns_at_most_4096_records(embedded, topic, made):
    write(embedded, topic, [b"0"] * 5000)

    async def main():
        async with made(settings(embedded)) as consumer:
            await consumer.assign([TopicPartition(topic, 0, -2)])
            counts = []
            while sum(counts) < 5000:
                found = await consumer.getmany(timeout_ms=5000, max_records=65536)
                counts += map(len, found.values())
                await asyncio.sleep(0.2)  # the rest is at hand
            assert max(counts) <= 4096

    asyncio.run(main())


def test_close_ends_calls_for_partitions_that_wait(embedded, topic, run):
    async def main():
        consumer = await reader(embedded, topic, (0, 1))
        one, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
        waiting = [asyncio.ensure_future(call) for call in (
            consumer.getone(one), consumer.getone(other), consumer.getmany(other, timeout_ms=60_000))]
        await asyncio.sleep(0.15)
        await consumer.close()
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE)
        assert [str(error) for error in ended] == ["Consumer closed"] * 3

    run(main())


# ---- deserializers


def deserializing(cluster, topic, offset=-2, **more):
    consumer = DeserializingAIOConsumer({**settings(cluster), **more})

    async def assign():
        await consumer.assign([TopicPartition(topic, 0, offset)])
        return consumer

    return assign()


async def slowly_int(data, context):
    """A coroutine that fails where there is no number."""
    await asyncio.sleep(0)
    return None if data is None else int(data)


@pytest.mark.parametrize("function", [slowly_int, lambda data, _: int(data)], ids=["coroutine", "function"])
def test_one_bad_record_raises_for_itself_only(embedded, topic, run, function):
    write(embedded, topic, [b"0", b"1", b"bad", b"3", b"worse", b"5", b"6"])

    async def main():
        async with await deserializing(embedded, topic, **{"value.deserializer": function}) as consumer:
            assert [m.value() for m in await consumer.consume(5, PATIENCE)] == [0, 1]
            with pytest.raises(ValueDeserializationError) as raised:
                await consumer.consume(5, PATIENCE)
            assert raised.value.kafka_message.value() == b"bad" and raised.value.kafka_message.offset() == 2
            assert raised.value.args[0].str().startswith(f"{topic} [0] at offset 2: ValueError: invalid literal")
            assert (await consumer.poll(PATIENCE)).value() == 3
            with pytest.raises(ValueDeserializationError):
                await consumer.poll(PATIENCE)
            assert [m.value() async for m in _first(consumer, 1)] == [5]
            many = await consumer.getmany(timeout_ms=9000)
            assert {p: [m.value() for m in found] for p, found in many.items()} == {TopicPartition(topic, 0): [6]}
            assert (await consumer.position([TopicPartition(topic, 0)]))[0].offset == 7

    run(main())


@pytest.mark.parametrize("how", ["seek", "pause", "incremental_unassign"])
def test_values_stay_with_their_records_if_another_task_changes_a_partition(embedded, topic, run, how):
    embedded.produce(topic, [{"value": b"%d" % (i // 2 + 100 * (i % 2)), "partition": i % 2} for i in range(10)])

    async def main():
        seen = []

        async def deserializer(data, context):
            await asyncio.sleep(0)
            seen.append(int(data))
            if len(seen) == 3:
                first = TopicPartition(topic, seen[0] // 100, 0)
                await getattr(consumer, how)(first if how == "seek" else [first])
            if len(seen) == 8:
                raise ValueError("bad")
            return int(data)

        consumer = DeserializingAIOConsumer({**settings(embedded), "value.deserializer": deserializer})
        async with consumer:
            await consumer.assign([TopicPartition(topic, p, 0) for p in (0, 1)])
            await asyncio.sleep(0.2)
            found = await consumer.consume(10, 0.5)
            found += await consumer.consume(10, 0.1)
            assert all(m.value() == m.offset() + 100 * m.partition() for m in found)
            assert {m.value() for m in found} == {*range(5), *range(100, 105)}

    run(main())


def test_deserializers_that_are_functions_let_others_run(embedded, topic, run):
    document = json.dumps(list(range(500))).encode()
    write(embedded, topic, [document] * 1000)

    async def main():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        function = {"value.deserializer": lambda data, _: json.loads(data)}
        async with await deserializing(embedded, topic, **function) as consumer:
            await asyncio.sleep(0.3)
            beside = asyncio.ensure_future(count())
            await asyncio.sleep(0)
            began, before = time.thread_time(), turns
            assert len(await consumer.consume(1000, PATIENCE)) == 1000
            assert turns - before > (time.thread_time() - began) * 1000 / 2
            beside.cancel()

    run(main())


def test_close_cancels_a_deserializer_that_outlasts_its_timeout(embedded, topic, run, caplog):
    write(embedded, topic, [b"0"])

    async def main():
        begun = asyncio.Event()

        async def hangs(data, context):
            begun.set()
            await asyncio.Event().wait()

        consumer = await deserializing(embedded, topic, **{"value.deserializer": hangs})
        waiting = asyncio.ensure_future(consumer.poll())
        await begun.wait()
        began = time.monotonic()
        await consumer.close(0.1)
        assert 0.1 <= time.monotonic() - began < PATIENCE
        with pytest.raises(RuntimeError, match="closed"):
            await waiting

    run(main())
    assert "CLOSE: cancelling a deserializer that has not ended" in caplog.text


@pytest.mark.parametrize("raises", [True, False], ids=["on_revoke raises", "close is cancelled"])
def test_built_deserializers_are_closed_however_close_ends(embedded, topic, run, raises):
    write(embedded, topic, [b"0"])

    async def main():
        closed = asyncio.Event()

        class Built:
            def __call__(self, data, context):
                return data

            async def close(self):
                await asyncio.sleep(0)
                closed.set()

        class Builder:
            def build(self, config, is_key):
                return Built(), config

        async def on_revoke(given, partitions):
            await asyncio.sleep(0.01)
            if raises:
                raise LookupError

        consumer = DeserializingAIOConsumer({
            **settings(embedded, group_id=f"group-of-{topic}"), "value.deserializer.builder": Builder()})
        await consumer.subscribe([topic], on_revoke=on_revoke)
        await take(consumer, 1)
        closing = asyncio.ensure_future(consumer.close())
        await asyncio.sleep(0)
        if not raises:
            closing.cancel()
        with pytest.raises(LookupError if raises else asyncio.CancelledError):
            await closing
        await asyncio.wait_for(closed.wait(), PATIENCE)

    run(main())


async def _first(consumer, count):
    async for message in consumer:
        yield message
        count -= 1
        if not count:
            return


def test_a_cancelled_deserializer_gets_its_record_again(embedded, topic, run):
    write(embedded, topic, [b"0", b"1"])

    async def main():
        begun, seen = asyncio.Event(), []

        async def hangs_once(data, context):
            seen.append(data)
            begun.set()
            if len(seen) == 2:
                await asyncio.Event().wait()
            return data

        async with await deserializing(embedded, topic, **{"value.deserializer": hangs_once}) as consumer:
            first = asyncio.ensure_future(consumer.consume(2, PATIENCE))
            await until(lambda: len(seen) == 2)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert (await consumer.position([TopicPartition(topic, 0)]))[0].offset < 0
            assert [m.value() for m in await consumer.consume(2, PATIENCE)] == [b"0", b"1"]

    run(main())


def test_deserializers_and_builders_of_confluent_kafka_are_taken(embedded, topic):
    class Built:
        closed = False
        resolver = None

        async def __call__(self, data, context):
            return await self.resolver(), context.topic, data

        def set_cluster_id_resolver(self, resolver):
            self.resolver = resolver

        async def close(self):
            self.closed = True

    built = Built()

    class Builder:
        def build(self, config, is_key):
            assert not is_key
            return built, config

    write(embedded, topic, [b"0"])

    async def main():
        async with await deserializing(embedded, topic, **{"value.deserializer.builder": Builder()}) as consumer:
            cluster_id = await consumer.cluster_id(timeout=PATIENCE)
            assert (await consumer.poll(PATIENCE)).value() == (cluster_id, topic, b"0")
            assert not built.closed
        assert built.closed

    asyncio.run(main())


def test_assignors_may_be_coroutines(embedded, topic, run):
    embedded.produce(topic, [{"value": b"%d" % i, "partition": i % 2} for i in range(4)])
    told = []

    class Own(Assignor):
        name = "own"

        async def assign(self, topics, group):
            await asyncio.sleep(0)
            (only,) = group.members
            return {only: [TopicPartition(topic, p) for p in range(topics[topic].partition_count)]}

        async def on_assignment(self, assignment, generation):
            await asyncio.sleep(0)
            told.append(len(assignment.partitions))

    async def main():
        async with member(embedded, partition_assignment_strategy=Own()) as consumer:
            await consumer.subscribe([topic])
            assert sorted(values(await take(consumer, 4))) == [0, 1, 2, 3]
        assert told == [2]

    run(main())


def test_an_oauth_cb_may_be_a_coroutine(unused_port):
    """It begins with the consumer, as confluent_kafka's does, and ends on the loop."""
    asked, errors = [], []

    async def oauth_cb(argument):
        asked.append(argument)
        await asyncio.sleep(0)
        if len(asked) == 1:
            raise ValueError("no token")
        return "token", time.time() + 300

    config = {"bootstrap.servers": f"127.0.0.1:{unused_port}", "security.protocol": "sasl_plaintext",
              "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.config": "argument", "oauth_cb": oauth_cb,
              "error_cb": errors.append}

    async def main():
        consumer = AIOConsumer(config)
        with pytest.raises(KafkaException, match="no token"):
            await consumer.poll(PATIENCE)
        await consumer.close()
        asked.append("again")
        consumer = AIOConsumer(config)
        assert await consumer.poll(0.05) is None
        await consumer.close()

    asyncio.run(main())
    assert asked == ["argument", "again", "argument"]
