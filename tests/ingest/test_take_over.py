"""A job that continues where a Structured Streaming query ended; tests/spark/test_old_checkpoints.py has real ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingest_scene import TOPIC, Killed, World
from test_driver import dying_table, no_sync  # noqa: F401

from kconsumer import ConfigurationError
from kconsumer.ingest import IngestError, Ingestion, IngestOptions, LocalRunner
from kconsumer.ingest.driver import run_to_end
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.takeover import TAKEN_OVER, TakeOver
from kconsumer.testing import EmbeddedCluster

BY = "job kconsumer of out"


class Checkpoint:
    """What Spark writes for a query with one Kafka source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("offsets", "commits"):
            (folder / name).mkdir(parents=True)

    def plan(self, batch: int, offsets: dict[str, dict[str, int]], *more: str) -> None:
        lines = ["v1", '{"batchWatermarkMs":0}', json.dumps(offsets), *more]
        (self.folder / f"offsets/{batch}").write_text("\n".join(lines))
        (self.folder / f"offsets/.{batch}.crc").write_bytes(b"crc")

    def finish(self, batch: int) -> None:
        (self.folder / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')

    def of_an_earlier_release(self, version: int = 2, **options: Any) -> None:
        """Add the file of the engine that earlier releases had; version 1: Spark decoded the values."""
        found = {"version": version, "cluster": None, "topics": [TOPIC], "format": "parquet", "bad_records": "column",
                 "path": f"file:{self.folder.parent}/old", "table": None, "dead_letters": None, **options}
        document = {"options": found, "start": "earliest", "ids": None, "after": None, "schema": None}
        (self.folder / "kconsumer-ingest.json").write_text(json.dumps(document))

    def take_over(self, topics: tuple[str, ...] = (TOPIC,), pattern: str | None = None, by: str = BY) -> TakeOver:
        return TakeOver(Storage(str(self.folder)), topics, pattern, by)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Batches 8, 9 and 10 of topic t; their numbers sort differently as text."""
    made = Checkpoint(tmp_path / "checkpoint")
    for batch in (8, 9, 10):
        made.plan(batch, {TOPIC: {"0": batch - 6, "1": 1, "2": 0}})
        made.finish(batch)
    return made


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "table", dying_table(tmp_path / "table"))
    for partition in range(3):
        made.produce(partition, 6)
    return made


def rest() -> Counter[tuple[int, int]]:
    """The records of `world` from the checkpoint's end on."""
    return Counter((p, n) for p, start in ((0, 4), (1, 1), (2, 0)) for n in range(start, 6))


def test_a_new_job_continues_at_the_end_of_the_newest_batch(checkpoint: Checkpoint, world: World):
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    assert world.rows() == rest()


def test_the_offsets_are_read_once(checkpoint: Checkpoint, world: World):
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    checkpoint.plan(11, {TOPIC: {"0": 0, "1": 0, "2": 0}})
    world.produce(0, 1)
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    assert world.rows() == rest() + Counter([(0, 6)])


def test_the_offsets_are_in_the_table_although_the_topics_were_empty(checkpoint: Checkpoint, world: World):
    world.ends = {0: 4, 1: 1, 2: 0}
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    for partition in range(3):
        world.produce(partition, 6 - world.ends[partition])
    run_to_end(world.process().driver)  # without the checkpoint
    assert world.rows() == rest()


def test_a_run_killed_anywhere_takes_over_once(checkpoint: Checkpoint, world: World):
    deaths = 0
    for dies_at in range(200):
        process = world.process(take_over=checkpoint.take_over())
        process.dies_at = dies_at % 40
        try:
            run_to_end(process.driver)
        except Killed:
            deaths += 1
    assert deaths > 10
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    assert world.rows() == rest()


def test_take_over_keeps_topic_ids_and_deleted_partitions(checkpoint: Checkpoint):
    checkpoint.plan(11, {TOPIC: {"0": 4}, f"{TOPIC} topic id kFp2": {}, f"{TOPIC} gone at 1:7": {}})
    checkpoint.finish(11)
    found = checkpoint.take_over().progress()
    assert (found.offsets, found.ids, found.gone) == ({(TOPIC, 0): 4}, {TOPIC: "kFp2"}, {(TOPIC, 1): 7})


def test_a_batch_that_is_not_finished(checkpoint: Checkpoint):
    checkpoint.plan(11, {TOPIC: {"0": 6, "1": 6, "2": 6}})
    with pytest.raises(IngestError, match=r"batch 11 of the checkpoint .* is not finished .*run its query"):
        checkpoint.take_over().progress()


# ---- the checkpoints of the engine that earlier releases had

AT_10 = {(TOPIC, 0): 4, (TOPIC, 1): 1, (TOPIC, 2): 0}
AT_11 = {(TOPIC, 0): 6, (TOPIC, 1): 6, (TOPIC, 2): 6}


@pytest.mark.parametrize("options", [
    {"version": 1}, {"version": 2}, {"bad_records": None, "decoding": "raw"}, {"bad_records": "fail"},
    {"format": "delta"}, {"format": "iceberg", "path": None, "table": "lake.db.rows"},
    {"topics": None, "pattern": "^t"},
], ids=str)
def test_a_checkpoint_of_an_earlier_release(checkpoint: Checkpoint, world: World, options: dict[str, Any]):
    checkpoint.of_an_earlier_release(**options)
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    assert world.rows() == rest()


def test_a_checkpoint_that_an_earlier_release_had_taken_over_from_another_query(checkpoint: Checkpoint):
    checkpoint.of_an_earlier_release()
    file = checkpoint.folder / "kconsumer-ingest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "after": [9, 9], "ids": {TOPIC: "kFp2"}}))
    assert checkpoint.take_over().progress().offsets == AT_10


@pytest.mark.parametrize(("written", "offsets"), [
    (("10", "11"), AT_11), (("9.compact", "10", "11"), AT_11), (("11.compact",), AT_11), ((".11.crc", "10"), None),
    ((), None),
])
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_killed_query_had_written_its_last_batch_or_not(
    checkpoint: Checkpoint, written: tuple[str, ...], offsets: dict[tuple[str, int], int] | None, kind: str,
):
    checkpoint.of_an_earlier_release(format=kind)
    checkpoint.plan(11, {TOPIC: {"0": 6, "1": 6, "2": 6}})
    log = checkpoint.folder.parent / "old/_spark_metadata"
    log.mkdir(parents=True)
    for name in written:
        (log / name).touch()
    if offsets is None:
        with pytest.raises(IngestError, match=r"batch 11 .* is not finished .*, remove .*/offsets/11 instead"):
            checkpoint.take_over().progress()
        (checkpoint.folder / "offsets/11").unlink()
    assert checkpoint.take_over().progress().offsets == (offsets or AT_10)


@pytest.mark.parametrize(("batch", "offsets"), [(11, AT_11), (10, None), (None, None)])
def test_a_killed_query_had_written_its_last_batch_to_a_delta_table_or_not(
    checkpoint: Checkpoint, batch: int | None, offsets: dict[tuple[str, int], int] | None,
):
    deltalake = pytest.importorskip("deltalake")
    checkpoint.of_an_earlier_release(format="delta")
    checkpoint.plan(11, {TOPIC: {"0": 6, "1": 6, "2": 6}})
    (checkpoint.folder / "metadata").write_text('{"id":"7d1f"}')
    if batch is not None:
        commit = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("7d1f", batch)])
        deltalake.write_deltalake(checkpoint.folder.parent / "old", pa.table({"a": [1]}), commit_properties=commit)
    if offsets is not None:
        assert checkpoint.take_over().progress().offsets == offsets
        return
    with pytest.raises(IngestError, match=r"batch 11 .* is not finished"):
        checkpoint.take_over().progress()


