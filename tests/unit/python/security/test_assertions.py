"""JWT assertions, the jwt-bearer grant and Azure's metadata service, against a token server that checks them."""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import confluent_kafka
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

import kconsumer
from kconsumer import ConfigurationError, KafkaError, config
from kconsumer.security.oidc import OidcTokens

SOON_S = 30
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
PASSPHRASE = "hunter2"
OIDC = "sasl.oauthbearer."


class Asked(NamedTuple):
    """A request to the token server."""

    method: str
    target: str
    headers: dict[str, str]
    form: dict[str, str]


@contextlib.contextmanager
def token_server() -> Iterator[tuple[str, queue.Queue[Asked]]]:
    """A server that gives a token for any request, which it keeps."""
    asked: queue.Queue[Asked] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            asked.put(Asked(self.command, self.path, dict(self.headers), dict(parse_qsl(form))))
            claims = {"sub": "x", "iat": int(time.time()), "exp": int(time.time()) + 300}
            token = f"{part({'alg': 'none'})}.{part(claims)}.c2ln"
            body = json.dumps({"access_token": token, "expires_in": 300}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *arguments: object) -> None:
            """Not to the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token", asked
    server.shutdown()
    server.server_close()


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def read_part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def asked_by(library: Any, **more: Any) -> Asked:
    """The first request of a consumer."""
    with token_server() as (url, asked):
        own = {OIDC + "token.endpoint.allow.http": True} if library is kconsumer else {}
        consumer = library.Consumer({
            "bootstrap.servers": "127.0.0.1:9", "group.id": "g", "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "OAUTHBEARER", OIDC + "method": "oidc", OIDC + "token.endpoint.url": url, "log_level": 0,
            **own, **{OIDC + name.replace("_", "."): value for name, value in more.items()}})
        until = time.monotonic() + SOON_S
        while asked.empty():
            consumer.poll(0.05)
            assert time.monotonic() < until
        consumer.close()
        return asked.get()


def assertion_of(asked: Asked) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Header, claims, signed bytes and signature."""
    text = asked.form.get("assertion") or asked.form["client_assertion"]
    header, claims, signature = text.split(".")
    return (json.loads(read_part(header)), json.loads(read_part(claims)), f"{header}.{claims}".encode(),
            read_part(signature))


def pem(key: Any, passphrase: str | None = None) -> str:
    encryption = serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(
        passphrase.encode())
    return str(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode())


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def files(tmp_path: Path, rsa_key: rsa.RSAPrivateKey) -> dict[str, str]:
    """Paths by name."""
    texts = {"key": pem(rsa_key), "locked": pem(rsa_key, PASSPHRASE), "assertion": "aaa.bbb.ccc",
             "template": json.dumps({"header": {"kid": "k1"}, "payload": {"sub": "of the template", "more": [1]}})}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


REQUESTS: dict[str, dict[str, str]] = {
    "secret": {"client_id": "id", "client_secret": "secret", "scope": "a b"},
    "all claims": {"grant_type": JWT_BEARER, "assertion_private_key_file": "{key}", "assertion_claim_aud": "A",
                   "assertion_claim_iss": "I", "assertion_claim_sub": "S", "assertion_claim_jti_include": "true",
                   "assertion_claim_exp_seconds": "60", "assertion_claim_nbf_seconds": "0", "scope": "a b"},
    "no claims": {"grant_type": JWT_BEARER, "assertion_private_key_file": "{key}"},
    "a passphrase and a template": {
        "grant_type": JWT_BEARER, "assertion_private_key_file": "{locked}", "assertion_claim_sub": "S",
        "assertion_private_key_passphrase": PASSPHRASE, "assertion_jwt_template_file": "{template}"},
    "a ready assertion": {"grant_type": JWT_BEARER, "assertion_file": "{assertion}"},
    "azure": {"metadata_authentication_type": "azure_imds", "config": "query=api-version=1&resource=api://x"},
    "azure without a query": {"metadata_authentication_type": "azure_imds"},
}


