"""URLs of the HTTP services that a consumer asks: read once, and kept in the one form that everything else compares.

Owns: HttpUrl, read_http_url. Threads: any. Never: connects, puts what follows the path into a message.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

__all__ = ["HttpUrl", "read_http_url"]

# urlsplit() drops some of these without a word, and programs disagree about the rest.
_UNFIT: Final = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]")
_HOST: Final = re.compile(r"[a-z0-9._~-]+|[0-9a-f:.]+")


class HttpUrl(NamedTuple):
    """An ``http`` or ``https`` URL in parts."""

    scheme: str  #: in small letters
    host: str  #: in small letters; an IPv6 address without its brackets
    port: int
    path: str  #: with the query, beginning with ``/``

    @property
    def address(self) -> str:
        """Scheme, host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def shown(self) -> str:
        """The URL without its query, which can contain a secret."""
        return self.address + self.path.partition("?")[0]

    def __str__(self) -> str:
        return self.address + self.path


_PORTS: Final = {"http": 80, "https": 443}


def read_http_url(text: str) -> HttpUrl:
    """Reads a URL; spaces around it do not count.

    Raises:
        ValueError: it is not a URL of http or https, or has what such a service has no use for.
    """
    text = text.strip(" \t\r\n")
    if _UNFIT.search(text):
        raise ValueError("has a character that is not allowed in a URL: write it as %XX")
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not host:
        raise ValueError("must begin with https:// (or http://) and name a host")
    if "@" in parts.netloc:
        raise ValueError("must not carry a user name or a password")
    if parts.fragment or not _HOST.fullmatch(host) or port == 0:
        raise ValueError("is not a URL")
    path = parts.path or "/"
    return HttpUrl(scheme, host, port or _PORTS[scheme], path + (f"?{parts.query}" if parts.query else ""))
