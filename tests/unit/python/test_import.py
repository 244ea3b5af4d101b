"""What `import kconsumer` loads: a program that starts often pays for it each time."""

import subprocess
import sys
from pathlib import Path

import kconsumer
from kconsumer.data import cluster_metadata, throttle_event, topic_partition

# Each took milliseconds; what needs one imports it where it is used.
LAZY = {"asyncio", "dataclasses", "difflib", "inspect", "ipaddress", "json", "logging", "pathlib", "socket",
        "subprocess", "traceback", "urllib.parse"}
# What kconsumer.data has for the package's other modules.
FOR_THE_PACKAGE = {"check_text", "OFFSET_TAIL_BASE", "PARTITION_UA", "coerce", "coerce_list"}


def test_the_import_loads_nothing_that_only_some_need() -> None:
    # The finder of an editable installation has loaded some of them.
    program = f"import sys; [sys.modules.pop(name, None) for name in {LAZY}]; import kconsumer; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "kconsumer.config" in loaded
    assert loaded & LAZY == set()


def test_confluent_kafka_is_not_needed() -> None:
    folder = Path(kconsumer.__file__).parent
    names = [path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")]
    modules = {".".join(("kconsumer", *name)).removesuffix(".__init__") for name in names
               if name[0] not in ("_core", "cli", "spark", "testing") and name[-1] != "__main__"}
    assert {"kconsumer", "kconsumer.config.tls", "kconsumer.security.oidc", "kconsumer.serialization"} <= modules
    blocked = f"import sys; sys.modules['confluent_kafka'] = None; import {', '.join(sorted(modules))}"
    subprocess.run([sys.executable, "-c", blocked], check=True, timeout=60)


def test_the_data_of_the_api_can_be_imported_from_the_package() -> None:
    for module in (cluster_metadata, throttle_event, topic_partition):
        for name in set(module.__all__) - FOR_THE_PACKAGE:
            assert getattr(kconsumer, name) is getattr(module, name)
            assert name in kconsumer.__all__


def test_documented_module_names_hold_the_same_objects() -> None:
    import kconsumer.error
    import kconsumer.metrics
    from kconsumer.telemetry.metrics import METRICS

    assert kconsumer.metrics.METRICS is METRICS
    assert all(getattr(kconsumer.error, name) is getattr(kconsumer.errors, name) for name in kconsumer.error.__all__)
