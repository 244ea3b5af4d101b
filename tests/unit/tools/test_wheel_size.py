"""tools/wheel_size.py: sizes from a wheel's own archive, the limits, and the table in docs/install.md."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "wheel_size.py"


@pytest.fixture
def wheel_size(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    spec = importlib.util.spec_from_file_location("wheel_size", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path):
    """A wheel of a module `kconsumer` without compiled parts, for this Python."""
    path = tmp_path / "kconsumer-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kconsumer/__init__.py", "# " + "x" * 1_000_000 + "\n")
        archive.writestr("kconsumer-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: kconsumer\nVersion: 1.0\n")
        archive.writestr("kconsumer-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
                         "Tag: py3-none-any\n")
        archive.writestr("kconsumer-1.0.dist-info/RECORD", "")
    return path


def test_the_sizes_of_the_file_and_of_its_contents(wheel_size, wheel):
    compressed, installed = wheel_size.sizes(wheel)
    assert compressed == wheel.stat().st_size / 1e6 < 0.1
    assert 1.0 < installed < 1.01


def test_the_import_is_measured_in_a_new_environment(wheel_size, wheel, monkeypatch):
    monkeypatch.setattr(wheel_size, "ROUNDS", 3)
    programs = []
    run = wheel_size.subprocess.run

    def noted(arguments, **options):
        programs.append((arguments[0], arguments[-1]))
        return run(arguments, **options)

    monkeypatch.setattr(wheel_size.subprocess, "run", noted)
    elapsed, cpu = wheel_size.import_ms(wheel)
    assert isinstance(elapsed, float) and isinstance(cpu, float)
    timed = programs[-7:]
    assert [program for _, program in timed] == ["import kconsumer"] + 3 * ["import kconsumer", "pass"]
    assert sys.executable not in {python for python, _ in timed}


@pytest.mark.parametrize(("compressed", "cpu", "fault"), [
    (6.0, 60.0, None), (6.1, 10.0, "6.1 MB is more than 6 MB"), (1.0, 60.1, "takes 60.1 ms of CPU time"),
])
def test_a_wheel_that_is_too_large_or_imports_too_slowly_fails_the_tool(  # noqa: PLR0917
    wheel_size, wheel, monkeypatch, capsys, compressed, cpu, fault,
):
    monkeypatch.setattr(wheel_size, "sizes", lambda _wheel: (compressed, 9.0))
    monkeypatch.setattr(wheel_size, "import_ms", lambda *_: (70.0, cpu))
    monkeypatch.setattr(sys, "argv", ["wheel_size.py", str(wheel)])
    assert wheel_size.main() == (0 if fault is None else 1)
    shown = capsys.readouterr().out
    assert f"| py3, any | {compressed:.1f} | 9.0 | 70 | {cpu:.0f} |" in shown
    assert ("wheel_size: " in shown) == (fault is not None)
    assert (fault or "") in shown


def test_the_import_of_a_wheel_for_another_platform_is_not_measured(wheel_size, wheel, monkeypatch, capsys):
    monkeypatch.setattr(wheel_size, "import_ms", lambda *_: pytest.fail("this Python cannot import it"))
    other = wheel.rename(wheel.with_name("kconsumer-1.0-cp39-cp39-manylinux_2_28_sparc64.whl"))
    monkeypatch.setattr(sys, "argv", ["wheel_size.py", str(other)])
    assert wheel_size.main() == 0
    assert "| cp39, manylinux_2_28_sparc64 | 0.0 | 1.0 | not measured | not measured |" in capsys.readouterr().out


def test_the_python_of_the_wheel_imports_it(wheel_size, wheel, monkeypatch, tmp_path, capsys):
    finder = tmp_path / "find_python.sh"
    finder.write_text(f'#!/bin/sh\n[ "$1" = 99 ] && echo {sys.executable}\n')
    finder.chmod(0o755)
    monkeypatch.setattr(wheel_size, "FIND_PYTHON", finder)
    measured = []
    monkeypatch.setattr(wheel_size, "import_ms", lambda _wheel, python: measured.append(python) or (70.0, 50.0))
    names = [f"kconsumer-1.0-cp3{minor}-none-any.whl" for minor in (99, 98)]
    monkeypatch.setattr(sys, "argv", ["wheel_size.py", *(str(shutil.copy(wheel, tmp_path / name)) for name in names)])
    assert wheel_size.main() == 0
    assert measured == [sys.executable]
    shown = capsys.readouterr().out
    assert f"| cp399, any | 0.0 | 1.0 | 70 | 50 | {platform.python_version()} |" in shown
    assert "| cp398, any | 0.0 | 1.0 | not measured | not measured | none |" in shown


def test_the_table_is_written_between_the_marks_only(wheel_size, tmp_path):
    page = tmp_path / "install.md"
    page.write_text("before\n<!-- size results -->\nold\n<!-- end of size results -->\nafter\n")
    wheel_size.write("new\n", page)
    assert page.read_text() == "before\n<!-- size results -->\nnew\n<!-- end of size results -->\nafter\n"
    page.write_text("no marks\n")
    with pytest.raises(SystemExit, match="0 parts between"):
        wheel_size.write("new\n", page)


def test_the_page_has_the_marks_and_a_measured_wheel(wheel_size):
    found = []
    wheel_size.page_parts.filled(wheel_size.PAGE.read_text(encoding="utf-8"), "size results",
                                 lambda _, old: found.append(old) or old)
    assert len(found) == 1 and "| cp3" in found[0]
