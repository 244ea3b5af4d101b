"""SASL's properties: which belong together, and what tokens may be."""

from __future__ import annotations

import json
import pickle
import time
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer import ConfigurationError, config
from kconsumer.config.sasl import Hidden, prepared, read_extensions, read_jaas, read_unsecured
from kconsumer.security.oauth import unsecured_token
from kconsumer.security.tokens import check_token

SASL = {"security.protocol": "sasl_plaintext"}
PLAIN = {**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "hunter2"}
OAUTH = {**SASL, "sasl.mechanism": "OAUTHBEARER"}
OIDC = {**OAUTH, "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "id",
        "sasl.oauthbearer.client.secret": "hunter2", "sasl.oauthbearer.token.endpoint.url": "https://idp/token"}
LOGIN = "org.apache.kafka.common.security.{}LoginModule required"


def parsed(given: dict[str, Any]) -> config.Settings:
    return config.parse({"bootstrap.servers": "h", **given})


@pytest.mark.parametrize("given", [PLAIN, OAUTH, OIDC, SASL, {**PLAIN, "sasl.mechanism": "SCRAM-SHA-512"},
                                   {**OAUTH, "oauth_cb": print}])
def test_settings_that_fit(given: dict[str, Any]) -> None:
    assert parsed(given).security_protocol == "sasl_plaintext"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sasl.username": "u"}, "sasl.username is set, but security.protocol=plaintext uses no SASL"),
        ({"oauth_cb": print}, "oauth_cb is set, but security.protocol=plaintext"),
        ({"sasl.mechanisms": "PLAIN"}, "sasl.mechanism is set, but security.protocol=plaintext"),
        ({**SASL, "sasl.mechanism": "DIGEST-MD5"}, "'DIGEST-MD5' is not one of PLAIN, SCRAM-SHA-256"),
        ({**SASL, "sasl.mechanism": "PLAIN"}, "sasl.mechanism=PLAIN needs sasl.username"),
        ({**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "u"}, "sasl.mechanism=PLAIN needs sasl.password"),
        ({**PLAIN, "sasl.password": ""}, "sasl.password is empty"),
        ({**SASL, "sasl.username": "u"}, "but sasl.mechanism is GSSAPI (the default)"),
        ({**OAUTH, "sasl.username": "u"}, "applies only to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, but"),
        ({**PLAIN, "oauth_cb": print}, "oauth_cb applies only to OAUTHBEARER"),
        ({**OAUTH, "sasl.oauthbearer.method": "oidc"}, "oidc needs sasl.oauthbearer.token.endpoint.url"),
        ({**OIDC, "sasl.oauthbearer.client.id": ""}, "oidc needs sasl.oauthbearer.client.id"),
        ({**OIDC, "oauth_cb": print}, "oauth_cb and sasl.oauthbearer.method=oidc contradict each other"),
        ({**OIDC, "enable.sasl.oauthbearer.unsecure.jwt": True}, "contradict each other"),
        ({**OAUTH, "sasl.oauthbearer.scope": "s"}, "only sasl.oauthbearer.method=oidc uses it"),
        ({**OIDC, "sasl.oauthbearer.token.endpoint.url": "ftp://idp"}, "must be https://"),
        ({**OIDC, "sasl.oauthbearer.token.endpoint.url": "https://u:hunter2@idp"}, "must not have a user"),
        ({**OIDC, "sasl.oauthbearer.token.endpoint.url": "https://[x"}, "is not a URL"),
        ({**OIDC, "sasl.oauthbearer.extensions": "auth=x"}, "'auth' is not key=value"),
        ({**OIDC, "https.ca.location": "a", "https.ca.pem": "b"}, "contradict each other"),
        ({**OIDC, "sasl.oauthbearer.grant.type": "jwt_bearer"}, "expected one of client_credentials, urn:"),
        ({**OAUTH, "sasl.oauthbearer.metadata.authentication.type": "azure_imds"},
         "only sasl.oauthbearer.method=oidc uses it"),
        ({**OAUTH, "enable.sasl.oauthbearer.unsecure.jwt": True}, "principal= is missing"),
        ({**OAUTH, "enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": "principal=a x=hunter2"},
         "sasl.oauthbearer.config: unknown key x: expected one of"),
        ({**PLAIN, "sasl.jaas.config": LOGIN.format("plain.Plain") + ' username="u";'}, "contradict each other"),
        ({**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "u", "sasl.password": "hunter2\x07"},
         "sasl.password contains a character that SASLprep (RFC 4013) prohibits"),
    ],
)
def test_settings_that_contradict_each_other(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parsed(given)
    text = caught.value.args[0].str()
    assert said in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("pencil", None), ("ünïcödé", None), ("密码", None), ("I\u00adX", "NFKC"), ("\u00aa", "NFKC"),
        ("\u2168", "NFKC"), ("a\u00a0b", "NFKC"), ("\u0007", "prohibits"), ("\u0627\u0031", "prohibits"),
        ("\ue000", "prohibits"), ("a\0", "NUL"), ("", "empty"), ("\ud800", "surrogate"),
    ],
)  # fmt: skip
def test_saslprep(text: str, verdict: str | None) -> None:
    """RFC 4013 §3's own examples among them."""
    said = prepared("SCRAM-SHA-256", text)
    assert said is None if verdict is None else verdict in (said or "")


