"""The command as a program: its name, its help, and what it says when its extra is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from kconsumer import __version__
from kconsumer.cli.app import cli


@pytest.mark.parametrize("module", ["click", "rich"])
def test_a_missing_extra_is_named(module: str):
    code = f"import sys; sys.modules[{module!r}] = None; from kconsumer.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kconsumer: the command needs click and rich")
    assert done.stderr.endswith("pip install 'kconsumer[cli]'\n")


def test_run_as_a_module():
    done = subprocess.run([sys.executable, "-m", "kconsumer", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"kconsumer, version {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["consume", "-h"], ["topics", "-h"], ["watermarks", "-h"]])
def test_help(arguments: list[str]):
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


def test_brokers_are_needed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KCONSUMER_BOOTSTRAP_SERVERS", raising=False)
    result = CliRunner().invoke(cli, ["topics"])
    assert result.exit_code == 2
    assert "--bootstrap-servers" in result.stderr


@pytest.mark.parametrize("command", [["topics"], ["watermarks", "t"], ["consume", "t"]])
def test_an_invalid_property_shows_the_usage_of_the_subcommand(command: list[str]):
    result = CliRunner().invoke(cli, [*command, "-b", "127.0.0.1:1", "-X", "group.idd=g"], prog_name="kconsumer")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Usage: kconsumer {command[0]} [OPTIONS]")
    assert "unknown configuration property 'group.idd': did you mean 'group.id'?" in result.stderr
