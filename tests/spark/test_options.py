"""Options: their defaults, rules and errors, without Spark or a broker."""

from __future__ import annotations

import json
import logging
import pickle

import pytest

from kconsumer.errors import ConfigurationError
from kconsumer.ranges.offsets import EARLIEST, LATEST, AtOffsets, AtTime, AtTimes, Everywhere
from kconsumer.ranges.options import ReadOptions

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def parse(**options: str) -> ReadOptions:
    return ReadOptions.parse({**BROKER, **options})


def test_defaults():
    options = parse(subscribe=" a, b,a ,")
    assert options.subscription.topics == ("a", "b")
    assert options.batch_bounds() == (Everywhere(EARLIEST), Everywhere(LATEST))
    assert options.stream_start() == Everywhere(LATEST)
    assert (options.min_partitions, options.max_records_per_partition) == (None, None)
    assert (options.max_offsets, options.min_offsets, options.max_bytes, options.max_delay_s) == (None, None, None, 900)
    assert options.columns == COLUMNS
    assert options.fail_on_data_loss and not options.limited and not options.rack_aware
    assert not options.read_committed  # as Spark's source
    assert (options.poll_timeout_s, options.offset_attempts, options.offset_retry_interval_s) == (120, 3, 1)
    assert options.commit_group is None
    assert options.consumer_config == {
        "bootstrap.servers": "127.0.0.1:9092", "isolation.level": "read_uncommitted", "auto.offset.reset": "error",
        "enable.auto.commit": "false"}
    assert options.driver_config == {**options.consumer_config, "max.partition.fetch.bytes": "65536"}


def test_names_come_in_lower_case():
    options = ReadOptions.parse({
        "kafka.bootstrap.servers": "h:1", "assign": '{"t": [2, 0]}', "startingoffsets": '{"t": {"0": 5, "2": -2}}',
        "endingoffsets": '{"t": {"0": -1, "2": 9}}', "minpartitions": "3", "maxrecordsperpartition": " 7 ",
        "includeheaders": "TRUE", "failondataloss": "False", "kafkaconsumer.polltimeoutms": "1500",
        "kafka.isolation.level": "read_committed", "kafka.fetch.min.bytes": "10", "fetchoffset.numretries": "5",
        "fetchoffset.retryintervalms": "20", "maxoffsetspertrigger": "9", "minoffsetspertrigger": "8",
        "maxtriggerdelay": "2m", "maxbytespertrigger": "1000", "commitoffsetstogroup": " g ", "rackaware": "true",
    })
    assert options.subscription.assigned == (("t", 2), ("t", 0))
    assert options.batch_bounds() == (AtOffsets({("t", 0): 5, ("t", 2): -2}), AtOffsets({("t", 0): -1, ("t", 2): 9}))
    assert (options.min_partitions, options.max_records_per_partition) == (3, 7)
    assert options.columns == (*COLUMNS, "headers")
    assert options.read_committed and options.limited and options.rack_aware and not options.fail_on_data_loss
    assert (options.poll_timeout_s, options.offset_attempts, options.offset_retry_interval_s) == (1.5, 5, 0.02)
    assert (options.max_offsets, options.min_offsets, options.max_bytes, options.max_delay_s) == (9, 8, 1000, 120)
    assert options.commit_group == "g"
    assert options.consumer_config["fetch.min.bytes"] == "10"


@pytest.mark.parametrize(("text", "seconds"), [
    ("0", 0), ("500", 0.5), ("500ms", 0.5), ("3s", 3), ("15m", 900), ("2min", 120), ("1h", 3600), ("1d", 86400),
    (" 5 S ", 5), ("1500us", 0.0015),
])
def test_durations(text: str, seconds: float):
    assert parse(subscribe="t", maxTriggerDelay=text).max_delay_s == seconds


@pytest.mark.parametrize("number", [0, 2**63 - 1])
def test_the_smallest_and_the_largest_offset_and_time(number: int):
    offsets = f'{{"t": {{"0": {number}}}}}'
    assert parse(subscribe="t", startingOffsets=offsets, endingOffsets=offsets).batch_bounds() == (
        AtOffsets({("t", 0): number}), AtOffsets({("t", 0): number}))
    assert parse(subscribe="t", startingOffsetsByTimestamp=offsets).stream_start() == AtTimes({("t", 0): number})
    assert parse(subscribe="t", startingTimestamp=str(number)).stream_start() == AtTime(number)


def test_precedence_of_a_start():
    """A time, then times by partition, then offsets; what is overruled is not even looked at."""
    given = {"startingOffsets": "x", "startingOffsetsByTimestamp": '{"t": {"0": 4}}', "startingTimestamp": " 3 "}
    assert parse(subscribe="t", **given).stream_start() == AtTime(3)
    del given["startingTimestamp"]
    assert parse(subscribe="t", **given).stream_start() == AtTimes({("t", 0): 4})
    ends = {"endingOffsets": "x", "endingOffsetsByTimestamp": '{"t": {"0": 4}}', "endingTimestamp": "5"}
    assert parse(subscribe="t", **ends).batch_bounds()[1] == AtTime(5)


