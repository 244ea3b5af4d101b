"""Checks the SASL properties before the first connection: missing ones, and contradictions.

Owns: check_sasl, sasl_warnings, prepared, Hidden, and the parsers of property values: JAAS entries, extensions,
claims. Threads: any. Never: opens a connection, obtains a token (security/ does), puts a secret into a message.
"""

from __future__ import annotations

import re
import stringprep
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kconsumer.config.security_properties import JWT_BEARER
from kconsumer.config.values import configuration_error

if TYPE_CHECKING:
    from kconsumer.config.settings import Settings

__all__ = [
    "JWT_BEARER", "LONGEST_LIFE_S", "Hidden", "check_sasl", "checked_extensions", "prepared", "read_extensions",
    "read_jaas", "read_unsecured", "sasl_warnings", "token_url", "uses_assertions",
]  # fmt: skip


class Hidden(str):
    """A str whose repr hides it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a secret")


SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = ("PLAIN", *SCRAM, "OAUTHBEARER", "GSSAPI")
LONGEST_LIFE_S: Final = 100 * 365 * 86400  # longest lifetime of a token

# RFC 7628 §3.1
_EXTENSION_KEY: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x20-\x7e\t\r\n]*")

_OF_SECRETS: Final = ("sasl.oauthbearer.client.secret", "sasl.oauthbearer.header.urlencode")
_ASSERTION_FILE: Final = "sasl.oauthbearer.assertion.file"
_ASSERTION_KEYS: Final = ("sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.private.key.pem")
_OF_SIGNED_ASSERTIONS: Final = tuple(f"sasl.oauthbearer.assertion.{name}" for name in (
    "private.key.passphrase", "algorithm", "claim.aud", "claim.exp.seconds", "claim.iss", "claim.jti.include",
    "claim.nbf.seconds", "claim.sub", "jwt.template.file"))
# The settings of an OIDC provider, which Azure's metadata service does not use.
_OF_PROVIDERS: Final = ("sasl.oauthbearer.client.id", *_OF_SECRETS, "sasl.oauthbearer.scope",
                        "sasl.oauthbearer.grant.type", _ASSERTION_FILE, *_ASSERTION_KEYS, *_OF_SIGNED_ASSERTIONS)
_OF_OIDC: Final = (*_OF_PROVIDERS, "sasl.oauthbearer.extensions", "sasl.oauthbearer.token.endpoint.url",
                   "sasl.oauthbearer.token.endpoint.allow.http", "sasl.oauthbearer.metadata.authentication.type")
_AZURE_URL: Final = "http://169.254.169.254/metadata/identity/oauth2/token"

# The mechanisms that each setting applies to. All settings apply only to SASL.
_MECHANISMS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "sasl.username": ("PLAIN", *SCRAM),
    "sasl.password": ("PLAIN", *SCRAM),
    "sasl.kerberos.service.name": ("GSSAPI",),
    "sasl.kerberos.principal": ("GSSAPI",),
    "sasl.kerberos.keytab": ("GSSAPI",),
    "oauth_cb": ("OAUTHBEARER",),
    "enable.sasl.oauthbearer.unsecure.jwt": ("OAUTHBEARER",),
    "sasl.oauthbearer.config": ("OAUTHBEARER",),
    "sasl.oauthbearer.method": ("OAUTHBEARER",),
    **dict.fromkeys(_OF_OIDC, ("OAUTHBEARER",)),
}


def check_sasl(settings: Settings) -> str | None:
    """Return the error in the SASL settings; None if there is none."""
    if not settings.security_protocol.startswith("sasl_"):
        for name in ("sasl.mechanism", *_MECHANISMS_OF):
            if name in settings.explicit:
                return (f"{name} is set, but security.protocol={settings.security_protocol} uses no SASL: set it to "
                        "sasl_ssl or sasl_plaintext")
        return None
    mechanism = settings.sasl_mechanism
    if mechanism not in MECHANISMS:
        return f"sasl.mechanism: {mechanism!r} is not one of {', '.join(MECHANISMS)}"
    for name, mechanisms in _MECHANISMS_OF.items():
        if name in settings.explicit and mechanism not in mechanisms:
            hint = " (the default)" if "sasl.mechanism" not in settings.explicit else ""
            return f"{name} applies only to {', '.join(mechanisms)}, but sasl.mechanism is {mechanism}{hint}"
    if mechanism == "OAUTHBEARER":
        return _check_oauthbearer(settings)
    return None if mechanism == "GSSAPI" else _check_password(settings)


def _check_password(settings: Settings) -> str | None:
    for name, value in (("sasl.username", settings.sasl_username), ("sasl.password", settings.sasl_password)):
        if value is None:
            return f"sasl.mechanism={settings.sasl_mechanism} needs {name}"
        problem = prepared(settings.sasl_mechanism, value)
        if problem is not None:
            return f"{name} {problem}"
    return None


def prepared(mechanism: str, text: str) -> str | None:
    """Return why a user name or password is unusable; None if it is usable.

    RFC 5802 requires both in the form of SASLprep (RFC 4013). Kafka's brokers keep the text that was entered when the
    user was created. Where the two forms differ, kconsumer cannot know the broker's form and refuses the value.
    """
    if not text:
        return "is empty"
    if "\0" in text:
        return "contains a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains half of a surrogate pair"
    if mechanism not in SCRAM or (text.isascii() and text.isprintable()):
        return None
    if _prohibited(text):
        return "contains a character that SASLprep (RFC 4013) prohibits"
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in text if not stringprep.in_table_b1(c))
    if unicodedata.ucd_3_2_0.normalize("NFKC", mapped) != text:
        return ("is not in the form of SASLprep (RFC 4013), which only some brokers apply: "
                "use Unicode's NFKC form, without soft hyphens and unusual spaces")
    return None


def _prohibited(text: str) -> bool:
    tables = (stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4, stringprep.in_table_c5,
              stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8, stringprep.in_table_c9)
    return any(table(c) for c in text for table in tables) or _mixes_directions(text)


def _mixes_directions(text: str) -> bool:
    """Return whether right-to-left text breaks RFC 3454 §6.

    It must not contain left-to-right characters, and must begin and end with right-to-left ones.
    """
    if not any(map(stringprep.in_table_d1, text)):
        return False
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return any(map(stringprep.in_table_d2, text)) or not ends


def _check_oauthbearer(settings: Settings) -> str | None:
    oidc = settings.sasl_oauthbearer_method == "oidc"
    sources = [name for name, used in (("oauth_cb", settings.oauth_cb is not None),
                                       ("sasl.oauthbearer.method=oidc", oidc),
                                       ("enable.sasl.oauthbearer.unsecure.jwt",
                                        settings.enable_sasl_oauthbearer_unsecure_jwt)) if used]
    if len(sources) > 1:
        return f"{' and '.join(sources)} contradict each other: set one of them"
    if settings.enable_sasl_oauthbearer_unsecure_jwt:
        try:
            read_unsecured(settings.sasl_oauthbearer_config or "")
        except ValueError as wrong:
            return f"sasl.oauthbearer.config: {wrong}"
    if not oidc:
        for name in _OF_OIDC:
            if name in settings.explicit:
                return f"{name} is set, but only sasl.oauthbearer.method=oidc uses it"
        return None
    return _check_oidc(settings)


def _check_oidc(settings: Settings) -> str | None:
    kind = settings.sasl_oauthbearer_metadata_authentication_type
    if kind == "aws_iam":
        return ("sasl.oauthbearer.metadata.authentication.type=aws_iam is not supported: call AWS's "
                "get_web_identity_token in oauth_cb (docs/security.md)")
    if settings.https_ca_location is not None and settings.https_ca_pem is not None:
        return "https.ca.location and https.ca.pem contradict each other: set one of them"
    if kind == "azure_imds":
        for name in _OF_PROVIDERS:
            if name in settings.explicit:
                return f"{name} is set, but sasl.oauthbearer.metadata.authentication.type=azure_imds does not use it"
        try:
            _azure_query(settings)
        except ValueError as wrong:
            return f"sasl.oauthbearer.config: {wrong}"
    else:
        problem = _check_assertions(settings) or _check_provider(settings)
        if problem is not None:
            return problem
    return _check_extensions(settings)


def uses_assertions(settings: Settings) -> bool:
    """Return whether an assertion proves the client's identity, and not a secret."""
    return any(name in settings.explicit for name in (_ASSERTION_FILE, *_ASSERTION_KEYS))


