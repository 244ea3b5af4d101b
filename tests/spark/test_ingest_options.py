"""The options of an ingestion, the guard of its checkpoint, and the reading of Spark's progress; no Spark runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

from kconsumer.errors import ConfigurationError
from kconsumer.ranges.offsets import Progress
from kconsumer.spark.ingest import Decoding, IngestOptions, checkpoint
from kconsumer.spark.ingest.logs import QueryLog
from kconsumer.spark.ingest.metrics import metrics_of
from kconsumer.spark.ingest.older import check_types_kept

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'


def options(**given: Any) -> IngestOptions:
    needed = {"bootstrap_servers": "localhost:1", "checkpoint": "state", "path": "out"}
    return IngestOptions(**{**needed, **({} if "pattern" in given else {"topics": ("t",)}), **given})


@pytest.mark.parametrize(("given", "said"), [
    ({"topics": ()}, "either topics or a pattern"),
    ({"topics": ("t",), "pattern": "t.*"}, "either topics or a pattern"),
    ({"topics": ("a,b",)}, "invalid topic 'a,b'"),
    ({"pattern": "("}, "expected a regular expression"),
    ({"checkpoint": " "}, "checkpoint is missing"),
    ({"path": None}, "parquet needs a path or a table"),
    ({"table": "t"}, "either a path or a table"),
    ({"start": "middle"}, "startingOffsets"),
    ({"trigger": "often"}, "trigger"),
    ({"trigger": "10"}, "invalid value '10' for trigger: expected a value such as 10s, 500ms, 5m, once or"),
    ({"bad_records": "column"}, "value raw is not decoded"),
    ({"decoding": Decoding("json"), "bad_records": "away"}, "one of column, dead-letter, fail"),
    ({"decoding": Decoding("json"), "bad_records": "dead-letter"}, "bad_records='dead-letter' needs a folder"),
    ({"decoding": Decoding("json"), "dead_letters": "dead"}, "bad_records='column' has no folder"),
    ({"partition_by": ("to_date(timestamp)",)}, "invalid partition name"),
    ({"source": {"startingOffsets": "latest"}}, "option startingOffsets cannot be set: give the start"),
    ({"source": {"Subscribe": "x"}}, "option Subscribe cannot be set: give the topics"),
    ({"source": {"columns": "value"}}, "option columns cannot be set"),
    ({"source": {"endingOffsets": "latest"}}, "a streaming query has no end"),
    ({"source": {"maxOffsetPerTrigger": "1"}}, "did you mean maxOffsetsPerTrigger"),
    ({"source": {"value.format": "json"}}, "option value.format cannot be set: the job's decoding sets it"),
    ({"source": {"badRecords": "drop"}}, "option badRecords cannot be set"),
    ({"sink": {"checkpointLocation": "x"}}, "option checkpointLocation cannot be set"),
    ({"kafka": {"auto.offset.reset": "latest"}}, "kafka.auto.offset.reset cannot be set"),
    ({"kafka": {"no.such": "1"}}, "no.such"),
    ({"bootstrap_servers": ""}, "kafka.bootstrap.servers is missing"),
])
def test_options_that_are_refused(given: dict[str, Any], said: str):
    with pytest.raises(ConfigurationError) as caught:
        options(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize(("given", "said"), [
    ({"kind": "xml"}, "one of raw, json, avro, protobuf"),
    ({"kind": "raw", "schema": "n INT"}, "value raw has no schema"),
    ({"kind": "protobuf", "schema": "n INT"}, "value protobuf has no schema"),
    ({"kind": "json", "message": "M"}, "value json has no descriptors and no message"),
    ({"kind": "avro"}, "value avro needs a schema"),
    ({"kind": "avro", "schema": "n INT"}, "the Avro schema is not JSON"),
    ({"kind": "avro", "schema": '"int"'}, "must be of type record"),
    ({"kind": "protobuf", "message": "M"}, "value protobuf needs descriptors"),
    ({"kind": "protobuf", "descriptors": b"x"}, "and a message name"),
    ({"kind": "raw", "skip_bytes": 5}, "bytes to skip"),
    ({"kind": "json", "skip_bytes": -1}, "bytes to skip"),
    ({"kind": "json", "sample": 0}, "at least 1 record"),
])
def test_decodings_that_are_refused(given: dict[str, Any], said: str):
    with pytest.raises(ConfigurationError) as caught:
        Decoding(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize(("trigger", "arguments", "ends"), [
    ("available-now", {"availableNow": True}, True),
    ("once", {"once": True}, True),
    ("10s", {"processingTime": "10000 milliseconds"}, False),
    ("0s", {"processingTime": "0 milliseconds"}, False),
    ("5m", {"processingTime": "300000 milliseconds"}, False),
])
def test_triggers(trigger: str, arguments: dict[str, Any], ends: bool):
    found = options(trigger=trigger)
    assert (found.trigger_arguments(), found.ends) == (arguments, ends)


def test_the_sources_options():
    found = options(kafka={"client.id": "c"}, source={"maxOffsetsPerTrigger": "5"}, topics=("a", "b")).source_options()
    assert found == {"kafka.bootstrap.servers": "localhost:1", "kafka.client.id": "c", "subscribe": "a,b",
                     "startingOffsets": "earliest", "maxOffsetsPerTrigger": "5"}
    assert options(pattern="a.*").source_options("latest")["startingOffsets"] == "latest"
    assert options(pattern="a.*").source_options()["subscribePattern"] == "a.*"


def test_columns_to_partition_by():
    assert options(partition_by=("topic", "day = to_date(timestamp) = x")).partitions == (
        ("topic", None), ("day", " to_date(timestamp) = x"))


# ---- the guard

SCHEMA = StructType([StructField("n", IntegerType())])


def record(schema: StructType | None = None, path: str = "file:/out", dead: str | None = None,
           cluster: str | None = "ours", time_zone: str = "UTC", **given: Any) -> checkpoint.Record:
    made = checkpoint.record_of(options(**given), cluster=cluster, path=path, dead_letters=dead, schema=schema,
                                time_zone=time_zone)
    found: checkpoint.Record = json.loads(json.dumps(made))  # as it comes back from the file
    return found


@pytest.mark.parametrize("given", [
    {}, {"trigger": "10s"}, {"start": "latest"}, {"bootstrap_servers": "other:9092"}, {"kafka": {"client.id": "x"}},
    {"source": {"maxOffsetsPerTrigger": "1", "INCLUDEHEADERS": "FALSE"}}, {"format": "PARQUET"},
    {"topics": ("u", "t")}, {"cluster": None}, {"sink": {"compression": "zstd"}},
])
def test_restarts_that_agree(given: dict[str, Any]):
    checkpoint.check(record(), record(**given), "state")


@pytest.mark.parametrize(("old", "new", "said"), [
    ({}, {"topics": ("u",)}, "topics: t there, u now"),
    ({}, {"cluster": "theirs"}, "Kafka cluster: ours there, theirs now"),
    ({"topics": ("t", "u")}, {"topics": ("u",)}, "topics: t, u there, u now"),
    ({"pattern": "a"}, {"pattern": "b"}, "pattern: a there, b now"),
    ({"pattern": "a"}, {}, "topics: none there, t now; pattern: a there, none now"),
    ({}, {"path": "file:/new"}, "path: file:/out there, file:/new now"),
    ({}, {"time_zone": "Europe/Berlin"}, "time zone: UTC there, Europe/Berlin now"),
    ({}, {"format": "delta"}, "format: parquet there, delta now"),
    ({"partition_by": ("topic",)}, {}, "partitioning: topic there, none now"),
    ({}, {"select": ("value.*",)}, "selection: none there, value.* now"),
    ({"decoding": Decoding("json")}, {}, "decoding: json there, raw now"),
    ({"decoding": Decoding("json"), "schema": SCHEMA}, {"decoding": Decoding("json"), "schema": StructType()},
     "schema: struct<n:int> there, struct<> now"),
    ({"decoding": Decoding("avro", AVRO)}, {"decoding": Decoding("avro", AVRO.replace("int", "long"))}, "schema: {"),
    ({"decoding": Decoding("protobuf", descriptors=b"1", message="M")},
     {"decoding": Decoding("protobuf", descriptors=b"2", message="N")}, "message: M there, N now; descriptors: "),
    ({"decoding": Decoding("json", skip_bytes=5)}, {"decoding": Decoding("json")}, "bytes to skip: 5 there, 0 now"),
    ({"decoding": Decoding("json"), "bad_records": "dead-letter", "dead_letters": "d", "dead": "file:/d"},
     {"decoding": Decoding("json"), "bad_records": "dead-letter", "dead_letters": "e", "dead": "file:/e"},
     "path of dead letters: file:/d there, file:/e now"),
])
def test_restarts_that_contradict(old: dict[str, Any], new: dict[str, Any], said: str):
    with pytest.raises(ConfigurationError) as caught:
        checkpoint.check(record(**old), record(**new), "file:/state")
    assert "the checkpoint file:/state was created with other options: " in str(caught.value)
    assert said in str(caught.value)


def test_a_checkpoint_that_does_not_know_its_cluster():
    checkpoint.check(record(cluster=None), record(), "state")


def test_after_failed_runs_bad_records_may_become_dead_letters():
    failing = record(decoding=Decoding("json"), bad_records="fail")
    checkpoint.check(failing, record(decoding=Decoding("json")), "state")
    checkpoint.check(failing, record(decoding=Decoding("json"), bad_records="dead-letter", dead_letters="d",
                                     dead="file:/d"), "state")


def test_a_checkpoint_that_does_not_know_its_time_zone():
    older = record()
    del older["time_zone"]
    checkpoint.check(older, record(time_zone="Europe/Berlin"), "state")


def test_an_avro_schema_may_be_laid_out_otherwise():
    other = json.dumps(json.loads(AVRO), indent=4)
    checkpoint.check(record(decoding=Decoding("avro", AVRO)), record(decoding=Decoding("avro", other)), "state")


def test_a_record_of_another_version():
    with pytest.raises(ConfigurationError, match="another version of kconsumer"):
        checkpoint.check({**record(), "version": 99}, record(), "state")


def test_a_record_of_a_version_in_which_spark_decoded():
    raw, typed = record(), record(decoding=Decoding("json"), schema=SCHEMA)
    assert (raw["version"], typed["version"]) == (1, 2)
    older = {**typed, "version": 1}
    checkpoint.check(older, typed, "state")
    assert [checkpoint.was_decoded_by_spark(one) for one in (raw, typed, older)] == [False, False, True]


def avro_of(kind: Any) -> Decoding:
    return Decoding("avro", json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}))


TIMES = StructType([StructField("t", TimestampType())])


@pytest.mark.parametrize(("decoding", "schema", "zone", "said"), [
    (avro_of({"type": "long", "logicalType": "time-micros"}), None, "UTC", "the type of value.f changes"),
    (avro_of(["null", {"type": "array", "items": ["int", "string"]}]), None, "UTC",
     "the type of value.f.element changes"),
    (avro_of({"type": "record", "name": "S", "fields": [
        {"name": "g", "type": {"type": "map", "values": {"type": "long", "logicalType": "timestamp-nanos"}}}]}),
     None, "UTC", "the type of value.f.g.element changes"),
    (avro_of(["null", "int"]), None, "Europe/Berlin", None),
    (avro_of({"type": "long", "logicalType": "timestamp-micros"}), None, "UTC", None),
    (Decoding("json"), TIMES, "Europe/Berlin", "times of value.t without a zone were in Europe/Berlin"),
    (Decoding("json"), TIMES, "UTC", None),
    (Decoding("json"), SCHEMA, "Europe/Berlin", None),
    (Decoding("protobuf", descriptors=b"x", message="M"), None, "UTC", "fields of M without a value were null"),
])
def test_outputs_that_would_become_a_mixture(decoding: Decoding, schema: Any, zone: str, said: str | None):
    if said is None:
        check_types_kept(decoding, schema, zone, "state")
        return
    with pytest.raises(ConfigurationError) as caught:
        check_types_kept(decoding, schema, zone, "state")
    assert said in str(caught.value)


def test_the_log_of_another_query():
    read = Progress({("a", 0): 5, ("b", 0): 7})
    checkpoint.check_foreign(read, ("b", "a", "c"), "state")
    checkpoint.check_foreign(read, (), "state")
    with pytest.raises(ConfigurationError, match="reads other topics: a, b there, a now"):
        checkpoint.check_foreign(read, ("a",), "state")


class _Texts:
    """A folder of one file."""

    def __init__(self, text: str) -> None:
        self.read = lambda _name: text

    def __str__(self) -> str:
        return "state"


def test_the_end_of_a_batch():
    log = QueryLog(_Texts('v1\n{"batchWatermarkMs":0}\n{"a":{"0":5},"b":{"0":7}}'))  # type: ignore[arg-type]
    assert log.end_of(3) == Progress({("a", 0): 5, ("b", 0): 7})


@pytest.mark.parametrize("log", ["", "v1\n{}", "v1\n{}\n17", "v1\n{}\nnonsense"])
def test_the_log_of_a_query_over_something_else(log: str):
    with pytest.raises(ConfigurationError, match="the checkpoint state does not belong to a query over Kafka topics"):
        QueryLog(_Texts(log)).end_of(0)  # type: ignore[arg-type]


# ---- metrics

PROGRESS = {
    "timestamp": "2026-01-01T00:00:00.000Z", "batchId": 3, "numInputRows": 1000,
    "durationMs": {"triggerExecution": 500}, "observedMetrics": {"kconsumer": {"bytes": 5000, "bad": 2}},
    "sources": [{"endOffset": {"t": {"0": 10, "1": 5}}, "latestOffset": '{"t": {"0": 12, "1": 5, "2": 4}}'}],
}


def test_the_metrics_of_a_trigger():
    found = metrics_of(PROGRESS, 500)
    assert json.loads(found.as_json()) == {
        "time": "2026-01-01T00:00:00.000Z", "batch": 3, "rows": 1000, "bytes": 5000, "bad": 2, "seconds": 0.5,
        "rows_per_second": 2000.0, "bytes_per_second": 10000.0, "lag": 6, "total_rows": 1500}


@pytest.mark.parametrize("without", ["numInputRows", "durationMs", "observedMetrics", "sources"])
def test_metrics_that_spark_does_not_report(without: str):
    found = metrics_of({name: value for name, value in PROGRESS.items() if name != without}, 0)
    assert found.rows == (0 if without == "numInputRows" else 1000)
    assert found.bytes == (0 if without == "observedMetrics" else 5000)


def test_a_lag_that_is_not_known():
    sources = [{"endOffset": {"t": {"0": 10}}, "latestOffset": None}]
    assert metrics_of({**PROGRESS, "sources": sources}, 0).lag is None
