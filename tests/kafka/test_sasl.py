"""SASL against Kafka's own brokers: every mechanism, sessions that end, and what goes wrong."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from certificates import broker_in
from oidc_provider import CLIENT_ID, CLIENT_SECRET, ISSUER, OidcProvider
from process_memory import reading
from sasl_cluster import (
    MECHANISMS,
    PASSWORD,
    STRANGER,
    STRANGER_PASSWORD,
    USER,
    client,
    sasl_cluster,
    sasl_listener,
)

import kconsumer
from kconsumer import KafkaError, TopicPartition
from kconsumer.config.sasl import JWT_BEARER, read_unsecured
from kconsumer.security.oauth import unsecured_token
from kconsumer.testing import KafkaCluster

# What "at once" may take on a loaded machine; calls are given half a minute.
SOON_S = 20


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider() as one:
        yield one


@pytest.fixture(scope="module")
def tls_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA (ca.pem) and the certificate of a broker (broker.pem)."""
    return broker_in(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secured(provider: OidcProvider, tls_folder: Path) -> Iterator[KafkaCluster]:
    listeners = {
        "ENCRYPTED": {
            **sasl_listener(), "security.protocol": "SASL_SSL", "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tls_folder / "broker.pem"),
        },
        "OIDC": {**sasl_listener(), **provider.listener},
        "PLAINONLY": {**sasl_listener(), "sasl.enabled.mechanisms": "PLAIN"},
    }
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER}",
    }
    with sasl_cluster(listeners=listeners, config=authorizer, java_options=provider.java_options) as cluster:
        yield cluster


@pytest.fixture
def topic(secured: KafkaCluster, topic_name: Callable[[], str]) -> str:
    """A topic with two records."""
    name = topic_name()
    secured.create_topic(name)
    secured.produce(name, ["a", "b"])
    return name


def at(cluster: KafkaCluster, *properties: dict[str, Any], listener: str = "SASL", **more: Any) -> dict[str, Any]:
    """A configuration."""
    made: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap(listener)}
    for part in (*properties, more):
        made |= part
    return made


def read_two(consumer: kconsumer.Consumer, topic: str) -> list[bytes | None]:
    consumer.assign([TopicPartition(topic, 0, 0)])
    return [message.value() for message in consumer.consume(2, 30)]


# Every mechanism


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_records_through_each_mechanism(secured: KafkaCluster, topic: str, mechanism: str) -> None:
    with kconsumer.Consumer(at(secured, client(mechanism))) as consumer:
        assert read_two(consumer, topic) == [b"a", b"b"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_groups_and_commits_through_each_mechanism(secured: KafkaCluster, topic: str, mechanism: str) -> None:
    group = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    with kconsumer.Consumer(at(secured, client(mechanism), group)) as consumer:
        consumer.subscribe([topic])
        assert [m.value() for m in consumer.consume(2, 30)] == [b"a", b"b"]
        consumer.commit(asynchronous=False)
        assert [p.offset for p in consumer.committed([TopicPartition(topic, 0)], 20)] == [2]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_inside_tls(secured: KafkaCluster, tls_folder: Path, topic: str, mechanism: str) -> None:
    tls = {"security.protocol": "sasl_ssl", "ssl.ca.location": str(tls_folder / "ca.pem"), "group.id": topic,
           "auto.offset.reset": "earliest"}
    with kconsumer.Consumer(at(secured, client(mechanism), tls, listener="ENCRYPTED")) as consumer:
        consumer.subscribe([topic])
        assert [m.value() for m in consumer.consume(2, 30)] == [b"a", b"b"]
        consumer.commit(asynchronous=False)


def test_a_wrong_password_inside_tls(secured: KafkaCluster, tls_folder: Path) -> None:
    tls = {"security.protocol": "sasl_ssl", "ssl.ca.location": str(tls_folder / "ca.pem")}
    with kconsumer.Consumer(at(secured, client("PLAIN", password="wrong"), tls, listener="ENCRYPTED")) as consumer:
        raised_soon(lambda: consumer.list_topics(timeout=30), kconsumer.AuthenticationError)


def test_javas_name_for_user_and_password(secured: KafkaCluster, topic: str) -> None:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    word = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    jaas = f'{login} required username="{USER}" password="{word}";'
    config = at(secured, {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512",
                          "sasl.jaas.config": jaas})
    with kconsumer.Consumer(config) as consumer:
        assert read_two(consumer, topic) == [b"a", b"b"]


# What goes wrong


def raised_soon(call: Callable[[], object], kind: type[BaseException]) -> kconsumer.KafkaException:
    """What `call` raises, which must be `kind`, long before its time is up."""
    begun = time.monotonic()
    with pytest.raises(kind) as caught:
        call()
    assert time.monotonic() - begun < SOON_S
    assert isinstance(caught.value, kconsumer.KafkaException)
    return caught.value


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_calls_raise_a_wrong_password_at_once(secured: KafkaCluster, topic: str, mechanism: str) -> None:
    partition = TopicPartition(topic, 0, 0)
    with kconsumer.Consumer(at(secured, client(mechanism, password="wrong"), {"group.id": topic})) as consumer:
        calls: list[Callable[[], object]] = [
            lambda: consumer.list_topics(timeout=30),
            lambda: consumer.get_watermark_offsets(partition, 30),
            lambda: consumer.offsets_for_times([partition], 30),
            lambda: consumer.committed([partition], 30),
            lambda: consumer.commit(offsets=[partition], asynchronous=False),
        ]
        for call in calls:
            error = raised_soon(call, kconsumer.AuthenticationError).args[0]
            assert error.code() == KafkaError._AUTHENTICATION
            assert secured.bootstrap("SASL") in error.str()
            assert mechanism in error.str()
            assert "check sasl.username and sasl.password" in error.str()
            assert "wrong" not in error.str()


def test_without_an_error_cb_poll_returns_the_failure_once(secured: KafkaCluster, topic: str) -> None:
    with kconsumer.Consumer(at(secured, client("PLAIN", password="wrong"))) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        assert message is not None
        error = message.error()
        assert error is not None and error.code() == KafkaError._AUTHENTICATION
        assert consumer.poll(4) is None


def test_consume_batch_and_iteration_raise_it(secured: KafkaCluster, topic: str) -> None:
    for take in (lambda c: c.consume_batch(10, 30), next):
        with kconsumer.Consumer(at(secured, client("PLAIN", password="wrong"))) as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])
            raised_soon(lambda take=take, consumer=consumer: take(consumer), kconsumer.AuthenticationError)


