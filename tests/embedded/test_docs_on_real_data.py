"""Examples of the docs and examples/ where data is not tidy: many partitions, and a group that takes seconds to form.

What a block must have done when it ends is checked here; that all blocks run is test_docs_snippets.py's.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise

import pytest
from api_helpers import PATIENCE, settings, until
from docs_blocks import ADDRESS, ROOT, blocks
from test_docs_snippets import run as run_block

import kconsumer
from kconsumer import Consumer, KafkaError, TopicPartition
from kconsumer.testing import EmbeddedCluster

PARTITIONS = 24
RECORDS = 1200
DELAY_MS = 3000


@pytest.fixture
def cluster():
    with EmbeddedCluster(3) as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=DELAY_MS)
        cluster.create_topic("flights", partitions=PARTITIONS)
        order = random.Random(1)
        cluster.produce("flights", (
            {"key": f"{i % 7}", "partition": order.randrange(PARTITIONS - 1),  # one partition stays empty
             "value": json.dumps({"carrier": "ABCDEFG"[i % 7] + "A", "distance": 100 + i})} for i in range(RECORDS)))
        yield cluster


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def block_of(page, text):
    (found,) = [block for block in blocks(ROOT / "docs" / page)
                if block.language == "python" and text in block.code and not block.mark.startswith("not run")]
    return found


@pytest.mark.parametrize(("page", "number"), [("README.md", 1), ("docs/index.md", 0), ("docs/index.md", 1),
                                              ("docs/consuming.md", 0)])
def test_the_first_blocks_stop_at_a_topic_that_does_not_exist(cluster, page, number, capsys):
    code = [block for block in blocks(ROOT / page) if block.language == "python"][number].code
    names = {}
    try:
        with pytest.raises(SystemExit) as ended:
            exec(code.replace(ADDRESS, cluster.bootstrap_servers).replace('"flights"', '"flihgts"'), names)
    finally:
        names["consumer"].close()
    assert ended.value.code.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert capsys.readouterr().out == ""


def test_the_readers_of_parquet_find_columns_of_newer_files(tmp_path):
    """A folder after `kconsumer ingest --evolve add`: a column and a nested field are only in the newest file."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "out" / "flights-again"
    folder.mkdir(parents=True)
    for number, rows in enumerate(([{"carrier": "AA", "place": {"x": 1}}] * 3,
                                   [{"carrier": "BA", "place": {"x": 1, "y": 2}, "distance": 7}] * 2)):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (number, number))
    names = {}
    exec(block_of("ingest.md", "union_by_name").code, names)
    duckdb, frame, dataset = names["by_duckdb"], names["by_polars"].collect(), names["by_pyarrow"].to_table()
    assert duckdb.aggregate("count(*), count(distance), count(place.y)").fetchall() == [(5, 2, 2)]
    for table in (frame.to_arrow(), dataset):
        assert table["distance"].to_pylist() == [None] * 3 + [7] * 2
        assert [place["y"] for place in table["place"].to_pylist()] == [None] * 3 + [2] * 2


def ends(cluster):
    with Consumer(settings(cluster)) as consumer:
        return {p: consumer.get_watermark_offsets(TopicPartition("flights", p), timeout=PATIENCE)[1]
                for p in range(PARTITIONS)}


def committed(cluster, group):
    with Consumer(settings(cluster, group_id=group)) as consumer:
        found = consumer.committed([TopicPartition("flights", p) for p in range(PARTITIONS)], timeout=PATIENCE)
        return {p.partition: p.offset for p in found if p.offset > 0}


class SmallBatches(Consumer):
    """As a topic is that does not fit into one batch: the last batch has records of few partitions."""

    def consume_batch(self, max_records=50, timeout=-1):
        return super().consume_batch(50, timeout)


def test_to_parquet_commits_every_partition(cluster):
    pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra [arrow] is not installed")
    with Consumer(settings(cluster)) as consumer:
        names = {"pa": pa, "Consumer": SmallBatches, "TopicPartition": TopicPartition, "consumer": consumer}
        run_block(block_of("batches.md", "ParquetWriter"), names, cluster)
    rows = parquet.read_table("flights.parquet").to_pylist()
    assert {(row["partition"], row["offset"]) for row in rows} == {
        (p, offset) for p, end in ends(cluster).items() for offset in range(end)}
    assert len(rows) == RECORDS
    assert committed(cluster, "parquet") == {p: end for p, end in ends(cluster).items() if end}


