"""A service that works on records in a pool of threads, in order per partition, and ends well on SIGTERM.

    python service.py -b localhost:9092 -t flights
    pip install kconsumer

A partition has one job at a time, also across rebalances: while one runs the partition is paused, and what is returned
of it all the same waits in its queue. Meanwhile poll() goes on being called, so that a slow piece of work does not cost
the membership. Offsets are stored when the work is done, and committed in the background. Before a partition goes to
another member, and before the end, its running job is finished. A second SIGTERM ends at once.
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
    """The work: replace it by yours. What it raises ends the service; the record comes again after a restart."""
    log.info("%s [%d] %d: %r", message.topic(), message.partition(), message.offset(), message.value())


@dataclass
class Lane:
    """The records of a partition that are in hand: one job at a time, the others wait."""

    waiting: list[Message] = field(default_factory=list)
    job: Future[Message] | None = None
    lost: bool = False  # the job's records are another member's by now: it is waited for, and not stored


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
        """For signals: the call that waits ends with WakeupError."""
        if self.ending:
            sys.exit("ended at once: what was in hand comes again")
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
        """Pause the partitions that have a lane, and no others: rebalances give and take partitions in between."""
        assigned = self.consumer.assignment()
        self.consumer.pause([p for p in assigned if (p.topic, p.partition) in self.lanes])
        self.consumer.resume([p for p in assigned if (p.topic, p.partition) not in self.lanes])

    def go_on(self, where: tuple[str, int]) -> None:
        """Store what is done, and begin what waits."""
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
        """The job's result, or the exception that it raised."""
        assert lane.job is not None
        last = lane.job.result()
        if not lane.lost:
            self.consumer.store_offsets(last)
        lane.job, lane.lost = None, False

    def finish(self, places: list[tuple[str, int]]) -> None:
        """Wait for the running jobs; their offsets are then committed with the revocation or the end."""
        lanes = [self.lanes.pop(where) for where in places if where in self.lanes]
        wait([lane.job for lane in lanes if lane.job is not None])
        for lane in lanes:
            if lane.job is not None:
                self.store(lane)

    def revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.finish([(p.topic, p.partition) for p in partitions])

    def lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Another member reads them again from the last commit. A running job cannot be stopped; should the partition
        come back, the next one waits for it."""
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
