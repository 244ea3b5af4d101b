"""Owns: Kafka's jars on this machine: the jars of a version, one download with Maven, the JDK's programs.

Threads: any; processes that need the same version wait on a lock file.
Never: runs a broker; defines a repository's address (Maven's settings do).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kconsumer.testing._errors import ClusterError, MissingToolError

DEFAULT_VERSION = "4.4.0"
# For a JVM that lives seconds or minutes, the second compiler costs more time than it saves.
QUICK_START = "-XX:TieredStopAtLevel=1"
_SLF4J_BINDING = "1.7.36"
_RELOAD4J = "1.2.25"
_OLD_ZOOKEEPER = "3.4.10"
_JAXB = "2.3.1"
_DOWNLOAD_SECONDS = 900
_INSTALL_HINT = "Debian/Ubuntu: apt-get install {debian}; macOS: brew install {brew}"

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kconsumer.testing</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""

_DEPENDENCY = """    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
      <exclusions>
        <exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId></exclusion>
        <exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId></exclusion>
        <exclusion><groupId>log4j</groupId><artifactId>log4j</artifactId></exclusion>
        <exclusion><groupId>ch.qos.reload4j</groupId><artifactId>reload4j</artifactId></exclusion>
      </exclusions>
    </dependency>"""


@dataclass(frozen=True)
class Release:
    """A Kafka version and its requirements."""

    text: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+(\.\d+){2,3}", self.text):
            raise ValueError(f"version must look like '4.3.1', not {self.text!r}")

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.text.split("."))

    @property
    def needs_zookeeper(self) -> bool:
        """Whether the version needs ZooKeeper: KRaft is ready for use from 3.3."""
        return self.numbers < (3, 3)

    @property
    def java(self) -> int:
        """The oldest Java version for the broker."""
        return 17 if self.numbers >= (4, 0) else 8

    @property
    def scala(self) -> str:
        if self.numbers >= (2, 4):
            return "2.13"
        return "2.12" if self.numbers >= (0, 10, 2) else "2.11"

    def pom(self) -> str:
        coordinates = [
            ("org.apache.kafka", f"kafka_{self.scala}", self.text),
            ("org.apache.kafka", "kafka-tools", self.text),
            ("org.slf4j", "slf4j-simple", _SLF4J_BINDING),
        ]
        if self.numbers < (4, 0):  # their log controller calls log4j 1; reload4j is a maintained fork
            coordinates.append(("ch.qos.reload4j", "reload4j", _RELOAD4J))
        if self.numbers < (2, 4):  # ZooKeeper 3.4.13 and 3.4.14 cannot connect to an address on Java 14 and later
            coordinates.append(("org.apache.zookeeper", "zookeeper", _OLD_ZOOKEEPER))
        if self.numbers < (1, 0):  # uses a class that Java 11 removed
            coordinates.append(("javax.xml.bind", "jaxb-api", _JAXB))
        return _POM.format(
            dependencies="\n".join(_DEPENDENCY.format(group=g, artifact=a, version=v) for g, a, v in coordinates)
        )


def cache_root() -> Path:
    """Return ``$XDG_CACHE_HOME/kconsumer``, or ``~/.cache/kconsumer``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "kconsumer"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock on ``path``, created if missing. Other processes wait.

    The kernel releases it if this process dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def jdk_program(name: str, least: int = 8) -> str:
    """Return the path of ``java`` or ``javac`` of at least version ``least``.

    It is looked up in ``JAVA_HOME`` if set, else in ``PATH``.

    Raises MissingToolError when it is missing or older.
    """
    hint = _INSTALL_HINT.format(debian="openjdk-17-jdk-headless", brew="openjdk@17")
    home = os.environ.get("JAVA_HOME")
    program = shutil.which(name, path=os.path.join(home, "bin")) if home else shutil.which(name)
    if program is None:
        where = f"JAVA_HOME ({home}) has no bin/{name}" if home else f"no {name!r} program on PATH"
        raise MissingToolError(f"Java {least} or newer is needed: {where}. {hint}")
    shown = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    text = shown.stderr + shown.stdout
    match = re.search(r'(?:version "|javac )(\d+)(?:\.(\d+))?', text)
    if match is None:
        raise MissingToolError(f"Java {least} or newer is needed; '{program} -version' says {text.strip()!r}. {hint}")
    major = int(match[2] or 0) if match[1] == "1" else int(match[1])  # Java 8 calls itself 1.8
    if major < least:
        raise MissingToolError(f"Java {least} or newer is needed, but {program} is Java {major}. {hint}")
    return program