def _check_assertions(settings: Settings) -> str | None:
    grants = settings.sasl_oauthbearer_grant_type == JWT_BEARER
    sources = [name for name in (_ASSERTION_FILE, *_ASSERTION_KEYS) if name in settings.explicit]
    if len(sources) > 1:
        return f"{' and '.join(sources)} contradict each other: set one of them"
    if grants and not sources:
        return f"sasl.oauthbearer.grant.type={JWT_BEARER} needs {', '.join(_ASSERTION_KEYS)} or {_ASSERTION_FILE}"
    for name in _OF_SIGNED_ASSERTIONS if sources in ([], [_ASSERTION_FILE]) else ():
        if name in settings.explicit:
            return f"{name} is set, but only assertions signed with {' or '.join(_ASSERTION_KEYS)} have it"
    for name in ("sasl.oauthbearer.client.id", *_OF_SECRETS) if grants else _OF_SECRETS if sources else ():
        if name in settings.explicit:
            return f"{name} is set, but the assertion of {sources[0]} takes its place: set one of them"
    return None


def _check_provider(settings: Settings) -> str | None:
    secret = () if uses_assertions(settings) else (
        ("sasl.oauthbearer.client.id", settings.sasl_oauthbearer_client_id),
        ("sasl.oauthbearer.client.secret", settings.sasl_oauthbearer_client_secret))
    for name, value in (("sasl.oauthbearer.token.endpoint.url", settings.sasl_oauthbearer_token_endpoint_url), *secret):
        if not value:
            return f"sasl.oauthbearer.method=oidc needs {name}"
        if (problem := prepared("OAUTHBEARER", value)) is not None:
            return f"{name} {problem}"
    if _plain_endpoint(settings) and not settings.sasl_oauthbearer_token_endpoint_allow_http:
        return ("sasl.oauthbearer.token.endpoint.url is http://, which exposes the client secret "
                "on the network: use https://, or set sasl.oauthbearer.token.endpoint.allow.http=true")
    return None


