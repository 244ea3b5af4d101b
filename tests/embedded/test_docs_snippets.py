"""A walk through README.md and docs/ in the order of the site, on one cluster with the data of `kconsumer demo`.

Every Python block and every `kconsumer` command runs as it stands, in the order of its page, as a reader would. The
Python blocks of a page share their names, and all run in a temporary folder. A `text` block that follows at once is
the whole output, which is compared; MASKS lists the figures that differ from run to run. `localhost:9092` and
`http://localhost:8081` become the addresses of the cluster and its registry.

A comment before a block says why it does not run here, and names the test that runs the same text:

    <!-- snippet: not run: reason -->   test_docs_blocks_not_run lists all of these

A loop without an end is ended by wakeup() once it has read everything. A block with a comment such as `# Python 3.11`
is left out on older Pythons.
"""

from __future__ import annotations

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
from docs_blocks import ADDRESS, ORDERED, PAGES, REGISTRY, ROOT, blocks, commands, endless, lines_of

import kconsumer
from kconsumer import Consumer, WakeupError
from kconsumer.testing.demo import Demo

# Pages whose blocks are run by other tests, against what they need.
ELSEWHERE = {
    "spark.md": "needs Spark: tests/spark/test_spark_page.py",
    "security.md": "needs brokers with TLS and SASL: tests/kafka starts some",
}
# Beginnings of commands that the walk leaves out.
LEFT_OUT = {
    "kconsumer demo": "runs already: the walk has its data; tests/embedded/test_demo.py runs the command",
}
# Figures that no run repeats.
MASKS = [re.compile(pattern) for pattern in (
    r"[\d.]+(?= s\b)",             # durations
    r"[\d,]+(?=/s\b)",             # rates
    r"(?<=rdkafka-)[0-9a-f-]{36}",  # ids of members
)]


def walked(line):
    """Whether the walk runs a command: spark-submit, and ingestion that may run on Spark, have their own test."""
    words = line.split()
    return words[0] == "kconsumer" and not any(map(line.startswith, LEFT_OUT)) and (
        words[1] != "ingest" or ("local" in words and "--trigger" not in words and "--route" not in words))


RUN = [page for page in ORDERED if page.name not in ELSEWHERE and any(
    block.language == "python" or any(walked(line) for _, line in commands(page)) for block in blocks(page))]


@pytest.fixture(scope="module")
def demo():
    with Demo() as demo:
        yield demo


def placed(text, cluster):
    """A text of the pages with the addresses of the cluster, which may be one without a registry."""
    registry = getattr(cluster, "registry_url", REGISTRY)
    return text.replace(ADDRESS, cluster.bootstrap_servers).replace(REGISTRY, registry)


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
    code = compile("\n" * (block.line - 1) + placed(block.code, cluster), str(block.page), "exec")
    if not endless(block.code):
        exec(code, names)
        return
    with Waker(names) as waker:
        try:
            exec(code, names)
        except WakeupError:
            assert waker.in_time, f"{block.place}: it ended before it read everything"


def run_command(line, cluster, folder):
    """Run a command; return its whole output. One that follows the topic is interrupted."""
    words = shlex.split(placed(line, cluster), comments=True)
    process = subprocess.Popen([sys.executable, "-m", "kconsumer", *words[1:]], cwd=folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expected = 0
    if words[1] == "consume" and ("-f" in words or "--follow" in words):
        # Nothing tells from outside that it follows; Ctrl-C before it does ends it in the same way, once Python is up.
        wait_for_consumer(process)
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        process.send_signal(signal.SIGINT)
        expected = 130
    out, _ = process.communicate(timeout=100)
    assert process.returncode == expected, out
    assert "Traceback" not in out
    return out


def masked(text):
    for mask in MASKS:
        text = mask.sub("…", text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_walk(page, demo, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    try:
        for block in blocks(page):
            if block.mark.startswith("not run:"):
                continue
            capfd.readouterr()
            out = ""
            if block.language == "python" and fits(block):
                run(block, names, demo)
                out = capfd.readouterr().out
                run_tests_of(block, names)
            elif block.language == "sh":
                out = "".join(run_command(line, demo, tmp_path) for line in lines_of(block) if walked(line))
            if block.output is not None and out:
                out = out.replace(demo.bootstrap_servers, ADDRESS).replace(demo.registry_url, REGISTRY)
                assert masked(out) == masked(block.output), block.place
    finally:
        for consumer in consumers(names):
            consumer.close()


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
        ("cli.md", "needs a group; tests/embedded/test_cli.py runs such commands"),
        ("commits.md", "needs a real Kafka: tests/kafka/test_docs_on_kafka.py runs it"),
        ("commits.md", "needs a real Kafka: tests/kafka/test_docs_on_kafka.py runs it"),
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
        ("migrating.md", "needs a separate process: tests/embedded/test_docs_snippets.py runs it"),
        ("migrating.md", "needs a real Kafka: tests/kafka/test_docs_on_kafka.py runs it"),
        ("observability.md", "opens a port"),
        ("observability.md", "needs an SDK; tests/unit/python/test_telemetry_otel.py does this"),
        ("observability.md", "needs an SDK; tests/embedded/test_telemetry_live.py does this"),
        ("testing.md", "needs a real Kafka: tests/kafka/test_docs_on_kafka.py runs it"),
        ("testing.md", "needs Docker"),
        ("testing.md", "starts a real Kafka; tests/kafka does so"),
    ]


def test_the_block_about_compat_in_its_own_process():
    [swap] = [block for block in blocks(ROOT / "docs" / "migrating.md") if Path(__file__).name in block.mark]
    done = subprocess.run([sys.executable, "-c", f"{swap.code}\nprint(Consumer.__module__)"], capture_output=True,
                          text=True, timeout=60, check=True)
    assert done.stdout == "kconsumer.consumer\n"


def test_every_mark_is_valid():
    for page in PAGES:
        for found in re.finditer(r"<!-- snippet: ([^\n]*?) -->\n(.*)", page.read_text(encoding="utf-8")):
            assert found[1].startswith("not run: "), (page.name, found[1])
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


def test_pages_name_no_other_version():
    """A version in a page that is not this one's would tell a stranger to install another."""
    for page in PAGES:
        for version in re.findall(r"kconsumer==([\d.]+)", page.read_text(encoding="utf-8")):
            assert version == kconsumer.__version__, page.name
