"""tools/release_notes.py and tools/repository.py: what a release says, and where it says the project lives."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ROOT / "tools"

CHANGELOG = """# Changes

## Unreleased

- Later.

## 1.2.0

- Faster; see docs/tuning.md and [the policy](docs/support.md#versions).

## 1.1.0

## 1.0.0

- First.
"""


@pytest.fixture(scope="module")
def tools():
    def load(name):
        spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    sys.path.insert(0, str(TOOLS))
    yield load
    sys.path.remove(str(TOOLS))


def test_the_notes_are_the_section_with_absolute_links(tools):
    made = tools("release_notes").notes(CHANGELOG, "1.2.0", "https://github.com/o/kconsumer")
    assert made == ("- Faster; see [docs/tuning.md](https://github.com/o/kconsumer/blob/v1.2.0/docs/tuning.md) and "
                    "[the policy](https://github.com/o/kconsumer/blob/v1.2.0/docs/support.md#versions).\n")
    assert tools("release_notes").notes(CHANGELOG, "1.0.0", "") == "- First.\n"


@pytest.mark.parametrize("version", ["1.1.0", "2.0.0", "1.2"])
def test_a_version_without_entries_is_an_error(tools, version):
    with pytest.raises(ValueError, match=f"no entries for {version}"):
        tools("release_notes").notes(CHANGELOG, version, "")


def test_one_owner_everywhere(tools):
    rewritten = tools("repository").rewritten
    text = ("https://github.com/a/kconsumer/issues https://a.github.io/kconsumer/ gh --repo a/kconsumer "
            "https://github.com/apache/kafka https://github.com/a/kconsumer-other")
    assert rewritten(text, "b", "kconsumer") == (
        "https://github.com/b/kconsumer/issues https://b.github.io/kconsumer/ gh --repo b/kconsumer "
        "https://github.com/apache/kafka https://github.com/a/kconsumer-other")


def test_the_links_of_the_readme_work_on_the_package_index_too(tools):
    text = re.sub(r"^```.*?^```$", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    owner, name = tools("repository").address()
    ours = re.compile(rf"https://(?:github\.com/{owner}/{name}/blob|raw\.githubusercontent\.com/{owner}/{name})/main/([^#]+)")
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    assert [link for link in links if (found := ours.match(link)) and not (ROOT / found[1]).exists()] == []
