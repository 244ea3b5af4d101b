"""Checks the TLS properties before any file is read: missing ones, and contradictions.

Owns: TlsOptions, tls_options, check_tls, tls_warnings, pem_lines. Threads: any. Never: reads a file (the core does,
and reads it again later), puts a secret into a message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kconsumer.config.settings import Settings

__all__ = ["TlsOptions", "check_tls", "pem_lines", "tls_options", "tls_warnings"]

# Pairs of properties with the same content: from a file, or in the configuration.
_EITHER: Final = (
    ("ssl.ca.location", "ssl.ca.pem"),
    ("ssl.certificate.location", "ssl.certificate.pem"),
    ("ssl.key.location", "ssl.key.pem"),
)
_OF_TLS: Final = (
    *(name for pair in _EITHER for name in pair), "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password",
    "ssl.crl.location", "ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list", "ssl.enabled.protocols",
)  # fmt: skip
_PEM_IN_ONE_LINE: Final = re.compile(r"(-----BEGIN ([A-Z0-9 ]+)-----)([A-Za-z0-9+/= \t]*)(-----END \2-----)")
_PEM_LINE: Final = 64  # characters (RFC 7468)


def pem_lines(text: str | None) -> str | None:
    """Return a PEM text whose blocks have lines. A text that has them is not copied: the copy of a key would stay in
    memory.

    The Java client accepts blocks with spaces in place of line breaks, as a continued line of a .properties file has
    them. OpenSSL does not.
    """
    if text is None or _PEM_IN_ONE_LINE.search(text) is None:
        return text

    def lines(block: re.Match[str]) -> str:
        body = "".join(block[3].split())
        wrapped = [body[at:at + _PEM_LINE] for at in range(0, len(body), _PEM_LINE)]
        return "\n".join(["", block[1], *wrapped, block[4], ""])

    return _PEM_IN_ONE_LINE.sub(lines, text)


class TlsOptions:
    """The TLS settings for the core; None for settings that are not set."""

    # Not a NamedTuple: its repr would show secrets.
    def __init__(self, settings: Settings) -> None:
        self.ca_location = settings.ssl_ca_location
        self.ca_pem = pem_lines(settings.ssl_ca_pem)
        self.certificate_location = settings.ssl_certificate_location
        self.certificate_pem = pem_lines(settings.ssl_certificate_pem)
        self.key_location = settings.ssl_key_location
        self.key_pem = pem_lines(settings.ssl_key_pem)
        self.key_password = settings.ssl_key_password
        self.keystore_location = settings.ssl_keystore_location
        self.keystore_password = settings.ssl_keystore_password
        self.crl_location = settings.ssl_crl_location
        self.cipher_suites = settings.ssl_cipher_suites
        self.curves = settings.ssl_curves_list
        self.sigalgs = settings.ssl_sigalgs_list
        versions = settings.ssl_enabled_protocols
        self.protocols = next(iter(versions)) if len(versions) == 1 else None  # both: the core's default
        self.verify = settings.enable_ssl_certificate_verification
        self.verify_host = settings.ssl_endpoint_identification_algorithm == "https"


def tls_options(settings: Settings) -> TlsOptions:
    """Return the TLS part of `settings`. check_tls() has checked it."""
    return TlsOptions(settings)


def _uses_tls(settings: Settings) -> bool:
    return settings.security_protocol in ("ssl", "sasl_ssl")


def check_tls(settings: Settings) -> str | None:
    """Return the error in the TLS settings; None if there is none."""
    if not _uses_tls(settings):
        return None
    for first, second in _EITHER:
        if _given(settings, first) and _given(settings, second):
            return f"{first} and {second} contradict each other: set one of them"
    certificate = next(filter(lambda name: _given(settings, name), _EITHER[1]), None)
    key = next(filter(lambda name: _given(settings, name), _EITHER[2]), None)
    if settings.ssl_keystore_location and (certificate or key):
        return f"ssl.keystore.location and {certificate or key} contradict each other: set one of them"
    if certificate and not key:
        return f"{certificate} is set without a private key: set ssl.key.location or ssl.key.pem"
    if key and not certificate:
        return f"{key} is set without a certificate: set ssl.certificate.location or ssl.certificate.pem"
    if settings.ssl_keystore_password is not None and not settings.ssl_keystore_location:
        return "ssl.keystore.password is set without ssl.keystore.location"
    if settings.ssl_key_password is not None and not (key or settings.ssl_keystore_location):
        return "ssl.key.password is set without a private key: set ssl.key.location or ssl.key.pem"
    if not settings.ssl_enabled_protocols:
        return "ssl.enabled.protocols has no version: set TLSv1.2, TLSv1.3 or both"
    return None


def tls_warnings(settings: Settings) -> list[str]:
    """Return warnings about settings that may not do what the user expects."""
    if _uses_tls(settings):
        if settings.enable_ssl_certificate_verification:
            return []
        return ["enable.ssl.certificate.verification is off: an attacker can pose as a broker, read and change all "
                "data"]
    given = sorted(name for name in _OF_TLS if name in settings.explicit)
    if not given:
        return []
    protocol = settings.security_protocol
    return [f"{', '.join(given)} has no effect with security.protocol={protocol}: set it to ssl or sasl_ssl"]


def _given(settings: Settings, name: str) -> bool:
    return bool(getattr(settings, name.replace(".", "_")))
