"""The TLS examples of docs/security.md, each run as it stands against a broker that demands what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from certificates import Authority
from security_examples import examples, number_of_blocks, run

import kconsumer
from kconsumer import KafkaException, TopicPartition
from kconsumer.testing import KafkaCluster

PASSWORD = "opens-the-key"
BLOCKS = [pytest.param(title, code, id=f"{title or 'first'} {number}")
          for title, codes in examples("TLS").items() for number, code in enumerate(codes)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The examples' files of /etc/kafka, and the broker's."""
    folder, broker = tmp_path_factory.mktemp("etc-kafka"), tmp_path_factory.mktemp("broker")
    authority = Authority()
    client = authority.issue("client", hosts=(), client=True)
    client.write(folder, "client", PASSWORD)
    (folder / "client.p12").write_bytes(client.keystore(PASSWORD))
    revoked = authority.issue("revoked broker")
    (folder / "revoked.pem").write_text(authority.revoke(revoked))
    return SimpleNamespace(
        folder=folder, ca=authority.write(folder / "ca.pem"),
        good=authority.issue("broker").write_both(broker / "good.pem"),
        revoked=revoked.write_both(broker / "revoked.pem"),
        environment={"SSL_CERT_FILE": str(folder / "ca.pem"), "KAFKA_CA": authority.pem,
                     "KAFKA_CERTIFICATE": client.certificate_pem, "KAFKA_KEY": client.key_pem(),
                     "KAFKA_KEYSTORE_PASSWORD": PASSWORD})


@pytest.fixture(scope="module")
def cluster(files: SimpleNamespace) -> Iterator[KafkaCluster]:
    def listener(broker: Path, auth: str) -> dict[str, object]:
        return {"security.protocol": "SSL", "host": "localhost", "ssl.keystore.type": "PEM",
                "ssl.keystore.location": broker, "ssl.truststore.type": "PEM", "ssl.truststore.location": files.ca,
                "ssl.client.auth": auth}

    listeners = {"SSL": listener(files.good, "none"), "MUTUAL": listener(files.good, "required"),
                 "REVOKED": listener(files.revoked, "none")}
    with KafkaCluster(listeners=listeners) as one:
        one.create_topic("t")
        one.produce("t", ["a"])
        yield one


@pytest.fixture
def make(cluster: KafkaCluster, files: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    """``make(code, listener)``: the consumer that an example makes."""
    for name, value in files.environment.items():
        monkeypatch.setenv(name, value)

    def run_it(code: str, listener: str) -> Any:
        replaced = {"broker.example:9093": cluster.bootstrap(listener)}
        if "/etc/kafka" in code:
            replaced["/etc/kafka"] = str(files.folder)
        if '"..."' in code:
            replaced['"..."'] = repr(PASSWORD)
        return run(code, {"Consumer": kconsumer.Consumer}, replaced)["consumer"]

    return run_it


@pytest.mark.parametrize(("title", "code"), BLOCKS)
def test_an_example_works(make: Callable[[str, str], Any], title: str, code: str) -> None:
    """The listener asks for a certificate where the example has one."""
    with make(code, "MUTUAL" if title == "Client certificates" else "SSL") as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        message = consumer.poll(30)
        assert message is not None and message.error() is None and message.value() == b"a"


def test_the_example_with_revoked_certificates_refuses_one(make: Callable[[str, str], Any]) -> None:
    (code,) = (code for codes in examples("TLS").values() for code in codes if "ssl.crl.location" in code)
    with make(code, "REVOKED") as consumer:
        with pytest.raises(KafkaException, match="'CN=revoked broker' has been revoked"):
            consumer.list_topics(timeout=30)


def test_every_block_of_the_page_is_run() -> None:
    """Here, in test_sasl_examples.py, in test_sasl_gssapi.py and in tests/spark/test_secure.py: of these parts."""
    run_somewhere = [code for part in ("TLS", "SASL", "Spark") for codes in examples(part).values() for code in codes]
    assert len(run_somewhere) == number_of_blocks()
    assert len(BLOCKS) >= 7
