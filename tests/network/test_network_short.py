"""A cut longer than the session, then dead connections, on a network of namespaces with three brokers.

The scene runs in a separate process, which moves to other namespaces. `make test-network` runs all scenes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
IMPOSSIBLE = 77  # exit status of the program
SESSION_MS = 6_000


@pytest.mark.kafka
@pytest.mark.timeout(600)  # three brokers and four members may start slowly on a busy machine
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("nsenter"), reason="needs Linux's network namespaces")
def test_a_cut_and_dead_connections_lose_nothing(tmp_path: Path) -> None:
    """Both protocols: nothing is lost, no partition has two owners that both commit, all partitions flow again."""
    results = tmp_path / "results.json"
    done = subprocess.run([sys.executable, str(HERE), "short", "--kind", "kconsumer", "--session-ms", str(SESSION_MS),
                           "--results", str(results)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == IMPOSSIBLE:
        pytest.skip(f"no network namespaces here: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout[-5000:]
    outcomes = json.loads(results.read_text())["short"][0]
    assert {outcome["protocol"] for outcome in outcomes} == {"classic", "consumer"}
    for outcome in outcomes:
        assert outcome["violations"] == [], done.stdout[-5000:]
        assert outcome["flows_s"] is not None, done.stdout[-5000:]
