"""The sources of OAUTHBEARER tokens: the application's oauth_cb, unsecured tokens, or an OIDC provider.

Owns: token_source, and all sources except OidcTokens (oidc.py). Threads: oauth_cb and unsecured tokens: the application
thread, in any call that runs callbacks; OIDC: a separate daemon thread. Never: blocks the network thread; keeps a token
(the core gets it at once).
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kconsumer._core.consumer.consumer import give_token, token_failed
from kconsumer.config.sasl import Hidden, read_unsecured
from kconsumer.data.call import Call, awaited
from kconsumer.errors import KafkaError, exception_for
from kconsumer.security.tokens import TokenSource, check_token

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import ConsumerCore
    from kconsumer.config.settings import Settings

__all__ = ["token_source"]


class CallbackTokens:
    """Tokens from the application's ``oauth_cb``."""

    def __init__(self, settings: Settings) -> None:
        self._callback = settings.oauth_cb
        self._argument = Hidden(settings.sasl_oauthbearer_config or "")

    def start(self, consumer: ConsumerCore) -> Call[None]:
        """Call oauth_cb at once, as confluent_kafka does: without a token, creation fails."""
        problem = yield from self._ask(consumer)
        if problem is not None:
            token_failed(consumer, f"no OAUTHBEARER token: {problem}", report=False)  # an AIOConsumer stays open
            raise exception_for(KafkaError.SASL_AUTHENTICATION_FAILED, f"no OAUTHBEARER token: {problem}")

    def wanted(self, consumer: ConsumerCore) -> Call[None]:
        """Call oauth_cb.

        On failure error_cb gets the error; the next attempt is in ten seconds.
        """
        problem = yield from self._ask(consumer)
        if problem is not None:
            token_failed(consumer, f"no OAUTHBEARER token: {problem}")

    def stop(self) -> None:
        """Do nothing."""

    def _ask(self, consumer: ConsumerCore) -> Call[str | None]:
        assert self._callback is not None
        try:
            found = yield from awaited(self._callback(str(self._argument)))
        except Exception as raised:  # an exception of the application: reported, not raised
            return f"oauth_cb raised {type(raised).__name__}: {raised}"
        except BaseException as ended:  # Ctrl-C, or a task that was cancelled: the consumer may go on
            with contextlib.suppress(RuntimeError):  # closed, or of the parent process
                token_failed(consumer, f"no OAUTHBEARER token: {type(ended).__name__} ended oauth_cb")
            raise
        try:
            if not isinstance(found, tuple) or not 2 <= len(found) <= 4:
                raise TypeError("expected (token, expires_at[, principal[, extensions]])")
            give_token(consumer, *_in_core_order(check_token(found[0], found[1], found[3] if len(found) > 3 else None)))
        except (TypeError, ValueError) as wrong:
            return f"cannot use the result of oauth_cb: {wrong}"
        return None


class UnsecuredTokens:
    """Unsecured JWS tokens (KIP-255), for test brokers that do not check them."""

    def __init__(self, settings: Settings) -> None:
        self._claims = read_unsecured(settings.sasl_oauthbearer_config or "")

    def start(self, consumer: ConsumerCore) -> Call[None]:
        """Make the first token."""
        return self.wanted(consumer)

    def wanted(self, consumer: ConsumerCore) -> Call[None]:
        """Make a token."""
        yield from ()
        token, expires_at = unsecured_token(self._claims)
        give_token(consumer, *_in_core_order(check_token(token, expires_at, self._claims["extensions"])))

    def stop(self) -> None:
        """Do nothing."""


def _in_core_order(checked: tuple[str, int, dict[str, str]]) -> tuple[str, dict[str, str], int]:
    return checked[0], checked[2], checked[1]


def unsecured_token(claims: Mapping[str, Any]) -> tuple[str, float]:
    """Return a token without a signature, and its expiry."""
    now = time.time()
    expires_at = now + int(claims["lifeSeconds"])
    payload = {claims["principalClaimName"]: claims["principal"], "iat": round(now, 3), "exp": round(expires_at, 3)}
    if claims["scope"]:
        payload[claims["scopeClaimName"]] = claims["scope"].split(",")
    return f"{_base64url({'alg': 'none'})}.{_base64url(payload)}.", expires_at


def _base64url(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token_source(settings: Settings) -> TokenSource | None:
    """Return the configured source of tokens; None: only set_oauth_token()."""
    if settings.oauth_cb is not None:
        return CallbackTokens(settings)
    if settings.enable_sasl_oauthbearer_unsecure_jwt:
        return UnsecuredTokens(settings)
    if settings.sasl_oauthbearer_method == "oidc":
        from kconsumer.security.oidc import OidcTokens

        return OidcTokens(settings)
    return None
