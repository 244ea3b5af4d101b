"""Optional dependencies: the package works without them, and the error where one is needed names its extra.

The errors of [testing], [cli] and [spark] are shown beside what raises them: tests/embedded/test_embedded_cluster.py,
tests/unit/cli/test_main.py and test_ingest_face.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OPTIONAL = ("pyarrow", "pyspark", "confluent_kafka", "click", "rich", "numpy", "pandas", "polars", "duckdb")

WITHOUT = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Nothing())
"""


def run_without(missing, code, *arguments):
    return subprocess.run([sys.executable, "-c", WITHOUT.format(missing=set(missing)) + code, *arguments],
                          capture_output=True, text=True, timeout=60, check=False)


def test_a_consumer_and_its_batches_work_without_optional_packages():
    done = run_without(OPTIONAL, f"""
import kconsumer
from kconsumer import testing
with kconsumer.Consumer({{"bootstrap.servers": "127.0.0.1:1"}}) as consumer:
    batch = consumer.consume_batch(timeout=0)
    schema, array = batch.__arrow_c_array__()
    print(len(batch), type(array).__name__)
assert not set(sys.modules) & {set(OPTIONAL)!r}
""")
    assert (done.stdout, done.returncode) == ("0 PyCapsule\n", 0), done.stderr


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_output_that_needs_pyarrow_names_its_extra(kind):
    pytest.importorskip("click", reason="the command needs the extra [cli]")
    pytest.importorskip("rich", reason="the command needs the extra [cli]")
    done = run_without(["pyarrow"], "from kconsumer.cli import main; main(sys.argv[1:])",
                       "consume", "-b", "127.0.0.1:1", "topic", "-o", kind)
    assert done.returncode == 2
    assert "pip install 'kconsumer[arrow]'" in done.stderr


def test_a_proto_text_without_protoc_names_its_extra():
    done = run_without(["grpc_tools"], """
from kconsumer.decoding import Protobuf
try:
    Protobuf('syntax = "proto3"; message A {}')
except ImportError as error:
    print(error)
""")
    assert "pip install 'kconsumer[protoc]'" in done.stdout and "FileDescriptorSet" in done.stdout, done.stderr


def declared_extras():
    return set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text().partition(
        "[project.optional-dependencies]")[2].partition("\n[")[0], re.M))


def test_the_page_on_installing_has_every_extra():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("## Extras")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+)` ", page, re.M))
    for_development = set(re.findall(r"`(\w+)`", page.rpartition("The extras ")[2]))
    assert listed | for_development == declared_extras()


def test_every_extra_that_an_error_names_is_there():
    declared = declared_extras()
    named = {extra for file in sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "docs").glob("*.md"))
             for extras in re.findall(r"kconsumer\[([\w,]+)\]", file.read_text(encoding="utf-8"))
             for extra in extras.split(",")}
    assert {"arrow", "cli", "spark", "testing"} <= named <= declared
