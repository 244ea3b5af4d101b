"""Owns: running the measured programs in turn, each in a separate process, and their results.

Threads: the main thread; the broker and the programs are processes. Never: runs two at once, judges a figure.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.clients.registry import ROOT, Client, Target
from benchmarks.topics import Topic

LONGEST_SECONDS = 600


class ClientError(RuntimeError):
    """A measured program failed, hung, or read a different number of records than the topic has."""


@dataclass
class Sample:
    """One run of one program."""

    topic: str
    client: str
    round: int
    records: int
    seconds: float
    cpu_seconds: float
    cpu_of_whole_process: bool
    peak_rss_bytes: int
    details: dict[str, Any]

    @property
    def rate(self) -> float:
        return self.records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        return self.cpu_seconds / self.records * 1e6


def run_program(command: list[str], name: str) -> tuple[str, Any]:
    """Return (stdout, rusage). Raises ClientError with the end of stderr."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=ROOT)
        timer = threading.Timer(LONGEST_SECONDS, process.kill)
        timer.start()
        try:
            # wait4 and not Popen.wait: it also returns the resource usage.
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise ClientError(f"{name} exited with {process.returncode}: {err.read().strip()[-1000:]}")
        return out.read(), usage


def run_client(client: Client, bootstrap: str, topic: Topic, number: int, tls: tuple[str, ...] = ()) -> Sample:
    wanted = min(topic.records, client.limit or topic.records)
    target = Target(bootstrap, topic.name, topic.partitions, wanted, tls)
    output, usage = run_program(client.command(target), client.name)
    try:
        found = client.parse(output)
    except (ValueError, IndexError, KeyError) as error:
        raise ClientError(f"{client.name} printed {output[-500:]!r}: {error}") from error
    _check(client, topic, wanted, found)
    whole = "cpu_seconds" not in found
    return Sample(
        topic=topic.name, client=client.name, round=number, records=found["records"], seconds=found["seconds"],
        cpu_seconds=usage.ru_utime + usage.ru_stime if whole else found["cpu_seconds"], cpu_of_whole_process=whole,
        peak_rss_bytes=found.get("peak_rss_bytes") or usage.ru_maxrss * 1024, details=found)


def _check(client: Client, topic: Topic, wanted: int, found: dict[str, Any]) -> None:
    """Check that the whole topic was read: otherwise the figure does not count."""
    if found["records"] < wanted or (wanted == topic.records and found["records"] != wanted):
        raise ClientError(f"{client.name} read {found['records']} of {wanted} records of {topic.name}")
    if found.get("bytes") is not None and found["bytes"] != found["records"] * topic.value_bytes:
        raise ClientError(f"{client.name} read {found['bytes']} bytes of values in {found['records']} records of "
                          f"{topic.value_bytes} bytes")


def in_turn(
    clients: Iterable[Client], bootstrap: str, topic: Topic, rounds: int, say: Callable[[str], None],
    *, tls: tuple[str, ...] = (), first: int = 0,
) -> tuple[list[Sample], dict[str, str]]:
    """Run A B C A B C … `rounds` times. Return (samples, failures); a failed client does not run again.

    `first`: number of the first round.
    """
    samples: list[Sample] = []
    failed: dict[str, str] = {}
    running = list(clients)
    for number in range(first, first + rounds):
        for client in list(running):
            try:
                sample = run_client(client, bootstrap, topic, number, tls)
            except ClientError as error:
                failed[client.name] = str(error)
                running.remove(client)
                say(f"  {client.name}: FAILED: {error}")
                continue
            samples.append(sample)
            say(f"  {number + 1}/{first + rounds} {client.name:<34} {sample.rate / 1e6:7.3f} M records/s "
                f"{sample.cpu_per_million:7.3f} CPU s/M {sample.peak_rss_bytes / 1e6:6.0f} MB")
    return samples, failed
