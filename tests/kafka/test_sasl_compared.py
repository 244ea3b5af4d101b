"""The same properties for kconsumer and confluent-kafka: the same success, the same class of error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from sasl_cluster import MECHANISMS, USER, client, sasl_cluster

import kconsumer
from kconsumer.config.sasl import read_unsecured
from kconsumer.security.oauth import unsecured_token
from kconsumer.testing import KafkaCluster

TOPIC = "compared"


@pytest.fixture(scope="module")
def secured() -> Iterator[KafkaCluster]:
    with sasl_cluster() as cluster:
        cluster.create_topic(TOPIC)
        cluster.produce(TOPIC, ["a", "b"])
        yield cluster


def outcome(module: Any, config: dict[str, Any]) -> tuple[list[bytes], set[int]]:
    """The values read, and the codes that error_cb got, connection noise aside."""
    told: set[int] = set()
    noise = {kconsumer.KafkaError._TRANSPORT, kconsumer.KafkaError._ALL_BROKERS_DOWN}
    try:
        consumer = module.Consumer({"group.id": "g", **config, "error_cb": lambda error: told.add(error.code())})
    except (kconsumer.KafkaException, confluent_kafka.KafkaException) as raised:
        return [], {raised.args[0].code()}
    try:
        consumer.assign([module.TopicPartition(TOPIC, 0, 0)])
        values: list[bytes] = []
        end = time.monotonic() + 20
        while time.monotonic() < end and len(values) < 2 and not told - noise:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value())
    finally:
        consumer.close()
    return values, told - noise


def oauth_cb(config: str) -> tuple[str, float]:
    return unsecured_token(read_unsecured(config))


CASES: dict[str, dict[str, Any]] = {
    **{mechanism: client(mechanism) for mechanism in MECHANISMS},
    "sasl.mechanisms": {**client("PLAIN"), "sasl.mechanisms": "PLAIN"},
    "oauth_cb": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
                 "sasl.oauthbearer.config": f"principal={USER}", "oauth_cb": oauth_cb},
    **{f"{mechanism} wrong": client(mechanism, password="wrong")
       for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")},
    "unknown user": client("SCRAM-SHA-256", user="nobody"),
}


@pytest.mark.parametrize("case", CASES)
def test_same_outcome(secured: KafkaCluster, case: str) -> None:
    config = {"bootstrap.servers": secured.bootstrap("SASL"), **CASES[case]}
    ours = outcome(kconsumer, config)
    theirs = outcome(confluent_kafka, config)
    assert ours == theirs
    wrong = "wrong" in case or "unknown" in case
    assert ours == (([], {kconsumer.KafkaError._AUTHENTICATION}) if wrong else ([b"a", b"b"], set()))
