"""The SASL examples of docs/security.md, each run as it stands against a real broker with the test's own names and
passwords; Kerberos's in test_sasl_gssapi.py, where there is a KDC."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import broker_in
from oidc_provider import CLIENT_ID, CLIENT_SECRET, ISSUER, OidcProvider
from sasl_cluster import PASSWORD, USER, sasl_cluster, sasl_listener
from security_examples import examples, run

import kconsumer
from kconsumer.config.sasl import read_unsecured
from kconsumer.security.oauth import unsecured_token
from kconsumer.testing import KafkaCluster


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider() as one:
        yield one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples' files of /etc/kafka (ca.pem), and the broker's certificate."""
    return broker_in(tmp_path_factory.mktemp("etc-kafka"))


@pytest.fixture(scope="module")
def secured(provider: OidcProvider, folder: Path) -> Iterator[KafkaCluster]:
    encrypted = {"security.protocol": "SASL_SSL", "host": "localhost", "ssl.keystore.type": "PEM",
                 "ssl.keystore.location": folder / "broker.pem"}
    listeners = {"ENCRYPTED": sasl_listener(**encrypted), "OIDC": sasl_listener(**encrypted, **provider.listener)}
    with sasl_cluster(listeners=listeners, java_options=provider.java_options) as cluster:
        yield cluster


def token_of_user() -> tuple[str, float]:
    return unsecured_token(read_unsecured(f"principal={USER}"))


class Signer:
    """Stands for the package that signs tokens for MSK."""

    @staticmethod
    def generate_auth_token(region: str) -> tuple[str, int]:
        assert region == "eu-central-1"
        token, expires_at = token_of_user()
        return token, int(expires_at * 1000)


class Provider:
    """Stands for the reader's own."""

    @staticmethod
    def fetch(config: str) -> tuple[str, float]:
        assert config == "scope=read"
        token, expires_at = token_of_user()
        return token, expires_at - time.time()


# What names a place or a person in the examples. The rest of them is run to the letter.
ADDRESSES = ("broker:9094", "b-1.example.kafka.eu-central-1.amazonaws.com:9098", "localhost:9092")


def replaced(code: str, secured: KafkaCluster, provider: OidcProvider, folder: Path) -> dict[str, str]:
    listener = "OIDC" if "oidc" in code else "ENCRYPTED" if "sasl_ssl" in code else "SASL"
    known = {
        **dict.fromkeys(ADDRESSES, secured.bootstrap(listener)),
        '"/etc/kafka/ca.pem"': repr(str(folder / "ca.pem")),
        '"https://idp.example.org/oauth2/token"':  # the test's own provider speaks http
            f'{provider.token_url!r}, "sasl.oauthbearer.token.endpoint.allow.http": True',
        '"sasl.oauthbearer.client.id": "reader"': f'"sasl.oauthbearer.client.id": {CLIENT_ID!r}',
        '"sasl.oauthbearer.client.secret": "…"': f'"sasl.oauthbearer.client.secret": {CLIENT_SECRET!r}',
        '"client.key"': repr(provider.client_key),
        '"https://idp.example.org"': repr(ISSUER),
        '"sasl.oauthbearer.scope": "kafka.read"': '"sasl.oauthbearer.scope": "read"',
        '"sasl.username": "reader"': f'"sasl.username": {USER!r}',
        '"sasl.password": "…"': f'"sasl.password": {PASSWORD!r}',
        'set_sasl_credentials("reader", "the new password")': f"set_sasl_credentials({USER!r}, {PASSWORD!r})",
    }
    return {theirs: ours for theirs, ours in known.items() if theirs in code}


@pytest.mark.parametrize("title", [title for title in examples("SASL") if "Kerberos" not in title])
def test_an_example_works(
    secured: KafkaCluster, provider: OidcProvider, folder: Path, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))  # where an example trusts the system's
    signer = types.ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = Signer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    names: dict[str, Any] = {"kconsumer": kconsumer, "time": time, "my_identity_provider": Provider}
    for code in examples("SASL")[title]:  # a later one goes on where the one before ended
        places = replaced(code, secured, provider, folder)
        assert places, code
        run(code, names, places)
    with names["consumer"] as consumer:
        assert consumer.list_topics(timeout=30).brokers
