"""Helpers shared by the tests of the consumer's API: settings, and loops that collect until a condition holds."""

import time

from kconsumer import Consumer, TopicPartition

PATIENCE = 20.0  # seconds within which anything must have happened


def settings(cluster, **more):
    """Configuration for a reader of `cluster`; keywords are properties with underscores for dots."""
    config = {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest"}
    config.update({name if name.endswith("_cb") or name == "on_commit" else name.replace("_", "."): v
                   for name, v in more.items()})
    return config


def reader(cluster, topic, partitions=(0,), offset=-2, **more):
    """A Consumer that reads the partitions of `topic` from `offset`."""
    consumer = Consumer(settings(cluster, **more))
    consumer.assign([TopicPartition(topic, p, offset) for p in partitions])
    return consumer


def until(condition, seconds=PATIENCE, step=0.01):
    """Wait until `condition()` is true; its value."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found or time.monotonic() > deadline:
            assert found, "it did not happen in time"
            return found
        time.sleep(step)


def poll_until(consumer, condition):
    """Poll, for the callbacks, until `condition()` is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        consumer.poll(0.05)
        assert time.monotonic() < deadline, "it did not happen in time"


def take(consumer, count, seconds=PATIENCE):
    """Exactly `count` records by poll(); an error among them fails the test."""
    found = []
    deadline = time.monotonic() + seconds
    while len(found) < count:
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
        assert time.monotonic() < deadline, f"{len(found)} of {count} records within {seconds} s"
    return found


def take_error(consumer, seconds=PATIENCE):
    """The next Message with an error; records before it are passed over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is not None:
            return message
    raise AssertionError("no error came")


def take_batches(consumer, count, seconds=PATIENCE, **more):
    """`count` records or a few more by consume_batch(), as a list of Messages."""
    found = []
    deadline = time.monotonic() + seconds
    while len(found) < count:
        found.extend(consumer.consume_batch(timeout=0.2, **more))
        assert time.monotonic() < deadline, f"{len(found)} of {count} records within {seconds} s"
    return found


def offsets(messages):
    return [m.offset() for m in messages]
