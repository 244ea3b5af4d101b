"""config/: what a configuration becomes, and what is said of a wrong one."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kconsumer
from kconsumer import Assignor, RebalanceProtocol
from kconsumer.config import Endpoint, OffsetReset, Settings, parse, parse_update
from kconsumer.config.properties import BY_NAME, PROPERTIES, SECTIONS
from kconsumer.config.property import Kind, Property, Scope, Status
from kconsumer.config.values import parse_bootstrap, parse_duration_ms
from kconsumer.errors import ConfigurationError, KafkaError, KafkaException


def settings(**more: Any) -> Settings:
    return parse({"bootstrap.servers": "h", **{name.replace("_", "."): value for name, value in more.items()}})


def error(config: Any) -> str:
    with pytest.raises(ConfigurationError) as raised:
        parse(config)
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG
    return str(raised.value.args[0].str())


def warnings(caplog: pytest.LogCaptureFixture, **more: Any) -> list[str]:
    caplog.clear()
    settings(**more)
    assert all(record.name == "kconsumer" and record.levelno == logging.WARNING for record in caplog.records)
    return [record.getMessage() for record in caplog.records]


# The table


def test_no_name_is_listed_twice() -> None:
    names = [name for prop in PROPERTIES for name in (prop.name, *(alias.name for alias in prop.aliases))]
    assert len(names) == len(set(names)) == len(BY_NAME)


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_the_fields_of_a_property_are_consistent(prop: Property) -> None:
    assert prop.doc.endswith(".")
    assert (prop.status is Status.HONOURED) == (not prop.reason)
    assert not prop.runtime or prop.status is Status.HONOURED
    if prop.kind is Kind.INTEGER:
        assert prop.minimum is not None and prop.maximum is not None and prop.minimum <= prop.default <= prop.maximum
    if prop.kind is Kind.ENUM:
        assert prop.default in prop.choices.values()


def test_settings_has_the_table_and_nothing_else() -> None:
    attributes = [prop.attribute for prop in PROPERTIES if prop.in_settings]
    assert list(Settings.__annotations__) == ["explicit", "instance_name", *attributes]
    honoured = {prop.name for prop in PROPERTIES if prop.status is Status.HONOURED}
    assert honoured - {prop.name for prop in PROPERTIES if prop.in_settings} == {
        "builtin.features",
        "default.topic.config",
    }


# Values


def test_defaults() -> None:
    plain = settings()
    assert plain.bootstrap_servers == (Endpoint("h", 9092),)
    assert plain.auto_offset_reset == OffsetReset("latest") and plain.isolation_level == "read_committed"
    assert plain.check_crcs is True and plain.fetch_buffer_memory == 64 * 1024 * 1024
    assert plain.receive_message_max_bytes == 100_000_000 and plain.metadata_max_age_ms == 900_000
    assert plain.group_id is None and plain.logger is logging.getLogger("kconsumer")
    assert plain.explicit == {"bootstrap.servers"}


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        settings().fetch_min_bytes = 2


def test_settings_are_complete() -> None:
    with pytest.raises(TypeError, match=r"\['client_id'\]"):
        Settings(**{name: value for name, value in vars(settings()).items() if name != "client_id"})
    with pytest.raises(TypeError, match=r"\['nonsense'\]"):
        settings().changed(nonsense=1)


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        ("metadata.broker.list", "a:1,b", "bootstrap_servers", (Endpoint("a", 1), Endpoint("b", 9092))),
        ("fetch.max.wait.ms", 7, "fetch_wait_max_ms", 7),
        ("fetch.message.max.bytes", "7", "max_partition_fetch_bytes", 7),
        ("queued.max.messages.kbytes", 3, "fetch_buffer_memory", 3072),
        ("fetch.buffer.memory", "0x1000", "fetch_buffer_memory", 4096),
        ("request.timeout.ms", 900_000, "socket_timeout_ms", 900_000),
        ("receive.buffer.bytes", -1, "socket_receive_buffer_bytes", 0),
        ("send.buffer.bytes", 4096, "socket_send_buffer_bytes", 4096),
        ("enable.partition.eof", "T", "enable_partition_eof", True),
        ("auto.offset.reset", "smallest", "auto_offset_reset", OffsetReset("earliest")),
        ("auto.offset.reset", "None", "auto_offset_reset", OffsetReset("error")),
        ("auto.offset.reset", "by_duration:P1DT2H", "auto_offset_reset", OffsetReset("by_duration", 93_600_000)),
        ("debug", "fetch, cgrp,", "debug", frozenset({"fetch", "cgrp"})),
        ("debug", "fetch,cgrp,-FETCH", "debug", frozenset({"cgrp"})),
        ("debug", "", "debug", frozenset()),
        ("debug", ["fetch"], "debug", frozenset({"fetch"})),
        (
            "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            "partition_assignment_strategy",
            ("cooperative-sticky",),
        ),
        ("partition.assignment.strategy", "range, range", "partition_assignment_strategy", ("range",)),
        ("client.id", 5, "client_id", "5"),
        ("client.id", None, "client_id", "kconsumer"),
        ("error_cb", print, "error_cb", print),
        ("error_cb", None, "error_cb", None),
        ("group.id", "g", "group_id", "g"),
        ("security.protocol", "PLAINTEXT", "security_protocol", "plaintext"),
    ],
)
def test_values(name: str, value: object, attribute: str, expected: object) -> None:
    config = {"bootstrap.servers": "h", name: value}
    if attribute == "bootstrap_servers":
        del config["bootstrap.servers"]
    assert getattr(parse(config), attribute) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("fetch.min.bytes", 0, "invalid value 0 for fetch.min.bytes: expected a whole number from 1 to 100000000"),
        ("fetch.min.bytes", "1_0", "invalid value '1_0' for fetch.min.bytes"),
        ("fetch.min.bytes", "٣", "invalid value"),
        ("fetch.min.bytes", True, "invalid value True for fetch.min.bytes"),
        ("fetch.min.bytes", float("nan"), "invalid value nan for fetch.min.bytes"),
        ("fetch.min.bytes", float("inf"), "invalid value inf for fetch.min.bytes"),
        ("fetch.min.bytes", None, "invalid value None for fetch.min.bytes"),
        ("queued.max.messages.kbytes", 0,
         "invalid value 0 for queued.max.messages.kbytes: expected a whole number from 1 "),
        ("check.crcs", "yes", "invalid value 'yes' for check.crcs: expected true or false"),
        ("isolation.level", "x",
         "invalid value 'x' for isolation.level: expected one of read_uncommitted, read_committed"),
        ("debug", "fetch,foo", "invalid value 'foo' for debug: expected words of generic, broker"),
        ("debug", 5, "invalid value 5 for debug"),
        ("debug", [5], "invalid value [5] for debug"),
        ("partition.assignment.strategy", "foo", "invalid value 'foo' for partition.assignment.strategy"),
        ("partition.assignment.strategy", "", "expected at least one assignor"),
        ("auto.offset.reset", "by_duration:1h", "by_duration:PT1H"),
        ("auto.offset.reset", 5, "invalid value 5 for auto.offset.reset: expected one of earliest, latest, error"),
        ("group.id", "", "invalid value '' for group.id: expected a string that is not empty"),
        ("client.id", "a\0b", "expected a string without NUL characters"),
        ("client.id", "c" * 32_768, "for client.id: expected a string of at most 32767 bytes, not 32768"),
        ("client.rack", "é" * 16_384, "for client.rack: expected a string of at most 32767 bytes, not 32768"),
        ("group.id", "g" * 32_768, "for group.id: expected a string of at most 32767 bytes, not 32768"),
        ("group.instance.id", "\ud800" * 20_000, "expected a string of at most 32767 bytes, not 60000"),
        ("client.id", ["a"], "invalid value ['a'] for client.id: expected a string"),
        ("client.id", True, "invalid value True for client.id: expected a string"),
        ("stats_cb", "f", "invalid value 'f' for stats_cb: expected a callable"),
        ("logger", 5, "invalid value 5 for logger: expected a logging.Logger"),
        ("builtin.features", "oidc", "invalid value 'oidc' for builtin.features: expected words of gzip, snappy"),
        ("default.topic.config", 3, "invalid value of default.topic.config: expected a dict"),
        ("default.topic.config", {"default.topic.config": {}}, "expected a dict"),
    ],
)
def test_an_error_names_the_wrong_value_and_the_allowed_values(name: str, value: object, message: str) -> None:
    assert message in error({"bootstrap.servers": "h", name: value})


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("fetch_min_bytes", "'fetch.min.bytes'"),
        ("Fetch.Min.Bytes", "'fetch.min.bytes'"),
        ("auto.ofset.reset", "'auto.offset.reset'"),
        ("bootstrap.server", "'bootstrap.servers'"),
        ("topic.auto.ofset.reset", "'auto.offset.reset'"),
    ],
)
def test_an_unknown_name_gets_the_nearest_one(name: str, nearest: str) -> None:
    text = f"unknown configuration property {name!r}: did you mean {nearest}?"
    assert error({"bootstrap.servers": "h", name: 1}) == text


def test_an_unknown_name_without_a_near_one() -> None:
    assert error({"zzz": 1}) == "unknown configuration property 'zzz'"
    assert error({b"log_level": 1}) == "unknown configuration property b'log_level': names are strings"


def test_an_error_is_of_all_the_expected_kinds() -> None:
    for kind in (ConfigurationError, KafkaException, ValueError):
        with pytest.raises(kind):
            parse({"fetch.min.bytes": "many"})


@pytest.mark.parametrize("wrong", [None, 5, "bootstrap.servers=h", [("bootstrap.servers", "h")]])
def test_a_configuration_is_a_dict(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected a dict of configuration properties"):
        parse(wrong)
    with pytest.raises(TypeError, match="expected a dict of configuration properties"):
        parse_update(settings(), wrong)


def test_without_bootstrap_servers_there_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert parse({"group.id": "g"}).bootstrap_servers == ()
    assert [record.getMessage() for record in caplog.records] == [
        "bootstrap.servers is not set: this consumer knows no broker and will receive no records"]


@pytest.mark.parametrize("name", ["error_cb", "stats_cb", "throttle_cb", "on_commit", "oauth_cb"])
def test_a_callback_that_cannot_be_called_is_a_type_error_too(name: str) -> None:
    for kind in (ConfigurationError, TypeError):
        with pytest.raises(kind, match=name):
            parse({"bootstrap.servers": "h", name: 5})


def test_an_isolation_level_may_be_a_member_of_the_enumeration() -> None:
    for level in (*kconsumer.IsolationLevel, *confluent_kafka.IsolationLevel):
        assert settings(isolation_level=level).isolation_level == level.name.lower()


def test_the_limit_of_calls_without_a_timeout() -> None:
    assert settings().call_timeout_s is None
    assert settings().default_api_timeout_ms == 60_000
    assert settings(default_api_timeout_ms=1500).call_timeout_s == 1.5


def test_a_description_for_the_log_hides_secrets() -> None:
    lines = parse({"bootstrap.servers": "h:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
                   "sasl.username": "u", "sasl.password": "hunter2"}).described()
    assert "sasl.password = (hidden)" in lines
    assert "sasl.username = 'u'" in lines
    assert "hunter2" not in "".join(lines)


def test_a_description_for_the_log_hides_a_key_beside_a_certificate_and_a_urls_query() -> None:
    both = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"
    lines = parse({"bootstrap.servers": "h:1", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
                   "ssl.certificate.pem": both, "ssl.key.pem": both, "sasl.oauthbearer.method": "oidc",
                   "sasl.oauthbearer.client.id": "reader", "sasl.oauthbearer.client.secret": "hunter2",
                   "sasl.oauthbearer.token.endpoint.url": "https://idp/token?code=hunter2"}).described()
    assert "ssl.certificate.pem = (hidden)" in lines
    assert "sasl.oauthbearer.token.endpoint.url = 'https://idp/token'" in lines
    assert "hunter2" not in "".join(lines)


def test_a_wrong_value_is_not_shown_where_it_may_be_a_secret() -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse({"default.topic.config": {"default.topic.config": {"sasl.password": "hunter2"}}})
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigurationError) as raised:
        parse({"bootstrap.servers": "h:1", "ssl.certificate.pem": b"hunter2"})
    assert "hunter2" not in str(raised.value)


# Bootstrap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h", [("h", 9092)]),
        (" h:1 , i:2 ,", [("h", 1), ("i", 2)]),
        ("h,h:9092,h", [("h", 9092)]),
        ("[::1]:9", [("::1", 9)]),
        ("[fe80::1%eth0]", [("fe80::1%eth0", 9092)]),
        ("PLAINTEXT://h:1,plaintext://[::1]", [("h", 1, "plaintext"), ("::1", 9092, "plaintext")]),
        ("h:1,i:2,SSL://h:1", [("h", 1, "ssl"), ("i", 2)]),
        ("broker-1.example_x.org:65535", [("broker-1.example_x.org", 65535)]),
        ("127.0.0.1:1", [("127.0.0.1", 1)]),
        (["a:1", "b:2,c"], [("a", 1), ("b", 2), ("c", 9092)]),
    ],
)
def test_bootstrap_addresses(text: Any, expected: list[tuple[Any, ...]]) -> None:
    assert list(parse_bootstrap(text)) == [Endpoint(*entry) for entry in expected]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid value '' for bootstrap.servers: expected at least one host:port"),
        (" , ", "expected at least one host:port"),
        ([], "invalid value [] for bootstrap.servers: expected at least one host:port"),
        ("a,:9092", "invalid address ':9092' in bootstrap.servers: expected host:port"),
        ("h:", "invalid port of 'h:' in bootstrap.servers: expected 1 .. 65535"),
        ("h:0", "invalid port of 'h:0' in bootstrap.servers: expected 1 .. 65535"),
        ("h:65536", "invalid port of 'h:65536' in bootstrap.servers: expected 1 .. 65535"),
        ("h:x", "invalid port of 'h:x' in bootstrap.servers: expected 1 .. 65535"),
        ("h:-1", "invalid port of 'h:-1' in bootstrap.servers: expected 1 .. 65535"),
        ("::1", "invalid address '::1' in bootstrap.servers: expected host:port (an IPv6 address needs brackets)"),
        ("[::1", "invalid address '[::1' in bootstrap.servers: expected host:port"),
        ("[]:1", "invalid address '[]:1' in bootstrap.servers: expected host:port"),
        ("[h]:1", "invalid address '[h]:1' in bootstrap.servers: expected host:port"),
        ("[::1]9", "invalid address '[::1]9' in bootstrap.servers: expected host:port"),
        ("a\0b", ": expected host:port"),
        ("a b:1", "invalid address 'a b:1' in bootstrap.servers: expected host:port"),
        ("SSL://h:1", "ssl://h:1 asks for ssl, but security.protocol is plaintext"),
        ("tls://h:1",
         "unknown protocol of 'tls://h:1' in bootstrap.servers: expected plaintext, ssl, sasl_plaintext, sasl_ssl"),
        (5, "invalid value 5 for"),
        ([5], "invalid value [5] for"),
        (None, "invalid value None for"),
    ],
)
def test_a_wrong_bootstrap_entry_is_named(text: Any, message: str) -> None:
    assert message in error({"bootstrap.servers": text})


@given(st.text(alphabet="ab:[]/%.,019 -", max_size=20))
def test_any_bootstrap_string_gives_addresses_or_an_error(text: str) -> None:
    try:
        endpoints = parse_bootstrap(text)
    except ConfigurationError:
        return
    assert endpoints and all(host and 1 <= port <= 65535 for host, port, _ in endpoints)


# Durations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P2DT3H4M5.678S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5678),
        ("pt0.0019s", 1),
        ("PT0S", 0),
        ("PT1,5S", 1500),
        (" PT90M ", 5_400_000),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1H", "PT1", "PT-1H", "-PT1H", "P1H", "PT1D", "P1M", "PT1H1H"])
def test_an_invalid_duration(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration_ms(text)


# What has no effect, and what is refused


def test_a_property_without_effect_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog) == []
    assert warnings(caplog, linger_ms=5) == ["ignoring linger.ms: a producer property"]
    assert warnings(caplog, group_id="g", client_rack="r", statistics_interval_ms=1) == []


def test_a_value_that_holds_anyway_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog, enable_auto_commit="false", enable_metrics_push=False, group_protocol="classic") == []
    assert len(warnings(caplog, enable_auto_commit=True, enable_metrics_push=True)) == 1


def test_none_unsets_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    unset = {"on_commit": None, "group.instance.id": None, "oauth_cb": None, "client.rack": None, "logger": None}
    assert parse({"bootstrap.servers": "h", **unset}).explicit == {"bootstrap.servers"}
    assert not caplog.records


def test_the_value_of_an_accepted_property_is_checked() -> None:
    assert "invalid value 0 for session.timeout.ms" in error({"bootstrap.servers": "h", "session.timeout.ms": 0})


def test_a_producers_value_is_the_producers_to_check(caplog: pytest.LogCaptureFixture) -> None:
    assert len(warnings(caplog, acks="whatever")) == 1


def test_warnings_go_to_the_given_logger() -> None:
    class Logger:
        lines: list[tuple[int, str]] = []  # noqa: RUF012

        def log(self, level: int, text: str, *args: object) -> None:
            self.lines.append((level, text % args))

    logger = Logger()
    assert settings(logger=logger, linger_ms="50%").logger is logger
    assert logger.lines == [(logging.WARNING, "ignoring linger.ms: a producer property")]


REFUSED = [prop for prop in PROPERTIES if prop.status is Status.REFUSED]


@pytest.mark.parametrize("prop", REFUSED, ids=lambda prop: prop.name)
def test_a_refusal_gives_its_reason(prop: Property) -> None:
    value = {"offset.store.method": "file"}.get(prop.name, "hunter2")
    for name in (prop.name, *(alias.name for alias in prop.aliases)):
        text = error({"bootstrap.servers": "h", name: value})
        assert text == f"{name} is not supported: {prop.reason}"


def test_a_refused_property_may_have_the_value_that_holds_anyway() -> None:
    assert "offset.store.method" in settings(offset_store_method="broker").explicit


@pytest.mark.parametrize("prop", [p for p in PROPERTIES if p.status is Status.ACCEPTED], ids=lambda prop: prop.name)
def test_an_accepted_property_takes_its_default(prop: Property, caplog: pytest.LogCaptureFixture) -> None:
    value = print if prop.kind is Kind.CALLABLE else prop.default if prop.default is not None else "x"
    parse({"bootstrap.servers": "h", prop.name: value})
    expected = 0 if value in prop.satisfied_by else 1
    assert len(caplog.records) == expected
    assert all(prop.reason in record.getMessage() for record in caplog.records)


def test_the_sections_hold_the_whole_table() -> None:
    assert [prop for _, section in SECTIONS for prop in section] == list(PROPERTIES)
    producers = [prop for prop in PROPERTIES if prop.scope is Scope.PRODUCER]
    assert producers and all(prop.status is Status.ACCEPTED for prop in producers)


# Several names, several places


def test_of_two_names_the_last_counts(caplog: pytest.LogCaptureFixture) -> None:
    both = parse({"bootstrap.servers": "h", "fetch.max.wait.ms": 1, "fetch.wait.max.ms": 2})
    assert both.fetch_wait_max_ms == 2
    assert [record.getMessage() for record in caplog.records] == [
        "fetch.max.wait.ms and fetch.wait.max.ms name the same property: using the value of fetch.wait.max.ms"
    ]


def test_two_names_with_the_same_value_agree(caplog: pytest.LogCaptureFixture) -> None:
    parse({"bootstrap.servers": "h:1", "metadata.broker.list": ["h:1"]})
    assert not caplog.records


def test_topic_level_properties(caplog: pytest.LogCaptureFixture) -> None:
    assert parse(
        {"bootstrap.servers": "h", "default.topic.config": {"auto.offset.reset": "earliest"}}
    ).auto_offset_reset == OffsetReset("earliest")
    both = {"auto.offset.reset": "error", "default.topic.config": {"auto.offset.reset": "earliest"}}
    assert parse({"bootstrap.servers": "h", **both}).auto_offset_reset == OffsetReset("error")
    assert parse({"bootstrap.servers": "h", "topic.auto.offset.reset": "error"}).auto_offset_reset.policy == "error"
    assert parse({"bootstrap.servers": "h", "default.topic.config": None}).explicit == {"bootstrap.servers"}
    assert not caplog.records


# Properties that depend on each other


def test_the_response_limit_follows_the_fetch_size() -> None:
    assert settings(fetch_max_bytes=200_000_000).receive_message_max_bytes == 200_000_512
    limited = {"fetch.max.bytes": 200_000_000, "receive.message.max.bytes": 200_000_511}
    assert (
        error({"bootstrap.servers": "h", **limited})
        == "receive.message.max.bytes (200000511) must be at least fetch.max.bytes (200000000) + 512"
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"reconnect.backoff.ms": 11, "reconnect.backoff.max.ms": 10}, "reconnect.backoff.max.ms (10) must be at"),
        ({"max.poll.interval.ms": 10, "session.timeout.ms": 11}, "max.poll.interval.ms (10) must be at least"),
        ({"group.protocol": "consumer", "session.timeout.ms": 1}, "session.timeout.ms cannot be set under"),
        ({"group.protocol": "consumer", "group.protocol.type": "x"}, "group.protocol.type cannot be set under"),
    ],
)
def test_contradictions(config: dict[str, Any], message: str) -> None:
    assert message in error({"bootstrap.servers": "h", **config})


def test_eager_and_cooperative_assignors_may_stand_together() -> None:
    """As in the Java client: so a group goes from one to the other, member by member (KIP-429)."""
    given = settings(partition_assignment_strategy="cooperative-sticky,range")
    assert given.partition_assignment_strategy == ("cooperative-sticky", "range")


class Own(Assignor):
    """An assignor of the application's."""

    name = "own"

    def assign(self, topics: Any, group: Any) -> Any:
        return {}


