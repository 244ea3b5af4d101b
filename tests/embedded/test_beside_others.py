"""kconsumer, confluent-kafka and pyarrow in one process, imported in every order: each brings copies of lz4, zstd,
snappy and zlib, and all of them must go on working."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

PROGRAM = """
import sys
for name in sys.argv[2:]:
    __import__(name)
import confluent_kafka, kconsumer, pyarrow as pa
import pyarrow.parquet as pq

def rounds():
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        data = codec.encode() * 5000
        squeezed = pa.compress(data, codec=codec, asbytes=True)
        assert pa.decompress(squeezed, decompressed_size=len(data), codec=codec, asbytes=True) == data
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"a": [codec] * 1000}), sink, compression="lz4" if codec == "lz4" else codec)
        assert pq.read_table(pa.BufferReader(sink.getvalue())).num_rows == 1000
    config = {"bootstrap.servers": sys.argv[1], "group.id": "beside", "enable.auto.commit": False}
    for module in (kconsumer, confluent_kafka):
        consumer = module.Consumer(config)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            consumer.assign([module.TopicPartition("beside-" + codec, 0, 0)])
            messages = consumer.consume(50, timeout=20)
            assert [m.value() for m in messages] == [codec.encode() * 200] * 50, (module.__name__, codec)
        consumer.close()
    consumer = kconsumer.Consumer(config)
    consumer.assign([kconsumer.TopicPartition("beside-zstd", 0, 0)])
    assert pa.record_batch(consumer.consume_batch(timeout=20)).num_rows > 0
    consumer.close()

rounds()
rounds()
print("all work")
"""


@pytest.fixture(scope="module")
def topics(embedded):
    for codec in CODECS:
        embedded.create_topic(f"beside-{codec}")
        embedded.produce(f"beside-{codec}", [codec.encode() * 200] * 50, config={"compression.type": codec})


@pytest.mark.parametrize("order", list(itertools.permutations(("kconsumer", "confluent_kafka", "pyarrow"))),
                         ids="-".join)
def test_all_work_in_any_order_of_imports(order, embedded, topics):
    pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    done = subprocess.run([sys.executable, "-c", PROGRAM, embedded.bootstrap_servers, *order],
                          capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.returncode) == ("all work\n", 0), done.stderr
