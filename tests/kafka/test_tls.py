"""Brokers that demand TLS: reading, groups, client certificates, rotation under load, and every way it goes wrong."""

from __future__ import annotations

import datetime
import logging
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from certificates import Authority, Identity
from process_memory import reading
from reading import WAYS, Ledger, meanwhile, read_until, write
from tests.core.inside import openssl_version

import kconsumer
from kconsumer import KafkaError, TopicPartition
from kconsumer.config.tls import tls_options
from kconsumer.testing import KafkaCluster

DAY = datetime.timedelta(days=1)
PASSWORD = "hunter2-and-nobody-else"


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Certificates of brokers, one set a listener, and of a client."""
    folder = tmp_path_factory.mktemp("tls")
    ours, other = Authority("Test CA"), Authority("Other CA")
    made = SimpleNamespace(
        folder=folder, ours=ours, other=other, ca=str(ours.write(folder / "ca.pem")),
        other_ca=str(other.write(folder / "other.pem")), brokers={}, revoked=ours.issue("revoked broker"))
    identities = {
        "good": ours.issue("broker"), "expired": ours.issue("expired broker", end=-DAY / 2),
        "early": ours.issue("early broker", start=DAY),
        "elsewhere": ours.issue("elsewhere", hosts=("elsewhere.example",)), "revoked": made.revoked,
    }  # fmt: skip
    for name, identity in identities.items():
        made.brokers[name] = identity.write_both(folder / f"{name}.pem")
    certificate, key = ours.issue("client", hosts=(), client=True).write(folder, "client", PASSWORD)
    made.client = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key),
                   "ssl.key.password": PASSWORD}
    made.identity = (Path(certificate), Path(key))
    return made


def listener(authorities: SimpleNamespace, broker: str = "good", **more: object) -> dict[str, object]:
    return {
        "security.protocol": "SSL", "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authorities.brokers[broker], "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authorities.ca, **{key.replace("_", "."): value for key, value in more.items()},
    }  # fmt: skip


@pytest.fixture(scope="module")
def cluster(authorities: SimpleNamespace) -> Iterator[KafkaCluster]:
    listeners = {
        "SSL": listener(authorities) | {"host": "localhost"},
        "MUTUAL": listener(authorities, ssl_client_auth="required"),
        "TWELVE": listener(authorities, ssl_enabled_protocols="TLSv1.2", ssl_client_auth="required"),
        "EXPIRED": listener(authorities, "expired"), "EARLY": listener(authorities, "early"),
        "ELSEWHERE": listener(authorities, "elsewhere"), "REVOKED": listener(authorities, "revoked"),
    }  # fmt: skip
    with KafkaCluster(listeners=listeners) as one:
        yield one


def reader(cluster: KafkaCluster, name: str, authorities: SimpleNamespace, **more: Any) -> kconsumer.Consumer:
    return kconsumer.Consumer({
        "bootstrap.servers": cluster.bootstrap(name), "security.protocol": "ssl", "ssl.ca.location": authorities.ca,
        "auto.offset.reset": "earliest", **{key.replace("_", ".") if not key.endswith("_cb") else key: value
                                            for key, value in more.items()}})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["SSL", "MUTUAL", "TWELVE"])
def test_reading(cluster: KafkaCluster, authorities: SimpleNamespace, topic_name: Callable[[], str], name: str,
                 way: str) -> None:
    topic, partitions = topic_name(), range(2)
    cluster.create_topic(topic, partitions=2)
    write(cluster, topic, partitions, 20_000)
    ledger = Ledger(partitions)
    with reader(cluster, name, authorities, **authorities.client) as consumer:
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        read_until(WAYS[way], consumer, ledger, lambda: len(ledger) == 40_000)
    assert ledger.errors == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group(
    cluster: KafkaCluster, authorities: SimpleNamespace, topic_name: Callable[[], str], protocol: str
) -> None:
    topic = topic_name()
    cluster.create_topic(topic, partitions=2)
    write(cluster, topic, range(2), 1000)
    more = {"group_id": topic, "group_protocol": protocol, "enable_auto_commit": False, **authorities.client}
    with reader(cluster, "MUTUAL", authorities, **more) as consumer:
        consumer.subscribe([topic])
        ledger = Ledger(range(2))
        read_until(WAYS["consume"], consumer, ledger, lambda: len(ledger) == 2000)
        committed = consumer.commit(asynchronous=False)
    assert sorted((place.partition, place.offset) for place in committed) == [(0, 1000), (1, 1000)]
    with reader(cluster, "SSL", authorities, **more) as consumer:
        again = consumer.committed([TopicPartition(topic, 0)], timeout=20)
    assert again[0].offset == 1000


def test_certificates_change_while_it_reads(
    cluster: KafkaCluster, authorities: SimpleNamespace, topic_name: Callable[[], str], tmp_path: Path
) -> None:
    """The client's certificate is replaced while the broker is restarted again and again: nothing is lost."""
    topic, partitions, count = topic_name(), range(2), 30_000
    cluster.create_topic(topic, partitions=2)
    write(cluster, topic, partitions, count)
    files = {"certificate": tmp_path / "own.crt", "key": tmp_path / "own.key"}

    def issue(name: str) -> None:
        identity = authorities.ours.issue(name, hosts=(), client=True)
        for path, text in ((files["certificate"], identity.certificate_pem), (files["key"], identity.key_pem())):
            following = path.with_suffix(".following")
            following.write_text(text)
            os.replace(following, path)

    issue("first")
    ledger = Ledger(partitions)
    with reader(cluster, "MUTUAL", authorities, **{
            "ssl.certificate.location": str(files["certificate"]), "ssl.key.location": str(files["key"]),
            "fetch.buffer.memory": 2 << 20, "reconnect.backoff.max.ms": 500}) as consumer:
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        for turn in range(2):
            read_until(WAYS["consume"], consumer, ledger, lambda turn=turn: len(ledger) > 2 * count * (turn + 1) // 4)
            issue(f"number {turn}")
            with meanwhile(lambda: cluster.restart(1)) as restart:
                read_until(WAYS["consume"], consumer, ledger, lambda restart=restart: not restart.is_alive())
        write(cluster, topic, partitions, 10, first=count)
        read_until(WAYS["consume"], consumer, ledger, lambda: len(ledger) == 2 * (count + 10))
    assert [error for error in ledger.errors if error.code() == KafkaError._SSL] == []


def test_one_broker_with_an_untrusted_certificate(
    authorities: SimpleNamespace, topic_name: Callable[[], str], tmp_path: Path
) -> None:
    """That broker's partition stops and the application gets the reason; the others' go on. When the broker has a
    certificate of our authority again, every record comes, in order."""
    topic, errors, count = topic_name(), [], 5000
    certificate = tmp_path / "broker.pem"

    def becomes(authority: Authority) -> None:
        authority.issue("broker").write_both(certificate)

    becomes(authorities.ours)
    names = listener(authorities) | {"host": "localhost", "ssl.keystore.location": str(certificate)}
    with KafkaCluster(3, listeners={"SSL": names}) as three:
        three.create_topic(topic, partitions=3, replication=1)
        stands_still = next(partition for partition, broker in three.leaders(topic).items() if broker == 2)
        write(three, topic, range(3), count)
        ledger = Ledger(range(3))

        def tls_errors() -> list[kconsumer.KafkaError]:
            return [error for error in [*errors, *ledger.errors] if error.code() == KafkaError._SSL]

        with reader(three, "SSL", authorities, error_cb=errors.append, reconnect_backoff_max_ms=500) as consumer:
            consumer.assign([TopicPartition(topic, p, 0) for p in range(3)])
            read_until(WAYS["consume"], consumer, ledger, lambda: len(ledger) == 3 * count)
            becomes(authorities.other)
            three.restart(2)
            write(three, topic, range(3), count, first=count)
            read_until(WAYS["consume"], consumer, ledger, lambda: len(ledger) == 5 * count and tls_errors())
            assert ledger.next[stands_still] == count
            assert "certificate" in tls_errors()[0].str() and "localhost" in tls_errors()[0].str()
            becomes(authorities.ours)
            three.restart(2)
            read_until(WAYS["consume"], consumer, ledger, lambda: len(ledger) == 6 * count)


FORKED = """
import os, sys
from kconsumer import Consumer, TopicPartition
config = {"bootstrap.servers": sys.argv[1], "security.protocol": "ssl", "ssl.ca.location": sys.argv[2]}
consumer = Consumer(config)
consumer.assign([TopicPartition(sys.argv[3], 0, 0)])
assert [consumer.poll(20).offset() for _ in range(3)] == [0, 1, 2]
child = os.fork()
if child == 0:
    consumer.close()
    del consumer
    own = Consumer(config)
    own.assign([TopicPartition(sys.argv[3], 0, 9)])
    code = 0 if own.poll(20).offset() == 9 else 6
    own.close()
    os._exit(code)
_, status = os.waitpid(child, 0)
assert [consumer.poll(20).offset() for _ in range(97)] == list(range(3, 100))
# Over the connection that stood when the child was made: it has said no goodbye on it.
assert consumer.list_topics(timeout=20).topics
consumer.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_child_does_not_close_its_parents_connections_gracefully(
    cluster: KafkaCluster, authorities: SimpleNamespace, topic_name: Callable[[], str]
) -> None:
    topic = topic_name()
    cluster.create_topic(topic)
    write(cluster, topic, [0], 100)
    program = [sys.executable, "-W", "ignore", "-c", FORKED, cluster.bootstrap("SSL"), authorities.ca, topic]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "cut off" not in done.stderr and "closed by the broker" not in done.stderr


# -- what goes wrong ---------------------------------------------------------------------------------------------------


class Failing:
    """The errors of a consumer that cannot connect, and how often it tried."""

    def __init__(self, cluster: KafkaCluster, name: str, authorities: SimpleNamespace, **more: Any) -> None:
        self.errors: list[KafkaError] = []
        self.began = time.monotonic()
        with reader(cluster, name, authorities, error_cb=self.errors.append, **more) as consumer:
            try:
                consumer.list_topics(timeout=10)
            except kconsumer.KafkaException as error:
                self.raised = error
            else:
                raise AssertionError("it connects")
            self.seconds = time.monotonic() - self.began
            while not self.texts and time.monotonic() < self.began + 10:
                consumer.poll(0.05)

    @property
    def texts(self) -> list[str]:
        return [error.str() for error in self.errors if error.code() == KafkaError._SSL]


@pytest.mark.parametrize(
    "case",
    [
        ("SSL", {"ssl.ca.location": "other_ca"}, "signed by 'CN=Test CA', which is not among the trusted CA"),
        ("EXPIRED", {}, "'CN=expired broker' expired on "),
        ("EARLY", {}, "'CN=early broker' is valid only from "),
        ("ELSEWHERE", {}, "is for elsewhere.example and not for '127.0.0.1'"),
        ("REVOKED", {"ssl.crl.location": "crl"}, "'CN=revoked broker' has been revoked"),
        ("MUTUAL", {}, "the broker demands a client certificate"),
        ("TWELVE", {}, "the broker demands a client certificate"),
        ("MUTUAL", {"ssl.certificate.pem": "stranger", "ssl.key.pem": "stranger_key"},
         "the broker does not accept the client certificate 'CN=stranger'"),
        ("TWELVE", {"ssl.enabled.protocols": "TLSv1.3"}, "supports neither TLS 1.2 nor 1.3"),
        ("PLAINTEXT", {}, "connect to the TLS listener's port"),
    ],
)  # fmt: skip
def test_why_it_does_not_connect(
    cluster: KafkaCluster, authorities: SimpleNamespace, tmp_path: Path, case: tuple[str, dict[str, str], str]
) -> None:
    name, given, words = case
    stranger = authorities.other.issue("stranger", client=True)
    (tmp_path / "crl").write_text(authorities.ours.revoke(authorities.revoked))
    known = {"other_ca": authorities.other_ca, "stranger": stranger.certificate_pem, "stranger_key": stranger.key_pem(),
             "crl": str(tmp_path / "crl")}
    failing = Failing(cluster, name, authorities, **{key: known.get(value, value) for key, value in given.items()})
    assert any(words in text for text in failing.texts), failing.texts
    assert all(cluster.bootstrap(name).rsplit(":", 1)[1] in text for text in failing.texts)


def attempt(library: ModuleType, config: dict[str, Any]) -> tuple[bool, bool]:
    """(whether it connects, whether it reports an error of TLS)."""
    errors: list[Any] = []
    consumer = library.Consumer({**config, "error_cb": errors.append})
    try:
        deadline = time.monotonic() + 10
        while not errors and time.monotonic() < deadline:
            try:
                consumer.list_topics(timeout=0.2)  # confluent_kafka's waits for all of it, though the handshake failed
                return True, False
            except library.KafkaException:
                consumer.poll(0)
        return False, any(error.code() == KafkaError._SSL for error in errors)
    finally:
        consumer.close()


@pytest.mark.parametrize(
    "case",
    [
        ("SSL", {}, True),
        ("SSL", {"ssl.ca.location": "other_ca"}, False),
        ("SSL", {"ssl.ca.location": "other_ca", "enable.ssl.certificate.verification": False}, True),
        ("ELSEWHERE", {}, False),
        ("ELSEWHERE", {"ssl.endpoint.identification.algorithm": "none"}, True),
        ("EXPIRED", {}, False),
        ("REVOKED", {"ssl.crl.location": "crl"}, False),
        ("MUTUAL", {"ssl.certificate.pem": "certificate", "ssl.key.pem": "key"}, True),
        ("TWELVE", {"ssl.keystore.location": "keystore", "ssl.keystore.password": PASSWORD}, True),
        ("TWELVE", {"ssl.cipher.suites": "ECDHE-RSA-AES128-SHA256"}, False),
    ],
)  # fmt: skip
def test_confluent_kafka_agrees(
    cluster: KafkaCluster, authorities: SimpleNamespace, tmp_path: Path, case: tuple[str, dict[str, Any], bool]
) -> None:
    name, given, works = case
    identity = authorities.ours.issue("client", hosts=(), client=True)
    (tmp_path / "crl").write_text(authorities.ours.revoke(authorities.revoked))
    (tmp_path / "keystore").write_bytes(identity.keystore(PASSWORD))
    known = {"other_ca": authorities.other_ca, "crl": str(tmp_path / "crl"), "certificate": identity.certificate_pem,
             "key": identity.key_pem(), "keystore": str(tmp_path / "keystore")}
    config = {"bootstrap.servers": cluster.bootstrap(name), "group.id": "matrix", "security.protocol": "ssl",
              "ssl.ca.location": authorities.ca} | {key: known.get(value, value) for key, value in given.items()}
    ours, theirs = attempt(kconsumer, config), attempt(confluent_kafka, config)
    assert ours == theirs == (works, not works)


def test_a_plaintext_client_on_a_tls_port(cluster: KafkaCluster) -> None:
    errors: list[KafkaError] = []
    with kconsumer.Consumer({"bootstrap.servers": cluster.bootstrap("SSL"), "error_cb": errors.append}) as consumer:
        deadline = time.monotonic() + 10
        while not any("TLS" in error.str() for error in errors) and time.monotonic() < deadline:
            consumer.poll(0.05)
    assert any("TLS" in error.str() for error in errors), errors


def test_a_peer_that_is_silent(authorities: SimpleNamespace) -> None:
    errors: list[KafkaError] = []
    with socket.create_server(("127.0.0.1", 0)) as mute:
        with kconsumer.Consumer({
                "bootstrap.servers": f"127.0.0.1:{mute.getsockname()[1]}", "security.protocol": "ssl",
                "ssl.ca.location": authorities.ca, "socket.connection.setup.timeout.ms": 1000,
                "error_cb": errors.append}) as consumer:
            deadline = time.monotonic() + 10
            while not errors and time.monotonic() < deadline:
                consumer.poll(0.05)
    assert re.search(r"the TLS handshake did not end within 1\d{3} ms", errors[0].str())


def test_refusals_make_no_storm(cluster: KafkaCluster, authorities: SimpleNamespace) -> None:
    """One listener in front, which counts: a broker that is refused is not asked again at once."""
    connections = 0
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as front:
        front.settimeout(0.1)

        def count() -> None:
            nonlocal connections
            while not ended.is_set():
                try:
                    one, _ = front.accept()
                except TimeoutError:
                    continue
                connections += 1
                one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                one.close()

        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        with kconsumer.Consumer({"bootstrap.servers": f"127.0.0.1:{front.getsockname()[1]}", "security.protocol": "ssl",
                                 "ssl.ca.location": authorities.ca, "reconnect.backoff.ms": 1}) as consumer:
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                consumer.poll(0.1)
        ended.set()
        thread.join()
    assert 1 <= connections <= 6


# -- secrets -----------------------------------------------------------------------------------------------------------


def forms(identity: Identity, folder: Path) -> dict[str, dict[str, Any]]:
    """The ways to identify the client, each with secrets."""
    (folder / "own.p12").write_bytes(identity.keystore(PASSWORD))
    return {
        "pem": {"ssl.certificate.pem": identity.certificate_pem, "ssl.key.pem": identity.key_pem(PASSWORD),
                "ssl.key.password": PASSWORD},
        "open pem": {"ssl.certificate.pem": identity.certificate_pem, "ssl.key.pem": identity.key_pem()},
        "java": {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": identity.certificate_pem,
                 "ssl.keystore.key": identity.key_pem(PASSWORD), "ssl.key.password": PASSWORD},
        "keystore": {"ssl.keystore.location": str(folder / "own.p12"), "ssl.keystore.password": PASSWORD},
    }


@pytest.fixture
def topic(cluster: KafkaCluster, topic_name: Callable[[], str]) -> str:
    """With one record."""
    name = topic_name()
    cluster.create_topic(name)
    cluster.produce(name, ["a"])
    return name


@pytest.mark.parametrize("form", ["pem", "open pem", "java", "keystore"])
def test_no_secret_is_shown(
    cluster: KafkaCluster, authorities: SimpleNamespace, topic: str, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    statistics: list[str] = []
    errors: list[KafkaError] = []
    identity = authorities.ours.issue("client", hosts=(), client=True)
    given = {**forms(identity, authorities.folder)[form], "debug": "all", "statistics.interval.ms": 50}
    key_lines = [line for pem in (identity.key_pem(), *(value for value in given.values() if "KEY--" in str(value)))
                 for line in pem.splitlines() if not line.startswith("-")]
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        with reader(cluster, "MUTUAL", authorities, stats_cb=statistics.append, error_cb=errors.append,
                    **given) as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])
            message = consumer.poll(20)
            assert message is not None and message.error() is None
            consumer.poll(0.2)
            shown += [repr(consumer), str(consumer.metrics()), repr(message), repr(consumer.__dict__),
                      repr(vars(consumer._settings)), repr(tls_options(consumer._settings))]
            with pytest.raises(TypeError) as refused:
                pickle.dumps(consumer)
            shown.append(str(refused.value))
        wrong = {"pem": {"ssl.key.password": "hunter2-wrong"}, "open pem": {"ssl.key.pem": PASSWORD},
                 "java": {"ssl.keystore.key": PASSWORD}, "keystore": {"ssl.keystore.password": "hunter2-wrong"}}[form]
        with pytest.raises(kconsumer.ConfigurationError) as caught:
            reader(cluster, "MUTUAL", authorities, **(given | wrong))
        shown += [f"{caught.value!r} {caught.value}", repr(pickle.dumps(caught.value))]
    shown += [*statistics, *(repr(error) for error in errors), caplog.text]
    assert statistics and caplog.text
    for text in shown:
        for secret in (PASSWORD, "hunter2-wrong", *key_lines):
            assert secret not in text


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is searched through /proc")
@pytest.mark.parametrize("form", ["pem", "open pem", "keystore", "files"])
def test_secrets_are_wiped_from_memory(
    cluster: KafkaCluster, authorities: SimpleNamespace, tmp_path: Path, form: str
) -> None:
    """Password, key as text, and the key that OpenSSL works with (a number, its lowest word first).

    What OpenSSL's decoder has on its way there, DER with the highest byte first, it frees unwiped (3.0), so that
    is not looked for. Nor is, with 1.1.1, the password as PKCS#12 wants it: PKCS12_key_gen_uni frees it as it is.
    """
    word = "open, \u674e, open"
    identity = authorities.ours.issue("client", hosts=(), client=True)
    certificate, key = identity.write(tmp_path, "own", word)
    (tmp_path / "own.p12").write_bytes(identity.keystore(word))
    # What stands before a block in PEM is a remark; it keeps Python from holding the text as the core does.
    pem = "\u674e\n" + identity.key_pem(None if form == "open pem" else word)
    given = {
        "pem": {"ssl.certificate.pem": identity.certificate_pem, "ssl.key.pem": pem, "ssl.key.password": word},
        "open pem": {"ssl.certificate.pem": identity.certificate_pem, "ssl.key.pem": pem},
        "keystore": {"ssl.keystore.location": str(tmp_path / "own.p12"), "ssl.keystore.password": word},
        "files": {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key), "ssl.key.password": word},
    }[form]
    number = identity.key.private_numbers().private_value
    needles = {"key": number.to_bytes(32, "little")}
    if "ssl.key.pem" in given:
        needles["text of the key"] = pem.splitlines()[2].encode()
    if form != "open pem":
        needles["password"] = word.encode()
    held = sorted(needles)
    if openssl_version() >= (3, 0):
        needles["password as in PKCS#12"] = word.encode("utf-16-be")  # Python's own is the other way round
    with reading({"bootstrap.servers": cluster.bootstrap("MUTUAL"), "security.protocol": "ssl",
                  "ssl.ca.location": authorities.ca, **given}) as process:
        assert set(held) <= set(process.found(needles)), "the search finds nothing"
        process.close()
        assert process.found(needles) == []
