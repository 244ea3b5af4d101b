"""The table of properties against the Java consumer's own definitions, read from its jar."""

import subprocess
import sys
from pathlib import Path

import java_peer
import pytest

sys.path.append(str(Path(__file__).parents[1]))
from accepted_properties import HARMLESS, unproved

from kconsumer.config.properties import BY_NAME, PROPERTIES
from kconsumer.config.property import ABSENT, SAME, Status
from kconsumer.config.values import read_value

UNSET = {None, "", ()}


@pytest.fixture(scope="module")
def java():
    """The names of ConsumerConfig, without the internal ones, each with its default as text, and its documentation."""
    jars = ":".join(map(str, java_peer.fetch_jars()))
    source = Path(__file__).with_name("ConfigPeer.java")
    done = subprocess.run(["java", "-cp", jars, source], capture_output=True, text=True, check=True, timeout=60)
    found = {name: (default, text) for name, default, text in (line.split("\t") for line in done.stdout.splitlines())}
    assert len(found) > 100
    return found


def test_every_property_of_the_java_consumer_is_in_the_table(java):
    assert [name for name in java if name not in BY_NAME] == []
    known = {BY_NAME[name][0].name for name in java}
    assert known == {prop.name for prop in PROPERTIES if prop.java_default is not ABSENT}


def test_the_defaults_of_honoured_properties_are_the_java_consumers(java):
    wrong = {}
    for name, (text, _) in java.items():
        prop, alias = BY_NAME[name]
        told = prop.default if prop.java_default is SAME else prop.java_default
        read = read_value(prop, name, text, alias) if text else None
        if prop.status is Status.HONOURED and told != read and not {told, read} <= UNSET:
            wrong[name] = (told, text)
    assert wrong == {}


def test_each_other_property_says_why_it_has_no_effect_or_is_refused(java):
    for name in java:
        prop = BY_NAME[name][0]
        assert prop.status is Status.HONOURED or prop.reason, name


def test_each_accepted_property_has_a_proof_that_this_is_harmless(java):
    only_java = {name: text for name, (_, text) in java.items() if BY_NAME[name][0].librdkafka_default is ABSENT}
    assert only_java.keys() & HARMLESS.keys()
    assert unproved(only_java) == []
