"""Every Python block of README.md and docs/ is run as it stands, page by page, against an embedded cluster.

`localhost:9092` becomes the cluster's address; the topic `flights` is there. The blocks of a page share their names and
run in its order, in a temporary folder. A comment before a block says what is particular to it:

    <!-- snippet: loops -->             it does not end by itself: once it has read everything, wakeup() must end it
    <!-- snippet: not run: reason -->   what it needs is not here; test_docs_blocks_not_run lists all of these

A block with a comment such as `# Python 3.11` is left out on older Pythons. Lines of `sh` blocks that begin
with `kconsumer` are run as commands.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from api_helpers import PATIENCE, until
from docs_blocks import ADDRESS, PAGES, ROOT, blocks, commands

import kconsumer
from kconsumer import Consumer, WakeupError
from kconsumer.testing import EmbeddedCluster

RECORDS = 400

# Pages whose blocks are run by other tests, against what they need.
ELSEWHERE = {
    "spark.md": "needs Spark: tests/spark/test_spark_page.py",
    "security.md": "needs brokers with TLS and SASL: tests/kafka starts some",
}
COMMANDS_ELSEWHERE = {"ingest": "needs Spark: tests/spark/test_spark_page.py"}


RUN = [page for page in PAGES if page.name not in ELSEWHERE and any(b.language == "python" for b in blocks(page))]
COMMANDS = [pytest.param(words, id=place) for page in PAGES if page.name not in ELSEWHERE
            for place, line in commands(page) for words in [shlex.split(line, comments=True)]
            if words[0] == "kconsumer" and words[1] not in COMMANDS_ELSEWHERE]


@pytest.fixture
def cluster():
    with EmbeddedCluster(3) as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=3000)  # Kafka's default: a group takes seconds to form
        cluster.create_topic("flights", partitions=6)
        cluster.produce("flights", (
            {"key": f"{i % 7}", "partition": i % 6, "timestamp": 1_714_521_600_000 + 1000 * i, "value": json.dumps(
                {"carrier": "ABCDEFG"[i % 7] + "A", "distance": 100 + i, "dest": "LAX"})} for i in range(RECORDS)))
        yield cluster


def consumers(names):
    return [value for value in names.values() if isinstance(value, Consumer)]


class Waker:
    """Calls wakeup() on a page's consumers once each has read all it is assigned."""

    def __init__(self, names):
        self.names = names
        self.ended = threading.Event()
        self.in_time = False
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        deadline = time.monotonic() + PATIENCE
        while not self.ended.wait(0.1):
            self.in_time = any(self.done(consumer) for consumer in consumers(self.names))
            if self.in_time or time.monotonic() > deadline:
                break
        while not self.ended.wait(0.1):
            for consumer in consumers(self.names):
                consumer.wakeup()

    @staticmethod
    def done(consumer):
        try:
            metrics = consumer.metrics()
        except RuntimeError:  # of a block before: closed
            return False
        return metrics["records_lag"] and all(lag == 0 for lag in metrics["records_lag"].values())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc_info):
        self.ended.set()
        self.thread.join()


def fits(block):
    """Whether this Python is as new as a comment in the block says it must be."""
    needed = re.search(r"# Python 3\.(\d+)\b", block.code)
    return needed is None or sys.version_info >= (3, int(needed[1]))


