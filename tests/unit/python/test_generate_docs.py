"""docs/configuration.md, docs/metrics.md and the diagrams are what tools/generate_docs.py writes, and hold it all."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kconsumer.config.properties import BY_NAME, PROPERTIES

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["generate_docs.py", *arguments])
    return int(tool.main())


def test_the_page_is_up_to_date(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tool, monkeypatch, "--check") == 0


@pytest.mark.parametrize("name", ["configuration.md", "metrics.md"])
def test_check_finds_a_page_that_is_not(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr(tool, "DOCS", tmp_path / "docs")
    page = tmp_path / "docs" / name
    assert run(tool, monkeypatch, "--check") == 1 and not page.exists()
    assert run(tool, monkeypatch) == 0 and run(tool, monkeypatch, "--check") == 0
    page.write_text(page.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert run(tool, monkeypatch, "--check") == 1


def test_the_page_holds_the_whole_table(tool: ModuleType) -> None:
    text = tool.page()
    assert [name for name in BY_NAME if f"`{name}`" not in text] == []
    assert [prop.name for prop in PROPERTIES if prop.reason and prop.reason.replace("|", "\\|") not in text
            and prop.scope.value == "consumer"] == []  # fmt: skip
    columns = 0
    for line in text.splitlines():
        cells = line.count("|") - line.count("\\|")
        assert cells == columns or not columns or not line
        columns = cells if line.startswith("|") else 0


def test_the_page_begins_with_the_properties_that_matter_and_keeps_the_others_apart(tool: ModuleType) -> None:
    parts = dict(part.split("\n", 1) for part in tool.page().split("\n## ")[1:])
    first, *_, accepted, refused = parts
    assert (first, accepted, refused) == ("The properties that matter", "Accepted properties", "Refused properties")
    assert len(tool.IMPORTANT) == 15 == parts[first].count("\n| `")
    for prop in PROPERTIES:
        where = [title for title, text in parts.items() if title != first and f"\n| `{prop.name}`" in text]
        if prop.scope.value == "producer":
            assert f"`{prop.name}`" in parts[accepted]
        elif prop.status.value == "honoured":
            assert len(where) == 1 and where[0] not in (accepted, refused), prop.name
        else:
            assert where == [accepted if prop.status.value == "accepted" else refused], prop.name


def test_check_finds_a_diagram_that_is_not_up_to_date(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "DOCS", tmp_path)
    page = tmp_path / "states.md"
    page.write_text("# States\n\n<!-- diagram: member-states -->\nold\n<!-- end of diagram -->\n\nThe end.\n")
    assert run(tool, monkeypatch) == 0 and run(tool, monkeypatch, "--check") == 0
    text = page.read_text()
    assert "old" not in text and text.startswith("# States\n") and text.endswith("\n\nThe end.\n")
    page.write_text(text.replace("STABLE --> JOINING", "STABLE --> FATAL"))
    assert run(tool, monkeypatch, "--check") == 1


def test_the_diagram_of_member_states_is_the_table(tool: ModuleType) -> None:
    table, exits = tool.diagrams.transitions()
    assert exits == {"FENCED", "STALE", "LEAVING", "FATAL"}
    assert table["LEAVING"] == ["UNSUBSCRIBED", "FATAL"]
    drawn = tool.diagrams.member_states()
    assert "    STABLE --> PREPARE_REVOCATION" in drawn and "STABLE --> REVOKING_PARTITION" not in drawn
    assert {state for state in table if state in drawn} == set(table)


def test_a_diagram_without_a_generator_is_an_error(tool: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no-such"):
        tool.diagrams.fill("<!-- diagram: no-such -->\n<!-- end of diagram -->\n")
