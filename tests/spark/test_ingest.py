"""The ingestion job on a real Kafka and a real local Spark: decodings, bad records, restarts, metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from kconsumer.errors import ConfigurationError
from kconsumer.spark.ingest import Decoding, Ingestion, IngestOptions, TriggerMetrics
from kconsumer.spark.ingest.checkpoint import FILE
from kconsumer.spark.ingest.job import plan, reads_raw
from kconsumer.testing import EmbeddedCluster, KafkaCluster

Names = Callable[[], str]
JSON = Decoding("json", "n INT, text STRING")
GOOD = [b'{"n": 1, "text": "one } {"}', b'{"n": 2}', b' {"text": "three", "n": null}\n']
BAD = {
    b"": "the value is empty",
    b"\xff\xfe{}": "not valid JSON",
    b"[1, 2]": "expected struct, found an array",
    b'[{"n": 1}, {"n": 2}]': "expected struct, found an array",
    b'{"n": 1, "text"}': "not valid JSON",
    b'{"n": 1} {"n": 2}': "there are bytes after the value",
    b'{"n": 1},{"n": 2}': "there are bytes after the value",
    b'{"n": "many", "text": "x"}': "field n: expected int32, found a string",
    b'{"n": 1, "text": 2}': "field text: expected string, found a number",
}


class Job:
    """An ingestion of a separate topic into files, which may be run again."""

    def __init__(self, spark: Any, kafka: KafkaCluster, topic: str, folder: Path) -> None:
        self.spark = spark
        self.kafka = kafka
        self.topic = topic
        self.folder = folder

    def options(self, **given: Any) -> IngestOptions:
        if "pattern" not in given:
            given.setdefault("topics", (self.topic,))
        return IngestOptions(**{
            "bootstrap_servers": self.kafka.bootstrap_servers, "checkpoint": str(self.folder / "state"),
            "path": str(self.folder / "rows"), **given})

    def run(self, **given: Any) -> list[TriggerMetrics]:
        """Read all there is; what each trigger did."""
        told: list[TriggerMetrics] = []
        run = Ingestion(self.spark, self.options(**given))
        run.start()
        run.wait(told.append)
        return told

    def write(self, *values: bytes | None, partitions: int = 1) -> None:
        self.kafka.produce(self.topic, [{"value": value, "partition": n % partitions}
                                        for n, value in enumerate(values)])

    def rows(self, folder: str = "rows") -> Any:
        return self.spark.read.parquet(str(self.folder / folder)).orderBy("partition", "offset")

    def dead(self) -> list[tuple[int, bytes, str]]:
        return [(row.offset, bytes(row.value), row.reason) for row in self.rows("dead").collect()]


@pytest.fixture
def job(spark: Any, kafka: KafkaCluster, topic_name: Names, tmp_path: Path) -> Job:
    name = topic_name()
    kafka.create_topic(name, 2)
    return Job(spark, kafka, name, tmp_path)


# ---- decoding

def test_raw_values_and_headers(job: Job):
    job.kafka.produce(job.topic, [{"key": b"k", "value": b"\x00\xff", "headers": [("h", b"1")], "partition": 1}])
    job.run(source={"includeHeaders": "true"})
    rows = job.rows()
    assert rows.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    row = rows.collect()[0]
    assert (bytes(row.key), bytes(row.value), row.topic, row.partition) == (b"k", b"\x00\xff", job.topic, 1)
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"1")]


def test_json_with_a_schema(job: Job):
    job.write(*GOOD, None)
    job.run(decoding=JSON)
    rows = job.rows()
    assert rows.select("value.*", "bad_record").collect() == [
        (1, "one } {", None), (2, None, None), (None, "three", None), (None, None, None)]
    assert rows.where("value is null").count() == 1  # the tombstone


@pytest.mark.slow
def test_json_with_a_schema_in_sparks_own_form(job: Job):
    from pyspark.sql.types import LongType, StructField, StructType

    job.write(b'{"n": 12345678901}')
    job.run(decoding=Decoding("json", StructType([StructField("n", LongType())]).json()))
    assert job.rows().select("value.n").collect() == [(12345678901,)]


@pytest.mark.slow
def test_json_whose_schema_is_inferred_from_every_partition(job: Job):
    job.write(b'{"a": 1}', b'{"b": {"c": "x"}}', b'{"a": 2.5}', b"no json", partitions=2)
    job.run(decoding=Decoding("json"))
    assert job.rows().select("value").schema.simpleString() == (
        "struct<value:struct<a:double,b:struct<c:string>>>")
    assert [row.bad_record and row.bad_record.reason for row in job.rows().collect()] == [
        None, None, None, "not valid JSON"]
    # What was inferred holds for later runs, whatever comes.
    job.write(b'{"a": 3, "d": true}')
    job.run(decoding=Decoding("json"))
    assert job.rows().select("value.a").where("a = 3").count() == 1
    assert "d" not in job.rows().select("value.*").columns


@pytest.mark.parametrize("source", [
    {"startingTimestamp": "1"}, {"startingtimestamp": "1"},
    pytest.param({"startingOffsetsByTimestamp": "{}", "maxBytesPerTrigger": "1"}, marks=pytest.mark.slow)])
def test_a_schema_is_inferred_for_any_start(job: Job, source: dict[str, str]):
    job.write(b'{"a": 1}')
    found = plan(job.spark, job.options(decoding=Decoding("json"), source=source))
    assert found.schema is not None and found.schema.simpleString() == "struct<a:bigint>"


def test_a_selection_and_new_columns_to_partition_by(job: Job):
    job.write(*GOOD)
    job.run(decoding=JSON, bad_records="fail", select=("offset", "partition as place", "value.*", "crc32(raw) as sum"),
            partition_by=("parity=value.n % 2", "place"))
    found = job.spark.read.parquet(str(job.folder / "rows"))
    assert found.columns == ["offset", "n", "text", "sum", "parity", "place"]
    assert sorted(path.name for path in (job.folder / "rows").glob("parity=*")) == [
        "parity=0", "parity=1", "parity=__HIVE_DEFAULT_PARTITION__"]
    assert found.where("sum is null").count() == 0


@pytest.mark.slow
def test_a_pattern_and_a_topic_that_comes_later(job: Job):
    job.write(b"1")
    job.run(pattern=f"{job.topic}.*")
    job.kafka.create_topic(f"{job.topic}-more", 1)
    job.kafka.produce(f"{job.topic}-more", [b"2"])
    job.run(pattern=f"{job.topic}.*")
    assert sorted(bytes(row.value) for row in job.rows().collect()) == [b"1", b"2"]


def test_avro_and_protobuf_need_no_jar(job: Job):
    """The descriptors go to the source as an option, not as a file."""
    from google.protobuf import descriptor_pb2, timestamp_pb2

    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    job.write(timestamp_pb2.Timestamp(seconds=5, nanos=7).SerializeToString(), b"\xff", None)
    job.run(decoding=Decoding("protobuf", descriptors=files.SerializeToString(), message="google.protobuf.Timestamp"))
    rows = job.rows().collect()
    assert [row.value and tuple(row.value) for row in rows] == [(5, 7), None, None]
    assert [row.bad_record and bytes(row.bad_record.value) for row in rows] == [None, b"\xff", None]


def test_a_duplicate_key_has_its_last_value(job: Job):
    job.write(b'{"n": 1, "n": 2}')
    job.run(decoding=JSON)
    assert job.rows().select("value.n", "bad_record").collect() == [(2, None)]


@pytest.mark.parametrize(("decoding", "said"), [
    (Decoding("json", "n INTERVAL DAY TO SECOND"), r"\bn (has|of the schema has) the type"),
    (Decoding("avro", json.dumps({"type": "record", "name": "R", "fields": [
        {"name": "n", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}}]})),
     r"Spark has no type for value\.n ")])
def test_a_type_that_is_not_decoded_is_named_before_a_query_starts(job: Job, decoding: Decoding, said: str):
    with pytest.raises(ConfigurationError, match=said):
        job.run(decoding=decoding)
    assert not (job.folder / "state").exists()


# ---- bad records

def test_bad_records_in_a_column(job: Job):
    job.write(*GOOD, *BAD)
    told = job.run(decoding=JSON)
    bad = job.rows().where("bad_record is not null").collect()
    assert {bytes(row.bad_record.value): row.bad_record.reason for row in bad} == BAD
    assert all(row.value is None for row in bad)
    assert job.rows().count() == len(GOOD) + len(BAD)
    assert sum(one.bad for one in told) == len(BAD)


def test_bad_records_as_dead_letters(job: Job):
    first, second = dict(list(BAD.items())[:4]), dict(list(BAD.items())[4:])
    given = {"decoding": JSON, "bad_records": "dead-letter", "dead_letters": str(job.folder / "dead")}
    job.write(*GOOD, *first)
    job.run(**given)
    assert job.dead() == [(len(GOOD) + n, *item) for n, item in enumerate(first.items())]
    job.write(*second, *GOOD)
    job.run(**given)
    assert [letter[1:] for letter in job.dead()] == list(BAD.items())
    rows = job.rows()
    assert "bad_record" not in rows.columns
    assert rows.select("value.n").collect() == [(1,), (2,), (None,)] * 2


@pytest.mark.slow
def test_a_bad_record_that_fails_the_run_is_named(job: Job):
    job.write(*GOOD, b"nonsense")
    with pytest.raises(StreamingQueryException) as caught:
        job.run(decoding=JSON, bad_records="fail")
    assert f"bad record: {job.topic} [0] at offset 3: not valid JSON" in str(caught.value)
    # The same run goes on once they have somewhere to go.
    told = job.run(decoding=JSON, bad_records="dead-letter", dead_letters=str(job.folder / "dead"))
    assert [(one.rows, one.bad) for one in told] == [(4, 1)]
    assert job.rows().count() == len(GOOD)
    assert job.dead() == [(3, b"nonsense", "not valid JSON")]


@pytest.mark.parametrize("select", [("offset",), ("1 AS one",)])
def test_a_bad_record_fails_the_run_for_any_selection(job: Job, select: tuple[str, ...]):
    job.write(b'{"n": 1}', b"nonsense")
    with pytest.raises(StreamingQueryException, match=r"bad record: .* \[0\] at offset 1: not valid JSON"):
        job.run(decoding=JSON, bad_records="fail", select=select)


@pytest.mark.slow
def test_options_may_change_until_a_trigger_has_begun(job: Job):
    job.write(*GOOD)
    with pytest.raises(AnalysisException):
        job.run(select=("no_such_column",))
    job.run(decoding=JSON)
    assert job.rows().count() == len(GOOD)


# ---- restarts

def test_a_restart_continues_at_the_exact_offset(job: Job):
    values = [b"%d" % n for n in range(300)]
    for part in range(3):
        job.write(*values[part * 100:][:100], partitions=2)
        told = job.run(source={"maxOffsetsPerTrigger": "40"})
        assert [one.rows for one in told] == [40, 40, 20]
        assert [one.lag for one in told] == [60, 20, 0]
    assert sorted(int(bytes(row.value)) for row in job.rows().collect()) == list(range(300))


@pytest.mark.slow
def test_once_is_one_trigger(job: Job):
    for part in range(2):
        job.write(*[b"%d" % n for n in range(part * 50, part * 50 + 50)])
        assert [one.rows for one in job.run(trigger="once", source={"maxOffsetsPerTrigger": "20"})] == [50]
    assert sorted(int(bytes(row.value)) for row in job.rows().collect()) == list(range(100))


@pytest.mark.slow
def test_further_topics_are_read_from_their_beginning(job: Job):
    job.write(b"1")
    job.run()
    job.kafka.create_topic(f"{job.topic}-b", 1)
    job.kafka.produce(f"{job.topic}-b", [b"2"])
    job.run(topics=(job.topic, f"{job.topic}-b"))
    assert sorted(bytes(row.value) for row in job.rows().collect()) == [b"1", b"2"]


CONTRADICTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"topics": ("another",)}, ["topics: {topic} there, another now"]),
    ({"pattern": "a.*"}, ["topics: {topic} there, none now", "pattern: none there, a.* now"]),
    ({"path": "{folder}/elsewhere"}, ["path: file:{folder}/rows there, file:{folder}/elsewhere now"]),
    ({"format": "orc"}, ["format: parquet there, orc now"]),
    ({"decoding": Decoding("json", "n BIGINT")}, ["schema: struct<n:int,text:string> there, struct<n:bigint> now"]),
    ({"decoding": Decoding()}, ["decoding: json there, raw now"]),
    ({"bad_records": "fail"}, ["bad records: column there, fail now"]),
    ({"partition_by": ("partition",)}, ["partitioning: none there, partition now"]),
    ({"source": {"includeHeaders": "true"}}, ["includeHeaders: false there, true now"]),
]


def test_restarts_that_contradict_the_checkpoint(job: Job):
    """Each is refused before a query starts, naming both; the checkpoint stays as it was."""
    job.write(*GOOD)
    job.run(decoding=JSON)
    names = {"topic": job.topic, "folder": str(job.folder)}
    for given, said in CONTRADICTIONS:
        texts = {name: value.format(**names) if isinstance(value, str) else value for name, value in given.items()}
        with pytest.raises(ConfigurationError) as caught:
            Ingestion(job.spark, job.options(**{"decoding": JSON, **texts})).start()
        for text in said:
            assert text.format(**names) in str(caught.value)
        assert not job.spark.streams.active
    job.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(ConfigurationError, match="time zone: UTC there, Europe/Berlin now"):
            job.run(decoding=JSON)
        job.spark.conf.set("spark.sql.session.timeZone", "Etc/UTC")  # another name of the same
        job.write(*GOOD)
        job.run(decoding=Decoding("json", "n INT, text STRING"))
    finally:
        job.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert job.rows().count() == 2 * len(GOOD)


def test_a_checkpoint_of_another_cluster(job: Job, embedded: EmbeddedCluster):
    """Its offsets would be those of other records."""
    job.write(*GOOD)
    job.run()
    embedded.create_topic(job.topic, 2)
    with pytest.raises(ConfigurationError, match="Kafka cluster: k"):
        job.run(bootstrap_servers=embedded.bootstrap_servers)


@pytest.mark.slow
def test_a_table_in_place_of_a_path(job: Job, topic_name: Names):
    table = f"table_{topic_name().rpartition('-')[2]}"
    for part in range(2):
        job.write(b'{"n": %d}' % part)
        job.run(path=None, table=table, decoding=JSON, select=("value.n", "offset"))
    try:
        assert job.spark.table(table).orderBy("n").collect() == [(0, 0, None), (1, 1, None)]
        with pytest.raises(ConfigurationError, match=f"table: {table} there, other now"):
            job.run(path=None, table="other", decoding=JSON, select=("value.n", "offset"))
    finally:
        job.spark.sql(f"DROP TABLE {table}")


@pytest.mark.slow
def test_the_checkpoint_of_a_query_that_was_not_this_job(job: Job):
    """One that Spark's source began is gone on with, if its topics are the same."""
    job.write(b"1", b"2")
    frame = job.spark.readStream.format("kafka").options(**{
        "kafka.bootstrap.servers": job.kafka.bootstrap_servers, "subscribe": job.topic,
        "startingOffsets": "earliest"}).load()
    frame.writeStream.format("parquet").option("checkpointLocation", str(job.folder / "state")).trigger(
        availableNow=True).start(str(job.folder / "rows")).awaitTermination()
    with pytest.raises(ConfigurationError, match=f"reads other topics: {job.topic} there, another now"):
        job.run(topics=("another",))
    job.write(b"3")
    job.run()
    assert [bytes(row.value) for row in job.rows().collect()] == [b"1", b"2", b"3"]