def test_the_loop_after_kafka_python_reads_everything(cluster, capsys):
    run_block(block_of("migrating.md", "from-kafka-python"), {}, cluster)
    assert capsys.readouterr().out.count("flights ") == RECORDS


class Stalls(kconsumer.Consumer):
    """A consumer whose application stops once, with records in hand."""

    def consume(self, *arguments, **more):
        messages = super().consume(*arguments, **more)
        if messages and not self.held.is_set():
            self.held.set()
            self.go.wait(PATIENCE)
        return messages


def test_the_database_has_each_record_once_although_an_owner_was_slow(cluster, monkeypatch):
    """A member stops with records in hand and is thrown out; another takes its partitions and reads everything. What
    the first one writes when it goes on is refused."""
    block = block_of("commits.md", "create table if not exists owners")
    source = block.code.replace(ADDRESS, cluster.bootstrap_servers).replace(
        '"enable.auto.commit": False', '"enable.auto.commit": False, "session.timeout.ms": 6000, '
        '"max.poll.interval.ms": 6000, "heartbeat.interval.ms": 500')
    held, go, failure = threading.Event(), threading.Event(), []

    class Slow(Stalls):
        pass

    Slow.held, Slow.go = held, go

    def slow_owner():
        try:
            exec(compile(source.replace("from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition",
                                        "from kconsumer import OFFSET_BEGINNING, TopicPartition"),
                         "slow", "exec"), {"Consumer": Slow, "__name__": "slow"})
        except RuntimeError as error:
            failure.append(str(error))

    thread = threading.Thread(target=slow_owner, daemon=True)
    thread.start()
    try:
        assert held.wait(PATIENCE)
        run_block(block._replace(code=source), {"__name__": "next"}, cluster)
    finally:
        go.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert len(failure) == 1 and failure[0].endswith("has another owner")
    rows = sqlite3.connect("flights.db").execute("select partition, offset from flights").fetchall()
    assert sorted(rows) == sorted((p, offset) for p, end in ends(cluster).items() for offset in range(end))


@pytest.mark.timeout(400)
def test_the_service_has_one_job_a_partition_through_rebalances(cluster, monkeypatch):
    """Members come and go while every job takes a while; jobs of one partition never overlap, and its records
    are in order."""
    import runpy

    example = runpy.run_path(str(ROOT / "examples" / "service.py"), run_name="service_example")
    lock, running, seen, overlaps = threading.Lock(), set(), defaultdict(list), []

    def work(message):
        where = message.topic(), message.partition()
        with lock:
            if where in running:
                overlaps.append(where)
            running.add(where)
        time.sleep(0.002)  # the work itself
        with lock:
            running.discard(where)
            seen[where[1]].append(message.offset())

    example["work"].__globals__["work"] = work
    config = settings(cluster, group_id="service", session_timeout_ms=6000, heartbeat_interval_ms=500)
    taken_away = []

    class Service(example["Service"]):
        def revoked(self, consumer, partitions):
            taken_away.append(len(partitions))
            super().revoked(consumer, partitions)

        def lost(self, consumer, partitions):
            taken_away.append(len(partitions))
            super().lost(consumer, partitions)

    service = Service(config, "flights", 8)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        deadline = time.monotonic() + 6 * PATIENCE
        for _ in range(2):  # a member comes, which takes partitions away, and goes, which gives them back
            with Consumer({**config, "enable.auto.commit": False}) as other:
                other.subscribe(["flights"])
                while not other.assignment() and time.monotonic() < deadline:
                    with suppress(kconsumer.KafkaException):
                        other.poll(0.1)
        last = ends(cluster)
        # Once it has all partitions the group is stable: before that the embedded cluster refuses the last commit.
        until(lambda: not thread.is_alive() or (len(service.consumer.assignment()) == PARTITIONS and all(
            seen[p][-1:] == [end - 1] for p, end in last.items() if end)), 6 * PATIENCE, 0.1)
    finally:
        service.stop()
        thread.join(2 * PATIENCE)
    assert not thread.is_alive() and not overlaps
    for partition, end in ends(cluster).items():
        offsets = seen[partition]
        assert set(offsets) == set(range(end)), partition
        # The embedded cluster refuses commits while the group rebalances: then records come again, in order.
        back = [after - before for before, after in pairwise(offsets) if after != before + 1]
        assert all(step <= 0 for step in back), partition
        assert len(back) <= len(taken_away), partition
    assert committed(cluster, "service") == {p: end for p, end in ends(cluster).items() if end}


