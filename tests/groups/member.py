"""Owns: one group member in a separate process, by the same code a kconsumer.Consumer, a kconsumer.aio.AIOConsumer or
a confluent_kafka.Consumer. It is written for an event loop; the calls of a synchronous consumer never suspend.

Run as ``member.py OPTIONS`` (JSON, see `Options`). What happens to it goes to the trace file as JSON lines, one write
each, so that nothing is lost when it is killed; commands come as JSON lines on stdin and end with a ``done`` line.
Threads: the main thread consumes, one reads stdin. Never: judges what it sees (trace.py does), survives its stdin.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import json
import logging
import os
import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

BATCH = 500
IDLE_SECONDS = 0.1


@dataclass
class Options:
    """The member's options, as its command line gives them."""

    kind: str  # the module whose Consumer it is: kconsumer, kconsumer.aio or confluent_kafka
    trace: str
    topics: list[str]
    config: dict[str, Any]
    # "after": commits what it has processed; "auto": the client's; "none"; "transaction"; "application": asynchronously
    # each record, and once more in on_revoke and before it unsubscribes or closes.
    commit: str = "after"
    commit_every_s: float = 0.1
    output: dict[str, str] = field(default_factory=dict)  # "transaction": topic, transactional.id


class Trace:
    """One line an event, with the machine's monotonic time, which all processes share."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event: str, **more: Any) -> None:
        line = {"t": time.monotonic(), "e": event, **more}
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


class SendTimes:
    """When the open commits were asked for: by partition and offset, since two commits may have the same offset."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], list[float]] = {}

    def add(self, offsets: dict[str, int], now: float) -> None:
        for item in offsets.items():
            self._open.setdefault(item, []).append(now)

    def take(self, offsets: dict[str, int], now: float) -> float:
        """The time of the oldest open commit of the offsets; `now` if there is none, as for a commit of the client."""
        found = [now]
        for item in offsets.items():
            times = self._open.pop(item, [])
            found += times[:1]
            if times[1:]:
                self._open[item] = times[1:]
        return min(found)


def name_of(partition: Any) -> str:
    return f"{partition.topic}/{partition.partition}"


async def sleep(seconds: float) -> None:
    time.sleep(seconds)


