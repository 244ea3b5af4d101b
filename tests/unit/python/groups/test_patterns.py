"""The errors for topic patterns that a broker's RE2 would refuse."""

import re

import pytest

from kconsumer.groups.patterns import re2_objection


@pytest.mark.parametrize("pattern", [
    "^t", "^t.*", "^(a|b)$", "^[a-z]+[.]x", "^[]a]b", "^[^]a]b", "^[[:alpha:]_]+$", r"^a\.b\\", "^a{2}b{1,}c{3,1000}",
    "^a*?b+?c??d{2}?", "^(?:a|b)", "^(?i)a", "^(?P<name>a)", "^a{", "^a{x}b", "^{,3}", r"^\Q(*\E$", r"^\Q(*",
    r"^\d\w\pL", "^a+b*c?", r"^[\]]x", "^a{1}b{2}", "^é+",
])
def test_a_pattern_that_re2_accepts_has_no_objection(pattern):
    assert re2_objection(pattern) is None


@pytest.mark.parametrize(("pattern", "why"), [
    (r"^(a)\1", "back-reference"), (r"^\<a", "word boundary"), (r"^a\>", "word boundary"), (r"^a\'", "text boundary"),
    ("^(?=a)", "lookahead"), ("^(?!a).*", "lookahead"), ("^a(?<=a)", "lookbehind"), ("^a(?<!b)", "lookbehind"),
    ("^(?>a)", "atomic"), ("^(?P<n>a)(?P=n)", "back-reference"), ("^(?(1)a)", "conditional"),
    ("^[[.a.]]", "collating"), ("^[[=a=]]", "equivalence"), ("^a**", "a repeated repetition"),
    ("^a*+", "a repeated repetition"), ("^a{2}{3}", "a repeated repetition"), ("^a{1001}", "1000"),
    ("^a{2,1001}", "1000"), ("^(a", "not closed"), ("^a)", "not open"), ("^[a", "not closed"), ("^[]", "not closed"),
    ("^a\\", "backslash"),
])
def test_pattern_features_that_re2_lacks_are_named(pattern, why):
    assert re.search(re.escape(why), re2_objection(pattern))