class Cooperative(Own):
    name = "cooperative"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)


class Both(Own):
    name = "both"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return b""


def test_assignors_may_be_objects_classes_and_names() -> None:
    own = Own()
    given = settings(partition_assignment_strategy=[own, "range", Both, own, " sticky "])
    first, second, both, last = given.partition_assignment_strategy
    assert (first, second, last) == (own, "range", "sticky")
    assert isinstance(both, Both)
    assert given.own_assignors == [own, both]
    assert given.assignor_names == ["own", "range", "both", "sticky"]
    assert settings(partition_assignment_strategy=own).partition_assignment_strategy == (own,)
    assert settings(partition_assignment_strategy=Own).assignor_names == ["own"]
    assert settings().own_assignors == []


@pytest.mark.parametrize(("strategy", "cooperative", "user_data"), [
    ("range,roundrobin", False, False),
    ("cooperative-sticky", True, False),
    ([Own], False, False),
    ([Cooperative, "cooperative-sticky"], True, False),
    ([Both, "cooperative-sticky"], True, True),
    ([Both, "range"], False, True),
])
def test_group_settings_follow_from_the_assignors(strategy: Any, cooperative: bool, user_data: bool) -> None:
    given = settings(partition_assignment_strategy=strategy)
    assert (given.cooperative, given.assignors_have_user_data) == (cooperative, user_data)