def test_plain_accepts_characters_that_scram_refuses() -> None:
    assert prepared("PLAIN", "\u00aa") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LOGIN.format("plain.Plain") + ' username="u" password="p";', {"sasl.username": "u", "sasl.password": "p"}),
        (LOGIN.format("scram.Scram") + '\n  username = "a\\"b" \n password="x;y\\\\";\n',
         {"sasl.username": 'a"b', "sasl.password": "x;y\\"}),
        ("PlainLoginModule required username=u password=p ;", {"sasl.username": "u", "sasl.password": "p"}),
        (LOGIN.format("plain.Plain") + ";", {}),
        (LOGIN.format("oauthbearer.OAuthBearer") + ' clientId="c" clientSecret="s" scope="x y" extension_a="1";',
         {"sasl.oauthbearer.client.id": "c", "sasl.oauthbearer.client.secret": "s", "sasl.oauthbearer.scope": "x y",
          "sasl.oauthbearer.extensions": "a=1", "sasl.oauthbearer.method": "oidc"}),
        (LOGIN.format("oauthbearer.OAuthBearer") + ' unsecuredLoginStringClaim_sub="u" unsecuredLoginExtension_b="2" '
         'unsecuredLoginLifetimeSeconds="60";',
         {"enable.sasl.oauthbearer.unsecure.jwt": True,
          "sasl.oauthbearer.config": "principal=u extension_b=2 lifeSeconds=60"}),
        (LOGIN.format("oauthbearer.OAuthBearer") + ";", {}),
    ],
)
def test_jaas(text: str, found: dict[str, str]) -> None:
    assert read_jaas(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hunter2", "invalid value of sasl.jaas.config: expected module"),
        (LOGIN.format("plain.Plain") + ' password="hunter2"', "invalid value of sasl.jaas.config: expected module"),
        (LOGIN.format("plain.Plain") + ' password="hunter2" user;', "after the module"),
        (LOGIN.format("scram.Scram") + ' username="u" tokenauth="true";', "accepts username, password only"),
        (LOGIN.format("plain.Plain") + ' username="u" password="a" hunter2="";', "accepts username, password only"),
        ("com.sun.security.auth.module.Krb5LoginModule required keyTab=x;", "set sasl.kerberos.keytab"),
        (LOGIN.format("oauthbearer.OAuthBearer") + " password=hunter2;", "accepts clientId, scope, clientSecret"),
        (LOGIN.format("oauthbearer.OAuthBearer") + ' clientId=c extension_x="hunter2,y=2";', "must not have a comma"),
        (LOGIN.format("oauthbearer.OAuthBearer") + ' unsecuredLoginStringClaim_sub="hunter2 scope=x";', "not be empty"),
        (LOGIN.format("oauthbearer.OAuthBearer") + ' unsecuredLoginNumberClaim_x="1";', "has no equivalent"),
        ("software.amazon.msk.auth.iam.IAMLoginModule required;", "oauth_cb"),
        ("x.Y required;", "only PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule are supported"),
    ],
)
def test_jaas_that_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_jaas(text)
    assert said in caught.value.args[0].str()
    assert "hunter2" not in caught.value.args[0].str()