def token_url(settings: Settings) -> str:
    """Return the URL that tokens come from."""
    url = settings.sasl_oauthbearer_token_endpoint_url
    if settings.sasl_oauthbearer_metadata_authentication_type != "azure_imds":
        return url or ""
    url = url or _AZURE_URL
    query = _azure_query(settings)
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def _azure_query(settings: Settings) -> str:
    """Return the query in ``sasl.oauthbearer.config``: ``query=…``. Raises ValueError."""
    query = ""
    for part in (settings.sasl_oauthbearer_config or "").split():
        key, _, query = part.partition("=")
        if key != "query" or not query:
            raise ValueError("expected query=… for azure_imds, such as query=api-version=2025-04-07&resource=…")
    return query


def _plain_endpoint(settings: Settings) -> bool:
    """Return whether secrets go to an http:// endpoint. Settings hold the URL in its normal form."""
    if settings.sasl_oauthbearer_metadata_authentication_type == "azure_imds":  # the service has nothing else
        return False
    return (settings.sasl_oauthbearer_token_endpoint_url or "").startswith("http://")


def sasl_warnings(settings: Settings) -> list[str]:
    """Return warnings about settings that may not do what the user expects."""
    if not _plain_endpoint(settings):
        return []
    warnings = ["sasl.oauthbearer.token.endpoint.url is http://: the client secret and the tokens are readable on the "
                "way"]
    if settings.https_ca_location is not None or settings.https_ca_pem is not None:
        warnings.append("https.ca.location and https.ca.pem have no effect: the token endpoint is http://")
    return warnings