@pytest.mark.parametrize(("strategy", "message"), [
    (5, "invalid value 5 for partition.assignment.strategy: an assignor must be a name or an Assignor, not int"),
    ([Own(), 5], "invalid value 5 for"),
    ([None], "invalid value None for"),
    ([], "expected at least one assignor"),
    ([int], "an assignor must be a name or an Assignor, not type"),
    ([Assignor], "invalid value"),
    ([type("Nameless", (Own,), {"name": None})], "Nameless.name must be a str"),
    ([type("Range", (Own,), {"name": "range"})], "Range.name is the name of a built-in assignor: range"),
    ([Own(), Own()], "two assignors have the name 'own'"),
    ([Cooperative, "range"], "cooperative supports only the cooperative protocol, another assignor only the eager one"),
    ([Own(), "uniform"], "invalid value 'uniform' for"),
])
def test_assignors_that_are_refused(strategy: Any, message: str) -> None:
    assert message in error({"bootstrap.servers": "h", "partition.assignment.strategy": strategy})


def test_under_the_consumer_protocol_the_poll_interval_stands_alone() -> None:
    assert settings(group_protocol="consumer", max_poll_interval_ms=1000).max_poll_interval_ms == 1000


def test_one_property_that_bounds_another_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = warnings(caplog, retry_backoff_ms=2000)
    assert line.startswith("retry.backoff.ms (2000) is greater than retry.backoff.max.ms (1000)")
    (line,) = warnings(caplog, max_partition_fetch_bytes=100, fetch_max_bytes=10)
    assert line.startswith("max.partition.fetch.bytes (100) is greater than fetch.max.bytes (10)")
    assert warnings(caplog, fetch_max_bytes=10, retry_backoff_max_ms=5) == []


