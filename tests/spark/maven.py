"""Jars by name, fetched with Maven the first time and kept in the cache.

Owns: Artifact, jars(). Threads: any; two processes take turns. Never: knows a registry's address (Maven's settings do).
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from kconsumer.testing._artifacts import cache_root, locked

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kconsumer.testing</groupId><artifactId>jars</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
# What else they need, Spark has.
_DEPENDENCY = """
    <dependency>
      <groupId>{0.group}</groupId><artifactId>{0.name}</artifactId><version>{0.version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""


class Artifact(NamedTuple):
    group: str
    name: str
    version: str


def jars(name: str, *artifacts: Artifact) -> list[Path]:
    """Those of the artifacts alone, under a name that tells their version."""
    home = cache_root() / name
    with locked(home.with_name(f"{name}.lock")):
        if not home.is_dir():
            _fetch(home, artifacts)
    return sorted(home.glob("*.jar"))


def _fetch(home: Path, artifacts: tuple[Artifact, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        pom, found = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        pom.write_text(_POM.format(dependencies="".join(map(_DEPENDENCY.format, artifacts))))
        subprocess.run(["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies",
                        f"-DoutputDirectory={found}"], check=True, stdin=subprocess.DEVNULL, timeout=600)
        found.rename(home)
