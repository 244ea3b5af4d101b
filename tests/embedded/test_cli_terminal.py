"""The command on a terminal: text that brokers and producers chose neither steers it nor is read as markup."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from kconsumer.testing import EmbeddedCluster

NAMES = {"[/nope]": "[/nope]", "[red]x": "[red]x", ":smile:": ":smile:", "\x1b]0;title\x07": r"\x1b]0;title\x07",
         "a\u202eb": r"a\u202eb", "c\x9b2Jd": r"c\x9b2Jd", "e\nf\tg": r"e\nf\tg"}
VALUE = b"\x1b[2Jv\xff\x9b\r\n\t\xe2\x80\xae[/nope] \xe6\xbc\xa2"
SHOWN = "\\x1b[2Jv\\xff\\x9b\\r\n\t\\u202e[/nope] 漢"
BOLD = re.compile(r"\x1b\[[01]m")  # the headings of a table
Show = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with EmbeddedCluster(1) as cluster:
        for name in NAMES:
            cluster.create_topic(name)
            cluster.produce(name, [{"key": "k\x1b", "value": VALUE, "headers": [("h\x1b[/nope]", b"\x07")]}])
        yield cluster.bootstrap_servers


@pytest.fixture
def show(address: str) -> Show:
    def run(*arguments: str) -> tuple[int, str]:
        """Exit code, and what the terminal would get."""
        terminal, side = pty.openpty()
        process = subprocess.Popen([sys.executable, "-m", "kconsumer", *arguments, "-b", address], stdin=side,
                                   stdout=side, stderr=side, env={**os.environ, "TERM": "xterm", "COLUMNS": "200"})
        os.close(side)
        out = b""
        try:
            while part := os.read(terminal, 4096):
                out += part
        except OSError:  # how Linux says that the other side is closed
            pass
        finally:
            os.close(terminal)
        return process.wait(timeout=30), out.decode().replace("\r\n", "\n")

    return run


def check(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", BOLD.sub("", text)), text


def test_topics(show: Show):
    code, out = show("topics")
    assert code == 0, out
    check(out)
    assert sorted(line.split()[0] for line in BOLD.sub("", out).splitlines()[1:]) == sorted(NAMES.values())


@pytest.mark.parametrize("command", ["topics", "watermarks"])
@pytest.mark.parametrize("name", NAMES)
def test_partitions(show: Show, command: str, name: str):
    code, out = show(command, name)
    assert code == 0, out
    check(out)
    assert BOLD.sub("", out).splitlines()[1].split()[:2] == [NAMES[name], "0"]


def test_records_as_text(show: Show):
    code, out = show("consume", "[/nope]")
    assert (code, out) == (0, SHOWN + "\n")
    code, out = show("consume", "\x1b]0;title\x07", "--format", "%t %k %h\n")
    assert (code, out) == (0, "\\x1b]0;title\\x07 k\\x1b h\\x1b[/nope]=\\x07\n")


def test_records_and_topics_as_json(show: Show):
    for name in NAMES:
        code, out = show("consume", name, "-o", "json")
        assert code == 0, out
        check(out)
        record = json.loads(out)
        assert (record["topic"], record["key"], record["headers"]) == (
            name, "k\x1b", [{"key": "h\x1b[/nope]", "value": "\x07"}])
        assert record["value"] == VALUE.decode("utf-8", "replace")
    code, out = show("topics", "-o", "json")
    check(out)
    assert {json.loads(line)["topic"] for line in out.splitlines()} == set(NAMES)


def test_errors(show: Show):
    code, out = show("consume", "\x1b]0;none\x07[/nope]")
    assert code == 1
    check(out)
    assert "topic \\x1b]0;none\\x07[/nope]: " in out


def test_bytes_are_not_escaped_without_a_terminal(address: str):
    done = subprocess.run([sys.executable, "-m", "kconsumer", "consume", "[/nope]", "-b", address], capture_output=True,
                          timeout=60, check=True)
    assert done.stdout == VALUE + b"\n"


def test_columns_of_a_table_stay_apart_in_a_pipe(address: str):
    done = subprocess.run([sys.executable, "-m", "kconsumer", "topics", "-b", address], capture_output=True, text=True,
                          timeout=60, check=True)
    assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()) == sorted(NAMES.values())
    assert all(line.count("\t") == 2 for line in done.stdout.splitlines())
