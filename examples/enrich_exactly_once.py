"""Reads a topic, adds data to each record, and writes the results to another topic, exactly once.

    python enrich_exactly_once.py -b localhost:9092 -i flights -o flights-enriched --id enrich-0
    pip install kconsumer confluent-kafka

One transaction of the producer commits the results and the offsets of their records. So after a crash, both exist or
neither does. Readers of the output need isolation.level=read_committed. Give every instance a separate --id and keep it
over restarts: a new instance with the same id fences the old one.
"""

from __future__ import annotations

import argparse
import json
import signal

from confluent_kafka import KafkaException, Producer

from kconsumer import OFFSET_BEGINNING, Consumer, Message, WakeupError

CARRIERS = {"AA": "American", "DL": "Delta", "UA": "United"}


def enrich(message: Message) -> bytes:
    """Process a record: replace this by your code."""
    record = json.loads(message.value())
    record["carrier_name"] = CARRIERS.get(record["carrier"], "unknown")
    return json.dumps(record).encode()


def transact(consumer: Consumer, producer: Producer, messages: list[Message], output: str) -> None:
    """Write the results of these messages and commit the offsets after them, in one transaction."""
    producer.begin_transaction()
    for message in messages:
        producer.produce(output, enrich(message), key=message.key(), headers=message.headers())
    positions = [p.to_confluent() for p in consumer.position(consumer.assignment()) if p.offset >= 0]
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
    producer.commit_transaction()


def rewind(consumer: Consumer) -> None:
    """Seek back to the offsets of the last committed transaction."""
    for p in consumer.committed(consumer.assignment(), timeout=60):
        p.offset = p.offset if p.offset >= 0 else OFFSET_BEGINNING
        consumer.seek(p)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-i", "--input", required=True)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--id", required=True, help="transactional.id of this instance")
    parser.add_argument("-g", "--group", default="enrich")
    parser.add_argument("-X", "--property", action="append", default=[], help="a property of the consumer: name=value")
    arguments = parser.parse_args()

    producer = Producer({"bootstrap.servers": arguments.bootstrap_servers, "transactional.id": arguments.id})
    producer.init_transactions()
    consumer = Consumer({
        "bootstrap.servers": arguments.bootstrap_servers, "group.id": arguments.group,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
        **dict(p.split("=", 1) for p in arguments.property),
    })
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: consumer.wakeup())
    with consumer:
        consumer.subscribe([arguments.input])
        try:
            while True:
                # Only this call runs rebalances, and no transaction is open during it.
                received = consumer.consume(500, timeout=1.0)
                messages = [message for message in received if not message.error()]
                for message in received:
                    if message.error():
                        print(message.error(), flush=True)
                if not messages:
                    continue
                try:
                    transact(consumer, producer, messages, arguments.output)
                    print(f"{len(messages)} records", flush=True)
                except KafkaException as error:
                    if not (error.args[0].txn_requires_abort() or error.args[0].retriable()):
                        raise  # fenced by a newer instance, or not allowed
                    print(f"aborted: {error}", flush=True)
                    producer.abort_transaction()
                    rewind(consumer)
        except WakeupError:
            print("ending", flush=True)


if __name__ == "__main__":
    main()
