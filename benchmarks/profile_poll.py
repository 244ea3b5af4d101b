"""Owns: a CPU profile: reads the first topic with kconsumer under `perf record` and prints the top functions.

    python benchmarks/profile_poll.py --method poll [--records 5000000] [--bootstrap HOST:PORT --topic plain]

Threads: one; the reader is a process. Never: compares or judges. The data stay in build/bench/perf-*.data for
`perf report`. Without --bootstrap it starts a broker and writes the topic itself.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import topics  # noqa: E402 - the folder above is on the path only now
from benchmarks.clients.drop_in import METHODS  # noqa: E402 - likewise
from benchmarks.clients.registry import BUILD, Target, python_program  # noqa: E402 - likewise
from kconsumer.testing import KafkaCluster  # noqa: E402 - likewise

FREQUENCY = 4999
SHOWN = 45


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=tuple(METHODS), action="append", help="may be repeated; all if none")
    parser.add_argument("--library", choices=("kconsumer", "confluent_kafka"), default="kconsumer")
    parser.add_argument("--topic", choices=tuple(topics.TOPICS), default="plain")
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--bootstrap", help="a running broker that holds the topic with so many records")
    return parser.parse_args()


def profile(target: Target, library: str, method: str) -> str:
    """Return the top functions by thread, and the program's own output."""
    data = BUILD / f"perf-{method}.data"
    program = python_program("drop_in", "--library", library, "--method", method)(target)
    recorded = subprocess.run(
        ["perf", "record", "-q", "-F", str(FREQUENCY), "-g", "-o", str(data), "--", *program], cwd=ROOT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    shown = subprocess.run(
        ["perf", "report", "-i", str(data), "--stdio", "--no-children", "-g", "none", "--percent-limit", "0.4",
         "--sort", "pid,dso,symbol"], capture_output=True, text=True, check=True)
    lines = [line for line in shown.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return "\n".join([f"== {library} {method}: {recorded.stdout.strip()}", *lines[:SHOWN]])


def main() -> None:
    given = arguments()
    if shutil.which("perf") is None:
        raise SystemExit("profile_poll: there is no 'perf' (Debian: apt-get install linux-perf)")
    BUILD.mkdir(parents=True, exist_ok=True)
    topic = topics.TOPICS[given.topic]
    if given.records < topic.records:
        topic = topic.scaled(given.records / topic.records)
    with ExitStack() as stack:
        bootstrap = given.bootstrap
        if bootstrap is None:
            cluster = stack.enter_context(KafkaCluster(1, heap="1g", quick_start=False))
            topics.load(cluster, topic)
            bootstrap = cluster.bootstrap_servers
        target = Target(bootstrap, topic.name, topic.partitions, topic.records)
        for method in given.method or METHODS:
            print(profile(target, given.library, method), flush=True)


if __name__ == "__main__":
    main()
