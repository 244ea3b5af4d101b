"""tools/test_wheel.py: which tests it leaves out where something is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "test_wheel.py"
FILES = {
    "unit/core/conftest.py": "from loop import Loop",
    "unit/core/test_core.py": "",
    "unit/records/coders.py": "def decode():\n    from tests.core import records as core_records\n",
    "unit/records/more_coders.py": "import pytest\nimport coders\n",
    "unit/records/test_itself.py": "from tests.core.records import Job\n",
    "unit/records/test_by_helper.py": "from more_coders import decode\n",
    "unit/records/test_neither.py": "from kconsumer._core.records import arrow_export\nfrom kconsumer import testing\n",
    "unit/records/test_pandas.py": "def test():\n    import pandas as pd\n",
    "helpers/loop.py": "from tests.core import inside\n",
    "embedded/test_loop.py": "from tests.helpers.loop import Loop\n",
    "embedded/test_api.py": "import kconsumer\n# tests.core\n",
}


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("test_wheel", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tests(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_tests_that_need_modules_outside_the_wheel_are_left_out(tool, tests):
    found = tool.needing_testing_modules([tests])
    assert [path.relative_to(tests).as_posix() for path in found] == [
        "embedded/test_loop.py", "unit/core", "unit/records/test_by_helper.py", "unit/records/test_itself.py"]


def test_tests_that_need_a_missing_package_are_left_out(tool, tests):
    assert tool.importing([tests], []) == []
    assert tool.importing([tests], ["numpy", "pandas"]) == [tests / "unit/records/test_pandas.py"]


def test_tests_may_import_others_of_the_tree(tool, tmp_path, monkeypatch):
    for name, text in {
        "pyproject.toml": "[tool.pytest.ini_options]\n", "tests/helper.py": "WORD = 'found'\n",
        "tests/unit/test_it.py": "from tests.helper import WORD\n\ndef test_it():\n    assert WORD == 'found'\n",
        "tests/embedded/test_nothing.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "argv", ["test_wheel.py", str(tmp_path)])
    assert tool.main() == 0


def test_modules_built_in_place_contain_the_test_modules(tool):
    """Or this run would leave out most of the core's tests without a word."""
    editable = importlib.util.find_spec("kconsumer").origin.startswith(str(TOOL.parents[1]))
    assert tool.has_testing_modules() or not editable
