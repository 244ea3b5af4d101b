"""Reads a topic, adds something to each record, and writes the result to another topic, exactly once.

    python enrich_exactly_once.py -b localhost:9092 -i flights -o flights-enriched --id enrich-0
    pip install kconsumer confluent-kafka

Results and the offsets that they come from are committed in one transaction of the producer's: after a crash either
both are there or neither is. Readers of the output need isolation.level=read_committed. Give every instance an --id of
its own that it keeps over restarts: a new one with the same id fences the old one.
"""

from __future__ import annotations

import argparse
import json
import signal

from confluent_kafka import KafkaException, Producer

from kconsumer import OFFSET_BEGINNING, Consumer, Message, WakeupError

CARRIERS = {"AA": "American", "DL": "Delta", "UA": "United"}


def enrich(message: Message) -> bytes:
    """The work: replace it by yours."""
    record = json.loads(message.value())
    record["carrier_name"] = CARRIERS.get(record["carrier"], "unknown")
    return json.dumps(record).encode()


def transact(consumer: Consumer, producer: Producer, messages: list[Message], output: str) -> None:
    """One transaction: the results of these messages, and the positions after them."""
    producer.begin_transaction()
    for message in messages:
        producer.produce(output, enrich(message), key=message.key(), headers=message.headers())
    positions = [p.to_confluent() for p in consumer.position(consumer.assignment()) if p.offset >= 0]
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
    producer.commit_transaction()


def rewind(consumer: Consumer) -> None:
    """Back to what the last transaction that went through has committed."""
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
    parser.add_argument("-X", "--property", action="append", default=[], help="of the consumer: name=value")
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
                # Rebalances happen in here only, where no transaction is open.
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
