"""Runs the consumer tests of another client, or of a program that uses confluent_kafka, with kconsumer in its place.

    python tools/drop_in.py [CHECKOUT] [--protocol classic|consumer] [--client NAME] [--results FILE] [TESTS …]

Owns: running the tests, and the comparison of the outcomes with those of the other client. Threads: one. Never: changes
the checkout; accepts a difference that tools/drop_in_suites.py does not list.

CHECKOUT is a work tree, or an unpacked sdist, of a project in tools/drop_in_suites.py. Without it, the sdists that
carry tests are downloaded and run. The tests run against a real Kafka (kconsumer.testing), a new one for each run. A
test whose outcome differs runs once more with both clients, on a new Kafka. The difference counts if it appears again.
Exits with 0 if every test has the outcome that it has with the other client, except the listed ones.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drop_in_suites import SUITES, Suite
from typecheck import stage

from kconsumer.testing import KafkaCluster

SECONDS_PER_TEST = 30
TOOLS = Path(__file__).resolve().parent
BUILD = TOOLS.parent / "build" / "drop-in"


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
        return f"{self.suite.name}: {self.client}, group.protocol={self.protocol}"

    def differing(self, theirs: Run | None) -> dict[str, str]:
        """Return the tests with another outcome than in the other client's run. Without that run: the failed tests."""
        if theirs is None:
            return {test: why for test, (outcome, why) in self.outcomes.items() if outcome == "failed"}
        nothing = ("missing", "")
        return {
            test: f"{self.outcomes.get(test, nothing)[0]}, {theirs.outcomes.get(test, nothing)[0]} with "
                  f"{theirs.client}: {(self.outcomes.get(test, nothing)[1] or theirs.outcomes.get(test, nothing)[1])}"
            for test in sorted(self.outcomes.keys() | theirs.outcomes.keys())
            if self.outcomes.get(test, nothing)[0] != theirs.outcomes.get(test, nothing)[0]
        }

    @property
    def expected(self) -> Mapping[str, str]:
        return {**self.suite.expected, **(self.suite.expected_of_names if self.client == "names" else {})}

    def surprises(self, theirs: Run | None) -> list[str]:
        """Return the unexpected outcomes, one per line."""
        found = self.differing(theirs)
        return [f"DIFFERS  {test}: {why}" for test, why in found.items() if test not in self.expected] + [
            f"PASSED   {test}, which was expected to differ: {reason}" for test, reason in self.expected.items()
            if test in self.outcomes and test not in found]


def python_of(suite: Suite, checkout: Path) -> str:
    """Return the Python that runs the tests: this one, or that of a venv with what they require."""
    if not suite.requirements:
        return sys.executable
    folder = BUILD / suite.name
    stamp = folder / "requirements.txt"
    wanted = [part.replace("{checkout}", str(checkout)) for part in suite.requirements]
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != "\n".join(wanted):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *wanted, "pytest",
                        "pytest-timeout"], check=True)
        stamp.write_text("\n".join(wanted), encoding="utf-8")
    stage(BUILD / "packages")
    return str(folder / "bin" / "python")


def run(checkout: Path, suite: Suite, client: str, protocol: str, arguments: list[str]) -> Run:
    found = Run(suite, client, protocol)
    python = python_of(suite, checkout)
    with tempfile.TemporaryDirectory() as scratch, KafkaCluster(1, config=suite.broker) as cluster:
        outcomes = Path(scratch, "outcomes")
        outcomes.touch()
        settings = Path(scratch, "pytest.ini")  # neither the checkout's nor ours
        settings.write_text(f"[pytest]\n{suite.ini}", encoding="utf-8")
        root = checkout
        if suite.copies:  # next to the package's sources, which would be imported instead of the installed package
            root = Path(scratch, "tree")
            for folder in suite.copies:
                shutil.copytree(checkout / folder, root / folder)
        environment = {
            **os.environ, **suite.environment, "BROKERS": cluster.bootstrap_servers, "DROP_IN_CLIENT": client,
            "DEFAULT_BROKERS": cluster.bootstrap_servers,  # sentry-arroyo's name
            "DROP_IN_KAFKA": cluster.version, "DROP_IN_OUTCOMES": str(outcomes),
            "PYTHONPATH": os.pathsep.join([str(TOOLS), *([str(BUILD / "packages")] if suite.requirements else [])]),
            "PYTHONDONTWRITEBYTECODE": "1", "TEST_CONSUMER_GROUP_PROTOCOL": protocol,
        }
        command = [python, "-m", "pytest", "-c", str(settings), "--rootdir", str(root), "-q", "-W", "ignore",
                   "-p", "no:cacheprovider", "--continue-on-collection-errors", "-p", suite.plugin, "-p",
                   "drop_in_outcomes", f"--timeout={SECONDS_PER_TEST}", *suite.arguments, *arguments]
        with default_address(cluster.bootstrap_servers) if suite.needs_9092 else contextlib.nullcontext():
            process = subprocess.run(command, cwd=root, env=environment, check=False)
        if process.returncode not in (0, 1, 2):
            raise SystemExit(f"{found.title}: pytest ended with {process.returncode}")
        for line in outcomes.read_text(encoding="utf-8").splitlines():
            outcome = json.loads(line)
            if found.outcomes.get(outcome["test"], ("",))[0] != "failed":
                found.outcomes[outcome["test"]] = (outcome["outcome"], outcome["why"])
    return found


