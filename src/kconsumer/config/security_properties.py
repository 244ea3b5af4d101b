"""The security part of the table of configuration properties.

Owns: SECURITY. Threads: any (immutable). Never: reads a value.
"""

from __future__ import annotations

from typing import Final

from kconsumer.config.property import (
    ABSENT,
    SAME,
    Alias,
    Kind,
    Property,
    accepted,
    boolean,
    enum,
    function,
    integer,
    refused,
    string,
    url,
    words,
)

_WINDOWS = "Windows' certificate stores are not there on this system: set `ssl.ca.location`"
_PROVIDERS = ("engines and providers are named in OpenSSL's configuration file only: for a key set "
              "`ssl.key.location` or `ssl.keystore.location`")
_JAVA = "it configures Java's security classes"


def _java(name: str) -> Property:
    return refused(string(name, None, "A property of the Java client.", librdkafka_default=ABSENT, java_default=SAME,
                          secret=True), _JAVA)


def _no_jwt_bearer(name: str, default: object, doc: str, *satisfied_by: str) -> Property:
    """A property of the jwt-bearer grant."""
    prop = string(f"sasl.oauthbearer.{name}", default, doc, secret="private.key" in name)  # type: ignore[arg-type]
    return refused(prop, "the jwt-bearer grant is not offered: obtain the token in `oauth_cb`", *satisfied_by)


