"""The scanners of CPUs without SSE2, built on this one, say the same as those with it."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parents[2] / "src" / "_core"


def built(folder, name, source, *options):
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    program = folder / name
    warnings = ("-Wall", "-Wextra", "-Werror")
    subprocess.run([compiler, "-std=c++17", "-O1", *warnings, f"-I{CORE}", *options, str(source), "-o", str(program)],
                   check=True)
    return program


def test_both_scanners_say_the_same(tmp_path):
    said = [subprocess.run([built(tmp_path, name, HERE / "portable_scan.cpp", *options)], check=True,
                           capture_output=True).stdout
            for name, options in (("usual", ()), ("portable", ("-DKC_PORTABLE_SCAN",)))]
    assert said[0] == said[1] and said[0].count(b"\n") == 200_000
    assert len(set(said[0].splitlines())) > 100
