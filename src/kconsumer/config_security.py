"""The security part of the table of configuration properties.

Owns: SECURITY. Threads: any (immutable). Never: reads a value.
"""

from __future__ import annotations

from typing import Final

from kconsumer.config_property import ABSENT, SAME, Alias, Kind, Property, boolean, enum, function, refused, string, words

_REASON = "TLS and SASL are not part of this version yet"
_WINDOWS = "Windows' certificate stores are not there on this system: set `ssl.ca.location`"
_PROVIDERS = "OpenSSL's engines and providers are not loaded: set `ssl.key.location` or `ssl.keystore.location`"
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
    string("ssl.cipher.suites", None, "Cipher suites, separated by colons or commas, in OpenSSL's names or the "
           "standard's. Those of TLS 1.3 and those before are chosen apart: what is not named stays at its default, but "
           "where only suites of TLS 1.3 are named it is the only version."),
    string("ssl.curves.list", None, "Curves (groups) offered in the TLS handshake, separated by colons."),
    string("ssl.sigalgs.list", None, "Signature algorithms offered in the TLS handshake, separated by colons."),
    Property("ssl.enabled.protocols", Kind.FLAGS, frozenset({"TLSv1.2", "TLSv1.3"}), "Versions of TLS.",
             choices={"tlsv1.2": "TLSv1.2", "tlsv1.3": "TLSv1.3"}, librdkafka_default=ABSENT, java_default=SAME),
    string("ssl.key.location", None, "File of the client's private key (PEM)."),
    string("ssl.key.password", None, "Passphrase of the private key.", secret=True),
    string("ssl.key.pem", None, "The client's private key (PEM).", secret=True,
           aliases=(Alias("ssl.keystore.key", "Java"),)),
    string("ssl.certificate.location", None, "File of the client's certificate and those of the CAs between it and one "
           "that brokers know (PEM)."),
    string("ssl.certificate.pem", None, "The client's certificate, as in `ssl.certificate.location`.",
           aliases=(Alias("ssl.keystore.certificate.chain", "Java"),)),
    string("ssl.ca.location", None, "File of the certificates that are trusted (PEM), a folder of such files, or "
           "`probe`. Where neither this nor `ssl.ca.pem` is set, and with `probe`: what `SSL_CERT_FILE` and "
           "`SSL_CERT_DIR` name, else the system's."),
    string("ssl.ca.pem", None, "Certificates that are trusted (PEM).",
           aliases=(Alias("ssl.truststore.certificates", "Java"),)),
    refused(string("ssl.ca.certificate.stores", "Root", "Windows certificate stores."), _WINDOWS),
    string("ssl.crl.location", None, "File of lists of revoked certificates (PEM), one of each CA that signs brokers' "
           "certificates."),
    string("ssl.keystore.location", None, "File of the client's key and certificate (PKCS#12)."),
    string("ssl.keystore.password", None, "Passphrase of the keystore.", secret=True),
    refused(string("ssl.providers", None, "OpenSSL providers to load."), _PROVIDERS),
    refused(string("ssl.engine.location", None, "OpenSSL engine to load; deprecated in librdkafka."), _PROVIDERS),
    refused(string("ssl.engine.id", "dynamic", "Id of the OpenSSL engine."), _PROVIDERS),
    enum("ssl.endpoint.identification.algorithm", words("none", "https") | {"": "none"}, "https",
         "Whether the broker's certificate must be for the name by which it is connected to: `https`, or `none` (the Java "
         "client's empty string)."),
    boolean("enable.ssl.certificate.verification", True, "Whether the broker's certificate is checked."),
    refused(string("ssl.keystore.type", None, "Format of the Java client's keystore.", librdkafka_default=ABSENT,
                   java_default="JKS"), "a keystore is PKCS12: convert it with keytool -importkeystore", "PKCS12", "PEM"),
    refused(string("ssl.truststore.type", None, "Format of the Java client's truststore.", librdkafka_default=ABSENT,
                   java_default="JKS"), "give the trusted certificates as PEM in `ssl.ca.location`", "PEM"),
    refused(string("ssl.truststore.location", None, "The Java client's truststore.", librdkafka_default=ABSENT,
                   java_default=SAME), "give the trusted certificates as PEM in `ssl.ca.location`"),
    refused(string("ssl.truststore.password", None, "Password of the Java client's truststore.",
                   librdkafka_default=ABSENT, java_default=SAME, secret=True),
            "give the trusted certificates as PEM in `ssl.ca.location`"),
    refused(string("ssl.protocol", None, "Version of TLS.", librdkafka_default=ABSENT, java_default="TLSv1.3"),
            "set `ssl.enabled.protocols`", "TLS", "TLSv1.3"),
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
        "sasl.oauthbearer.scope.claim.name", "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.provider",
        "ssl.secure.random.implementation", "ssl.trustmanager.algorithm")),
)  # fmt: skip
