"""Turns a built wheel into the published one: removes debug symbols, bundles libraries, adds licences and an SBOM.

    python tools/finish_wheel.py WHEEL DESTINATION [--debug FOLDER]

Owns: the processing of a wheel after the compiler; cibuildwheel and tools/wheel.sh both call it. Needs auditwheel and
patchelf on Linux, delocate on macOS, and packaging. Threads: one. Never: compiles, uploads; bundles a library with an
unknown version or licence; accepts modules that only tests use.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

MAC = sys.platform == "darwin"
LARGEST_BYTES = 6_000_000
# tools/wheel_libraries.sh puts its built libraries here, with their versions and licences.
PREFIX = Path(os.environ.get("KCONSUMER_LIBRARIES", "/usr/local"))


@dataclass(frozen=True)
class Library:
    """A library that may be bundled: the project's name, its licence, the sources of its version and text."""

    name: str
    licence: str
    pkg_config: str
    package: str  # Debian's package name

    def version(self) -> str:
        told = PREFIX / "share" / "kconsumer" / f"{self.name}.version"
        if told.exists():
            return told.read_text().strip()
        command = (["pkg-config", "--modversion", self.pkg_config] if self.pkg_config else
                   ["dpkg-query", "-W", "-f", "${Version}", self.package])
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def licence_text(self) -> str:
        for place in (PREFIX / "share" / "kconsumer" / f"{self.name}.licence",
                      Path("/usr/share/doc") / self.package / "copyright"):
            if place.exists():
                return place.read_text(encoding="utf-8")
        raise SystemExit(f"finish_wheel: no licence found for {self.name}, which the wheel bundles")


GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
LIBRARIES = {
    "z": Library("zlib", "Zlib", "zlib", "zlib1g"),
    "lz4": Library("lz4", "BSD-2-Clause", "liblz4", "liblz4-1"),
    "zstd": Library("zstd", "BSD-3-Clause", "libzstd", "libzstd1"),
    "snappy": Library("snappy", "BSD-3-Clause", "snappy", "libsnappy1v5"),
    "ssl": Library("openssl", "Apache-2.0", "openssl", "libssl3"),
    "crypto": Library("openssl", "Apache-2.0", "openssl", "libssl3"),
    "stdc++": Library("libstdc++", GCC, "", "libstdc++6"),  # musllinux wheels have these two
    "gcc_s": Library("libgcc", GCC, "", "libgcc-s1"),
}


def refuse_testing_modules(folder: Path) -> None:
    found = sorted(path.name for path in folder.glob("tests/**/*.so"))
    if found:
        raise SystemExit(f"finish_wheel: {', '.join(found)}: only tests use them; build without KCONSUMER_TESTING=1")


def run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True)


def unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            made = Path(archive.extract(member, folder))
            if mode := member.external_attr >> 16:
                made.chmod(mode & 0o777)