def test_error_cb_is_called_without_a_storm_of_calls(secured: KafkaCluster, topic: str) -> None:
    errors: list[KafkaError] = []
    stats: list[dict[str, Any]] = []
    config = at(secured, client("SCRAM-SHA-256", password="wrong"), {
        "error_cb": errors.append, "statistics.interval.ms": 500,
        "stats_cb": lambda text: stats.append(json.loads(text)), "reconnect.backoff.ms": 10})
    with kconsumer.Consumer(config) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(6) is None
    assert [e.code() for e in errors].count(KafkaError._AUTHENTICATION) == 1
    attempts = sum(broker["connects"] for broker in stats[-1]["brokers"].values())
    assert 2 <= attempts <= 7


def test_a_mechanism_that_the_broker_does_not_offer(secured: KafkaCluster) -> None:
    with kconsumer.Consumer(at(secured, client("SCRAM-SHA-256"), listener="PLAINONLY")) as consumer:
        error = raised_soon(lambda: consumer.list_topics(timeout=30), kconsumer.AuthenticationError).args[0]
    assert "the broker offers PLAIN" in error.str()


def test_sasl_on_a_listener_without_it_and_the_reverse(secured: KafkaCluster, topic: str) -> None:
    with kconsumer.Consumer(at(secured, client("PLAIN"), listener="PLAINTEXT")) as consumer:
        error = raised_soon(lambda: consumer.list_topics(timeout=30), kconsumer.AuthenticationError).args[0]
        assert "set security.protocol to plaintext or ssl" in error.str()
    errors: list[KafkaError] = []
    with kconsumer.Consumer(at(secured, error_cb=errors.append)) as consumer:
        with pytest.raises(kconsumer.KafkaException):
            consumer.list_topics(timeout=3)
    assert any("if this port requires SASL" in error.str() for error in errors)


def test_new_credentials_repair_a_running_consumer(secured: KafkaCluster, topic: str) -> None:
    with kconsumer.Consumer(at(secured, client("SCRAM-SHA-512", password="wrong"))) as consumer:
        raised_soon(lambda: consumer.list_topics(timeout=30), kconsumer.AuthenticationError)
        consumer.set_sasl_credentials(USER, PASSWORD)
        assert topic in consumer.list_topics(timeout=30).topics
        while consumer.poll(0) is not None:
            pass  # what failed before
        assert read_two(consumer, topic) == [b"a", b"b"]


