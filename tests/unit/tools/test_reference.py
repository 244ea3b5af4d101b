"""docs/reference.md has every public name, from the place where the name is defined, and no internal one."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^::: ([\w.]+)\n((?:    .*\n)*)", re.M)
MEMBERS = re.compile(r"^      members: \[(.*)\]$", re.M)
# The modules whose __all__ is public, besides kconsumer itself. kconsumer.spark needs pyspark: see below.
MODULES = ("kconsumer", "kconsumer.aio", "kconsumer.decoding", "kconsumer.error", "kconsumer.ingest",
           "kconsumer.metrics", "kconsumer.scanning", "kconsumer.serialization", "kconsumer.testing")
# Internal names that the generated text could have shown.
INTERNAL = ("GroupConsumer", "GroupCore", "ConsumerCore", "Deserializing\n", "check_text", "error_for", "on_loop")


def entries() -> dict[str, str]:
    """Name → path of everything that an entry shows: the object itself, or the listed members of a module."""
    found = {}
    for path, options in ENTRY.findall(PAGE):
        listed = MEMBERS.search(options)
        names = [name for name in listed[1].split(", ") if name] if listed else []
        if path.rpartition(".")[2][:1].islower() and names:
            found.update({name: f"{path}.{name}" for name in names})
        else:
            found[path.rpartition(".")[2]] = path
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_the_page(module: str) -> None:
    pytest.importorskip("pyarrow", reason="some of these modules need it")
    shown = {*entries(), *re.findall(r"`(?:kconsumer\.)?(\w+)`", PAGE)}
    assert [name for name in importlib.import_module(module).__all__ if name not in shown] == []


def test_the_names_of_spark_are_on_the_page() -> None:
    text = (ROOT / "src" / "kconsumer" / "spark" / "__init__.py").read_text(encoding="utf-8")
    listed = re.search(r"^__all__ = \[(.*)\]$", text, re.M)
    assert listed and {name.strip('"') for name in listed[1].split(", ")} <= entries().keys()


@pytest.mark.parametrize("path", sorted(path for path in entries().values() if "spark" not in path))
def test_every_entry_exists(path: str) -> None:
    pytest.importorskip("pyarrow", reason="some of these modules need it")
    module, _, name = path.rpartition(".")
    assert hasattr(importlib.import_module(module), name)


def test_an_entry_stands_once() -> None:
    paths = [path for path, _ in ENTRY.findall(PAGE)]
    assert len(paths) == len(set(paths))


def test_internal_names_are_not_shown() -> None:
    assert [name for name in INTERNAL if re.search(rf"^::: .*\.{name}$", PAGE, re.M)] == []
    settings = (ROOT / "tools" / "mkdocs.yml").read_text(encoding="utf-8")
    assert "show_bases: false" in settings and '"!^on_loop$"' in settings
