"""Owns: KafkaCluster, a real Kafka with one or more brokers on loopback, for tests and benchmarks.

Threads: one at a time; the brokers are separate processes. Never: outlives the Python process (see _watchdog).
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from kconsumer.testing import _probe, _records
from kconsumer.testing._admin import Admin
from kconsumer.testing._artifacts import (
    DEFAULT_VERSION,
    QUICK_START,
    Release,
    class_archive,
    class_path,
    compiled,
    format_directory,
    install,
    jdk_program,
)
from kconsumer.testing._errors import ClusterError
from kconsumer.testing._listeners import listener_properties, read_listeners
from kconsumer.testing._process import Children, Ports
from kconsumer.testing._records import Record

EXTERNAL = "KCONSUMER_BOOTSTRAP_SERVERS"
_READY_SECONDS = 120.0  # three brokers on two busy cores start slowly
_LOG_TAIL_LINES = 40
_QUIET = ("-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
          "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config.AbstractConfig=warn",
          "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaConfig=warn")
# The oldest brokers log through log4j 1 itself.
_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} [%t] %p %c - %m%n
log4j.logger.kafka.server.KafkaConfig=WARN
"""


@dataclass
class _Broker:
    id: int
    port: int
    controller_port: int
    directory: Path
    host: str = "127.0.0.1"
    prefix: Sequence[str] = ()  # of its command
    ports: dict[str, int] = field(default_factory=dict)  # of the additional listeners
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


