"""The table of configuration properties: every name that a consumer accepts, and its effect.

Owns: PROPERTIES, BY_NAME. Threads: any (immutable). Never: reads a value; defines a default twice.

The names are librdkafka 2.16's (consumer and common properties), the Java consumer's (Kafka 4.4), and kconsumer's own.
tools/generate_docs.py generates docs/configuration.md from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kconsumer.config.property import (
    ABSENT,
    ON_WIRE,
    SAME,
    Alias,
    Kind,
    Property,
    Scope,
    accepted,
    boolean,
    enum,
    function,
    integer,
    refused,
    string,
    words,
)
from kconsumer.config.security_properties import SECURITY

INT32_MAX: Final = 2**31 - 1


class OffsetReset(NamedTuple):
    """Action without a valid offset: earliest, latest, error or by_duration."""

    policy: str
    duration_ms: int = 0  #: for ``by_duration``: start this long before now (KIP-1106)


_DEBUG = words(
    *"generic broker topic metadata feature queue msg protocol cgrp security fetch interceptor plugin".split(),
    *"consumer admin eos mock assignor conf telemetry all".split(),
)

_CLIENT = (
    Property(
        "bootstrap.servers", Kind.BOOTSTRAP, (), "Initial brokers, `host:port` separated by commas. Brackets "
        "around an IPv6 address; the default port is 9092; a host may have the prefix `PLAINTEXT://`. "
        "Without it the consumer knows no broker and logs a warning.",
        aliases=(Alias("metadata.broker.list"),),
    ),
    string("client.id", "kconsumer", "Name of this client in the brokers' logs and quotas.",
           librdkafka_default="rdkafka", maximum=ON_WIRE),
    string("client.rack", "", "Rack this client is in. Brokers may direct it to a replica in the same rack (KIP-392).",
           maximum=ON_WIRE),
    string("client.software.name", "kconsumer", "Software name reported to brokers (KIP-511).",
           librdkafka_default="librdkafka"),
    string("client.software.version", None,
           "Software version reported to brokers (KIP-511). Default: the version of kconsumer.",
           librdkafka_default="librdkafka's version"),
    Property(
        "builtin.features", Kind.FLAGS, frozenset(), "Features that the application needs: construction fails without "
        "one of them.", choices=words("gzip", "snappy", "lz4", "zstd"), in_settings=False,
        librdkafka_default="its features",
    ),
    Property(
        "default.topic.config", Kind.TOPIC_CONFIG, None, "A dict of topic-level properties such as "
        "`auto.offset.reset`. The same property outside it takes precedence.", in_settings=False,
    ),
)

_METADATA = (
    integer("topic.metadata.refresh.interval.ms", -1, 3_600_000, 300_000, "Interval in ms of metadata fetches "
            "without another cause; 0 or -1: only `metadata.max.age.ms` counts, if set."),
    integer("metadata.max.age.ms", 1, 86_400_000, 900_000, "Age in ms of metadata before it is fetched again. The "
            "shorter of this and `topic.metadata.refresh.interval.ms` counts; three times the latter if not set."),
    enum("metadata.recovery.strategy", words("none", "rebootstrap"), "rebootstrap", "Whether to start again from "
         "`bootstrap.servers` when no known broker can be reached (KIP-899)."),
    integer("metadata.recovery.rebootstrap.trigger.ms", 0, INT32_MAX, 300_000, "Time in ms without metadata from any "
            "broker after which to start again from `bootstrap.servers` (KIP-1102)."),
    boolean("metadata.cluster.check.enable", True, "Let brokers of Kafka 4.4 or newer check that a connection is meant "
            "for them, by their id and the cluster's (KIP-1242). If not, the consumer starts again from "
            "`bootstrap.servers`. Without effect if `metadata.recovery.strategy` is `none`.",
            librdkafka_default=ABSENT, java_default=SAME),
    boolean("allow.auto.create.topics", False, "Whether a broker may create an assigned or requested topic that "
            "does not exist."),
)

_NETWORK = (
    integer("default.api.timeout.ms", 0, INT32_MAX, 60_000, "Time limit in ms of a call that sends requests and has "
            "no timeout. `commit` always has it. If it is not set, the other calls wait without limit, as in "
            "confluent_kafka.", librdkafka_default=ABSENT, java_default=SAME),
    integer("socket.timeout.ms", 10, 300_000, 60_000, "Time limit in ms of a request; for a Fetch, `fetch.wait.max.ms` "
            "is added. Both names are accepted.",
            aliases=(Alias("request.timeout.ms", "Java", maximum=900_000),)),
    integer("socket.send.buffer.bytes", 0, 100_000_000, 0, "Size of a socket's send buffer in bytes; 0: the system's "
            "default.",
            aliases=(Alias("send.buffer.bytes", "Java", minimum=-1, renamed={-1: 0}),)),
    integer("socket.receive.buffer.bytes", 0, 100_000_000, 0, "Size of a socket's receive buffer in bytes; 0: the "
            "system's.", aliases=(Alias("receive.buffer.bytes", "Java", minimum=-1, renamed={-1: 0}),)),
    boolean("socket.keepalive.enable", False, "TCP keep-alive on connections to brokers."),
    boolean("socket.nagle.disable", True, "TCP_NODELAY on connections to brokers."),
    integer("socket.max.fails", 0, 1_000_000, 1, "Timed-out requests on a connection before it is closed; 0: "
            "any number. Whatever the value, it is closed when all requests that it may have in flight have timed "
            "out. This is 1 request on connections for Fetch and JoinGroup, and 5 on others."),
    integer("socket.connection.setup.timeout.ms", 1000, INT32_MAX, 30_000, "Time limit in ms of each step of "
            "connecting to a broker. The steps are: resolving the name; each address, with its TLS handshake and "
            "version request; the SASL authentication."),
    integer("connections.max.idle.ms", 0, INT32_MAX, 0, "Time in ms after which an idle connection is closed; 0: "
            "never."),
    integer("reconnect.backoff.ms", 0, 3_600_000, 100, "Pause in ms before the first reconnection to a broker; grows "
            "exponentially with jitter."),
    integer("reconnect.backoff.max.ms", 0, 3_600_000, 10_000, "Longest pause in ms between reconnections to a broker."),
    integer("retry.backoff.ms", 1, 300_000, 100, "Pause in ms before a request is tried again; grows exponentially "
            "with jitter (KIP-580)."),
    integer("retry.backoff.max.ms", 1, 300_000, 1000, "Longest pause in ms between tries of a request (KIP-580)."),
    integer("broker.address.ttl", 0, 86_400_000, 1000, "Time in ms for which the addresses of a host name are cached."),
    enum("broker.address.family", words("any", "v4", "v6"), "any", "Address family to connect with."),
    enum("client.dns.lookup", words("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"), "use_all_dns_ips",
         "Try every address of a host name, or resolve the bootstrap names to canonical names first."),
    boolean("api.version.request", True, "Ask brokers for their supported versions (KIP-35)."),
    integer("api.version.request.timeout.ms", 1, 300_000, 10_000, "Time limit in ms of the version request."),
    integer("receive.message.max.bytes", 1000, INT32_MAX, 100_000_000, "Largest accepted response in bytes. "
            "Must be at least `fetch.max.bytes` + 512; the default grows to it."),
)

_FETCH = (
    integer("fetch.min.bytes", 1, 100_000_000, 1, "Bytes that a broker gathers before it answers a Fetch, within "
            "`fetch.wait.max.ms`.", runtime=True),
    integer("fetch.wait.max.ms", 0, 300_000, 500, "Time in ms for which a broker may wait for "
            "`fetch.min.bytes`.", runtime=True,
            aliases=(Alias("fetch.max.wait.ms", "Java"),)),
    integer("fetch.max.bytes", 0, 2_147_483_135, 52_428_800, "Bytes that a Fetch requests in total. A larger first "
            "batch is still returned.", runtime=True),
    integer("max.partition.fetch.bytes", 0, 1_000_000_000, 0, "Bytes that a Fetch requests per partition. A larger "
            "first batch is still returned. 0: an equal share of 8 MiB for each partition that is "
            "read from the same broker, but at least 1 MiB.", runtime=True,
            aliases=(Alias("fetch.message.max.bytes", minimum=1),), librdkafka_default=1_048_576),
    integer("fetch.buffer.memory", 1024, 2**40, 67_108_864, "Limit in bytes of fetched records: requested ones and "
            "buffered ones. Decompressed sizes count.", runtime=True,
            aliases=(Alias("queued.max.messages.kbytes", factor=1024, minimum=1, maximum=2_097_151),)),
    integer("fetch.max.inflated.batch.bytes", 0, INT32_MAX - 1, 0, "Largest decompressed size in bytes of a batch. "
            "A larger one is reported as `_BAD_COMPRESSION` and stops its partition. A zstd window beyond 8 MiB counts "
            "too, for its used part. 0: the larger of `fetch.buffer.memory` and 100,000,000.",
            librdkafka_default=ABSENT),
    integer("fetch.max.record.headers", 1, INT32_MAX, 10_000, "Maximum number of headers of a record. A record with "
            "more is reported as `_BAD_MSG` and stops its partition.", librdkafka_default=ABSENT),
    boolean("check.crcs", True, "Verify the CRC of every batch.", librdkafka_default=False),
    enum("isolation.level", words("read_uncommitted", "read_committed"), "read_committed", "Whether to skip records "
         "of aborted and open transactions."),
    Property(
        "auto.offset.reset", Kind.RESET, OffsetReset("latest"), "Where to start if there is no committed offset, or "
        "if it is out of range. `earliest`, `latest`, `error` (an error is reported), or a duration before now, such "
        "as `by_duration:PT1H` (KIP-1106).",
        choices=words("earliest", "latest", "error", smallest="earliest", beginning="earliest", largest="latest",
                      end="latest", none="error"),
    ),
    boolean("enable.partition.eof", False, "Report `_PARTITION_EOF` each time the end of a partition is reached."),
)

_OBSERVE = (
    function("error_cb", "Called with a KafkaError for errors that are not tied to a record."),
    function("throttle_cb", "Called with a ThrottleEvent when a broker throttles this client's Fetches (KIP-219)."),
    function("stats_cb", "Called with a JSON string every `statistics.interval.ms`."),
    Property("logger", Kind.LOGGER, None, "Receives the log lines: an object with `log(level, format, *args)`; "
             "default: the logger `kconsumer`."),
    integer("statistics.interval.ms", 0, 86_400_000, 0, "Time in ms between calls of `stats_cb`; 0: no calls."),
    Property("debug", Kind.FLAGS, frozenset(), "Contexts with debug logging; a leading `-` excludes one.",
             choices=_DEBUG),
    integer("log_level", 0, 7, 6, "Least severe syslog level to log: 3 error, 4 warning, 6 info, 7 debug."),
    boolean("log.connection.close", True, "Log connections that a broker closes."),
)

_ASSIGNORS = words(
    "range", "roundrobin", "sticky", "cooperative-sticky",
    **{f"org.apache.kafka.clients.consumer.{java}Assignor": name for java, name in (
        ("Range", "range"), ("RoundRobin", "roundrobin"), ("Sticky", "sticky"),
        ("CooperativeSticky", "cooperative-sticky"))},
)  # fmt: skip

_GROUP = (
    string("group.id", None, "Consumer group. Not needed with assign().", nonempty=True,
           maximum=ON_WIRE),
    string("group.instance.id", None, "Static member's id in the group (KIP-345).", nonempty=True, maximum=ON_WIRE),
    enum("group.protocol", words("classic", "consumer"), "classic", "Membership protocol; `consumer` is KIP-848's."),
    string("group.remote.assignor", None, "Assignor on the broker, under `group.protocol=consumer`; default: the "
           "broker's choice."),
    Property("partition.assignment.strategy", Kind.ASSIGNORS, ("range", "roundrobin"), "Assignors in order of "
             "preference, under `group.protocol=classic`: names, and objects or subclasses of `kconsumer.Assignor` "
             "(docs/assignors.md), alone or in a list. The group rebalances cooperatively if all assignors are "
             "cooperative. The Java consumer's class names are accepted.", choices=_ASSIGNORS),
    integer("session.timeout.ms", 1, 3_600_000, 45_000, "Time in ms without heartbeats after which the "
            "coordinator drops the member, under `group.protocol=classic`. After as long without an answered heartbeat "
            "the consumer itself stops returning records and committing, until the coordinator answers."),
    integer("consumer.session.timeout.ms", 1, 3_600_000, 45_000, "The same under `group.protocol=consumer`. "
            "Brokers decide it there. The consumer asks for the group's value (DescribeConfigs). "
            "This value counts until it knows: set it if the principal may not describe the group's configuration.",
            librdkafka_default=ABSENT),
    integer("heartbeat.interval.ms", 1, 3_600_000, 3000, "Time in ms between heartbeats, under "
            "`group.protocol=classic`."),
    integer("max.poll.interval.ms", 1, 86_400_000, 300_000, "Maximum time in ms between calls that return "
            "records; after it the member leaves the group (KIP-62). Set it longer than your slowest processing of "
            "one call's records."),
    integer("rebalance.application.wait.ms", 0, 86_400_000, 86_400_000, "Maximum time in ms for which a revocation "
            "waits for the application's next call, where its records are in work or a callback is set. After it, the "
            "partitions are given up: the records in work are read again by another member. The default leaves the "
            "limit to `max.poll.interval.ms`.", librdkafka_default=ABSENT),
    boolean("enable.auto.commit", True, "Commit the stored offsets in the background."),
    integer("auto.commit.interval.ms", 0, 86_400_000, 5000, "Time in ms between background commits; 0: no commits."),
    boolean("enable.auto.offset.store", True, "Store the offset after each returned record, to be "
            "committed."),
    function("on_commit", "Called with an error or None and the list of partitions after a commit."),
    accepted(integer("coordinator.query.interval.ms", 1, 3_600_000, 600_000, "Time in ms between queries for the "
                     "coordinator."), "the consumer looks for the coordinator when it needs it or gets no answer"),
    accepted(string("group.protocol.type", "consumer", "Type of the group protocol."),
             "consumers use only the type `consumer`", "consumer"),
    refused(string("topic.blacklist", None, "Patterns of topics to hide."), "topics cannot be hidden: give the "
            "consumer the topics to read, or a pattern that excludes the others"),
    boolean("exclude.internal.topics", True, "Leave internal topics out of pattern subscriptions.",
            librdkafka_default=ABSENT, java_default=SAME),
)

_NO_EFFECT = (
    accepted(integer("message.max.bytes", 1000, 1_000_000_000, 1_000_000, "Largest request."),
             "a consumer's requests are small and need no limit"),
    accepted(integer("message.copy.max.bytes", 0, 1_000_000_000, 65_535, "Largest produced message that is copied."),
             "a producer property"),
    accepted(integer("max.in.flight.requests.per.connection", 1, 1_000_000, 1_000_000, "Requests in flight per "
                     "connection.", aliases=(Alias("max.in.flight"),)),
             "each connection carries only as many requests as its role needs, one Fetch for instance"),
    accepted(integer("topic.metadata.refresh.fast.interval.ms", 1, 60_000, 100, "First pause of fast metadata "
                     "refreshes."), "`retry.backoff.ms` and `retry.backoff.max.ms` pace these requests"),
    accepted(integer("topic.metadata.refresh.fast.cnt", 0, 1000, 10, "Deprecated in librdkafka."),
             "librdkafka no longer uses it either"),
    accepted(boolean("topic.metadata.refresh.sparse", True, "Ask for the metadata of used topics only."),
             "metadata requests always name only used topics", True),
    accepted(integer("topic.metadata.propagation.max.ms", 0, 3_600_000, 30_000, "Grace for topics just created."),
             "an unknown topic is reported at once, and requested again until it exists"),
    accepted(integer("socket.blocking.max.ms", 1, 60_000, 1000, "Deprecated in librdkafka."),
             "librdkafka no longer uses it either"),
    accepted(integer("reconnect.backoff.jitter.ms", 0, 3_600_000, 0, "Deprecated in librdkafka."),
             "librdkafka no longer uses it either"),
    accepted(integer("api.version.fallback.ms", 0, 604_800_000, 0, "Time a version fallback is used."),
             "each new connection asks the broker for its versions"),
    accepted(string("broker.version.fallback", "0.10.0", "Assumed version of a broker without ApiVersions."),
             "without ApiVersions, a broker is assumed to support only the oldest versions"),
    accepted(integer("queued.min.messages", 1, 10_000_000, 100_000, "Records to buffer per partition."),
             "`fetch.buffer.memory` limits the buffer in bytes instead"),
    accepted(integer("fetch.queue.backoff.ms", 0, 300_000, 1000, "Pause of a partition with a full queue."),
             "fetching resumes when the buffer has space"),
    accepted(integer("fetch.error.backoff.ms", 0, 300_000, 500, "Pause of a partition after a fetch error."),
             "`retry.backoff.ms` and `retry.backoff.max.ms` pace these requests"),
    accepted(integer("consume.callback.max.messages", 0, 1_000_000, 0, "Messages per consume callback."),
             "there is no consume callback"),
    accepted(integer("max.poll.records", 1, INT32_MAX, 500, "Records per poll of a Java or share consumer."),
             "`consume` and `consume_batch` take the number as an argument"),
    accepted(boolean("enable.metrics.push", True, "Send client metrics to the brokers (KIP-714)."),
             "metrics are not sent to brokers yet", False),
    accepted(boolean("log.queue", False, "Queue log lines for the application."),
             "the application thread always receives the log lines"),
    accepted(boolean("log.thread.name", True, "Print thread names in log lines."), "the logger's format defines it"),
    accepted(boolean("enable.random.seed", True, "Seed librdkafka's generator."), "kconsumer does not have such a "
             "generator"),
    accepted(integer("enabled_events", 0, INT32_MAX, 0, "Events of librdkafka's C interface."),
             "events reach the application through callbacks", 0),
    accepted(integer("internal.termination.signal", 0, 128, 0, "Signal that interrupts librdkafka's threads."),
             "the network thread is woken without signals", 0),
    accepted(enum("share.acknowledgement.mode", words("implicit", "explicit"), "implicit", "Share consumers only."),
             "kconsumer is not a share consumer"),
    accepted(string("share.acquire.mode", None, "Share consumers only.", librdkafka_default=ABSENT, java_default=SAME),
             "kconsumer is not a share consumer"),
    accepted(boolean("auto.commit.enable", True, "Legacy form of `enable.auto.commit` for librdkafka's simple "
                     "consumer."), "a property of librdkafka's legacy consumer: use `enable.auto.commit`"),
    accepted(string("offset.store.path", ".", "Deprecated in librdkafka."), "offsets are stored by the broker"),
    accepted(integer("offset.store.sync.interval.ms", -1, 86_400_000, -1, "Deprecated in librdkafka."),
             "offsets are stored by the broker"),
    refused(enum("offset.store.method", words("none", "file", "broker"), "broker", "Where offsets are stored."),
            "offsets are stored by the broker only", "broker"),
    accepted(integer("bootstrap.resolve.timeout.ms", 0, INT32_MAX, 0, "Time to resolve `bootstrap.servers` (KIP-909).",
                     librdkafka_default=ABSENT, java_default=SAME),
             "names are resolved again until a broker is found; calls end at their own timeouts", 0),
    accepted(integer("socket.connection.setup.timeout.max.ms", 0, INT32_MAX, 30_000, "Longest set-up time after "
                     "repeated failures.", librdkafka_default=ABSENT, java_default=SAME),
             "`socket.connection.setup.timeout.ms` does not grow; `reconnect.backoff.ms` paces reconnections"),
    *(accepted(string(name, None, "Metrics of the Java client.", librdkafka_default=ABSENT, java_default=SAME),
               "a property of the Java client's metrics: use `metrics()` or `stats_cb`")
      for name in ("metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms")),
)  # fmt: skip

_C_ONLY = "a property of librdkafka's C interface only"


def _unsettable(name: str, doc: str, reason: str) -> Property:
    return refused(function(name, doc), reason)


_NOT_FOR_PYTHON = (
    _unsettable("log_cb", "Log callback.", "set `logger`"),
    _unsettable("consume_cb", "Consume callback.", "call `poll`, `consume` or `consume_batch`"),
    _unsettable("rebalance_cb", "Rebalance callback.", "pass `on_assign`, `on_revoke` and `on_lost` to `subscribe`"),
    _unsettable("offset_commit_cb", "Commit callback.", "set `on_commit`"),
    _unsettable("background_event_cb", "Event callback.", _C_ONLY),
    _unsettable("socket_cb", "Makes sockets.", _C_ONLY),
    _unsettable("connect_cb", "Connects sockets.", _C_ONLY),
    _unsettable("closesocket_cb", "Closes sockets.", _C_ONLY),
    _unsettable("open_cb", "Opens files.", _C_ONLY),
    _unsettable("resolve_cb", "Resolves names.", _C_ONLY),
    _unsettable("opaque", "Pointer for callbacks.", _C_ONLY),
    _unsettable("default_topic_conf", "Topic configuration object.", "set `default.topic.config`"),
    _unsettable("interceptors", "Interceptors.", _C_ONLY),
    refused(string("plugin.library.paths", None, "Plugins for librdkafka."), "librdkafka's plugins cannot be loaded"),
    *(refused(string(name, None, doc, librdkafka_default=ABSENT, java_default=SAME), reason) for name, doc, reason in (
        ("interceptor.classes", "Java interceptors.", "Java classes cannot be loaded"),
        ("config.providers", "Java configuration providers.", "Java classes cannot be loaded"),
        ("key.deserializer", "Deserializer of keys.", "use `DeserializingConsumer`"),
        ("value.deserializer", "Deserializer of values.", "use `DeserializingConsumer`"))),
)  # fmt: skip


def _ignored(name: str, kind: Kind = Kind.STRING, default: object = None, *aliases: str) -> Property:
    prop = Property(name, kind, default, "A producer's property.", aliases=tuple(Alias(alias) for alias in aliases),
                    scope=Scope.PRODUCER)
    return accepted(prop, "a producer property")


# librdkafka accepts these for a consumer too, with a warning. The producer checks their values.
_PRODUCER = (
    _ignored("transactional.id"),
    _ignored("transaction.timeout.ms", default=60_000),
    _ignored("enable.idempotence", default=False),
    _ignored("enable.gapless.guarantee", default=False),
    _ignored("queue.buffering.max.messages", default=100_000),
    _ignored("queue.buffering.max.kbytes", default=1_048_576),
    _ignored("queue.buffering.max.ms", Kind.STRING, 5, "linger.ms"),
    _ignored("message.send.max.retries", Kind.STRING, INT32_MAX, "retries"),
    _ignored("queue.buffering.backpressure.threshold", default=1),
    _ignored("compression.codec", Kind.STRING, "none", "compression.type"),
    _ignored("compression.level", default=-1),
    _ignored("batch.num.messages", default=10_000),
    _ignored("batch.size", default=1_000_000),
    _ignored("delivery.report.only.error", default=False),
    _ignored("dr_cb", Kind.CALLABLE),
    _ignored("dr_msg_cb", Kind.CALLABLE),
    _ignored("sticky.partitioning.linger.ms", default=10),
    _ignored("request.required.acks", Kind.STRING, -1, "acks"),
    _ignored("message.timeout.ms", Kind.STRING, 300_000, "delivery.timeout.ms"),
    _ignored("queuing.strategy", default="fifo"),
    _ignored("produce.offset.report", default=False),
    _ignored("partitioner", default="consistent_random"),
    _ignored("partitioner_cb", Kind.CALLABLE),
    _ignored("msg_order_cmp", Kind.CALLABLE),
)

# The Java consumer's defaults (Kafka 4.4) of properties that it shares with librdkafka.
_JAVA_DEFAULTS: Final[dict[str, object]] = {
    "allow.auto.create.topics": True,
    "client.id": "",
    "connections.max.idle.ms": 540_000,
    "isolation.level": "read_uncommitted",
    "max.partition.fetch.bytes": 1_048_576,
    "metadata.max.age.ms": 300_000,
    "partition.assignment.strategy": ("range", "cooperative-sticky"),
    "reconnect.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 50,
    "sasl.kerberos.service.name": None,
    "socket.connection.setup.timeout.ms": 10_000,
    "socket.receive.buffer.bytes": 65_536,
    "socket.send.buffer.bytes": 131_072,
    "socket.timeout.ms": 30_000,
} | dict.fromkeys(
    (
        "auto.commit.interval.ms", "auto.offset.reset", "bootstrap.servers", "check.crcs", "client.dns.lookup",
        "client.rack", "enable.auto.commit", "enable.metrics.push", "fetch.max.bytes", "fetch.min.bytes",
        "fetch.wait.max.ms", "group.id", "group.instance.id", "group.protocol", "group.remote.assignor",
        "heartbeat.interval.ms", "max.poll.interval.ms", "max.poll.records",
        "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy", "retry.backoff.max.ms",
        "retry.backoff.ms", "security.protocol", "session.timeout.ms", "share.acknowledgement.mode",
        "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
        "sasl.mechanism", "sasl.oauthbearer.assertion.algorithm", "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds", "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include", "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub", "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope",
        "sasl.oauthbearer.sub.claim.name", "sasl.oauthbearer.token.endpoint.url", "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm", "ssl.key.password", "ssl.keystore.location",
        "ssl.keystore.password",
    ),
    SAME,
)  # fmt: skip


def _section(*properties: Property) -> tuple[Property, ...]:
    return tuple(
        prop.changed(java_default=_JAVA_DEFAULTS[prop.name]) if prop.name in _JAVA_DEFAULTS else prop
        for prop in properties
    )


SECTIONS: Final[tuple[tuple[str, tuple[Property, ...]], ...]] = (
    ("Client", _section(*_CLIENT)),
    ("Metadata", _section(*_METADATA)),
    ("Network", _section(*_NETWORK)),
    ("Fetching", _section(*_FETCH)),
    ("Callbacks, statistics and logging", _section(*_OBSERVE)),
    ("Consumer groups", _section(*_GROUP)),
    ("Security", _section(*SECURITY)),
    ("Without effect", _section(*_NO_EFFECT)),
    ("Not for Python", _section(*_NOT_FOR_PYTHON)),
    ("Producers' properties", _section(*_PRODUCER)),
)

PROPERTIES: Final[tuple[Property, ...]] = tuple(prop for _, section in SECTIONS for prop in section)

# Maps any name to its property and, if it is not the canonical name, the alias.
BY_NAME: Final[Mapping[str, tuple[Property, Alias | None]]] = MappingProxyType(
    {prop.name: (prop, None) for prop in PROPERTIES}
    | {alias.name: (prop, alias) for prop in PROPERTIES for alias in prop.aliases}
)
