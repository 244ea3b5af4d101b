"""tools/finish_wheel.py: what it adds to a wheel, without a compiler or a library."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import json
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "finish_wheel.py"
METADATA = """Metadata-Version: 2.4
Name: kconsumer
Version: 1.2.3
License-Expression: Apache-2.0
License-File: LICENSE

The text.
"""


@pytest.fixture
def tool(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("finish_wheel", TOOL)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "finish_wheel", module)
    spec.loader.exec_module(module)
    told = tmp_path / "prefix" / "share" / "kconsumer"
    told.mkdir(parents=True)
    for name in ("zstd", "lz4"):
        (told / f"{name}.version").write_text("1.5.7\n")
        (told / f"{name}.licence").write_text(f"Copyright of {name}\n")
    monkeypatch.setattr(module, "PREFIX", tmp_path / "prefix")
    return module


@pytest.fixture
def tree(tmp_path):
    """An unpacked wheel with two bundled libraries."""
    files = {
        "kconsumer/__init__.py": "", "kconsumer.libs/libzstd-0123abcd.so.1.5.7": "zstd",
        "kconsumer.libs/liblz4.so.1": "lz4", "kconsumer-1.2.3.dist-info/METADATA": METADATA,
        "kconsumer-1.2.3.dist-info/RECORD": "old,,\n",
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def test_a_packed_wheel_has_a_record_of_everything(tool, tree, tmp_path):
    wheel = tmp_path / "kconsumer-1.2.3-py3-none-any.whl"
    tool.pack(tree, wheel)
    with zipfile.ZipFile(wheel) as archive:
        rows = {row[0]: row[1:] for row in csv.reader(archive.read(
            "kconsumer-1.2.3.dist-info/RECORD").decode().splitlines())}
        assert set(rows) == set(archive.namelist()) == {
            path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
        assert rows.pop("kconsumer-1.2.3.dist-info/RECORD") == ["", ""]
        for name, (digest, size) in rows.items():
            data = archive.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={expected}", len(data))


def test_the_modes_of_files_survive(tool, tree, tmp_path):
    (tree / "kconsumer" / "run").write_text("#!/bin/sh\n")
    (tree / "kconsumer" / "run").chmod(0o755)
    tool.pack(tree, tmp_path / "wheel.whl")
    tool.unpack(tmp_path / "wheel.whl", tmp_path / "again")
    assert (tmp_path / "again" / "kconsumer" / "run").stat().st_mode & 0o777 == 0o755


def test_the_licences_of_bundled_libraries_are_included_and_named(tool, tree):
    info = tree / "kconsumer-1.2.3.dist-info"
    tool.add_licences(info, set(tool.bundled(tree).values()))
    metadata = HeaderParser().parsestr((info / "METADATA").read_text())
    assert metadata["License-Expression"] == "Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause"
    assert metadata.get_all("License-File") == ["LICENSE", "bundled/lz4.txt", "bundled/zstd.txt"]
    assert metadata.get_payload() == "The text.\n"
    assert (info / "licenses" / "bundled" / "zstd.txt").read_text() == "Copyright of zstd\n"


def test_the_bill_of_materials_names_every_library_and_file(tool, tree):
    info = tree / "kconsumer-1.2.3.dist-info"
    tool.add_sbom(info, Path("kconsumer-1.2.3-cp311-cp311-linux_x86_64.whl"), tool.bundled(tree))
    document = json.loads((info / "sboms" / "kconsumer.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["version"] == "1.2.3"
    assert [(c["name"], c["version"], c["licenses"]) for c in document["components"]] == [
        ("lz4", "1.5.7", [{"expression": "BSD-2-Clause"}]), ("zstd", "1.5.7", [{"expression": "BSD-3-Clause"}])]
    digests = {p["value"] for c in document["components"] for p in c["properties"]}
    assert digests == {hashlib.sha256(text).hexdigest() for text in (b"zstd", b"lz4")}
    assert document["dependencies"][0]["dependsOn"] == ["pkg:generic/lz4@1.5.7", "pkg:generic/zstd@1.5.7"]


def test_an_unknown_library_is_not_bundled(tool, tree):
    (tree / "kconsumer.libs" / "libother-0123abcd.so.1").write_text("")
    with pytest.raises(SystemExit, match="libother"):
        tool.bundled(tree)


def test_a_library_without_its_licence_is_not_bundled(tool, tree, monkeypatch):
    (tool.PREFIX / "share" / "kconsumer" / "zstd.licence").unlink()
    monkeypatch.setitem(tool.LIBRARIES, "zstd", tool.Library("zstd", "BSD-3-Clause", "libzstd", "no-such-package"))
    with pytest.raises(SystemExit, match="no licence found for zstd"):
        tool.add_licences(tree / "kconsumer-1.2.3.dist-info", set(tool.bundled(tree).values()))


def test_modules_that_only_tests_use_are_not_published(tool, tree):
    tool.refuse_testing_modules(tree)
    (tree / "tests" / "core").mkdir(parents=True)
    (tree / "tests" / "core" / "inside.cpython-311-x86_64-linux-gnu.so").write_text("")
    with pytest.raises(SystemExit, match=r"inside.*KCONSUMER_TESTING"):
        tool.refuse_testing_modules(tree)