@pytest.mark.parametrize(
    ("config", "refresh", "age"),
    [
        ({}, 300_000, 900_000),
        ({"topic.metadata.refresh.interval.ms": 10}, 10, 30),
        ({"metadata.max.age.ms": 20}, 20, 20),
        ({"topic.metadata.refresh.interval.ms": -1}, 0, 900_000),
        ({"topic.metadata.refresh.interval.ms": 0}, 0, 900_000),
        ({"topic.metadata.refresh.interval.ms": -1, "metadata.max.age.ms": 20}, 20, 20),
        ({"topic.metadata.refresh.interval.ms": 0, "metadata.max.age.ms": 20}, 20, 20),
    ],
)
def test_metadata_refresh(config: dict[str, Any], refresh: int, age: int) -> None:
    parsed = parse({"bootstrap.servers": "h", **config})
    assert (parsed.metadata_refresh_ms, parsed.metadata_max_age_ms) == (refresh, age)


# Changes while running


def test_the_properties_that_can_change_while_running() -> None:
    assert {prop.name for prop in PROPERTIES if prop.runtime} == {
        "fetch.min.bytes",
        "fetch.wait.max.ms",
        "fetch.max.bytes",
        "max.partition.fetch.bytes",
        "fetch.buffer.memory",
    }


