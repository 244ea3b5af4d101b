"""The driver's requests to brokers, how often it sends them, and its handling of failures; on the embedded cluster."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from kconsumer.errors import ConfigurationError, KafkaError, KafkaException
from kconsumer.ranges.offset_reader import OffsetReader
from kconsumer.ranges.offsets import EARLIEST, LATEST, AtOffsets, AtTime, Everywhere, Progress
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.limited_stream import LimitedStreamReader
from kconsumer.testing import EmbeddedCluster, KafkaCluster

LIST_OFFSETS, METADATA = 2, 3


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """One broker, so that it leads every partition; its faults affect no other test."""
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 3)
        cluster.create_topic("u", 1)
        cluster.produce("t", [{"value": b"x", "partition": p, "timestamp": 1000 * n} for n in range(5) for p in (0, 1)])
        yield cluster


@pytest.fixture
def asking(cluster: EmbeddedCluster) -> Iterator[Callable[..., OffsetReader]]:
    made: list[OffsetReader] = []

    def make(**options: str) -> OffsetReader:
        made.append(OffsetReader(parsed(cluster, **options)))
        return made[-1]

    yield make
    for reader in made:
        reader.close()


def parsed(cluster: EmbeddedCluster, **options: str) -> ReadOptions:
    what = {} if {"assign", "subscribePattern"} & options.keys() else {"subscribe": "t"}
    return ReadOptions.parse({"kafka.bootstrap.servers": cluster.bootstrap_servers,
                              "fetchOffset.retryIntervalMs": "1", **what, **options})


T = [("t", 0), ("t", 1), ("t", 2)]
KNOWN = Progress(dict.fromkeys(T, 0))


@pytest.mark.parametrize(("options", "places"), [
    ({"subscribe": "u,t"}, [*T, ("u", 0)]),
    ({"subscribePattern": "^[tu]$"}, [*T, ("u", 0)]),
    ({"subscribePattern": "x"}, []),
    ({"assign": '{"u": [0], "t": [2, 1]}'}, [("t", 1), ("t", 2), ("u", 0)]),
])
def test_places(asking: Callable[..., OffsetReader], options: dict[str, str], places: list[tuple[str, int]]):
    assert list(asking(**options).topics().places) == places


@pytest.mark.parametrize(("options", "text"), [
    ({"subscribe": "t,not-there"}, "topic not-there: "),
    ({"assign": '{"t": [1, 7, 9]}'}, "t [7], t [9]: there is no such partition"),
])
def test_a_missing_named_topic_raises(asking: Callable[..., OffsetReader], options: dict[str, str], text: str,
                                      caplog: pytest.LogCaptureFixture):
    with pytest.raises(KafkaException) as raised:
        asking(**options).topics()
    assert text in raised.value.args[0].str()
    lines = [record.getMessage() for record in caplog.records if "retrying" in record.getMessage()]
    assert len(lines) > 0 and all(line.startswith("a request to the brokers failed, retrying: t") for line in lines)


def test_latest_returns_all_ends_and_the_beginnings_of_new_partitions(asking: Callable[..., OffsetReader]):
    found = asking().latest(Progress({("t", 0): 3, ("t", 2): 0}))
    assert found.ends == {("t", 0): 5, ("t", 1): 5, ("t", 2): 0}
    assert found.beginnings == {("t", 1): 0}


def test_an_end_below_the_progress_is_requested_again(cluster: EmbeddedCluster, asking: Callable[..., OffsetReader]):
    cluster.track_requests()
    reader = asking(**{"fetchOffset.numRetries": "4"})
    assert reader.latest(Progress({("t", 0): 6, ("t", 1): 0, ("t", 2): 0})).ends["t", 0] == 5
    assert Counter(request.api_key for request in cluster.requests())[LIST_OFFSETS] == 4


def test_bounds(asking: Callable[..., OffsetReader]):
    reader = asking()
    assert reader.resolve(Everywhere(EARLIEST), "o", T, start=True) == dict.fromkeys(T, EARLIEST)
    given = {("t", 0): 3, ("t", 1): LATEST, ("t", 2): EARLIEST}
    assert reader.look_up(reader.resolve(AtOffsets(given), "o", T, start=True)) == {
        ("t", 0): 3, ("t", 1): 5, ("t", 2): 0}
    with pytest.raises(ConfigurationError, match=r"option o must list exactly the partitions .* it names t \[0\]"):
        reader.resolve(AtOffsets(given), "o", T[1:], start=True)
    with pytest.raises(ConfigurationError, match=r"it lacks t \[2\]"):
        reader.resolve(AtOffsets(dict.fromkeys(T[:2], 0)), "o", T, start=True)


def test_no_record_has_so_late_a_timestamp(kafka: KafkaCluster):
    """A real Kafka, as the embedded one does not look up times."""
    kafka.create_topic("young", 2, config={"retention.ms": -1})
    kafka.produce("young", [{"value": b"x", "timestamp": 1000 * n, "partition": 0} for n in range(1, 6)])
    old, young = ("young", 0), ("young", 1)
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": "young"}
    reader = OffsetReader(ReadOptions.parse(options))
    lenient = OffsetReader(ReadOptions.parse({**options, "startingOffsetsByTimestampStrategy": "latest"}))
    with pytest.raises(ConfigurationError, match=r"no record of young \[1\] has a timestamp of 1500 or later"):
        reader.resolve(AtTime(1500), "o", [old, young], start=True)
    assert lenient.resolve(AtTime(1500), "o", [old, young], start=True) == {old: 1, young: LATEST}
    assert reader.resolve(AtTime(1500), "o", [old, young], start=False) == {old: 1, young: LATEST}
    reader.close()
    lenient.close()


def test_a_failed_request_is_repeated_a_limited_number_of_times(
    cluster: EmbeddedCluster, asking: Callable[..., OffsetReader],
):
    denied = KafkaError.INVALID_REQUEST
    cluster.push_request_errors(LIST_OFFSETS, [denied, denied])
    assert asking().latest(KNOWN).ends["t", 0] == 5
    cluster.push_request_errors(LIST_OFFSETS, [denied] * 3)
    with pytest.raises(KafkaException, match="cannot look up its offsets"):
        asking().latest(KNOWN)


def test_a_task_gets_none_of_the_drivers_state(cluster: EmbeddedCluster):
    """Of a stream over many partitions that may be much."""
    stream = LimitedStreamReader(parsed(cluster, subscribe="t", startingOffsets="earliest"))
    before = len(pickle.dumps(stream))
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    tasks = stream.partitions(start, end)
    assert len(pickle.dumps(stream)) == before
    copy, task = pickle.loads(pickle.dumps((stream, tasks[0])))
    assert sum(map(len, copy.read(task))) == task.range.size > 0
    stream.stop()


def test_one_round_of_questions_a_trigger(cluster: EmbeddedCluster):
    """One Metadata request for the whole subscription, one ListOffsets to the broker that leads all of it."""
    stream = LimitedStreamReader(parsed(cluster, subscribe="t,u", startingOffsets="earliest"))
    at = stream.initialOffset()
    at = stream.latestOffset(at, stream.getDefaultReadLimit())
    consumer = stream._reader.consumer
    cluster.track_requests()
    for _ in range(10):
        at = stream.latestOffset(at, stream.getDefaultReadLimit())
        assert stream.partitions(at, at) == []
        assert stream.reportLatestOffset() == at
    assert Counter(request.api_key for request in cluster.requests()) == {METADATA: 10, LIST_OFFSETS: 10}
    assert stream._reader.consumer is consumer
    stream.stop()
