"""A pytest plugin that puts kconsumer's classes into confluent_kafka, and replaces trivup's cluster.

Owns: the replacement of names. Threads: pytest's thread. Never: is loaded by our own tests, or changes the checkout.

`DROP_IN_CLIENT` is ``kconsumer`` or ``confluent_kafka`` (nothing is replaced).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path


def _load_cimpl() -> types.ModuleType:
    """Import confluent_kafka's extension module before its package, whose modules copy names from it."""
    package = importlib.util.find_spec("confluent_kafka")
    assert package is not None and package.submodule_search_locations
    folder = Path(package.submodule_search_locations[0])
    file = next(path for path in folder.iterdir() if path.name.startswith("cimpl.") and path.suffix in (".so", ".pyd"))
    spec = importlib.util.spec_from_file_location("confluent_kafka.cimpl", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["confluent_kafka.cimpl"] = module
    return module


def _replace() -> None:
    """Replace every public name that confluent_kafka and kconsumer share, in all modules of the import."""
    import kconsumer
    import kconsumer.error

    cimpl = _load_cimpl()
    for name in kconsumer.__all__:
        if hasattr(cimpl, name):
            setattr(cimpl, name, getattr(kconsumer, name))
    import confluent_kafka.error

    for ours, theirs in ((kconsumer, confluent_kafka), (kconsumer.error, confluent_kafka.error)):
        for name in ours.__all__:
            if not name.startswith("_") and hasattr(theirs, name):
                setattr(theirs, name, getattr(ours, name))


def _replace_aio() -> None:
    """Replace AIOConsumer, also in its defining module: tests import it from there."""
    import confluent_kafka.aio
    import confluent_kafka.aio._AIOConsumer as defining

    import kconsumer.aio

    confluent_kafka.aio.AIOConsumer = defining.AIOConsumer = kconsumer.aio.AIOConsumer  # type: ignore[misc]


def _stand_in_for_trivup() -> None:
    """Replace trivup: the fixtures import it, but do not need it if the environment names a cluster (BROKERS)."""
    for name in ("trivup", "trivup.clusters", "trivup.clusters.KafkaCluster"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["trivup.clusters.KafkaCluster"].KafkaCluster = None  # type: ignore[attr-defined]  # a stand-in module


if os.environ["DROP_IN_CLIENT"] == "kconsumer":
    _replace()
    _replace_aio()
_stand_in_for_trivup()
