"""No memory for one batch: it is fetched again until there is memory, and its partition goes on.

Each test runs in a separate process, whose address space is limited while the batch is inflated.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")

PRELUDE = """
import gzip, resource, struct, sys
from stepped_loop import FETCH, Loop, METADATA, varint
from tests.core.records import crc32c

INFLATED = 60 << 20  # bytes of one record: more than what the limit leaves
ROOM = 24 << 20

def compressed(base, size):
    record = b"\\x00\\x00" + varint(0) + varint(-1) + varint(size) + bytes(size) + varint(0)
    body = gzip.compress(varint(len(record)) + record, 1)
    tail = struct.pack(">hiqqqhii", 1, 0, 0, 0, -1, -1, -1, 1) + body
    return struct.pack(">qiibI", base, 9 + len(tail), 0, 2, crc32c(tail)) + tail

def limited(bytes_more):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes_more, resource.RLIM_INFINITY))

def unlimited():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def asks_again(offset):
    for _ in range(200):
        for request in loop.requests(FETCH):
            if loop.asked(request).get(("t", 0)) == offset:
                return request
            loop.fetched(request, {})
        while loop.requests(METADATA):
            loop.answer_metadata()
        loop.advance(20)
    raise AssertionError(f"it is not fetched again from {offset}")

lines = []
loop = Loop(logger=None)
loop.consumer._on_log = lambda level, facility, text: lines.append((facility, text))
loop.assign(("t", 0, 0))
data = compressed(0, INFLATED)
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(program)], cwd=HERE, text=True,
                          capture_output=True, check=False, timeout=100,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_batch_without_memory_is_reported_once_and_fetched_until_there_is_memory():
    """More often than a bad batch would be."""
    run("""
        errors = []
        for attempt in range(7):
            request = asks_again(0)
            limited(ROOM)
            loop.fetched(request, {0: {"records": data}}, turns=3)
            unlimited()
            errors += [message.error() for message in loop.consumer.consume(10, 0)]
            assert loop.inside()["state"] == "ACTIVE"
        (error,) = errors
        assert error.code() == -194, error  # _CRIT_SYS_RESOURCE
        assert "t [0] at offset 0" in error.str() and "fetched again until there is memory" in error.str(), error
        (text,) = [text for facility, text in lines if facility == "FETCHBAD"]
        loop.fetched(asks_again(0), {0: {"records": data}}, turns=5)
        (message,) = loop.consumer.consume(10, 0)
        assert len(message.value()) == INFLATED and message.offset() == 0
        asks_again(1)
    """)