# Rights


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_a_user_without_permission_gets_authorization_errors(secured: KafkaCluster, topic: str, mechanism: str) -> None:
    stranger = client(mechanism, STRANGER, STRANGER_PASSWORD)
    with kconsumer.Consumer(at(secured, stranger, {"group.id": topic})) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        assert message is not None and message.error() is not None
        assert message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert topic in message.error().str()
        assert topic not in consumer.list_topics(timeout=30).topics
        found = consumer.list_topics(topic, 30).topics[topic].error
        assert found is not None and found.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        partition = TopicPartition(topic, 0, 0)
        raised_soon(lambda: consumer.committed([partition], 30), kconsumer.AuthorizationError)
        raised_soon(lambda: consumer.commit(offsets=[partition], asynchronous=False), kconsumer.AuthorizationError)
        raised_soon(lambda: consumer.get_watermark_offsets(partition, 30), kconsumer.AuthorizationError)


def test_a_group_that_a_stranger_may_not_join(secured: KafkaCluster, topic: str) -> None:
    config = at(secured, client("PLAIN", STRANGER, STRANGER_PASSWORD), {"group.id": f"closed-{topic}"})
    with kconsumer.Consumer(config) as consumer:
        consumer.subscribe([topic])
        codes = []
        end = time.monotonic() + 30
        while KafkaError.GROUP_AUTHORIZATION_FAILED not in codes and time.monotonic() < end:
            message = consumer.poll(1)
            if message is not None and message.error() is not None:
                codes.append(message.error().code())
        assert KafkaError.GROUP_AUTHORIZATION_FAILED in codes


# Sessions that end (KIP-368)


@pytest.mark.parametrize("mechanism", [
    pytest.param("PLAIN", marks=pytest.mark.slow), pytest.param("SCRAM-SHA-256", marks=pytest.mark.slow),
    "SCRAM-SHA-512", "OAUTHBEARER"])
def test_sessions_are_renewed_under_load_and_nothing_is_lost(
    secured: KafkaCluster, topic_name: Callable[[], str], mechanism: str
) -> None:
    name = topic_name()
    secured.create_topic(name)
    lines: list[str] = []
    logger = logging.Logger("sessions")
    logger.addHandler(type("Keep", (logging.Handler,), {"emit": lambda self, r: lines.append(r.getMessage())})())
    stop = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        producer = confluent_kafka.Producer({"bootstrap.servers": secured.bootstrap_servers, "linger.ms": 5,
                                             "enable.idempotence": True})
        while not stop.is_set():
            for _ in range(50):
                producer.produce(name, str(written).encode())
                written += 1
            producer.flush()
        producer.flush()

    stats: list[dict[str, Any]] = []

    def of_all_brokers(what: str) -> int:
        return sum(broker[what] for broker in stats[-1]["brokers"].values()) if stats else 0

    def renewals() -> int:
        return sum("authenticated" in line for line in lines) - of_all_brokers("connects") if stats else 0

    config = at(secured, client(mechanism), {
        "debug": "security", "log_level": 7, "logger": logger, "group.id": name, "auto.offset.reset": "earliest",
        "statistics.interval.ms": 1000, "stats_cb": lambda text: stats.append(json.loads(text)),
        "auto.commit.interval.ms": 200}, listener="SHORT")
    with kconsumer.Consumer(config) as consumer:
        consumer.subscribe([name])
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        read: list[int] = []
        end = time.monotonic() + 40
        while renewals() < 6 and time.monotonic() < end:  # ten seconds of the two connections that are never idle
            read += [int(m.value() or b"") for m in consumer.consume(1000, 0.2) if m.error() is None]
        stop.set()
        writer.join()
        end = time.monotonic() + 30
        while len(read) < written and time.monotonic() < end:
            read += [int(m.value() or b"") for m in consumer.consume(1000, 1) if m.error() is None]
    assert read == list(range(written))
    assert renewals() >= 6
    # A broker that stands still when a session ends closes the connection. Without renewals it closes each one.
    assert of_all_brokers("disconnects") <= 2


# Tokens


def tokens_of(life_s: int, calls: list[str], subject: str = USER) -> Callable[[str], tuple[Any, ...]]:
    def oauth_cb(config: str) -> tuple[Any, ...]:
        calls.append(config)
        token, expires_at = unsecured_token(read_unsecured(f"principal={subject} lifeSeconds={life_s}"))
        return token, expires_at, subject, {"traceId": "one"}

    return oauth_cb


