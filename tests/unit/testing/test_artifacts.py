"""What KafkaCluster does before a broker runs: finding Java and Maven, fetching jars once, saying what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kconsumer.testing import ClusterError, KafkaCluster, MissingToolError, kafka_jars
from kconsumer.testing._artifacts import (
    DEFAULT_VERSION,
    Release,
    cache_root,
    class_archive,
    compiled,
    format_directory,
    install,
    jdk_program,
)
from kconsumer.testing._records import produce

# A Maven that "fetches" one jar named like the real one, and leaves a line per run.
MAVEN = """
    for argument; do case $argument in -DoutputDirectory=*) out=${argument#*=};; esac; done
    echo run >> "$MAVEN_RUNS"
    sleep 0.2
    mkdir -p "$out" && : > "$out/kafka_2.12-0.11.0.3.jar"
"""
OLD = "0.11.0.3"  # needs no formatting, which a made-up jar could not do


class Tools:
    """A PATH of made-up programs, and an empty cache."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.cache = root / "cache"
        self.runs = root / "runs"

    def add(self, name: str, script: str) -> Path:
        program = self.bin / name
        program.write_text("#!/bin/sh\n" + textwrap.dedent(script))
        program.chmod(0o755)
        return program


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    made = Tools(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(made.cache))
    monkeypatch.setenv("MAVEN_RUNS", str(made.runs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("KCONSUMER_BOOTSTRAP_SERVERS", raising=False)
    return made


@pytest.mark.parametrize(
    "text, least, fits",
    [
        ('openjdk version "17.0.15" 2025-04-15', 17, True),
        ('openjdk version "21" 2023-09-19', 17, True),
        ('java version "1.8.0_392"', 8, True),
        ('java version "1.8.0_392"', 17, False),
        ('openjdk version "11.0.2"', 17, False),
    ],
)
def test_javas_version_is_understood(tools: Tools, text: str, least: int, fits: bool) -> None:
    program = tools.add("java", f"echo '{text}' >&2")
    if fits:
        assert jdk_program("java", least) == str(program)
    else:
        with pytest.raises(MissingToolError, match=rf"Java {least} or newer is needed, but .*java is Java (8|11)\. "):
            jdk_program("java", least)


def test_java_with_an_unknown_version_text_is_refused(tools: Tools) -> None:
    tools.add("java", "echo no runtime present >&2; exit 1")
    with pytest.raises(MissingToolError, match=r"says 'no runtime present'.*openjdk-17"):
        jdk_program("java", 17)


def test_java_home_comes_first_and_must_hold(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.add("java", "echo 'version \"17\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MissingToolError, match=r"JAVA_HOME .*nowhere.* has no bin/java"):
        jdk_program("java", 17)


def test_without_java_the_error_names_the_package_to_install(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tools.bin))
    with pytest.raises(MissingToolError, match=r"Java 17 or newer is needed: no 'java' program on PATH.*apt-get"):
        KafkaCluster().start()


def test_without_maven_the_error_names_the_package_to_install(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tools.bin))
    message = rf"cannot fetch Kafka {DEFAULT_VERSION}: .*not installed.*apt-get install maven"
    with pytest.raises(MissingToolError, match=message):
        install()
    assert not (tools.cache / "kconsumer" / f"kafka-{DEFAULT_VERSION}").exists()


def test_jars_are_fetched_once(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.add("mvn", MAVEN)
    assert [jar.name for jar in kafka_jars(OLD)] == ["kafka_2.12-0.11.0.3.jar"]
    monkeypatch.setenv("PATH", str(tools.bin.parent))  # offline and without Maven from now on
    assert [jar.name for jar in kafka_jars(OLD)] == ["kafka_2.12-0.11.0.3.jar"]
    assert tools.runs.read_text() == "run\n"


def test_two_processes_do_not_fetch_at_once(tools: Tools) -> None:
    tools.add("mvn", MAVEN)
    script = f"from kconsumer.testing import kafka_jars; print(len(kafka_jars({OLD!r})))"
    both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in both] == [b"1\n", b"1\n"]
    assert tools.runs.read_text() == "run\n"


@pytest.mark.parametrize(
    "script, said", [("echo no route to host; exit 1", "no route to host"), ("exit 0", "could not fetch Kafka")]
)
def test_a_failed_download_reports_the_cause_and_leaves_no_file(tools: Tools, script: str, said: str) -> None:
    tools.add("mvn", script)
    with pytest.raises(ClusterError, match=said):
        install(OLD)
    assert [path.name for path in (tools.cache / "kconsumer").iterdir()] == [f"kafka-{OLD}.lock"]
    tools.add("mvn", MAVEN)
    assert install(OLD).is_dir()


# StorageTool's arguments end with "-c FILE"; the file names the folder of the logs.
STORAGE_TOOL = """
    case "$*" in -version) echo 'version "17"' >&2; exit;; esac
    for argument; do file=$argument; done
    logs=$(sed -n 's/^log.dirs=//p' "$file")
    mkdir -p "$(dirname "$logs/CHECKPOINT")"
    echo formatted > "$logs/CHECKPOINT"
    echo mine > "$logs/meta.properties"
"""
MAVEN_OF_NOW = MAVEN.replace("kafka_2.12-0.11.0.3.jar", "kafka_2.13-0.0.0.jar")


@pytest.mark.parametrize("checkpoint", ["bootstrap.checkpoint", "__cluster_metadata-0/0000-00.checkpoint"])
def test_a_broker_directory_gets_the_checkpoint_where_the_version_keeps_it(
    tools: Tools, tmp_path: Path, checkpoint: str
) -> None:
    tools.add("mvn", MAVEN_OF_NOW)
    tools.add("java", STORAGE_TOOL.replace("CHECKPOINT", checkpoint))
    format_directory(DEFAULT_VERSION, tmp_path / "data")
    found = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [str(path.relative_to(tmp_path / "data")) for path in found] == [checkpoint]
    assert found[0].read_text() == "formatted\n"


def test_a_storage_tool_without_a_checkpoint_is_an_error(tools: Tools, tmp_path: Path) -> None:
    tools.add("mvn", MAVEN_OF_NOW)
    tools.add("java", STORAGE_TOOL.replace("CHECKPOINT", "other"))
    with pytest.raises(ClusterError, match="no checkpoint"):
        format_directory(DEFAULT_VERSION, tmp_path / "data")


def test_without_javac_a_jdk_is_named(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tools.bin))
    source = tmp_path / "A.java"
    source.write_text("public class A {}")
    with pytest.raises(MissingToolError, match=r"no 'javac' program on PATH.*jdk"):
        compiled(source)


@pytest.mark.parametrize("version", ["4.3", "latest", "4.3.1-rc1", ""])
def test_a_version_must_be_a_version(version: str) -> None:
    with pytest.raises(ValueError, match=r"must look like '4.3.1'"):
        KafkaCluster(version=version)


@pytest.mark.parametrize(
    "version, zookeeper, java, scala",
    [("4.3.1", False, 17, "2.13"), ("3.3.0", False, 8, "2.13"), ("3.2.3", True, 8, "2.13"), ("2.3.1", True, 8, "2.12"),
     ("0.10.0.1", True, 8, "2.11")],
)
def test_the_needs_of_a_kafka_version(version: str, zookeeper: bool, java: int, scala: str) -> None:
    release = Release(version)
    assert (release.needs_zookeeper, release.java, release.scala) == (zookeeper, java, scala)
    assert f"<artifactId>kafka_{scala}</artifactId><version>{version}</version>" in release.pom()


def test_impossible_clusters() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        KafkaCluster(0)
    with pytest.raises(ValueError, match="one rack per broker"):
        KafkaCluster(3, racks=["a"])


def test_a_cluster_that_is_not_started_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KCONSUMER_BOOTSTRAP_SERVERS", raising=False)
    cluster = KafkaCluster()
    with pytest.raises(ClusterError, match="not started"):
        cluster.create_topic("t")
    with pytest.raises(ClusterError, match="not started"):
        cluster.kill(1)
    cluster.stop()


def produce_nowhere(records: list[object]) -> None:
    produce("127.0.0.1:1", "t", records, {"log_level": 0}, 1.0)  # type: ignore[arg-type]


def test_records_have_known_fields() -> None:
    with pytest.raises(ValueError, match=r"unknown fields \['vale'\] of a record"):
        produce_nowhere([{"vale": b"x"}])


def test_without_confluent_kafka_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingToolError, match=r"pip install 'kconsumer\[testing\]'"):
        produce_nowhere([b"x"])


def test_the_cache_folder_follows_xdg_cache_home(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_root() == tools.cache / "kconsumer"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path(os.path.expanduser("~")) / ".cache" / "kconsumer"


def test_a_class_archive_is_written_once_for_version_and_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = tmp_path / "java"
    java.touch()
    written: list[Path] = []

    def write(path: Path) -> None:
        written.append(path)
        path.write_bytes(b"classes")

    found = class_archive("4.4.0", str(java), write)
    assert Path(found[0].partition("=")[2]).read_bytes() == b"classes"
    assert class_archive("4.4.0", str(java), write) == found
    assert len(written) == 1
    os.utime(java, (1, 1))  # another JVM at the same path
    assert class_archive("4.4.0", str(java), write) != found
    assert class_archive("3.9.1", str(java), write) == []
    assert len(written) == 2


def test_a_jvm_that_writes_no_class_archive_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = tmp_path / "java"
    java.touch()
    written: list[Path] = []
    assert class_archive("4.4.0", str(java), written.append) == []
    assert class_archive("4.4.0", str(java), written.append) == []
    assert len(written) == 1