def test_the_first_batch_of_a_killed_query(tmp_path: Path):
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.of_an_earlier_release()
    checkpoint.plan(0, {TOPIC: {"0": 6, "1": 6, "2": 6}})
    with pytest.raises(IngestError, match="if the query has written nothing, start a new job without --take-over"):
        checkpoint.take_over().progress()
    (tmp_path / "old/_spark_metadata").mkdir(parents=True)
    (tmp_path / "old/_spark_metadata/0").touch()
    assert checkpoint.take_over().progress().offsets == AT_11


@pytest.mark.parametrize("letters", [None, {"0": 3, "1": 1, "2": 0}, {"0": 4, "1": 1, "2": 0}])
def test_dead_letters_that_a_killed_query_has_not_written(checkpoint: Checkpoint, letters: dict[str, int] | None):
    checkpoint.of_an_earlier_release(bad_records="dead-letter", dead_letters="file:/letters")
    if letters is not None:
        second = Checkpoint(checkpoint.folder / "dead-letters")
        second.plan(0, {TOPIC: letters})
        second.finish(0)
    if letters == {"0": 4, "1": 1, "2": 0}:
        assert checkpoint.take_over().progress().offsets == AT_10
        return
    with pytest.raises(IngestError, match="killed before it wrote all dead letters: run it with kconsumer"):
        checkpoint.take_over().progress()
    (checkpoint.folder / "kconsumer-ingest.json").unlink()
    assert checkpoint.take_over().progress().offsets == AT_10


# ---- checkpoints that cannot be taken over

def test_a_query_that_is_running(checkpoint: Checkpoint):
    """Between the two looks its next batch ended."""
    take_over = checkpoint.take_over()
    found = take_over.progress()
    checkpoint.plan(11, {TOPIC: {"0": 6, "1": 6, "2": 6}})
    checkpoint.finish(11)
    with pytest.raises(IngestError, match="is running: stop it, then take it over"):
        take_over.finish(found)


