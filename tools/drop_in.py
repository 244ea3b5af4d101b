"""Runs the consumer tests of confluent-kafka-python or aiokafka, with their classes and with kconsumer's.

    python tools/drop_in.py CHECKOUT [--protocol classic|consumer] [--client kconsumer|…] [TESTS …]

Owns: running the tests, and the comparison with the expected outcomes (tools/drop_in_suites.py). Threads: one. Never:
changes the checkout; accepts a failure that is not listed there.

CHECKOUT is a work tree of github.com/confluentinc/confluent-kafka-python or github.com/aio-libs/aiokafka, of the
installed version or the nearest one. The tests run against a real Kafka (kconsumer.testing), a new one for each run.
Exits with 0 if all tests pass, except the tests with an expected failure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from drop_in_suites import SUITES, Suite

from kconsumer.testing import KafkaCluster

SECONDS_PER_TEST = 120


@dataclass
class Run:
    """The outcomes of one run, by test."""

    suite: Suite
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
        return self.suite.expected if self.client == "kconsumer" else {}

    @property
    def surprises(self) -> list[str]:
        """Return the unexpected outcomes, one per line."""
        found = [f"FAILED  {test}: {why}" for test, (outcome, why) in self.outcomes.items()
                 if outcome == "failed" and test not in self.expected]
        return found + [f"PASSED  {test}, which was expected to fail: {reason}" for test, reason in
                        self.expected.items() if self.outcomes.get(test, ("", ""))[0] == "passed"]


def run(checkout: Path, suite: Suite, client: str, protocol: str, arguments: list[str]) -> Run:
    found = Run(suite, client, protocol)
    with tempfile.TemporaryDirectory() as scratch, KafkaCluster(1, config=suite.broker) as cluster:
        outcomes = Path(scratch, "outcomes")
        outcomes.touch()
        settings = Path(scratch, "pytest.ini")  # neither the checkout's nor ours
        settings.write_text("[pytest]\n", encoding="utf-8")
        root = checkout
        if suite.copies:  # next to the package's sources, which would be imported instead of the installed package
            root = Path(scratch, "tree")
            for folder in suite.copies:
                shutil.copytree(checkout / folder, root / folder)
        environment = {
            **os.environ, "BROKERS": cluster.bootstrap_servers, "DROP_IN_CLIENT": client,
            "DROP_IN_KAFKA": cluster.version, "DROP_IN_OUTCOMES": str(outcomes),
            "PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1",
            "TEST_CONSUMER_GROUP_PROTOCOL": protocol,
        }
        command = [sys.executable, "-m", "pytest", "-c", str(settings), "--rootdir", str(root), "-q", "-W", "ignore",
                   "-p", "no:cacheprovider", "--continue-on-collection-errors", "-p", suite.plugin, "-p",
                   "drop_in_outcomes", f"--timeout={SECONDS_PER_TEST}", *suite.arguments, *arguments]
        process = subprocess.run(command, cwd=root, env=environment, check=False)
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
    parser.add_argument("--protocol", action="append", help="group.protocol (default: all that the other client "
                        "supports)")
    parser.add_argument("--client", action="append", help="kconsumer or the other one (default: both)")
    parser.add_argument("arguments", nargs="*", help="more arguments of pytest; tests instead of the default ones")
    given = parser.parse_intermixed_args()
    checkout = given.checkout.resolve()
    suite = next((suite for suite in SUITES if (checkout / suite.sign).exists()), None)
    if suite is None:
        parser.error(f"{checkout} has none of {', '.join(suite.sign for suite in SUITES)}: expected a checkout of "
                     "confluent-kafka-python or aiokafka")
    arguments = given.arguments or list(suite.tests)
    runs = [run(checkout, suite, client, protocol, arguments)
            for protocol in given.protocol or suite.protocols for client in given.client or (suite.name, "kconsumer")]
    for done in runs:
        print(f"\n{done.title}: {done.count('passed')} passed, {done.count('failed')} failed "
              f"({sum(done.outcomes.get(test, ('',))[0] == 'failed' for test in done.expected)} of them expected), "
              f"{done.count('skipped')} skipped")
        for line in done.surprises:
            print(f"  {line}")
    return 1 if any(done.surprises for done in runs if done.client == "kconsumer") else 0


if __name__ == "__main__":
    sys.exit(main())