@pytest.mark.parametrize("case", REQUESTS)
def test_the_request_is_confluent_kafkas(case: str, files: dict[str, str], rsa_key: rsa.RSAPrivateKey) -> None:
    more = {name: value.format(**files) for name, value in REQUESTS[case].items()}
    theirs, ours = asked_by(confluent_kafka, **more), asked_by(kconsumer, **more)
    wanted = ("Authorization", "Content-Type", "Accept", "Metadata")
    assert [ours.headers.get(name) for name in wanted] == [theirs.headers.get(name) for name in wanted]
    assert (ours.method, ours.target, ours.form.keys()) == (theirs.method, theirs.target, theirs.form.keys())
    assert {k: v for k, v in ours.form.items() if k != "assertion"} == {
        k: v for k, v in theirs.form.items() if k != "assertion"}
    if "{key}" in REQUESTS[case].values() or "{locked}" in REQUESTS[case].values():
        (our_header, our_claims, signed, signature), (header, claims, *_) = assertion_of(ours), assertion_of(theirs)
        assert our_header == header and our_claims.keys() == claims.keys()
        for name in claims.keys() - {"jti", "iat", "exp", "nbf"}:
            assert our_claims[name] == claims[name]
        for name in ("exp", "nbf"):
            assert our_claims[name] - our_claims["iat"] == claims[name] - claims["iat"]
        assert abs(our_claims["iat"] - time.time()) < SOON_S
        rsa_key.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    elif "assertion" in ours.form:
        assert ours.form["assertion"] == theirs.form["assertion"].strip()


