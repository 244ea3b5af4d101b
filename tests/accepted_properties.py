"""Why it is harmless that a property is accepted without effect: one proof for each.

Owns: HARMLESS. Threads: none. Never: states how a property is treated (src/kconsumer/config/properties.py).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Says(NamedTuple):
    """The other client's own text, in its package: the property does not concern a consumer of this kind."""

    text: str

    def holds(self, documentation: str) -> bool:
        return self.text in documentation


class Shown(NamedTuple):
    """A test that shows what happens instead."""

    test: str

    def holds(self, documentation: str) -> bool:
        return self.test in _tests()


@lru_cache
def _tests() -> frozenset[str]:
    texts = (path.read_text(encoding="utf-8") for path in HERE.rglob("test_*.py"))
    return frozenset(name for text in texts for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE))


NO_LONGER_USED = Says("No longer used.")
FOR_SHARES = Says("share consumer")
JAVA_METRICS = Says("metrics")

HARMLESS: dict[str, Says | Shown] = {
    "coordinator.query.interval.ms": Shown("test_the_coordinator_moves"),
    "group.protocol.type": Says("the only supported group protocol type is `consumer`"),
    "sasl.kerberos.kinit.cmd": Shown("test_a_keytab"),
    "sasl.kerberos.min.time.before.relogin": Shown("test_sessions_are_renewed"),
    "sasl.oauthbearer.sub.claim.name": Shown("test_a_token_needs_no_claims"),
    "message.max.bytes": Shown("test_a_batch_larger_than_the_buffer_is_read"),
    "message.copy.max.bytes": Says("Maximum size for message to be copied"),
    "max.in.flight.requests.per.connection": Says("primarily relevant to produce requests"),
    "topic.metadata.refresh.fast.interval.ms": Shown("test_missing_topics_are_requested_with_growing_backoff"),
    "topic.metadata.refresh.fast.cnt": NO_LONGER_USED,
    "topic.metadata.refresh.sparse": Shown("test_topics_are_of_interest_while_they_are_subscribed"),
    "topic.metadata.propagation.max.ms": Shown("test_an_unknown_topic_is_reported_once_and_read_when_it_is_there"),
    "socket.blocking.max.ms": NO_LONGER_USED,
    "reconnect.backoff.jitter.ms": NO_LONGER_USED,
    "api.version.fallback.ms": Says("brokers < 0.10.0"),
    "broker.version.fallback": Says("brokers < 0.10.0"),
    "queued.min.messages": Shown("test_a_full_buffer_holds_the_fetch_back_until_there_is_room"),
    "fetch.queue.backoff.ms": Shown("test_a_full_buffer_holds_the_fetch_back_until_there_is_room"),
    "fetch.error.backoff.ms": Shown("test_the_backoff_of_an_error_grows"),
    "consume.callback.max.messages": Says("rd_kafka_consume_callback"),
    "max.poll.records": Says("only supported for share consumers"),
    "enable.metrics.push": Says("if the cluster has a client metrics subscription"),
    "log.queue": Says("rd_kafka_set_log_queue()"),
    "log.thread.name": Says("useful for debugging librdkafka internals"),
    "enable.random.seed": Says("srand("),
    "enabled_events": Says("rd_kafka_conf_set_events()"),
    "internal.termination.signal": Shown("test_signals_never_reach_the_network_thread"),
    "share.acknowledgement.mode": FOR_SHARES,
    "share.acquire.mode": FOR_SHARES,
    "auto.commit.enable": Says("used by the simple legacy consumer only"),
    "offset.store.path": Says("File-based offset storage will be removed"),
    "offset.store.sync.interval.ms": Says("File-based offset storage will be removed"),
    "bootstrap.resolve.timeout.ms": Shown("test_names_that_do_not_resolve_end_a_call_at_its_timeout"),
    "socket.connection.setup.timeout.max.ms": Shown("test_an_attempt_ends_at_the_setup_timeout"),
    "metric.reporters": JAVA_METRICS,
    "metrics.num.samples": JAVA_METRICS,
    "metrics.recording.level": JAVA_METRICS,
    "metrics.sample.window.ms": JAVA_METRICS,
}


def unproved(documentation: dict[str, str]) -> list[str]:
    """Return the names in `documentation` (name to text) whose proof does not hold."""
    return [name for name, text in documentation.items() if name in HARMLESS and not HARMLESS[name].holds(text)]
