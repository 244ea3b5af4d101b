"""Reads a topic, adds data to each record, and writes the results to another topic, exactly once.

    python enrich_exactly_once.py -b localhost:9092 -i flights -o flights-enriched --id enrich-0
    pip install 'kconsumer[transactions]'

One transaction of the producer commits the results and the offsets of their records. So after a crash, both exist or
neither does. Readers of the output need isolation.level=read_committed. Give every instance a separate --id and keep it
over restarts: a new instance with the same id fences the old one.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal

from kconsumer import Message
from kconsumer.transactions import ExactlyOnce, Transaction

CARRIERS = {"AA": "American", "DL": "Delta", "UA": "United"}


def enrich(message: Message) -> bytes:
    """Process a record: replace this by your code."""
    record = json.loads(message.value())
    record["carrier_name"] = CARRIERS.get(record["carrier"], "unknown")
    return json.dumps(record).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-i", "--input", required=True)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--id", required=True, help="transactional.id of this instance")
    parser.add_argument("-g", "--group", default="enrich")
    parser.add_argument("-X", "--property", action="append", default=[], help="a property of the consumer: name=value")
    arguments = parser.parse_args()
    logging.basicConfig()

    def handle(message: Message, transaction: Transaction) -> None:
        transaction.produce(arguments.output, enrich(message), key=message.key(), headers=message.headers())

    consumer = {"bootstrap.servers": arguments.bootstrap_servers, "group.id": arguments.group,
                "auto.offset.reset": "earliest", **dict(p.split("=", 1) for p in arguments.property)}
    producer = {"bootstrap.servers": arguments.bootstrap_servers, "transactional.id": arguments.id}
    with ExactlyOnce(consumer, producer, [arguments.input]) as loop:
        loop.run(handle, signals=(signal.SIGTERM, signal.SIGINT))


if __name__ == "__main__":
    main()