def test_es256_has_the_form_of_rfc_7518(ec_key: ec.EllipticCurvePrivateKey) -> None:
    """confluent_kafka sends DER, which a provider refuses."""
    asked = asked_by(kconsumer, grant_type=JWT_BEARER, assertion_algorithm="ES256",
                     assertion_private_key_pem=pem(ec_key))
    header, _, signed, signature = assertion_of(asked)
    assert header["alg"] == "ES256" and len(signature) == 64
    numbers = (int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
    ec_key.public_key().verify(utils.encode_dss_signature(*numbers), signed, ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize("client", ["id", None])
def test_client_credentials_with_an_assertion(client: str | None, rsa_key: rsa.RSAPrivateKey) -> None:
    """KIP-1258, which librdkafka lacks."""
    more = {} if client is None else {"client_id": client}
    asked = asked_by(kconsumer, assertion_private_key_pem=pem(rsa_key), assertion_claim_aud="A", scope="s", **more)
    _, claims, signed, signature = assertion_of(asked)
    rsa_key.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    assert claims["aud"] == "A"
    del asked.form["client_assertion"]
    assert asked.form == {"grant_type": "client_credentials", "client_assertion_type": CLIENT_ASSERTION, "scope": "s",
                          **more}
    assert "Authorization" not in asked.headers


def test_a_header_may_be_url_encoded() -> None:
    asked = asked_by(kconsumer, client_id="a b", client_secret="c:%", header_urlencode=True)
    assert asked.headers["Authorization"] == "Basic " + base64.b64encode(b"a+b:c%3A%25").decode()


def test_a_new_file_is_used_for_the_next_token(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    file.write_text("a.b.c")
    with token_server() as (url, asked), kconsumer.Consumer({
            "bootstrap.servers": "127.0.0.1:9", "security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
            OIDC + "method": "oidc", OIDC + "token.endpoint.url": url, OIDC + "token.endpoint.allow.http": True,
            OIDC + "grant.type": JWT_BEARER, OIDC + "assertion.file": file}) as consumer:
        assert asked.get(timeout=SOON_S).form["assertion"] == "a.b.c"
        file.write_text("d.e.f\n")
        consumer._run(consumer._on_token_wanted())
        assert asked.get(timeout=SOON_S).form["assertion"] == "d.e.f"


def unusable(files: dict[str, str], **more: str) -> str:
    """The reported error of a consumer that has no assertion."""
    errors: list[KafkaError] = []
    with kconsumer.Consumer({
            "bootstrap.servers": "127.0.0.1:9", "security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
            OIDC + "method": "oidc", OIDC + "token.endpoint.url": "https://127.0.0.1:9/",
            OIDC + "grant.type": JWT_BEARER, "error_cb": errors.append,
            **{OIDC + name.replace("_", "."): value.format(**files) for name, value in more.items()}}) as consumer:
        until = time.monotonic() + SOON_S
        while True:
            consumer.poll(0.05)
            for error in errors:
                if "OAUTHBEARER" in error.str():
                    return error.str().split(": ", 1)[1]
            assert time.monotonic() < until


@pytest.mark.parametrize(("more", "why"), [
    ({"assertion_private_key_file": "/nowhere"},
     "sasl.oauthbearer.assertion.private.key.file '/nowhere' cannot be read: No such file or directory"),
    ({"assertion_private_key_file": "{locked}"},
     "sasl.oauthbearer.assertion.private.key.file '{locked}' is encrypted: set the passphrase"),
    ({"assertion_private_key_file": "{locked}", "assertion_private_key_passphrase": "wrong"},
     "sasl.oauthbearer.assertion.private.key.file '{locked}' cannot be decrypted: the passphrase is wrong"),
    ({"assertion_private_key_pem": "no key"}, "sasl.oauthbearer.assertion.private.key.pem is not a private key (PEM)"),
    ({"assertion_private_key_file": "{key}", "assertion_algorithm": "ES256"},
     "sasl.oauthbearer.assertion.private.key.file '{key}' is not a key of curve P-256, which ES256 needs"),
    ({"assertion_file": "{template}"},
     "sasl.oauthbearer.assertion.file '{template}' is not a JWT: expected three parts with dots between"),
    ({"assertion_private_key_file": "{key}", "assertion_jwt_template_file": "{key}"},
     "sasl.oauthbearer.assertion.jwt.template.file '{key}' is not a template: expected "
     '{{"header": {{…}}, "payload": {{…}}}}'),
])
def test_an_unusable_file_is_reported(files: dict[str, str], more: dict[str, str], why: str) -> None:
    assert unusable(files, **more).endswith(why.format(**files))


def test_an_assertion_that_the_provider_quotes_is_masked(files: dict[str, str]) -> None:
    settings = config.parse({
        "bootstrap.servers": "h", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
        OIDC + "method": "oidc", OIDC + "token.endpoint.url": "https://h/", OIDC + "grant.type": JWT_BEARER,
        OIDC + "assertion.file": files["assertion"]})
    tokens = OidcTokens(settings)
    tokens._form({})
    assert tokens._without_secret("invalid_grant: aaa.bbb.ccc") == "invalid_grant: ***"


@pytest.mark.parametrize(("more", "message"), [
    ({"grant_type": JWT_BEARER}, f"{OIDC}grant.type={JWT_BEARER} needs {OIDC}assertion.private.key.file"),
    ({"assertion_file": "f", "assertion_private_key_file": "k"},
     "sasl.oauthbearer.assertion.file and sasl.oauthbearer.assertion.private.key.file contradict each other"),
    ({"assertion_file": "f", "assertion_claim_aud": "a"}, "sasl.oauthbearer.assertion.claim.aud is set, but only"),
    ({"client_id": "i", "client_secret": "s", "assertion_claim_aud": "a"}, f"{OIDC}assertion.claim.aud is set"),
    ({"client_id": "i", "client_secret": "s", "assertion_file": "f"}, "sasl.oauthbearer.client.secret is set, but the"),
    ({"grant_type": JWT_BEARER, "client_id": "i", "assertion_file": "f"}, "sasl.oauthbearer.client.id is set, but the"),
    ({"metadata_authentication_type": "azure_imds", "scope": "s"}, "sasl.oauthbearer.scope is set, but"),
    ({"metadata_authentication_type": "azure_imds", "config": "resource=x"}, f"{OIDC}config: expected query="),
    ({"metadata_authentication_type": "aws_iam"}, "call AWS's get_web_identity_token in oauth_cb"),
])
def test_contradictions_are_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        config.parse({
            "bootstrap.servers": "h", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
            OIDC + "method": "oidc", OIDC + "token.endpoint.url": "https://h/",
            **{OIDC + name.replace("_", "."): value for name, value in more.items()}})
    assert message in str(refused.value)


def test_the_address_of_azures_service_is_known() -> None:
    from kconsumer.config.sasl import token_url

    settings = config.parse({
        "bootstrap.servers": "h", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
        OIDC + "method": "oidc", OIDC + "metadata.authentication.type": "azure_imds",
        OIDC + "config": "query=resource=r"})
    assert token_url(settings) == "http://169.254.169.254/metadata/identity/oauth2/token?resource=r"
