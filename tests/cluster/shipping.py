"""The ways by which kconsumer gets onto the hosts of a Spark cluster, as docs/spark.md has them.

Owns: Shipment, built() and the two ways. Threads: the test's. Never: lets a worker see the source tree or the
environment that the tests run in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.spark.standalone import Standalone

ROOT = Path(__file__).parents[2]
SPARK = "pyspark>=4.2,<4.3"
# What a program is started with here: nothing of the environment that the tests run in.
PLAIN = {name: os.environ[name] for name in ("HOME", "PATH", "JAVA_HOME", "LANG", "TMPDIR", "CC", "CXX",
                                             "KCONSUMER_JOBS") if name in os.environ}


def run(*command: str | Path, **environment: str) -> None:
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, env={**PLAIN, **environment})
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def environment(folder: Path, *packages: str | Path) -> Path:
    """A new environment of Python with these installed."""
    run(sys.executable, "-m", "venv", folder)
    pip(folder, "install", *packages)
    return folder


def pip(folder: Path, verb: str, *rest: str | Path) -> None:
    run(folder / "bin/python", "-m", "pip", verb, "-q", "--disable-pip-version-check", *rest)


@dataclass(frozen=True)
class Shipment:
    """The files that a user builds before shipping them to a cluster."""

    wheel: Path
    driver: Path  #: the driver's environment, with Spark and the wheel
    archive: Path  #: of an environment with the wheel and without Spark, which every worker has

    @property
    def spark_home(self) -> Path:
        """Spark, which in truth is installed on each host."""
        return next(self.driver.glob("lib/python3*/site-packages/pyspark"))


def built(folder: Path) -> Shipment:
    """The wheel of KCONSUMER_WHEEL, or else a new one of the source tree, and what is made of it."""
    driver = environment(folder / "driver-environment", SPARK, "venv-pack")
    given = os.environ.get("KCONSUMER_WHEEL")
    if given is None:
        pip(driver, "wheel", "--no-deps", "-w", folder / "wheels", ROOT)
    (wheel,) = (folder / "wheels").glob("kconsumer-*.whl") if given is None else [Path(given).resolve()]
    pip(driver, "install", f"{wheel}[spark,cli]")
    shipped = environment(folder / "shipped-environment", f"{wheel}[arrow]")
    archive = folder / "environment.tar.gz"
    run(driver / "bin/venv-pack", "-q", "-p", shipped, "-o", archive)
    return Shipment(wheel, driver, archive)


@dataclass(frozen=True)
class Way:
    """How a job is started so that its executors have kconsumer."""

    python: str  #: PYSPARK_PYTHON: relative to the working directory, of the driver as of an executor
    directory: Path  #: where the driver is started
    arguments: list[str] = field(default_factory=list)  #: of spark-submit


def installed(shipment: Shipment, folder: Path, cluster: Standalone) -> Way:
    """The wheel in an environment on every host, under the same path on all.

    Here all hosts are one. The path is the same for each where it is seen from an executor's directory, which is two
    levels below its worker's.
    """
    for number in cluster.workers:
        environment(cluster.work(number) / "environment", f"{shipment.wheel}[arrow]")
    directory = folder / "driver/application/0"
    directory.mkdir(parents=True)
    (folder / "driver/environment").symlink_to(shipment.driver)
    return Way("../../environment/bin/python", directory)


def archived(shipment: Shipment, folder: Path, _cluster: Standalone) -> Way:
    """The wheel on the driver, the archive for executors, which unpack it into their working directories."""
    directory = folder / "driver"
    directory.mkdir()
    (directory / "environment").symlink_to(shipment.driver)
    return Way("./environment/bin/python", directory, ["--archives", f"{shipment.archive}#environment"])
