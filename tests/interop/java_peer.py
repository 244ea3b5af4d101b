"""A Java program of this folder in a separate process, with the Java client's jars on its class path.

Owns: which jars those are and where they lie. Threads: the test's. Never: skips: without Java nothing would be proved.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KAFKA_VERSION = "4.4.0"  # of the protocol (tools/generate_protocol.py) and of the table of properties
OTHERS = ["org.slf4j:slf4j-api:1.7.36",
          *(f"com.fasterxml.jackson.core:jackson-{part}:2.18.2" for part in ("databind", "core", "annotations"))]
FETCH_SECONDS = 600
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def jar_path(artifact: str) -> Path:
    _, name, version = artifact.split(":")
    return ROOT / "build" / "kafka-clients" / f"{name}-{version}.jar"


def fetch_jars() -> list[Path]:
    """The jars, kafka-clients first; through Maven the first time, which another test process waits for."""
    artifacts = [f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}", *OTHERS]
    folder = jar_path(artifacts[0]).parent
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _fetch(artifacts)
    return [jar_path(artifact) for artifact in artifacts]


def _fetch(artifacts: list[str]) -> None:
    missing = [program for program in ("java", "mvn") if not shutil.which(program)]
    assert not missing, f"needs {' and '.join(missing)} (make setup)"
    for artifact in artifacts:
        if not jar_path(artifact).exists():
            subprocess.run(["mvn", "-q", "-B", COPY, f"-Dartifact={artifact}",
                            f"-DoutputDirectory={jar_path(artifact).parent}"], check=True, cwd=ROOT,
                           timeout=FETCH_SECONDS)


class JavaPeer:
    """Answers one line with one line."""

    def __init__(self, source: str, jars: list[Path], *options: str) -> None:
        self.command = ["java", *options, "-cp", ":".join(map(str, jars)), str(Path(__file__).with_name(source))]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8")
        self.owes = False  # an answer

    def line(self, request: str) -> str:
        if self.owes:  # to a test that was broken off: it would be taken for the next one's
            self.process.kill()
            self.process.wait()
            self.start()
        assert self.process.stdin and self.process.stdout
        self.owes = True
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the Java process ended"
        self.owes = False
        return answer.rstrip("\n")

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=20)