class Awaited:
    """A synchronous consumer whose methods can be awaited. They are done at once."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(self._consumer, name)(*args, **kwargs)

        return call


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a synchronous member has suspended")


class Member:
    """A consumer that reads, commits, and says what it does."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.trace = Trace(options.trace)
        self.on_loop = options.kind == "kconsumer.aio"
        self.client = importlib.import_module("kconsumer" if self.on_loop else options.kind)
        self.commands: queue.Queue[dict[str, Any]] = queue.Queue()
        self.done: dict[str, int] = {}  # partition → the offset after the last processed record
        self.epochs: dict[str, int | None] = {}  # partition → the leader epoch of that record
        self.asked: dict[str, int] = {}  # what was last asked to be committed
        self.runs: dict[str, list[int]] = {}  # partition → first and last offset processed and not told yet, count
        self.owned: set[str] = set()
        self.slow: dict[str, float] = {}  # callback → seconds that its next call takes
        self.raising: str | None = None  # the callback whose next call raises
        self.next_commit = 0.0
        self.sent = SendTimes()
        self.holding = False
        self.running = True
        config = dict(options.config)
        if options.commit in ("after", "application"):
            config |= {"enable.auto.commit": False, "on_commit": self.on_commit}
        elif options.commit == "auto":
            config |= {"enable.auto.commit": True, "auto.commit.interval.ms": 200}
        else:
            config |= {"enable.auto.commit": False}
        config["error_cb"] = lambda error: self.trace.write("error_cb", error=error.name(), text=error.str())
        self.consumer: Any
        if self.on_loop:
            from kconsumer.aio import AIOConsumer

            self.consumer = AIOConsumer(config)
        else:
            self.consumer = Awaited(self.client.Consumer(config))
        self.output = Output(options.output, self) if options.commit == "transaction" else None

    # Callbacks

    async def on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        names = [name_of(p) for p in partitions]
        self.tell()
        self.trace.write("assigned", p=names, id=await self.consumer.memberid())
        self.owned |= set(names)
        for name in names:
            self.done.pop(name, None)
            self.asked.pop(name, None)
        await self.delay("assign")

    async def on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        names = [name_of(p) for p in partitions]
        self.tell()
        self.trace.write("revoking", p=names)
        await self.delay("revoke")
        if self.output is not None:
            await self.output.finish()
        await self.commit_now("revoke", names)
        await self.accept(names)
        self.drop(names)
        self.trace.write("revoked", p=names)

    async def on_lost(self, consumer: Any, partitions: list[Any]) -> None:
        names = [name_of(p) for p in partitions]
        self.tell()
        self.trace.write("lost", p=names)
        await self.delay("lost")
        if self.output is not None:
            self.output.abandon()
        self.drop(names)

    def drop(self, names: list[str]) -> None:
        for name in names:
            self.owned.discard(name)
            self.done.pop(name, None)
            self.asked.pop(name, None)

    async def delay(self, callback: str) -> None:
        seconds = self.slow.pop(callback, 0.0)
        if seconds:
            await (asyncio.sleep(seconds) if self.on_loop else sleep(seconds))
        if self.raising == callback:
            self.raising = None
            raise RuntimeError(f"on_{callback} raises because the test asked for it")

    def on_commit(self, error: Any, partitions: list[Any]) -> None:
        offsets = {name_of(p): p.offset for p in partitions if p.offset >= 0}
        if not offsets:
            return
        failed = [p.error for p in partitions if p.error is not None]
        why = error or (failed[0] if failed else None)
        sent = self.sent.take(offsets, time.monotonic())
        self.trace.write("commit", o=offsets, ok=why is None, error=why.name() if why else None, where="loop",
                         sent=sent)
        if why:
            self.asked = {name: offset for name, offset in self.asked.items() if name not in offsets}

    # Offsets

    def unsaved(self, names: Any) -> dict[str, int]:
        found = {name: self.done[name] for name in names if name in self.done}
        return {name: offset for name, offset in found.items() if offset != self.asked.get(name)}

    def positions(self, offsets: dict[str, int]) -> list[Any]:
        made = []
        for name, offset in offsets.items():
            topic, _, partition = name.rpartition("/")
            epoch = self.epochs.get(name)
            more = {} if epoch is None else {"leader_epoch": epoch}
            made.append(self.client.TopicPartition(topic, int(partition), offset, **more))
        return made

    async def commit_in_background(self) -> None:
        now = time.monotonic()
        if self.options.commit != "after" or now < self.next_commit:
            return
        offsets = self.unsaved(self.done)
        if offsets:
            self.next_commit = now + self.options.commit_every_s
            self.asked |= offsets
            self.sent.add(offsets, now)
            try:
                await self.consumer.commit(offsets=self.positions(offsets), asynchronous=True)
            except self.client.KafkaException as error:
                self.on_commit(error.args[0], self.positions(offsets))

    async def accept(self, names: Any) -> None:
        """Commit asynchronously, by offsets; from here on on_commit owes the result."""
        offsets = {name: self.done[name] for name in names if name in self.done}
        if self.options.commit == "application" and offsets:
            self.say_accepted(offsets)
            await self.consumer.commit(offsets=self.positions(offsets), asynchronous=True)

    async def accept_record(self, message: Any) -> None:
        if self.options.commit == "application":
            self.say_accepted({f"{message.topic()}/{message.partition()}": message.offset() + 1})
            await self.consumer.commit(message=message, asynchronous=True)

    def say_accepted(self, offsets: dict[str, int]) -> None:
        self.sent.add(offsets, time.monotonic())
        self.trace.write("accepted", o=offsets)

    async def commit_now(self, where: str, names: Any) -> None:
        if self.options.commit != "after":
            return
        offsets = {name: self.done[name] for name in names if name in self.done}
        if not offsets:
            return
        sent, why = time.monotonic(), None
        try:
            for p in await self.consumer.commit(offsets=self.positions(offsets), asynchronous=False):
                why = why or p.error
        except self.client.KafkaException as error:
            why = error.args[0]
        self.trace.write("commit", o=offsets, ok=why is None, error=why.name() if why else None, where=where, sent=sent)

    # The loop

    async def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        self.trace.write("start", pid=os.getpid(), wall=time.time())  # to find what the log says of a moment
        if self.options.topics:
            await self.subscribe(self.options.topics)
        while self.running:
            await self.obey()
            if self.running and not self.holding:
                try:
                    await self.take()
                    await self.commit_in_background()
                except Exception as error:
                    self.trace.write("raised", error=type(error).__name__, text=str(error))

    async def subscribe(self, topics: list[str]) -> None:
        names = ("on_assign", "on_revoke", "on_lost")
        await self.consumer.subscribe(topics, **{name: self.callback(getattr(self, name)) for name in names})

    def callback(self, function: Any) -> Any:
        return function if self.on_loop else lambda *args: at_once(function(*args))

    async def take(self) -> None:
        first = await self.consumer.poll(IDLE_SECONDS)
        if first is None:
            return
        # No `consume` after it: a rebalance comes between two polls, and its callback reports the records read so far.
        message, left = first, BATCH
        try:
            while message is not None and left:
                if message.error() is not None:
                    error = message.error()
                    self.tell()  # the records that came before it
                    self.trace.write("error", error=error.name(), text=error.str(), fatal=error.fatal())
                    break
                self.process(message)
                await self.accept_record(message)
                left -= 1
                message = await self.consumer.poll(0) if left else None
        finally:  # also when a callback raises
            self.tell()
        if self.output is not None:
            await self.output.finish()

    def process(self, message: Any) -> None:
        name = f"{message.topic()}/{message.partition()}"
        run = self.runs.get(name)
        if run is None:
            self.runs[name] = [message.offset(), message.offset(), 1]
        else:
            run[1:] = [message.offset(), run[2] + 1]
        self.done[name] = message.offset() + 1
        self.epochs[name] = message.leader_epoch()
        if self.output is not None:
            self.output.put(message)

    def tell(self) -> None:
        for name, (first, last, count) in self.runs.items():
            self.trace.write("read", p=name, o=[first, last], n=count)
        self.runs.clear()

    # Commands

    def listen(self) -> None:
        for line in sys.stdin:
            self.commands.put(json.loads(line))
        os._exit(3)  # whoever started it is gone

    async def obey(self) -> None:
        while True:
            try:
                command = self.commands.get(block=self.holding, timeout=IDLE_SECONDS)
            except queue.Empty:
                return
            what = command["do"]
            try:
                result = await getattr(self, f"do_{what}")(**{k: v for k, v in command.items() if k not in ("do", "n")})
                self.trace.write("done", do=what, n=command["n"], result=result)
            except Exception as error:
                self.trace.write("done", do=what, n=command["n"], raised=f"{type(error).__name__}: {error}")

    async def do_commit(self) -> None:
        await self.commit_now("command", list(self.done))

    async def do_hold(self) -> None:
        """Poll no more (nothing but commands) until `go`."""
        self.holding = True

    async def do_go(self) -> None:
        self.holding = False

    async def do_sleep(self, seconds: float) -> None:
        """An event loop is blocked meanwhile."""
        time.sleep(seconds)

    async def do_hold_gil(self, seconds: float) -> None:
        """As a long computation in C does: PyDLL calls without releasing the GIL."""
        libc = ctypes.PyDLL(None)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            libc.usleep(500_000)

    async def do_slow(self, callback: str, seconds: float) -> None:
        self.slow[callback] = seconds

    async def do_raise(self, callback: str) -> None:
        self.raising = callback

    async def do_subscribe(self, topics: list[str]) -> None:
        await self.subscribe(topics)

    async def do_unsubscribe(self) -> None:
        await self.accept(list(self.done))
        await self.consumer.unsubscribe()

    async def do_assignment(self) -> list[str]:
        return sorted(name_of(p) for p in await self.consumer.assignment())

    async def do_close(self) -> None:
        self.running = False
        if self.output is not None:
            await self.output.finish()
        await self.commit_now("close", list(self.done))
        await self.accept(list(self.done))
        await self.consumer.close()
        self.trace.write("closed")


