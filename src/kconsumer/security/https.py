"""One request to an HTTP service that receives a secret, such as an OAuth token endpoint.

Owns: Endpoint, Refused, tls_context. Threads: the caller's thread sends a request; a timer thread ends a request that
takes too long. Never: follows a redirect, uses another scheme than its URL's, exceeds its limits of size and time.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import os.path
import socket
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from kconsumer.config.tls import pem_lines
from kconsumer.config.urls import read_http_url
from kconsumer.config.values import configuration_error

if TYPE_CHECKING:
    from kconsumer.config.settings import Settings

__all__ = ["Endpoint", "Refused", "tls_context"]

_SILENCE_S: Final = 10.0  # timeout between two pieces of a response
_TOTAL_S: Final = 30.0


class Refused(Exception):
    """The request failed. The message contains no secret."""


class _Https(http.client.HTTPSConnection):
    """Has its socket during the handshake, so that a timer can end a slow handshake."""

    def __init__(self, host: str, port: int, trust: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=_SILENCE_S, context=trust)
        self._trust = trust
        self._certified = host

    def reach_through(self, host: str, port: int, headers: Mapping[str, str]) -> None:
        """Connect to a proxy that forwards to this host."""
        self.set_tunnel(host, port, dict(headers))
        self._certified = host

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        name = self._certified.removesuffix(".")  # in certificates, names have no dot at the end
        self.sock = self._trust.wrap_socket(self.sock, server_hostname=name, do_handshake_on_connect=False)
        self.sock.do_handshake()


class Endpoint:
    """The target of requests, and the authorities that TLS trusts there.

    Args:
        url: an http or https URL.
        trust: the TLS context of every https connection.
        total_s: time limit in seconds of a request.
        direct: ignore the proxies of the environment.

    Raises:
        ValueError: not an http or https URL.
    """

    def __init__(self, url: str, trust: ssl.SSLContext, total_s: float = _TOTAL_S, direct: bool = False) -> None:
        self._url = read_http_url(url)
        self._trust = trust
        self._total_s = total_s
        self._direct = direct

    @property
    def shown(self) -> str:
        """Return the URL without secrets."""
        return self._url.shown

    def ask(self, body: bytes | None, headers: Mapping[str, str], most_bytes: int) -> tuple[int, bytes]:
        """Return the status and the body of the response to a POST; a GET without a body.

        An error's body may be incomplete.

        Raises:
            Refused: no complete response in time, a redirect, or a response that is too long.
        """
        connection, target, more = self._connection()
        overdue = threading.Event()
        timer = threading.Timer(self._total_s, _end, (connection, overdue))
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            if overdue.is_set():  # the timer fired before there was a socket
                raise TimeoutError
            method = "GET" if body is None else "POST"
            connection.request(method, target, body, {**headers, **more, "Connection": "close"})
            return _read(connection.getresponse(), most_bytes)
        except (OSError, http.client.HTTPException, ValueError) as failed:
            if overdue.is_set():
                raise Refused(f"no complete response within {self._total_s:g} s") from None
            raise Refused(str(failed) or type(failed).__name__) from None
        finally:
            timer.cancel()
            connection.close()

    def _connection(self) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
        """Return an unopened connection, the request's target, and the headers for a proxy."""
        url = self._url
        proxy, authorization = (None, {}) if self._direct else _proxy_for(url.scheme, url.host)
        if url.scheme == "https":
            secure = _Https(*(proxy or (url.host, url.port)), self._trust)
            if proxy is not None:
                secure.reach_through(url.host, url.port, authorization)
            return secure, url.path, {}
        plain = http.client.HTTPConnection(*(proxy or (url.host, url.port)), timeout=_SILENCE_S)
        return plain, url.path if proxy is None else str(url), authorization


def _proxy_for(scheme: str, target: str) -> tuple[tuple[str, int] | None, dict[str, str]]:
    """Return the address of the environment's proxy (None: no proxy), and its headers."""
    named = urllib.request.getproxies().get(scheme)
    if not named or urllib.request.proxy_bypass(target):
        return None, {}
    try:
        proxy = urlsplit(named if "://" in named else f"//{named}")
        host, port = proxy.hostname, proxy.port or 80
    except ValueError:  # its text may have a part of the password
        raise Refused(f"the environment variable {scheme}_proxy is not a URL: write each of / ? # [ ] @ in its user "
                      "name and password as %XX") from None
    if not host:
        raise Refused(f"the environment variable {scheme}_proxy has no host name")
    if proxy.username is None:
        return (host, port), {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return (host, port), {"Proxy-Authorization": "Basic " + base64.b64encode(login.encode()).decode()}


def _read(response: http.client.HTTPResponse, most_bytes: int) -> tuple[int, bytes]:
    if 300 <= response.status < 400:
        raise Refused("the server redirects: set the URL of the target")
    if response.status >= 400:
        try:
            return response.status, response.read(most_bytes)
        except http.client.IncompleteRead as cut:
            return response.status, cut.partial
        except (OSError, http.client.HTTPException, ValueError):
            return response.status, b""
    body = response.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise Refused(f"the response is longer than {most_bytes} bytes")
    if response.length:
        raise Refused(f"the response ends {response.length} bytes early")
    return response.status, body


def _end(connection: http.client.HTTPConnection, overdue: threading.Event) -> None:
    overdue.set()
    sock = connection.sock
    if sock is not None:
        with contextlib.suppress(OSError):  # the connection may be closed already
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def tls_context(settings: Settings) -> ssl.SSLContext:
    """Return the TLS context for https, with the configured or the system's CAs.

    Raises:
        ConfigurationError: the certificates cannot be read.
    """
    place, pem = settings.https_ca_location, pem_lines(settings.https_ca_pem)
    try:
        if pem is not None:
            return ssl.create_default_context(cadata=pem)
        if place is None or place == "probe":
            return ssl.create_default_context()
        return _trusting_folder(place) if os.path.isdir(place) else ssl.create_default_context(cafile=place)
    except (OSError, ValueError) as wrong:
        name = "https.ca.pem" if pem is not None else "https.ca.location"
        raise configuration_error(f"cannot use {name}: {wrong}") from None


def _trusting_folder(place: str) -> ssl.SSLContext:
    """Return a context that trusts all certificates in the folder's files, whatever their names are."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in sorted(os.listdir(place)):
        path = os.path.join(place, name)
        if os.path.isfile(path):
            with contextlib.suppress(ssl.SSLError):  # a file without certificates
                made.load_verify_locations(cafile=path)
    if not made.get_ca_certs():
        raise ValueError(f"{place!r} has no file with a certificate (PEM)")
    return made
