"""Offsets that a consumer commits to a real Kafka, and begins at."""

import itertools
import threading
import time

import confluent_kafka
import pytest
from reading import OLD, PATIENCE, delete_records, meanwhile, until, value_of, write

from kconsumer import OFFSET_BEGINNING, OFFSET_INVALID, OFFSET_STORED, Consumer, KafkaException, TopicPartition
from kconsumer.errors import CommitFailedError, KafkaError
from kconsumer.testing import KafkaCluster

pytestmark = pytest.mark.timeout(180)

RECORDS = 100
_numbers = itertools.count()


def group_name():
    return f"commits-{next(_numbers)}"


@pytest.fixture(scope="module")
def topic(kafka):
    """RECORDS records in each of two partitions; tests do not write to it."""
    kafka.create_topic("commits", partitions=2)
    write(kafka, "commits", [0, 1], RECORDS)
    return "commits"


def reader(cluster, group, **more):
    return Consumer({
        "bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, **{k.replace("_", ".") if k != "on_commit" else k: v for k, v in more.items()}})


def read(consumer, count):
    found = consumer.consume(count, PATIENCE)
    assert [m.error() for m in found] == [None] * count
    return found


def committed(cluster, group, topic, partitions=(0,)):
    """(offset, leader epoch) of each partition, as librdkafka reads it."""
    asking = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    try:
        asked = [confluent_kafka.TopicPartition(topic, p) for p in partitions]
        return [(p.offset, p.leader_epoch) for p in asking.committed(asked, PATIENCE)]
    finally:
        asking.close()


def offsets_of(cluster, group, topic, partitions=(0,)):
    return [found[0] for found in committed(cluster, group, topic, partitions)]


# -- what commit() takes and gives


def test_a_message_commits_the_offset_after_it(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        messages = read(consumer, 10)
        (result,) = consumer.commit(messages[4], asynchronous=False)
        assert (result.topic, result.partition, result.offset, result.error) == (topic, 0, 5, None)
        assert committed(kafka, group, topic) == [(5, messages[4].leader_epoch())]
        (read_back,) = consumer.committed([TopicPartition(topic, 0)])
        assert (read_back.offset, read_back.leader_epoch) == (5, messages[4].leader_epoch())


def test_offsets_with_metadata(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        result = consumer.commit(offsets=[TopicPartition(topic, 0, 7, "über"), TopicPartition(topic, 1, 9)],
                                 asynchronous=False)
        assert [(p.partition, p.offset, p.error) for p in result] == [(0, 7, None), (1, 9, None)]
        found = consumer.committed([TopicPartition(topic, 1), TopicPartition(topic, 0)])
        assert [(p.partition, p.offset, p.metadata) for p in found] == [(1, 9, None), (0, 7, "über")]
    # confluent_kafka reads metadata beyond its end, so it is not asked for that.
    assert offsets_of(kafka, group, topic, [0, 1]) == [7, 9]


def test_commit_without_arguments_commits_the_returned_positions(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        counts = [0, 0]
        for message in read(consumer, 150):
            counts[message.partition()] += 1
        result = consumer.commit(asynchronous=False)
        assert {p.partition: p.offset for p in result} == dict(enumerate(counts))
        assert offsets_of(kafka, group, topic, [0, 1]) == counts
        with pytest.raises(KafkaException) as refused:
            consumer.commit(asynchronous=False)
        assert refused.value.args[0].code() == KafkaError._NO_OFFSET


def test_asynchronous_commits_call_on_commit(kafka, topic):
    group, told = group_name(), []
    with reader(kafka, group, on_commit=lambda error, offsets: told.append((error, offsets))) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        messages = read(consumer, 10)
        for message in messages:
            assert consumer.commit(message) is None
        until(lambda: len(told) == 10, "ten commits are reported", consumer)
    assert [error for error, _ in told] == [None] * 10
    assert [[p.offset for p in offsets] for _, offsets in told] == [[n + 1] for n in range(10)]
    assert offsets_of(kafka, group, topic) == [10]


def test_the_last_of_many_wins_and_close_waits_for_it(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        for n in range(2000):
            consumer.commit(offsets=[TopicPartition(topic, n % 2, n)])
    assert offsets_of(kafka, group, topic, [0, 1]) == [1998, 1999]


def test_from_many_threads(kafka, topic):
    group, failures = group_name(), []
    with reader(kafka, group) as consumer:
        def commit(partition):
            try:
                for n in range(50):
                    (result,) = consumer.commit(offsets=[TopicPartition(topic, partition, n)], asynchronous=False)
                    assert result.error is None
                    (found,) = consumer.committed([TopicPartition(topic, partition)], 30)
                    assert found.offset == n
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=commit, args=(p,)) for p in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert offsets_of(kafka, group, topic, [0, 1]) == [49, 49]


def test_a_batch(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        batch = consumer.consume_batch(max_records=30, timeout=PATIENCE)
        assert len(batch) > 0
        consumer.commit(batch, asynchronous=False)
    assert offsets_of(kafka, group, topic) == [len(batch)]


def test_one_partition_may_fail_alone(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        with pytest.raises(KafkaException) as refused:
            consumer.commit(offsets=[TopicPartition(topic, 0, 5, "x" * 5000), TopicPartition(topic, 1, 6)],
                            asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
        assert f"{topic} [0]" in refused.value.args[0].str()
    assert offsets_of(kafka, group, topic, [0, 1]) == [OFFSET_INVALID, 6]


def test_a_topic_that_does_not_exist(kafka):
    with reader(kafka, group_name()) as consumer:
        begun = time.monotonic()
        with pytest.raises(KafkaException) as refused:
            consumer.commit(offsets=[TopicPartition("no-such-topic", 0, 5)], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert time.monotonic() - begun < 10
        (found,) = consumer.committed([TopicPartition("no-such-topic", 0)], 10)
        assert found.offset == OFFSET_INVALID


# -- automatic commits


def test_the_interval_commits_the_processed_records(kafka, topic):
    """Returned before the latest entry into poll: the record that the application works on is not among it."""
    group = group_name()
    consumer = reader(kafka, group, enable_auto_commit=True, auto_commit_interval_ms=200)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        for _ in range(10):
            while consumer.poll(1.0) is None:
                pass
        # Ten were returned, nine processed.
        time.sleep(0.5)
        assert offsets_of(kafka, group, topic)[0] <= 9
        consumer.pause([TopicPartition(topic, 0)])
        until(lambda: offsets_of(kafka, group, topic) == [10], "10 is committed", consumer)
    finally:
        consumer.close()


def test_a_waiting_poll_is_woken_for_the_interval(kafka, topic):
    group = group_name()
    with reader(kafka, group, enable_auto_commit=True, auto_commit_interval_ms=300) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        read(consumer, RECORDS)
        with meanwhile(lambda: until(lambda: offsets_of(kafka, group, topic) == [RECORDS], "commit")) as watching:
            while watching.is_alive():
                assert consumer.poll(1.0) is None


def test_close_commits_the_rest(kafka, topic):
    group = group_name()
    with reader(kafka, group, enable_auto_commit=True, auto_commit_interval_ms=60_000) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        read(consumer, 42)
    assert offsets_of(kafka, group, topic) == [42]


def test_without_automatic_commits_close_commits_nothing(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        read(consumer, 42)
    assert offsets_of(kafka, group, topic) == [OFFSET_INVALID]


@pytest.mark.parametrize("way", ["interval", "close", "commit"])
def test_without_automatic_storing_only_stored_offsets_are_committed(kafka, topic, way):
    group, told = group_name(), []
    consumer = reader(kafka, group, enable_auto_offset_store=False, enable_auto_commit=way != "commit",
                      auto_commit_interval_ms=200 if way == "interval" else 60_000,
                      on_commit=lambda error, offsets: told.append((error, [p.offset for p in offsets])))
    with consumer:
        consumer.assign([TopicPartition(topic, 0)])
        messages = read(consumer, 50)
        consumer.pause([TopicPartition(topic, 0)])
        time.sleep(0.5)
        assert offsets_of(kafka, group, topic) == [OFFSET_INVALID]
        consumer.store_offsets(messages[19])
        if way == "commit":
            (result,) = consumer.commit(asynchronous=False)
            assert result.offset == 20
        elif way == "interval":
            until(lambda: offsets_of(kafka, group, topic) == [20], "20 is committed", consumer)
            until(lambda: told, "a commit is reported", consumer)
            assert told == [(None, [20])]
    assert offsets_of(kafka, group, topic) == [20]


def test_a_new_assignment_commits_the_removed_partitions(kafka, topic):
    group = group_name()
    with reader(kafka, group, enable_auto_commit=True, auto_commit_interval_ms=60_000) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        read(consumer, 30)
        consumer.assign([TopicPartition(topic, 1)])
        until(lambda: offsets_of(kafka, group, topic) == [30], "30 is committed", consumer)


# -- where reading begins


@pytest.mark.parametrize("policy", ["earliest", "latest", "error"])
@pytest.mark.parametrize("start", [OFFSET_INVALID, OFFSET_STORED])
def test_the_committed_offset_comes_before_the_policy(kafka, topic, policy, start):
    group = group_name()
    with reader(kafka, group, auto_offset_reset=policy) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 60)], asynchronous=False)
        consumer.assign([TopicPartition(topic, 0, start)])
        assert read(consumer, 1)[0].offset() == 60


@pytest.mark.parametrize("policy", ["earliest", "latest", "error"])
def test_the_policy_decides_where_nothing_is_committed(kafka, topic_name, policy):
    topic = topic_name()
    kafka.create_topic(topic)
    write(kafka, topic, [0], 10)
    with reader(kafka, group_name(), auto_offset_reset=policy) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        if policy == "error":
            (message,) = consumer.consume(1, PATIENCE)
            assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
            assert message.partition() == 0
        elif policy == "earliest":
            assert read(consumer, 1)[0].offset() == 0
        else:
            until(lambda: consumer.lag().get((topic, 0)) == 0, "the lag is 0", consumer)
            write(kafka, topic, [0], 1, first=10)
            assert read(consumer, 1)[0].offset() == 10


@pytest.mark.parametrize("policy", ["earliest", "latest", "error"])
@pytest.mark.parametrize("where", ["deleted", "beyond"])
def test_a_committed_offset_that_is_out_of_range(kafka, topic_name, policy, where):
    topic, group = topic_name(), group_name()
    kafka.create_topic(topic)
    write(kafka, topic, [0], 50)
    if where == "deleted":
        delete_records(kafka, topic, {0: 20})
    with reader(kafka, group, auto_offset_reset=policy) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5 if where == "deleted" else 500)], asynchronous=False)
        consumer.assign([TopicPartition(topic, 0)])
        if policy == "error":
            (message,) = consumer.consume(1, PATIENCE)
            assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
            assert ("5" if where == "deleted" else "500") in message.error().str()
        elif policy == "earliest":
            assert read(consumer, 1)[0].offset() == (20 if where == "deleted" else 0)
        else:
            # `latest` is where the log ends when it is asked: what is written later is read.
            until(lambda: consumer.lag().get((topic, 0)) == 0, "the lag is 0", consumer)
            write(kafka, topic, [0], 1, first=50)
            assert read(consumer, 1)[0].offset() == 50


def test_a_seek_wins_over_the_committed_offset(kafka, topic):
    group = group_name()
    with reader(kafka, group) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 60)], asynchronous=False)
        for n in range(20):
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0, n))
            assert read(consumer, 1)[0].offset() == n


