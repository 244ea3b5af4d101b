"""The sources of OAUTHBEARER tokens: callbacks that end in any way, tokens that are refused or run out."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import time
from contextlib import closing
from typing import Any

import pytest
from sasl_broker import SaslBroker

import kconsumer
from kconsumer import AuthenticationError, KafkaError
from kconsumer.aio import AIOConsumer
from kconsumer.security import oauth

SOON_S = 60
CONFIGURATION = {"bootstrap.servers": "127.0.0.1:9", "group.id": "g", "security.protocol": "sasl_plaintext",
                 "sasl.mechanism": "OAUTHBEARER"}


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Failures that are known to the core: it asks again."""
    told: list[str] = []
    real = oauth.token_failed

    def fail(core: Any, why: str, report: bool = True) -> None:
        real(core, why, report)
        told.append(why)

    monkeypatch.setattr(oauth, "token_failed", fail)
    return told


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[str]:
    """Tokens that reached the core."""
    tokens: queue.Queue[str] = queue.Queue()
    real = oauth.give_token

    def give(core: Any, token: str, extensions: dict[str, str], life_ms: int) -> None:
        real(core, token, extensions, life_ms)
        tokens.put(token)

    monkeypatch.setattr(oauth, "give_token", give)
    return tokens


@pytest.mark.parametrize("ended", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_a_callback_that_is_interrupted_is_called_again(ended: type[BaseException], failures: list[str]) -> None:
    tokens: list[Any] = [("token", time.time() + 3600), ended]

    def oauth_cb(_: str) -> tuple[str, float]:
        token = tokens.pop(0)
        if token is ended:
            raise ended
        return token

    with kconsumer.Consumer({**CONFIGURATION, "oauth_cb": oauth_cb}) as consumer:
        with pytest.raises(ended):
            consumer._run(consumer._on_token_wanted())
        assert failures == [f"no OAUTHBEARER token: {ended.__name__} ended oauth_cb"]


def test_a_callback_that_is_interrupted_after_close() -> None:
    tokens: list[Any] = [("token", time.time() + 3600)]

    def oauth_cb(_: str) -> tuple[str, float]:
        if tokens:
            return tokens.pop()
        raise KeyboardInterrupt

    consumer = kconsumer.Consumer({**CONFIGURATION, "oauth_cb": oauth_cb})
    consumer.close()
    with pytest.raises(KeyboardInterrupt):
        consumer._tokens.wanted(consumer).send(None)  # type: ignore[union-attr]


def test_a_failed_first_callback_ends_the_constructor(failures: list[str]) -> None:
    errors: list[KafkaError] = []

    def oauth_cb(_: str) -> tuple[str, float]:
        raise OSError("no provider")

    with pytest.raises(AuthenticationError, match="oauth_cb raised OSError: no provider"):
        kconsumer.Consumer({**CONFIGURATION, "oauth_cb": oauth_cb, "error_cb": errors.append})
    assert not [error for error in errors if "oauth_cb" in error.str()]


def test_a_failed_first_coroutine_is_called_again(failures: list[str]) -> None:
    """An AIOConsumer stays open after it."""
    async def oauth_cb(_: str) -> tuple[str, float]:
        raise OSError("no provider")

    async def main() -> None:
        async with AIOConsumer({**CONFIGURATION, "oauth_cb": oauth_cb}) as consumer:
            with pytest.raises(AuthenticationError, match="oauth_cb raised OSError: no provider"):
                await consumer.poll(0)
            assert failures == ["no OAUTHBEARER token: oauth_cb raised OSError: no provider"]

    asyncio.run(main())


def test_unsecured_tokens_are_replaced_before_they_expire(given: queue.Queue[str]) -> None:
    with kconsumer.Consumer({**CONFIGURATION, "enable.sasl.oauthbearer.unsecure.jwt": True,
                             "sasl.oauthbearer.config": "principal=reader lifeSeconds=1"}) as consumer:
        until = time.monotonic() + SOON_S
        while given.qsize() < 3:
            consumer.poll(0.05)
            assert time.monotonic() < until


def test_a_provider_is_asked_again_when_a_broker_refuses_its_token() -> None:
    """It has revoked the first token, which would live for an hour."""
    from test_oidc import configuration, provider, response

    def issue(sock: socket.socket) -> None:
        issued.append(f"token-{len(issued)}")
        sock.sendall(response(200, json.dumps({"access_token": issued[-1], "expires_in": 3600}).encode()))

    issued: list[str] = []
    with provider(issue) as one, closing(SaslBroker(lambda text: b"token-0" not in text, "OAUTHBEARER")) as broker, \
            kconsumer.Consumer(configuration(f"http://127.0.0.1:{one.port}/token", **{
                "bootstrap.servers": broker.address, "error_cb": lambda _: None})) as consumer:
        until = time.monotonic() + SOON_S
        while broker.accepted.empty():
            consumer.poll(0.1)
            assert time.monotonic() < until, issued
    assert b"token-0" in broker.refused.get_nowait()
    assert b"token-1" in broker.accepted.get_nowait()
    assert len(issued) == 2