def test_a_query_that_is_running_costs_no_record(checkpoint: Checkpoint, world: World):
    driver = world.process(take_over=checkpoint.take_over()).driver
    driver.step()
    checkpoint.plan(11, {TOPIC: {"0": 6, "1": 6, "2": 6}})
    checkpoint.finish(11)
    with pytest.raises(IngestError, match="is running"):
        run_to_end(driver)
    assert not world.rows()
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    assert not world.rows()  # the query has read everything


def test_only_one_job_takes_over_a_checkpoint(checkpoint: Checkpoint):
    first = checkpoint.take_over()
    first.finish(first.progress())
    assert checkpoint.take_over().progress() == first.progress()
    with pytest.raises(IngestError, match="job kconsumer of out has already taken over the checkpoint"):
        checkpoint.take_over(by="job other of out").progress()


@pytest.mark.parametrize(("topics", "pattern"), [(("u",), None), ((), "^u"), (("u", "v"), None)])
def test_topics_that_the_job_does_not_read(checkpoint: Checkpoint, topics: tuple[str, ...], pattern: str | None):
    with pytest.raises(IngestError, match="has offsets of topics which this job does not read: t"):
        checkpoint.take_over(topics, pattern).progress()


def test_a_pattern(checkpoint: Checkpoint):
    assert checkpoint.take_over((), "^t").progress().offsets[TOPIC, 0] == 4


def test_another_cluster(checkpoint: Checkpoint, world: World):
    (checkpoint.folder / "kconsumer-ingest.json").write_text(json.dumps({"options": {"cluster": "elsewhere"}}))
    with pytest.raises(IngestError, match=r"the checkpoint has offsets in another Kafka cluster \(its id is elsewhere"):
        run_to_end(world.process(take_over=checkpoint.take_over()).driver)
    (checkpoint.folder / "kconsumer-ingest.json").write_text(json.dumps({"options": {"cluster": world.cluster_id()}}))
    run_to_end(world.process(take_over=checkpoint.take_over()).driver)


def test_a_checkpoint_that_is_not_of_a_kafka_query(tmp_path: Path, checkpoint: Checkpoint):
    with pytest.raises(IngestError, match="has no finished batch"):
        Checkpoint(tmp_path / "empty").take_over().progress()
    with pytest.raises(IngestError, match="has no finished batch"):
        TakeOver(Storage(str(tmp_path / "missing")), (TOPIC,), None, BY).progress()
    checkpoint.finish(11)
    two_sources = 'v1\n{}\n{"t":{"0":1}}\n{"u":{"0":1}}'
    for lines in ('v1\n{}\n{"logOffset":3}', "v1\n{}", "v1\n{}\n-", "{}", two_sources):
        (checkpoint.folder / "offsets/11").write_text(lines)
        with pytest.raises(IngestError, match="does not belong to a query over one source of Kafka topics"):
            checkpoint.take_over().progress()


def test_a_damaged_file_of_the_take_over(checkpoint: Checkpoint):
    (checkpoint.folder / TAKEN_OVER).write_text("{")
    with pytest.raises(IngestError, match=r"the file kconsumer-taken-over\.json in the checkpoint .* is not JSON"):
        checkpoint.take_over().progress()


def test_a_start_together_with_take_over_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="starts at its offsets: remove the start"):
        IngestOptions(bootstrap_servers="h:1", topics=("t",), path=str(tmp_path), start="latest", take_over="c")


def test_real_topics(tmp_path: Path):
    with EmbeddedCluster() as cluster:
        cluster.create_topic("flights", 2)
        cluster.produce("flights", [{"value": b"x", "partition": n % 2} for n in range(20)])
        checkpoint = Checkpoint(tmp_path / "checkpoint")
        checkpoint.plan(0, {"flights": {"0": 7, "1": 10}})
        checkpoint.finish(0)
        options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("flights",),
                                path=str(tmp_path / "out"), metadata=("partition", "offset"),
                                take_over=str(checkpoint.folder))
        with Ingestion(options, LocalRunner(1)) as run:
            run.run()
        rows = pq.read_table(tmp_path / "out").select(["partition", "offset"]).to_pylist()
        assert [(row["partition"], row["offset"]) for row in rows] == [(0, 7), (0, 8), (0, 9)]
        assert json.loads((checkpoint.folder / TAKEN_OVER).read_text()) == {
            "by": f"job kconsumer of {tmp_path / 'out'}"}


def test_a_folder_of_sparks_stream_is_refused(tmp_path: Path):
    (tmp_path / "out/_spark_metadata").mkdir(parents=True)
    (tmp_path / "out/_spark_metadata/0").write_text("v1")
    with EmbeddedCluster() as cluster:
        cluster.create_topic("flights", 1)
        options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("flights",),
                                path=str(tmp_path / "out"))
        with Ingestion(options, LocalRunner(1)) as run, pytest.raises(
                IngestError, match="was written by Spark's stream, whose log hides other files from Spark"):
            run.run()
