"""The jar of Spark's Avro functions, fetched with Maven the first time, kept in the cache.

Owns: avro_jar(). Threads: any; two processes take turns. Never: knows a registry's address (Maven's settings do).
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from kconsumer.testing._artifacts import cache_root, locked

# Not every version of Spark has its own there; this one does for the newest.
AVRO_VERSION = "4.1.1"
_ARTIFACT = f"org.apache.spark:spark-avro_2.13:{AVRO_VERSION}"


def avro_jar() -> Path:
    home = cache_root() / f"spark-avro-{AVRO_VERSION}"
    with locked(home.with_name(f"{home.name}.lock")):
        if not home.is_dir():
            _fetch(home)
    return next(home.glob("*.jar"))


def _fetch(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        jars = Path(scratch) / "jars"
        subprocess.run(["mvn", "-B", "-q", "dependency:get", f"-Dartifact={_ARTIFACT}", "-Dtransitive=false"],
                       check=True, stdin=subprocess.DEVNULL, timeout=600, cwd=scratch)
        subprocess.run(["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={jars}"],
                       check=True, stdin=subprocess.DEVNULL, timeout=600, cwd=scratch)
        jars.rename(home)
