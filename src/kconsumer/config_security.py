"""The security part of the table of configuration properties.

Owns: SECURITY. Threads: any (immutable). Never: reads a value.
"""

from __future__ import annotations

from typing import Final

from kconsumer.config_property import ABSENT, SAME, Alias, Property, enum, function, refused, string, words

_REASON = "TLS and SASL are not part of this version yet"
_JAVA = "it configures Java's security classes"


def _later(name: str, doc: str, default: object = None, *aliases: str, secret: bool = False) -> Property:
    """A property whose value is checked by the security layer when that is there."""
    others = tuple(Alias(alias) for alias in aliases)
    return refused(string(name, default, doc, aliases=others, secret=secret), _REASON)  # type: ignore[arg-type]


def _java(name: str) -> Property:
    return refused(string(name, None, "A property of the Java client.", librdkafka_default=ABSENT, java_default=SAME,
                          secret=True), _JAVA)


SECURITY: Final[tuple[Property, ...]] = (
    enum("security.protocol", words("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"), "plaintext",
         "Protocol of the connections to brokers: TLS with `ssl` and `sasl_ssl`, SASL with `sasl_plaintext` and "
         "`sasl_ssl`."),
    _later("ssl.cipher.suites", "Cipher suites for TLS up to 1.2."),
    _later("ssl.curves.list", "Curves offered in the TLS handshake."),
    _later("ssl.sigalgs.list", "Signature algorithms offered in the TLS handshake."),
    _later("ssl.key.location", "File of the client's private key (PEM)."),
    _later("ssl.key.password", "Passphrase of the private key.", secret=True),
    _later("ssl.key.pem", "The client's private key (PEM).", secret=True),
    _later("ssl.certificate.location", "File of the client's certificate (PEM)."),
    _later("ssl.certificate.pem", "The client's certificate (PEM)."),
    _later("ssl.ca.location", "File or folder of the certificates that are trusted."),
    _later("ssl.ca.pem", "Certificates that are trusted (PEM)."),
    _later("ssl.ca.certificate.stores", "Windows certificate stores.", "Root"),
    _later("ssl.crl.location", "File of revoked certificates."),
    _later("ssl.keystore.location", "File of the client's key and certificate (PKCS#12)."),
    _later("ssl.keystore.password", "Passphrase of the keystore.", secret=True),
    _later("ssl.providers", "OpenSSL providers to load."),
    _later("ssl.engine.location", "OpenSSL engine to load; deprecated in librdkafka."),
    _later("ssl.engine.id", "Id of the OpenSSL engine.", "dynamic"),
    _later("ssl.endpoint.identification.algorithm", "How the broker's host name is checked: none or https.", "https"),
    _later("enable.ssl.certificate.verification", "Whether the broker's certificate is checked.", True),
    _later("https.ca.location", "File or folder of the certificates trusted for HTTPS."),
    _later("https.ca.pem", "Certificates trusted for HTTPS (PEM)."),
    _later("sasl.mechanism", "SASL mechanism.", "GSSAPI", "sasl.mechanisms"),
    _later("sasl.username", "User name for PLAIN and SCRAM."),
    _later("sasl.password", "Password for PLAIN and SCRAM.", secret=True),
    _later("sasl.kerberos.service.name", "Kerberos service name of the brokers.", "kafka"),
    _later("sasl.kerberos.principal", "Kerberos principal of this client.", "kafkaclient"),
    _later("sasl.kerberos.kinit.cmd", "Command that obtains a Kerberos ticket."),
    _later("sasl.kerberos.keytab", "File of the Kerberos keytab."),
    _later("sasl.kerberos.min.time.before.relogin", "Least time in ms between Kerberos logins.", 60_000),
    _later("enable.sasl.oauthbearer.unsecure.jwt", "Use unsecured tokens, for tests.", False),
    refused(function("oauth_cb", "Returns an OAUTHBEARER token."), _REASON),
    refused(function("oauthbearer_token_refresh_cb", "Refreshes an OAUTHBEARER token."), "set `oauth_cb`"),
    _later("sasl.oauthbearer.config", "Parameters handed to `oauth_cb`.", secret=True),
    _later("sasl.oauthbearer.method", "How a token is obtained: default or oidc.", "default"),
    _later("sasl.oauthbearer.client.id", "OIDC client id.", None, "sasl.oauthbearer.client.credentials.client.id"),
    _later("sasl.oauthbearer.client.secret", "OIDC client secret.", None,
           "sasl.oauthbearer.client.credentials.client.secret", secret=True),
    _later("sasl.oauthbearer.scope", "OIDC scope."),
    _later("sasl.oauthbearer.extensions", "SASL extensions sent with a token."),
    _later("sasl.oauthbearer.token.endpoint.url", "URL that issues tokens."),
    _later("sasl.oauthbearer.sub.claim.name", "Claim that names the principal.", "sub"),
    _later("sasl.oauthbearer.grant.type", "OAuth grant type.", "client_credentials"),
    _later("sasl.oauthbearer.assertion.algorithm", "Algorithm that signs the assertion.", "RS256"),
    _later("sasl.oauthbearer.assertion.private.key.file", "File of the key that signs the assertion."),
    _later("sasl.oauthbearer.assertion.private.key.passphrase", "Passphrase of that key.", secret=True),
    _later("sasl.oauthbearer.assertion.private.key.pem", "Key that signs the assertion (PEM).", secret=True),
    _later("sasl.oauthbearer.assertion.file", "File of a ready assertion."),
    _later("sasl.oauthbearer.assertion.claim.aud", "Audience claim of the assertion."),
    _later("sasl.oauthbearer.assertion.claim.exp.seconds", "Life of the assertion in seconds.", 300),
    _later("sasl.oauthbearer.assertion.claim.iss", "Issuer claim of the assertion."),
    _later("sasl.oauthbearer.assertion.claim.jti.include", "Whether the assertion has an id.", False),
    _later("sasl.oauthbearer.assertion.claim.nbf.seconds", "Seconds before now that the assertion starts at.", 60),
    _later("sasl.oauthbearer.assertion.claim.sub", "Subject claim of the assertion."),
    _later("sasl.oauthbearer.assertion.jwt.template.file", "File of the assertion's template."),
    _later("sasl.oauthbearer.metadata.authentication.type", "Cloud service that issues tokens.", "none"),
    *(refused(function(name, "Set through librdkafka's C interface."), "set the `ssl.` properties")
      for name in ("ssl_key", "ssl_certificate", "ssl_ca", "ssl_engine_callback_data", "ssl.certificate.verify_cb")),
    *(_java(name) for name in (
        "security.providers", "sasl.jaas.config", "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class", "sasl.login.class", "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms", "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name", "ssl.enabled.protocols", "ssl.engine.factory.class",
        "ssl.keymanager.algorithm", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.type",
        "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
        "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type")),
)  # fmt: skip