JAVA = {**OAUTH, "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
        "sasl.login.callback.handler.class":
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"}


def test_a_java_configuration_of_oauthbearer() -> None:
    """Before Kafka 4.1 the client was in the JAAS entry, since then it is in properties beside an entry without any."""
    entry = LOGIN.format("oauthbearer.OAuthBearer")
    old = parsed({**JAVA, "sasl.jaas.config": f'{entry} clientId="c" clientSecret="s";'})
    new = parsed({**JAVA, "sasl.jaas.config": f"{entry};", "sasl.oauthbearer.client.credentials.client.id": "c",
                  "sasl.oauthbearer.client.credentials.client.secret": "s"})
    for settings in (old, new):
        assert (settings.sasl_oauthbearer_method, settings.sasl_oauthbearer_client_id,
                settings.sasl_oauthbearer_client_secret) == ("oidc", "c", "s")
    with pytest.raises(ConfigurationError, match="a Java class cannot be loaded"):
        parsed({**JAVA, "sasl.login.callback.handler.class": "com.example.Handler"})


@given(st.text(max_size=80))
def test_any_jaas_is_read_or_refused(text: str) -> None:
    try:
        read_jaas("PlainLoginModule required " + text)
        read_jaas("OAuthBearerLoginModule required " + text)
    except ConfigurationError:
        return


def test_extensions() -> None:
    assert read_extensions("a=1, b=x y") == {"a": "1", "b": "x y"}
    for wrong in ("a", "=1", "a1=x", "a=\x01"):
        with pytest.raises(ValueError, match="is not key=value"):
            read_extensions(wrong)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1, 2e10), "must be a str"), (("t", "soon"), "in seconds since the epoch"),
        (("t", True), "in seconds since the epoch"),
        (("", 2e10), "non-empty"), (("t\x01", 2e10), "printable"), (("t", 1), "expired"),
        (("t", float("nan")), "expired"), (("t", 2e10, []), "a dict"), (("t", 2e10, {"auth": "x"}), "not 'auth'"),
        (("t", 2e10, {"a": "\x01"}), "printable"),
    ],
)  # fmt: skip
def test_tokens_that_cannot_be_sent(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        check_token(*arguments)


def test_tokens_have_a_life() -> None:
    token, life_ms, extensions = check_token("t", time.time() + 100, {"a": "b"})
    assert (token, extensions) == ("t", {"a": "b"}) and 90000 < life_ms <= 100000


def test_unsecured_tokens() -> None:
    claims = read_unsecured("principal=alice scope=a,b lifeSeconds=60 extension_one=x principalClaimName=user")
    token, expires_at = unsecured_token(claims)
    head, body, signature = token.split(".")
    assert json.loads(urlsafe_b64decode(head + "==")) == {"alg": "none"}
    payload = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert (payload["user"], payload["scope"], signature) == ("alice", ["a", "b"], "")
    assert 55 < expires_at - time.time() <= 60
    assert claims["extensions"] == {"one": "x"}


def test_a_hidden_value_is_not_shown_or_pickled() -> None:
    hidden = Hidden("hunter2")
    assert f"{hidden}" == "hunter2" and type(str(hidden)) is str
    assert "hunter2" not in repr([hidden])
    with pytest.raises(TypeError):
        pickle.dumps(hidden)


def test_settings_lose_their_secrets() -> None:
    assert "hunter2" not in repr(vars(parsed(PLAIN).without_secrets()))
    assert "hunter2" not in repr(vars(parsed(OIDC).without_secrets()))