def pack(folder: Path, wheel: Path) -> None:
    """Zip a folder as a wheel, with a RECORD of its current files."""
    (info,) = folder.glob("*.dist-info")
    record = info / "RECORD"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != record)
    with open(record, "w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out, lineterminator="\n")
        for path in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
            rows.writerow((path.relative_to(folder).as_posix(), f"sha256={digest}", path.stat().st_size))
        rows.writerow((record.relative_to(folder).as_posix(), "", ""))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in [*files, record]:
            archive.write(path, path.relative_to(folder).as_posix())


def keep_debug_symbols_aside(folder: Path, archive: Path) -> None:
    """Move the debug symbols of every module into one archive; debuggers find them by build id or link."""
    with tempfile.TemporaryDirectory() as place, tarfile.open(archive, "w:xz") as kept:
        for module in sorted(folder.rglob("*.so")):
            symbols = Path(place) / f"{module.name}.{'dSYM' if MAC else 'debug'}"
            if MAC:
                run("dsymutil", module, "-o", symbols)
                run("strip", "-x", module)
            else:
                run("objcopy", "--only-keep-debug", module, symbols)
                run("objcopy", "--strip-unneeded", f"--add-gnu-debuglink={symbols}", module)
            kept.add(symbols, module.relative_to(folder).with_name(symbols.name).as_posix())


def repair(wheel: Path, folder: Path) -> Path:
    """Bundle the libraries; return the new wheel, whose name states its platforms."""
    if MAC:
        run("delocate-wheel", "--require-archs", os.environ.get("KCONSUMER_ARCHS", os.uname().machine),
            "-w", folder, wheel)
    else:
        run(sys.executable, "-m", "auditwheel", "repair", "-w", folder, wheel)
    (made,) = folder.glob("*.whl")
    return made


def bundled(folder: Path) -> dict[Path, Library]:
    """Return the libraries in the wheel."""
    found = {}
    for path in sorted([*folder.glob("kconsumer.libs/*"), *folder.glob("kconsumer/.dylibs/*")]):
        name = re.match(r"lib([a-z_]+[a-z0-9_+]*?)(?:-[0-9a-f]{8})?\.", path.name)
        if name is None or name.group(1) not in LIBRARIES:
            raise SystemExit(f"finish_wheel: {path.name} is bundled, but LIBRARIES does not name its project")
        found[path] = LIBRARIES[name.group(1)]
    return found


def add_licences(info: Path, libraries: set[Library]) -> None:
    """Add their texts beside ours, with their names in METADATA as in PEP 639."""
    place = info / "licenses" / "bundled"
    place.mkdir(parents=True, exist_ok=True)
    metadata = info / "METADATA"
    head, separator, body = metadata.read_text(encoding="utf-8").partition("\n\n")
    names = sorted(library.name for library in libraries)
    for library in libraries:
        (place / f"{library.name}.txt").write_text(library.licence_text(), encoding="utf-8")
    ours = HeaderParser().parsestr(head)["License-Expression"]
    parts = [f"({ours})" if " OR " in ours else ours]
    parts += sorted({library.licence for library in libraries} - {ours})
    head = head.replace(f"License-Expression: {ours}", f"License-Expression: {' AND '.join(parts)}")
    head += "".join(f"\nLicense-File: bundled/{name}.txt" for name in names)
    metadata.write_text(head + separator + body, encoding="utf-8")


def add_sbom(info: Path, wheel: Path, libraries: dict[Path, Library]) -> None:
    """Add a bill of materials (CycloneDX) at the place that PEP 770 defines."""
    metadata = HeaderParser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
    purl = f"pkg:pypi/{metadata['Name']}@{metadata['Version']}"
    components = []
    for library in sorted(set(libraries.values()), key=lambda each: each.name):
        version = library.version()
        components.append({
            "type": "library", "bom-ref": f"pkg:generic/{library.name}@{version}", "name": library.name,
            "version": version, "purl": f"pkg:generic/{library.name}@{version}",
            "licenses": [{"expression": library.licence}],
            "properties": [
                {"name": f"kconsumer:file:{path.name}:sha256", "value": hashlib.sha256(path.read_bytes()).hexdigest()}
                for path, of in libraries.items() if of == library
            ],
        })
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {
            "type": "library", "bom-ref": purl, "name": metadata["Name"], "version": metadata["Version"],
            "purl": f"{purl}?file_name={wheel.name}", "licenses": [{"license": {"id": "Apache-2.0"}}],
        }},
        "components": components,
        "dependencies": [{"ref": purl, "dependsOn": [c["bom-ref"] for c in components]},
                         *({"ref": c["bom-ref"]} for c in components)],
    }
    place = info / "sboms"
    place.mkdir(exist_ok=True)
    (place / "kconsumer.cdx.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def finish(wheel: Path, destination: Path, debug: Path) -> Path:
    with tempfile.TemporaryDirectory() as place:
        bare, stripped, repaired, final = (Path(place) / name for name in ("bare", "stripped", "repaired", "final"))
        for folder in (stripped, repaired, destination, debug):
            folder.mkdir(parents=True, exist_ok=True)
        unpack(wheel, bare)
        refuse_testing_modules(bare)
        symbols = Path(place) / "symbols.tar.xz"
        keep_debug_symbols_aside(bare, symbols)
        # Before the repair: stripping a library after patchelf may damage it.
        pack(bare, stripped / wheel.name)
        made = repair(stripped / wheel.name, repaired)
        unpack(made, final)
        (info,) = final.glob("*.dist-info")
        libraries = bundled(final)
        add_licences(info, set(libraries.values()))
        add_sbom(info, made, libraries)
        result = destination / made.name
        pack(final, result)
        installed = sum(path.stat().st_size for path in final.rglob("*") if path.is_file())
        shutil.move(symbols, debug / f"{made.stem}-debug.tar.xz")
    size = result.stat().st_size
    if size >= LARGEST_BYTES:
        raise SystemExit(f"finish_wheel: {result.name} has {size} bytes, more than {LARGEST_BYTES}")
    print(f"{result.name}: {size / 1e6:.2f} MB, {installed / 1e6:.2f} MB installed, with "
          f"{', '.join(sorted({of.name for of in libraries.values()}))}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--debug", type=Path, default=Path("build/debug"), help="where the debug symbols go")
    arguments = parser.parse_args()
    finish(arguments.wheel, arguments.destination, arguments.debug)


if __name__ == "__main__":
    main()
