"""OAUTHBEARER tokens of an OIDC provider: the client credentials grant (KIP-768).

Owns: OidcTokens, its request and its daemon thread. Threads: a daemon thread of its own asks the provider; start and
stop are the application's. Never: keeps the consumer alive, puts the client's secret or a token into a message, follows
a redirect with the client's secret.
"""

from __future__ import annotations

import base64
import json
import os.path
import random
import re
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import weakref
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final

from kconsumer._core.consumer.credentials import give_token, token_failed
from kconsumer.config.sasl import Hidden, read_extensions
from kconsumer.security.tokens import check_token

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer_core import ConsumerCore
    from kconsumer.config.settings import Settings

_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 20
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 10.0
_REFRESH_AT: Final = 0.8  # of the token's life


class _Refused(Exception):
    """Why there is no token, in words that may be told."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *request: Any) -> None:
        raise _Refused("the token endpoint redirects: set sasl.oauthbearer.token.endpoint.url to where it leads")


class OidcTokens:
    """Fetches tokens, each when 80 % of the life of the one before is over."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.sasl_oauthbearer_token_endpoint_url or ""
        self._id = settings.sasl_oauthbearer_client_id or ""
        self._secret = Hidden(settings.sasl_oauthbearer_client_secret or "")
        self._scope = settings.sasl_oauthbearer_scope
        self._extensions = read_extensions(settings.sasl_oauthbearer_extensions or "")
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if self._url.startswith("https"):
            handlers.append(urllib.request.HTTPSHandler(context=_tls_context(settings)))
        self._opener = urllib.request.build_opener(*handlers)
        self._stopped = threading.Event()

    def start(self, consumer: ConsumerCore) -> None:
        """Begins; the first token comes as soon as the provider gives it."""
        owner = weakref.ref(consumer, lambda _: self.stop())
        threading.Thread(target=self._run, args=(owner,), name="kconsumer-oidc", daemon=True).start()

    def wanted(self, consumer: ConsumerCore) -> None:
        """Never asked: the thread knows when a token is due."""

    def stop(self) -> None:
        """Ends the thread, after a request that is under way."""
        self._stopped.set()
        self._secret = Hidden()

    def _run(self, consumer: weakref.ref[ConsumerCore]) -> None:
        retry_s = _FIRST_RETRY_S
        told = ""
        while not self._stopped.is_set():
            try:
                token, life_ms = self._fetch()
            except _Refused as refused:
                problem = f"no OAUTHBEARER token from {self._url}: {refused}"
                if not _hand_over(consumer, None, 0, {}, "" if problem == told else problem):
                    return
                told = problem
                pause = retry_s * random.uniform(0.8, 1.2)
                retry_s = min(retry_s * 2, _LONGEST_RETRY_S)
            else:
                if not _hand_over(consumer, token, life_ms, self._extensions, ""):
                    return
                told = ""
                retry_s = _FIRST_RETRY_S
                pause = max(life_ms / 1000 * _REFRESH_AT, _FIRST_RETRY_S)
            self._stopped.wait(min(pause, threading.TIMEOUT_MAX))

    def _fetch(self) -> tuple[str, int]:
        """A token and its life in ms."""
        form = {"grant_type": "client_credentials"}
        if self._scope:
            form["scope"] = self._scope
        credentials = base64.b64encode(f"{self._id}:{self._secret}".encode()).decode()
        request = urllib.request.Request(
            self._url, urllib.parse.urlencode(form).encode(), {
                "Authorization": f"Basic {credentials}",
                "Accept": "application/json",
                "Content-Type": "application/x-www-form-urlencoded"})
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as response:
                return _token_in(response.read(_MOST_BYTES + 1))
        except urllib.error.HTTPError as refused:
            with refused:
                said = _error_in(refused.read(_MOST_BYTES))
            raise _Refused(self._without_secret(f"HTTP status {refused.code}{said}")) from None
        except (OSError, HTTPException, ValueError) as failed:
            raise _Refused(self._without_secret(str(failed) or type(failed).__name__)) from None

    def _without_secret(self, text: str) -> str:
        """A provider may quote what it was sent."""
        for secret in (self._secret, urllib.parse.quote(self._secret), urllib.parse.quote_plus(self._secret),
                       base64.b64encode(f"{self._id}:{self._secret}".encode()).decode()):
            if secret:
                text = text.replace(secret, "***")
        return text


def _hand_over(
    consumer: weakref.ref[ConsumerCore], token: str | None, life_ms: int, extensions: dict[str, str], problem: str
) -> bool:
    """Gives the core a token, or tells it of a problem that is news. False: the consumer is gone or closed."""
    owner = consumer()
    if owner is None:
        return False
    try:
        if token is not None:
            give_token(owner, token, extensions, life_ms)
        elif problem:
            token_failed(owner, problem)
    except RuntimeError:
        return False
    return True


def _tls_context(settings: Settings) -> ssl.SSLContext:
    from kconsumer.config.values import configuration_error

    place, pem = settings.https_ca_location, settings.https_ca_pem
    try:
        if pem is not None:
            return ssl.create_default_context(cadata=pem)
        if place is None or place == "probe":
            return ssl.create_default_context()
        return ssl.create_default_context(capath=place) if os.path.isdir(place) else ssl.create_default_context(
            cafile=place)
    except (OSError, ValueError) as wrong:
        name = "https.ca.pem" if pem is not None else "https.ca.location"
        raise configuration_error(f"{name} cannot be used: {wrong}") from None


def _token_in(body: bytes) -> tuple[str, int]:
    """The token of a response, and its life in ms: by the token's own ``exp``, else by ``expires_in``."""
    if len(body) > _MOST_BYTES:
        raise _Refused("the response is longer than a megabyte")
    try:
        found = json.loads(body)
    except ValueError:
        raise _Refused("the response is no JSON") from None
    token = found.get("access_token") if isinstance(found, dict) else None
    if not isinstance(token, str):
        raise _Refused("the response has no access_token")
    expires_at = _claimed_expiry(token)
    if expires_at is None:
        life_s = found.get("expires_in")
        if isinstance(life_s, bool) or not isinstance(life_s, (int, float)):
            raise _Refused("neither the token nor the response says when it expires")
        expires_at = time.time() + life_s
    try:
        checked, life_ms, _ = check_token(token, expires_at)
    except ValueError as wrong:
        raise _Refused(str(wrong)) from None
    return checked, life_ms


def _claimed_expiry(token: str) -> float | None:
    """``exp`` of a JWT; None where it is none, or says nothing."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    expiry = claims.get("exp") if isinstance(claims, dict) else None
    return expiry if isinstance(expiry, (int, float)) and not isinstance(expiry, bool) else None


def _error_in(body: bytes) -> str:
    """What an OAuth error response says (RFC 6749 §5.2)."""
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(found, dict):
        return ""
    said = [str(found[key]) for key in ("error", "error_description") if isinstance(found.get(key), str)]
    return ": " + re.sub(r"[\x00-\x1f\x7f]", " ", ": ".join(said))[:500] if said else ""