# ---- checkpoints of versions in which Spark decoded

def older(job: Job) -> None:
    """Make the checkpoint one of those."""
    path = job.folder / "state" / FILE
    document = json.loads(path.read_text())
    document["options"]["version"] = 1
    path.write_text(json.dumps(document))
    for checksum in path.parent.glob(f".{FILE}.crc"):
        checksum.unlink()


def test_an_older_checkpoint_continues(job: Job, caplog: pytest.LogCaptureFixture):
    job.write(*GOOD)
    job.run(decoding=JSON)
    older(job)
    job.write(*GOOD, b'{"n": 4, "n": 5}')
    job.run(decoding=JSON)
    assert job.rows().where("bad_record is null").select("value.n").collect() == [(1,), (2,), (None,)] * 2 + [(5,)]
    assert job.rows().schema["bad_record"].dataType.simpleString() == "struct<reason:string,value:binary>"
    warned = [entry for entry in caplog.records if "was written by an older kconsumer" in entry.getMessage()]
    assert len(warned) == 1
    job.run(decoding=JSON)  # which is no longer an older one
    assert len([entry for entry in caplog.records if "older kconsumer" in entry.getMessage()]) == 1


def test_an_older_checkpoint_whose_dead_letters_lag(job: Job):
    """A record whose outcome differs between the versions would be in neither output, or in both."""
    given = {"decoding": JSON, "bad_records": "dead-letter", "dead_letters": str(job.folder / "dead")}
    job.write(*GOOD, b"nonsense")
    job.run(**given)
    older(job)
    job.run(**given)
    assert [letter[0] for letter in job.dead()] == [len(GOOD)]
    older(job)
    commits = job.folder / "state" / "dead-letters" / "commits"
    for path in (*commits.glob("[0-9]*"), *commits.glob(".*.crc")):
        path.unlink()
    with pytest.raises(ConfigurationError, match="has not written all dead letters: run the older version"):
        job.run(**given)


