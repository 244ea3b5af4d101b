"""The simulation as part of the tests: thousands of histories, and that a seed decides everything in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = 2000
PROTOCOLS = ("assign", "classic", "consumer")


def start(*arguments: str, hash_seed: str = "random") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**os.environ, "PYTHONHASHSEED": hash_seed})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_histories(protocol):
    """Two processes, half of the seeds each. A seed that fails is run again by `python -m tests.simulation --seed`."""
    half = HISTORIES // 2
    halves = [start("--protocol", protocol, "--seeds", str(first), str(first + half), "--keep-going")
              for first in (0, half)]
    for process in halves:
        out, _ = process.communicate()
        assert process.returncode == 0, out


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_seed_decides_everything(protocol):
    """Two processes, whose sets and dictionaries of strings are in different orders, give the same trace."""
    first, second = (start("--protocol", protocol, "--seed", "7", hash_seed=seed) for seed in ("1", "2"))
    # Member ids of the consumer protocol are random (KIP-1082), and decide nothing.
    traces = [re.sub(r"[\w-]{22}", "ID", process.communicate()[0]) for process in (first, second)]
    assert traces[0] == traces[1]
    assert traces[0].endswith("nothing is wrong\n")
