"""Credentials that a broker refuses: the other brokers are asked, and new credentials are tried at once."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from sasl_broker import SaslBroker

from kconsumer import AuthenticationError, Consumer, KafkaError

PATIENCE_S = 20
LONG_MS = 600_000


def configuration(*brokers: SaslBroker, password: str = "right", **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": ",".join(broker.address for broker in brokers), "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN", "sasl.username": "user", "sasl.password": password, **more}


def broker(password: str = "right") -> closing[SaslBroker]:
    return closing(SaslBroker(lambda token: b"\0" + password.encode() in token))


def test_a_broker_that_refuses_speaks_only_for_itself() -> None:
    with broker("another") as bad, broker() as good:
        for _ in range(6):  # the first broker to be asked is chosen at random
            with Consumer(configuration(bad, good)) as consumer:
                assert [each.port for each in consumer.list_topics(timeout=PATIENCE_S).brokers.values()] == [good.port]


def test_brokers_that_all_refuse_end_a_call_before_its_timeout() -> None:
    with broker("another") as bad, broker("a third") as worse, Consumer(configuration(bad, worse)) as consumer, \
            pytest.raises(AuthenticationError):
        consumer.list_topics(timeout=LONG_MS / 1000)


def test_new_credentials_are_tried_at_once() -> None:
    """Without a wait for reconnect.backoff.ms, which began when the broker refused the old ones."""
    errors: list[KafkaError] = []
    with broker() as only, Consumer(configuration(only, password="wrong", **{
            "reconnect.backoff.ms": LONG_MS, "reconnect.backoff.max.ms": LONG_MS,
            "error_cb": errors.append})) as consumer:
        until = time.monotonic() + PATIENCE_S
        before, turns = -1, 0
        while not errors or turns != before:  # until the network thread has nothing to do
            before = turns
            consumer.poll(0.3)
            turns = consumer.metrics()["network_turns_total"]
            assert time.monotonic() < until
        assert errors[0].code() == KafkaError._AUTHENTICATION
        consumer.set_sasl_credentials("user", "right")
        assert b"right" in only.accepted.get(timeout=5)
