"""Builds src/_core/**/*.pyx as kconsumer._core.*, and tests/core/*.pyx as tests.core.*.

Environment switches:
  KCONSUMER_DEBUG=1                   -O0, assertions on
  KCONSUMER_SANITIZE=address|thread   sanitizer build (address includes undefined)
  KCONSUMER_JOBS=N                    parallel compilers (default: CPU count)
  KCONSUMER_LIBRARIES=FOLDER          where the C libraries are, with include/ and lib/ (default: the system's)
  KCONSUMER_TESTING=1|0               with or without the modules that only tests use, tests.core (default: with them
                                      where modules are built in place, without them in a wheel)
  KCONSUMER_EXTENSIONS=0              no extension modules: `make setup` installs the rest, `make build` compiles once
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
CORE = Path("src/_core")
HARNESS = Path("tests/core")
EXPORTS = str(CORE / "exports.map")
DEBUG = os.environ.get("KCONSUMER_DEBUG") == "1"
SANITIZE = os.environ.get("KCONSUMER_SANITIZE", "")
JOBS = int(os.environ.get("KCONSUMER_JOBS", os.cpu_count() or 1))
TESTING = os.environ.get("KCONSUMER_TESTING", "")
EXTENSIONS = os.environ.get("KCONSUMER_EXTENSIONS") != "0"

# Which system library each module links; everything else needs libc and libstdc++ only.
LIBRARIES = {
    "kconsumer._core.records.records": ["z", "lz4", "zstd", "snappy"],
    "kconsumer._core.network.network": ["ssl", "crypto"],
    "kconsumer._core.consumer.consumer": ["crypto"],
    "tests.core.inside": ["crypto"],
}

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": True,
}


def pxd_package() -> str:
    """A package tree that lets ``cimport kconsumer._core...`` find the .pxd files (only disk paths are searched)."""
    package = ROOT / "build" / "pxd" / "kconsumer"
    package.mkdir(parents=True, exist_ok=True)
    marker = package / "__init__.pxd"
    if not marker.exists():  # a newer one would make Cython translate everything again
        marker.touch()
    link = package / "_core"
    target = os.path.relpath(ROOT / CORE, package)
    if not link.is_symlink() or os.readlink(link) != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return str(package.parent)


def compiler_flags() -> tuple[list[str], list[str]]:
    compile_args = ["-std=c++17", "-fvisibility=hidden", "-g1", "-Wno-unused-function"]
    if sys.platform == "darwin":
        compile_args.append("-mmacosx-version-min=11.0")
        link_args = ["-Wl,-exported_symbol,_PyInit_*"]
    else:
        link_args = [f"-Wl,--version-script={EXPORTS}"]
    compile_args += ["-O0", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-fno-plt"]
    if SANITIZE == "address":
        flags = ["-fsanitize=address,undefined", "-fno-sanitize=vptr,function", "-fno-omit-frame-pointer"]
        if "clang" not in os.environ.get("CC", "clang" if sys.platform == "darwin" else "gcc"):
            flags[1] = "-fno-sanitize=vptr"
        compile_args += flags
        link_args += flags[:1]
    elif SANITIZE == "thread":
        compile_args += ["-fsanitize=thread", "-fno-omit-frame-pointer"]
        link_args += ["-fsanitize=thread"]
    elif SANITIZE:
        raise SystemExit(f"KCONSUMER_SANITIZE must be 'address' or 'thread', not {SANITIZE!r}")
    return compile_args, link_args


def library_folders() -> tuple[list[str], list[str]]:
    """(headers, libraries) to search before the compiler's own: those asked for; on macOS, else, the OpenSSL that
    Homebrew keeps out of the compiler's way."""
    prefix = os.environ.get("KCONSUMER_LIBRARIES", "")
    if not prefix and sys.platform == "darwin":
        found = subprocess.run(["brew", "--prefix", "openssl@3"], capture_output=True, text=True, check=False)
        prefix = found.stdout.strip()
    return ([f"{prefix}/include"], [f"{prefix}/lib"]) if prefix else ([], [])