def test_oauth_cb_is_asked_before_the_first_connection_and_before_the_token_ends(
    secured: KafkaCluster, topic: str
) -> None:
    calls: list[str] = []
    oauth = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
             "sasl.oauthbearer.config": "what=ever", "oauth_cb": tokens_of(5, calls)}
    with kconsumer.Consumer(at(secured, oauth)) as consumer:
        assert calls == ["what=ever"]
        assert read_two(consumer, topic) == [b"a", b"b"]
        # Through three tokens, on the same connections: sessions end with the token.
        end = time.monotonic() + 40
        while len(calls) < 3:
            assert consumer.poll(1) is None
            assert time.monotonic() < end
        secured.produce(topic, ["c"])
        message = consumer.poll(20)
        assert message is not None and message.value() == b"c"


def test_a_token_whose_exp_claim_has_passed(
    secured: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_minute_ago = time.time() - 60
    with monkeypatch.context() as then:
        then.setattr("kconsumer.security.oauth.time.time", lambda: a_minute_ago)
        expired, _ = unsecured_token(read_unsecured(f"principal={USER} lifeSeconds=1"))
    oauth = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    with kconsumer.Consumer(at(secured, oauth)) as consumer:
        consumer.set_oauth_token(expired, int(time.time() * 1000) + 60000)
        error = raised_soon(lambda: consumer.list_topics(timeout=30), kconsumer.AuthenticationError).args[0]
        assert "token" in error.str()
        assert expired not in error.str()
        token, expires_at = unsecured_token(read_unsecured(f"principal={USER}"))
        consumer.set_oauth_token(token, int(expires_at * 1000))
        assert consumer.list_topics(timeout=30).brokers
        with pytest.raises(kconsumer.KafkaException, match="expired"):
            consumer.set_oauth_token(token, 1)


def test_an_oauth_cb_that_fails(secured: KafkaCluster) -> None:
    def fails(config: str) -> tuple[str, float]:
        raise OSError("the provider is away")

    oauth = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(kconsumer.AuthenticationError, match="OSError: the provider is away"):
        kconsumer.Consumer(at(secured, oauth, oauth_cb=fails))
    with pytest.raises(kconsumer.AuthenticationError, match="cannot use the result of oauth_cb"):
        kconsumer.Consumer(at(secured, oauth, oauth_cb=lambda config: ("token", 0)))


OIDC = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": CLIENT_ID,
    "sasl.oauthbearer.client.secret": CLIENT_SECRET,
    "sasl.oauthbearer.scope": "read",
    "sasl.oauthbearer.token.endpoint.allow.http": True,
}


def test_oidc(secured: KafkaCluster, provider: OidcProvider, topic: str) -> None:
    errors: list[KafkaError] = []
    provider.requests.clear()
    provider.failures = [(503, {"error": "busy"})]
    provider.life_s = 6
    oidc = {**OIDC, "sasl.oauthbearer.token.endpoint.url": provider.token_url, "error_cb": errors.append}
    try:
        with kconsumer.Consumer(at(secured, oidc, listener="OIDC")) as consumer:
            assert read_two(consumer, topic) == [b"a", b"b"]
            end = time.monotonic() + 40
            while len(provider.requests) < 3:  # the first one fails, the third one renews the token
                assert consumer.poll(1) is None
                assert time.monotonic() < end
            secured.produce(topic, ["c"])
            message = consumer.poll(20)
            assert message is not None and message.value() == b"c"
    finally:
        provider.life_s = 300
    assert provider.requests[0] == {"grant_type": "client_credentials", "scope": "read"}
    assert {error.code() for error in errors} <= {KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN}
    assert "HTTP status 503: busy" in errors[0].str()


@pytest.mark.parametrize("grant", ["client_credentials", JWT_BEARER])
def test_oidc_by_an_assertion(secured: KafkaCluster, provider: OidcProvider, topic: str, grant: str) -> None:
    provider.requests.clear()
    own = {name: value for name, value in OIDC.items() if ".client." not in name}
    oidc = {**own, "sasl.oauthbearer.token.endpoint.url": provider.token_url, "sasl.oauthbearer.grant.type": grant,
            "sasl.oauthbearer.assertion.private.key.file": provider.client_key,
            "sasl.oauthbearer.assertion.claim.aud": ISSUER}
    with kconsumer.Consumer(at(secured, oidc, listener="OIDC")) as consumer:
        assert read_two(consumer, topic) == [b"a", b"b"]
    assert provider.requests[0]["grant_type"] == grant


