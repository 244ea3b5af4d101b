"""The `ssl.` properties: which belong together, which contradict each other, what is said where they do nothing."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import kconsumer
from kconsumer.config import Settings, parse
from kconsumer.config.tls import TlsOptions, pem_lines, tls_options


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, level: int, text: str, *args: object) -> None:
        assert level == logging.WARNING
        self.lines.append(text % args)


def settings(protocol: str = "ssl", **given: Any) -> Settings:
    return parse({"bootstrap.servers": "h", "security.protocol": protocol,
                  **{name.replace("_", "."): value for name, value in given.items()}})


def wrong(**given: Any) -> str:
    with pytest.raises(kconsumer.ConfigurationError) as caught:
        settings(**given)
    return str(caught.value.args[0].str())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl_ca_location": "a", "ssl_ca_pem": "b"}, "ssl.ca.location and ssl.ca.pem contradict each other"),
        ({"ssl_certificate_location": "a", "ssl_certificate_pem": "b"}, "ssl.certificate.location and ssl.cert"),
        ({"ssl_key_location": "a", "ssl_key_pem": "secret"}, "ssl.key.location and ssl.key.pem contradict each other"),
        ({"ssl_certificate_location": "a"}, "ssl.certificate.location is set without a private key: set ssl.key."),
        ({"ssl_key_pem": "secret"}, "ssl.key.pem is set without a certificate: set ssl.certificate.location"),
        ({"ssl_keystore_location": "a", "ssl_key_location": "b"}, "ssl.keystore.location and ssl.key.location "),
        ({"ssl_keystore_password": "secret"}, "ssl.keystore.password is set without ssl.keystore.location"),
        ({"ssl_key_password": "secret"}, "ssl.key.password is set without a private key"),
        ({"ssl_enabled_protocols": ""}, "ssl.enabled.protocols has no version"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "ssl.enabled.protocols"),
        ({"ssl_truststore_location": "a.jks"}, "give the trusted certificates as PEM in `ssl.ca.location`"),
        ({"ssl_truststore_type": "JKS"}, "give the trusted certificates as PEM"),
        ({"ssl_keystore_type": "JKS"}, "convert it with keytool"),
        ({"ssl_engine_location": "a"}, "can set engines and providers: for a key set `ssl.key.location`"),
        ({"ssl_providers": "legacy"}, "only OpenSSL's configuration file can set engines and providers"),
        ({"ssl_ca_certificate_stores": "Root"}, "this system does not have Windows' certificate stores"),
        ({"ssl_endpoint_identification_algorithm": "http"}, "expected one of none, https"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(given: dict[str, str], message: str) -> None:
    text = wrong(**given)
    assert message in text and "secret" not in text


@pytest.mark.parametrize("value", ["none", "", "NONE"])
def test_javas_value_for_no_identification(value: str) -> None:
    assert not tls_options(settings(ssl_endpoint_identification_algorithm=value)).verify_host
    assert tls_options(settings()).verify_host


def test_javas_names() -> None:
    made = tls_options(settings("SSL", ssl_truststore_type="PEM", ssl_keystore_type="PEM",
                                ssl_truststore_certificates="trusted", ssl_keystore_key="key",
                                ssl_keystore_certificate_chain="chain", ssl_protocol="TLSv1.3"))
    assert (made.ca_pem, made.key_pem, made.certificate_pem) == ("trusted", "key", "chain")


def test_pem_texts_without_line_breaks() -> None:
    """As Java accepts them."""
    block = f"-----BEGIN CERTIFICATE-----\n{'A' * 64}\n{'B' * 64}\nC+/=\n-----END CERTIFICATE-----"
    key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----"
    found = pem_lines(f"a comment {block.replace(chr(10), ' ')} {block.replace(chr(10), '')} {key}")
    assert found is not None
    assert found == f"a comment \n{block}\n \n{block}\n {key}"
    assert pem_lines(block) is block  # a copy of a key would not be wiped
    assert pem_lines(None) is None


@pytest.mark.parametrize(
    ("versions", "core"), [("TLSv1.3", "TLSv1.3"), ("tlsv1.2", "TLSv1.2"), ("TLSv1.2,TLSv1.3", None), (None, None)])
def test_versions(versions: str | None, core: str | None) -> None:
    given = {} if versions is None else {"ssl_enabled_protocols": versions}
    assert tls_options(settings(**given)).protocols == core


def test_settings_without_effect_are_logged_once() -> None:
    log = Log()
    settings("plaintext", ssl_ca_location="/nowhere", ssl_key_password="secret", logger=log)
    (line,) = log.lines
    assert line == ("ssl.ca.location, ssl.key.password has no effect with security.protocol=plaintext: set it to ssl "
                    "or sasl_ssl")


def test_disabled_verification_is_logged() -> None:
    log = Log()
    settings(enable_ssl_certificate_verification=False, logger=log)
    (line,) = log.lines
    assert line.startswith("enable.ssl.certificate.verification is off: ")


def test_options_show_nothing() -> None:
    made = TlsOptions(settings(ssl_certificate_pem="c", ssl_key_pem="secret-key", ssl_key_password="secret-word"))
    assert "secret" not in repr(made) and "secret" not in str(made)


def test_a_file_that_cannot_be_read_fails_the_construction() -> None:
    with pytest.raises(kconsumer.ConfigurationError, match="'/none/such' cannot be read: No such file"):
        kconsumer.Consumer({"bootstrap.servers": "h", "security.protocol": "ssl", "ssl.ca.location": "/none/such"})