def included_in(path: Path) -> list[Path]:
    """The files that a Cython file includes."""
    return [path.parent / n for n in re.findall(r'^include "([\w.]+)"', path.read_text(), re.M)]


def headers_of(path: Path, seen: set[Path]) -> set[Path]:
    """The core's own headers that a file includes, directly or through what it cimports."""
    if path in seen or not path.exists():
        return set()
    seen.add(path)
    text = path.read_text()
    found = {path} if path.suffix == ".hpp" else set()
    named = re.findall(r'(?:#include|cdef extern from) "([\w/]+\.hpp)"', text)
    names = [folder / n for folder in (CORE, HARNESS) for n in named]
    names += [CORE / f"{m.replace('.', '/')}.pxd" for m in re.findall(r"kconsumer\._core\.([\w.]+) cimport", text)]
    names += [path.with_suffix(".pxd")] if path.suffix == ".pyx" else []
    names += included_in(path)
    for name in names:
        found |= headers_of(name, seen)
    return found


def extensions(testing: bool = False) -> list[Extension]:
    compile_args, link_args = compiler_flags()
    headers, libraries = library_folders()
    found = []
    paths = {path: ("kconsumer", "_core", *path.relative_to(CORE).with_suffix("").parts)
             for path in CORE.rglob("*.pyx")}
    if testing:
        paths |= {path: path.with_suffix("").parts for path in HARNESS.glob("*.pyx")}
    # The largest first: the compilers end at about the same time.
    for path, parts in sorted(paths.items(), key=lambda item: -sum(f.stat().st_size for f in included_in(item[0]))):
        name = ".".join(parts)
        found.append(
            Extension(
                name,
                [str(path)],
                language="c++",
                include_dirs=[str(CORE), *([str(HARNESS)] if parts[0] == "tests" else []), *headers],
                library_dirs=libraries,
                libraries=LIBRARIES.get(name, []) + ([] if sys.platform == "darwin" else ["dl"]),
                depends=[EXPORTS, *sorted(str(p) for p in headers_of(path, set()))],
                extra_compile_args=compile_args,
                extra_link_args=link_args,
            )
        )
    return found


def translated(found: list[Extension]) -> list[Extension]:
    made: list[Extension] = cythonize(
        found,
        include_path=[pxd_package()],
        build_dir="build/cython",
        nthreads=JOBS if sys.platform == "linux" else 0,
        compiler_directives=DIRECTIVES,
    )
    return made


class BuildExt(build_ext):
    def finalize_options(self) -> None:
        if TESTING not in ("", "0", "1"):
            raise SystemExit(f"KCONSUMER_TESTING must be 0 or 1, not {TESTING!r}")
        testing = TESTING == "1" or (not TESTING and (self.inplace or self.editable_mode))
        # Options are finalized again when an editable install is made: always from the whole list.
        self.distribution.ext_modules = translated(extensions(testing))
        super().finalize_options()
        self.parallel = self.parallel or JOBS


packages = ["kconsumer", "kconsumer._core", "pyspark_kconsumer", "pytest_kconsumer"]
packages += [f"kconsumer.{p.parent.relative_to('src/kconsumer').as_posix().replace('/', '.')}"
             for p in sorted(Path("src/kconsumer").rglob("*/__init__.py"))]
packages += [f"kconsumer._core.{p.parent.relative_to(CORE).as_posix().replace('/', '.')}"
             for p in sorted(CORE.rglob("*/__init__.py"))]

setup(
    packages=packages,
    package_dir={"kconsumer": "src/kconsumer", "kconsumer._core": "src/_core",
                 "pyspark_kconsumer": "src/pyspark_kconsumer", "pytest_kconsumer": "src/pytest_kconsumer"},
    package_data={"kconsumer": ["py.typed", "*.pyi"], "kconsumer._core": ["*.pyi", "**/*.pyi"],
                  "pytest_kconsumer": ["py.typed"]},
    include_package_data=False,
    ext_modules=extensions() if EXTENSIONS else [],  # BuildExt chooses among them and has Cython translate those
    cmdclass={"build_ext": BuildExt},
)
