"""The words of the tree: the shape of every error message of the package, and the checker of prose itself.

Messages are read from the source. Of the Python package: every text passed to ``raise`` or to a function that makes an
error. Of the core, every string of two words (core_messages.py). tools/prose.py defines the idioms.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from core_messages import all_core_messages
from core_messages import messages as messages_of_the_core

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "src" / "kconsumer"
# Functions that make an error, and the position of the text among their arguments.
MAKERS = {"configuration_error": 0, "exception_for": 1, "fail": 0, "_wrong_option": 0}
# Beginning of a text → why it may begin with a capital, or end as it does.
EXCEPTIONS = {
    "Cannot {} offsets for message with error": "confluent_kafka's text, which its users' tests match",
    "Consumer closed": "confluent_kafka's text, which its users' tests match",
    "Erroneous state: ": "confluent_kafka's text, which its users' tests match",
    "Handle has been closed": "confluent_kafka's text, which its users' tests match",
    "StoreOffsets failed: ": "confluent_kafka's text, which its users' tests match",
    "Application maximum poll interval (": "confluent_kafka's text, which its users' tests match",
    "Subscribed topic not available: ": "confluent_kafka's text, which its users' tests match",
    "consumer poll timeout has expired.": "the reason that the Java client sends to the broker",
}
# Proper names and identifiers that a message may begin with.
NAMES = {"DeserializingConsumer", "EmbeddedCluster", "HTTP", "Java", "Kafka", "Maven", "PySpark", "SASL", "StorageTool",
         "ZooKeeper", "OAUTHBEARER", "Iceberg", "Delta", "Avro", "Protobuf", "JSON", "Arrow", "Spark", "Parquet",
         "Python", "OpenSSL", "TLS", "GSSAPI", "JoinGroup", "SyncGroup", "FindCoordinator", "ConsumerGroupHeartbeat",
         "MetadataResponse", "DecodedValues"}


MOST_WORDS = 25  # of a sentence


class Message(NamedTuple):
    place: str
    text: str  # {} for each value


def text_of(node: ast.expr) -> str | None:
    """The text of a string, an f-string or texts that are added up; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [text_of(node.left) or "{}", text_of(node.right) or "{}"]
        return "".join(sides)
    return None


def messages(source: str, name: str) -> Iterator[Message]:
    tree = ast.parse(source)
    raised = {id(node.exc) for node in ast.walk(tree) if isinstance(node, ast.Raise)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in MAKERS and id(node) not in raised:
            continue
        position = MAKERS.get(called, 0)
        text = text_of(node.args[position]) if len(node.args) > position else None
        if text and " " in text.strip():
            yield Message(f"{name}:{node.lineno}", text)


def all_messages() -> list[Message]:
    return [message for path in sorted(PACKAGE.rglob("*.py"))
            for message in messages(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))]


def every_message() -> list[Message]:
    return all_messages() + [Message(*found) for found in all_core_messages(ROOT)]


def wrong_shape(text: str) -> str | None:
    """Which rule a message breaks: lower case first, no full stop, no question, no blame, short sentences."""
    if text.startswith(tuple(EXCEPTIONS)):
        return None
    first = re.match(r"[\w.]+", text)
    if first and first[0][0].isupper() and first[0].partition(".")[0] not in NAMES:
        return "begins with a capital"
    if re.search(r"[^.]\.$|!$", text.rstrip()):
        return "ends with a full stop"
    if re.search(r"\b(please|sorry|oops|illegal|bad input|you (?:must|have to|should))\b", text, re.I):
        return "blames or begs"
    if re.search(r"\b(?:failed|error)$", text) and "{}" not in text:
        return "names no cause and no object"
    if re.search(r"\w\?(?:\W|$)", text):
        return "asks a question"
    if any(len(re.findall(r"[\w'/.-]*\w", sentence)) > MOST_WORDS for sentence in re.split(r"(?<=[.!?])\s", text)):
        return f"has a sentence of more than {MOST_WORDS} words"
    return None


