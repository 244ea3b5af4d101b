"""Any range of any log: what the executors' code reads of it is what another client finds there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.planning import split
from kconsumer.spark.reading import read_range
from kconsumer.testing import KafkaCluster

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LEVELS = ("read_committed", "read_uncommitted")
BEGAN_MS = 1_714_564_800_000
# The topics are written by a Java producer for each codec, and then a compaction is waited for.
pytestmark = pytest.mark.timeout(600)
Row = tuple[int, bytes | None, bytes | None, int, list[tuple[str, bytes | None]] | None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Compacts soon."""
    with KafkaCluster(1, config={"log.cleaner.backoff.ms": 100}) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=[("zstd",), pytest.param(CODECS, marks=pytest.mark.slow)], ids=len)
def logs(
    cluster: KafkaCluster, java_produce: Callable[..., Any], request: pytest.FixtureRequest
) -> dict[str, dict[str, list[Row]]]:
    """The records of each topic, by isolation level, as confluent_kafka reads them."""
    prefix = f"ranges{len(request.param)}"
    compacted = _to_be_compacted(cluster, prefix)  # meanwhile
    topics = [_transactions(cluster, java_produce, prefix, codec) for codec in request.param]
    topics.append(compacted)
    _wait_for_the_cleaner(cluster, compacted)
    return {topic: {level: _truth(cluster, topic, level) for level in LEVELS} for topic in topics}


def _transactions(cluster: KafkaCluster, java_produce: Callable[..., Any], prefix: str, codec: str) -> str:
    """Transactions of a few records, committed and aborted, in batches of one codec, small and large."""
    topic, noise = f"{prefix}-{codec}", random.Random(codec)
    cluster.create_topic(topic, config={"retention.ms": -1})
    records: list[dict[str, Any]] = []
    for _ in range(20):
        records.append({"transaction": "begin"})
        for _ in range(noise.randrange(1, 25)):
            records.append(_record(noise, len(records)))
            if noise.random() < 0.1:
                records.append({"flush": True})
        records.append({"transaction": noise.choice(("commit", "commit", "abort"))})
    java_produce(cluster, topic, records, codec, transactional_id=topic)
    return topic


def _record(noise: random.Random, n: int) -> dict[str, Any]:
    return {
        "key": noise.choice((None, b"", b"key %d" % n)),
        "value": noise.choice((None, b"", b"value %d" % n, noise.randbytes(noise.choice((13, 3000))))),
        "timestamp": BEGAN_MS + n,
        "headers": noise.choice(([], [("h", b"%d" % n)], [("a", None), ("b", b"")])),
    }


def _to_be_compacted(cluster: KafkaCluster, prefix: str) -> str:
    topic, noise = f"{prefix}-compacted", random.Random(5)
    cluster.create_topic(topic, config={
        "cleanup.policy": "compact", "segment.ms": 200, "min.cleanable.dirty.ratio": 0.001, "segment.bytes": 1_048_576,
        "min.compaction.lag.ms": 0, "max.compaction.lag.ms": 200, "delete.retention.ms": 0})
    for _ in range(4):
        cluster.produce(topic, [(b"%d" % noise.randrange(40), b"%d" % n) for n in range(250)],
                        {"compression.type": "lz4"})
    return topic


def _wait_for_the_cleaner(cluster: KafkaCluster, topic: str) -> None:
    deadline = time.monotonic() + 60
    while len(_truth(cluster, topic, LEVELS[0])) > 400:
        assert time.monotonic() < deadline, "the cleaner has not run"
        cluster.produce(topic, [(b"roll", b"")])
        time.sleep(0.3)
    settled = 0
    while settled < 3:  # the cleaner is done: the truth must not change while it is compared with
        before = _truth(cluster, topic, LEVELS[0])
        time.sleep(0.5)
        settled = settled + 1 if _truth(cluster, topic, LEVELS[0]) == before else 0
        assert time.monotonic() < deadline + 60, "the cleaner does not come to rest"


def _truth(cluster: KafkaCluster, topic: str, level: str) -> list[Row]:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "truth", "isolation.level": level,
                         "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    rows: list[Row] = []
    try:
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return rows
            rows.append((message.offset(), message.key(), message.value(), message.timestamp()[1], message.headers()))
    finally:
        consumer.close()


def read_parts(options: ReadOptions, parts: list[OffsetRange]) -> list[Row]:
    rows: list[Row] = []
    for part in parts:
        for batch in read_range(options, part):
            batch.validate(full=True)
            times = batch.column("timestamp").cast("int64").to_pylist()
            columns = [batch.column(name).to_pylist() for name in ("offset", "key", "value")]
            headers = [None if found is None else [(h["key"], h["value"]) for h in found]
                       for found in batch.column("headers").to_pylist()]
            rows += zip(*columns, [at // 1000 for at in times], headers, strict=True)
    return rows


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_range(cluster: KafkaCluster, logs: dict[str, dict[str, list[Row]]], data: st.DataObject):
    topic = data.draw(st.sampled_from(sorted(logs)))
    level = data.draw(st.sampled_from(LEVELS))
    end_of_log = cluster_end(cluster, topic)
    start = data.draw(st.integers(0, end_of_log))
    end = data.draw(st.integers(start, end_of_log))
    parts = split([OffsetRange(topic, 0, start, end)] if end > start else [],
                  data.draw(st.none() | st.integers(1, 5)), data.draw(st.none() | st.integers(20, 200)))
    options = ReadOptions.parse({
        "kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "includeHeaders": "true",
        "kafka.isolation.level": level, "kafkaConsumer.pollTimeoutMs": "30000",
        "kafka.max.partition.fetch.bytes": data.draw(st.sampled_from(("1000", "20000", "1000000"))),
    })
    assert read_parts(options, parts) == [row for row in logs[topic][level] if start <= row[0] < end]


_ends: dict[tuple[str, str], int] = {}


def cluster_end(cluster: KafkaCluster, topic: str) -> int:
    """Nothing is written any more once the topics are there."""
    key = (cluster.bootstrap_servers, topic)
    if key not in _ends:
        _ends[key] = cluster.watermarks(topic)[0][1]
    return _ends[key]


@pytest.mark.slow
def test_the_same_through_spark(spark: Any, cluster: KafkaCluster, logs: dict[str, dict[str, list[Row]]]):
    """All of them in one query, in parts."""
    for level in LEVELS:
        frame = spark.read.format("kconsumer").options(**{
            "kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": ",".join(logs),
            "kafka.isolation.level": level, "minPartitions": "25"}).load()
        found: dict[str, list[tuple[int, bytes | None]]] = {topic: [] for topic in logs}
        for row in frame.select("topic", "offset", "value").orderBy("topic", "offset").collect():
            found[row[0]].append((row[1], None if row[2] is None else bytes(row[2])))
        assert found == {topic: [(row[0], row[2]) for row in by_level[level]] for topic, by_level in logs.items()}
