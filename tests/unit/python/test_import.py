"""What `import kconsumer` loads: a program that starts often pays for it each time."""

import subprocess
import sys

# Each took milliseconds; what needs one imports it where it is used.
LAZY = {"asyncio", "dataclasses", "difflib", "inspect", "ipaddress", "json", "pathlib", "socket", "subprocess"}


def test_the_import_loads_nothing_that_only_some_need() -> None:
    program = "import sys; before = set(sys.modules); import kconsumer; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "kconsumer.config" in loaded
    assert loaded & LAZY == set()