@pytest.fixture(scope="module")
def prose():
    spec = importlib.util.spec_from_file_location("prose", ROOT / "tools" / "prose.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_message_has_the_shape():
    found = every_message()
    assert len(all_messages()) > 200 and len(found) > 700  # the collectors see them
    assert [f"{m.place}: {m.text!r} {what}" for m in found if (what := wrong_shape(m.text))] == []


def test_no_message_has_an_idiom(prose):
    found = [f"{m.place}: {m.text!r}: {advice}" for m in every_message()
             for rule, advice in prose.RULES.items() if rule.search(m.text)]
    assert found == []


def test_every_exception_is_used():
    texts = [message.text for message in every_message()]
    assert [start for start in EXCEPTIONS if not any(text.startswith(start) for text in texts)] == []


@pytest.mark.parametrize(("text", "shape"), [
    ("Invalid value {} for {}", "begins with a capital"), ("cannot read {}.", "ends with a full stop"),
    ("please give a host", "blames or begs"), ("the request failed", "names no cause and no object"),
    ("is this a {} listener?", "asks a question"), (" ".join(["word"] * 26), "has a sentence of more than 25 words"),
    ("invalid value {} for {}: expected host:port", None), ("Java {} or newer is needed", None), ("wait ...", None),
])
def test_the_shape(text, shape):
    assert wrong_shape(text) == shape


@pytest.mark.parametrize(("suffix", "source", "expected"), [
    (".pyx", 'raise ValueError("one text " f"of {two} parts")\n', ["one text of {} parts"]),
    (".pyx", '"""Two words."""\nx = b"a word"  # "not this"\ny = "word"\n', ["a word"]),
    (".pyx", 'detail.append(b" of ").append(to_string(n)).append(b" at")\nlog(b"%s: %lld ms")\n',
     [" of {} at", "{}: {} ms"]),
    (".pyx", 'cdef extern from *:\n    """\n    return "a reason";  // "not this"\n    """\n', ["a reason"]),
    (".hpp", 'return "number " + std::to_string(n) + " of many";  // "not this"\n', ["number {} of many"]),
    (".hpp", 'return ok ? "first text" : "second text";\n', ["first text", "second text"]),
])
def test_the_collector_of_the_core(suffix, source, expected):
    assert [message.text for message in messages_of_the_core(source, suffix, "a")] == expected


@pytest.mark.parametrize(("suffix", "source", "expected"), [
    (".md", "The broker is asked anew.\n", "'anew'"),
    (".md", "The client\nis told in\ntime.\n", "'is told'"),
    (".md", "It is no Kafka.\n", "'is no K'"),
    (".md", "Who is blocked ends decoding.\n", "'Who is'"),
    (".md", "Watermarks cannot be had here.\n", "'be had'"),
    (".md", " ".join(["word"] * 26) + ".\n", "a sentence of 26 words"),
    (".md", "One; " * 26 + "end.\n", "a sentence of 27 words"),
    (".md", "[a page](anew.md) of anew.\n", "'anew'"),
    (".md", "::: a.b\n    options:\n      members: [anew]\n\nIt begins anew.\n", "'anew'"),
    (".md", "## It begins anew\n", "'anew'"),
    (".md", "| What it does | anew |\n|---|---|\n", "'anew'"),
    (".md", "| " + "word " * 26 + "| two |\n", "a sentence of 26 words"),
    (".py", "x = 1  # nobody waits\n", "'nobody'"),
    (".py", "# a pair that\n# goes behind the other\n", "'behind'"),
    (".py", 'raise ValueError(f"those that {x} are left")\n', "'those that'"),
    (".pyx", 'def f():\n    """Whoever waits."""\n', "'Whoever waits'"),
    (".hpp", "// 1. somebody reads\n", "'somebody'"),
    (".java", "/** It is no list. */\n", "'is no l'"),
    (".go", "// It is told in time.\n", "'is told'"),
    (".sh", "# nobody waits\n", "'nobody'"),
    (".yml", "# nobody waits\n", "'nobody'"),
    (".svg", "<text class=\"anew\">nobody</text>\n", "'nobody'"),
    (".ipynb", "  \"It begins anew\\n\",\n", "'anew'"),
    (".yml", "label: What did it do, and what was it?\n", None),
    (".md", "There is no broker. It is no longer there. `is no Kafka` is code.\n", None),
    (".md", "| " + "word " * 20 + "| " + "word " * 20 + "|\n\n```\nanew\n```\n", None),
    (".md", "<!-- prose: allow anew: a quotation -->\nIt begins anew.\n", None),
    (".md", " ".join(["word"] * 25) + ".\n", None),
    (".md", " ".join(["`a`,"] * 30) + " `b`.\n", None),
    (".py", "x = 'told' or told_by\n", None),
])
def test_the_checker_of_prose(prose, tmp_path, suffix, source, expected):
    found = [what for _, what in prose.findings(tmp_path / f"a{suffix}", source)]
    assert [expected in what for what in found] == ([True] if expected else []), found


def test_every_file_of_the_repository_is_checked_or_left_out_with_a_reason(prose):
    checked = {path.relative_to(ROOT).as_posix() for path in prose.files()}
    assert {"README.md", "CHANGELOG.md", "Makefile", "setup.py", "docker/Dockerfile", "recipe/recipe.yaml",
            ".github/workflows/test.yml", "examples/explore_topic.ipynb", "tools/audit.sh",
            "tests/java/GroupMember.java", "tests/unit/python/test_import.py",
            "src/pyspark_kconsumer/__init__.py"} <= checked
    assert all(len(reason.split()) > 1 for reason in prose.LEFT_OUT.values())


def test_an_exception_without_a_reason_or_for_another_word_does_not_count(prose, tmp_path):
    for mark in ("prose: allow anew:", "prose: allow behind: a reason"):
        assert list(prose.findings(tmp_path / "a.md", f"<!-- {mark} -->\nIt begins anew.\n"))
