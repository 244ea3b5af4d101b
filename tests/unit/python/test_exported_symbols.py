"""Extension modules export their PyInit function and nothing else: no C++ template of one is bound to another's."""

from __future__ import annotations

import importlib.machinery
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kconsumer._core

MODULES = sorted(Path(kconsumer._core.__path__[0]).rglob(f"*{importlib.machinery.EXTENSION_SUFFIXES[0]}"))


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm (binutils) is not installed")
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name.partition(".")[0])
def test_a_module_exports_only_its_entry(module):
    options = ["-gU"] if sys.platform == "darwin" else ["-D", "--defined-only"]
    listed = subprocess.run(["nm", *options, str(module)], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1].lstrip("_") for line in listed.splitlines() if line.strip()]
    assert names == [f"PyInit_{module.name.partition('.')[0]}"]


def test_there_are_modules():
    assert len(MODULES) > 5