def run(block, names, cluster):
    source = block.code.replace(ADDRESS, cluster.bootstrap_servers)
    code = compile("\n" * (block.line - 1) + source, str(block.page), "exec")
    if block.mark != "loops":
        exec(code, names)
        return
    with Waker(names) as waker:
        with pytest.raises(WakeupError):
            exec(code, names)
    assert waker.in_time, f"{block.place}: it ended before it read everything"


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(page, cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    try:
        for block in blocks(page):
            if block.language == "python" and not block.mark.startswith("not run:") and fits(block):
                run(block, names, cluster)
                run_tests_of(block, names)
    finally:
        for consumer in consumers(names):
            consumer.close()


def test_the_first_program_of_the_readme_prints_what_is_shown_below_it(capsys):
    program, output = [block for block in blocks(ROOT / "README.md") if block.language in ("python", "text")][:2]
    assert "EmbeddedCluster" in program.code and output.language == "text"
    exec(compile("\n" * (program.line - 1) + program.code, str(program.page), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip() == output.code.strip()


def run_tests_of(block, names):
    """A block that shows how to write a pytest test: its tests are run, its fixtures made, as pytest would."""
    for name in re.findall(r"^def (test_\w+)\(cluster\)", block.code, re.M):
        made = names["cluster"].__wrapped__() if hasattr(names["cluster"], "__wrapped__") else None
        assert made is not None, f"{block.place}: no fixture for {name}"
        names[name](next(made))
        assert next(made, None) is None


def test_docs_blocks_not_run():
    """The blocks that are left out, each with its reason. One more needs a reason, and a line here."""
    left_out = [(block.page.name, block.mark.removeprefix("not run: ")) for page in PAGES for block in blocks(page)
                if block.mark.startswith("not run:")]
    assert left_out == [
        ("README.md", "needs Spark; tests/spark/test_spark_page.py runs it"),
        ("cli.md", "needs a schema registry; tests/embedded/test_cli_decoded.py runs such commands"),
        ("cli.md", "needs a group; tests/embedded/test_cli.py runs such commands"),
        ("columns.md", "needs a schema registry"),

        ("commits.md",
         "needs a real transaction coordinator; examples/enrich_exactly_once.py is this, tested on Kafka"),
        ("commits.md",
         "needs a real transaction coordinator; tests/kafka/test_transactions_on_kafka.py does this"),
        ("deserializers.md", "needs a schema registry"),
        ("examples.md", "tests/embedded/test_examples.py runs it"),
        ("examples.md", "tests/kafka/test_examples_on_kafka.py runs it"),
        ("examples.md", "tests/embedded/test_examples.py runs it"),
        ("examples.md", "tests/embedded/test_asgi_example.py runs it"),
        ("examples.md", "tests/embedded/test_examples.py runs it"),
        ("examples.md", "tests/kafka/test_examples_on_kafka.py runs it"),
        ("examples.md", "tests/embedded/test_examples.py runs it"),
        ("examples.md", "tests/embedded/test_examples.py runs it"),
        ("examples.md", "tests/spark/test_table_formats.py and tests/cluster run it"),
        ("ingest.md", "a later section makes the table; tests/ingest/test_evolution.py does the same"),
        ("migrating.md", "needs a separate process; tests/embedded/test_compat.py is this"),
        ("migrating.md", "kafka-python's side of the comparison, for the eye"),
        ("observability.md", "opens a port"),
        ("observability.md", "needs an SDK; tests/unit/python/test_telemetry_otel.py does this"),
        ("observability.md", "needs an SDK; tests/embedded/test_telemetry_live.py does this"),
        ("testing.md", "tests/embedded/test_pytest_plugin.py runs such tests"),
        ("testing.md", "needs Docker"),
        ("testing.md", "starts a real Kafka; tests/kafka does so"),
    ]


def test_every_mark_is_valid():
    for page in PAGES:
        for found in re.finditer(r"<!-- snippet: ([^\n]*?) -->\n(.*)", page.read_text(encoding="utf-8")):
            assert found[1] == "loops" or found[1].startswith("not run: "), (page.name, found[1])
            assert found[2] in ("```python", "```sh"), (page.name, found[1])


def thread_names(process):
    for name in Path(f"/proc/{process.pid}/task").glob("*/comm"):
        with suppress(OSError):  # it has ended meanwhile, as resolvers do
            yield name.read_text().strip()


def wait_for_consumer(process):
    """Until a process has a network thread; where threads have no names to be seen, for a while."""
    if Path("/proc/self/task").exists():
        until(lambda: process.poll() is not None or "kconsumer-net" in thread_names(process))
    else:
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_of_the_docs_runs(words, cluster, tmp_path):
    pytest.importorskip("click", reason="the command needs the extra [cli]")
    words = [word.replace(ADDRESS, cluster.bootstrap_servers) for word in words]
    process = subprocess.Popen([sys.executable, "-m", "kconsumer", *words[1:]], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if "-f" in words or "--follow" in words:
        # Nothing tells from outside that it follows; Ctrl-C before it does ends it in the same way, once Python is up.
        wait_for_consumer(process)
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        process.send_signal(signal.SIGINT)
        expected = 130
    else:
        expected = 0
    out, err = process.communicate(timeout=60)
    assert process.returncode == expected, err
    assert "Traceback" not in err
    if "-O" in words:
        assert (tmp_path / words[words.index("-O") + 1]).stat().st_size > 0
    elif expected == 0:
        assert out


def test_pages_name_no_other_version():
    """A version in a page that is not this one's would tell a stranger to install another."""
    for page in PAGES:
        for version in re.findall(r"kconsumer==([\d.]+)", page.read_text(encoding="utf-8")):
            assert version == kconsumer.__version__, page.name
