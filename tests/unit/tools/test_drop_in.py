"""tools/drop_in.py runs the tests of a checkout with none of its settings and none of ours."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import drop_in  # noqa: E402
from drop_in_suites import Suite  # noqa: E402


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
    assert not done.surprises
