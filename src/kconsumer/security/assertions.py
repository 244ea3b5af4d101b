"""JWT assertions that prove a client's identity to a token endpoint (RFC 7523), from a file or signed here.

Owns: Assertions. Threads: the caller's. Never: sends one, puts a key or a passphrase into a message.
"""

from __future__ import annotations

import base64
import json
import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kconsumer._core.network.network import sign
from kconsumer.config.sasl import Hidden
from kconsumer.config.tls import pem_lines

if TYPE_CHECKING:
    from kconsumer.config.settings import Settings

__all__ = ["Assertions", "Unusable"]

_PREFIX: Final = "sasl.oauthbearer.assertion."
_THREE_PARTS: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)


class Unusable(Exception):
    """A file or a key is unusable. The message contains no secret."""


class Assertions:
    """The assertions of a consumer. Files are read again for each one: they may be replaced while it runs."""

    def __init__(self, settings: Settings) -> None:
        self._file = settings.sasl_oauthbearer_assertion_file
        self._key_file = settings.sasl_oauthbearer_assertion_private_key_file
        self._key = Hidden(pem_lines(settings.sasl_oauthbearer_assertion_private_key_pem) or "")
        passphrase = settings.sasl_oauthbearer_assertion_private_key_passphrase
        self._passphrase = None if passphrase is None else Hidden(passphrase)
        self._algorithm = settings.sasl_oauthbearer_assertion_algorithm
        self._template_file = settings.sasl_oauthbearer_assertion_jwt_template_file
        self._claims = {name: value for name, value in (
            ("sub", settings.sasl_oauthbearer_assertion_claim_sub),
            ("iss", settings.sasl_oauthbearer_assertion_claim_iss),
            ("aud", settings.sasl_oauthbearer_assertion_claim_aud)) if value}
        self._life_s = settings.sasl_oauthbearer_assertion_claim_exp_seconds
        self._before_s = settings.sasl_oauthbearer_assertion_claim_nbf_seconds
        self._has_id = settings.sasl_oauthbearer_assertion_claim_jti_include

    def make(self) -> str:
        """Return an assertion.

        Raises:
            Unusable: a file or the key is unusable.
        """
        if self._file is not None:
            ready = _read("file", self._file).strip()
            if not _THREE_PARTS.fullmatch(ready):
                raise Unusable(f"{_PREFIX}file '{self._file}' is not a JWT: expected three parts with dots between")
            return ready
        template = {} if self._template_file is None else _template(self._template_file)
        header = {**template.get("header", {}), "alg": self._algorithm, "typ": "JWT"}
        now = int(time.time())
        claims = {**template.get("payload", {}), "iat": now, "exp": now + self._life_s, "nbf": now - self._before_s,
                  **self._claims}
        if self._has_id:
            claims["jti"] = str(uuid.uuid4())
        signed = f"{_part(header)}.{_part(claims)}"
        return f"{signed}.{_base64url(self._sign(signed.encode()))}"

    def forget(self) -> None:
        """Drop the key and its passphrase."""
        self._key = Hidden()
        self._passphrase = None

    def _sign(self, data: bytes) -> bytes:
        name, key = f"{_PREFIX}private.key.pem", str(self._key)
        if self._key_file is not None:
            name, key = f"{_PREFIX}private.key.file '{self._key_file}'", _read("private.key.file", self._key_file)
        try:
            return sign(self._algorithm, key, None if self._passphrase is None else str(self._passphrase), data)
        except ValueError as wrong:
            raise Unusable(f"{name} {wrong}") from None


def _read(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is not text"
        raise Unusable(f"{_PREFIX}{name} '{path}' cannot be read: {why}") from None


def _template(path: str) -> Mapping[str, Any]:
    """Return the template: ``{"header": {…}, "payload": {…}}``."""
    name = "jwt.template.file"
    try:
        found = json.loads(_read(name, path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
            key in ("header", "payload") and isinstance(part, dict) for key, part in found.items()):
        raise Unusable(f'{_PREFIX}{name} \'{path}\' is not a template: expected {{"header": {{…}}, "payload": {{…}}}}')
    return found


def _part(value: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
