"""The table of properties against librdkafka's own table and confluent_kafka's behaviour.

librdkafka prints its table (rd_kafka_conf_properties_show) from the library in the confluent-kafka wheel.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest

sys.path.append(str(Path(__file__).parents[3]))
from accepted_properties import HARMLESS, unproved

from kconsumer.config import parse
from kconsumer.config.properties import BY_NAME, PROPERTIES, OffsetReset
from kconsumer.config.property import ABSENT, SAME, Kind, Property, Scope, Status
from kconsumer.errors import ConfigurationError


class Row(NamedTuple):
    name: str
    scope: str
    range: str
    default: str
    doc: str


def library() -> Path:
    folder = Path(confluent_kafka.__file__).parent
    places = [*folder.parent.glob("confluent_kafka.libs/librdkafka*"), *folder.glob(".dylibs/librdkafka*")]
    assert places, "the confluent-kafka wheel brings no librdkafka"
    return places[0]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    path = tmp_path_factory.mktemp("librdkafka") / "properties.md"
    libc, rdkafka = ctypes.CDLL(None), ctypes.CDLL(str(library()))
    libc.fopen.restype = ctypes.c_void_p
    libc.fclose.argtypes = rdkafka.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    stream = libc.fopen(str(path).encode(), b"w")
    rdkafka.rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    rows = []
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.split(" | ", 5)]
        if len(cells) == 6 and cells[1] in ("*", "C", "P"):
            rows.append(Row(cells[0], cells[1], cells[2], cells[3], cells[5]))
    assert len(rows) > 190
    return rows


def property_of(row: Row) -> Property:
    return BY_NAME[row.name][0]


def test_it_is_the_version_the_table_was_written_for() -> None:
    assert confluent_kafka.libversion()[0].startswith("2.16.")


def test_every_property_is_in_the_table(table: list[Row]) -> None:
    assert [row.name for row in table if row.name not in BY_NAME] == []


def test_producer_properties_are_marked(table: list[Row]) -> None:
    shared = {row.name for row in table if row.scope != "P"} | {"request.timeout.ms"}  # the Java consumer's too
    for row in table:
        expected = Scope.CONSUMER if row.name in shared else Scope.PRODUCER
        assert property_of(row).scope is expected, row.name


def test_properties_that_librdkafka_lacks_are_marked(table: list[Row]) -> None:
    theirs = {row.name for row in table} | {
        # librdkafka's hidden ones, and those of confluent_kafka's Consumer
        "client.software.name", "client.software.version", "default.topic.config", "logger", "oauth_cb", "on_commit",
    }  # fmt: skip
    for prop in {prop for prop, _ in BY_NAME.values()}:
        known = any(name in theirs for name in (prop.name, *(alias.name for alias in prop.aliases)))
        assert known == (prop.librdkafka_default is not ABSENT), prop.name


def test_each_accepted_property_has_a_proof_that_this_is_harmless(table: list[Row]) -> None:
    accepted = [p.name for p in PROPERTIES if p.status is Status.ACCEPTED and p.scope is Scope.CONSUMER]
    assert sorted(HARMLESS) == sorted(accepted)
    assert unproved({row.name: row.doc for row in table}) == []


# Topic-level rows of librdkafka's legacy consumer, whose global namesakes count here.
LEGACY = {("auto.commit.interval.ms", "60000"), ("compression.codec", "inherit")}


def theirs_as_ours(prop: Property, text: str) -> Any:
    if prop.kind is Kind.BOOLEAN:
        return text == "true"
    if prop.kind is Kind.INTEGER:
        return int(text)
    if prop.kind is Kind.RESET:
        return OffsetReset(prop.choices[text])
    if prop.kind is Kind.ASSIGNORS:
        return tuple(text.split(","))
    if prop.kind is Kind.FLAGS:
        return frozenset()
    return text or None


def test_defaults_are_librdkafkas_or_the_difference_is_stated(table: list[Row]) -> None:
    checked = 0
    for row in table:
        prop, alias = BY_NAME[row.name]
        if prop.status is Status.REFUSED or prop.scope is Scope.PRODUCER or (row.name, row.default) in LEGACY:
            continue
        if prop.kind in (Kind.CALLABLE, Kind.BOOTSTRAP) or row.name in ("builtin.features", "request.timeout.ms"):
            continue
        theirs = theirs_as_ours(prop, row.default)
        stated = prop.default if prop.librdkafka_default is SAME else prop.librdkafka_default
        if prop.kind is Kind.STRING:
            assert (stated or None) == theirs, row.name
        elif alias is not None and prop.kind is Kind.INTEGER:
            assert stated == theirs * alias.factor, row.name
        else:
            assert stated == theirs, row.name
        checked += 1
    assert checked > 75


# librdkafka's table has the range for all its clients; the one for consumers is in the text.
OTHER_RANGE = {"fetch.min.bytes": "1 .. 100000000", "max.partition.fetch.bytes": "0 .. 1000000000"}


def test_ranges_are_librdkafkas(table: list[Row]) -> None:
    checked = 0
    for row in table:
        prop, alias = BY_NAME[row.name]
        if prop.kind is not Kind.INTEGER or (row.name, row.default) in LEGACY or row.name == "request.timeout.ms":
            continue
        least = prop.minimum if alias is None or alias.minimum is None else alias.minimum
        most = prop.maximum if alias is None or alias.maximum is None else alias.maximum
        assert f"{least} .. {most}" == OTHER_RANGE.get(row.name, row.range), row.name
        checked += 1
    assert checked > 45


def test_words_are_librdkafkas(table: list[Row]) -> None:
    checked = 0
    for row in table:
        prop = property_of(row)
        if prop.scope is Scope.PRODUCER or prop.kind not in (Kind.ENUM, Kind.FLAGS, Kind.RESET) or not row.range:
            continue
        assert set(row.range.lower().split(", ")) <= {word.lower() for word in prop.choices}, row.name
        checked += 1
    assert checked > 8


def test_types_are_librdkafkas(table: list[Row]) -> None:
    kinds = {"boolean": Kind.BOOLEAN, "integer": Kind.INTEGER, "see dedicated API": Kind.CALLABLE}
    for row in table:
        prop = property_of(row)
        found = re.search(r"\*Type: ([^*]+)\*", row.doc)
        expected = kinds.get(found[1] if found else "")
        if expected is None or prop.scope is Scope.PRODUCER or prop.status is Status.REFUSED:
            continue
        assert prop.kind is expected, row.name


def ours_takes(config: dict[str, Any]) -> bool:
    try:
        parse({"bootstrap.servers": "h", **config})
    except ConfigurationError:
        return False
    return True


def theirs_takes(config: dict[str, Any]) -> bool:
    try:
        confluent_kafka.Consumer({"group.id": "g", **config}).close()
    except (confluent_kafka.KafkaException, TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize(
    "config",
    [
        {"foo.bar": 1},
        {5: 3},
        {"max.poll.records": 5},
        {"default.topic.config": {"auto.offset.reset": "earliest"}},
        {"default.topic.config": {"fetch.min.bytes": 3}},
        {"default.topic.config": {"foo": 1}},
        {"topic.auto.offset.reset": "earliest"},
        {"topic.auto.offset.reset": "zzz"},
        {"topic.foo": 1},
        {"acks": "all", "linger.ms": 5},
        *({"enable.partition.eof": value} for value in (True, "true", "True", "t", "1", "0", "f", "false", 1, 0)),
        *({"enable.partition.eof": value} for value in ("yes", "no", "on", "", 2, 1.0, None)),
        *({"log_level": value} for value in (7, "7", " 7", "7 ", "0x3", 3.0)),
        *({"log_level": value} for value in (True, 8, -1, "-1", None, "", "abc", b"3")),
        {"auto.offset.reset": "EARLIEST"},
        {"auto.offset.reset": "beginning"},
        {"auto.offset.reset": "sometimes"},
        {"auto.offset.reset": None},
        {"auto.offset.reset": 1},
        {"isolation.level": "READ_COMMITTED"},
        {"isolation.level": "serializable"},
        {"debug": "fetch,foo"},
        {"fetch.min.bytes": 0},
        {"fetch.min.bytes": 200_000_000},
        {"fetch.wait.max.ms": 70_000},
        {"receive.message.max.bytes": 1000, "fetch.max.bytes": 52_428_800},
        {"receive.message.max.bytes": 52_428_800 + 511},
        {"receive.message.max.bytes": 52_428_800 + 512},
        {"max.partition.fetch.bytes": 100_000_000, "fetch.max.bytes": 1_000_000},
        {"reconnect.backoff.ms": 20_000},
        {"reconnect.backoff.ms": 10_000},
        {"retry.backoff.ms": 5000},
        {"max.poll.interval.ms": 1000},
        {"session.timeout.ms": 400_000},
        {"queued.max.messages.kbytes": 1},
        {"queued.max.messages.kbytes": 2_097_151},
        {"queued.max.messages.kbytes": 2_097_152},
        {"error_cb": 1},
        {"error_cb": print},
        {"stats_cb": "a"},
        {"throttle_cb": 4},
        {"on_commit": 3},
        {"logger": None},
        {"rebalance_cb": print},
        {"consume_cb": print},
        {"log_cb": print},
        {"opaque": 1},
        {"interceptors": 1},
        {"socket_cb": 1},
        {"client.id": ""},
        {"client.id": None},
        {"client.id": 5},
        {"group.protocol": "consumer"},
        {"group.protocol": "CONSUMER"},
        {"group.protocol": "other"},
        {"group.protocol": "consumer", "session.timeout.ms": 10_000},
        {"group.protocol": "consumer", "heartbeat.interval.ms": 1000},
        {"group.protocol": "consumer", "partition.assignment.strategy": "range"},
        {"partition.assignment.strategy": "foo"},
        {"partition.assignment.strategy": "cooperative-sticky"},
        {"builtin.features": "gzip"},
        {"builtin.features": "foo"},
        {"security.protocol": "PLAINTEXT"},
        {"security.protocol": "tls"},
        {"max.partition.fetch.bytes": 20, "fetch.message.max.bytes": 10},
        {"offset.store.method": "broker"},
        {"plugin.library.paths": "none.such"},
    ],
    ids=str,
)
def test_accepts_configurations_that_confluent_kafka_accepts(config: dict[str, Any]) -> None:
    assert ours_takes(config) == theirs_takes(config)


@pytest.mark.parametrize(
    "config",
    [
        {"auto.offset.reset": "none"},  # the Java consumer's word
        {"auto.offset.reset": "by_duration:PT1H"},  # KIP-1106
        {"fetch.max.bytes": 10},  # librdkafka: not below message.max.bytes, which a consumer does not need
        {"partition.assignment.strategy": "sticky"},
        {"error_cb": None},
    ],
    ids=str,
)
def test_accepts_more_than_confluent_kafka(config: dict[str, Any]) -> None:
    assert ours_takes(config) and not theirs_takes(config)


@pytest.mark.parametrize(
    "config",
    [
        {"log_level": 3.5},  # librdkafka cuts the number off
        {"log_level": "3.0"},
        {"logger": 5},
        {"offset.store.method": "file"},
        {"topic.blacklist": "a"},
        {"sasl.username": "u"},
    ],
    ids=str,
)
def test_settings_that_would_have_no_effect_are_refused(config: dict[str, Any]) -> None:
    assert not ours_takes(config) and theirs_takes(config)
