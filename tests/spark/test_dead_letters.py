"""The output of an ingestion and its dead letters: every record is in one of them, whatever happens in between."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from kconsumer.errors import ConfigurationError
from kconsumer.ranges.offsets import Progress
from kconsumer.spark.followed import followed, write_progress
from kconsumer.spark.ingest import Decoding, Ingestion
from kconsumer.spark.ingest.checkpoint import FILE
from kconsumer.testing import KafkaCluster
from tests.spark.conftest import delete_before, until
from tests.spark.test_ingest import Job

Names = Callable[[], str]
JSON = Decoding("json", "n INT")
PER_WRITE = 6  # records, of which every second is a bad one


class Both(Job):
    """An ingestion with dead letters."""

    def options(self, **given: Any) -> Any:
        return super().options(**{"decoding": JSON, "bad_records": "dead-letter",
                                  "dead_letters": str(self.folder / "dead"), **given})

    def some(self, topic: str = "", partition: int = 0) -> None:
        """Write some records: a good one, a bad one, and so on."""
        values = [b'{"n": 1}', b"bad"] * (PER_WRITE // 2)
        self.kafka.produce(topic or self.topic, [{"value": value, "partition": partition} for value in values])

    def output_only(self, **given: Any) -> None:
        """A run that is killed when it comes to the dead letters."""
        run = Ingestion(self.spark, self.options(**given))
        run.start()
        try:
            while True:
                until(lambda: not any(running.query.isActive for running in run._queries))
                assert not any(running.query.exception() for running in run._queries)
                if any(running.is_output for running in run._queries):
                    break
                run._begin(next(run._parts))
        finally:
            run.close()

    def places(self, folder: str) -> list[tuple[str, int, int]]:
        """(topic, partition, offset) of all that is in one of the outputs."""
        if not (self.folder / folder / "_spark_metadata").exists():
            return []
        try:
            found = self.rows(folder).select("topic", "partition", "offset").collect()
        except AnalysisException as error:  # there is no file yet
            assert error.getCondition() == "UNABLE_TO_INFER_SCHEMA", error
            return []
        return sorted((row.topic, row.partition, row.offset) for row in found)

    def check(self, **ends: int) -> None:
        """Both have all records up to these ends, each in its place, once; TOPIC_PARTITION=END."""
        wanted = [(topic, int(partition), offset) for name, end in ends.items()
                  for topic, _, partition in [name.rpartition("_")] for offset in range(end)]
        assert self.places("rows") == sorted(place for place in wanted if place[2] % 2 == 0)
        assert self.places("dead") == sorted(place for place in wanted if place[2] % 2 == 1)


@pytest.fixture
def job(spark: Any, kafka: KafkaCluster, topic_name: Names, tmp_path: Path) -> Both:
    name = topic_name()
    kafka.create_topic(name, 1)
    return Both(spark, kafka, name, tmp_path)


# ---- what is added

def test_partitions_that_are_added_before_the_dead_letters_begin(job: Both, grow: Callable[[str, int], None]):
    job.some()
    job.output_only()
    grow(job.topic, 2)
    job.some(partition=1)
    job.run()
    job.check(**{f"{job.topic}_0": 6, f"{job.topic}_1": 6})
    job.some(partition=1)
    grow(job.topic, 3)
    job.some(partition=2)
    job.run()
    job.check(**{f"{job.topic}_0": 6, f"{job.topic}_1": 12, f"{job.topic}_2": 6})


def test_an_older_topic_that_is_added_before_the_dead_letters_begin(job: Both):
    """Its first records are deleted before the output reads it, and more before the dead letters do."""
    more = f"{job.topic}-more"
    job.kafka.create_topic(more, 1)
    for _ in range(3):
        job.some(more)
    delete_before(job.kafka, more, 4)
    job.some()
    job.output_only()
    job.output_only(topics=(job.topic, more))
    delete_before(job.kafka, more, 8)
    with pytest.raises(StreamingQueryException, match="the records from 4 on are gone"):
        job.run(topics=(job.topic, more))
    assert [place[2] for place in job.places("rows") if place[0] == more] == [*range(4, 18, 2)]
    job.run(topics=(job.topic, more), source={"failOnDataLoss": "false"})
    assert [place[2] for place in job.places("dead") if place[0] == more] == [*range(9, 18, 2)]
    assert [place[2] for place in job.places("dead") if place[0] == job.topic] == [1, 3, 5]


def test_a_partition_whose_output_was_written_before_its_first_records_were_deleted(
    job: Both, grow: Callable[[str, int], None]
):
    """Its bad records are in neither output: a loss, which is reported, and stops the output too."""
    job.some()
    job.run()
    grow(job.topic, 2)
    job.some(partition=1)
    job.output_only()
    delete_before(job.kafka, job.topic, 4, partition=1)
    job.some()
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=r"\[1\] offsets 0 to 6: the records from 0 on are gone"):
            job.run()
    assert len(job.places("rows")) == 6
    job.run(source={"failOnDataLoss": "false"})
    assert [place[1:] for place in job.places("dead")] == [(0, 1), (0, 3), (0, 5), (0, 7), (0, 9), (0, 11), (1, 5)]


def test_a_topic_that_is_recreated_before_the_dead_letters_begin(job: Both):
    job.some()
    job.some()
    job.output_only()
    job.kafka.delete_topic(job.topic)
    job.kafka.create_topic(job.topic, 1)
    job.some()
    job.run(source={"failOnDataLoss": "false"})
    assert [place[2] for place in job.places("rows")] == sorted([*range(0, 12, 2), *range(0, 6, 2)])
    assert [place[2] for place in job.places("dead")] == [1, 3, 5]


def test_a_topic_that_is_deleted_before_its_dead_letters_are_read(job: Both):
    more = f"{job.topic}-more"
    job.kafka.create_topic(more, 1)
    topics = {"topics": (job.topic, more)}
    job.some()
    job.run(**topics)
    job.some(more)
    job.output_only(**topics)
    job.kafka.delete_topic(more)
    job.some()
    lossy = {"source": {"failOnDataLoss": "false"}}
    job.run(**topics, **lossy)
    assert len(job.places("rows")) == 9
    assert {place[0] for place in job.places("dead")} == {job.topic}
    assert len(job.places("dead")) == 6
    job.run(**topics, **lossy)


# ---- how far each has read

def test_the_dead_letters_end_where_the_output_does(job: Both):
    """Records come while they are read."""
    job.some()
    run = Ingestion(job.spark, job.options())
    run.start()
    until(lambda: not run._queries[0].query.isActive)
    job.some()
    run.wait(lambda _: None)
    job.check(**{f"{job.topic}_0": 6})
    job.run()
    job.check(**{f"{job.topic}_0": 12})


def test_a_run_of_intervals_that_is_stopped(job: Both):
    """The dead letters reach the output before it ends, and do not overtake it."""
    run = Ingestion(job.spark, job.options(trigger="100ms"))
    job.some()
    run.start()
    try:
        for end in (6, 12):
            until(lambda end=end: len(job.places("rows")) == end // 2)
            job.some()
        run.stop()
    finally:
        if not run._stops:
            run.close()
    run.wait(lambda _: None)
    end = 2 * len(job.places("rows"))
    assert end in (12, 18)
    job.check(**{f"{job.topic}_0": end})


def test_a_stopped_run_writes_the_dead_letters_of_its_records(job: Both):
    for _ in range(5):
        job.some()
    run = Ingestion(job.spark, job.options(source={"maxOffsetsPerTrigger": "4"}))
    run.start()
    run.wait(lambda _: run.stop() if not run._stops else None)
    end = 2 * len(job.places("rows"))
    assert 0 < end < 30
    job.check(**{f"{job.topic}_0": end})
    run = Ingestion(job.spark, job.options())
    run.start()
    run.stop()
    run.stop()  # at once
    run.wait(lambda _: None)
    job.run()
    job.check(**{f"{job.topic}_0": 30})


def test_after_runs_that_failed_a_dead_letter_has_its_place(job: Both):
    """The output of such a run has no bad record: dead letters begin where it ended."""
    job.kafka.produce(job.topic, [b'{"n": 1}'] * 5)
    job.run(bad_records="fail", dead_letters=None)
    delete_before(job.kafka, job.topic, 3)
    job.kafka.produce(job.topic, [b"bad"])
    job.run()
    assert [place[2] for place in job.places("dead")] == [5]


def test_a_start_by_time_is_looked_up_once(job: Both):
    job.kafka.produce(job.topic, [{"value": b"bad", "timestamp": at} for at in (1000, 2000, 3000)])
    options = {"source": {"startingTimestamp": "2000"}}
    job.output_only(**options)
    job.kafka.produce(job.topic, [{"value": b"bad", "timestamp": 1}])
    delete_before(job.kafka, job.topic, 1)
    job.run(source={"startingTimestamp": "3000"})
    assert [place[2] for place in job.places("dead")] == [1, 2, 3]


# ---- checkpoints of other queries

def foreign(job: Both, format_: str, count: int, **start: str) -> None:
    """A query that reads all there is into `rows`, in triggers of two records."""
    for _ in range(count):
        frame = job.spark.readStream.format(format_).options(**{
            "kafka.bootstrap.servers": job.kafka.bootstrap_servers, "subscribe": job.topic,
            "startingOffsets": "earliest", **start}).load()
        frame.writeStream.format("parquet").option("checkpointLocation", str(job.folder / "state")).trigger(
            availableNow=True).start(str(job.folder / "rows")).awaitTermination()
        job.some()


@pytest.mark.parametrize("format_", ["kafka", "kconsumer"])
def test_a_foreign_checkpoint_and_dead_letters(job: Both, format_: str):
    """They begin where the checkpoint ends, not where a new one would: no bad record is in neither output."""
    job.some()
    foreign(job, format_, 1)
    job.run(start="latest")
    assert [place[2] for place in job.places("rows")] == [*range(6), 6, 8, 10]
    assert [place[2] for place in job.places("dead")] == [7, 9, 11]


def test_a_foreign_checkpoint_that_was_killed_in_its_first_batch(job: Both):
    job.some()
    state = job.folder / "state"
    for path, text in (("offsets/0", f'v1\n{{"batchWatermarkMs":0}}\n{{"{job.topic}":{{"0":4}}}}'),
                       ("sources/0/0", f'v1\n{{"{job.topic}":{{"0":2}}}}'),
                       ("metadata", json.dumps({"id": str(uuid.uuid4())}))):
        (state / path).parent.mkdir(parents=True, exist_ok=True)
        (state / path).write_text(text)
    job.run(start="latest")
    assert [place[2] for place in job.places("rows")] == [2, 4]
    assert [place[2] for place in job.places("dead")] == [3, 5]


def test_a_foreign_checkpoint_into_another_folder(job: Both):
    """Spark could not read it once a batch is written there whose predecessors are elsewhere."""
    job.some()
    foreign(job, "kafka", 2)
    elsewhere = str(job.folder / "elsewhere")
    offsets = json.dumps({job.topic: {"0": 12}})
    with pytest.raises(ConfigurationError) as caught:
        job.run(path=elsewhere)
    assert f"has written batches 0 to 1, but file:{elsewhere} has none" in str(caught.value)
    assert f"--from '{offsets}'" in str(caught.value)
    assert not (job.folder / "state" / FILE).exists()
    # The remedy.
    job.run(path=elsewhere, dead_letters=f"{elsewhere}-dead", checkpoint=str(job.folder / "new"), start=offsets)
    assert [place[2] for place in job.places("elsewhere")] == [12, 14, 16]
    job.some()
    job.run()  # and the other one, which was not changed by the attempt
    assert [place[2] for place in job.places("rows")] == [*range(12), *range(12, 24, 2)]


def test_a_folder_of_another_checkpoint(job: Both):
    """Spark would take its batches for those of the new checkpoint, and leave the records out."""
    job.some()
    job.run()
    with pytest.raises(ConfigurationError, match="has batches 0 to 0 of another checkpoint"):
        job.run(checkpoint=str(job.folder / "new"), dead_letters=str(job.folder / "new-dead"))
    with pytest.raises(ConfigurationError, match="dead has batches 0 to 0 of another checkpoint"):
        job.run(checkpoint=str(job.folder / "new"), path=str(job.folder / "new-rows"))


def test_a_table_of_another_checkpoint(job: Both, topic_name: Names):
    table = f"table_{topic_name().rpartition('-')[2]}"
    job.some()
    given = {"path": None, "table": table, "select": ("offset",)}
    job.run(**given)
    try:
        job.run(**given)
        with pytest.raises(ConfigurationError, match="has batches 0 to 0 of another checkpoint"):
            job.run(**given, checkpoint=str(job.folder / "new"), dead_letters=str(job.folder / "new-dead"))
        foreign(job, "kafka", 1)
    finally:
        job.spark.sql(f"DROP TABLE {table}")


def test_a_foreign_checkpoint_binds_once_a_trigger_has_begun(job: Both):
    job.some()
    foreign(job, "kafka", 1)
    for _ in range(2):
        with pytest.raises(Exception, match="no_such_column"):
            job.run(select=("no_such_column",))
    job.run()
    with pytest.raises(ConfigurationError, match="selection: none there, offset now"):
        job.run(select=("offset",))


# ---- the file between them

def test_the_progress_of_the_followed_query(tmp_path: Path):
    path = tmp_path / "output"
    path.touch()
    start = Progress({("t", 0): 5, ("u", 0): 3, ("v", 0): 2}, {"t": "A", "u": "B"})
    assert followed(str(path), start) == start
    write_progress(str(path), Progress({("t", 0): 9, ("u", 0): 1, ("u", 1): 4}, {"t": "A", "u": "C"}, {("v", 0): 7}))
    assert followed(str(path), start) == Progress(
        {("t", 0): 9, ("u", 0): 1, ("u", 1): 4}, {"t": "A", "u": "C"}, {("v", 0): 7})
    ahead = Progress({("t", 0): 11, ("t", 1): 2}, {"t": "A"})
    assert followed(str(path), ahead).offsets == {("t", 0): 11, ("t", 1): 2, ("u", 0): 1, ("u", 1): 4}
