"""Helpers shared by the tests against a real Kafka: fast writing, reading with a ledger, and topic changes."""

import threading
import time
from collections import defaultdict
from contextlib import contextmanager

import confluent_kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from kconsumer import Consumer, TopicPartition

PATIENCE = 60.0  # seconds within which anything must have happened; a broker's start takes some of them
OLD = {"enable.idempotence": False, "max.in.flight": 1}  # a producer for old brokers


def value_of(partition, offset, size=100):
    """The value of a record of write(): it says where it stands."""
    return (b"%d/%d " % (partition, offset)).ljust(size, b".")


def write(cluster, topic, partitions, count, *, first=0, size=100, **config):
    """`count` records to each partition, whose offsets go on at `first`.

    The producer is idempotent, or OLD: the partitions of a new topic have no leader at first, and a request that is
    sent again would arrive after later ones, even with one in flight.
    """
    producer = confluent_kafka.Producer({
        "bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 20, "enable.idempotence": True,
        "queue.buffering.max.messages": 2_000_000, **{k.replace("_", "."): v for k, v in config.items()}})
    failed = []

    def on_delivery(error, message):
        if error is not None:
            failed.append(error)

    for p in partitions:
        for offset in range(first, first + count):
            while True:
                try:
                    producer.produce(topic, value_of(p, offset, size), partition=p, on_delivery=on_delivery)
                    break
                except BufferError:
                    producer.poll(0.1)
    assert producer.flush(PATIENCE) == 0
    assert failed == []


def open_reader(cluster, topic, partitions, offset=0, **more):
    consumer = Consumer({
        "bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "error", "reconnect.backoff.max.ms": 500,
        **{k.replace("_", ".") if not k.endswith("_cb") else k: v for k, v in more.items()}})
    consumer.assign([TopicPartition(topic, p, offset) for p in partitions])
    return consumer


def peers_first(consumers):
    """In the order to close them: confluent-kafka's may wait for ever when its group rebalances while it closes
    (librdkafka's issue 4041), as it would after one of kconsumer's."""
    return sorted(consumers, key=lambda consumer: isinstance(consumer, Consumer))


class Ledger:
    """The records read of each partition: every record must follow the last one."""

    def __init__(self, partitions, first=0):
        self.next = dict.fromkeys(partitions, first)
        self.errors = []

    def __len__(self):
        return sum(self.next.values())

    def add(self, message):
        if message.error() is not None:
            self.errors.append(message.error())
            return
        p = message.partition()
        assert message.offset() == self.next[p], f"partition {p}: {message.offset()} came, not {self.next[p]}"
        text = b"%d/%d " % (p, message.offset())
        assert message.value()[:len(text)] == text
        self.next[p] += 1


def by_poll(consumer, ledger):
    message = consumer.poll(0.05)
    if message is not None:
        ledger.add(message)


def by_consume(consumer, ledger):
    for message in consumer.consume(1000, 0.05):
        ledger.add(message)


def by_consume_batch(consumer, ledger):
    for message in consumer.consume_batch(max_records=2000, timeout=0.05):
        ledger.add(message)


WAYS = {"poll": by_poll, "consume": by_consume, "consume_batch": by_consume_batch}


def read_until(take, consumer, ledger, done, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not done():
        take(consumer, ledger)
        assert time.monotonic() < deadline, f"after {seconds} s: {ledger.next}, errors {ledger.errors}"


@contextmanager
def meanwhile(action):
    """Run `action` on another thread; what it raised is raised at the end."""
    raised = []

    def run():
        try:
            action()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(2 * PATIENCE)
    assert not thread.is_alive()
    if raised:
        raise raised[0]


def admin(cluster):
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


def configure_group(cluster, group, **config):
    """Set dynamic configurations of a group (KIP-848), with underscores for dots."""
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()])
    client = admin(cluster)
    client.incremental_alter_configs([resource])[resource].result(PATIENCE)


def delete_records(cluster, topic, before):
    """Delete each partition's records below the offset given for it."""
    wanted = [confluent_kafka.TopicPartition(topic, p, offset) for p, offset in before.items()]
    client = admin(cluster)
    for future in client.delete_records(wanted).values():
        future.result(PATIENCE)


def add_partitions(cluster, topic, total):
    """Add partitions, and wait until brokers lead them: for a producer that asks before, they do not exist."""
    client = admin(cluster)
    client.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE)
    until(lambda: sorted(p for p, leader in cluster.leaders(topic).items() if leader >= 0) == list(range(total)),
          "the partitions have leaders")


def until(done, what, *consumers):
    """Waits for a condition; meanwhile the consumers poll."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, what
        for consumer in consumers:
            consumer.poll(0.02)
        time.sleep(0.01)


def first_message(consumer):
    """The next message or error that poll() gives."""
    deadline = time.monotonic() + PATIENCE
    while (message := consumer.poll(1.0)) is None:
        assert time.monotonic() < deadline, "no message"
    return message


def collected(consumer, seconds):
    """Everything that poll() gives within some seconds, by partition."""
    found = defaultdict(list)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        message = consumer.poll(0.05)
        if message is not None:
            found[message.partition()].append(message)
    return found
