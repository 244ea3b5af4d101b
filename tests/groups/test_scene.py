"""How a scenario that fails reports its reason."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import scene as scenes
from verdict import Life, Written, judge, story


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(scenes, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


def test_a_failed_scene_prints_its_reason_at_once_and_keeps_traces_and_broker_logs(kept, tmp_path, capsys):
    log = tmp_path / "broker.log"
    cluster = SimpleNamespace(broker_ids=[1], log_path=lambda broker: log)
    scene = scenes.Scene(cluster, "broken")
    log.write_text(f"about another group\nmember 7 of {scene.group} was removed\n")
    (scene.directory / "m.jsonl").write_text("trace\n")
    scene.end(AssertionError("a record was lost"))
    printed = capsys.readouterr().err
    assert "broken failed" in printed and "a record was lost" in printed and "member 7" in printed
    assert "another group" not in printed
    assert (kept / "broken" / "m.jsonl").read_text() == "trace\n"
    assert (kept / "broken" / "broker-1.log").read_text() == log.read_text()
    assert "a record was lost" in (kept / "broken" / "failure.txt").read_text()


def test_a_scene_that_passes_leaves_nothing(kept):
    scene = scenes.Scene(SimpleNamespace(), "fine")
    scene.end(None)
    assert not kept.exists() and not scene.directory.exists()


def test_the_story_of_a_partition_names_owners_reads_and_commits():
    first = Life("a", "kconsumer", [
        {"t": 0, "e": "assigned", "p": ["t/0"]}, {"t": 1, "e": "read", "p": "t/0", "o": [0, 9], "n": 10},
        {"t": 1.1, "e": "accepted", "o": {"t/0": 10}},
        {"t": 1.2, "e": "commit", "o": {"t/0": 10}, "ok": False, "error": "_TIMED_OUT", "sent": 1.1}], killed=2)
    second = Life("b", "kconsumer", [{"t": 3, "e": "assigned", "p": ["t/0"]}])
    text = story(judge([first, second], Written([], "t"), complete=False), "t/0").splitlines()
    assert text[0] == "t/0:" and len(text) == 3
    assert "a [0.000, 2.000 killed]: read 0 to 9; last commits: 10 (_TIMED_OUT) at 1.200; last accepted commit: 10" \
        in text[1]
    assert "b [3.000, inf open]: read nothing; last commits: none" in text[2]