@pytest.mark.parametrize("text", ["key,offset", " OFFSET , key,key"])
def test_columns(text: str):
    assert set(parse(subscribe="t", columns=text).columns) == {"key", "offset"}


def test_group_ids():
    assert "group.id" not in parse(subscribe="t").consumer_config
    prefixed = parse(subscribe="t", groupIdPrefix="mine")
    assert prefixed.driver_config["group.id"].startswith("mine-")
    assert prefixed.driver_config["group.id"].endswith("-driver")
    assert prefixed.consumer_config["group.id"] == prefixed.driver_config["group.id"].replace("-driver", "-executor")
    fixed = parse(subscribe="t", groupIdPrefix="mine", **{"kafka.group.id": "this"})
    assert (fixed.driver_config["group.id"], fixed.consumer_config["group.id"]) == ("this", "this")


@pytest.mark.parametrize(("options", "text"), [
    ({"path": "x"}, "unknown option path has no effect"),
    ({"groupIdPrefix": "p", "kafka.group.id": "g"}, "groupIdPrefix has no effect: kafka.group.id is set"),
])
def test_properties_without_effect_are_logged(caplog: pytest.LogCaptureFixture, options: dict[str, str], text: str):
    with caplog.at_level(logging.WARNING, "kconsumer.ranges"):
        parse(subscribe="t", **options)
    assert text in caplog.text


@pytest.mark.parametrize("option", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay",
                                    "maxBytesPerTrigger", "commitOffsetsToGroup"])
def test_a_streams_options_have_no_effect_on_a_batch(caplog: pytest.LogCaptureFixture, option: str):
    with caplog.at_level(logging.WARNING, "kconsumer.ranges"):
        parse(subscribe="t", **{option: "5"}).batch_bounds()
    assert f"option {option} has no effect on a batch read" in caplog.text