def class_archive(version: str, java: str, write: Callable[[Path], None]) -> list[str]:
    """Return the JVM options that load a version's classes from an archive (class data sharing).

    ``write(path)`` runs a broker that writes the archive, at the first use of a version and a JVM. Without an archive,
    a broker spends half of its start on reading and verifying classes. Empty for versions before 4.0: their JVM may be
    too old.
    """
    if Release(version).numbers < (4, 0):
        return []
    program = Path(java).resolve()
    jvm = hashlib.sha256(f"{program} {program.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    path = cache_root() / "java" / f"classes-{version}-{jvm}.jsa"
    if not path.exists():
        with locked(path.with_name(f"{path.name}.lock")):
            if not path.exists():
                with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                    made = Path(scratch) / path.name
                    write(made)
                    made.touch()  # stays empty if this JVM writes no archives
                    made.rename(path)
    # Without the log: the JVM reports an archive that it cannot use on stdout, and reads the classes from the jars.
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:disable"] if path.stat().st_size else []


def install(version: str = DEFAULT_VERSION) -> Path:
    """Return the directory of a Kafka version's jars (``libs/*.jar``).

    The first call fetches them with Maven; later calls work offline. Raises MissingToolError (no Maven) or ClusterError
    (Maven failed).
    """
    release = Release(version)
    home = cache_root() / f"kafka-{version}"
    if home.is_dir():
        return home
    with locked(cache_root() / f"kafka-{version}.lock"):
        if not home.is_dir():  # another process may have fetched it in the meantime
            _fetch(release, home)
    return home


def kafka_jars(version: str = DEFAULT_VERSION) -> list[Path]:
    """Return all jars of a Kafka version. The first call fetches them.

    Raises ClusterError on failure.
    """
    return sorted((install(version) / "libs").glob("*.jar"))


def class_path(version: str = DEFAULT_VERSION, *more: Path) -> str:
    """Return a ``-cp`` argument: all jars of the version, then ``more``."""
    return os.pathsep.join([str(install(version) / "libs" / "*"), *map(str, more)])


def _fetch(release: Release, home: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        hint = _INSTALL_HINT.format(debian="maven", brew="maven")
        raise MissingToolError(f"cannot fetch Kafka {release.text}: Maven ('mvn') is not installed. {hint}")
    # The jars go into a temporary directory, renamed at the end, so that an existing directory is complete.
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.", dir=home.parent) as scratch:
        work = Path(scratch) / "kafka"
        work.mkdir()
        (work / "pom.xml").write_text(release.pom(), encoding="utf-8")
        command = [maven, "-B", "-q", "-f", str(work / "pom.xml"), "dependency:copy-dependencies",
                   f"-DoutputDirectory={work / 'libs'}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_SECONDS,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"Maven did not fetch Kafka {release.text} within {_DOWNLOAD_SECONDS} s") from None
        if done.returncode != 0 or not any((work / "libs").glob(f"kafka_{release.scala}-*.jar")):
            tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
            raise ClusterError(f"Maven could not fetch Kafka {release.text} (exit code {done.returncode}):\n{tail}")
        if not release.needs_zookeeper:
            _format_once(release, work)
        work.rename(home)


def _format_once(release: Release, work: Path) -> None:
    """Write the checkpoint of StorageTool into ``work``, for ``format_directory()``."""
    java = jdk_program("java", release.java)
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        properties = Path(scratch) / "server.properties"
        logs = Path(scratch) / "logs"
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
            "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
            f"controller.listener.names=CONTROLLER\nlog.dirs={logs}\n",
            encoding="utf-8",
        )
        command = [java, "-Xmx256m", QUICK_START, "-cp", str(work / "libs" / "*"),
                   "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(properties)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise ClusterError(f"Kafka {release.text}'s StorageTool failed:\n{done.stdout}{done.stderr}")
        _copy_checkpoints(logs, work)


def format_directory(version: str, data: Path) -> None:
    """Write what StorageTool writes into a broker's directory, except ``meta.properties``.

    That is a checkpoint, which depends only on the version: ``bootstrap.checkpoint``, or a snapshot of the metadata
    log from 4.4 on. A copy saves a JVM start per broker.
    """
    _copy_checkpoints(install(version), data)


def _copy_checkpoints(source: Path, target: Path) -> None:
    found = list(source.rglob("*.checkpoint"))
    if not found:
        raise ClusterError(f"StorageTool wrote no checkpoint into {source}")
    for path in found:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def compiled(source: Path, version: str = DEFAULT_VERSION) -> Path:
    """Return the directory with the classes of a Java source file.

    They are compiled against a Kafka version's jars, and cached.

    Raises MissingToolError (no JDK) or ClusterError with the compiler's messages.
    """
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = cache_root() / "java" / f"{source.stem}-{version}-{digest}"
    if target.is_dir():
        return target
    javac = jdk_program("javac")
    with locked(target.with_name(f"{target.name}.lock")):
        if target.is_dir():
            return target
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            out = Path(scratch) / "classes"
            command = [javac, f"-J{QUICK_START}", "-nowarn", "-cp", class_path(version), "-d", str(out),
                       str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ClusterError(f"javac {source.name} failed:\n{done.stdout}{done.stderr}")
            out.rename(target)
    return target
