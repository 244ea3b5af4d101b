"""The command on a real Kafka: times, which the embedded cluster cannot look up, and offsets without records."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from kconsumer.cli.app import cli
from kconsumer.testing import KafkaCluster

HOUR_MS = 3_600_000
BEGAN_MS = 1_714_564_800_000  # 2024-05-01T12:00Z


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster) -> str:
    """Two partitions of 10 records, one an hour, values v<n>."""
    kafka.create_topic("cli-times", 2, config={"retention.ms": -1})
    kafka.produce("cli-times", [
        {"value": f"v{n}", "partition": n % 2, "timestamp": BEGAN_MS + n // 2 * HOUR_MS} for n in range(20)])
    return "cli-times"


@pytest.mark.parametrize(("arguments", "expected"), [
    (["--from", "2024-05-01T20:30:00+00:00"], [18, 19]),
    (["--from", "2024-05-01T20:00:00Z", "--to", "2024-05-01T21:00:00Z"], [16, 17]),
    (["--from", f"@{BEGAN_MS + 9 * HOUR_MS}"], [18, 19]),
    (["--from", "7", "--to", "2024-05-01T20:00Z"], [14, 15]),
    (["--from", "2030-01-01"], []),
    (["--to", "2000-01-01"], []),
])
def test_consume_between_times(kafka: KafkaCluster, topic: str, arguments: list[str], expected: list[int]):
    result = CliRunner().invoke(cli, ["consume", topic, "-b", kafka.bootstrap_servers, *arguments])
    assert result.exit_code == 0, result.output
    assert sorted(result.stdout.split(), key=lambda value: int(value[1:])) == [f"v{n}" for n in expected]


def test_consume_ends_after_a_transaction_marker(
    kafka: KafkaCluster, topic_name: Callable[[], str], java_produce: Callable[..., list[tuple[int, int]]]
):
    name = topic_name()
    kafka.create_topic(name)
    java_produce(kafka, name, [
        {"transaction": "begin"}, {"value": b"kept"}, {"transaction": "commit"},
        {"transaction": "begin"}, {"value": b"dropped"}, {"transaction": "abort"},
    ], transactional_id=name)
    command = ["consume", name, "-b", kafka.bootstrap_servers, "-o", "json", "-X", "isolation.level=read_committed"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["value"] for line in result.stdout.splitlines()] == ["kept"]
