"""The bill of materials of a release: every file with its hash, every library that a wheel bundles."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "release_sbom.py"


def wheel(folder, tag, *libraries):
    path = folder / f"kconsumer-1.2.3-{tag}.whl"
    components = [{"type": "library", "bom-ref": f"pkg:generic/{name}", "name": name,
                   "properties": [{"name": f"kconsumer:file:{name}-{tag}.so:sha256", "value": tag}]}
                  for name in libraries]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kconsumer/__init__.py", tag)
        if libraries:
            archive.writestr("kconsumer-1.2.3.dist-info/sboms/kconsumer.cdx.json",
                             json.dumps({"components": components}))
    return path


def run(folder):
    command = [sys.executable, str(TOOL), str(folder), "1.2.3"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_file_and_every_library_is_named(tmp_path):
    linux, macos = wheel(tmp_path, "linux", "zstd", "openssl"), wheel(tmp_path, "macos", "zstd")
    sdist = tmp_path / "kconsumer-1.2.3.tar.gz"
    sdist.write_bytes(b"sources")
    bill = json.loads(run(tmp_path).stdout)
    hashes = {c["name"]: c["hashes"][0]["content"] for c in bill["components"] if c["type"] == "file"}
    assert hashes == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (linux, macos, sdist)}
    assert [c["name"] for c in bill["components"] if c["type"] == "library"] == ["openssl", "zstd"]
    depends = {entry["ref"].rpartition("=")[2]: entry.get("dependsOn") for entry in bill["dependencies"]}
    assert depends[linux.name] == ["pkg:generic/openssl", "pkg:generic/zstd"]
    assert depends[macos.name] == ["pkg:generic/zstd"]
    references = [c["bom-ref"] for c in bill["components"]] + [bill["metadata"]["component"]["bom-ref"]]
    assert sorted(references) == sorted(entry["ref"] for entry in bill["dependencies"])


@pytest.mark.parametrize("wheels", [(), (("linux",),)])
def test_a_wheel_without_a_bill_is_refused(tmp_path, wheels):
    for arguments in wheels:
        wheel(tmp_path, *arguments)
    done = run(tmp_path)
    assert done.returncode == 1 and "release_sbom: " in done.stderr