def _check_extensions(settings: Settings) -> str | None:
    try:
        read_extensions(settings.sasl_oauthbearer_extensions or "")
    except ValueError as wrong:
        return f"sasl.oauthbearer.extensions: {wrong}"
    return None


def read_extensions(text: str) -> dict[str, str]:
    """``key=value,key=value`` → dict. Raises ValueError."""
    found: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not _EXTENSION_KEY.fullmatch(key) or not _EXTENSION_VALUE.fullmatch(value) or key == "auth":
            raise ValueError(f"{key!r} is not key=value: a key consists of letters and is not 'auth'")
        found[key] = value
    return found


def checked_extensions(extensions: object) -> dict[str, str]:
    """Return the SASL extensions (KIP-342) of a token; an empty dict if it has none.

    Raises:
        TypeError, ValueError: an extension cannot be sent.
    """
    if extensions is None:
        return {}
    if not isinstance(extensions, Mapping):
        raise TypeError(f"SASL extensions must be a dict, not {type(extensions).__name__}")
    for key, value in extensions.items():
        if not isinstance(key, str) or not _EXTENSION_KEY.fullmatch(key) or key == "auth":
            raise ValueError(f"invalid name {key!r} of a SASL extension: expected letters, and not 'auth'")
        if not isinstance(value, str) or not _EXTENSION_VALUE.fullmatch(value):
            raise ValueError(f"invalid value of SASL extension {key}: expected printable ASCII")
    return dict(extensions)


_UNSECURED: Final = re.compile(r"(?P<key>\w+)=(?P<value>\S+)")
_CLAIM_DEFAULTS: Final[Mapping[str, str]] = {
    "principalClaimName": "sub", "principal": "", "scopeClaimName": "scope", "scope": "", "lifeSeconds": "3600"}


def read_unsecured(text: str) -> dict[str, Any]:
    """Read ``sasl.oauthbearer.config`` for unsecured tokens, in librdkafka's form.

    The form is ``principal=… scope=a,b lifeSeconds=… extension_x=…``. Raises ValueError, without quoting a value.
    """
    found: dict[str, Any] = dict(_CLAIM_DEFAULTS) | {"extensions": {}}
    for part in text.split():
        match = _UNSECURED.fullmatch(part)
        key = match["key"] if match else ""
        if match and key.startswith("extension_"):
            found["extensions"][key.removeprefix("extension_")] = match["value"]
        elif match and key in _CLAIM_DEFAULTS:
            found[key] = match["value"]
        else:
            raise ValueError(f"unknown key {key or '(a part without =)'}: expected one of "
                             f"{', '.join(_CLAIM_DEFAULTS)}, extension_<name>")
    if not found["principal"]:
        raise ValueError("principal= is missing")
    if not found["lifeSeconds"].isdecimal() or not 0 < int(found["lifeSeconds"]) <= LONGEST_LIFE_S:
        raise ValueError("lifeSeconds= is not a number of seconds")
    checked_extensions(found["extensions"])
    return found


_LOGIN: Final = re.compile(r"\s*(?P<module>[\w.$]+)\s+(?P<flag>\w+)(?P<options>(?:[^\";]|\"(?:[^\"\\]|\\.)*\")*);\s*",
                           re.DOTALL)
_OPTION: Final = re.compile(r"\s*(?P<key>\w+)\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s\";]+))\s*",
                            re.DOTALL)
