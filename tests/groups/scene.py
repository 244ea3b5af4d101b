"""Owns: one scenario's group on a cluster: its topic, writer, members as processes, and the faults done to them.

Threads: one scene, one thread; scenes on one cluster run side by side. Never: leaves a process behind: a scene is a
context manager, and the watchdog of `Children` kills what a dead test process leaves.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from verdict import Event, Life, Verdict, Written, judge, story

from kconsumer.testing import KafkaCluster
from kconsumer.testing._process import Children

HERE = Path(__file__).parent
KEPT = HERE.parents[1] / "build" / "groups"  # where the traces of a failed scene go
BROKER_LINES = 30  # of a broker's log about the group, in the report of a failure
MOST_STORIES = 5
PATIENCE = 60.0
SESSION_MS = 6000
HEARTBEAT_MS = 500
HUNG_S = 20.0  # after it, a librdkafka member that closes counts as hung (Member.hung)
DEAF_MS = 15000  # after it, the broker removes a librdkafka member that missed its target (Life.deaf)
BROKER = {  # a group's times under the consumer protocol are the broker's to say
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
}
CLASSIC, CONSUMER = "classic", "consumer"
OURS = {"aio": "kconsumer"}  # whose rules a kind is judged by
MODULES = {"kconsumer": "kconsumer", "aio": "kconsumer.aio", "confluent": "confluent_kafka"}
_JAVA_ASSIGNORS = {
    "range": "RangeAssignor", "roundrobin": "RoundRobinAssignor", "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
JAVA = KafkaCluster(heap="96m")  # never started: Java members run as its Java programs do
JAVA_LOG = ("-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS")
_creating = threading.Lock()
_numbers = itertools.count(1)


class Member:
    """One member process: its trace, as far as it has been read, and the commands for it."""

    def __init__(self, life: Life, process: subprocess.Popen[bytes], trace: Path, kind: str) -> None:
        self.life = life
        self.process = process
        self.kind = kind
        self._trace = trace
        self._read = 0
        self._asked = 0
        self._owned: set[str] = set()
        self._positions: dict[str, int] = {}

    @property
    def name(self) -> str:
        return self.life.name

    def events(self) -> list[Event]:
        """All that it has said."""
        if self._trace.exists():
            with open(self._trace, "rb") as file:
                file.seek(self._read)
                text = file.read()
            whole = text.rfind(b"\n") + 1  # a line may be half written
            self._read += whole
            for line in text[:whole].splitlines():
                self._add(json.loads(line))
        return self.life.events

    def _add(self, event: Event) -> None:
        self.life.events.append(event)
        kind = event["e"]
        if kind == "read":
            self._positions[event["p"]] = max(self._positions.get(event["p"], 0), event["o"][1] + 1)
        elif kind == "assigned":
            self._owned |= set(event["p"])
        elif kind in ("revoking", "revoked", "lost"):
            self._owned -= set(event["p"])
        elif kind == "closed":
            self._owned = set()

    def said(self, kind: str, since: float = 0.0) -> list[Event]:
        """Its events of one kind."""
        return [e for e in self.events() if e["e"] == kind and e["t"] >= since]

    def owned(self) -> set[str]:
        """What it owns by its callbacks, as far as it has said."""
        self.events()
        return set(self._owned)

    def position(self, partition: str) -> int:
        """The offset after the last record that the member reported as read."""
        self.events()
        return self._positions.get(partition, 0)

    def heartbeat_timed_out(self) -> bool:
        """Whether librdkafka has logged that no answer to a heartbeat of the consumer protocol came in time."""
        return b"Timed out ConsumerGroupHeartbeatRequest" in self._trace.with_suffix(".log").read_bytes()

    def hung(self) -> None:
        """The member closes, but never ends. When a rebalance is due after the leave, librdkafka 2.16 asks the missing
        group for its protocol, for ever (librdkafka's issue 4041). It reads nothing any more."""
        last = max([self.life.closing, *(e["t"] for e in self.events())])
        self._add({"t": last, "e": "closed"})

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def ask(self, what: str, **more: Any) -> int:
        """Send a command; `answer` waits for its end."""
        self._asked += 1
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": what, "n": self._asked, **more}).encode() + b"\n")
        self.process.stdin.flush()
        return self._asked

    def answer(self, number: int, seconds: float = PATIENCE) -> Any:
        """The result of a command; an exception that the command raised in the member fails the test."""
        deadline = time.monotonic() + seconds
        while True:
            for event in self.said("done"):
                if event["n"] == number:
                    assert "raised" not in event, f"{self.name}: {event}"
                    return event["result"]
            assert self.running, f"{self.name} ended with {self.process.returncode}"
            assert time.monotonic() < deadline, f"{self.name} did not answer command {number} within {seconds} s"
            time.sleep(0.02)

    def do(self, what: str, **more: Any) -> Any:
        """Command and answer."""
        return self.answer(self.ask(what, **more))


class Writer:
    """The process that fills a topic."""

    def __init__(self, topic: str, life: Life, process: subprocess.Popen[bytes], trace: Path) -> None:
        self.topic = topic
        self._member = Member(life, process, trace, "writer")

    def written(self) -> Written:
        return Written(self._member.events(), self.topic)

    def count(self) -> int:
        acked = self._member.said("acked")
        return sum(acked[-1]["o"]) if acked else 0

    def stop(self, seconds: float = 2 * PATIENCE) -> Written:
        """End it once everything is acknowledged."""
        process = self._member.process
        if process.poll() is None and process.stdin is not None:
            process.stdin.write(b"stop\n")
            process.stdin.flush()
        code = process.wait(seconds)
        ended = self._member.said("end")
        assert code == 0 and ended, f"the writer of {self.topic} exited with {code}: {ended}"
        return self.written()


class Scene:
    """A group at work. Members and writers are made by it and end with it."""

    def __init__(self, cluster: KafkaCluster, name: str, protocol: str = CLASSIC, partitions: int = 6,
                 topic_config: Mapping[str, object] | None = None) -> None:
        self.cluster = cluster
        self.protocol = protocol
        self.number = next(_numbers)
        self.name = name
        self.group = f"{name}-{self.number}"
        self.partitions = partitions
        self.topic = ""
        self.topic_config = dict(topic_config or {})
        self.members: list[Member] = []
        self.writers: list[Writer] = []
        self.directory = Path(tempfile.mkdtemp(prefix="kconsumer-group-"))
        self.children = Children(self.directory)

    def __enter__(self) -> Scene:
        try:
            self.topic = self.make_topic(self.partitions, self.topic_config)
        except BaseException:
            self.end(None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.end(error)

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        return [member.process for member in self.members] + [writer._member.process for writer in self.writers]

    def end(self, failure: BaseException | None) -> None:
        for process in self.processes:
            self.children.end(process)
            if process.stdin is not None:
                try:
                    process.stdin.close()
                except BrokenPipeError:
                    pass
        if failure is not None:
            self.keep(failure)
        self.children.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def keep(self, failure: BaseException) -> None:
        """Copy the traces and the brokers' logs to `KEPT`, and print the reason.

        pytest prints reasons when the session ends. A session that waits for other scenarios may be stopped before.
        """
        kept = KEPT / self.name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.directory, kept)
        report = [f"{self.name} failed; the traces are in {kept}", *traceback.format_exception(failure)]
        for broker in self.cluster.broker_ids:
            log = kept / f"broker-{broker}.log"
            shutil.copy(self.cluster.log_path(broker), log)
            lines = [line for line in log.read_text(errors="replace").splitlines() if self.group in line]
            report += [f"broker {broker} about the group:", *lines[-BROKER_LINES:]]
        text = "\n".join(report)
        (kept / "failure.txt").write_text(text)
        print("\n" + text, file=sys.stderr, flush=True)

    # Making

    def make_topic(self, partitions: int, config: Mapping[str, object] | None = None) -> str:
        name = f"{self.group}-t{next(_numbers)}"
        with _creating:
            self.cluster.create_topic(name, partitions, config=config)
        return name

    def write(self, rate: float, topic: str = "", partitions: int = 0, **config: Any) -> Writer:
        """Start to write `rate` records a second, spread over the partitions."""
        topic = topic or self.topic
        trace = self.directory / f"writer-{topic}.jsonl"
        options = {"bootstrap": self.cluster.bootstrap_servers, "topic": topic, "rate": rate, "trace": str(trace),
                   "partitions": partitions or self.partitions, "config": config}
        process = self._spawn([sys.executable, str(HERE / "writer.py"), json.dumps(options)], f"writer-{topic}")
        writer = Writer(topic, Life(f"writer-{topic}"), process, trace)
        self.writers.append(writer)
        return writer

    def member(self, kind: str, name: str, *, static: bool = False, assignor: str = "cooperative-sticky",
               protocol: str = "", topics: list[str] | None = None, commit: str = "after",
               commit_every_s: float = 0.1, may_lose: bool = False, output: Mapping[str, str] | None = None,
               **config: Any) -> Member:
        """Start a member. `config`: further properties, librdkafka's names with underscores for dots."""
        protocol = protocol or self.protocol
        options: dict[str, Any] = {
            "bootstrap.servers": self.cluster.bootstrap_servers, "group.id": self.group, "client.id": name,
            "auto.offset.reset": "earliest", "group.protocol": protocol, "reconnect.backoff.max.ms": 500,
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        if protocol == CLASSIC:
            options = {"partition.assignment.strategy": assignor, "session.timeout.ms": SESSION_MS,
                       "heartbeat.interval.ms": HEARTBEAT_MS, **options}
        elif assignor in ("uniform", "range"):
            options["group.remote.assignor"] = assignor
        if kind == "confluent" and protocol == CONSUMER:
            options.setdefault("max.poll.interval.ms", DEAF_MS)
        if static:
            options["group.instance.id"] = name
        if kind in ("kconsumer", "aio") and "KCONSUMER_TEST_DEBUG" in os.environ:
            options["debug"] = os.environ["KCONSUMER_TEST_DEBUG"]
        life = Life(name, OURS.get(kind, kind), may_lose=may_lose, auto_commit=commit == "auto",
                    gives_early=kind == "confluent" and protocol == CONSUMER)
        place = self.directory / f"{name}.{1 + sum(m.name == name for m in self.members)}"
        trace = place.with_suffix(place.suffix + ".jsonl")
        told = {"trace": str(trace), "topics": [self.topic] if topics is None else topics, "commit": commit,
                "commit_every_s": commit_every_s}
        if kind == "java":
            command = JAVA._java_command(HERE / "JavaMember.java", [json.dumps(
                {**told, "config": _java_config(options)})], *JAVA_LOG)
        else:
            command = [sys.executable, str(HERE / "member.py"), json.dumps(
                {**told, "kind": MODULES[kind], "config": options, "output": dict(output or {})})]
        member = Member(life, self._spawn(command, place.name), trace, kind)
        self.members.append(member)
        return member

    def _spawn(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        return self.children.spawn(command, self.directory / f"{name}.log", self.directory, stdin=subprocess.PIPE)

    # Faults

    def kill(self, member: Member) -> None:
        """SIGKILL."""
        self.children.end(member.process)
        member.life.killed = time.monotonic()

    def stop(self, member: Member) -> None:
        """SIGSTOP."""
        member.life.stops.append([time.monotonic(), float("inf")])
        self.children.pause(member.process)

    def resume(self, member: Member) -> None:
        """SIGCONT."""
        self.children.resume(member.process)
        member.life.stops[-1][1] = time.monotonic()

    def close(self, *members: Member) -> None:
        """Let members leave, all at once, and wait for the end of their processes."""
        for member in members:
            member.life.closing = time.monotonic()
            member.ask("close")
        for member in members:
            try:
                code = member.process.wait(HUNG_S if member.kind == "confluent" else PATIENCE)
            except subprocess.TimeoutExpired:
                assert member.kind == "confluent", f"{member.name} does not close{self.log(member)}"
                self.kill(member)
                member.hung()
                print(f"{self.name}: {member.name} hung in close() and was killed")
            else:
                assert code == 0, f"{member.name} exited with {code}{self.log(member)}"

    def log(self, member: Member) -> str:
        found = sorted(self.directory.glob(f"{member.name}.*.log"))
        return "".join("\n" + path.read_text(errors="replace")[-2000:] for path in found[-1:])

    # Waiting

    def until(self, condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """Wait until `condition()` is true; its value."""
        deadline = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            for member in self.members:
                gone = member.process.poll()
                expected = member.life.killed is not None or member.said("closed")
                assert gone is None or expected, f"{member.name} exited with {gone}{self.log(member)}"
            if time.monotonic() > deadline:
                owners = {m.name: sorted(m.owned()) for m in self.members if m.running}
                raise AssertionError(f"not within {seconds} s: {what}; owners by then: {owners}")
            time.sleep(0.03)

    def stable(self, members: Iterable[Member], topics: Mapping[str, int] | None = None, spread: int = 1,
               seconds: float = PATIENCE) -> None:
        """Wait until the members own all partitions, each once, and no two differ by more than `spread`."""
        members = list(members)
        wanted = {f"{topic}/{n}" for topic, count in (topics or {self.topic: self.partitions}).items()
                  for n in range(count)}

        def spread_out() -> bool:
            counts = [len(m.owned()) for m in members]
            owners = Counter(p for m in members for p in m.owned())
            return set(owners) == wanted and set(owners.values()) == {1} and max(counts) - min(counts) <= spread

        self.until(spread_out, f"a valid assignment to {[m.name for m in members]}", seconds)

    def flowing(self, members: Iterable[Member], seconds: float = PATIENCE) -> None:
        """Wait until every partition that a member owns now has given it a record written from now on."""
        now = {m.name: (m, {p: m.position(p) for p in m.owned()}) for m in members}
        self.until(lambda: all(m.position(p) > at for m, places in now.values() for p, at in places.items()
                               if p in m.owned()), "records from every partition", seconds)

    def drained(self, seconds: float = PATIENCE) -> None:
        """Stop the writers and wait until all they wrote has been read."""
        for writer in self.writers:
            written = writer.stop()
            self.until(lambda written=written: all(
                max(m.position(p) for m in self.members) >= written.end(p) for p in written.partitions()),
                f"all of {writer.topic} to be read", seconds)

    # The end

    def read_committed(self, topic: str, count: int, seconds: float = PATIENCE) -> list[str]:
        """The values of a topic's committed records, once there are `count` or more, by confluent_kafka."""
        import confluent_kafka

        reader = confluent_kafka.Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": topic,
                                           "isolation.level": "read_committed", "enable.auto.commit": False})
        found: list[str] = []
        try:
            reader.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(self.partitions)])
            deadline, quiet = time.monotonic() + seconds, 0
            while len(found) < count or not quiet:  # and a little longer, for what should not be there
                messages = reader.consume(1000, 0.5)
                found += [m.value().decode() for m in messages if m.error() is None]
                quiet = not messages
                assert time.monotonic() < deadline, f"{len(found)} of {count} records in {topic}"
        finally:
            reader.close()
        return found

    def stored(self) -> dict[str, int]:
        """The group's offsets, as another client asks the coordinator for them."""
        import confluent_kafka

        reader = confluent_kafka.Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": self.group,
                                           "enable.auto.commit": False})
        try:
            asked = [confluent_kafka.TopicPartition(self.topic, p) for p in range(self.partitions)]
            return {f"{p.topic}/{p.partition}": p.offset for p in reader.committed(asked, PATIENCE) if p.offset >= 0}
        finally:
            reader.close()

    def verdict(self, *, silence_s: float | None = 1.0, repeats: Iterable[str] = (), gaps: bool = False,
                brokers_fail: bool = False, since: float = 0.0) -> Verdict:
        """Drain, close what runs, and check everything.

        ``silence_s``: the longest that a kept partition of the client under test may be silent, None for no limit; as
        much more as the writer shows that the machine was busy elsewhere. ``repeats``: after what end of the tenure
        before records may come again. ``since``: moves and silences before do not count.
        """
        self.drained()
        self.close(*(m for m in self.members if m.running and not m.said("closed")))
        stored = self.stored() if any(m.said("accepted") for m in self.members) else None
        lives = [m.life for m in self.members]
        for member in self.members:
            member.events()
            member.life.deaf = member.life.gives_early and member.heartbeat_timed_out()
        written = self.writers[0].written()
        found = judge(lives, written, gaps, stored=stored, brokers_fail=brokers_fail,
                      leaders=self.protocol == CLASSIC).since(since, written)
        allowed = {"killed", "lost", "given early", "commit after a join", "held up", *repeats}
        if brokers_fail:
            allowed |= {"commit failed", "commit overtaken"}
        for why, count in found.repeated_for.items():
            if why not in allowed:
                found.wrong.append(f"{count} records came again after a tenure that ended: {why}")
        for (kind, partition), silence in found.silence.items():
            ours = kind == OURS.get(subject(), subject())
            if ours and silence_s is not None and silence > silence_s + 3 * written.stall:
                found.wrong.append(f"{partition} was kept, but silent for {silence:.2f} s")
        for life in lives:
            if not life.may_lose and not life.stops:
                found.wrong += [f"{life.name}: {e}" for e in life.complaints()]
        print(f"{self.name}: {found.summary()}")
        named = re.findall(rf"{re.escape(self.group)}-t\d+/\d+", "\n".join(found.wrong))
        stories = [story(found, partition) for partition in list(dict.fromkeys(named))[:MOST_STORIES]]
        assert not found.wrong, f"{self.name}: {found.summary()}\n" + "\n".join([*found.wrong[:30], *stories])
        return found


def _java_config(options: Mapping[str, Any]) -> dict[str, str]:
    found = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    names = found.pop("partition.assignment.strategy", "")
    if names:
        found["partition.assignment.strategy"] = ",".join(
            f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[name]}" for name in names.split(","))
    return found


def config_of_group(cluster: KafkaCluster, group: str, **values: str) -> None:
    """Set a group's own properties on the broker (KIP-848's and those of an online migration are the broker's)."""
    from confluent_kafka import admin

    client = admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    resource = admin.ConfigResource(admin.ConfigResource.Type.GROUP, group, incremental_configs=[
        admin.ConfigEntry(key.replace("_", "."), value,
                          incremental_operation=admin.AlterConfigOpType.SET) for key, value in values.items()])
    for future in client.incremental_alter_configs([resource]).values():
        future.result(PATIENCE)


def subject() -> str:
    """The kind of member under test: kconsumer, unless the environment wants another: aio, or a peer, to see whose
    fault it is."""
    return os.environ.get("KCONSUMER_TEST_MEMBER", "kconsumer")