@contextlib.contextmanager
def default_address(server: str, port: int = 9092) -> Iterator[int]:
    """Let localhost:9092 lead to the broker, whose answers name its own address: many tests have no other setting."""
    host, _, broker_port = server.rpartition(":")

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, int(broker_port))) as broker:
                back = threading.Thread(target=self.copy, args=(broker, self.request), daemon=True)
                back.start()
                self.copy(self.request, broker)
                back.join()

        @staticmethod
        def copy(source: socket.socket, target: socket.socket) -> None:
            with contextlib.suppress(OSError):  # one side has closed: so does the other
                while data := source.recv(65536):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", port), Connection) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening.server_address[1]
        listening.shutdown()


def run_again(checkout: Path, done: Run, theirs: Run) -> None:
    """Run the tests that differ once more with both clients: equal outcomes take the place of the first ones."""
    tests = [test for test in done.differing(theirs) if test not in done.expected]
    if not tests:
        return
    again = [run(checkout, done.suite, client, done.protocol, tests) for client in (done.client, theirs.client)]
    still = again[0].differing(again[1])
    for test in tests:
        if test not in still and test in again[0].outcomes:
            done.outcomes[test], theirs.outcomes[test] = again[0].outcomes[test], again[1].outcomes[test]


def run_suite(checkout: Path, suite: Suite, given: argparse.Namespace) -> tuple[bool, dict[str, object]]:
    """Run the tests with each client, and report them. Returns whether all is as expected, and the results."""
    arguments = given.arguments or list(suite.tests)
    failed = False
    results: dict[str, object] = {"version": version_of(checkout)}
    for protocol in given.protocol or suite.protocols:
        theirs: Run | None = None
        for client in given.client or suite.clients:
            done = run(checkout, suite, client, protocol, arguments)
            if client == suite.clients[0]:
                theirs = done
            elif theirs is not None:
                run_again(checkout, done, theirs)
            counts = {outcome: done.count(outcome) for outcome in ("passed", "failed", "skipped")}
            print(f"\n{done.title}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
            if done is theirs:
                results[client] = counts
                continue
            found = done.differing(theirs)
            results[client] = {"tests": len(done.outcomes), "differ": sorted(found)}
            for line in done.surprises(theirs):
                failed = True
                print(f"  {line}")
    return not failed, results


def version_of(checkout: Path) -> str:
    metadata = checkout / "PKG-INFO"
    if metadata.exists():
        return next(line.split()[1] for line in metadata.read_text(encoding="utf-8").splitlines()
                    if line.startswith("Version:"))
    described = subprocess.run(["git", "-C", checkout, "describe", "--tags", "--always"], capture_output=True,
                               text=True, check=False)
    return described.stdout.strip()


def sdist_of(suite: Suite) -> Path:
    """Download and unpack the sdist of a project that puts its tests into it."""
    folder = BUILD / "sdists" / suite.name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                    "--no-binary", ":all:", "-d", folder, suite.sdist], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (found,) = (path for path in folder.iterdir() if path.is_dir())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, nargs="?", help="default: the sdists that carry tests")
    parser.add_argument("--protocol", action="append", help="group.protocol (default: all that the other client "
                        "supports)")
    parser.add_argument("--client", action="append", help="the other client first (default: all)")
    parser.add_argument("--results", type=Path, help="a JSON file; the results of these clients are "
                        "replaced in it")
    parser.add_argument("arguments", nargs="*", help="more arguments of pytest; tests instead of the default ones")
    given = parser.parse_intermixed_args()
    if given.checkout is None:
        chosen = [(suite, sdist_of(suite)) for suite in SUITES if suite.sdist]
    else:
        checkout = given.checkout.resolve()
        chosen = [(suite, checkout) for suite in SUITES if (checkout / suite.sign).exists()]
        if not chosen:
            parser.error(f"{checkout} has none of {', '.join(suite.sign for suite in SUITES)}: expected a checkout of "
                         f"{', '.join(suite.name for suite in SUITES)}")
    passed = True
    for suite, checkout in chosen:
        good, results = run_suite(checkout, suite, given)
        passed &= good
        if given.results is not None:
            known = json.loads(given.results.read_text(encoding="utf-8")) if given.results.exists() else {}
            known[suite.name] = {**known.get(suite.name, {}), **results}
            given.results.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