_PASSWORD: Final = {"username": "sasl.username", "password": "sasl.password"}
_MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    "PlainLoginModule": _PASSWORD,
    "ScramLoginModule": _PASSWORD,
    "OAuthBearerLoginModule": {"clientId": "sasl.oauthbearer.client.id", "scope": "sasl.oauthbearer.scope",
                               "clientSecret": "sasl.oauthbearer.client.secret"},
}
_EXTENSION: Final = "extension_"
# Options of OAuthBearerLoginModule for unsecured tokens, and their names in sasl.oauthbearer.config.
_UNSECURED_LOGIN: Final[Mapping[str, str]] = {
    "unsecuredLoginStringClaim_sub": "principal", "unsecuredLoginListClaim_scope": "scope",
    "unsecuredLoginStringClaim_scope": "scope", "unsecuredLoginPrincipalClaimName": "principalClaimName",
    "unsecuredLoginScopeClaimName": "scopeClaimName", "unsecuredLoginLifetimeSeconds": "lifeSeconds",
}
_UNSECURED_EXTENSION: Final = "unsecuredLoginExtension_"
_INSTEAD: Final = {
    "Krb5LoginModule": "set sasl.kerberos.keytab, sasl.kerberos.principal and sasl.kerberos.service.name",
    "IAMLoginModule": "set oauth_cb to a function that calls the signer package (docs/security.md)",
}


def read_jaas(text: str) -> dict[str, Any]:
    """Return the properties in a JAAS entry of the Plain, Scram or OAuthBearer module.

    Raises:
        ConfigurationError: another module (the message has its equivalent), or text that is not a JAAS entry.
    """
    entry = _LOGIN.fullmatch(text)
    if entry is None:
        raise configuration_error('invalid value of sasl.jaas.config: expected module required key="value" …;')
    module = entry["module"].rsplit(".", 1)[-1]
    if module not in _MODULES:
        instead = _INSTEAD.get(module, f"only {', '.join(_MODULES)} are supported")
        raise configuration_error(f"sasl.jaas.config: {module} is a Java class: {instead}")
    options: dict[str, str] = {}
    at = 0
    while at < len(entry["options"].rstrip()):
        option = _OPTION.match(entry["options"], at)
        if option is None:
            raise configuration_error("sasl.jaas.config: expected key=\"value\" after the module")
        quoted = option["quoted"]
        options[option["key"]] = option["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        at = option.end()
    return _of_oauthbearer(options) if module == "OAuthBearerLoginModule" else _of_login(module, options)


def _of_login(module: str, options: Mapping[str, str]) -> dict[str, Any]:
    names = _MODULES[module]
    for key in sorted(options):
        if key not in names:
            # The name may be a part of a password with a quotation mark: it is not shown.
            raise configuration_error(f"sasl.jaas.config: {module} accepts {', '.join(names)} only: write a quotation "
                                      'mark in a value as \\"')
    return {names[key]: value for key, value in options.items()}


def _of_oauthbearer(options: Mapping[str, str]) -> dict[str, Any]:
    """Read the options: a client means OIDC, claims mean unsecured tokens, no options mean nothing."""
    if any(key.startswith("unsecuredLogin") for key in options):
        return _of_unsecured(options)
    extensions = {key.removeprefix(_EXTENSION): value for key, value in options.items() if key.startswith(_EXTENSION)}
    found = _of_login("OAuthBearerLoginModule", {k: v for k, v in options.items() if not k.startswith(_EXTENSION)})
    if any("," in value for value in extensions.values()):
        raise configuration_error("sasl.jaas.config: the value of an extension must not have a comma")
    if extensions:
        found["sasl.oauthbearer.extensions"] = ",".join(f"{key}={value}" for key, value in extensions.items())
    return found | {"sasl.oauthbearer.method": "oidc"} if found else {}


def _of_unsecured(options: Mapping[str, str]) -> dict[str, Any]:
    words = []
    for key, value in options.items():
        name = _UNSECURED_LOGIN.get(key) or (
            _EXTENSION + key.removeprefix(_UNSECURED_EXTENSION) if key.startswith(_UNSECURED_EXTENSION) else None)
        if name is None:
            raise configuration_error(f"sasl.jaas.config: {key} has no equivalent in sasl.oauthbearer.config")
        if not value or any(map(str.isspace, value)):
            raise configuration_error(f"sasl.jaas.config: the value of {key} must not be empty or have spaces")
        words.append(f"{name}={value}")
    return {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": " ".join(words)}
