"""One process of an exactly-once loop, which may kill itself between send_offsets and commit.

    python exactly_once_member.py BOOTSTRAP INPUT OUTPUT ID KILL_AT [NAME=VALUE...]

Owns: the member's loop. Threads: one. Never: ends without SIGTERM, unless it kills itself in transaction KILL_AT
(0: never).
"""

from __future__ import annotations

import os
import signal
import sys

from confluent_kafka import Producer

from kconsumer.transactions import ExactlyOnce, TransactionAbortedError


class Killed(Producer):
    """Dies by SIGKILL after the offsets of a transaction are sent, before its commit."""

    at = 0
    sent = 0

    def commit_transaction(self, *limit):
        self.sent += 1
        if self.sent == self.at:
            self.flush(30)  # the results are in the log, too
            os.kill(os.getpid(), signal.SIGKILL)
        super().commit_transaction(*limit)


def main() -> None:
    bootstrap, source, target, identity, kill_at, *more = sys.argv[1:]
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    producer = Killed({"bootstrap.servers": bootstrap, "transactional.id": identity, "transaction.timeout.ms": 10_000})
    producer.at = int(kill_at)
    consumer = {"bootstrap.servers": bootstrap, "group.id": source, "auto.offset.reset": "earliest",
                **dict(pair.split("=", 1) for pair in more)}
    with ExactlyOnce(consumer, producer, [source], max_records=20) as loop:
        while not stopped:
            try:
                with loop.transaction() as transaction:
                    for message in transaction:
                        transaction.produce(target, message.value(), key=f"{message.partition()}:{message.offset()}")
            except TransactionAbortedError as error:
                print("aborted", error, flush=True)


if __name__ == "__main__":
    main()
