"""The jars of Spark's own Kafka source, which kconsumer is compared with.

Owns: connector_jars(). Threads: any; two processes take turns. Never: knows a registry's address (Maven's settings do).
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from kconsumer.testing._artifacts import cache_root, locked

# Maven Central lacks the connector of the newest Spark, and the token provider of 4.2; these fit together.
VERSION = "4.2.0"
_ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kconsumer.testing</groupId><artifactId>spark-connector</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
# What else they need, Spark has.
_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""


def connector_jars() -> list[Path]:
    """Fetched with Maven the first time, kept in the cache."""
    home = cache_root() / f"spark-connector-{VERSION}"
    with locked(home.with_name(f"{home.name}.lock")):
        if not home.is_dir():
            _fetch(home)
    return sorted(home.glob("*.jar"))


def _fetch(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        pom, jars = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        pom.write_text(_POM.format(dependencies="".join(_DEPENDENCY.format(*artifact) for artifact in _ARTIFACTS)))
        subprocess.run(["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"],
                       check=True, stdin=subprocess.DEVNULL, timeout=600)
        jars.rename(home)
