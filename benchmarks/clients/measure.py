"""Owns: the common part of all measured Python programs: arguments, clocks, the JSON line.

Threads: the program's main thread. Never: imports a Kafka client, so that each program holds its own client only.

All programs measure the same span: from just before assign() to the return of the last record. Before it, the client
reads the topic's metadata, so its first connection is open. CPU time covers all threads of the process, user and
system, over the same span. Memory is the peak of the process from start to end.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import NoReturn

SILENCE_SECONDS = 30.0  # a client that returns nothing for so long has failed
CHUNK = 10_000  # records that the list-returning calls ask for


def arguments(
    methods: tuple[str, ...] = (), libraries: tuple[str, ...] = (), tunable: bool = False, sized: bool = False
) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--records", type=int, required=True, help="how many to read; all of the topic, or fewer")
    parser.add_argument("--tls", default="", help="host:port of a TLS listener to read from")
    parser.add_argument("--ca", help="file of the CA certificate of that listener")
    if methods:
        parser.add_argument("--method", choices=methods, required=True)
    if libraries:
        parser.add_argument("--library", choices=libraries, required=True)
    if tunable:
        parser.add_argument("--tuned", action="store_true", help="with the settings that suit throughput")
        parser.add_argument("--partition-mebibytes", type=int, default=0,
                            help="asked for of a partition in one request (default: the client's own)")
        parser.add_argument("--group", choices=("classic", "consumer"), help="subscribe under this protocol")
    if sized:
        parser.add_argument("--mebibytes", type=int, default=1, help="asked for of a partition in one request")
    return parser.parse_args()


def connection(given: argparse.Namespace) -> dict[str, object]:
    """The properties that say where brokers are."""
    if given.tls:
        return {"bootstrap.servers": given.tls, "security.protocol": "ssl", "ssl.ca.location": given.ca}
    return {"bootstrap.servers": given.bootstrap}


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_rss_bytes() -> int:
    """Linux keeps in ru_maxrss what the parent had before exec, so the kernel's own mark is read there."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def fail(why: object) -> NoReturn:
    raise SystemExit(f"{Path(sys.argv[0]).stem}: {why}")


class Watch:
    """Started just before assign(); `first()` at the first record; `report()` at the last one."""

    def __init__(self) -> None:
        self._cpu = cpu_seconds()
        self._began = self._first = time.perf_counter()

    def first(self) -> None:
        self._first = time.perf_counter()

    def report(self, records: int, data_bytes: int | None, **more: object) -> None:
        """Print the result; `data_bytes` is the sum of the values' lengths, None where the program did not look."""
        seconds = time.perf_counter() - self._began
        cpu = cpu_seconds() - self._cpu
        result = {"records": records, "bytes": data_bytes, "seconds": seconds,
                  "first_record_seconds": self._first - self._began, "cpu_seconds": cpu,
                  "peak_rss_bytes": peak_rss_bytes(), **more}
        print(json.dumps(result), flush=True)