class Output:
    """The producing half of a consume-transform-produce loop: each batch and its offsets are one transaction."""

    def __init__(self, options: dict[str, str], member: Member) -> None:
        import confluent_kafka

        self.kafka = confluent_kafka
        self.member = member
        self.topic = options["topic"]
        self.config = {
            "bootstrap.servers": member.options.config["bootstrap.servers"], "linger.ms": 5,
            "transactional.id": options["transactional.id"], "transaction.timeout.ms": 60_000}
        self.producer = self.make_producer()
        self.open: dict[str, int] = {}

    def make_producer(self) -> Any:
        producer = self.kafka.Producer(self.config)
        producer.init_transactions(60)
        return producer

    def abort(self) -> None:
        """A transaction that the coordinator has ended meanwhile, as while this process was stopped, is fatal to
        librdkafka's producer: another one takes its place."""
        try:
            self.producer.abort_transaction(10)
        except self.kafka.KafkaException as error:
            if not error.args[0].fatal():
                raise
            self.producer = self.make_producer()

    def put(self, message: Any) -> None:
        if not self.open:
            self.producer.begin_transaction()
        name = f"{message.topic()}/{message.partition()}"
        self.open[name] = message.offset() + 1
        self.producer.produce(self.topic, f"{name}/{message.offset()}".encode(), partition=message.partition())

    async def finish(self) -> None:
        """Commit what was put, with the offsets it came from; on failure go back to what is committed."""
        if not self.open:
            return
        offsets, self.open = self.open, {}
        made = [self.kafka.TopicPartition(*self.place(name), offset) for name, offset in offsets.items()]
        try:
            metadata = await self.member.consumer.consumer_group_metadata()
            self.producer.send_offsets_to_transaction(made, metadata, 10)
            self.producer.commit_transaction(10)
            self.member.trace.write("transaction", o=offsets, ok=True)
        except self.kafka.KafkaException as error:
            why = error.args[0]
            self.member.trace.write("transaction", o=offsets, ok=False, error=why.name(), text=why.str())
            if why.fatal():
                os._exit(4)
            self.abort()
            await self.rewind(offsets)

    def abandon(self) -> None:
        """Abort the open transaction: its partitions belong to another member now."""
        if self.open:
            self.member.trace.write("transaction", o=self.open, ok=False, error="lost", text="")
            self.open = {}
            self.abort()

    async def rewind(self, offsets: dict[str, int]) -> None:
        still = [name for name in offsets if name in self.member.owned]
        asked = [self.member.client.TopicPartition(*self.place(name)) for name in still]
        for found in await self.member.consumer.committed(asked, 10) if asked else []:
            found.offset = max(found.offset, 0)
            self.member.trace.write("rewound", p=name_of(found), to=found.offset)
            await self.member.consumer.seek(found)

    @staticmethod
    def place(name: str) -> tuple[str, int]:
        topic, _, partition = name.rpartition("/")
        return topic, int(partition)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s.%(msecs)03d %(message)s", datefmt="%H:%M:%S")
    member = Member(Options(**json.loads(sys.argv[1])))
    if member.on_loop:
        asyncio.run(member.run())
    else:
        at_once(member.run())
