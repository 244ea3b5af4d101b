"""The committed codecs are what the generator writes from the pinned jar."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_protocol", ROOT / "tools" / "generate_protocol.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def jar(generator):
    if not (ROOT / "build" / "kafka-clients" / f"kafka-clients-{generator.KAFKA_VERSION}.jar").exists():
        assert shutil.which("mvn"), "needs Maven (make setup)"
    return generator.pinned_jar()


@pytest.fixture
def check(generator, jar, monkeypatch, tmp_path):
    """Runs --check over a copy of the protocol layer."""
    shutil.copytree(ROOT / generator.PROTOCOL, tmp_path / generator.PROTOCOL)
    monkeypatch.setattr(generator, "ROOT", tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["generate_protocol.py", "--jar", str(jar), *arguments])
        return generator.main()

    return run


@pytest.mark.kafka
def test_generating_again_changes_nothing(check):
    assert check("--check") == 0


@pytest.mark.kafka
def test_a_hand_edit_is_found_and_undone(check, generator, tmp_path, capsys):
    edited = tmp_path / generator.PROTOCOL / "messages" / "fetch.hpp"
    before = edited.read_bytes()
    edited.write_bytes(before.replace(b"max_version = 18", b"max_version = 19"))
    assert check("--check") == 1
    assert "messages/fetch.hpp differs" in capsys.readouterr().err
    assert check() == 0
    assert edited.read_bytes() == before


@pytest.mark.kafka
def test_a_file_that_nothing_generates_is_found(check, generator, tmp_path, capsys):
    (tmp_path / generator.PROTOCOL / "messages" / "produce.hpp").write_text("// left behind\n")
    assert check("--check") == 1
    assert "messages/produce.hpp differs" in capsys.readouterr().err


@pytest.mark.kafka
def test_no_prose_of_the_schemas_is_copied(generator, jar):
    assert not [path for path, text in generator.generate(jar).items() if "about" in text]


def test_another_version_of_the_jar_is_refused(generator, tmp_path):
    import zipfile

    other = tmp_path / "kafka-clients-3.9.1.jar"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("kafka/kafka-version.properties", "version=3.9.1\n")
    with pytest.raises(SystemExit, match="is not kafka-clients"):
        generator.generate(other)


@pytest.mark.parametrize(("field", "complaint"), [
    ({"name": "Operator", "type": "int32", "versions": "0+"}, "reserved"),
    ({"name": "Grid", "type": "[][]int32", "versions": "0+"}, "type"),
    ({"name": "Later", "type": "int32", "versions": "0+", "taggedVersions": "1+", "tag": 0}, "tagged in some versions"),
    ({"name": "Size", "type": "string", "versions": "0+", "default": "big"}, "default"),
    ({"name": "Size", "type": "int32", "versions": "some"}, "versions"),
])
def test_a_schema_with_something_unknown_is_refused(generator, field, complaint):
    schema = {"name": "TestRequest", "type": "request", "apiKey": 1, "validVersions": "0-1",
              "flexibleVersions": "0+", "fields": [field]}
    with pytest.raises(generator.SchemaError, match=complaint):
        generator.Parser(schema)
