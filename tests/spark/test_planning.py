"""Options, and how ranges become tasks: what needs neither Spark nor a broker to run."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.errors import ConfigurationError
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.planning import OffsetRange, split

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def parse(**options: str) -> ReadOptions:
    return ReadOptions.parse({**BROKER, **options})


def test_defaults():
    options = parse(subscribe=" a, b,a ,")
    assert (options.topics, options.assigned) == (("a", "b"), ())
    assert options.starting is None and options.ending is None
    assert (options.min_partitions, options.max_records_per_partition) == (None, None)
    assert not options.include_headers
    assert options.read_committed  # kconsumer's default, as librdkafka's
    assert options.poll_timeout_s == 120
    assert options.consumer_config == {
        "bootstrap.servers": "127.0.0.1:9092", "auto.offset.reset": "error", "enable.auto.commit": "false"}


def test_names_come_in_lower_case():
    options = ReadOptions.parse({
        "kafka.bootstrap.servers": "h:1", "assign": '{"t": [2, 0]}', "startingoffsets": '{"t": {"0": 5, "2": -2}}',
        "endingoffsets": '{"t": {"0": -1, "2": 9}}', "minpartitions": "3", "maxrecordsperpartition": " 7 ",
        "includeheaders": "TRUE", "failondataloss": "true", "kafkaconsumer.polltimeoutms": "1500",
        "kafka.isolation.level": "read_uncommitted", "kafka.fetch.min.bytes": "10",
    })
    assert options.assigned == (("t", 2), ("t", 0))
    assert options.starting == {("t", 0): 5, ("t", 2): -2}
    assert options.ending == {("t", 0): -1, ("t", 2): 9}
    assert (options.min_partitions, options.max_records_per_partition) == (3, 7)
    assert options.include_headers and not options.read_committed
    assert options.poll_timeout_s == 1.5
    assert options.consumer_config["fetch.min.bytes"] == "10"


def test_options_travel():
    options = parse(assign='{"t": [0]}', startingOffsets='{"t": {"0": 1}}')
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(("options", "text"), [
    ({"subscribe": "t", "minPartition": "3"}, "unknown option 'minPartition' (did you mean minPartitions?)"),
    ({"subscribe": "t", "foo": "1", "bar": "2"}, "unknown options 'bar', 'foo'"),
    ({}, "exactly one of the options subscribe and assign"),
    ({"subscribe": "t", "assign": '{"t": [0]}'}, "exactly one of the options subscribe and assign"),
    ({"subscribe": " , "}, "subscribe names no topic"),
    ({"assign": "t"}, "assign is to be like"),
    ({"assign": '["t"]'}, "assign is to be like"),
    ({"assign": '{"t": 0}'}, "assign is to be like"),
    ({"assign": '{"t": [-1]}'}, "assign is to be like"),
    ({"assign": '{"t": [true]}'}, "assign is to be like"),
    ({"assign": "{}"}, "assign names no partition"),
    ({"assign": '{"t": [1, 1]}'}, "assign names a partition twice"),
    ({"subscribe": "t", "startingOffsets": "latest"}, "startingOffsets cannot be latest in a batch read"),
    ({"subscribe": "t", "endingOffsets": "earliest"}, "endingOffsets cannot be earliest in a batch read"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets cannot be -1 (latest)"),
    ({"subscribe": "t", "endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets cannot be -2 (earliest)"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": -3}}'}, "startingOffsets is to be like"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"x": 3}}'}, "startingOffsets is to be like"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": "3"}}'}, "startingOffsets is to be like"),
    ({"subscribe": "t", "startingOffsets": '{"t": [3]}'}, "startingOffsets is to be like"),
    ({"subscribe": "t", "startingOffsets": "23"}, "startingOffsets is to be like"),
    ({"subscribe": "t", "minPartitions": "0"}, "minPartitions is to be a whole number above 0; it is '0'"),
    ({"subscribe": "t", "maxRecordsPerPartition": "many"}, "maxRecordsPerPartition is to be a whole number"),
    ({"subscribe": "t", "includeHeaders": "yes"}, "includeHeaders is to be true or false; it is 'yes'"),
    ({"subscribe": "t", "failOnDataLoss": "false"}, "failOnDataLoss=false is not supported"),
    ({"subscribe": "t", "kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset cannot be set: use startingOff"),
    ({"subscribe": "t", "kafka.fetch.min.byts": "1"}, "fetch.min.bytes"),
    ({"subscribe": "t", "kafka.fetch.min.bytes": "few"}, "fetch.min.bytes"),
    ({"subscribe": "t", "kafka.bootstrap.servers": " "}, "kafka.bootstrap.servers is missing"),
])
def test_refused(options: dict[str, str], text: str):
    with pytest.raises(ConfigurationError) as raised:
        parse(**options)
    assert text in raised.value.args[0].str()


def test_split_by_maximum():
    parts = split([OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 3)], None, 4)
    assert [(part.partition, part.start, part.end) for part in parts] == [
        (0, 10, 13), (0, 13, 16), (0, 16, 20), (1, 0, 3)]


def test_split_cuts_where_parts_are_longest():
    parts = split([OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 0, 10)], 6, None)
    assert [(part.partition, part.end - part.start) for part in parts] == [(0, 20)] * 5 + [(1, 10)]


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(1, 60)), max_size=5),
    st.none() | st.integers(1, 40), st.none() | st.integers(1, 50),
)
def test_split_keeps_every_offset_once(
    spans: list[tuple[int, int]], min_partitions: int | None, maximum: int | None
):
    ranges = [OffsetRange("t", i, start, start + size) for i, (start, size) in enumerate(spans)]
    parts = split(ranges, min_partitions, maximum)
    assert [(p.partition, o) for p in parts for o in range(p.start, p.end)] == [
        (r.partition, o) for r in ranges for o in range(r.start, r.end)]
    assert all(part.start < part.end for part in parts)
    if maximum is not None:
        assert all(part.end - part.start <= maximum for part in parts)
    if min_partitions is not None:
        assert len(parts) >= min(min_partitions, sum(size for _, size in spans))


def test_split_of_nothing():
    assert split([], 4, 4) == []


def test_json_examples_in_messages_are_valid():
    with pytest.raises(ConfigurationError) as raised:
        parse(subscribe="t", endingOffsets="x")
    text = raised.value.args[0].str()
    assert json.loads(text[text.index("{"): text.index("}}") + 2]) == {"topic": {"0": 23, "1": -1}}


@pytest.mark.parametrize("module", ["pyspark", "pyarrow"])
def test_what_is_missing_is_named(module: str):
    code = f"import sys; sys.modules[{module!r}] = None; import kconsumer; import kconsumer.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'kconsumer[spark]'" in done.stderr.splitlines()[-1]
