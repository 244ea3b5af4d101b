"""The grammar of properties files, which is that of java.util.Properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.cli.properties_file import Entry, PropertiesError, read_entries


@pytest.mark.parametrize(("text", "name", "value"), [
    ("a=b", "a", "b"),
    ("a = b", "a", "b"),
    ("a: b", "a", "b"),
    ("a b", "a", "b"),
    ("a", "a", ""),
    ("a=", "a", ""),
    ("  a=b", "a", "b"),
    ("a==b", "a", "=b"),
    ("a= :b", "a", ":b"),
    ("a=b ", "a", "b "),  # Java keeps it
    ("a=b # c", "a", "b # c"),
    (r"a\=b=c", "a=b", "c"),
    (r"a\ b\:=c", "a b:", "c"),
    (r"a=\ b", "a", " b"),
    (r"a=b\\c", "a", r"b\c"),
    (r"a=\t\n\r\f\#\!\"\;", "a", "\t\n\r\f#!\";"),
    ("a=\\u00e9\\u20AC", "a", "é€"),
    ("a=\\ud83d\\ude00", "a", "😀"),
    ("a=é漢😀", "a", "é漢😀"),
    ("a=b\\\n   c", "a", "bc"),
    ("a=b\\\r\nc", "a", "bc"),
    ("a=b\\", "a", "b"),
    ("a\\\n=b", "a", "b"),
    ("a=1\\\n# no comment", "a", "1# no comment"),
    ('j=org.Login required \\\n  username="u" \\\n  password="p\\\\"x";', "j",
     'org.Login required username="u" password="p\\"x";'),
])
def test_a_line(text: str, name: str, value: str):
    assert [(entry.name, entry.value) for entry in read_entries(text)] == [(name, value)]


def test_lines_are_counted_and_comments_left_out():
    text = "# one\n\n! two\r\n  # three\ra=1\nb=2\\\n\\\n3\nc=4"
    assert read_entries(text) == [Entry(5, "a", "1"), Entry(6, "b", "23"), Entry(9, "c", "4")]


@pytest.mark.parametrize(("text", "said"), [
    ("x=1\n=secret", "line 2: expected name=value"),
    (": secret", "line 1: expected name=value"),
    (r"p=se\cret", "line 1: unknown escape of a letter"),
    (r"p=\u12x4secret", "line 1: unknown escape of a letter"),
    ("x=1\np=\\\n  se\\cret", "line 2: unknown escape of a letter"),
])
def test_an_error_names_the_line_and_hides_the_value(text: str, said: str):
    with pytest.raises(PropertiesError) as caught:
        read_entries(text)
    assert said in str(caught.value) and "cret" not in str(caught.value)


def written(text: str, also: str = "") -> str:
    special = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
    return "".join(special.get(c) or ("\\" + c if c in " #!=:" + also else c) for c in text)


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
                          st.text(st.characters(exclude_categories=["Cs"])))))
def test_any_escaped_text_is_read(pairs: list[tuple[str, str]]):
    text = "\n".join(f"{written(name)} = {written(value)}" for name, value in pairs)
    assert [(entry.name, entry.value) for entry in read_entries(text)] == pairs


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str):
    try:
        read_entries(text)
    except PropertiesError:
        return
