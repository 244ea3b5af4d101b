"""Owns: reading through TLS: kconsumer, confluent-kafka and plain OpenSSL on the same listener; handshakes per second.

Threads: the main thread. Never: measures the verification of certificates: the certificate is self-signed.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import topics
from benchmarks.clients.registry import OVER_TLS, Target, python_program
from benchmarks.runner import in_turn, run_program
from kconsumer.testing import KafkaCluster

RECORDS = 3_000_000
QUICK_RECORDS = 500_000
# The broker's JVM takes gigabytes to compile its encryption: by then it is twice as fast, and who came first would
# have paid for the others.
WARM_UP = 10
HOST = "localhost"


def certificate(folder: Path) -> tuple[Path, Path]:
    """(the certificate, and a file of it and its key as Kafka wants them). Raises RuntimeError without openssl."""
    key, crt, both = folder / "key.pem", folder / "crt.pem", folder / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "30", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", str(key),
               "-out", str(crt)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise RuntimeError(f"no certificate: {error}") from error
    both.write_text(key.read_text() + crt.read_text())
    return crt, both


def run(
    quick: bool,
    rounds: int,
    chosen: Callable[[list[str]], list[Any]],
    result: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Adds to result: samples of the topic `tls`, handshakes, failures."""
    topic = replace(topics.TOPICS["plain"], name="tls", about="100 B, uncompressed, 1 partition, TLS 1.3")
    topic = topic.scaled((QUICK_RECORDS if quick else RECORDS) / topic.records)
    with tempfile.TemporaryDirectory() as folder:
        crt, both = certificate(Path(folder))
        listener = {"security.protocol": "SSL", "host": HOST, "ssl.keystore.type": "PEM", "ssl.keystore.location": both}
        with KafkaCluster(1, heap="1g", listeners={"SSL": listener}, quick_start=False) as cluster:
            topics.load(cluster, topic)
            tls = ("--tls", cluster.bootstrap("SSL"), "--ca", str(crt))
            clients = chosen(list(OVER_TLS))
            in_turn(clients[:1], cluster.bootstrap_servers, topic, 1 if quick else WARM_UP, lambda _: None, tls=tls)
            samples, failed = in_turn(clients, cluster.bootstrap_servers, topic, rounds, say,
                                      tls=tls)
            target = Target(cluster.bootstrap_servers, topic.name, 1, 1, tls)
            output, _ = run_program(python_program("handshakes")(target), "handshakes")
    result["failed"].update({f"{client} on tls": why for client, why in failed.items()})
    result["topics"]["tls"] = asdict(topic)
    result["samples"] += [asdict(sample) for sample in samples]
    result["handshakes"] = [json.loads(line) for line in output.splitlines()]
    for entry in result["handshakes"]:
        say(f"  handshakes, {entry['kind']}: {entry['handshakes_per_second']:.0f} a second ({entry['suite']})")
