"""Runs confluent-kafka-python's own consumer tests, once with its classes and once with kconsumer's in their place.

    python tools/drop_in.py CHECKOUT [--protocol classic|consumer] [--client kconsumer|confluent_kafka] [TESTS …]

Owns: which of its tests those are, and the differences that docs/migrating.md defends, by test. Threads: one. Never:
changes the checkout; takes a failure for expected that is not listed below.

CHECKOUT is a work tree of github.com/confluentinc/confluent-kafka-python of the installed version or the nearest one.
The integration tests run against a real Kafka (kconsumer.testing), a new one for each run. Exits with 0 when all tests
pass but those that are expected to fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from kconsumer.testing import KafkaCluster

UNIT = ("tests/test_Consumer.py", "tests/test_message.py", "tests/test_error.py", "tests/test_topic_partition.py",
        "tests/test_enums.py", "tests/test_log.py", "tests/test_AIOConsumer.py")
INTEGRATION = "tests/integration/consumer"
CLIENTS = ("confluent_kafka", "kconsumer")
PROTOCOLS = ("classic", "consumer")
SECONDS_PER_TEST = 120

# What fails with kconsumer's classes, and why: each is a row of the table in docs/migrating.md.
EXPECTED: dict[str, str] = {
    "tests/test_Consumer.py::test_consumer_without_groupid": "group.id is not needed for assign()",
    **{f"tests/test_AIOConsumer.py::TestAIOConsumer::test_{name}": "AIOConsumer has no executor" for name in (
        "constructor_executor_handling", "call_method_executor_usage")},
    # They put a mock in the place of the Consumer that confluent_kafka's AIOConsumer calls in its threads.
    **{f"tests/test_AIOConsumer.py::TestAIOConsumer::test_{name}": "AIOConsumer calls no Consumer" for name in (
        "poll_success", "consume_success", "subscribe_with_callbacks", "multiple_concurrent_operations",
        "concurrent_operations_error_handling", "network_error_handling")},
}


@dataclass
class Run:
    """The outcomes of one run, by test."""

    client: str
    protocol: str
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        return sum(found == outcome for found, _ in self.outcomes.values())

    @property
    def title(self) -> str:
        return f"{self.client}, group.protocol={self.protocol}"

    @property
    def expected(self) -> dict[str, str]:
        return EXPECTED if self.client == "kconsumer" else {}

    @property
    def surprises(self) -> list[str]:
        """What is neither as it should be nor as EXPECTED says, a line each."""
        found = [f"FAILED  {test}: {why}" for test, (outcome, why) in self.outcomes.items()
                 if outcome == "failed" and test not in self.expected]
        return found + [f"PASSED  {test}, which was expected to fail: {reason}" for test, reason in
                        self.expected.items() if self.outcomes.get(test, ("", ""))[0] == "passed"]


def run(checkout: Path, client: str, protocol: str, arguments: list[str]) -> Run:
    found = Run(client, protocol)
    with tempfile.TemporaryDirectory() as scratch, KafkaCluster(1) as cluster:
        outcomes = Path(scratch, "outcomes")
        outcomes.touch()
        environment = {
            **os.environ, "BROKERS": cluster.bootstrap_servers, "DROP_IN_CLIENT": client,
            "DROP_IN_OUTCOMES": str(outcomes), "PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1",
            "TEST_CONSUMER_GROUP_PROTOCOL": protocol,
        }
        command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(checkout), "-q", "-W", "ignore",
                   "-p", "no:cacheprovider", "--continue-on-collection-errors", "-p", "drop_in_plugin",
                   f"--timeout={SECONDS_PER_TEST}", *arguments]
        process = subprocess.run(command, cwd=checkout, env=environment, check=False)
        if process.returncode not in (0, 1, 2):
            raise SystemExit(f"{found.title}: pytest ended with {process.returncode}")
        for line in outcomes.read_text(encoding="utf-8").splitlines():
            outcome = json.loads(line)
            if found.outcomes.get(outcome["test"], ("",))[0] != "failed":
                found.outcomes[outcome["test"]] = (outcome["outcome"], outcome["why"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append", help="default: both")
    parser.add_argument("--client", choices=CLIENTS, action="append", help="default: both")
    parser.add_argument("arguments", nargs="*", help="further arguments of pytest; tests, if others than the usual")
    given = parser.parse_intermixed_args()
    checkout = given.checkout.resolve()
    if not (checkout / INTEGRATION).is_dir():
        parser.error(f"{checkout} has no {INTEGRATION}: expected a checkout of confluent-kafka-python")
    arguments = given.arguments or [*UNIT, INTEGRATION]
    runs = [run(checkout, client, protocol, arguments)
            for protocol in given.protocol or PROTOCOLS for client in given.client or CLIENTS]
    for done in runs:
        print(f"\n{done.title}: {done.count('passed')} passed, {done.count('failed')} failed "
              f"({sum(done.outcomes.get(test, ('',))[0] == 'failed' for test in done.expected)} of them expected), "
              f"{done.count('skipped')} skipped")
        for line in done.surprises:
            print(f"  {line}")
    return 1 if any(done.surprises for done in runs if done.client == "kconsumer") else 0


if __name__ == "__main__":
    sys.exit(main())
