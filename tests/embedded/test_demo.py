"""`kconsumer demo`: its topics and its registry, read by the ways of the guides."""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import kconsumer
from kconsumer.cli.app import cli
from kconsumer.decoding import Avro, Json, Protobuf, SchemaRegistry
from kconsumer.testing import EmbeddedCluster, _flights
from kconsumer.testing.demo import COUNT, PARTITIONS, TOPICS, Demo

SCHEMA = {"carrier": "string", "flight": "int32", "origin": "string", "dest": "string", "distance": "int32",
          "dep": "timestamp[ms, UTC]", "delay": "int32"}


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    with Demo() as made:
        yield made


def rows(demo: Demo, topic: str, decoder: object) -> list[dict[str, object]]:
    found = kconsumer.scan({"bootstrap.servers": demo.bootstrap_servers}, topic, value=decoder,
                           metadata=["partition", "offset", "key"])
    return sorted(pa.RecordBatchReader.from_stream(found).read_all().to_pylist(),
                  key=lambda row: (row["partition"], row["offset"]))


def test_the_three_topics_have_the_same_flights(demo: Demo) -> None:
    registry = SchemaRegistry({"url": demo.registry_url})
    json_rows = rows(demo, "flights", Json(SCHEMA))
    assert len(json_rows) == COUNT
    assert {row["delay"] is None for row in json_rows} == {True, False}
    assert [row["key"].decode() for row in json_rows] == [row["carrier"] for row in json_rows]
    assert rows(demo, "flights-avro", Avro(registry)) == json_rows
    assert rows(demo, "flights-protobuf", Protobuf(registry, unit="ms")) == json_rows


def test_nothing_was_dropped(demo: Demo) -> None:
    assert demo.cluster is not None
    for topic in TOPICS:
        watermarks = demo.cluster.watermarks(topic)
        assert [low for low, _ in watermarks.values()] == [0] * PARTITIONS
        assert sum(high for _, high in watermarks.values()) == COUNT


def test_the_descriptor_is_that_of_the_text(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc", reason="the extra [protoc] compiles the text")
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    (tmp_path / "flight.proto").write_text(_flights.PROTOBUF)
    well_known = Path(protoc.__file__).parent / "_proto"
    made = tmp_path / "made"
    assert protoc.main(["", f"-I{tmp_path}", f"-I{well_known}", f"--descriptor_set_out={made}", "flight.proto"]) == 0
    [file] = FileDescriptorSet.FromString(made.read_bytes()).file
    assert base64.b64decode(_flights.PROTOBUF_SERIALIZED) == file.SerializeToString()


def get(url: str) -> object:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def test_the_registry_answers_as_registries_do(demo: Demo) -> None:
    url = demo.registry_url
    assert get(f"{url}/subjects") == ["flights-avro-value", "flights-protobuf-value"]
    assert get(f"{url}/subjects/flights-avro-value/versions") == [1]
    assert get(f"{url}/subjects/flights-avro-value/versions/1") == {
        "subject": "flights-avro-value", "version": 1, "id": 1, "schema": _flights.AVRO, "schemaType": "AVRO"}
    assert get(f"{url}/schemas/ids/2") == {"schema": _flights.PROTOBUF, "schemaType": "PROTOBUF"}


@pytest.mark.parametrize(("path", "code"), [
    ("subjects/other-value/versions/latest", 40401), ("subjects/flights-avro-value/versions/2", 40402),
    ("schemas/ids/3", 40403), ("config", 404)])
def test_the_registry_says_what_it_does_not_have(demo: Demo, path: str, code: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        get(f"{demo.registry_url}/{path}")
    assert raised.value.code == 404
    assert json.load(raised.value)["error_code"] == code


def test_the_command_serves_until_it_is_interrupted() -> None:
    process = subprocess.Popen([sys.executable, "-m", "kconsumer", "demo", "--port", "0", "--registry-port", "0"],
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(7)]
    assert [line.split()[:2] for line in lines[:3]] == [[topic, f"{COUNT:,}"] for topic in TOPICS]
    tried = re.fullmatch(r"Try in another terminal: kconsumer (.*)\n", lines[5])
    assert tried is not None
    shown = subprocess.run([sys.executable, "-m", "kconsumer", *tried[1].split()], capture_output=True, text=True,
                           check=True, timeout=60)
    assert len([json.loads(line)["carrier"] for line in shown.stdout.splitlines()]) == 3
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_a_topic_that_exists_is_refused() -> None:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("flights-avro")
        result = CliRunner().invoke(cli, ["demo", "-b", cluster.bootstrap_servers, "--registry-port", "0"])
    assert result.exit_code == 1
    assert result.stderr == ("kconsumer: cannot fill topics that exist: flights-avro: delete them, or use "
                             "another cluster\n")


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        result = CliRunner().invoke(cli, ["demo", "--port", str(port), "--registry-port", "0"])
    assert result.exit_code == 1
    assert f"port {port} or 0 is in use" in result.stderr


def test_properties_need_a_cluster() -> None:
    result = CliRunner().invoke(cli, ["demo", "-X", "security.protocol=SSL"])
    assert result.exit_code == 2
    assert "set -b/--bootstrap-servers" in result.stderr
