"""Builds the records layer for tools/fuzz/fuzz_records.cpp, with libFuzzer's coverage, ASan and UBSan, into OUT.

    python tools/fuzz/build_records.py OUT        prints the path of libpython

Owns: OUT. Threads: none (a developer's tool). Never: changes the source tree, or the build that tests and users run.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize=vptr,function", "-fno-sanitize-recover=all"]
DIRECTIVES = {
    "language_level": 3, "boundscheck": False, "wraparound": False, "initializedcheck": False, "cdivision": True,
}


def package_tree(out: Path) -> Path:
    """Packages of copies of the sources, to build in place: kconsumer._core with base and records, and tests.core."""
    core = out / "kconsumer" / "_core"
    for layer in ("base", "records"):
        shutil.copytree(ROOT / "src/_core" / layer, core / layer, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copytree(ROOT / "tests/core", out / "tests/core", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for package in (core.parent, core):
        (package / "__init__.py").touch()
        (package / "__init__.pxd").touch()
    return core


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    compiler = os.environ.get("CLANGXX", "clang++")
    os.environ.update(CC="clang", CXX=compiler, LDSHARED=f"{compiler} -shared", LDCXXSHARED=f"{compiler} -shared")
    core = package_tree(out)
    os.chdir(out)
    extensions = [
        Extension(
            ".".join(path.relative_to(out).with_suffix("").parts), [str(path.relative_to(out))], language="c++",
            include_dirs=[str(core)], libraries=["z", "lz4", "zstd", "snappy"],
            extra_compile_args=["-std=c++17", "-O1", "-g", "-fno-omit-frame-pointer", "-w", *FLAGS],
            extra_link_args=FLAGS, depends=[str(p) for p in core.rglob("*.hpp")],
        )
        for path in (core / "base/base.pyx", core / "records/records.pyx", out / "tests/core/records.pyx")
    ]
    command = Distribution({
        "ext_modules": cythonize(extensions, include_path=[str(out)], compiler_directives=DIRECTIVES, quiet=True),
    }).get_command_obj("build_ext")
    command.inplace = True
    command.parallel = int(os.environ.get("KCONSUMER_JOBS", os.cpu_count() or 1))
    command.build_temp = str(out / "temp")
    command.ensure_finalized()
    command.run()
    name = sysconfig.get_config_var("INSTSONAME") or ""
    if ".so" not in name:
        raise SystemExit("this Python has no shared libpython to embed: name another one in PYTHON")
    beside = Path(sysconfig.get_config_var("LIBDIR")) / name
    print(beside if beside.exists() else name)


if __name__ == "__main__":
    main()
