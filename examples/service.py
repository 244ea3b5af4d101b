"""A service that processes records in a thread pool, in order per partition, and shuts down cleanly on SIGTERM.

    python service.py -b localhost:9092 -t flights
    pip install kconsumer

A partition runs one job at a time, also across rebalances. While a job runs, the partition is paused; records that are
still returned wait in its queue. The service keeps calling poll(), so a slow job does not cost the membership. Offsets
are stored when a job is done, and committed in the background. Before another member gets a partition, and before the
end, its running job finishes. A second SIGTERM ends the service at once.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from kconsumer import Consumer, Message, TopicPartition, WakeupError

log = logging.getLogger("service")


def work(message: Message) -> None:
    """Process a record: replace this by your code. An exception ends the service; a restart reads the record again."""
    log.info("%s [%d] %d: %r", message.topic(), message.partition(), message.offset(), message.value())


@dataclass
class Lane:
    """The unfinished records of a partition: one job runs, the other records wait."""

    waiting: list[Message] = field(default_factory=list)
    job: Future[Message] | None = None
    lost: bool = False  # another member owns the job's records: wait for it, but do not store it


class Service:
    def __init__(self, config: dict[str, object], topic: str, threads: int) -> None:
        self.consumer = Consumer({**config, "enable.auto.offset.store": False, "error_cb": self.on_error})
        self.topic = topic
        self.pool = ThreadPoolExecutor(threads)
        self.lanes: dict[tuple[str, int], Lane] = {}
        self.ending = False

    def on_error(self, error: object) -> None:
        log.warning("kafka: %s", error)

    def stop(self, *_: object) -> None:
        """Handle a signal: the waiting call ends with WakeupError."""
        if self.ending:
            sys.exit("ended at once: a restart reads unfinished records again")
        self.ending = True
        self.consumer.wakeup()

    def run(self) -> None:
        with self.consumer, self.pool:
            self.consumer.subscribe([self.topic], on_revoke=self.revoked, on_lost=self.lost)
            try:
                while not self.ending:
                    self.take(self.consumer.consume(100, timeout=0.05 if self.lanes else 1.0))
                    for where in list(self.lanes):
                        self.go_on(where)
                    self.hold()
            except WakeupError:
                pass
            self.finish(list(self.lanes))
        log.info("ended")

    def take(self, messages: list[Message]) -> None:
        for message in messages:
            if message.error():
                self.on_error(message.error())
                continue
            where = message.topic(), message.partition()
            if where not in self.lanes:
                self.lanes[where] = Lane()
            self.lanes[where].waiting.append(message)

    def hold(self) -> None:
        """Pause exactly the partitions with a lane: rebalances change the partitions in between."""
        assigned = self.consumer.assignment()
        self.consumer.pause([p for p in assigned if (p.topic, p.partition) in self.lanes])
        self.consumer.resume([p for p in assigned if (p.topic, p.partition) not in self.lanes])

    def go_on(self, where: tuple[str, int]) -> None:
        """Store the finished job and start the next one."""
        lane = self.lanes[where]
        if lane.job is not None:
            if not lane.job.done():
                return
            self.store(lane)
        if lane.waiting:
            lane.job, lane.waiting = self.pool.submit(self.work_on, lane.waiting), []
        else:
            del self.lanes[where]

    def work_on(self, messages: list[Message]) -> Message:
        for message in messages:
            work(message)
        return messages[-1]

    def store(self, lane: Lane) -> None:
        """Store the job's result, or raise its exception."""
        assert lane.job is not None
        last = lane.job.result()
        if not lane.lost:
            self.consumer.store_offsets(last)
        lane.job, lane.lost = None, False

    def finish(self, places: list[tuple[str, int]]) -> None:
        """Wait for the running jobs. The revocation or the end commits their offsets."""
        lanes = [self.lanes.pop(where) for where in places if where in self.lanes]
        wait([lane.job for lane in lanes if lane.job is not None])
        for lane in lanes:
            if lane.job is not None:
                self.store(lane)

    def revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.finish([(p.topic, p.partition) for p in partitions])

    def lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Mark lost partitions: another member reads their records again from the last commit.

        A running job cannot be stopped. If the partition returns, the next job waits for it.
        """
        for p in partitions:
            if lane := self.lanes.get((p.topic, p.partition)):
                lane.waiting.clear()
                lane.lost = lane.job is not None


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
