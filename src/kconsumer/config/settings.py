"""Settings: the checked values of a configuration.

Owns: Settings. Threads: any (immutable). Never: reads or checks a value (values.py and parsing.py do), defines a
default (properties.py does).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kconsumer.config.properties import PROPERTIES, OffsetReset
from kconsumer.config.property import Kind, Property
from kconsumer.config.urls import read_http_url
from kconsumer.config.values import Endpoint

if TYPE_CHECKING:
    from kconsumer.groups.assignors import Assignor

__all__ = ["Settings", "supports"]


class Settings:
    """The value of each property that the consumer uses, with underscores in its name.

    Units are the property's: ``_ms`` milliseconds, ``_bytes`` bytes. See docs/configuration.md.
    """

    explicit: frozenset[str]  #: canonical names of the properties in the configuration
    instance_name: str  #: the client.id with a number that is unique in this process: ``app#consumer-1``
    bootstrap_servers: tuple[Endpoint, ...]
    client_id: str
    client_rack: str
    client_software_name: str
    client_software_version: str | None
    topic_metadata_refresh_interval_ms: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
    metadata_cluster_check_enable: bool
    allow_auto_create_topics: bool
    default_api_timeout_ms: int
    socket_timeout_ms: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_keepalive_enable: bool
    socket_nagle_disable: bool
    socket_max_fails: int
    socket_connection_setup_timeout_ms: int
    connections_max_idle_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    broker_address_ttl: int
    broker_address_family: str
    client_dns_lookup: str
    api_version_request: bool
    api_version_request_timeout_ms: int
    receive_message_max_bytes: int
    fetch_min_bytes: int
    fetch_wait_max_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    fetch_buffer_memory: int
    fetch_max_inflated_batch_bytes: int
    fetch_max_record_headers: int
    check_crcs: bool
    isolation_level: str
    auto_offset_reset: OffsetReset
    enable_partition_eof: bool
    error_cb: Callable[..., Any] | None
    throttle_cb: Callable[..., Any] | None
    stats_cb: Callable[..., Any] | None
    logger: Any
    statistics_interval_ms: int
    debug: frozenset[str]
    log_level: int
    log_connection_close: bool
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    partition_assignment_strategy: tuple[str | Assignor, ...]
    session_timeout_ms: int
    consumer_session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    rebalance_application_wait_ms: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    enable_auto_offset_store: bool
    on_commit: Callable[..., Any] | None
    exclude_internal_topics: bool
    security_protocol: str
    ssl_cipher_suites: str | None
    ssl_curves_list: str | None
    ssl_sigalgs_list: str | None
    ssl_enabled_protocols: frozenset[str]
    ssl_key_location: str | None
    ssl_key_password: str | None
    ssl_key_pem: str | None
    ssl_certificate_location: str | None
    ssl_certificate_pem: str | None
    ssl_ca_location: str | None
    ssl_ca_pem: str | None
    ssl_crl_location: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_endpoint_identification_algorithm: str
    enable_ssl_certificate_verification: bool
    https_ca_location: str | None
    https_ca_pem: str | None
    sasl_mechanism: str
    sasl_username: str | None
    sasl_password: str | None
    sasl_jaas_config: str | None
    sasl_kerberos_service_name: str
    sasl_kerberos_principal: str | None
    sasl_kerberos_keytab: str | None
    enable_sasl_oauthbearer_unsecure_jwt: bool
    oauth_cb: Callable[..., Any] | None
    sasl_oauthbearer_config: str | None
    sasl_oauthbearer_method: str
    sasl_oauthbearer_client_id: str | None
    sasl_oauthbearer_client_secret: str | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_extensions: str | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_token_endpoint_allow_http: bool
    sasl_oauthbearer_header_urlencode: bool
    sasl_oauthbearer_grant_type: str
    sasl_oauthbearer_assertion_algorithm: str
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: str | None
    sasl_oauthbearer_assertion_private_key_pem: str | None
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_jti_include: bool
    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_jwt_template_file: str | None
    sasl_oauthbearer_metadata_authentication_type: str

    # Not a dataclass: with so many fields, it and its module would take a sixth of `import kconsumer`.
    def __init__(self, **values: Any) -> None:
        if values.keys() != self.__annotations__.keys():
            raise TypeError(f"missing or unknown settings: {sorted(values.keys() ^ self.__annotations__.keys())}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot change {name}: settings are immutable")

    def changed(self, **values: Any) -> Settings:
        """Return a copy of these settings with other values."""
        return Settings(**{**self.__dict__, **values})

    def without_secrets(self) -> Settings:
        """Return a copy without the credentials. The core has them by now."""
        secrets = {prop.attribute: None for prop in PROPERTIES if prop.secret and prop.in_settings}
        return self.changed(**secrets)

    def described(self) -> list[str]:
        """Return one log line per configured property, without secrets."""
        given = [prop for prop in PROPERTIES if prop.name in self.explicit and prop.in_settings]
        return [f"{prop.name} = {_shown(prop, getattr(self, prop.attribute))}" for prop in given]

    @property
    def own_assignors(self) -> list[Assignor]:
        """Return the assignors that the application passed as objects."""
        return [given for given in self.partition_assignment_strategy if not isinstance(given, str)]

    @property
    def assignor_names(self) -> list[str]:
        """Return the names of the assignors, in order of preference."""
        return [given if isinstance(given, str) else given.name for given in self.partition_assignment_strategy]

    @property
    def assignors_have_user_data(self) -> bool:
        """Return whether an application's assignor adds user data to subscriptions."""
        own = self.own_assignors
        if not own:
            return False
        from kconsumer.groups.assignors import has_user_data

        return any(map(has_user_data, own))

    @property
    def cooperative(self) -> bool:
        """Whether all assignors are cooperative: members keep partitions (KIP-429)."""
        return all(supports(given, "cooperative") for given in self.partition_assignment_strategy)

    @property
    def call_timeout_s(self) -> float | None:
        """Default time limit of a call in seconds; None: no limit."""
        return self.default_api_timeout_ms / 1000 if "default.api.timeout.ms" in self.explicit else None

    @property
    def metadata_refresh_ms(self) -> int:
        """Interval in ms of metadata fetches without another cause; 0: never."""
        interval = self.topic_metadata_refresh_interval_ms
        if interval > 0:
            return min(interval, self.metadata_max_age_ms)
        return self.metadata_max_age_ms if "metadata.max.age.ms" in self.explicit else 0


def _shown(prop: Property, value: object) -> str:
    """Return a value for the log."""
    if prop.secret:
        return "(hidden)"
    return repr(read_http_url(value).shown) if prop.kind is Kind.URL and isinstance(value, str) else repr(value)


def supports(assignor: str | Assignor, protocol: str) -> bool:
    """Return whether an assignor supports a protocol.

    All built-in ones are eager, one is also cooperative.
    """
    if isinstance(assignor, str):
        return protocol == "eager" or assignor == "cooperative-sticky"
    return any(supported.value == protocol for supported in assignor.supported_protocols)
