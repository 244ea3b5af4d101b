"""The test suites of tools/drop_in.py: their tests, and the expected failures with their reasons.

Owns: these lists. Threads: none. Never: runs a test. docs/migrating.md and docs/asyncio.md have a row for each expected
failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """The tests of another client, or of a program that uses it."""

    name: str
    sign: str  # a path that identifies its checkout
    plugin: str
    tests: tuple[str, ...]
    expected: dict[str, str]  # tests that differ, each with the reason
    protocols: tuple[str, ...] = ("classic",)
    arguments: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()  # folders that run without the rest of the checkout; none: all of it
    broker: Mapping[str, object] = field(default_factory=dict)
    clients: tuple[str, ...] = ("confluent_kafka", "kconsumer")  # the first one is the other client
    requirements: tuple[str, ...] = ()  # of a venv for these tests; none: they run in this one. {checkout} is a path
    ini: str = ""  # lines of pytest's configuration
    environment: Mapping[str, str] = field(default_factory=dict)
    expected_of_names: Mapping[str, str] = field(default_factory=dict)  # further ones if all names are replaced
    needs_9092: bool = False  # the tests name localhost:9092
    sdist: str = ""  # the requirement whose sdist has the tests


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
    clients=("aiokafka", "kconsumer"),
)

# Programs that use confluent_kafka. Replaced are: nothing, what kconsumer.compat replaces, all names.
_SWAPS = ("confluent_kafka", "consumer", "names")
_TOPICS = {"auto.create.topics.enable": "true", "group.initial.rebalance.delay.ms": 0}
_QUIX = "tests/test_quixstreams/test_"
_EXACT_CLASS = (
    "app.py::TestAppExactlyOnce::test_exactly_once",
    *(f"app.py::TestAppGroupBy::test_group_by_with_window[exactly-once-{n}]" for n in (1, 2)),
    *(f"app.py::TestApplicationRecovery::test_changelog_recovery_{test}[exactly-once-{store}]"
      for test in ("consistent_after_failed_commit", "window_store") for store in ("MemoryStore", "RocksDBStore")),
    *("app.py::TestApplicationSourceOffsetRecoveryProof::"
      f"test_stateful_recovery_when_source_committed_offset_is_deleted[{reset}-RocksDBStore]"
      for reset in ("earliest", "latest")),
    *(f"checkpointing.py::TestCheckpoint::test_commit_{test}_success[True-{store}]"
      for test in ("no_state", "with_state_and_changelog_no_updates") for store in ("MemoryStore", "RocksDBStore")),
)
PROGRAMS = (
    Suite(
        "quix-streams", "quixstreams/internal_consumer", "drop_in_plugin",
        ("tests/test_quixstreams/test_kafka", "tests/test_quixstreams/test_internal_consumer",
         "tests/test_quixstreams/test_app.py", "tests/test_quixstreams/test_checkpointing.py"), {},
        expected_of_names={
            _QUIX + "app.py::TestApplication::test_run_producer_error_raised":
                "`except kconsumer.KafkaException` does not catch an exception of confluent_kafka's producer",
            **{_QUIX + test: "confluent_kafka's producer and admin client refuse subclasses of their `TopicPartition`: "
               "keep theirs, or call `to_confluent()`" for test in _EXACT_CLASS},
        },
        clients=_SWAPS, broker=_TOPICS, requirements=("-r", "{checkout}/requirements.txt", "fastavro<2", "protobuf<7"),
    ),
    Suite(
        "sentry-arroyo", "arroyo/backends/kafka", "drop_in_plugin",
        ("tests/backends", "tests/test_kip848_e2e.py", "tests/test_dlq.py", "tests/processing/test_processor.py"),
        {f"tests/backends/test_kafka.py::TestKafkaStreams{protocol}::{test}": reason for protocol in ("", "Kip848")
         for test, reason in (
             ("test_consumer", "`unsubscribe()` runs `on_revoke` before it returns"),
             ("test_consumer_polls_when_paused", "the end of a partition comes at once, before the record that the "
              "test writes next (there: after a Fetch without records)"))},
        clients=_SWAPS, broker=_TOPICS,
        requirements=("-r", "{checkout}/requirements.txt", "pytest-benchmark"), arguments=("--benchmark-disable",),
    ),
    Suite(
        "FastStream", "faststream/confluent", "drop_in_plugin", ("tests/brokers/confluent",), {}, clients=_SWAPS,
        broker=_TOPICS, arguments=("-m", "not slow"), copies=("tests",), needs_9092=True,
        requirements=("{checkout}[confluent,cli,otel,prometheus]", "dirty-equals", "httpx", "pytest-asyncio",
                      "freezegun", "fastapi", "pydantic-settings", "PyYAML", "email-validator", "msgspec", "uvicorn",
                      "psutil", "python-multipart"),
        ini="asyncio_default_fixture_loop_scope = function\n",
    ),
    Suite(
        "streamz", "streamz/sources.py", "drop_in_plugin", ("streamz/tests/test_kafka.py",), {}, clients=_SWAPS,
        broker=_TOPICS, copies=("streamz",), needs_9092=True, environment={"STREAMZ_LAUNCH_KAFKA": "true"},
        requirements=("{checkout}", "confluent-kafka", "dask[dataframe]", "distributed", "flaky"),
        sdist="streamz",
    ),
    Suite(
        "opentelemetry-instrumentation-confluent-kafka", "src/opentelemetry/instrumentation/confluent_kafka",
        "drop_in_plugin", ("tests",), {}, clients=_SWAPS,
        requirements=("{checkout}", "confluent-kafka", "opentelemetry-test-utils"),
        sdist="opentelemetry-instrumentation-confluent-kafka",
    ),
)

SUITES = (_CONFLUENT, _AIOKAFKA, *PROGRAMS)
