"""tools/soak_seeds.py: which seeds are run, and where the next run goes on."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import soak_seeds
from soak_seeds import Model, Seeds

MODEL = Model({"a": ["model", "a"], "b": ["model", "b"]}, part=3, seeds=7, first=100, processes=1)


def test_series_take_turns_and_end_together():
    seeds = Seeds({"failed": []}, MODEL, 7)
    taken = []
    while (part := seeds.take()) is not None:
        taken.append(part)
        seeds.end(*part[:2])
    assert taken == [("a", 100, 103), ("b", 100, 103), ("a", 103, 106), ("b", 103, 106), ("a", 106, 107),
                     ("b", 106, 107)]
    assert seeds.done == {"a": 107, "b": 107}


def test_a_part_that_is_not_done_is_run_again():
    state = {"failed": []}
    seeds = Seeds(state, replace(MODEL, commands={"a": []}), 7)
    first, second = seeds.take(), seeds.take()
    seeds.end(*second[:2])
    assert state["next"] == {"a": 100}
    seeds.end(*first[:2])
    assert state["next"] == {"a": 106}


@pytest.mark.parametrize("status", [0, 1, 3])
def test_the_next_run_goes_on_and_then_begins_another_series(tmp_path, monkeypatch, capsys, status):
    ran = []

    def run(command, **_):
        first, end = map(int, command[-2:])
        ran.append((command[3], first, end))
        out = f"seed {first}: wrong\n" if status == 1 else "fine\n"
        return soak_seeds.subprocess.CompletedProcess(command, status, out, "killed")

    monkeypatch.setattr(soak_seeds.subprocess, "run", run)
    path = tmp_path / "state.json"
    model = replace(MODEL, commands={"a": ["model", "a"]})
    path.write_text(json.dumps({"next": {"a": 104}, "failed": []}))  # of a version without `first`
    failed = soak_seeds.soak(model, path, 7, 1e9)
    assert ran == [("a", 104, 107)]
    assert soak_seeds.soak(model, path, 3, 1e9) == failed == (status > 0)
    assert ran[1:] == [("a", 107, 110)]
    printed = capsys.readouterr().out
    assert {0: "0 failed in this run", 1: "a seed 104: wrong", 3: "the process ended with 3: killed"}[status] in printed