@pytest.mark.parametrize("option", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(option: str):
    with pytest.raises(ConfigurationError, match=f"option {option} cannot be set: a streaming query has no end"):
        parse(subscribe="t", **{option: "5"}).stream_start()


def test_options_travel():
    options = parse(assign='{"t": [0]}', startingOffsets='{"t": {"0": 1}}')
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(("options", "text"), [
    ({"subscribe": "t", "minPartition": "3"}, "unknown option 'minPartition' (did you mean minPartitions?)"),
    ({"subscribe": "t", "kafka_bootstrap_servers": "h:1"}, "(did you mean kafka.bootstrap.servers?)"),
    ({}, "exactly one of the options assign, subscribe, subscribePattern is needed"),
    ({"subscribe": "t", "assign": '{"t": [0]}'}, "is needed; given are assign, subscribe"),
    ({"subscribe": "t", "subscribePattern": "t"}, "is needed; given are subscribe, subscribePattern"),
    ({"subscribePattern": " "}, "subscribePattern is empty"),
    ({"subscribePattern": "("}, "for subscribePattern: expected a regular expression"),
    ({"subscribe": " , "}, "for subscribe: expected at least one topic"),
    ({"assign": "t"}, "for assign: expected a value such as"),
    ({"assign": '["t"]'}, "for assign: expected a value such as"),
    ({"assign": '{"t": 0}'}, "for assign: expected a value such as"),
    ({"assign": '{"t": [-1]}'}, "for assign: expected a value such as"),
    ({"assign": '{"t": [true]}'}, "for assign: expected a value such as"),
    ({"assign": "{}"}, "for assign: expected at least one partition"),
    ({"assign": '{"t": [1, 1]}'}, "for assign: a partition is listed twice"),
    ({"subscribe": "t", "minPartitions": "0"}, "invalid value '0' for minPartitions: expected a whole number above 0"),
    ({"subscribe": "t", "maxRecordsPerPartition": "many"}, "for maxRecordsPerPartition: expected a whole number"),
    ({"subscribe": "t", "includeHeaders": "yes"}, "invalid value 'yes' for includeHeaders: expected true or false"),
    ({"subscribe": "t", "failOnDataLoss": "no"}, "for failOnDataLoss: expected true or false"),
    ({"subscribe": "t", "minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"},
     "minOffsetsPerTrigger (3) is greater than maxOffsetsPerTrigger (2)"),
    ({"subscribe": "t", "maxTriggerDelay": "soon"}, "for maxTriggerDelay: expected a value such as"),
    ({"subscribe": "t", "maxBytesPerTrigger": "-1"}, "for maxBytesPerTrigger: expected a whole number above 0"),
    ({"subscribe": "t", "fetchOffset.numRetries": "0"}, "for fetchOffset.numRetries: expected a whole number above 0"),
    ({"subscribe": "t", "fetchOffset.retryIntervalMs": "-1"}, "for fetchOffset.retryIntervalMs: expected 0 or greater"),
    ({"subscribe": "t", "startingOffsetsByTimestampStrategy": "x"},
     "invalid value 'x' for startingOffsetsByTimestampStrategy: expected error or latest"),
    ({"subscribe": "t", "commitOffsetsToGroup": " "}, "commitOffsetsToGroup is empty: set it to a group id"),
    ({"subscribe": "t", "columns": ","}, "columns is empty: list at least one column"),
    ({"subscribe": "t", "columns": "key,size"}, "unknown column 'size' in option columns: expected key, value, topic,"),
    ({"subscribe": "t", "columns": "headers"}, "columns has headers: set includeHeaders=true too"),
    ({"subscribe": "t", "kafka.enable.auto.commit": "false"}, "kafka.enable.auto.commit cannot be set"),
    ({"subscribe": "t", "kafka.key.deserializer": "x"}, "kafka.key.deserializer cannot be set: keys are"),
    ({"subscribe": "t", "kafka.value.deserializer": "x"}, "kafka.value.deserializer cannot be set: values are always"),
    ({"subscribe": "t", "kafka.interceptor.classes": "x"}, "kafka.interceptor.classes cannot be set"),
    ({"subscribe": "t", "kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset cannot be set: use startingOff"),
    ({"subscribe": "t", "kafka.fetch.min.byts": "1"}, "fetch.min.bytes"),
    ({"subscribe": "t", "kafka.fetch.min.bytes": "few"}, "fetch.min.bytes"),
    ({"subscribe": "t", "kafka.bootstrap.servers": " "}, "kafka.bootstrap.servers is missing"),
])
def test_refused(options: dict[str, str], text: str):
    with pytest.raises(ConfigurationError) as raised:
        parse(**options)
    assert text in raised.value.args[0].str()


@pytest.mark.parametrize(("options", "text"), [
    ({"subscribe": "t", "startingOffsets": "latest"}, "startingOffsets cannot be latest in a batch read"),
    ({"subscribe": "t", "endingOffsets": "earliest"}, "endingOffsets cannot be earliest in a batch read"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets cannot be -1 (latest)"),
    ({"subscribe": "t", "endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets cannot be -2 (earliest)"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": -3}}'}, "for startingOffsets: expected a value such as"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"x": 3}}'}, "for startingOffsets: expected a value such as"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": "3"}}'}, "for startingOffsets: expected a value such as"),
    ({"subscribe": "t", "startingOffsets": '{"t": [3]}'}, "for startingOffsets: expected a value such as"),
    ({"subscribe": "t", "startingOffsets": "23"}, "for startingOffsets: expected a value such as"),
    ({"subscribe": "t", "startingTimestamp": "x"},
     "invalid value 'x' for startingTimestamp: expected one whole number"),
    ({"subscribe": "t", "startingTimestamp": str(2**63)},
     f"invalid value '{2**63}' for startingTimestamp: expected one whole number"),
    ({"subscribe": "t", "startingOffsets": f'{{"t": {{"0": {2**63}}}}}'},
     "for startingOffsets: expected a value such as"),
    ({"subscribe": "t", "startingTimestamp": "-1"}, "invalid value '-1' for startingTimestamp: expected milliseconds"),
    ({"subscribe": "t", "endingTimestamp": "-2"}, "invalid value '-2' for endingTimestamp: expected milliseconds"),
    ({"subscribe": "t", "startingOffsetsByTimestamp": '{"t": {"0": -2}}'},
     "for startingOffsetsByTimestamp: expected a value such as"),
    ({"subscribe": "t", "endingOffsetsByTimestamp": '{"t": {"0": -1}}'},
     "for endingOffsetsByTimestamp: expected a value such as"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": 3}}', "endingOffsets": '{"t": {"1": 3}}'},
     "must list the same partitions: only one of them has t [0], t [1]"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": 3}}', "endingOffsets": '{"t": {"0": 2}}'},
     "startingOffsets of t [0] is 3, after its endingOffsets 2"),
    ({"subscribe": "t", "startingOffsetsByTimestamp": '{"t": {"0": 3}}',
      "endingOffsetsByTimestamp": '{"t": {"0": 2}}'}, "startingOffsetsByTimestamp of t [0] is 3, after"),
])
def test_refused_in_a_batch(options: dict[str, str], text: str):
    with pytest.raises(ConfigurationError) as raised:
        parse(**options).batch_bounds()
    assert text in raised.value.args[0].str()


def test_json_examples_in_messages_are_valid():
    with pytest.raises(ConfigurationError) as raised:
        parse(subscribe="t", endingOffsets="x").batch_bounds()
    text = raised.value.args[0].str()
    assert json.loads(text[text.index("{"): text.index("}}") + 2]) == {"topic": {"0": 23, "1": -2}}
