"""A cluster whose listeners demand SASL: users, their passwords, and the properties of a client of each mechanism."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import admin

from kconsumer.testing import KafkaCluster

USER = "alice"
PASSWORD = "alice's \"secret\", 100 % = ü"
STRANGER = "mallory"  # known to the broker, without any right
STRANGER_PASSWORD = "mallory-word"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def quoted(text: str) -> str:
    """A value inside a JAAS entry inside a file of Java properties, where a backslash counts once more."""
    jaas = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return jaas.replace("\\", "\\\\").encode("ascii", "backslashreplace").decode().replace("\\xfc", "\\u00fc")


_JAAS = "org.apache.kafka.common.security"
_PLAIN = (f"{_JAAS}.plain.PlainLoginModule required user_{USER}={quoted(PASSWORD)} "
          f"user_{STRANGER}={quoted(STRANGER_PASSWORD)};")


def sasl_listener(**more: object) -> dict[str, object]:
    """The properties of a listener with all mechanisms but GSSAPI."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "plain.sasl.jaas.config": _PLAIN,
        "scram-sha-256.sasl.jaas.config": f"{_JAAS}.scram.ScramLoginModule required;",
        "scram-sha-512.sasl.jaas.config": f"{_JAAS}.scram.ScramLoginModule required;",
        "oauthbearer.sasl.jaas.config": f"{_JAAS}.oauthbearer.OAuthBearerLoginModule required "
                                        'unsecuredLoginStringClaim_sub="broker";',
        **more,
    }


@contextlib.contextmanager
def sasl_cluster(**more: Any) -> Iterator[KafkaCluster]:
    """A started cluster with the listener SASL and, where sessions last three seconds, SHORT."""
    listeners = {"SASL": sasl_listener(), "SHORT": sasl_listener(**{"connections.max.reauth.ms": 3000})}
    with KafkaCluster(1, listeners=listeners | more.pop("listeners", {}), **more) as cluster:
        add_scram_users(cluster)
        yield cluster


def add_scram_users(cluster: KafkaCluster) -> None:
    """USER and STRANGER for both kinds of SCRAM."""
    client = admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    kinds = (admin.ScramMechanism.SCRAM_SHA_256, admin.ScramMechanism.SCRAM_SHA_512)
    changes = [
        admin.UserScramCredentialUpsertion(user, admin.ScramCredentialInfo(kind, 8192), password.encode())
        for kind in kinds
        for user, password in ((USER, PASSWORD), (STRANGER, STRANGER_PASSWORD))
    ]
    for change in changes:
        for done in client.alter_user_scram_credentials([change]).values():
            done.result(30)


def client(mechanism: str, user: str = USER, password: str = PASSWORD) -> dict[str, Any]:
    """The properties of a client; for OAUTHBEARER an unsecured token of `user`."""
    common: dict[str, Any] = {"security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        return common | {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={user}"}
    return common | {"sasl.username": user, "sasl.password": password}


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """One configuration of several."""
    return {name: value for part in parts for name, value in part.items()}
