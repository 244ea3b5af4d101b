"""A consumer in a separate process, so that its peak memory is measured apart from the test's.

Owns: measure(). Threads: the test's. Never: talks to anything but the address it is given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HEAD = """
import json, sys, time
from process_peak import begin_peak, peak
from kconsumer import Consumer, KafkaException, TopicPartition
import kconsumer._core.consumer.consumer

config = json.loads(sys.argv[1])
errors = []
config["error_cb"] = lambda error: errors.append(error.str())
found = {}
consumer = Consumer(config)
consumer.poll(0)
begin_peak()
before, begun, busy = peak(), time.monotonic(), time.process_time()
"""
_TAIL = """
found.update(peak=peak() - before, seconds=time.monotonic() - begun, cpu_seconds=time.process_time() - busy,
             errors=errors)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Measured:
    """A program's memory above its level just after the consumer was made, and its results in ``found``."""

    peak: int  # bytes of resident memory
    seconds: float
    cpu_seconds: float
    errors: list[str]
    found: dict[str, Any]


def measure(program: str, config: dict[str, Any], timeout_s: float = 60) -> Measured:
    """Runs ``program`` with a ``consumer`` made of ``config``, whose error_cb fills ``errors``."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _HEAD + program + _TAIL, json.dumps(config)],
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
                          capture_output=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout.splitlines()[-1])
    return Measured(found.pop("peak"), found.pop("seconds"), found.pop("cpu_seconds"), found.pop("errors"), found)
