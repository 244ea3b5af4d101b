"""OIDC against token endpoints that lie, hang, redirect or impersonate: the thread goes on, and reports it."""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import random
import socket
import ssl
import string
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[3]))
from certificates import Authority

import kconsumer
from kconsumer import ConfigurationError, KafkaError, config
from kconsumer.config.urls import read_http_url
from kconsumer.security import https, oidc

SECRET = "hunter2 & %s/ünïcode"
SOON_S = 30


class Provider:
    """A listener whose connections get, one after the other, what was scripted; the last one again and again."""

    def __init__(self, *scripts: bytes | Callable[[socket.socket], None], tls: ssl.SSLContext | None = None) -> None:
        self.scripts = list(scripts)
        self.heard: queue.Queue[bytes] = queue.Queue()
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), raw:
                sock = raw if self._tls is None else self._tls.wrap_socket(raw, server_side=True)
                with sock:
                    self._answer(sock)

    def _answer(self, sock: socket.socket) -> None:
        self.heard.put(read_request(sock))
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        if callable(script):
            script(sock)
        else:
            sock.sendall(script)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def read_request(sock: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += sock.recv(65536)
    return head


def response(status: int, body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} Word", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def token_body(**more: Any) -> bytes:
    return json.dumps({"access_token": "opaque-token", "expires_in": 3600, **more}).encode()


GOOD = response(200, token_body())


@contextlib.contextmanager
def provider(*scripts: Any, **options: Any) -> Iterator[Provider]:
    one = Provider(*scripts, **options)
    try:
        yield one
    finally:
        one.close()


def configuration(url: str, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": "127.0.0.1:9", "security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "reader",
            "sasl.oauthbearer.client.secret": SECRET, "sasl.oauthbearer.token.endpoint.url": url,
            **({"sasl.oauthbearer.token.endpoint.allow.http": True} if url.startswith("http://") else {}), **more}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[tuple[str, int]]:
    """Tokens that reached the core."""
    tokens: queue.Queue[tuple[str, int]] = queue.Queue()
    real = oidc.give_token

    def give(core: Any, token: str, extensions: dict[str, str], life_ms: int) -> None:
        real(core, token, extensions, life_ms)
        tokens.put((token, life_ms))

    monkeypatch.setattr(oidc, "give_token", give)
    monkeypatch.setattr(oidc, "_FIRST_RETRY_S", 0.01)
    return tokens


def reported_about(consumer: kconsumer.Consumer, errors: list[KafkaError], word: str) -> str:
    """The error that says `word`."""
    until = time.monotonic() + SOON_S
    while True:
        consumer.poll(0.05)
        for error in errors:
            if word in error.str():
                return error.str()
        assert time.monotonic() < until, [error.str() for error in errors]


def jwt(claims: bytes) -> str:
    return "e30." + base64.urlsafe_b64encode(claims).rstrip(b"=").decode() + ".x"


DEEP = b"[" * 100_000
FAILURES = {
    "cut off": (response(500, b'{"error": "busy"}', length=100), "HTTP status 500"),
    "cut off in the middle of success": (response(200, token_body(), length=10_000), "bytes early"),
    "nested": (response(200, DEEP), "is not JSON"),
    "nested in an error": (response(400, DEEP), "HTTP status 400"),
    "nested in a token": (response(200, token_body(access_token=jwt(DEEP), expires_in=None)), "states the expiry"),
    "no HTTP": (b"\0\1\2\3\r\n\r\n", "no OAUTHBEARER token"),
    "headers without end": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000, "no OAUTHBEARER token"),
    "half a surrogate pair": (response(400, b'{"error": "\\ud800"}'), "\\ud800"),
    "not a number": (response(200, b'{"access_token": "t", "expires_in": NaN}'), "states the expiry"),
    "expired for ever": (response(200, token_body(expires_in=-(10**400))), "token expired"),
    "a long body": (response(200, b" " * (1 << 20) + token_body()), "longer than 1048576 bytes"),
    "a redirect": (response(302, b"", "Location: http://127.0.0.1:9/"), "redirects"),
    "a redirect that keeps the method": (response(307, b"", "Location: http://127.0.0.1:9/"), "redirects"),
    "a number without end": (response(200, b'{"access_token": "t", "expires_in": ' + b"9" * 10_000 + b"}"), "JSON"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_the_thread_outlives_every_failure(failure: str, given: queue.Queue[tuple[str, int]]) -> None:
    script, word = FAILURES[failure]
    errors: list[KafkaError] = []
    with provider(script, script, GOOD) as one:
        url = f"http://127.0.0.1:{one.port}/token"
        with kconsumer.Consumer({**configuration(url), "error_cb": errors.append}) as consumer:
            reported = reported_about(consumer, errors, word)
            assert reported.startswith(f"no OAUTHBEARER token from {url}: ")
            assert given.get(timeout=SOON_S)[0] == "opaque-token"


@pytest.mark.parametrize("expires_in", [10**400, 1e308, 10**12])
def test_a_life_beyond_all_clocks_is_a_long_life(expires_in: float, given: queue.Queue[tuple[str, int]]) -> None:
    with provider(response(200, token_body(expires_in=expires_in))) as one, \
            kconsumer.Consumer(configuration(f"http://127.0.0.1:{one.port}/token")):
        _, life_ms = given.get(timeout=SOON_S)
    assert life_ms == 100 * 365 * 86400 * 1000


@pytest.mark.parametrize("claimed_s, expires_in, life_s", [
    (3600, 600, 600), (600, 3600, 600),
    (600, 0, 600),                       # not a life
    (90_000, 3600, 3600),                # the system's clock is a day slow
])
def test_the_earlier_expiry_counts(claimed_s: int, expires_in: int, life_s: int) -> None:
    token = jwt(json.dumps({"exp": time.time() + claimed_s}).encode())
    _, life_ms = oidc._token_in(token_body(access_token=token, expires_in=expires_in))
    assert life_s - SOON_S < life_ms / 1000 <= life_s


def test_a_token_needs_no_claims(given: queue.Queue[tuple[str, int]]) -> None:
    """The broker names the principal, by its own `sasl.oauthbearer.sub.claim.name`."""
    with provider(GOOD) as one, kconsumer.Consumer(configuration(f"http://127.0.0.1:{one.port}/token", **{
            "sasl.oauthbearer.sub.claim.name": "who"})):
        assert given.get(timeout=SOON_S)[0] == "opaque-token"


def test_a_wanted_token_is_fetched_at_once(given: queue.Queue[tuple[str, int]]) -> None:
    with provider(GOOD) as one, kconsumer.Consumer(configuration(f"http://127.0.0.1:{one.port}/token")) as consumer:
        given.get(timeout=SOON_S)
        consumer._run(consumer._on_token_wanted())
        given.get(timeout=SOON_S)  # the first one lives for an hour


def test_an_unexpected_error_is_reported_and_retried(
    given: queue.Queue[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = oidc._token_in
    raised = [MemoryError("bang"), KeyError("bang"), RuntimeError("bang")]

    def token_in(body: bytes) -> tuple[str, int]:
        if raised:
            raise raised.pop()
        return real(body)

    monkeypatch.setattr(oidc, "_token_in", token_in)
    errors: list[KafkaError] = []
    with provider(GOOD) as one, kconsumer.Consumer({
            **configuration(f"http://127.0.0.1:{one.port}/token"), "error_cb": errors.append}) as consumer:
        reported_about(consumer, errors, "RuntimeError: bang")
        reported_about(consumer, errors, "MemoryError: bang")
        given.get(timeout=SOON_S)


def test_the_thread_ends_with_the_consumer(given: queue.Queue[tuple[str, int]]) -> None:
    def oidc_threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "kconsumer-oidc"]

    before = oidc_threads()
    with provider(GOOD) as one:
        consumer = kconsumer.Consumer(configuration(f"http://127.0.0.1:{one.port}/token"))
        given.get(timeout=SOON_S)
        (mine,) = [thread for thread in oidc_threads() if thread not in before]
        consumer.close()
        mine.join(SOON_S)
        assert not mine.is_alive()


def test_a_close_that_is_refused_leaves_the_tokens_alone(given: queue.Queue[tuple[str, int]]) -> None:
    raised: list[BaseException] = []

    def close(_: str) -> None:
        try:
            consumer.close()
        except kconsumer.KafkaException as error:
            raised.append(error)

    with provider(response(200, token_body(expires_in=1))) as one:
        consumer = kconsumer.Consumer(configuration(f"http://127.0.0.1:{one.port}/token", stats_cb=close,
                                                    **{"statistics.interval.ms": 10}))
        until = time.monotonic() + SOON_S
        while not raised:
            consumer.poll(0.05)
            assert time.monotonic() < until
        while not given.empty():
            given.get()
        for _ in range(2):  # the next, and one asked for after that
            given.get(timeout=SOON_S)
        consumer.close()


# Which endpoint is asked


@pytest.fixture(scope="module")
def authorities() -> tuple[Authority, Authority]:
    return Authority("ours"), Authority("theirs")


def server_context(authority: Authority, folder: Path) -> ssl.SSLContext:
    certificate, key = authority.issue().write(folder, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


FORMS = ("https://localhost:{}/token", "HTTPS://localhost:{}/token", " https://localhost:{}/token",
         "hTTpS://LOCALHOST:{}/token\n", "\thttps://localhost:{}")


@pytest.mark.parametrize("form", FORMS)
def test_the_given_authority_holds_however_the_url_is_written(
    form: str, authorities: tuple[Authority, Authority], tmp_path: Path, given: queue.Queue[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server's certificate is one that the system trusts, but not the authority of https.ca.pem."""
    ours, theirs = authorities
    theirs.write(tmp_path / "system.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))
    errors: list[KafkaError] = []
    with provider(GOOD, tls=server_context(theirs, tmp_path)) as one, kconsumer.Consumer({
            **configuration(form.format(one.port), **{"https.ca.pem": ours.pem}),
            "error_cb": errors.append}) as consumer:
        reported_about(consumer, errors, "CERTIFICATE_VERIFY_FAILED")
        assert one.heard.empty() and given.empty()


@pytest.mark.parametrize("form", FORMS)
def test_the_given_authority_is_trusted(
    form: str, authorities: tuple[Authority, Authority], tmp_path: Path, given: queue.Queue[tuple[str, int]]
) -> None:
    (tmp_path / "ca.pem").write_text(authorities[0].pem)
    with provider(GOOD, tls=server_context(authorities[0], tmp_path)) as one, kconsumer.Consumer(
            configuration(form.format(one.port), **{"https.ca.location": str(tmp_path / "ca.pem")})):
        assert given.get(timeout=SOON_S)[0] == "opaque-token"


def test_a_name_that_the_certificate_does_not_have(
    authorities: tuple[Authority, Authority], tmp_path: Path, given: queue.Queue[tuple[str, int]]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authorities[0].issue(hosts=["elsewhere.example"]).write(tmp_path, "other"))
    errors: list[KafkaError] = []
    with provider(GOOD, tls=context) as one, kconsumer.Consumer({
            **configuration(f"https://localhost:{one.port}/", **{"https.ca.pem": authorities[0].pem}),
            "error_cb": errors.append}) as consumer:
        reported_about(consumer, errors, "CERTIFICATE_VERIFY_FAILED")
        assert one.heard.empty()


def test_https_goes_through_the_proxy_of_the_environment(
    authorities: tuple[Authority, Authority], tmp_path: Path, given: queue.Queue[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a tunnel: the proxy sees neither the secret nor the token."""
    asked: queue.Queue[bytes] = queue.Queue()

    def tunnel(client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", one.port)) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            ends = [threading.Thread(target=pump, args=pair) for pair in ((client, server), (server, client))]
            for end in ends:
                end.start()
            for end in ends:
                end.join()

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            client, _ = listener.accept()
            with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(4096)
                asked.put(head)
                tunnel(client)

    with provider(GOOD, tls=server_context(authorities[0], tmp_path)) as one, \
            socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        monkeypatch.setenv("https_proxy", f"http://user:pass%40word@127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        with kconsumer.Consumer(configuration(f"https://localhost:{one.port}/token",
                                              **{"https.ca.pem": authorities[0].pem})):
            assert given.get(timeout=SOON_S)[0] == "opaque-token"
        head = asked.get(timeout=SOON_S)
    assert head.startswith(f"CONNECT localhost:{one.port} ".encode())
    assert base64.b64encode(b"user:pass@word") in head


@pytest.mark.parametrize("password", ["part#rest", "part/rest", "part?rest", "part[rest"])
def test_a_proxy_whose_password_is_not_escaped(
    password: str, given: queue.Queue[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", f"http://user:{password}@proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    errors: list[KafkaError] = []
    with kconsumer.Consumer({**configuration("https://localhost:1/token"), "error_cb": errors.append}) as consumer:
        said = reported_about(consumer, errors, "https_proxy is not a URL")
    assert "part" not in said and "rest" not in said


@pytest.mark.parametrize("host", ["localhost", "localhost."])
def test_authorities_from_a_folder(
    host: str, authorities: tuple[Authority, Authority], tmp_path: Path, given: queue.Queue[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with ssl.ca.location, the names of the files do not matter. Not every resolver knows the name with the dot."""
    connect = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda address, *more: connect(
        (address[0].removesuffix("."), address[1]), *more))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "README").write_text("not a certificate")
    with provider(GOOD, tls=server_context(authorities[0], tmp_path)) as one:
        asked = configuration(f"https://{host}:{one.port}/token", **{"https.ca.location": str(folder)})
        with pytest.raises(ConfigurationError, match=r"https\.ca\.location: .* has no file with a certificate \(PEM\)"):
            kconsumer.Consumer(asked)
        authorities[1].write(folder / "theirs.crt")
        authorities[0].write(folder / "ours.crt")
        with kconsumer.Consumer(asked):
            assert given.get(timeout=SOON_S)[0] == "opaque-token"


@pytest.mark.parametrize("name", ["client.id", "client.secret"])
def test_credentials_that_are_not_text(name: str) -> None:
    """From os.environ, where a byte that is not UTF-8 is half of a surrogate pair."""
    with pytest.raises(ConfigurationError, match=rf"sasl\.oauthbearer\.{name} contains half of a surrogate pair"):
        config.parse(configuration("https://idp", **{f"sasl.oauthbearer.{name}": "hunter\udce9"}))


def test_http_must_be_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    url = {"sasl.oauthbearer.token.endpoint.url": "HTTP://idp/token"}
    with pytest.raises(ConfigurationError, match=r"set sasl\.oauthbearer\.token\.endpoint\.allow\.http=true"):
        config.parse(configuration("https://idp", **url))
    settings = config.parse(configuration("https://idp", **url, **{
        "sasl.oauthbearer.token.endpoint.allow.http": True, "https.ca.location": "probe"}))
    assert settings.sasl_oauthbearer_token_endpoint_url == "http://idp/token"
    assert "the client secret and the tokens are readable on the way" in caplog.text
    assert "https.ca.location and https.ca.pem have no effect" in caplog.text


@pytest.mark.parametrize(("text", "read"), [
    ("https://Idp.Example", "https://idp.example/"),
    (" HTTPS://idp:443/a?b=c ", "https://idp/a?b=c"),
    ("http://[::1]:8080/x", "http://[::1]:8080/x"),
    ("HTTP://IDP:80", "http://idp/"),
])
def test_urls_have_one_form(text: str, read: str) -> None:
    assert str(read_http_url(text)) == read
    assert str(read_http_url(read)) == read


@pytest.mark.parametrize("text", [
    "", "idp/token", "ftp://idp", "file:///etc/passwd", "https:///token", "https://", "https:idp", "//idp",
    "https://user@idp/", "https://user:hunter2@idp/", "https://i dp/", "https://idp/\nx", "https://id\tp/",
    "https://idp\\@evil/", "https://idp/#x", "https://idp:0/", "https://idp:99999/", "https://[x/", "https://ïdp/",
    "https://i%64p/", "java\nscript:x", "https://idp:x/",
])  # fmt: skip
def test_an_invalid_url(text: str) -> None:
    with pytest.raises(ValueError) as wrong:
        read_http_url(text)
    assert "hunter2" not in str(wrong.value)


def test_the_query_of_a_url_is_not_shown(given: queue.Queue[tuple[str, int]]) -> None:
    errors: list[KafkaError] = []
    with provider(response(500, b"")) as one, kconsumer.Consumer({
            **configuration(f"http://127.0.0.1:{one.port}/token?key=hunter3"), "error_cb": errors.append}) as consumer:
        assert "hunter3" not in reported_about(consumer, errors, "HTTP status 500")


# Error messages


def masked(said: str, tokens: oidc.OidcTokens) -> str:
    problem = oidc._error_in(json.dumps({"error": "invalid_client", "error_description": said}).encode())
    return oidc._in_one_line(tokens._without_secret(problem))


def test_no_part_of_the_secret_is_shown_wherever_it_stands() -> None:
    """The message is cut off; the secret must be removed before."""
    alphabet = random.Random(1).sample(string.ascii_letters + string.digits, 40)
    secret = "".join(alphabet)
    tokens = oidc.OidcTokens(config.parse(configuration("https://idp", **{"sasl.oauthbearer.client.secret": secret})))
    forms = (secret, base64.b64encode(f"reader:{secret}".encode()).decode())
    for form in forms:
        parts = {form[i : i + 6] for i in range(len(form) - 5)}
        for offset in range(600):
            said = masked("." * offset + form + "." * 600, tokens)
            assert not any(part in said for part in parts), offset
            assert len(said) <= oidc._MOST_ERROR_CHARACTERS + 1


# How long it takes


def test_a_response_that_drips_is_ended() -> None:
    def drip(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(b"H")
                if stopped.wait(0.05):
                    return

    stopped = threading.Event()
    with provider(drip) as one:
        endpoint = https.Endpoint(f"http://127.0.0.1:{one.port}/", ssl.create_default_context(), total_s=0.5)
        with pytest.raises(https.Refused, match="no complete response within"):
            endpoint.ask(b"", {}, 100)
        stopped.set()


def test_a_handshake_that_drips_is_ended() -> None:
    def drip() -> None:
        with contextlib.suppress(OSError):
            sock, _ = listener.accept()
            with sock:
                record = b"\x16\x03\x03\x40\x00" + bytes(0x4000)
                for at in range(len(record)):
                    sock.sendall(record[at : at + 1])
                    if stopped.wait(0.05):
                        return

    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, daemon=True).start()
        port = listener.getsockname()[1]
        endpoint = https.Endpoint(f"https://localhost:{port}/", ssl.create_default_context(), total_s=0.5)
        with pytest.raises(https.Refused, match="no complete response within"):
            endpoint.ask(b"", {}, 100)
        stopped.set()
