"""A small OIDC token endpoint: client credentials or assertions in, signed tokens out, its keys as a broker's JWKS."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import tempfile
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

CLIENT_ID = "reader"
CLIENT_SECRET = "s3cr3t with spaces & %"
AUDIENCE = "kafka"
ISSUER = "kconsumer-tests"


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class OidcProvider:
    """An HTTP server on a loopback port; a context manager. Its key is made by the `openssl` program."""

    def __init__(self) -> None:
        self.life_s = 300.0
        self.subject = "alice"
        self.failures: list[tuple[int, dict[str, str]]] = []  # answers (status, body) that come before any token
        self.requests: list[dict[str, str]] = []

    def __enter__(self) -> OidcProvider:
        self._directory = tempfile.TemporaryDirectory(prefix="kconsumer-oidc-")
        self._key = Path(self._directory.name) / "key.pem"
        self._openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(self._key))
        shown = self._openssl("rsa", "-in", str(self._key), "-noout", "-modulus").decode()
        self._modulus = bytes.fromhex(re.sub(r"\s|Modulus=", "", shown))
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "e": _base64url(b"\x01\x00\x01"),
                       "n": _base64url(provider._modulus)}
                self._send(200, {"keys": [key]})

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._send(*provider._answer(self.headers.get("Authorization", ""), form))

            def _send(self, status: int, body: dict[str, Any]) -> None:
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *arguments: object) -> None:
                """Not to the tests' output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.token_url = f"http://127.0.0.1:{self._server.server_port}/token"
        self.jwks_url = f"http://127.0.0.1:{self._server.server_port}/keys"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._directory.cleanup()

    @staticmethod
    def _openssl(*arguments: str, data: bytes | None = None) -> bytes:
        return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout

    def _answer(self, authorization: str, form: str) -> tuple[int, dict[str, Any]]:
        self.requests.append(dict(urllib.parse.parse_qsl(form)))
        if self.failures:
            return self.failures.pop(0)
        given = self.requests[-1]
        assertion = given.get("assertion") or given.get("client_assertion")
        if assertion is not None and self._is_signed(assertion):
            return 200, {"access_token": self.token(), "expires_in": self.life_s, "token_type": "Bearer"}
        expected = "Basic " + base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization != expected:
            # As unkind as a provider can be: it quotes what it was sent.
            said = base64.b64decode(authorization.removeprefix("Basic ")).decode()
            return 401, {"error": "invalid_client", "error_description": f"not {said}"}
        return 200, {"access_token": self.token(), "expires_in": self.life_s, "token_type": "Bearer"}

    @property
    def client_key(self) -> str:
        """The path of the key whose assertions are accepted; here it is the provider's own."""
        return str(self._key)

    def _is_signed(self, assertion: str) -> bool:
        """Whether an assertion is this client's, for this provider, and valid now."""
        signed, _, signature = assertion.rpartition(".")
        claims = json.loads(_read_base64url(signed.split(".")[1]))
        return (_base64url(self._openssl("dgst", "-sha256", "-sign", str(self._key), data=signed.encode())) == signature
                and claims["aud"] == ISSUER and claims["nbf"] <= time.time() < claims["exp"])

    @property
    def listener(self) -> dict[str, object]:
        """More settings for a SASL listener that takes only this provider's tokens. Its JVM needs `java_options`."""
        return {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.server.callback.handler.class":
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
            "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.jwks_url,
            "oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            "oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,  # Kafka 4.4 needs it
        }

    @property
    def java_options(self) -> list[str]:
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.jwks_url}"]

    def token(self, life_s: float | None = None) -> str:
        """A signed token."""
        now = time.time()
        claims = {"sub": self.subject, "aud": AUDIENCE, "iss": ISSUER, "iat": int(now), "scope": "read",
                  "exp": int(now + (self.life_s if life_s is None else life_s))}
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in (
            {"alg": "RS256", "kid": "one", "typ": "JWT"}, claims))
        return f"{signed}.{_base64url(self._openssl('dgst', '-sha256', '-sign', str(self._key), data=signed.encode()))}"