def test_an_older_checkpoint_in_another_time_zone(job: Job):
    decoding = Decoding("json", "n INT, t ARRAY<TIMESTAMP>")
    job.write(b'{"n": 1}')
    job.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        job.run(decoding=decoding)
        older(job)
        with pytest.raises(ConfigurationError, match=r"times of value\.t\.element without a zone were in Europe"):
            job.run(decoding=decoding)
    finally:
        job.spark.conf.set("spark.sql.session.timeZone", "UTC")


# ---- metrics

def test_the_bytes_of_decoded_records(job: Job):
    """Of keys and values as they came: good, bad and null ones."""
    records = [{"key": b"key", "value": b'{"n": 1}', "partition": 0}, {"key": None, "value": b"bad", "partition": 0},
               {"key": b"k", "value": None, "partition": 0}, {"key": None, "value": b"", "partition": 0}]
    job.kafka.produce(job.topic, records)
    for folder, given in (("a", {}), ("b", {"select": ("raw",)}),
                          ("c", {"bad_records": "dead-letter", "dead_letters": str(job.folder / "dead")})):
        told = job.run(decoding=JSON, path=str(job.folder / folder), checkpoint=str(job.folder / f"{folder}-state"),
                       **given)
        assert [(one.rows, one.bytes, one.bad) for one in told] == [(4, 3 + 8 + 3 + 1, 2)]
    assert sorted(bytes(row.raw) for row in job.spark.read.parquet(str(job.folder / "b")).collect() if row.raw) == [
        b"bad", b'{"n": 1}']


