"""Every code block of README.md and docs/ names its language, and a test runs it, or a reason stands here.

tests/embedded/test_docs_snippets.py runs Python and `kconsumer` commands, tests/spark/test_spark_page.py the pages
about Spark and ingestion, tests/kafka the page about security. A Python or command block with the mark `not run:
reason` is in the list of test_docs_snippets.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs_blocks import PAGES, blocks, commands

# Languages that no test runs.
LANGUAGES = {
    "text": "shows a file or a message",
    "mermaid": "a diagram, which `make docs-check` opens in a browser",
    "dockerfile": "needs a container engine; docker/Dockerfile is checked by tools/lint_files.py",
}
RUN = re.compile(r"kconsumer |spark-submit .*/ingest|spark-submit (?:--\S+ \S+ )+ ?\"\$\(python -c")
# The beginning of a command → why no test runs it as it stands.
COMMANDS = {
    "pip install": "needs the package index; tools/test_pythons.sh installs the package",
    "apt-get install": "changes the system; tools/setup_system.sh and every workflow install these packages",
    "make ": "the developer's own targets; .github/workflows run them",
    "docker compose ": "needs a container engine; tools/lint_files.py checks the compose file",
    "jupyter lab ": "opens a browser; tests/embedded/test_notebook.py runs the notebook",
    "python3.11 -m venv ": "needs the package index; tests/cluster ships the package in this way",
    "python -m kconsumer.compat ": "needs a program of the user; tests/embedded/test_compat.py runs such commands",
    "PYSPARK_PYTHON=": "needs a job of the user; tests/cluster ships the package in this way",
    "driver/bin/venv-pack ": "needs the package index; tests/cluster ships the package in this way",
    "ln -s driver environment": "belongs to the lines around it; tests/cluster ships the package in this way",
}
LINES = [pytest.param(line, id=place) for page in PAGES for place, line in commands(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_fence_names_its_language(page: Path) -> None:
    fences = [line for line in page.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith("```")]
    assert len(fences) % 2 == 0
    assert [line for line in fences[::2] if not re.fullmatch(r"```\w+(?: [^`]+)?", line)] == []  # not indented either
    assert [line for line in fences[1::2] if line != "```"] == []
    assert len(list(blocks(page))) == len(fences) // 2  # tests see every one


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_language_is_run_or_has_a_reason(page: Path) -> None:
    found = {block.place: block.language for block in blocks(page)}
    assert {place: language for place, language in found.items() if language not in {"python", "sh", *LANGUAGES}} == {}


@pytest.mark.parametrize("line", LINES)
def test_every_command_is_run_or_has_a_reason(line: str) -> None:
    assert RUN.match(line) or any(line.startswith(start) for start in COMMANDS), line


def test_every_reason_is_needed() -> None:
    lines = [line for page in PAGES for _, line in commands(page)]
    assert [start for start in COMMANDS if not any(line.startswith(start) for line in lines)] == []
    languages = {block.language for page in PAGES for block in blocks(page)}
    assert set(LANGUAGES) <= languages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_how_to_install_the_libraries_of_its_examples(page: Path) -> None:
    code = "\n".join(block.code for block in blocks(page) if block.language == "python")
    imported = set(re.findall(r"^import (duckdb|pandas|polars)\b", code, re.M))
    installed = set(re.findall(r"\w+", " ".join(re.findall(r"pip install [^`\n]*", page.read_text(encoding="utf-8")))))
    assert imported - installed == set()
