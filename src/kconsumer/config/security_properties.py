"""The security part of the table of configuration properties.

Owns: SECURITY, JWT_BEARER. Threads: any (immutable). Never: reads a value.
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

_WINDOWS = "this system does not have Windows' certificate stores: set `ssl.ca.location`"
_PROVIDERS = ("only OpenSSL's configuration file can set engines and providers: for a key set "
              "`ssl.key.location` or `ssl.keystore.location`")
_BROKERS = "the broker checks tokens: set it there"
_NO_CLASSES = "a Java class cannot be loaded"
_CLASSES = "org.apache.kafka.common.security.oauthbearer."


def _java(name: str, reason: str, *satisfied_by: str) -> Property:
    return refused(string(name, None, "A property of the Java client.", librdkafka_default=ABSENT, java_default=SAME,
                          secret=True), reason, *satisfied_by)


JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_OIDC: Final = "sasl.oauthbearer."
_CLAIM: Final = "sasl.oauthbearer.assertion.claim."


SECURITY: Final[tuple[Property, ...]] = (
    enum("security.protocol", words("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"), "plaintext",
         "Protocol of the connections to brokers: TLS with `ssl` and `sasl_ssl`, SASL with `sasl_plaintext` and "
         "`sasl_ssl`."),
    string("ssl.cipher.suites", None, "Cipher suites, separated by colons or commas, in OpenSSL's names or the "
           "standard's. TLS 1.3 and older versions have separate lists: a list without a suite keeps its default. "
           "With suites of TLS 1.3 only, TLS 1.3 is the only version."),
    string("ssl.curves.list", None, "Curves (groups) offered in the TLS handshake, separated by colons."),
    string("ssl.sigalgs.list", None, "Signature algorithms offered in the TLS handshake, separated by colons."),
    Property("ssl.enabled.protocols", Kind.FLAGS, frozenset({"TLSv1.2", "TLSv1.3"}), "Versions of TLS.",
             choices={"tlsv1.2": "TLSv1.2", "tlsv1.3": "TLSv1.3"}, librdkafka_default=ABSENT, java_default=SAME),
    string("ssl.key.location", None, "File of the client's private key (PEM)."),
    string("ssl.key.password", None, "Passphrase of the private key.", secret=True),
    string("ssl.key.pem", None, "The client's private key (PEM).", secret=True,
           aliases=(Alias("ssl.keystore.key", "Java"),), java_default=SAME),
    string("ssl.certificate.location", None, "File of the client's certificate and its intermediate CA certificates "
           "(PEM)."),
    # One text may have the certificate and the private key.
    string("ssl.certificate.pem", None, "The client's certificate, as in `ssl.certificate.location`.", secret=True,
           aliases=(Alias("ssl.keystore.certificate.chain", "Java"),), java_default=SAME),
    string("ssl.ca.location", None, "File of the trusted CA certificates (PEM), a folder of such files, or "
           "`probe`. With `probe`, or without this and `ssl.ca.pem`: the certificates in `SSL_CERT_FILE` and "
           "`SSL_CERT_DIR`, else the system's."),
    string("ssl.ca.pem", None, "Trusted CA certificates (PEM).",
           aliases=(Alias("ssl.truststore.certificates", "Java"),), java_default=SAME),
    refused(string("ssl.ca.certificate.stores", "Root", "Windows certificate stores."), _WINDOWS),
    string("ssl.crl.location", None, "File of certificate revocation lists (PEM), one for each CA that signs brokers' "
           "certificates."),
    string("ssl.keystore.location", None, "File of the client's key and certificate (PKCS#12)."),
    string("ssl.keystore.password", None, "Passphrase of the keystore.", secret=True),
    refused(string("ssl.providers", None, "OpenSSL providers to load."), _PROVIDERS),
    refused(string("ssl.engine.location", None, "OpenSSL engine to load; deprecated in librdkafka."), _PROVIDERS),
    refused(string("ssl.engine.id", "dynamic", "Id of the OpenSSL engine."), _PROVIDERS),
    enum("ssl.endpoint.identification.algorithm", words("none", "https") | {"": "none"}, "https",
         "Whether the broker's certificate must match its host name: `https`, or `none` (the "
         "Java client's empty string)."),
    boolean("enable.ssl.certificate.verification", True, "Verify the broker's certificate."),
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
    string("https.ca.location", None, "File or folder of the CA certificates trusted for the HTTPS token endpoint; "
           "not set or `probe`: the system's."),
    string("https.ca.pem", None, "CA certificates trusted for the HTTPS token endpoint (PEM)."),
    string("sasl.mechanism", "GSSAPI", "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI.",
           aliases=(Alias("sasl.mechanisms"),), java_default=SAME),
    string("sasl.username", None, "User name for PLAIN and SCRAM."),
    string("sasl.password", None, "Password for PLAIN and SCRAM.", secret=True),
    string("sasl.jaas.config", None, "The Java client's form of `sasl.username`, `sasl.password` and the properties of "
           "OAUTHBEARER: an entry of PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule.", secret=True,
           librdkafka_default=ABSENT, java_default=SAME),
    string("sasl.kerberos.service.name", "kafka", "Kerberos service name of the brokers.", nonempty=True,
           java_default=None),
    string("sasl.kerberos.principal", None, "Kerberos principal of this client; not set: the one in the keytab or the "
           "credential cache.", librdkafka_default="kafkaclient"),
    accepted(string("sasl.kerberos.kinit.cmd", None, "Command that obtains a Kerberos ticket.", java_default=SAME,
                    librdkafka_default='kinit -R -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal} || '
                                       'kinit -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'),
             "the Kerberos library takes tickets from `sasl.kerberos.keytab` or the credential cache by itself"),
    string("sasl.kerberos.keytab", None, "File of the Kerberos keytab; not set: tickets come from the credential "
           "cache (`KRB5CCNAME`)."),
    accepted(integer("sasl.kerberos.min.time.before.relogin", 0, 86_400_000, 60_000, "Minimum time in ms between "
                     "Kerberos logins.", java_default=SAME),
             "the Kerberos library renews tickets by itself"),
    boolean("enable.sasl.oauthbearer.unsecure.jwt", False, "Make unsecured tokens from `sasl.oauthbearer.config` "
            "(`principal=… scope=… lifeSeconds=…`): for tests only."),
    function("oauth_cb", "Called for an OAUTHBEARER token: returns `(token, expires_at[, principal[, extensions]])`. "
             "Its argument is `sasl.oauthbearer.config`. It runs inside the calls that wait."),
    refused(function("oauthbearer_token_refresh_cb", "Refreshes an OAUTHBEARER token."), "set `oauth_cb`"),
    string("sasl.oauthbearer.config", None, "Argument of `oauth_cb`, or the claims of unsecured tokens.",
           secret=True),
    enum("sasl.oauthbearer.method", words("default", "oidc"), "default", "Source of tokens: `oauth_cb` or "
         "`set_oauth_token()`, or `oidc` (client credentials, KIP-768)."),
    string("sasl.oauthbearer.client.id", None, "OIDC client id.",
           aliases=(Alias("sasl.oauthbearer.client.credentials.client.id"),)),
    string("sasl.oauthbearer.client.secret", None, "OIDC client secret.",
           aliases=(Alias("sasl.oauthbearer.client.credentials.client.secret"),), secret=True),
    string("sasl.oauthbearer.scope", None, "OIDC scope.", java_default=SAME),
    string("sasl.oauthbearer.extensions", None, "SASL extensions sent with an OIDC token: `key=value,…` (KIP-342)."),
    url("sasl.oauthbearer.token.endpoint.url", "URL that issues tokens. `http://` needs "
        "`sasl.oauthbearer.token.endpoint.allow.http`.", java_default=SAME),
    boolean("sasl.oauthbearer.token.endpoint.allow.http", False, "Allow an `http://` token endpoint. The client "
            "secret and the tokens are then readable on the network: use it only for a proxy on the "
            "same machine.", librdkafka_default=ABSENT),
    accepted(string("sasl.oauthbearer.sub.claim.name", "sub", "Claim that names the principal.", java_default=SAME),
             "the broker names the principal", "sub"),
    boolean(_OIDC + "header.urlencode", False, "URL-encode the client id and secret in the Authorization header "
            "(RFC 6749 §2.3.1).", librdkafka_default=ABSENT, java_default=SAME),
    enum(_OIDC + "grant.type", words("client_credentials", JWT_BEARER), "client_credentials",
         "How OIDC tokens are requested: by the client's credentials, or by an assertion (KIP-1139)."),
    enum(_OIDC + "assertion.algorithm", {"rs256": "RS256", "es256": "ES256"}, "RS256",
         "Signature algorithm of assertions."),
    string(_OIDC + "assertion.private.key.file", None, "File of the private key (PEM) that signs assertions. With "
           "`client_credentials` an assertion replaces `sasl.oauthbearer.client.secret` (KIP-1258)."),
    string(_OIDC + "assertion.private.key.passphrase", None, "Passphrase of that key.", secret=True),
    string(_OIDC + "assertion.private.key.pem", None, "The private key that signs assertions (PEM).", secret=True),
    string(_OIDC + "assertion.file", None, "File of an assertion that another program renews, instead of a key."),
    string(_CLAIM + "aud", None, "Audience in assertions."),
    integer(_CLAIM + "exp.seconds", 1, 2**31 - 1, 300, "Life of an assertion in seconds."),
    string(_CLAIM + "iss", None, "Issuer in assertions."),
    boolean(_CLAIM + "jti.include", False, "Give each assertion a random id."),
    integer(_CLAIM + "nbf.seconds", 0, 2**31 - 1, 60, "Seconds before now from which an assertion is valid."),
    string(_CLAIM + "sub", None, "Subject in assertions."),
    string(_OIDC + "assertion.jwt.template.file", None, "JSON file with more of the assertion: `header` and `payload`.",
           aliases=(Alias(_OIDC + "assertion.template.file", "Java"),), java_default=SAME),
    enum(_OIDC + "metadata.authentication.type", words("none", "azure_imds", "aws_iam"), "none", "`azure_imds`: "
         "tokens of Azure's metadata service, for the `query=…` in `sasl.oauthbearer.config`. `aws_iam` is refused: "
         "call AWS's package in `oauth_cb` (docs/security.md)."),
    *(refused(function(name, "Set in librdkafka's C interface."), "set the `ssl.` properties")
      for name in ("ssl_key", "ssl_certificate", "ssl_ca", "ssl_engine_callback_data", "ssl.certificate.verify_cb")),
    refused(string("sasl.login.callback.handler.class", None, "Java class that obtains a token.",
                   librdkafka_default=ABSENT, java_default=SAME),
            f"{_NO_CLASSES}; Kafka's own OAuthBearerLoginCallbackHandler is accepted, since "
            "`sasl.oauthbearer.method=oidc` does the same", _CLASSES + "OAuthBearerLoginCallbackHandler",
            _CLASSES + "secured.OAuthBearerLoginCallbackHandler"),
    *(_java(name, f"{_NO_CLASSES}: {instead}") for name, instead in (
        ("security.providers", "OpenSSL's configuration file sets providers"),
        ("sasl.client.callback.handler.class", "set `sasl.username` and `sasl.password`, or `oauth_cb`"),
        ("sasl.login.class", "set `oauth_cb`"),
        ("ssl.engine.factory.class", "set the `ssl.` properties"))),
    _java("sasl.oauthbearer.jwt.retriever.class", f"{_NO_CLASSES}: set `sasl.oauthbearer.grant.type` or `oauth_cb`; "
          "Kafka's own retriever of client credentials is accepted", _CLASSES + "DefaultJwtRetriever",
          _CLASSES + "ClientCredentialsJwtRetriever"),
    _java("sasl.oauthbearer.jwt.validator.class", f"{_NO_CLASSES}: the broker validates tokens; Kafka's own validators "
          "are accepted", *(f"{_CLASSES}{kind}JwtValidator" for kind in ("Default", "Broker", "Client"))),
    *(_java(name, "the Kerberos library renews tickets by itself: remove it") for name in (
        "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor")),
    *(_java(name, "a request for a token takes at most 30 s, and 10 s without a byte: remove it") for name in (
        "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms")),
    *(_java(name, "a token is replaced after 80 % of its life: remove it") for name in (
        "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter")),
    *(_java(name, "a failed request for a token is repeated after 1 to 10 s: remove it") for name in (
        "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms")),
    *(_java(f"sasl.oauthbearer.{name}", _BROKERS) for name in (
        "allow.unverified.audience", "allow.unverified.issuer", "clock.skew.seconds", "expected.audience",
        "expected.issuer", "jwks.endpoint.refresh.ms", "jwks.endpoint.retry.backoff.max.ms",
        "jwks.endpoint.retry.backoff.ms", "jwks.endpoint.url", "scope.claim.name")),
    *(_java(name, "OpenSSL implements TLS here: remove it") for name in (
        "ssl.keymanager.algorithm", "ssl.provider", "ssl.secure.random.implementation", "ssl.trustmanager.algorithm")),
)  # fmt: skip
