"""Owns: the command line of the benchmarks: `python -m benchmarks --help`.

Threads: the main thread. Never: fails because of a low figure; exits with 1 only if a program failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from typing import Any

from benchmarks import aio, idle, latency, plots, report, sizes, tls, topics, typed
from benchmarks.clients.registry import CLIENTS, EVERY, PAIRED, Client
from benchmarks.runner import Sample, in_turn
from kconsumer.testing import KafkaCluster, MissingToolError

QUICK_RECORDS = 200_000
QUICK_TOPICS = ("plain", "lz4")
SECTIONS = ("throughput", "sizes", "latency", "idle", "aio", "typed", "tls")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compares Kafka consumers on one real broker; results go to build/bench/. See docs/benchmarks.md.",
        epilog="topics:\n" + "\n".join(f"  {t.name:<14} {t.about}" for t in topics.TOPICS.values())
               + "\nclients:\n" + "\n".join(f"  {c.name:<34} {c.about}" for c in CLIENTS.values()))
    parser.add_argument("--quick", action="store_true",
                        help="under a minute: 200,000 records, one round, two topics, kconsumer and confluent-kafka")
    parser.add_argument("--rounds", type=int, help="rounds on the first topic, each size, TLS (default 5; --quick: 1)")
    parser.add_argument("--more-rounds", type=int, help="rounds on every other topic (default 3; --quick: 1)")
    parser.add_argument("--records", type=int, help="maximum number of records per topic")
    parser.add_argument("--topics", help="names, separated by commas (default: all)")
    parser.add_argument("--clients", help="names, separated by commas, for every topic (default: all for the "
                        "first topic; kconsumer, confluent-kafka and the raw socket for the others)")
    parser.add_argument("--sections", help=f"of {','.join(SECTIONS)} (default: all; --quick: throughput)")
    parser.add_argument("--publish", action="store_true",
                        help="write the tables and the plots into docs/; a run without the topic plain adds its own")
    given = parser.parse_args()
    _fill(parser, given)
    return given


def _fill(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    given.topics = _names(parser, given.topics, topics.TOPICS, QUICK_TOPICS if given.quick else tuple(topics.TOPICS))
    given.sections = _names(parser, given.sections, SECTIONS, SECTIONS[:1] if given.quick else SECTIONS)
    if given.clients is not None:
        given.clients = _names(parser, given.clients, CLIENTS, ())
    elif given.quick:
        given.clients = list(PAIRED)
    given.rounds = given.rounds or (1 if given.quick else 5)
    given.more_rounds = given.more_rounds or (1 if given.quick else 3)
    given.records = given.records or (QUICK_RECORDS if given.quick else 0)


def _names(parser: argparse.ArgumentParser, text: str | None, known: Any, otherwise: tuple[str, ...]) -> list[str]:
    if text is None:
        return list(otherwise)
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            parser.error(f"there is no {name!r}, but: {', '.join(known)}")
    return names


def say(text: str) -> None:
    print(text, flush=True)


def chosen(names: list[str], skipped: dict[str, str]) -> list[Client]:
    """Return the clients that can run here, prepared; `skipped` gets the reason for each other client."""
    found = []
    for name in names:
        client = EVERY[name]
        why = skipped.get(name) or client.missing()
        if not why:
            try:
                client.prepare()
            except RuntimeError as error:
                why = str(error)
        if why:
            if name not in skipped:
                say(f"without {name}: {why}")
            skipped[name] = why
        else:
            found.append(client)
    return found


def throughput(cluster: KafkaCluster, given: argparse.Namespace, result: dict[str, Any]) -> None:
    samples: list[Sample] = []
    skipped: dict[str, str] = {}
    for place, name in enumerate(given.topics):
        topic = topics.TOPICS[name]
        if given.records and given.records < topic.records:
            topic = topic.scaled(given.records / topic.records)
        took = topics.load(cluster, topic)
        say(f"{name}: {topic.about}; {topic.records:,} records written in {took:.0f} s")
        names = given.clients or (list(CLIENTS) if place == 0 else [*PAIRED, "raw socket"])
        clients = chosen(names, skipped)
        # Warms the broker's own code up, and the page cache where the topic is larger than what was just written.
        in_turn(clients[:1], cluster.bootstrap_servers, topic, 1, lambda _: None)
        found, failed = in_turn(clients, cluster.bootstrap_servers, topic,
                                given.rounds if place == 0 else given.more_rounds, say)
        samples += found
        result["failed"].update({f"{client} on {name}": why for client, why in failed.items()})
        result["topics"][name] = asdict(topic)
        result["samples"] = [asdict(sample) for sample in samples]
        result["skipped"] = skipped
        report.save(result)
        cluster.delete_topic(name)


def measure(cluster: KafkaCluster, given: argparse.Namespace, result: dict[str, Any]) -> None:
    if "throughput" in given.sections:
        throughput(cluster, given, result)
    if "sizes" in given.sections:
        sizes.run(cluster, given.rounds, lambda names: chosen(names, result["skipped"]), result, say,
                  quick=given.quick)
        report.save(result)
    if "latency" in given.sections:
        say("latency: produce to poll, 500 records/s")
        result["latency"], failed = latency.run(cluster, given.quick, say)
        result["failed"].update(failed)
        report.save(result)
    if "idle" in given.sections:
        say("idle: CPU of a consumer that gets nothing")
        result["idle"], failed = idle.run(cluster, given.quick, say)
        result["failed"].update(failed)
        report.save(result)
    if "aio" in given.sections:
        say("aio: the topic plain on an event loop")
        aio.run(cluster, given.quick, given.more_rounds, lambda names: chosen(names, result["skipped"]), result, say)
        report.save(result)
    if "typed" in given.sections:
        say("typed: topics of flights into typed columns")
        typed.run(cluster, given.quick, given.more_rounds, lambda names: chosen(names, result["skipped"]), result, say)
        report.save(result)


def measure_tls(given: argparse.Namespace, result: dict[str, Any]) -> None:
    """Use a separate cluster: all other figures are measured without TLS."""
    say("tls: the topic plain read from a TLS 1.3 listener")
    tls.run(given.quick, given.rounds, lambda names: chosen(names, result["skipped"]), result, say)
    report.save(result)


def main() -> int:
    given = arguments()
    result: dict[str, Any] = {
        "began": time.strftime("%Y-%m-%d %H:%M:%S %z"), "machine": report.machine(), "quick": given.quick,
        "compressibility": topics.compressibility(topics.values(100)), "topics": {}, "samples": [], "failed": {},
        "skipped": {}, "latency": [], "latency_on_loop": [], "idle": [], "idle_on_loop": [], "handshakes": [],
    }
    try:
        if set(given.sections) - {"tls"}:
            with KafkaCluster(1, heap="1g", quick_start=False) as cluster:
                measure(cluster, given, result)
        if "tls" in given.sections:
            measure_tls(given, result)
    except MissingToolError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        result["failed"]["the run, which ended early"] = str(error)
    except KeyboardInterrupt:
        say("interrupted: what was measured until here is reported")
    text = report.write(result, given.publish, plots.draw)
    say("\n" + text)
    for what, why in result["failed"].items():
        print(f"FAILED {what}: {why}", file=sys.stderr)
    return 1 if result["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