def test_two_consumers_take_turns_without_a_gap_or_a_repetition(kafka, topic):
    group, values = group_name(), []
    while len(values) < RECORDS:
        with reader(kafka, group) as consumer:
            consumer.assign([TopicPartition(topic, 1)])
            values += [m.value() for m in read(consumer, 20)]
            consumer.commit(asynchronous=False)
    assert values == [value_of(1, n) for n in range(RECORDS)]


# -- transactions


def test_read_committed_waits_for_offsets_of_an_open_transaction(kafka, topic):
    group = group_name()
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": group})
    producer.init_transactions(PATIENCE)
    with reader(kafka, group) as stable, reader(kafka, group, isolation_level="read_uncommitted") as hasty:
        stable.commit(offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
        producer.begin_transaction()
        producer.send_offsets_to_transaction([confluent_kafka.TopicPartition(topic, 0, 40)],
                                             confluent_kafka.Consumer({
                                                 "bootstrap.servers": kafka.bootstrap_servers, "group.id": group,
                                             }).consumer_group_metadata(), PATIENCE)
        with pytest.raises(KafkaException) as late:
            stable.committed([TopicPartition(topic, 0)], 0.5)
        assert late.value.args[0].code() == KafkaError._TIMED_OUT
        assert hasty.committed([TopicPartition(topic, 0)], 10)[0].offset == 10
        stable.assign([TopicPartition(topic, 0)])
        assert stable.consume(1, 0.5) == []
        producer.commit_transaction(PATIENCE)
        assert read(stable, 1)[0].offset() == 40
        assert stable.committed([TopicPartition(topic, 0)], 10)[0].offset == 40


# -- members of the group, and others


def test_a_non_member_cannot_commit_into_a_group_with_members(kafka, topic):
    group, assigned = group_name(), []
    member = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    member.subscribe([topic], on_assign=lambda _, partitions: assigned.extend(partitions))
    try:
        until(lambda: assigned, "the member has the partition", member)
        with reader(kafka, group) as stranger:
            with pytest.raises(CommitFailedError) as refused:
                stranger.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
            assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
            assert not refused.value.args[0].retriable()
            assert stranger.committed([TopicPartition(topic, 0)], 10)[0].offset == OFFSET_INVALID
    finally:
        member.close()


# -- brokers that fail, and old ones


def coordinator_of(cluster, topic, group):
    """The broker that leads the partition of __consumer_offsets that the group hashes to (Java's String.hashCode)."""
    code = 0
    for c in group:
        code = (31 * code + ord(c)) & 0xFFFFFFFF
    partitions = cluster.leaders("__consumer_offsets")
    return partitions[(code & 0x7FFFFFFF) % len(partitions)]


def test_commits_survive_the_coordinator(kafka3, topic_name):
    topic, group, told = topic_name(), group_name(), []
    kafka3.create_topic(topic, partitions=1)
    write(kafka3, topic, [0], 10)
    with reader(kafka3, group, on_commit=lambda error, offsets: told.append((error, offsets[0].offset))) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        victim = coordinator_of(kafka3, topic, group)
        kafka3.kill(victim)
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, 2)])
            consumer.commit(offsets=[TopicPartition(topic, 0, 3)])
            (result,) = consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
            assert (result.offset, result.error) == (4, None)
            assert consumer.committed([TopicPartition(topic, 0)], PATIENCE)[0].offset == 4
            assert coordinator_of(kafka3, topic, group) != victim
            consumer.assign([TopicPartition(topic, 0)])
            assert read(consumer, 1)[0].offset() == 4
            # Whatever the results of the first two, on_commit reported each, in order.
            until(lambda: len(told) == 2, "two commits are reported", consumer)
            assert [offset for _, offset in told] == [2, 3]
        finally:
            kafka3.restart(victim)
    assert offsets_of(kafka3, group, topic) == [4]


@pytest.mark.parametrize("version", ["3.9.1", "0.11.0.3"])
def test_an_old_broker(version, topic_name):
    topic, group = topic_name(), group_name()
    with KafkaCluster(1, version=version) as cluster:
        cluster.create_topic(topic, partitions=2)
        write(cluster, topic, [0, 1], 20, **OLD)
        with reader(cluster, group) as consumer:
            consumer.assign([TopicPartition(topic, p) for p in (0, 1)])
            read(consumer, 40)
            consumer.commit(offsets=[TopicPartition(topic, 0, 5, "mark"), TopicPartition(topic, 1, 15)],
                            asynchronous=False)
            found = consumer.committed([TopicPartition(topic, p) for p in (0, 1)], PATIENCE)
            assert [(p.offset, p.metadata) for p in found] == [(5, "mark"), (15, None)]
        with reader(cluster, group, enable_auto_commit=True) as consumer:
            consumer.assign([TopicPartition(topic, 1)])
            assert [m.offset() for m in read(consumer, 5)] == [15, 16, 17, 18, 19]
        with reader(cluster, group) as consumer:
            assert consumer.committed([TopicPartition(topic, 1)], PATIENCE)[0].offset == 20
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            assert read(consumer, 1)[0].offset() == 0
