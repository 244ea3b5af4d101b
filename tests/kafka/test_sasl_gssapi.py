"""GSSAPI against a KDC of MIT Kerberos: keytab, credential cache, and what goes wrong.

confluent-kafka's wheel has no GSSAPI, so there is nothing to compare with. The consumers run in separate processes:
the Kerberos library reads its environment once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import broker_in
from kerberos import REALM, WITHOUT_KDC, Kdc, missing_programs
from security_examples import examples, placed

from kconsumer.testing import KafkaCluster

pytestmark = pytest.mark.skipif(bool(missing_programs()), reason=WITHOUT_KDC)

_CHILD = """
import json, sys, time
import kconsumer
config, topic = json.loads(sys.argv[1])
begun = time.monotonic()
try:
    with kconsumer.Consumer(config) as consumer:
        consumer.list_topics(timeout=30)
        consumer.assign([kconsumer.TopicPartition(topic, 0, 0)])
        values = [(m.value() or b"").decode() for m in consumer.consume(2, 30)]
        if "session" in sys.argv:
            consumer.consume(1, 6)
            values.append(str(int(consumer.list_topics(timeout=30).brokers is not None)))
    print(json.dumps({"values": values}))
except kconsumer.KafkaException as raised:
    print(json.dumps({"kind": type(raised).__name__, "text": raised.args[0].str(),
                      "seconds": time.monotonic() - begun}))
"""


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    with Kdc() as one:
        yield one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA (ca.pem) and the certificate of a broker (broker.pem)."""
    return broker_in(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def cluster(kdc: Kdc, folder: Path) -> Iterator[KafkaCluster]:
    listener = kdc.listener()
    listeners: dict[str, dict[str, object]] = {
        "KRB": listener, "SHORT": {**listener, "connections.max.reauth.ms": 2500},
        "ENCRYPTED": {**listener, "security.protocol": "SASL_SSL", "ssl.keystore.type": "PEM",
                      "ssl.keystore.location": folder / "broker.pem"}}
    with KafkaCluster(listeners=listeners, java_options=kdc.java_options) as one:
        one.create_topic("records")
        one.produce("records", ["a", "b"])
        yield one


@pytest.fixture(scope="module")
def keytab(kdc: Kdc) -> Path:
    return kdc.add("alice", "alice.keytab")


def run(kdc: Kdc, cluster: KafkaCluster, *words: str, listener: str = "KRB", **properties: Any) -> dict[str, Any]:
    """The result of a consumer with these properties; names with underscores."""
    config = {"bootstrap.servers": cluster.bootstrap(listener), "security.protocol": "sasl_plaintext",
              "sasl.mechanism": "GSSAPI", **{name.replace("_", "."): value for name, value in properties.items()}}
    done = subprocess.run([sys.executable, "-c", _CHILD, json.dumps([config, "records"]), *words], check=False,
                          env=os.environ | kdc.environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_keytab(kdc: Kdc, cluster: KafkaCluster, keytab: Path) -> None:
    found = run(kdc, cluster, sasl_kerberos_keytab=str(keytab), sasl_kerberos_principal=f"alice@{REALM}")
    assert found == {"values": ["a", "b"]}
    # The principal may be left to the keytab.
    assert run(kdc, cluster, sasl_kerberos_keytab=str(keytab)) == {"values": ["a", "b"]}


def test_the_credential_cache(kdc: Kdc, cluster: KafkaCluster, keytab: Path) -> None:
    kdc.login("alice", keytab)
    assert run(kdc, cluster) == {"values": ["a", "b"]}


_EXAMPLE = """
import sys, kconsumer
exec(compile(sys.argv[1], "security.md", "exec"))
with consumer:
    consumer.assign([kconsumer.TopicPartition("records", 0, 0)])
    print([message.value() for message in consumer.consume(2, 30)])
"""


def test_the_example_of_the_documentation(kdc: Kdc, cluster: KafkaCluster, keytab: Path, folder: Path) -> None:
    """As it stands, but for the names of hosts, files and people."""
    (code,) = examples("SASL")["Kerberos (GSSAPI)"]
    code = placed(code, {"broker.example.org:9094": cluster.bootstrap("ENCRYPTED"),
                         "/etc/kafka/reader.keytab": str(keytab), "reader@EXAMPLE.ORG": f"alice@{REALM}"})
    known = {**kdc.environment, "SSL_CERT_FILE": str(folder / "ca.pem")}
    done = subprocess.run([sys.executable, "-c", _EXAMPLE, code], env=os.environ | known, capture_output=True,
                          text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[b'a', b'b']"


def test_sessions_are_renewed(kdc: Kdc, cluster: KafkaCluster, keytab: Path) -> None:
    found = run(kdc, cluster, "session", listener="SHORT", sasl_kerberos_keytab=str(keytab))
    assert found == {"values": ["a", "b", "1"]}


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"sasl_kerberos_keytab": "/nonexistent/keytab"}, "keytab /nonexistent/keytab"),
        ({"sasl_kerberos_keytab": "KEYTAB", "sasl_kerberos_principal": "bob"}, "cannot get a Kerberos ticket"),
        ({"sasl_kerberos_keytab": "KEYTAB", "sasl_kerberos_service_name": "kafkaesque"}, "kafkaesque@localhost"),
    ],
)
def test_kerberos_errors_name_the_cause(
    kdc: Kdc, cluster: KafkaCluster, keytab: Path, properties: dict[str, str], said: str
) -> None:
    given = {name: str(keytab) if value == "KEYTAB" else value for name, value in properties.items()}
    found = run(kdc, cluster, **given)
    assert found["kind"] == "AuthenticationError"
    assert said in found["text"]
    assert found["seconds"] < 20


def test_without_a_ticket(kdc: Kdc, cluster: KafkaCluster) -> None:
    empty = {**kdc.environment, "KRB5CCNAME": f"FILE:{kdc.directory}/no-such-cache"}
    kept, kdc.environment = kdc.environment, empty
    try:
        found = run(kdc, cluster)
    finally:
        kdc.environment = kept
    assert found["kind"] == "AuthenticationError"
    assert "cannot create a Kerberos context with kafka@localhost" in found["text"]
