"""tools/drop_in.py runs the tests of a checkout with none of its settings and none of ours."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import drop_in  # noqa: E402
import drop_in_table  # noqa: E402
from drop_in_suites import PROGRAMS, Suite  # noqa: E402


class Cluster:
    bootstrap_servers, version = "127.0.0.1:1", "4.0.0"

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_the_outcomes_of_a_checkout_are_collected_without_its_settings(tmp_path, monkeypatch):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "test_other.py").write_text(
        "import pytest\ndef test_passes(): pass\ndef test_fails(): assert 1 == 2\n"
        "def test_is_skipped(): pytest.skip('why')\n")
    monkeypatch.setattr(drop_in, "KafkaCluster", Cluster)
    suite = Suite("other", "test_other.py", "drop_in_outcomes", ("test_other.py",), {"test_other.py::test_fails": "-"})
    done = drop_in.run(tmp_path, suite, "kconsumer", "classic", list(suite.tests))
    assert [done.count(outcome) for outcome in ("passed", "failed", "skipped")] == [1, 1, 1]
    assert not done.surprises(None)


def test_a_run_is_compared_with_the_other_clients():
    suite = Suite("other", "", "", (), {"known": "-", "gone": "-"}, expected_of_names={"of names": "-"})
    theirs = drop_in.Run(suite, "confluent_kafka", "classic", {
        "known": ("passed", ""), "gone": ("passed", ""), "of names": ("passed", ""), "fails": ("failed", "x"),
        "new": ("passed", "")})
    ours = {"known": ("failed", "why"), "gone": ("passed", ""), "of names": ("failed", ""), "fails": ("failed", "y")}
    names = drop_in.Run(suite, "names", "classic", dict(ours))
    assert sorted(names.differing(theirs)) == ["known", "new", "of names"]
    assert [line.split()[:2] for line in names.surprises(theirs)] == [["DIFFERS", "new:"], ["PASSED", "gone,"]]
    consumer = drop_in.Run(suite, "consumer", "classic", dict(ours))
    assert [line.split()[1] for line in consumer.surprises(theirs)] == ["new:", "of", "gone,"]


def test_a_difference_that_does_not_come_again_does_not_count(monkeypatch, tmp_path):
    suite = Suite("other", "", "", (), {})
    theirs = drop_in.Run(suite, "confluent_kafka", "classic", {"a": ("passed", ""), "b": ("passed", "")})
    ours = drop_in.Run(suite, "consumer", "classic", {"a": ("failed", ""), "b": ("failed", "")})

    def again(_checkout, _suite, client, protocol, tests):
        assert tests == ["a", "b"]
        outcome = "passed" if client == "confluent_kafka" else "failed"
        return drop_in.Run(suite, client, protocol, {"a": ("failed", ""), "b": (outcome, "")})

    monkeypatch.setattr(drop_in, "run", again)
    drop_in.run_again(tmp_path, ours, theirs)
    assert list(ours.differing(theirs)) == ["b"]


def test_the_default_address_leads_to_the_broker():
    class Echo(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(self.rfile.readline().upper())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as broker:
        threading.Thread(target=broker.serve_forever, daemon=True).start()
        with drop_in.default_address(f"127.0.0.1:{broker.server_address[1]}", port=0) as port, \
                socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"line\n")
            client.shutdown(socket.SHUT_WR)
            assert client.makefile("rb").read() == b"LINE\n"
        broker.shutdown()


def test_the_table_has_each_program_and_the_reason_of_each_difference():
    equal = {"tests": 3, "differ": []}
    results = {suite.name: {"version": "1", suite.clients[0]: {"passed": 3}, "consumer": equal, "names": equal}
               for suite in PROGRAMS}
    arroyo = next(suite for suite in PROGRAMS if suite.name == "sentry-arroyo")
    test, reason = next(iter(arroyo.expected.items()))
    results[arroyo.name]["names"] = {"tests": 3, "differ": [test]}
    text = drop_in_table.table(results)
    assert "| sentry-arroyo | 1 | 3 | 3 | 0 | 1 |\n" in text
    assert f"- sentry-arroyo: {reason} (`{test.rpartition('::')[2]}`)\n" in text
    assert all(f"| {suite.name} |" in text for suite in PROGRAMS)
