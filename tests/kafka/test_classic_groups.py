"""Members of classic groups on a real broker, beside confluent-kafka's."""

import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kconsumer import Consumer, KafkaError


def config(kafka, group, **settings):
    return {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "topic.metadata.refresh.interval.ms": 1000,
            **{name.replace("_", "."): value for name, value in settings.items()}}


@pytest.fixture
def topic(kafka, topic_name):
    name = topic_name()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})  # lives until the topic is there
    for done in admin.create_topics([NewTopic(name, 6, 1)]).values():
        done.result()
    return name


def poll_until(members, wanted, timeout=60):
    """Polls all members until `wanted()`; the codes of errors met."""
    errors = []
    end = time.monotonic() + timeout
    while not wanted():
        assert time.monotonic() < end, [numbers(m) for m in members]
        for member in members:
            message = member.poll(0.05)
            if message is not None and message.error() is not None:
                errors.append(message.error().code())
    return errors


def numbers(member):
    return sorted(p.partition for p in member.assignment())


def shared(members, each):
    """Whether every member has `each` partitions, together all six."""
    have = [numbers(m) for m in members]
    return all(len(h) == each for h in have) and sorted(n for h in have for n in h) == list(range(6))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_with_confluent_kafka(kafka, topic, topic_name, made, strategy):
    settings = config(kafka, topic_name(), partition_assignment_strategy=strategy)
    made += [Consumer(settings), confluent_kafka.Consumer(settings), Consumer(settings)]
    for member in made:
        member.subscribe([topic])
    poll_until(made, lambda: shared(made, 2))
    made.pop(1).close()
    poll_until(made, lambda: shared(made, 3))


def test_a_static_member_that_comes_back_finds_its_partitions(kafka, topic, topic_name, made):
    settings = config(kafka, topic_name(), partition_assignment_strategy="range")
    revoked = []
    made += [Consumer({**settings, "group.instance.id": "a"}), Consumer({**settings, "group.instance.id": "b"})]
    made[0].subscribe([topic], on_revoke=lambda c, p: revoked.append(p))
    made[1].subscribe([topic])
    poll_until(made, lambda: shared(made, 3))
    before, seen = numbers(made[1]), len(revoked)
    made.pop().close()
    made.append(Consumer({**settings, "group.instance.id": "b"}))
    made[1].subscribe([topic])
    poll_until(made, lambda members=made, wanted=before: numbers(members[1]) == wanted)
    assert len(revoked) == seen


def test_a_static_member_that_comes_back_with_another_topic_gets_it(kafka, topic, topic_name, made):
    """The coordinator answers its join with the assignment of its former subscription."""
    other = topic_name()
    kafka.create_topic(other, 2)
    settings = config(kafka, topic_name(), partition_assignment_strategy="range", session_timeout_ms=30_000)
    made += [Consumer({**settings, "group.instance.id": "a"}), Consumer({**settings, "group.instance.id": "b"})]
    for member in made:
        member.subscribe([topic])
    poll_until(made, lambda: shared(made, 3))
    made.pop().close()
    back = Consumer({**settings, "group.instance.id": "b"})
    made.append(back)
    seen = set()
    back.subscribe([other], on_assign=lambda _, partitions: seen.update(p.topic for p in partitions))
    poll_until(made, lambda: numbers(back) == [0, 1])
    assert seen == {other}


def test_a_second_member_of_an_instance_fences_the_first(kafka, topic, topic_name, made):
    settings = config(kafka, topic_name(), group_instance_id="i", partition_assignment_strategy="range")
    made += [Consumer(settings), Consumer(settings)]
    made[0].subscribe([topic])
    poll_until(made[:1], lambda: len(numbers(made[0])) == 6)
    made[1].subscribe([topic])
    errors = []
    poll_until(made, lambda: len(numbers(made[1])) == 6 and not made[0].assignment())
    end = time.monotonic() + 10
    while not errors and time.monotonic() < end:
        message = made[0].poll(0.1)
        if message is not None and message.error() is not None:
            errors.append((message.error().cause, message.error().fatal()))
    assert errors == [(82, True)]


def test_a_member_that_does_not_poll_loses_its_partitions_and_comes_back(kafka, topic, topic_name, made):
    settings = config(kafka, topic_name(), max_poll_interval_ms=6000,
                      partition_assignment_strategy="cooperative-sticky")
    lost = []
    made += [Consumer(settings), Consumer(settings)]
    made[0].subscribe([topic], on_lost=lambda c, p: lost.append(len(p)))
    made[1].subscribe([topic])
    poll_until(made, lambda: shared(made, 3))
    poll_until(made[1:], lambda: len(numbers(made[1])) == 6)
    assert lost == []
    errors = poll_until(made, lambda: shared(made, 3))
    assert lost == [3]
    assert errors == [KafkaError._MAX_POLL_EXCEEDED]


def test_a_pattern_follows_topics_that_come_grow_and_go(kafka, topic_name, made):
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    name = topic_name()
    made.append(Consumer(config(kafka, topic_name(), partition_assignment_strategy="range")))
    made[0].subscribe([f"^{name}$"])
    poll_until(made, lambda: made[0].memberid() is not None)
    for done in admin.create_topics([NewTopic(name, 2, 1)]).values():
        done.result()
    poll_until(made, lambda: numbers(made[0]) == [0, 1])
    for done in admin.create_partitions([NewPartitions(name, 4)]).values():
        done.result()
    poll_until(made, lambda: numbers(made[0]) == [0, 1, 2, 3])
    for done in admin.delete_topics([name]).values():
        done.result()
    poll_until(made, lambda: numbers(made[0]) == [])
