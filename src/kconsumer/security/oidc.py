"""OAUTHBEARER tokens from an OIDC provider: client credentials (KIP-768), with a secret or an assertion (KIP-1258), the
jwt-bearer grant (KIP-1139), and Azure's metadata service.

Owns: OidcTokens and its daemon thread. Threads: a separate daemon thread sends requests to the provider; the
application thread calls start and stop. Never: ends before the consumer; keeps the consumer alive; puts the client
secret or a token into a message.
"""

from __future__ import annotations

import base64
import json
import math
import random
import re
import threading
import time
import urllib.parse
import weakref
from typing import TYPE_CHECKING, Final

from kconsumer._core.consumer.consumer import give_token, token_failed
from kconsumer.config.sasl import JWT_BEARER, Hidden, read_extensions, token_url, uses_assertions
from kconsumer.data.call import Call
from kconsumer.security.assertions import Assertions, Unusable
from kconsumer.security.https import Endpoint, Refused, tls_context
from kconsumer.security.tokens import check_token

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import ConsumerCore
    from kconsumer.config.settings import Settings

_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_MOST_BYTES: Final = 1 << 20
_MOST_ERROR_CHARACTERS: Final = 500
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 10.0
_REFRESH_AT: Final = 0.8  # fraction of the token's life


class OidcTokens:
    """Fetches tokens, each after 80 % of the life of the previous one."""

    def __init__(self, settings: Settings) -> None:
        self._on_azure = settings.sasl_oauthbearer_metadata_authentication_type == "azure_imds"
        self._endpoint = Endpoint(token_url(settings), tls_context(settings), direct=self._on_azure)
        self._grant = settings.sasl_oauthbearer_grant_type
        self._assertions = Assertions(settings) if uses_assertions(settings) else None
        self._encodes_header = settings.sasl_oauthbearer_header_urlencode
        self._id = settings.sasl_oauthbearer_client_id or ""
        self._assertion = Hidden()  # the latest one
        self._secret = Hidden(settings.sasl_oauthbearer_client_secret or "")
        self._scope = settings.sasl_oauthbearer_scope
        self._extensions = read_extensions(settings.sasl_oauthbearer_extensions or "")
        self._woken = threading.Event()  # a token is wanted, or the consumer is closed
        self._stopped = False
        self._retry_s = _FIRST_RETRY_S
        self._last_reported = ""

    def start(self, consumer: ConsumerCore) -> Call[None]:
        """Start the thread; the first token arrives with the provider's first answer."""
        owner = weakref.ref(consumer, lambda _: self.stop())
        threading.Thread(target=self._run, args=(owner,), name="kconsumer-oidc", daemon=True).start()
        yield from ()

    def wanted(self, consumer: ConsumerCore) -> Call[None]:
        """Fetch a token now: a broker has refused the last one.

        The provider may have revoked it. Or the system's clock has changed, or stood still, and the token has expired.
        """
        self._woken.set()
        yield from ()

    def stop(self) -> None:
        """End the thread after a running request."""
        self._stopped = True
        self._woken.set()
        self._secret = self._assertion = Hidden()
        if self._assertions is not None:
            self._assertions.forget()

    def _run(self, consumer: weakref.ref[ConsumerCore]) -> None:
        while not self._stopped and _open_one(consumer) is not None:
            self._woken.clear()
            pause_s = self._turn(consumer)
            if not self._stopped:
                self._woken.wait(pause_s)

    def _turn(self, consumer: weakref.ref[ConsumerCore]) -> float:
        """Fetch a token for the core and return the seconds until the next one is due.

        It never raises: without this thread the consumer would lose its brokers when its token expires, without a
        reported cause.
        """
        try:
            token, life_ms = self._fetch()
            owner = _open_one(consumer)
            if owner is not None:
                give_token(owner, token, self._extensions, life_ms)
        except Exception as failed:
            why = str(failed) if isinstance(failed, (Refused, Unusable)) else f"{type(failed).__name__}: {failed}"
            return self._failed(consumer, self._without_secret(why))
        self._last_reported = ""
        self._retry_s = _FIRST_RETRY_S
        return min(max(life_ms / 1000 * _REFRESH_AT, _FIRST_RETRY_S), threading.TIMEOUT_MAX)

    def _failed(self, consumer: weakref.ref[ConsumerCore], why: str) -> float:
        """Report a problem if it is new; return the seconds until the next attempt."""
        problem = f"no OAUTHBEARER token from {self._endpoint.shown}: {_in_one_line(why)}"
        owner = _open_one(consumer)
        if owner is not None and problem != self._last_reported:
            try:
                token_failed(owner, problem)
                self._last_reported = problem
            except RuntimeError:
                pass  # closed in the meantime
        pause = self._retry_s * random.uniform(0.8, 1.2)
        self._retry_s = min(self._retry_s * 2, _LONGEST_RETRY_S)
        return pause

    def _fetch(self) -> tuple[str, int]:
        """Return a token and its life in ms."""
        headers = {"Accept": "application/json"}
        body = None
        if self._on_azure:
            headers["Metadata"] = "true"
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urllib.parse.urlencode(self._form(headers)).encode()
        status, answer = self._endpoint.ask(body, headers, _MOST_BYTES)
        if status >= 400:
            raise Refused(f"HTTP status {status}{_error_in(answer)}")
        return _token_in(answer)

    def _form(self, headers: dict[str, str]) -> dict[str, str]:
        """Return the form of the request; a client's secret is added to the headers."""
        form = {"grant_type": self._grant}
        if self._assertions is None:
            headers["Authorization"] = f"Basic {self._credentials()}"
        else:
            self._assertion = Hidden(self._assertions.make())
            if self._grant == JWT_BEARER:
                form["assertion"] = str(self._assertion)
            else:
                form |= {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": str(self._assertion)}
                if self._id:
                    form["client_id"] = self._id
        if self._scope:
            form["scope"] = self._scope
        return form

    def _credentials(self) -> str:
        parts = [str(self._id), str(self._secret)]
        if self._encodes_header:
            parts = [urllib.parse.quote_plus(part) for part in parts]
        return base64.b64encode(":".join(parts).encode()).decode()

    def _without_secret(self, text: str) -> str:
        """Mask the secret and the assertion: a provider may quote the request."""
        for secret in (self._secret, urllib.parse.quote(self._secret), urllib.parse.quote_plus(self._secret),
                       self._credentials() if self._secret else "", self._assertion):  # fmt: skip
            if secret:
                text = text.replace(secret, "***")
        return text


def _open_one(consumer: weakref.ref[ConsumerCore]) -> ConsumerCore | None:
    """Return the consumer; None if it is freed, closed, or of the parent process."""
    owner = consumer()
    if owner is not None:
        try:
            owner._check_open()
        except RuntimeError:
            return None
    return owner


def _in_one_line(text: str) -> str:
    """Return the text as one line of limited length. Mask first: half of a secret would not be found."""
    text = re.sub(r"[\x00-\x1f\x7f]", " ", text).encode(errors="backslashreplace").decode()
    return text if len(text) <= _MOST_ERROR_CHARACTERS else text[:_MOST_ERROR_CHARACTERS] + "…"


def _token_in(body: bytes) -> tuple[str, int]:
    """Return the token of a response, and its life in ms: by its ``exp`` or by ``expires_in``, whichever is earlier.

    If the system's clock is behind, the life by ``exp`` is too long.
    """
    found = _json(body)
    if found is None:
        raise Refused("the response is not JSON")
    if not isinstance(found, dict) or not isinstance(found.get("access_token"), str):
        raise Refused("the response has no access_token")
    token = found["access_token"]
    claimed, life_s = _claimed_expiry(token), _number(found.get("expires_in"))
    stated = [] if claimed is None else [claimed]
    if life_s is not None and (life_s > 0 or claimed is None):
        stated.append(time.time() + life_s)
    if not stated:
        raise Refused("neither the token nor the response states the expiry")
    try:
        checked, life_ms, _ = check_token(token, min(stated))
    except ValueError as wrong:
        raise Refused(str(wrong)) from None
    return checked, life_ms


def _claimed_expiry(token: str) -> float | None:
    """Return ``exp`` of a JWT; None if it is not a JWT or has no ``exp``."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = _json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    return _number(claims.get("exp")) if isinstance(claims, dict) else None


def _json(body: bytes) -> object:
    """Return a provider's JSON value; None for invalid JSON or malicious nesting."""
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found


def _number(value: object) -> float | None:
    """Return a JSON number as seconds; numbers beyond a float's range are infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return None if math.isnan(value) else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _error_in(body: bytes) -> str:
    """Return the text of an OAuth error response (RFC 6749 §5.2)."""
    found = _json(body)
    if not isinstance(found, dict):
        return ""
    parts = [str(found[key]) for key in ("error", "error_description") if isinstance(found.get(key), str)]
    return ": " + ": ".join(parts) if parts else ""
