"""The programs in examples/ on an embedded cluster; what needs more is in tests/kafka/test_examples_on_kafka.py."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from api_helpers import PATIENCE, settings
from example_program import Program

from kconsumer import Consumer, TopicPartition
from kconsumer.testing import EmbeddedCluster

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
        program.kill()
    fill(cluster, RECORDS)
    with ingest("--seconds", 0.2) as program:
        program.until(lambda: len(rows()) == 2 * RECORDS, seconds=3 * PATIENCE)
        program.end()
    assert sorted(rows()) == [(p, offset) for p in range(3) for offset in range(2 * RECORDS // 3)]
    assert committed(cluster, "ingest-to-parquet") == dict.fromkeys(range(3), 2 * RECORDS // 3)


def test_the_service_example_processes_in_order_and_commits_processed_records(cluster, tmp_path):
    fill(cluster)
    with Program("service.py", cluster, tmp_path, "-t", "flights") as program:
        program.until(lambda: program.output.count('"number"') == RECORDS)
        program.end()
    done = [(int(p), int(o)) for p, o in re.findall(r"flights \[(\d)\] (\d+):", program.output)]
    for partition in range(3):
        assert [o for p, o in done if p == partition] == list(range(RECORDS // 3))
    assert committed(cluster, "service") == dict.fromkeys(range(3), RECORDS // 3)
    assert program.output.rstrip().endswith("ended")


def test_lag_exporter_reports_the_lag_of_a_group(cluster, tmp_path):
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


def report(name, cluster, tmp_path, *arguments):
    """The output of a program that ends by itself."""
    with Program(name, cluster, tmp_path, "-t", "flights", *arguments) as program:
        assert program.process.wait(60) == 0, program.output
        return program.output


def test_query_topic_reads_all_records_by_a_suggested_schema(cluster, tmp_path):
    pytest.importorskip("duckdb", reason="the example needs DuckDB")
    fill(cluster)
    output = report("query_topic.py", cluster, tmp_path)
    assert "struct<carrier: string, number: int64>" in output and output.count("100") == 3
    fill(cluster, RECORDS, 1)
    output = report("query_topic.py", cluster, tmp_path, "--columns", '{"number": "int32"}', "--sql",
                    "select count(*) as n, sum(number)::bigint as numbers from records")
    assert "struct<number: int32>" in output and "301" in output and str(sum(range(301))) in output


def test_a_lazy_topic_decodes_only_the_needed_columns(cluster, tmp_path):
    pytest.importorskip("polars", reason="the example needs polars")
    fill(cluster)
    output = report("lazy_topic.py", cluster, tmp_path)
    assert "300" in output and "kconsumer" in output and "2/7 COLUMNS" in output
