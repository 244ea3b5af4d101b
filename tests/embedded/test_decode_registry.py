"""Records of confluent_kafka's serializers on the embedded cluster, with another project's registry."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator

import pytest

pytest.importorskip("confluent_kafka.schema_registry.avro", reason="the extra [registry] or fastavro is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")

import registry_cases as cases  # noqa: E402
from confluent_kafka.schema_registry import Schema  # noqa: E402
from registry_server import RegistryServer  # noqa: E402

from kconsumer.decoding import Avro, Json, RegistryError, SchemaRegistry  # noqa: E402
from kconsumer.testing import EmbeddedCluster  # noqa: E402

QUICK = {"max.retries": 1, "retries.wait.ms": 1}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1) as started:
        yield started


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as started:
        yield started


def test_every_framing_and_schema(cluster, server, caplog):
    cluster.create_topic("flights", 1)
    cases.produce_flights(cluster.bootstrap_servers, "flights", cases.client(server.url))
    batch = cases.read(cluster.bootstrap_servers, "flights", cases.ROWS)
    server.requests()
    cases.check_flights(batch, SchemaRegistry({"url": server.url}))
    asked = server.requests()
    assert len(asked) == len(set(asked)), asked  # each schema once, by id and by GUID
    assert sum("/schemas/guids/" in one for one in asked) == 3  # two values' and the key's
    assert [r.message.rpartition(": ")[2] for r in caplog.records] == ["carrier"]  # of the decoder with two fields


def test_new_ids_and_outages_while_reading(cluster, server, caplog):
    servers, topic = cluster.bootstrap_servers, "evolving"
    cluster.create_topic(topic, 1)
    client = cases.client(server.url)
    cases.produce_flights(servers, topic, client, seconds=False)
    registry = SchemaRegistry({"url": server.url, "timeout": 1.0, **QUICK})
    decoder = Avro(registry)
    first = cases.read(servers, topic, cases.ROWS)
    server.outage("503")
    with pytest.raises(RegistryError, match=r"newest schema of subject evolving-value from .*not now"):
        first.decode(value=decoder)
    server.outage("none")
    assert pa.table(first.decode(value=decoder))["value"].to_pylist() == [
        cases.flight(n, False) for n in range(cases.ROWS)]
    cases.produce_flights(servers, topic, client, start=cases.ROWS)
    both = cases.read(servers, topic, 2 * cases.ROWS)
    for how in ("503", "drop", "hang"):
        server.outage(how)
        with pytest.raises(RegistryError, match="cannot fetch schema") as raised:
            both.decode(value=decoder)
        assert len(raised.value.missing) == 2  # of the new schema: its id and its GUID
    assert len(first.decode(value=decoder)) == cases.ROWS  # what is known needs no registry
    server.outage("none")
    assert pa.table(both.decode(value=decoder, on_error="raise"))["value"].to_pylist() == [
        cases.flight(n, False) for n in range(2 * cases.ROWS)]  # the schema of the first use
    assert [r.message.rpartition(": ")[2] for r in caplog.records if r.levelno == logging.WARNING] == ["delay"]
    newest = pa.table(both.decode(value=Avro(registry), columns=["delay"], flatten=True))
    assert newest["delay"].to_pylist() == [
        n / 2 if n >= cases.ROWS and n % 2 else None for n in range(2 * cases.ROWS)]


def test_authentication(cluster):
    credentials = base64.b64encode(b"reader:secret").decode()
    with RegistryServer(f"Basic {credentials}") as server:
        allowed = {"basic.auth.user.info": "reader:secret"}
        cases.client(server.url, **allowed).register_schema("t-value", Schema('"int"', "AVRO"))
        decoder = Avro(SchemaRegistry({"url": server.url, **allowed}), subject="t-value")
        assert pa.array(decoder.decode([b"\0\0\0\0\x01\x04"])).to_pylist() == [2]
        for wrong in ({}, {"basic.auth.user.info": "reader:wrong"}):
            refused = SchemaRegistry({"url": server.url, **wrong})
            with pytest.raises(RegistryError, match=r"HTTP status code 40[13]") as raised:
                Avro(refused, subject="t-value").decode([b"\0\0\0\0\x01\x04"])
            assert "secret" not in str(raised.value)


def test_an_empty_batch_needs_no_registry(cluster):
    cluster.create_topic("nothing", 1)
    registry = SchemaRegistry({"url": "http://127.0.0.1:1", **QUICK})
    batch = cases.read(cluster.bootstrap_servers, "nothing", 0)
    for decoder in (Avro(registry), Json(registry)):
        assert len(batch.decode(value=decoder)) == 0


def test_a_header_that_is_no_reference_and_a_null_one(cluster, server):
    cluster.create_topic("headers", 1)
    client = cases.client(server.url)
    id_ = client.register_schema("headers-value", Schema('"int"', "AVRO"))
    guid = client.get_latest_version("headers-value").guid
    name = "__value_schema_id"
    prefixed = b"\0" + id_.to_bytes(4, "big") + b"\x04"
    headers: list[list[tuple[str, bytes | None]]] = [
        [], [(name, None)], [(name, b"\x01" + bytes.fromhex(guid.replace("-", "")))], [(name, prefixed[:5])],
        [(name, b"")], [(name, b"\x02" * 17)], [(name, b"\x01" * 17)], [("other", b"x"), (name, prefixed[:5])],
        [("__key_schema_id", b"\x01" * 17)]]
    values = [prefixed if not own or own[0][1] is None or "key" in own[0][0] else b"\x04" for own in headers]
    cluster.produce("headers", [{"value": value, "headers": own, "partition": 0}
                                for value, own in zip(values, headers, strict=True)])
    batch = cases.read(cluster.bootstrap_servers, "headers", len(values))
    decoded = batch.decode(value=Avro(SchemaRegistry({"url": server.url})))
    assert pa.table(decoded)["value"].to_pylist() == [2, 2, 2, 2, None, None, None, 2, 2]
    assert [bad.reason for bad in decoded.errors] == [
        "the framing is invalid", "the framing is invalid", "the schema id is unknown"]
    part = batch[2:4].decode(value=Avro("int", writers={id_: "int"}, framing="confluent"))
    assert pa.table(part)["value"].to_pylist() == [None, 2]
