"""Text of brokers and producers in log lines and on terminals."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer import Consumer, KafkaError
from kconsumer.errors.printable import json_text, printable

STEERS = {"Cc", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(("text", "shown"), [
    ("plain [/nope] é漢😀", "plain [/nope] é漢😀"), ("a\nb\tc\r", r"a\nb\tc\r"), ("\x1b[2J", r"\x1b[2J"),
    ("\x00\x7f\x9b", r"\x00\x7f\x9b"), ("\u202e\u2066\ufeff\u2028", r"\u202e\u2066\ufeff\u2028"), ("\udcff", r"\xff"),
    ("\ud800", r"\ud800"), ("\U000e0041", r"\U000e0041"),
])
def test_printable(text: str, shown: str):
    assert printable(text) == shown


def test_printable_keeps_the_given_characters():
    assert printable("a\n\t\x1b", keep="\n\t") == "a\n\t\\x1b"


@given(st.text())
def test_no_control_character_is_left(text: str):
    for shown in (printable(text), json_text(text)):
        assert not [char for char in shown if unicodedata.category(char) in STEERS]
        assert not [char for char in shown if unicodedata.bidirectional(char) in
                    ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")]


@given(st.recursive(st.text(st.characters(exclude_categories=["Cs"])) | st.integers() | st.none(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])),
                                                                    inner)))
def test_json_text_round_trips(value: object):
    assert json.loads(json_text(value)) == value


def test_json_is_unicode():
    json_text("a\udcffb").encode("utf-8")
    assert json.loads(json_text("a\udcffb")) == "a\ufffdb"


def test_log_lines_of_a_consumer(caplog: pytest.LogCaptureFixture):
    with Consumer({"bootstrap.servers": "127.0.0.1:1", "client.id": "me"}) as consumer:
        caplog.clear()
        consumer._on_log(4, "FAIL", "broker\x1b[2J\nroot: all is well\u202e")
        consumer._on_error(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "topic \x1b]0;x\x07\n"))
    lines = [record.getMessage() for record in caplog.records if record.name == "kconsumer"]
    assert rf"FAIL [{consumer._settings.instance_name}] broker\x1b[2J\nroot: all is well\u202e" in lines
    assert r"topic \x1b]0;x\x07\n" in lines