@pytest.mark.parametrize(("given", "needed"), [
    ({}, False), ({"select": ("value.*", "offset")}, False), ({"select": ("value.n * 2 AS twice",)}, False),
    ({"select": ("crc32(RAW) AS sum",)}, True), ({"select": ("`raw`",)}, True), ({"select": ("*",)}, True),
    ({"select": ("* EXCEPT (key)",)}, True), ({"select": ("struct(*) AS all",)}, True),
    ({"partition_by": ("day=length(raw)",)}, True), ({"partition_by": ("raw",)}, False),
])
def test_the_bytes_are_asked_for_where_an_expression_reads_them(given: dict[str, Any], needed: bool):
    options = IngestOptions("localhost:1", "state", topics=("t",), path="rows", decoding=JSON, **given)
    assert reads_raw(options) is needed

def test_metrics(job: Job):
    job.write(*[b"x" * 100] * 50)
    told = job.run()
    assert len(told) == 1
    line = json.loads(told[0].as_json())
    assert {name: line[name] for name in ("batch", "rows", "bytes", "bad", "lag", "total_rows")} == {
        "batch": 0, "rows": 50, "bytes": 5000, "bad": 0, "lag": 0, "total_rows": 50}
    assert line["rows_per_second"] > 0
    assert line["bytes_per_second"] == pytest.approx(5000 / line["seconds"], rel=0.01)
