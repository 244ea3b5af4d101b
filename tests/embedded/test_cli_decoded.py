"""`kconsumer consume --value avro|json|protobuf`: decoded records in every form, bad ones shown as such, exit codes."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from kconsumer.cli.app import cli
from kconsumer.cli.decoded_output import iso_duration, objects
from kconsumer.testing import EmbeddedCluster

Run = Callable[..., Result]
SCHEMA = '{"id": "int64", "name": "string", "at": "timestamp[ms, UTC]"}'
BAD = b'{"id": "x"}'


@pytest.fixture
def run(embedded: EmbeddedCluster) -> Run:
    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["consume", "-b", embedded.bootstrap_servers, *arguments])

    return invoke


@pytest.fixture
def topic(embedded: EmbeddedCluster, topic_name: Callable[[], str]) -> str:
    """Eight records: tombstones at 3 and bad values at 2 and 6; keys that are not JSON."""
    name = topic_name()
    embedded.create_topic(name, 1)
    values = [json.dumps({"id": n, "name": f"n\x1b{n}", "at": "2024-05-01T12:00:00Z"}).encode() for n in range(8)]
    values[2] = values[6] = BAD
    embedded.produce(name, [
        {"key": f"k{n}", "value": None if n == 3 else value, "partition": 0, "headers": [("h", b"x")] if n else None}
        for n, value in enumerate(values)])
    return name


def lines(result: Result) -> list[dict[str, object]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_json_lines(run: Run, topic: str):
    result = run(topic, "--value", "json", "--schema", SCHEMA)
    assert result.exit_code == 0, result.output
    found = lines(result)
    assert found[1]["value"] == {"id": 1, "name": "n\x1b1", "at": "2024-05-01T12:00:00.000Z"}
    assert "\x1b" not in result.stdout
    assert found[1]["headers"] == [{"key": "h", "value": base64.b64encode(b"x").decode()}]
    assert found[1]["key"] == base64.b64encode(b"k1").decode() and found[1]["offset"] == 1
    assert found[3]["value"] is None and "value_error" not in found[3]
    assert found[2]["value"] is None and found[2]["value_error"] == {
        "reason": "expected int64, found a string", "field": "id", "position": 7,
        "bytes": base64.b64encode(BAD).decode()}
    assert sum("value_error" in line for line in found) == 2


def test_bad_records_decide_the_exit_code(run: Run, topic: str):
    shown = run(topic, "--value", "json", "--schema", SCHEMA, "--on-error", "show")
    failed = run(topic, "--value", "json", "--schema", SCHEMA, "--on-error", "fail")
    stopped = run(topic, "--value", "json", "--schema", SCHEMA, "--on-error", "stop")
    assert (shown.exit_code, failed.exit_code, stopped.exit_code) == (0, 1, 1)
    assert failed.stdout == shown.stdout and "2 keys or values could not be decoded" in failed.stderr
    assert [line["offset"] for line in lines(stopped)] == [0, 1]
    assert f"value of {topic} [0] at offset 2: field id: expected int64, found a string (byte 7)" in stopped.stderr
    good = run(topic, "--value", "json", "--schema", SCHEMA, "--on-error", "fail", "-n", "2")
    assert good.exit_code == 0 and len(lines(good)) == 2
    keys = run(topic, "--key", "json", "--key-schema", "int64", "--on-error", "stop")
    assert keys.exit_code == 1 and "key of " in keys.stderr


def test_values_suggest_their_schema(run: Run, topic: str):
    found = lines(run(topic, "--value", "json", "-n", "2"))
    assert found[1]["value"] == {"id": 1, "name": "n\x1b1", "at": "2024-05-01T12:00:00.000000Z"}
    mixed = lines(run(topic, "--value", "json"))
    assert {type(line["value"]["id"]) for line in mixed if line["value"]} <= {int, str}  # as the first batch has them
    nothing = run(topic, "--key", "json")
    assert nothing.exit_code == 2 and "no value is valid JSON" in nothing.stderr


def test_tables(run: Run, topic: str):
    result = run(topic, "--value", "json", "--schema", SCHEMA, "-o", "table", "-n", "4")
    assert result.exit_code == 0, result.output
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert rows[0] == ["partition", "offset", "key", "id", "name", "at", "error"]
    assert rows[2][3:5] == ["1", r"n\x1b1"]
    assert rows[3][3:] == ["", "", "", "value: field id: expected int64, found a string (byte 7)"]
    assert rows[4][3:] == ["", "", "", ""]


def test_arrow_and_parquet(run: Run, topic: str, tmp_path):
    arrow = run(topic, "--value", "json", "--schema", SCHEMA, "-o", "arrow")
    table = pa.ipc.open_stream(io.BytesIO(arrow.stdout_bytes)).read_all()
    assert run(topic, "--value", "json", "--schema", SCHEMA, "-o", "parquet", "-O", str(tmp_path / "x")).exit_code == 0
    for found in (table, pq.read_table(tmp_path / "x")):
        assert found["value"].to_pylist()[1]["id"] == 1 and found["key"].to_pylist()[1] == b"k1"
        assert [text is not None for text in found["value_error"].to_pylist()] == [n in (2, 6) for n in range(8)]


def test_avro_from_a_registry(run: Run, embedded: EmbeddedCluster, topic_name: Callable[[], str], tmp_path):
    pytest.importorskip("confluent_kafka.schema_registry.avro", reason="the extra [registry] is not installed")
    import registry_cases as cases
    from registry_server import RegistryServer

    topic = topic_name()
    embedded.create_topic(topic, 1)
    credentials = base64.b64encode(b"reader:secret").decode()
    with RegistryServer(f"Basic {credentials}") as server:
        client = cases.client(server.url, **{"basic.auth.user.info": "reader:secret"})
        cases.produce_flights(embedded.bootstrap_servers, topic, client)
        (tmp_path / "secret").write_text("reader:secret\n")
        options = ["--registry", server.url, "--registry-property", f"basic.auth.user.info=@{tmp_path / 'secret'}"]
        result = run(topic, "--value", "avro", "--key", "json", *options)
        assert result.exit_code == 0, result.output
        assert [(line["key"]["number"], line["value"]) for line in lines(result)] == [
            (n, {"delay": None, **cases.flight(n, n % 2 == 1)}) for n in range(cases.ROWS)]
        refused = run(topic, "--value", "avro", "--registry", server.url)
        assert refused.exit_code == 1 and "cannot fetch" in refused.stderr and "secret" not in refused.output
        other = run(topic, "--value", "avro", *options, "--subject", "no-such")
        assert other.exit_code == 1 and "subject no-such is not in the schema registry" in other.stderr
        assert "give the decoder a schema, or --subject if" in other.stderr
        named = run(topic, "--value", "avro", *options, "--subject", f"{topic}-value")
        assert [line["value"] for line in lines(named)] == [line["value"] for line in lines(result)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--value", "avro"], "avro needs the schema of the data: set --registry or --schema"),
        (["--value", "protobuf", "--schema", "@/nothing/here"], "cannot read /nothing/here"),
        (["--value", "avro", "--schema", '{"type": "x"}'], "invalid schema"),
        (["--value", "json", "--schema", "int65"], "invalid type 'int65'"),
        (["--value", "json", "-o", "text"], "no text form"),
        (["--value", "json", "--format", "%v"], "--format needs text output"),
        (["--schema", "int64"], "need --value or --key avro"), (["-o", "table"], "need --value"),
        (["--value", "json", "--key-schema", "int64"], "a schema needs avro"),
        (["--value", "json", "--registry-property", "a=b"], "needs --registry"),
        (["--value", "avro", "--registry", "http://x", "--registry-property", "a"], "expected NAME=VALUE"),
        (["--value", "avro", "--registry", "http://x", "--registry-property", "a=b"], "--registry: "),
        (["--value", "avro", "--schema", '"int"', "--subject", "s"], "--subject and --key-subject need --registry"),
        (["--subject", "s"], "need --value or --key avro"),
        (["--value", "json", "--message", "M", "--schema", "int64"], "--message is for protobuf only"),
    ], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_wrong_usage(run: Run, arguments: list[str], text: str):
    result = run("topic", *arguments)
    assert result.exit_code == 2 and text in result.stderr, result.output


def test_arrow_values_as_json():
    row = {"t": 1, "d": 2, "l": [b"x", None], "m": [("k", 1.5)], "f": float("nan"), "p": 3, "e": "a"}
    array = pa.array([row, None],
                     pa.struct([("t", pa.timestamp("ns")), ("d", pa.decimal128(5, 2)), ("l", pa.list_(pa.binary())),
                                ("m", pa.map_(pa.string(), pa.float64())), ("f", pa.float64()),
                                ("p", pa.duration("ns")), ("e", pa.dictionary(pa.int32(), pa.string()))]))
    assert objects(pa, array) == [{"t": "1970-01-01T00:00:00.000000001", "d": "2.00", "l": ["eA==", None],
                                   "m": {"k": 1.5}, "f": "nan", "p": "PT0.000000003S", "e": "a"}, None]
    assert objects(pa, array[1:]) == [None]


@pytest.mark.parametrize(("count", "per_second", "text"), [
    (0, 1, "PT0S"), (1_500, 1_000, "PT1.5S"), (-90, 1, "-PT1M30S"), (3_600, 1, "PT1H"),
    (3_723_000_000_001, 10**9, "PT1H2M3.000000001S"), (90_000, 1, "PT25H"),
])
def test_durations_in_iso_8601(count: int, per_second: int, text: str):
    assert iso_duration(count, per_second) == text


def test_intervals_of_months_days_and_nanoseconds():
    array = pa.array([(1, 2, 3_000_000), None], pa.month_day_nano_interval())
    assert objects(pa, array) == ["P1M2DT0.003S", None]


@pytest.mark.parametrize("options", [["--schema", SCHEMA], []])
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_an_empty_topic_is_a_file_with_the_schema(run: Run, embedded: EmbeddedCluster, tmp_path, options: list[str],
                                                  kind: str):
    topic = f"empty-{kind}-{len(options)}"
    embedded.create_topic(topic, 1)
    result = run(topic, "--value", "json", *options, "-o", kind, "-O", str(tmp_path / "x"))
    assert result.exit_code == 0, result.output
    read = pq.read_table if kind == "parquet" else lambda path: pa.ipc.open_stream(path).read_all()
    table = read(tmp_path / "x")
    assert table.num_rows == 0 and {"topic", "offset", "key", "value", "value_error"} <= set(table.column_names)
    assert table.schema.field("value").type == (pa.struct([("id", pa.int64()), ("name", pa.string()), (
        "at", pa.timestamp("ms", "UTC"))]) if options else pa.binary())


@pytest.mark.parametrize("records", [0, 1])
def test_columns_that_parquet_cannot_have(run: Run, embedded: EmbeddedCluster, tmp_path, records: int):
    topic = f"parquet-{records}"
    embedded.create_topic(topic, 1)
    embedded.produce(topic, [{"value": b'{"d": {}}', "partition": 0}] * records)
    result = run(topic, "--value", "json", "--schema", '{"d": {}}', "-o", "parquet", "-O",
                 str(tmp_path / "x"))
    assert result.exit_code == 1 and not (tmp_path / "x").exists()
    assert "Parquet cannot have these columns" in result.stderr and "struct" in result.stderr


def test_protobuf_by_a_file(run: Run, embedded: EmbeddedCluster, topic_name: Callable[[], str], tmp_path):
    pytest.importorskip("grpc_tools", reason="the extra [protoc] is not installed")
    (tmp_path / "a.proto").write_text(
        'syntax = "proto3"; import "google/protobuf/duration.proto"; message Other {} '
        "message A { int32 x = 1; google.protobuf.Duration d = 2; map<string, int64> m = 3; }")
    topic = topic_name()
    embedded.create_topic(topic, 1)
    embedded.produce(topic, [{"value": value, "partition": 0} for value in (
        b"\x08\x05\x12\x02\x08\x5a\x1a\x05\x0a\x01k\x10\x07", b"", b"\xff")])
    result = run(topic, "--value", "protobuf", "--schema", str(tmp_path / "a.proto"), "--message", "A")
    assert result.exit_code == 0, result.output
    assert [line["value"] for line in lines(result)] == [
        {"x": 5, "d": "PT1M30S", "m": {"k": 7}}, {"x": 0, "d": None, "m": {}}, None]


def test_a_field_that_no_record_has(run: Run, topic: str):
    result = run(topic, "--value", "json", "--schema", '{"id": "int64", "carier": "string"}')
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        "warning: no record has a value for the field 'carier' (of 5 records): check the schema"]
    assert run(topic, "--value", "json", "--schema", SCHEMA).stderr == ""
