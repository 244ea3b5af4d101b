"""The test suites of tools/drop_in.py: their tests, and the expected failures with their reasons.

Owns: these lists. Threads: none. Never: runs a test. docs/migrating.md and docs/asyncio.md have a row for each expected
failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """The tests of another client."""

    name: str  # the client that the tests belong to
    sign: str  # a path that identifies its checkout
    plugin: str
    tests: tuple[str, ...]
    expected: dict[str, str]
    protocols: tuple[str, ...] = ("classic",)
    arguments: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()  # folders that run without the rest of the checkout; none: all of it
    broker: Mapping[str, object] = field(default_factory=dict)


_AIO = "tests/test_AIOConsumer.py::TestAIOConsumer::test_"
_CONFLUENT = Suite(
    "confluent_kafka", "tests/integration/consumer", "drop_in_plugin",
    ("tests/test_Consumer.py", "tests/test_message.py", "tests/test_error.py", "tests/test_topic_partition.py",
     "tests/test_enums.py", "tests/test_log.py", "tests/test_AIOConsumer.py", "tests/integration/consumer"),
    {
        "tests/test_Consumer.py::test_consumer_without_groupid": "group.id is not needed for assign()",
        **{_AIO + name: "AIOConsumer has no executor" for name in (
            "constructor_executor_handling", "call_method_executor_usage")},
        # They replace the Consumer that confluent_kafka's AIOConsumer calls in its threads by a mock.
        **{_AIO + name: "AIOConsumer calls no Consumer" for name in (
            "poll_success", "consume_success", "subscribe_with_callbacks", "multiple_concurrent_operations",
            "concurrent_operations_error_handling", "network_error_handling")},
    },
    protocols=("classic", "consumer"),
)

_CASE = "tests/test_consumer.py::TestConsumerIntegration::test_"
# These tests use or replace internals of aiokafka, which kconsumer does not have.
_INTERNAL = (
    "consumer_seek_backward", "consumer_seek_forward_getone", "consumer_seek_forward_getmany", "consumer_position",
    "consumer_subscribe_pattern_with_autocreate", "consumer_subscribe_pattern_autocreate_no_group_id",
    "exclude_internal_topics", "consumer_cleanup_unassigned_data_getone", "consumer_cleanup_unassigned_data_getmany",
    "rebalance_listener_with_coroutines", "rebalance_listener_no_deadlock_callbacks",
    "kafka_consumer_sets_coordinator_values", "consumer_invalid_crc_in_records", "consumer_compacted_topic",
    "consumer_compressed_returns_older_msgs", "consumer_propagates_coordinator_errors",
    "consumer_propagates_heartbeat_errors", "consumer_propagates_commit_refresh_errors", "kip_345_enabled",
    "kip_345_disabled", "consumer_context_manager",
)
# There, members without a poll() rebalance in the background; here, in the next waiting call.
_BACKGROUND = ("consumer_rebalance_on_new_topic", "max_poll_interval_ms")
# A partition without a valid offset: every call raises an error there, one call here.
_ONCE = ("offset_reset_manual",)
# The test expects one response's records from getmany(); here it returns the records of several responses.
_BUFFERED = ("large_messages_getmany",)
_LEFT_OUT = (*_INTERNAL, *_BACKGROUND, *_ONCE, *_BUFFERED, "ssl_consume")
_AIOKAFKA = Suite(
    "aiokafka", "aiokafka/consumer", "drop_in_aiokafka", ("tests/test_consumer.py", "tests/test_pep492.py"),
    {
        **{_CASE + name: "other checks of arguments" for name in (
            "consumer_arguments", "subscribe_errors", "consumer_commit_validation", "consumer_seek_errors",
            "kafka_consumer_offsets_errors")},
        **{_CASE + name: "offsets_for_times() returns offsets, not their timestamps" for name in (
            "offsets_for_times_single", "kafka_consumer_offsets_search_many_partitions")},
        _CASE + "consumer_warn_unclosed": "the warning has another text",
        _CASE + "create_consumer_no_running_loop": "there is no argument `loop` to deprecate",
    },
    arguments=("--noconftest", *(f"--deselect={_CASE}{name}" for name in _LEFT_OUT)),
    copies=("tests",), broker={"num.partitions": 2, "auto.create.topics.enable": "true"},
)

SUITES = (_CONFLUENT, _AIOKAFKA)