def test_oidc_with_a_wrong_secret(secured: KafkaCluster, provider: OidcProvider) -> None:
    oidc = {**OIDC, "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "sasl.oauthbearer.client.secret": "not-the-secret"}
    with kconsumer.Consumer(at(secured, oidc, listener="OIDC")) as consumer:
        error = raised_soon(lambda: consumer.list_topics(timeout=30), kconsumer.AuthenticationError).args[0]
    assert "HTTP status 401: invalid_client: not reader:***" in error.str()


def test_oidc_tokens_that_the_broker_does_not_accept(secured: KafkaCluster, provider: OidcProvider) -> None:
    oauth = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    with kconsumer.Consumer(at(secured, oauth, listener="OIDC")) as consumer:
        consumer.set_oauth_token(provider.token(-60), int(time.time() * 1000) + 60000)
        raised_soon(lambda: consumer.list_topics(timeout=30), kconsumer.AuthenticationError)
        consumer.set_oauth_token(provider.token(), int(time.time() * 1000) + 60000)
        assert consumer.list_topics(timeout=30).brokers


# Secrets


def everything_said(config: dict[str, Any]) -> str:
    """All that a consumer with every log context on lets out, while it works or fails."""
    said: list[object] = []
    logger = logging.Logger("everything")
    logger.addHandler(type("Keep", (logging.Handler,), {"emit": lambda self, r: said.append(r.getMessage())})())
    config = {**config, "debug": "all", "log_level": 7, "logger": logger, "statistics.interval.ms": 200,
              "stats_cb": said.append, "error_cb": lambda error: said.append(repr(error))}
    with kconsumer.Consumer(config) as consumer:
        for _ in range(2):
            try:
                said.append(repr(consumer.list_topics(timeout=10)))
            except kconsumer.KafkaException as raised:
                said += [repr(raised), str(raised), repr(raised.args), pickle.dumps(raised)]
            consumer.poll(0.5)
        said += [repr(consumer), repr(consumer.metrics()), repr(vars(consumer)), repr(vars(consumer._settings)),
                 repr(vars(consumer._tokens)) if consumer._tokens else ""]
        said.append(pickle.dumps({name: value for name, value in vars(consumer._settings).items()
                                  if isinstance(value, (str, int, tuple))}))
        with pytest.raises(TypeError):
            pickle.dumps(consumer)
    return "\n".join(map(str, said))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("password", [PASSWORD, "wr0ng-but-secret"])
def test_no_password_is_let_out(secured: KafkaCluster, mechanism: str, password: str) -> None:
    said = everything_said(at(secured, client(mechanism, password=password)))
    assert "SASL" in said, "or nothing was said at all"
    for form in (password, repr(password), base64.b64encode(password.encode()).decode(), json.dumps(password)):
        assert form.strip("'\"") not in said


def test_no_token_or_client_secret_is_let_out(secured: KafkaCluster, provider: OidcProvider) -> None:
    token, expires_at = unsecured_token(read_unsecured(f"principal={USER}"))
    oauth = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
             "sasl.oauthbearer.config": "s3cret=config", "oauth_cb": lambda config: (token, expires_at)}
    said = everything_said(at(secured, oauth))
    assert token not in said and "s3cret" not in said
    oidc = {**OIDC, "sasl.oauthbearer.token.endpoint.url": provider.token_url}
    said = everything_said(at(secured, oidc, listener="OIDC"))
    for form in (CLIENT_SECRET, urllib.parse.quote(CLIENT_SECRET), urllib.parse.quote_plus(CLIENT_SECRET),
                 base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()):
        assert form not in said


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is searched through /proc")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_secrets_are_wiped_from_memory(secured: KafkaCluster, tls_folder: Path, mechanism: str) -> None:
    """Through TLS, whose buffers have seen them as well."""
    token = unsecured_token(read_unsecured(f"principal={USER}"))[0] if mechanism == "OAUTHBEARER" else None
    config = {"bootstrap.servers": secured.bootstrap("ENCRYPTED"), "security.protocol": "sasl_ssl",
              "ssl.ca.location": str(tls_folder / "ca.pem"), "sasl.mechanism": mechanism}
    if token is None:
        config |= {"sasl.username": USER, "sasl.password": PASSWORD}
    needles = {"token": token.encode()} if token else {"password": PASSWORD.encode()}
    with reading(config, token) as process:
        assert process.found(needles) == list(needles), "the search finds nothing"
        process.close()
        assert process.found(needles) == []
