"""close(membership=…) on a real broker (KIP-1092): the members of the group afterwards."""

import asyncio
import time

import pytest
from confluent_kafka.admin import AdminClient
from reading import until

from kconsumer import Consumer
from kconsumer.aio import AIOConsumer

SESSION_S = 6


def config(kafka, group, protocol, instance):
    made = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "group.protocol": protocol,
            "auto.offset.reset": "earliest"}
    if protocol == "classic":
        made |= {"session.timeout.ms": SESSION_S * 1000, "heartbeat.interval.ms": 500}
    return made if instance is None else {**made, "group.instance.id": instance}


def close_sync(settings, topic, membership):
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.05)
    consumer.close(membership=membership)


def close_aio(settings, topic, membership):
    async def run():
        consumer = AIOConsumer(settings)
        await consumer.subscribe([topic])
        while not await consumer.assignment():
            await consumer.poll(0.05)
        await consumer.close(membership=membership)

    asyncio.run(run())


def members(kafka, group):
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    (described,) = admin.describe_consumer_groups([group]).values()
    return len(described.result().members)


STAYS = {(None, "default"): False, (None, "leave"): False, (None, "remain"): True,
         ("i", "default"): True, ("i", "leave"): False, ("i", "remain"): True}


@pytest.mark.parametrize("close", [close_sync, close_aio], ids=["Consumer", "AIOConsumer"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("case", STAYS, ids=str)
def test_a_member_stays_or_leaves(kafka, topic_name, close, protocol, case):
    topic, group = topic_name(), topic_name()
    kafka.create_topic(topic, 2)
    instance, membership = case
    close(config(kafka, group, protocol, instance), topic, membership)
    assert members(kafka, group) == (1 if STAYS[case] else 0)


def test_a_member_that_stays_is_removed_when_its_session_times_out(kafka, topic_name):
    topic, group = topic_name(), topic_name()
    kafka.create_topic(topic, 2)
    close_sync(config(kafka, group, "classic", None), topic, "remain")
    start = time.monotonic()
    until(lambda: members(kafka, group) == 0, "the member is still there")
    assert time.monotonic() - start > SESSION_S / 2
