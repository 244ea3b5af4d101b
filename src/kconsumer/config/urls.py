"""URLs of the HTTP services that a consumer uses: parsed once, and compared in one normal form.

Owns: HttpUrl, read_http_url. Threads: any. Never: opens a connection, puts a URL's query into a message.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["HttpUrl", "read_http_url"]

# urlsplit() silently drops some of these characters, and programs disagree about the others.
_UNFIT: Final = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]")
_HOST: Final = re.compile(r"[a-z0-9._~-]+|[0-9a-f:.]+")


class HttpUrl(NamedTuple):
    """An ``http`` or ``https`` URL in parts."""

    scheme: str  #: in lower case
    host: str  #: in lower case; an IPv6 address without brackets
    port: int
    path: str  #: starts with ``/``, includes the query

    @property
    def address(self) -> str:
        """Return scheme, host and port in the form of a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def shown(self) -> str:
        """Return the URL without its query, which may contain a secret."""
        return self.address + self.path.partition("?")[0]

    def __str__(self) -> str:
        return self.address + self.path


_PORTS: Final = {"http": 80, "https": 443}


def read_http_url(text: str) -> HttpUrl:
    """Parse a URL; surrounding spaces are ignored.

    Raises:
        ValueError: not an http or https URL, or it has parts that are not allowed here.
    """
    from urllib.parse import urlsplit  # here: it is seldom needed, and `import kconsumer` would take longer

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
        raise ValueError("must be https:// (or http://) with a host")
    if "@" in parts.netloc:
        raise ValueError("must not have a user name or a password")
    if parts.fragment or not _HOST.fullmatch(host) or port == 0:
        raise ValueError("is not a URL")
    path = parts.path or "/"
    return HttpUrl(scheme, host, port or _PORTS[scheme], path + (f"?{parts.query}" if parts.query else ""))