class KafkaCluster:
    """Apache Kafka on this machine: a context manager, ready after it is entered.

    Brokers have the ids 1 … ``brokers``. Java must be installed. Maven fetches Kafka's jars at the first use of a
    version into ``$XDG_CACHE_HOME/kconsumer``. Data are in a temporary directory, removed with the cluster. The brokers
    die with this process, even if it is killed.

    Args:
        brokers: their number; each is also a controller (KRaft), so 3 survive the loss of one.
        version: Kafka's version; versions before 3.3 run with a ZooKeeper.
        config: broker properties that override the defaults (which never expire records: ``log.retention.ms=-1``).
        racks: ``broker.rack`` of each broker; also lets consumers fetch from the replica in their rack (KIP-392).
        heap: ``-Xmx`` of each broker.
        listeners: additional listeners by name, each with its properties (``ssl.keystore.location`` …). Two of these
            are not broker properties: ``security.protocol`` (default: the name) and ``host``, which clients connect to
            (default: 127.0.0.1). The plain listener remains, for the cluster's use.
        java_options: additional options of each broker's JVM.
        quick_start: True: brokers and run_java() use only the JVM's first compiler (C1), and an archive of loaded
            classes, which the first start of a version makes in the cache. They start with a third of the CPU time.
            Set False for long runs and measurements.

    If ``KCONSUMER_BOOTSTRAP_SERVERS`` names a running cluster, and no argument needs a separate one (version, config,
    racks, listeners), that cluster is used. Topics and records work as usual; kill(), restart(), pause(), resume() and
    log_path() raise ClusterError.

    Raises ValueError for invalid arguments; MissingToolError and ClusterError (both RuntimeError) from start().
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = DEFAULT_VERSION,
        config: Mapping[str, object] | None = None,
        racks: Sequence[str] | None = None,
        heap: str = "512m",
        *,
        listeners: Mapping[str, Mapping[str, object]] | None = None,
        java_options: Sequence[str] = (),
        quick_start: bool = True,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"brokers must be at least 1, not {brokers}")
        if racks is not None and len(racks) != brokers:
            raise ValueError(f"expected one rack per broker: {len(racks)} racks for {brokers} brokers")
        self.version = version
        self._release = Release(version)
        self._count = brokers
        self._config = dict(config or {})
        self._racks = list(racks) if racks else None
        self._heap = heap
        self._listeners = read_listeners(listeners or {})
        self._quick_start = quick_start
        self._jvm = ["-XX:+UseSerialGC", "-XX:-UsePerfData", *([QUICK_START] if quick_start else [])]
        self._java_options = list(java_options)
        self._external = ""
        if version == DEFAULT_VERSION and not (config or racks or listeners or java_options):
            self._external = os.environ.get(EXTERNAL, "").strip()
        self._brokers: list[_Broker] = []
        self._topics: dict[str, int] = {}  # name → partitions, of topics created here and not deleted
        self._children: Children | None = None
        self._ports = Ports()
        self._directory: Path | None = None
        self._java = ""
        self._archive: list[str] = []
        self._cluster_id = ""
        self._zookeeper: tuple[str, subprocess.Popen[bytes]] | None = None

    # Life

    def __enter__(self) -> KafkaCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all brokers and wait until each knows all others.

        Does nothing to a started cluster.
        """
        if self._external:
            self._check_external()
            return
        if self._children is not None:
            return
        self._java = jdk_program("java", self._release.java)
        install(self.version)
        self._archive = self._archive_options(self._java)
        self._directory = Path(tempfile.mkdtemp(prefix="kconsumer-kafka-"))
        try:
            self._children = Children(self._directory)
            # Kafka refuses an id with a leading dash: one in 64 of the random ids.
            self._cluster_id = "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
            for number in range(1, self._count + 1):
                directory = self._directory / f"broker-{number}"
                directory.mkdir()
                ports = {listener.name: self._ports.take() for listener in self._listeners}
                host, prefix = self._place(number)
                self._brokers.append(_Broker(number, self._ports.take(), self._ports.take(), directory, host, prefix,
                                             ports))
            if self._release.needs_zookeeper:
                self._start_zookeeper()
            for broker in self._brokers:
                self._launch(broker)
            self._wait_for_brokers()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill the brokers and remove their data.

        Does nothing to a stopped or external cluster.
        """
        if self._children is not None:
            for broker in self._brokers:
                if broker.process is not None:
                    self._children.end(broker.process)
            if self._zookeeper is not None:
                self._children.end(self._zookeeper[1])
            self._children.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._ports.release()
        self._children = self._directory = self._zookeeper = None
        self._brokers = []
        self._topics = {}

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, comma-separated.

        Raises ClusterError if not started.
        """
        return self._external or ",".join(broker.address for broker in self._started())

    def bootstrap(self, listener: str = "PLAINTEXT") -> str:
        """Return ``host:port`` of every broker at a listener, comma-separated.

        Raises ValueError for an unknown listener.
        """
        if listener == "PLAINTEXT":
            return self.bootstrap_servers
        hosts = {known.name: known.host for known in self._listeners}
        if listener not in hosts:
            raise ValueError(f"unknown listener {listener!r}: expected PLAINTEXT {' '.join(hosts)}")
        return ",".join(f"{hosts[listener]}:{broker.ports[listener]}" for broker in self._started())

    @property
    def broker_ids(self) -> list[int]:
        """Return the broker ids, for kill() and similar methods."""
        return [broker.id for broker in self._started()]

    def log_path(self, broker: int) -> Path:
        """Return the path of a broker's log file. stop() removes the file."""
        return self._broker(broker).log

    def pid(self, broker: int) -> int | None:
        """Return the process id of a broker; None if it is not running."""
        found = self._broker(broker)
        return found.process.pid if found.running and found.process else None

    # Faults

    def kill(self, broker: int) -> None:
        """SIGKILL a broker, like a crash. Its port stays reserved and refuses connections."""
        found = self._broker(broker)
        if found.process is not None:
            self._own_children().end(found.process)

    def restart(self, broker: int, graceful_s: float = 30.0, wait: bool = True) -> None:
        """Restart a broker on its port with its data. A running broker is shut down first.

        Waits until all running brokers know each other, unless ``wait`` is false.
        """
        found = self._broker(broker)
        if found.process is not None:
            self._own_children().end(found.process, graceful_s)
        self._launch(found)
        if wait:
            self._wait_for_brokers()

    def pause(self, broker: int) -> None:
        """SIGSTOP a broker: its connections stay open, but it does not answer."""
        process = self._process(broker)
        self._own_children().pause(process)

    def resume(self, broker: int) -> None:
        """SIGCONT a stopped broker."""
        process = self._process(broker)
        self._own_children().resume(process)

    # Topics and records

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic and wait until all brokers know its leaders.

        ``replication`` defaults to 3, or the number of brokers if lower. Raises ClusterError with the broker's reason.
        """
        texts = {key: _property(value) for key, value in (config or {}).items()}
        self._admin().create_topic(name, partitions, replication or min(3, self._count), texts)

        self._topics[name] = partitions
        self._wait_for_view(lambda view: _incomplete(view, name, partitions, all_led=True))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until no running broker knows it.

        Raises ClusterError on failure.
        """
        self._admin().delete_topic(name)
        self._topics.pop(name, None)
        self._wait_for_view(lambda view: f"topic {name} still exists" if name in view.topics else "")

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader's broker id of each partition; -1: no leader.

        Asks the first running broker that answers. Raises ClusterError if it does not know the topic, or if no broker
        answers within two minutes.
        """
        deadline = time.monotonic() + _READY_SECONDS
        view, failure = self._ask_any()
        while view is None:
            if not self._addresses() or time.monotonic() > deadline:
                raise ClusterError(failure)
            time.sleep(0.05)
            view, failure = self._ask_any()
        if topic not in view.topics:
            raise ClusterError(f"topic {topic} does not exist")
        return view.topics[topic].leaders

    def produce(
        self,
        topic: str,
        records: Iterable[Record],
        config: Mapping[str, Any] | None = None,
        timeout_s: float = 60.0,
    ) -> list[tuple[int, int]]:
        """Write records with confluent_kafka's producer and wait for all acknowledgements.

        Needs the ``[testing]`` extra.

        A record is its value, a (key, value) pair, or a mapping with any of ``key``, ``value``, ``headers``,
        ``partition`` and ``timestamp`` (ms). ``config`` has producer properties; by default it is idempotent. Returns
        the (partition, offset) of each record in order. Raises ClusterError if a record fails or the time is over.
        """
        return _records.produce(self.bootstrap_servers, topic, records, config or {}, timeout_s)

    def watermarks(self, topic: str, timeout_s: float = 10.0) -> dict[int, tuple[int, int]]:
        """Return the low and high watermark of each partition, through confluent_kafka."""
        return _records.watermarks(self.bootstrap_servers, topic, timeout_s)

    def run_java(
        self,
        source: str | os.PathLike[str],
        args: Sequence[str] = (),
        stdin: bytes | None = None,
        timeout_s: float = 120.0,
    ) -> str:
        """Compile a Java source file against Kafka's jars (cached) and run its class.

        The class has the file's name. Returns its stdout. Raises MissingToolError without a JDK, ClusterError if it
        does not compile, fails (with the end of its stderr) or takes longer than ``timeout_s``.
        """
        path = Path(source)
        command = self._java_command(path, args, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        try:
            done = subprocess.run(command, input=stdin if stdin is not None else b"", capture_output=True, check=False,
                                  timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{path.name} did not end within {timeout_s} s") from None
        if done.returncode != 0:
            tail = "\n".join(done.stderr.decode(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
            raise ClusterError(f"{path.name} exited with {done.returncode}:\n{tail}")
        return done.stdout.decode()

    # Internal

    def _java_command(self, source: Path, args: Sequence[str], *options: str) -> list[str]:
        java = jdk_program("java", self._release.java)
        return [java, f"-Xmx{self._heap}", *self._jvm, *self._archive_options(java), *options,
                "-cp", class_path(self.version, compiled(source, self.version)), source.stem, *args]

    def _archive_options(self, java: str) -> list[str]:
        return class_archive(self.version, java, self._write_archive) if self._quick_start else []

    def _write_archive(self, path: Path) -> None:
        """Start a broker for its classes; the JVM writes them to ``path`` when it ends."""
        writing = (QUICK_START, "-XX:+IgnoreUnrecognizedVMOptions", f"-XX:ArchiveClassesAtExit={path}", "-Xlog:disable")
        with KafkaCluster(version=self.version, java_options=writing, quick_start=False) as cluster:
            cluster.create_topic("archived")
            broker = cluster._broker(1)
            assert broker.process is not None
            cluster._own_children().end(broker.process, _READY_SECONDS)

    def _place(self, number: int) -> tuple[str, Sequence[str]]:
        """Return a broker's address and the start of its command; tests/network puts it into a network namespace."""
        return "127.0.0.1", ()

    def _started(self) -> list[_Broker]:
        if not self._brokers:
            raise ClusterError(f"cannot control an external cluster ({EXTERNAL})" if self._external
                               else "the cluster is not started")
        return self._brokers

    def _broker(self, number: int) -> _Broker:
        for broker in self._started():
            if broker.id == number:
                return broker
        raise ValueError(f"unknown broker {number}: expected 1 to {self._count}")

    def _own_children(self) -> Children:
        assert self._children is not None
        return self._children

    def _process(self, number: int) -> subprocess.Popen[bytes]:
        broker = self._broker(number)
        if not broker.running or broker.process is None:
            raise ClusterError(f"broker {number} is not running")
        return broker.process

    def _admin(self) -> Admin:
        return Admin(self.bootstrap_servers, self.version, self._zookeeper[0] if self._zookeeper else None)

    def _addresses(self) -> list[str]:
        if self._external:
            return [address.strip() for address in self._external.split(",")]
        return [broker.address for broker in self._started() if broker.running]

    def _ask_any(self, timeout_s: float = 2.0) -> tuple[_probe.ClusterView | None, str]:
        """Return the view of the first broker that answers, or why none does."""
        failure = "no broker of the cluster is running"
        for address in self._addresses():
            try:
                return _probe.metadata(address, timeout_s), ""
            except (OSError, struct.error, ValueError) as error:
                failure = f"{address}: {error}"
        return None, failure

    def _check_external(self) -> None:
        view, failure = self._ask_any(10.0)
        seen = view.brokers if view is not None else set()
        if len(seen) < self._count:
            why = failure if not seen else f"it has {len(seen)} broker(s)"
            raise ClusterError(f"{EXTERNAL}={self._external} does not have {self._count} broker(s): {why}")

    def _launch(self, broker: _Broker) -> None:
        data = broker.directory / "data"
        properties = broker.directory / "server.properties"
        if not data.exists():
            data.mkdir()
            lines = "".join(f"{key}={_property(value)}\n" for key, value in self._properties(broker, data).items())
            properties.write_text(lines, encoding="utf-8")
            (broker.directory / "log4j.properties").write_text(_LOG4J, encoding="utf-8")
            if not self._release.needs_zookeeper:
                format_directory(self.version, data)
                (data / "meta.properties").write_text(
                    f"version=1\ncluster.id={self._cluster_id}\nnode.id={broker.id}\n", encoding="utf-8")
        command = [*broker.prefix, self._java, f"-Xmx{self._heap}", *self._jvm, *self._archive, *_QUIET,
                   f"-Dkafka.logs.dir={broker.directory}",
                   f"-Dlog4j.configuration=file:{broker.directory}/log4j.properties", *self._java_options, "-cp",
                   class_path(self.version), "kafka.Kafka", str(properties)]
        broker.process = self._own_children().spawn(command, broker.log, broker.directory)

    def _properties(self, broker: _Broker, data: Path) -> dict[str, object]:
        copies = min(3, self._count)
        plain = f"PLAINTEXT://{broker.address}"
        controller = f"CONTROLLER://{broker.host}:{broker.controller_port}"
        properties: dict[str, object] = {
            "log.dirs": data,
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.ms": -1,  # Kafka would delete records with old timestamps within minutes
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,  # the default of 50 costs seconds at the first group
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": min(2, copies),
            "transaction.state.log.num.partitions": 4,
            "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,  # default: 128 MiB of the heap
        }
        if self._release.needs_zookeeper:
            assert self._zookeeper is not None
            properties |= {"broker.id": broker.id, "listeners": plain, "zookeeper.connect": self._zookeeper[0],
                           "zookeeper.session.timeout.ms": 6000, "delete.topic.enable": True}
        else:
            voters = ",".join(f"{b.id}@{b.host}:{b.controller_port}" for b in self._brokers)
            properties |= {
                "process.roles": "broker,controller",
                "node.id": broker.id,
                "listeners": f"{plain},{controller}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "broker.session.timeout.ms": 6000,
                "broker.heartbeat.interval.ms": 1000,
                # Every half second by default: half of what an idle broker computes.
                "metadata.max.idle.interval.ms": 5000,
            }
        if self._release.numbers >= (4, 0):
            properties |= {"share.coordinator.state.topic.replication.factor": copies,
                           "share.coordinator.state.topic.min.isr": min(2, copies),
                           "share.coordinator.state.topic.num.partitions": 4}
        if self._racks is not None:
            properties["broker.rack"] = self._racks[broker.id - 1]
            if self._release.numbers >= (2, 4):
                properties["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
        properties |= listener_properties(plain, self._listeners, broker.ports)
        if self._listeners and not self._release.needs_zookeeper:
            properties["listeners"] = f"{properties['listeners']},{controller}"
        return properties | self._config

    def _start_zookeeper(self) -> None:
        assert self._directory is not None
        directory = self._directory / "zookeeper"
        directory.mkdir()
        port = self._ports.take()
        settings = directory / "zookeeper.properties"
        settings.write_text(
            f"dataDir={directory / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
            "tickTime=1000\nadmin.enableServer=false\n", encoding="utf-8")
        command = [self._java, "-Xmx128m", *self._jvm, *_QUIET,
                   "-Dzookeeper.jmx.log4j.disable=true", "-cp", class_path(self.version),
                   "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings)]
        process = self._own_children().spawn(command, directory / "zookeeper.log", directory)
        self._zookeeper = (f"127.0.0.1:{port}", process)  # brokers retry until it listens

    def _wait_for_brokers(self) -> None:
        running = {broker.id for broker in self._started() if broker.running}

        all_led = len(running) == self._count

        def known(view: _probe.ClusterView) -> str:
            if not running <= view.brokers:
                return f"it knows brokers {sorted(view.brokers)} of {sorted(running)}"
            topics = (_incomplete(view, name, count, all_led) for name, count in self._topics.items())
            return next(filter(None, topics), "")  # with ZooKeeper a broker learns its topics after its start

        self._wait_for_view(known)

    def _wait_for_view(self, missing: Callable[[_probe.ClusterView], str]) -> None:
        """Wait until ``missing`` returns "" for every running broker's view of the cluster."""
        deadline = time.monotonic() + _READY_SECONDS
        left = self._addresses()
        while left:
            self._check_alive()
            try:
                why = missing(_probe.metadata(left[0]))
            except (OSError, struct.error, ValueError) as error:
                why = f"no answer ({error})"
            if not why:
                left.pop(0)
                continue
            if time.monotonic() > deadline:
                waited = f"broker {left[0]} is not ready after {_READY_SECONDS:.0f} s"
                raise ClusterError(f"{waited}: {why}{self._tail(left[0])}")
            time.sleep(0.05)

    def _check_alive(self) -> None:
        if self._zookeeper is not None and self._zookeeper[1].poll() is not None and self._directory is not None:
            raise ClusterError(f"ZooKeeper exited with {self._zookeeper[1].returncode}"
                               f"{_tail(self._directory / 'zookeeper' / 'zookeeper.log')}")
        for broker in self._brokers:
            code = broker.process.poll() if broker.process is not None else None
            if code is not None and code != -signal.SIGKILL:
                raise ClusterError(f"broker {broker.id} exited with {code}{_tail(broker.log)}")

    def _tail(self, address: str) -> str:
        return "".join(_tail(broker.log) for broker in self._brokers if broker.address == address)


def _incomplete(view: _probe.ClusterView, name: str, partitions: int, all_led: bool) -> str:
    """Return the part of a topic that a broker does not know yet; empty if it knows all of it."""
    topic = view.topics.get(name)
    if topic is None or len(topic.leaders) != partitions:
        return f"it does not know all of topic {name}"
    if all_led and (topic.error or -1 in topic.leaders.values()):
        return f"topic {name} has partitions without a leader: {topic.leaders}"
    return ""


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    except FileNotFoundError:
        return ""
    return "\nThe end of its log:\n" + "\n".join(lines)


def _property(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
