"""The end of the scenarios."""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ahead import Ahead, Scenes
from scene import Scene, Writer
from verdict import Life


def test_the_clusters_end_after_the_last_scenario_also_if_it_fails():
    def fails(_: Any) -> None:
        raise ValueError

    closed: list[bool] = []
    scenes: Any = SimpleNamespace(close=lambda: closed.append(True))
    items: list[Any] = [SimpleNamespace(nodeid="a", obj=lambda _: None), SimpleNamespace(nodeid="b", obj=fails)]
    ahead = Ahead(items, scenes)
    ahead.result(items[0])
    assert not closed
    with pytest.raises(ValueError):
        ahead.result(items[1])
    assert closed == [True]
    ahead.join()


def test_the_end_kills_the_writers_of_running_scenarios():
    cluster: Any = SimpleNamespace()
    scene, scenes = Scene(cluster, "interrupted"), Scenes()
    try:
        process = scene._spawn([sys.executable, "-c", "input()"], "writer")
        scene.writers.append(Writer("t", Life("writer"), process, scene.directory / "writer.jsonl"))
        scenes._running.add(scene)
        scenes.close()
        assert process.wait(30) == -signal.SIGKILL
    finally:
        scene.end(None)