def test_an_update_makes_new_settings() -> None:
    before = settings()
    after = parse_update(before, {"fetch.min.bytes": "7", "queued.max.messages.kbytes": 2})
    assert (after.fetch_min_bytes, after.fetch_buffer_memory) == (7, 2048) and before.fetch_min_bytes == 1
    assert after.explicit == {"bootstrap.servers", "fetch.min.bytes", "fetch.buffer.memory"}
    assert vars(parse_update(after, {})) == vars(after)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client.id": "x"}, "client.id cannot be changed on a running consumer"),
        ({"request.timeout.ms": 100}, "request.timeout.ms cannot be changed on a running consumer"),
        ({"linger.ms": 5}, "linger.ms cannot be changed on a running consumer"),
        ({"fetch.min.bytes": 0}, "invalid value 0 for fetch.min.bytes"),
        ({"fetch.min.byte": 1}, "did you mean 'fetch.min.bytes'?"),
        ({"fetch.max.bytes": 100_000_000}, "receive.message.max.bytes (100000000) must be at least fetch.max.bytes"),
    ],
)
def test_an_update_is_checked(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_update(settings(), changes)
    assert message in raised.value.args[0].str()


def test_an_update_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    parse_update(settings(), {"max.partition.fetch.bytes": 60_000_000})
    parse_update(settings(), {"fetch.min.bytes": 2})
    assert len(caplog.records) == 1


# Any value at all


@given(
    st.sampled_from([prop for prop in PROPERTIES if prop.kind is not Kind.TOPIC_CONFIG]),
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=3),
              st.lists(st.text(max_size=3), max_size=2), st.just(print)),
)  # fmt: skip
def test_any_value_is_taken_or_refused_by_a_configuration_error(prop: Property, value: object) -> None:
    try:
        taken = parse({"bootstrap.servers": "h", prop.name: value})
    except ConfigurationError as refusal:
        assert prop.name in str(refusal)
    else:
        assert not prop.in_settings or hasattr(taken, prop.attribute)


@pytest.mark.parametrize("name", ["ssl.ca.location", "ssl.crl.location", "ssl.keystore.location"])
def test_file_properties_take_paths(name):
    found = vars(settings(**{"security.protocol": "ssl", name: Path("/tmp", "file.pem")}))
    assert found[BY_NAME[name][0].attribute] == "/tmp/file.pem"


def test_consumers_have_different_instance_names():
    names = [settings(**{"client.id": "app"}).instance_name for _ in range(3)]
    assert len(set(names)) == 3 and all(re.fullmatch(r"app#consumer-\d+", name) for name in names)
