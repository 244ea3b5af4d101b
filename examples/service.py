"""A service that works on records in a pool of threads, in order per partition, and ends well on SIGTERM.

    python service.py -b localhost:9092 -t flights
    pip install kconsumer

While the pool works the partitions are paused and poll() goes on being called: a slow piece of work does not cost the
membership. Offsets are stored when the work is done, and committed in the background; before partitions go to another
member, and before the end, what has been begun is finished. A second SIGTERM ends at once.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor, wait

from kconsumer import Consumer, Message, TopicPartition, WakeupError

log = logging.getLogger("service")


def work(message: Message) -> None:
    """The work: replace it by yours. What it raises ends the service; the record comes again after a restart."""
    log.info("%s [%d] %d: %r", message.topic(), message.partition(), message.offset(), message.value())


class Service:
    def __init__(self, config: dict[str, object], topic: str, threads: int) -> None:
        self.consumer = Consumer({**config, "enable.auto.offset.store": False, "error_cb": self.on_error})
        self.topic = topic
        self.pool = ThreadPoolExecutor(threads)
        self.running: dict[Future[Message], TopicPartition] = {}
        self.ending = False

    def on_error(self, error: object) -> None:
        log.warning("kafka: %s", error)

    def stop(self, *_: object) -> None:
        """For signals: the call that waits ends with WakeupError."""
        if self.ending:
            sys.exit("ended at once: what was in hand comes again")
        self.ending = True
        self.consumer.wakeup()

    def run(self) -> None:
        with self.consumer, self.pool:
            self.consumer.subscribe([self.topic], on_revoke=lambda *_: self.finish(), on_lost=lambda *_: self.finish())
            try:
                while not self.ending:
                    self.begin(self.consumer.consume(100, timeout=1.0))
                    self.keep_polling()
            except WakeupError:
                pass
            self.finish()
        log.info("ended")

    def begin(self, messages: list[Message]) -> None:
        """A job per partition: its records stay in order."""
        by_partition: dict[tuple[str, int], list[Message]] = defaultdict(list)
        for message in messages:
            if message.error():
                self.on_error(message.error())
            else:
                by_partition[message.topic(), message.partition()].append(message)
        for (topic, partition), records in by_partition.items():
            self.running[self.pool.submit(self.work_on, records)] = TopicPartition(topic, partition)

    def work_on(self, messages: list[Message]) -> Message:
        for message in messages:
            work(message)
        return messages[-1]

    def keep_polling(self) -> None:
        """Until the jobs are done: poll() of paused partitions returns nothing, runs callbacks, and counts."""
        paused = self.consumer.assignment()
        self.consumer.pause(paused)
        try:
            while self.running and not self.ending:
                message = self.consumer.poll(0.05)
                if message is not None:  # an error, or a record of a partition that has just been assigned
                    self.begin([message])
                self.take_done([future for future in self.running if future.done()])
        finally:
            self.consumer.resume(paused)

    def finish(self) -> None:
        """Wait for what has been begun; its offsets are then committed with the revocation or the end."""
        self.take_done(list(wait(self.running).done))

    def take_done(self, done: list[Future[Message]]) -> None:
        assigned = {(p.topic, p.partition) for p in self.consumer.assignment()}
        for future in done:
            partition = self.running.pop(future)
            last = future.result()
            if (partition.topic, partition.partition) in assigned:  # else it was lost: somebody else reads it again
                self.consumer.store_offsets(last)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-t", "--topic", required=True)
    parser.add_argument("-g", "--group", default="service")
    parser.add_argument("--threads", type=int, default=4)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    config: dict[str, object] = {
        "bootstrap.servers": arguments.bootstrap_servers, "group.id": arguments.group, "auto.offset.reset": "earliest",
    }
    service = Service(config, arguments.topic, arguments.threads)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, service.stop)
    service.run()


if __name__ == "__main__":
    main()
