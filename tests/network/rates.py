"""Owns: how fast one consumer reads over a long path, and the forwarder's own ceiling on that path.

Run as ``rates.py OPTIONS`` (JSON) it is a program in a namespace: it reads a topic, or sends or receives raw bytes, for
some seconds. Threads: one, or one for each raw connection. Never: judges.
"""

from __future__ import annotations

import importlib
import json
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from confluent_kafka import Producer
from net import MEMBERS, NetworkOfBrokers

ROUND_TRIP_MS = 100
SECONDS, WARM_S = 6.0, 4.0
STREAMS = 4
RECORD_BYTES = 1_000
RECORDS = {1: 600_000, 48: 2_000_000}
FLUSHED = 90_000  # the producer's queue has 100,000
RAW_PORT = 7_000
MIB = 1 << 20
TUNED = {"fetch.message.max.bytes": 64 * MIB, "fetch.max.bytes": 64 * MIB, "receive.message.max.bytes": 65 * MIB,
         "queued.max.messages.kbytes": 512 * 1024, "queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 10}
WAYS: dict[str, tuple[str, dict[str, object]]] = {
    "kconsumer": ("kconsumer", {}),
    "confluent": ("confluent_kafka", {}),
    "confluent, tuned": ("confluent_kafka", TUNED),
}


def run(brokers: NetworkOfBrokers, rounds: int) -> dict[str, Any]:
    """Measure all ways to read, alternately; return MB/s by partitions and way, and the ceiling."""
    net, cluster = brokers.net, brokers.cluster
    for partitions, count in RECORDS.items():
        cluster.create_topic(f"rate-{partitions}", partitions, replication=1)
        _fill(cluster.bootstrap_servers, f"rate-{partitions}", partitions, count)
    net.order(f"link * {MEMBERS} delay_us={ROUND_TRIP_MS * 500}")
    net.order(f"link {MEMBERS} * delay_us={ROUND_TRIP_MS * 500}")
    found: dict[str, Any] = {str(partitions): {way: [] for way in WAYS} for partitions in RECORDS}
    found |= {"ceiling": [], "MB per CPU second": []}
    for _ in range(rounds):
        cpu_s, moved = net.cpu_s(), net.forwarded_bytes()
        found["ceiling"].append(_ceiling(brokers))
        found["MB per CPU second"].append(
            round((net.forwarded_bytes() - moved) / (net.cpu_s() - cpu_s) / 1e6, 1))
        for partitions in RECORDS:
            for way, (module, config) in WAYS.items():
                options = {"module": module, "topic": f"rate-{partitions}", "partitions": partitions,
                           "config": {"bootstrap.servers": cluster.bootstrap_servers, **config}}
                found[str(partitions)][way].append(_output(net.inside(MEMBERS), options))
        print(f"MB/s at {ROUND_TRIP_MS} ms: {found}", flush=True)
    net.clear()
    return found


def _fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    """Write records; a delivery report of each one in Python would take most of the time."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(count):
        producer.produce(topic, b"x" * RECORD_BYTES, partition=number // 1000 % partitions)
        if (number % FLUSHED == FLUSHED - 1 or number == count - 1) and producer.flush(300):
            raise RuntimeError(f"records were not written to {topic}")


def _command(inside: list[str], options: dict[str, object]) -> list[str]:
    return [*inside, sys.executable, __file__, json.dumps(options)]


def _output(inside: list[str], options: dict[str, object]) -> float:
    done = subprocess.run(_command(inside, options), capture_output=True, text=True, check=True, timeout=300)
    return round(float(done.stdout), 1)


def _ceiling(brokers: NetworkOfBrokers) -> float:
    source = subprocess.Popen(_command(brokers.net.inside(1), {"send": True}), stdout=subprocess.PIPE)
    try:
        assert source.stdout is not None
        source.stdout.readline()
        return _output(brokers.net.inside(MEMBERS), {"receive": brokers.net.address(1)})
    finally:
        source.kill()
        source.wait()


def _send() -> None:
    listener = socket.create_server(("0.0.0.0", RAW_PORT))
    print("listening", flush=True)

    def serve(connection: socket.socket) -> None:
        block = b"x" * MIB
        try:
            while True:
                connection.sendall(block)
        except OSError:
            connection.close()

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def _receive(address: str) -> float:
    counts = [0] * STREAMS

    def take(number: int) -> None:
        with socket.create_connection((address, RAW_PORT)) as connection:
            block = bytearray(MIB)
            while True:
                counts[number] += connection.recv_into(block)

    for number in range(STREAMS):
        threading.Thread(target=take, args=(number,), daemon=True).start()
    time.sleep(WARM_S)
    began, before = time.monotonic(), sum(counts)
    time.sleep(SECONDS)
    return (sum(counts) - before) / (time.monotonic() - began) / 1e6


def _read(options: dict[str, Any]) -> float:
    client = importlib.import_module(options["module"])
    consumer = client.Consumer({"group.id": "rates", "enable.auto.commit": False, **options["config"]})
    consumer.assign([client.TopicPartition(options["topic"], p, 0) for p in range(options["partitions"])])
    count, began, measured = 0, 0.0, 0.0
    while True:
        messages = consumer.consume(10_000, 0.5)
        now = time.monotonic()
        began = began or (now if messages else 0.0)
        if began and not measured and now >= began + WARM_S:
            measured, count = now, 0
        elif measured:
            count += len(messages)
            if now >= measured + SECONDS or not messages:
                consumer.close()
                return count * RECORD_BYTES / (now - measured) / 1e6


def main(options: dict[str, Any]) -> None:
    if "send" in options:
        _send()
    print(_receive(options["receive"]) if "receive" in options else _read(options))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
