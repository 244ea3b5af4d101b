"""The SASL examples of docs/security.md, each run against a real broker with the test's own names and passwords."""

from __future__ import annotations

import re
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oidc_provider import AUDIENCE, CLIENT_ID, CLIENT_SECRET, OidcProvider
from sasl_cluster import PASSWORD, USER, sasl_cluster, sasl_listener

import kconsumer
from kconsumer.oauth import read_unsecured, unsecured_token
from kconsumer.testing import KafkaCluster

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


def examples() -> dict[str, str]:
    """The Python blocks of each section about SASL, joined."""
    text = DOCUMENT.read_text(encoding="utf-8")
    sections = re.split(r"^### (.+)$", text[text.index("\n## SASL\n") :], flags=re.MULTILINE)
    found = {}
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        blocks = re.findall(r"^```python\n(.*?)^```$", body.split("\n## ")[0], flags=re.MULTILINE | re.DOTALL)
        if blocks:
            found[title] = "\n".join(blocks)
    return found


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider() as one:
        yield one


@pytest.fixture(scope="module")
def secured(provider: OidcProvider) -> Iterator[KafkaCluster]:
    oidc = {
        **sasl_listener(),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url,
        "oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.jwks_url}"
    with sasl_cluster(listeners={"OIDC": oidc}, java_options=[allowed]) as cluster:
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


@pytest.mark.parametrize("title", [title for title in examples() if "Kerberos" not in title])
def test_an_example_works(
    secured: KafkaCluster, provider: OidcProvider, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kerberos needs a KDC: its properties are those of test_sasl_gssapi.py."""
    made: list[kconsumer.Consumer] = []

    def consumer(config: dict[str, Any]) -> kconsumer.Consumer:
        oidc = config.get("sasl.oauthbearer.method") == "oidc"
        config = {name: value for name, value in config.items() if not name.startswith("ssl.")}
        config |= {"security.protocol": "sasl_plaintext",
                   "bootstrap.servers": secured.bootstrap("OIDC" if oidc else "SASL")}
        if "sasl.username" in config:
            config |= {"sasl.username": USER, "sasl.password": PASSWORD}
        if oidc:
            config |= {"sasl.oauthbearer.token.endpoint.url": provider.token_url, "sasl.oauthbearer.scope": "read",
                       "sasl.oauthbearer.client.id": CLIENT_ID, "sasl.oauthbearer.client.secret": CLIENT_SECRET}
        made.append(kconsumer.Consumer(config))
        return made[-1]

    signer = types.ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = Signer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    stand_in = types.SimpleNamespace(Consumer=consumer)
    code = examples()[title].replace("import kconsumer\n", "")
    exec(compile(code, f"{DOCUMENT.name}: {title}", "exec"),
         {"kconsumer": stand_in, "time": time, "my_identity_provider": Provider})
    assert len(made) == 1
    with made[0] as one:
        if "set_sasl_credentials" in code:
            one.set_sasl_credentials(USER, PASSWORD)
        assert one.list_topics(timeout=30).brokers
