"""The programs in examples/, each as the process that a user starts, on an embedded cluster."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from api_helpers import PATIENCE, settings, until

from kconsumer import Consumer, TopicPartition
from kconsumer.testing import EmbeddedCluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RECORDS = 300


@pytest.fixture
def cluster():
    with EmbeddedCluster(1) as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=0)
        cluster.create_topic("flights", partitions=3)
        yield cluster


def fill(cluster, start=0, count=RECORDS):
    cluster.produce("flights", ({"key": f"{i}", "partition": i % 3, "value": json.dumps({"carrier": "AA", "number": i})}
                                for i in range(start, start + count)))


class Program:
    """One of the examples, running; its output goes to a file, so that it can be read while it runs."""

    def __init__(self, name, cluster, folder, *arguments):
        self.log = folder / f"{name}.{len(list(folder.glob('*.log')))}.log"
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-u", str(EXAMPLES / name), "-b", cluster.bootstrap_servers, *map(str, arguments)],
                stdout=out, stderr=subprocess.STDOUT)

    @property
    def output(self):
        return self.log.read_text()

    def shows(self, pattern):
        """Wait until its output has the pattern."""
        try:
            return until(lambda: re.search(pattern, self.output) or self.died())
        except AssertionError as error:
            raise AssertionError(f"{pattern!r} is not in: {self.output}") from error

    def died(self):
        assert self.process.poll() is None, self.output
        return False

    def end(self, number=signal.SIGTERM, code=0):
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == code, self.output
        assert "Traceback" not in self.output, self.output

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def committed(cluster, group):
    with Consumer(settings(cluster, group_id=group)) as consumer:
        return {p.partition: p.offset
                for p in consumer.committed([TopicPartition("flights", p) for p in range(3)], timeout=PATIENCE)}


def test_ingest_to_parquet_writes_each_record_once_through_a_kill(cluster, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="the example needs the extra [arrow]")
    out = tmp_path / "out"

    def rows():
        found = [(int(file.name.split("-")[1]), offset) for file in sorted(out.glob("*.parquet"))
                 for offset in pq.read_table(file)["offset"].to_pylist()]
        assert len(found) == len(set(found))
        return found

    def ingest(*more):
        return Program("ingest_to_parquet.py", cluster, tmp_path, "-t", "flights", "-o", out,
                       "-X", "session.timeout.ms=3000", "-X", "heartbeat.interval.ms=500", *more)

    fill(cluster)
    with ingest("--records", 50) as program:
        program.shows(r"\.parquet")
        program.process.kill()
        program.process.wait()
    fill(cluster, RECORDS)
    with ingest("--seconds", 0.2) as program:
        until(lambda: program.died() or len(rows()) == 2 * RECORDS, seconds=3 * PATIENCE)
        program.end()
    assert sorted(rows()) == [(p, offset) for p in range(3) for offset in range(2 * RECORDS // 3)]
    assert committed(cluster, "ingest-to-parquet") == dict.fromkeys(range(3), 2 * RECORDS // 3)


def test_service_works_on_every_record_in_order_and_commits_what_it_did(cluster, tmp_path):
    fill(cluster)
    with Program("service.py", cluster, tmp_path, "-t", "flights") as program:
        until(lambda: program.died() or program.output.count('"number"') == RECORDS)
        program.end()
    done = [(int(p), int(o)) for p, o in re.findall(r"flights \[(\d)\] (\d+):", program.output)]
    for partition in range(3):
        assert [o for p, o in done if p == partition] == list(range(RECORDS // 3))
    assert committed(cluster, "service") == dict.fromkeys(range(3), RECORDS // 3)
    assert program.output.rstrip().endswith("ended")


def test_lag_exporter_tells_what_a_group_has_left(cluster, tmp_path):
    pytest.importorskip("prometheus_client", reason="the example needs prometheus-client")
    fill(cluster)
    with Consumer(settings(cluster, group_id="readers", enable_auto_commit=False)) as consumer:
        consumer.commit(offsets=[TopicPartition("flights", 0, 30), TopicPartition("flights", 1, 100)],
                        asynchronous=False)
    with Program("lag_exporter.py", cluster, tmp_path, "-g", "readers", "-t", "flights", "--port", 0) as program:
        url = program.shows(r"http://\S+")[0]

        def scrape():
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.read().decode()

        text = scrape()
        assert 'kafka_group_lag{group="readers",partition="0",topic="flights"} 70.0' in text
        assert 'kafka_group_lag{group="readers",partition="1",topic="flights"} 0.0' in text
        assert 'kafka_group_lag{group="readers",partition="2"' not in text  # nothing was committed
        assert 'kafka_partition_end{partition="2",topic="flights"} 100.0' in text
        assert 'kafka_group_up{group="readers"} 1.0' in text
        fill(cluster, RECORDS, 3)
        assert 'kafka_group_lag{group="readers",partition="0",topic="flights"} 71.0' in scrape()
        program.end()


def test_duckdb_live_answers_over_what_has_just_arrived(cluster, tmp_path):
    pytest.importorskip("duckdb", reason="the example needs duckdb")
    fill(cluster)
    sql = "select 'seen ' || count(*) || ' of ' || any_value(value->>'$.carrier') as answer from records"
    with Program("duckdb_live.py", cluster, tmp_path, "-t", "flights", "--every", "0.3", "--sql", sql) as program:
        program.shows(f"seen {RECORDS} of AA")
        fill(cluster, RECORDS)
        program.shows(f"seen {2 * RECORDS} of AA")
        program.end(signal.SIGINT)
