"""Writes a release's bill of materials: `python tools/release_sbom.py FOLDER VERSION > kconsumer.cdx.json`.

Owns: collecting the bills (CycloneDX) of tools/finish_wheel.py from the wheels, with the hash of each file. Threads:
one.
Never: adds a component that no wheel names.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any


def bill_of(wheel: Path) -> dict[str, Any]:
    """Return the bill inside a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/sboms/kconsumer.cdx.json")]
        if len(names) != 1:
            raise SystemExit(f"release_sbom: {wheel.name} has {len(names)} bills of materials: expected one")
        return json.loads(archive.read(names[0]))  # type: ignore[no-any-return]  # JSON is Any


def release_bill(folder: Path, version: str) -> dict[str, Any]:
    """Return a bill of all files of the release, and the bundled libraries of each wheel.

    Raises:
        SystemExit: a wheel without a bill, or a folder without wheels.
    """
    reference = f"pkg:pypi/kconsumer@{version}"
    files: list[dict[str, Any]] = []
    libraries: dict[str, dict[str, Any]] = {}
    depends: dict[str, list[str]] = {}
    for path in sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")]):
        file = f"{reference}?file_name={path.name}"
        files.append({"type": "file", "bom-ref": file, "name": path.name, "purl": file, "hashes": [
            {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]})
        inside = bill_of(path)["components"] if path.suffix == ".whl" else []
        for component in inside:
            # The hashes of bundled files differ per wheel: they are in the wheel's own bill.
            libraries[component["bom-ref"]] = {k: v for k, v in component.items() if k != "properties"}
        depends[file] = sorted(component["bom-ref"] for component in inside)
    if not libraries:
        raise SystemExit(f"release_sbom: no wheel in {folder}")
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {
            "type": "library", "bom-ref": reference, "name": "kconsumer", "version": version, "purl": reference,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        }},
        "components": files + [libraries[ref] for ref in sorted(libraries)],
        "dependencies": [{"ref": reference, "dependsOn": sorted(depends)},
                         *({"ref": ref, "dependsOn": on} for ref, on in sorted(depends.items())),
                         *({"ref": ref} for ref in sorted(libraries))],
    }


if __name__ == "__main__":
    print(json.dumps(release_bill(Path(sys.argv[1]), sys.argv[2]), indent=2))