SECURITY: Final[tuple[Property, ...]] = (
    enum("security.protocol", words("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"), "plaintext",
         "Protocol of the connections to brokers: TLS with `ssl` and `sasl_ssl`, SASL with `sasl_plaintext` and "
         "`sasl_ssl`."),
    string("ssl.cipher.suites", None, "Cipher suites, separated by colons or commas, in OpenSSL's names or the "
           "standard's. Those of TLS 1.3 and those before are chosen apart: what is not named stays at its default, "
           "but where only suites of TLS 1.3 are named it is the only version."),
    string("ssl.curves.list", None, "Curves (groups) offered in the TLS handshake, separated by colons."),
    string("ssl.sigalgs.list", None, "Signature algorithms offered in the TLS handshake, separated by colons."),
    Property("ssl.enabled.protocols", Kind.FLAGS, frozenset({"TLSv1.2", "TLSv1.3"}), "Versions of TLS.",
             choices={"tlsv1.2": "TLSv1.2", "tlsv1.3": "TLSv1.3"}, librdkafka_default=ABSENT, java_default=SAME),
    string("ssl.key.location", None, "File of the client's private key (PEM)."),
    string("ssl.key.password", None, "Passphrase of the private key.", secret=True),
    string("ssl.key.pem", None, "The client's private key (PEM).", secret=True,
           aliases=(Alias("ssl.keystore.key", "Java"),), java_default=SAME),
    string("ssl.certificate.location", None, "File of the client's certificate and those of the CAs between it and one "
           "that brokers know (PEM)."),
    string("ssl.certificate.pem", None, "The client's certificate, as in `ssl.certificate.location`.",
           aliases=(Alias("ssl.keystore.certificate.chain", "Java"),), java_default=SAME),
    string("ssl.ca.location", None, "File of the certificates that are trusted (PEM), a folder of such files, or "
           "`probe`. Where neither this nor `ssl.ca.pem` is set, and with `probe`: what `SSL_CERT_FILE` and "
           "`SSL_CERT_DIR` name, else the system's."),
    string("ssl.ca.pem", None, "Certificates that are trusted (PEM).",
           aliases=(Alias("ssl.truststore.certificates", "Java"),), java_default=SAME),
    refused(string("ssl.ca.certificate.stores", "Root", "Windows certificate stores."), _WINDOWS),
    string("ssl.crl.location", None, "File of lists of revoked certificates (PEM), one of each CA that signs brokers' "
           "certificates."),
    string("ssl.keystore.location", None, "File of the client's key and certificate (PKCS#12)."),
    string("ssl.keystore.password", None, "Passphrase of the keystore.", secret=True),
    refused(string("ssl.providers", None, "OpenSSL providers to load."), _PROVIDERS),
    refused(string("ssl.engine.location", None, "OpenSSL engine to load; deprecated in librdkafka."), _PROVIDERS),
    refused(string("ssl.engine.id", "dynamic", "Id of the OpenSSL engine."), _PROVIDERS),
    enum("ssl.endpoint.identification.algorithm", words("none", "https") | {"": "none"}, "https",
         "Whether the broker's certificate must be for the name by which it is connected to: `https`, or `none` (the "
         "Java client's empty string)."),
    boolean("enable.ssl.certificate.verification", True, "Whether the broker's certificate is checked."),
    refused(string("ssl.keystore.type", None, "Format of the Java client's keystore.", librdkafka_default=ABSENT,
                   java_default="JKS"),
            "a keystore is PKCS12: convert it with keytool -importkeystore", "PKCS12", "PEM"),
    refused(string("ssl.truststore.type", None, "Format of the Java client's truststore.", librdkafka_default=ABSENT,
                   java_default="JKS"), "give the trusted certificates as PEM in `ssl.ca.location`", "PEM"),
    refused(string("ssl.truststore.location", None, "The Java client's truststore.", librdkafka_default=ABSENT,
                   java_default=SAME), "give the trusted certificates as PEM in `ssl.ca.location`"),
    refused(string("ssl.truststore.password", None, "Password of the Java client's truststore.",
                   librdkafka_default=ABSENT, java_default=SAME, secret=True),
            "give the trusted certificates as PEM in `ssl.ca.location`"),
    refused(string("ssl.protocol", None, "Version of TLS.", librdkafka_default=ABSENT, java_default="TLSv1.3"),
            "set `ssl.enabled.protocols`", "TLS", "TLSv1.3"),
    string("https.ca.location", None, "File or folder of the certificates trusted for HTTPS, when tokens are fetched; "
           "none or `probe`: the system's."),
    string("https.ca.pem", None, "Certificates trusted for HTTPS (PEM)."),
    string("sasl.mechanism", "GSSAPI", "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI.",
           aliases=(Alias("sasl.mechanisms"),), java_default=SAME),
    string("sasl.username", None, "User name for PLAIN and SCRAM."),
    string("sasl.password", None, "Password for PLAIN and SCRAM.", secret=True),
    string("sasl.jaas.config", None, "The Java client's way to `sasl.username`, `sasl.password` and the properties of "
           "OAUTHBEARER: an entry of PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule.", secret=True,
           librdkafka_default=ABSENT, java_default=SAME),
    string("sasl.kerberos.service.name", "kafka", "Kerberos service name of the brokers.", nonempty=True,
           java_default=None),
    string("sasl.kerberos.principal", None, "Kerberos principal of this client; none: that of the keytab, or of the "
           "credential cache.", librdkafka_default="kafkaclient"),
    accepted(string("sasl.kerberos.kinit.cmd", None, "Command that obtains a Kerberos ticket.", java_default=SAME,
                    librdkafka_default='kinit -R -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal} || '
                                       'kinit -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'),
             "the Kerberos library takes tickets from `sasl.kerberos.keytab` or the credential cache by itself"),
    string("sasl.kerberos.keytab", None, "File of the Kerberos keytab; none: tickets are taken from the credential "
           "cache (`KRB5CCNAME`)."),
    accepted(integer("sasl.kerberos.min.time.before.relogin", 0, 86_400_000, 60_000, "Least time in ms between "
                     "Kerberos logins.", java_default=SAME),
             "the Kerberos library renews tickets by itself"),
    boolean("enable.sasl.oauthbearer.unsecure.jwt", False, "Make unsecured tokens as `sasl.oauthbearer.config` says "
            "(`principal=… scope=… lifeSeconds=…`): for tests only."),
    function("oauth_cb", "Returns an OAUTHBEARER token, `(token, expires_at[, principal[, extensions]])`, when called "
             "with `sasl.oauthbearer.config`; runs inside the calls that wait."),
    refused(function("oauthbearer_token_refresh_cb", "Refreshes an OAUTHBEARER token."), "set `oauth_cb`"),
    string("sasl.oauthbearer.config", None, "What `oauth_cb` is called with, or what unsecured tokens say.",
           secret=True),
    enum("sasl.oauthbearer.method", words("default", "oidc"), "default", "How a token is obtained: by `oauth_cb` or "
         "`set_oauth_token()`, or by `oidc` (client credentials, KIP-768)."),
    string("sasl.oauthbearer.client.id", None, "OIDC client id.",
           aliases=(Alias("sasl.oauthbearer.client.credentials.client.id"),)),
    string("sasl.oauthbearer.client.secret", None, "OIDC client secret.",
           aliases=(Alias("sasl.oauthbearer.client.credentials.client.secret"),), secret=True),
    string("sasl.oauthbearer.scope", None, "OIDC scope.", java_default=SAME),
    string("sasl.oauthbearer.extensions", None, "SASL extensions sent with a token of OIDC: `key=value,…` (KIP-342)."),
    url("sasl.oauthbearer.token.endpoint.url", "URL that issues tokens. `http://` needs "
        "`sasl.oauthbearer.token.endpoint.allow.http`.", java_default=SAME),
    boolean("sasl.oauthbearer.token.endpoint.allow.http", False, "Take an `http://` URL as token endpoint, to which "
            "the client secret goes, and from which tokens come, readable by everyone on the path: for a proxy on the "
            "same machine.", librdkafka_default=ABSENT),
    accepted(string("sasl.oauthbearer.sub.claim.name", "sub", "Claim that names the principal.", java_default=SAME),
             "the broker names the principal", "sub"),
    _no_jwt_bearer("grant.type", "client_credentials", "OAuth grant type.", "client_credentials"),
    _no_jwt_bearer("assertion.algorithm", "RS256", "Algorithm that signs the assertion."),
    _no_jwt_bearer("assertion.private.key.file", None, "File of the key that signs the assertion."),
    _no_jwt_bearer("assertion.private.key.passphrase", None, "Passphrase of that key."),
    _no_jwt_bearer("assertion.private.key.pem", None, "Key that signs the assertion (PEM)."),
    _no_jwt_bearer("assertion.file", None, "File of a ready assertion."),
    _no_jwt_bearer("assertion.claim.aud", None, "Audience claim of the assertion."),
    _no_jwt_bearer("assertion.claim.exp.seconds", 300, "Life of the assertion in seconds."),
    _no_jwt_bearer("assertion.claim.iss", None, "Issuer claim of the assertion."),
    _no_jwt_bearer("assertion.claim.jti.include", False, "Whether the assertion has an id."),
    _no_jwt_bearer("assertion.claim.nbf.seconds", 60, "Seconds before now that the assertion starts at."),
    _no_jwt_bearer("assertion.claim.sub", None, "Subject claim of the assertion."),
    _no_jwt_bearer("assertion.jwt.template.file", None, "File of the assertion's template."),
    refused(string("sasl.oauthbearer.metadata.authentication.type", "none", "Cloud service that issues tokens."),
            "cloud services are asked by their own packages: call one in `oauth_cb` (docs/security.md)", "none"),
    *(refused(function(name, "Set through librdkafka's C interface."), "set the `ssl.` properties")
      for name in ("ssl_key", "ssl_certificate", "ssl_ca", "ssl_engine_callback_data", "ssl.certificate.verify_cb")),
    refused(string("sasl.login.callback.handler.class", None, "Java class that obtains a token.",
                   librdkafka_default=ABSENT, java_default=SAME),
            "a Java class cannot be loaded; Kafka's own OAuthBearerLoginCallbackHandler is accepted, since "
            "`sasl.oauthbearer.method=oidc` does the same",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
            "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"),
    *(_java(name) for name in (
        "security.providers", "sasl.client.callback.handler.class", "sasl.login.class",
        "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
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
