"""The fixtures for users' own tests: a test suite as a user writes it, which pytest runs once, in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

# One folder each, with a separate conftest.py; pytest runs them in this order.
SUITE = {
    "a_no_kafka/test_it.py": """
import sys

# Now, before the other folders are collected, which import kconsumer.
IMPORTED = [name for name in sys.modules if name.partition(".")[0] in ("kconsumer", "confluent_kafka")]

def test_nothing_is_imported(pytestconfig):
    assert pytestconfig.pluginmanager.hasplugin("pytest_kconsumer")
    assert IMPORTED == []
""",
    "b_topics/test_it.py": """
import pytest
from kconsumer import Consumer, TopicPartition

def read(cluster, topic, count):
    with Consumer({"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest"}) as consumer:
        partitions = range(len(consumer.list_topics(topic).topics[topic].partitions))
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        return len(partitions), sorted(message.value() for message in consumer.consume(count, timeout=30))

def test_one_partition(embedded_cluster, topic):
    embedded_cluster.produce(topic, [b"a", b"b"])
    assert read(embedded_cluster, topic, 2) == (1, [b"a", b"b"])

@pytest.mark.kafka_topic(partitions=3)
@pytest.mark.parametrize("value", [b"x/1", b"y z"])
def test_three_partitions(embedded_cluster, topic, value):
    embedded_cluster.produce(topic, [value])
    assert read(embedded_cluster, topic, 1) == (3, [value])

def test_that_deletes_its_topic(embedded_cluster, topic):
    embedded_cluster.delete_topic(topic)
""",
    "c_own_fixtures/conftest.py": """
import pytest

@pytest.fixture
def topic():
    return "mine"

@pytest.fixture
def embedded_cluster():
    return 1

@pytest.fixture
def kafka_cluster():
    return 2
""",
    "c_own_fixtures/test_it.py": """
def test_they_take_precedence(topic, embedded_cluster, kafka_cluster):
    assert (topic, embedded_cluster, kafka_cluster) == ("mine", 1, 2)
""",
    "d_own_cluster/conftest.py": """
import pytest

class Cluster:
    made = []

    def create_topic(self, name, partitions):
        self.made.append((name, partitions))

    def delete_topic(self, name):
        self.made.remove((name, 1))

@pytest.fixture(scope="package")
def kafka_cluster():
    yield (cluster := Cluster())
    assert cluster.made == []
""",
    "d_own_cluster/test_it.py": """
def test_the_topic_is_made_there(topic, kafka_cluster):
    assert kafka_cluster.made == [(topic, 1)]
""",
    "e_markers/conftest.py": """
import pytest

@pytest.fixture
def embedded_cluster():
    return None
""",
    "e_markers/test_it.py": """
import pytest

@pytest.mark.kafka_topic(partitions=0)
def test_zero(topic): ...

@pytest.mark.kafka_topic(partitions="a")
def test_text(topic): ...

@pytest.mark.kafka_topic(3)
def test_position(topic): ...

@pytest.mark.kafka_topic(replicas=2)
def test_unknown(topic): ...
""",
    "f_no_java/conftest.py": """
import pytest

@pytest.fixture(scope="session", autouse=True)
def no_java(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path_factory.mktemp("bin")))
        patch.delenv("JAVA_HOME", raising=False)
        patch.delenv("KCONSUMER_BOOTSTRAP_SERVERS", raising=False)
        yield
""",
    "f_no_java/test_it.py": """
def test_real(kafka_cluster): ...
""",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder and test → "passed", or the message of its failure or error."""
    root = tmp_path_factory.mktemp("suite")
    for name, text in {"pytest.ini": "[pytest]\n", **SUITE}.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "--junit-xml=report.xml"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert (root / "report.xml").exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ElementTree.parse(root / "report.xml").iter("testcase"):
        problem = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        folder = str(case.get("classname")).split(".")[-2]
        text = "passed" if problem is None else f"{problem.get('message')}\n{problem.text}"
        found[f"{folder}/{case.get('name')}"] = text
    return found


def test_every_test_with_a_cluster_passes(outcomes: dict[str, str]) -> None:
    good = {name: text for name, text in outcomes.items() if name[0] in "abcd"}
    assert good == dict.fromkeys(good, "passed")
    assert {name.split("[")[0] for name in good} == {
        f"{Path(file).parent}/{line.split('(')[0].removeprefix('def ')}"
        for file, text in SUITE.items() if file[0] in "abcd"
        for line in text.splitlines() if line.startswith("def test_")}


@pytest.mark.parametrize(("test", "words"), [
    ("test_zero", "invalid value 0 for partitions of the marker kafka_topic: expected a positive integer"),
    ("test_text", "invalid value 'a' for partitions of the marker kafka_topic: expected a positive integer"),
    ("test_position", "invalid argument of the marker kafka_topic: 3: expected partitions=N"),
    ("test_unknown", "invalid argument of the marker kafka_topic: replicas: expected partitions=N"),
])
def test_an_invalid_marker_is_an_error(outcomes: dict[str, str], test: str, words: str) -> None:
    assert words in outcomes[f"e_markers/{test}"]


def test_a_missing_java_is_an_error_and_not_a_skip(outcomes: dict[str, str]) -> None:
    assert "MissingToolError" in outcomes["f_no_java/test_real"]
