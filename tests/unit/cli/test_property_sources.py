"""Properties from files, environment and arguments: which one counts, and what is said about secrets."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kconsumer.cli import property_sources
from kconsumer.cli.app import cli
from kconsumer.cli.property_sources import gathered
from kconsumer.config.properties import BY_NAME

BROKERS = {"bootstrap.servers": "b:1"}


def file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "client.properties"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_later_sources_count(tmp_path: Path):
    path = file(tmp_path, "bootstrap.servers=file:1\nclient.id=file\nclient.rack=file\nfetch.min.bytes=1\n")
    environment = {"KCONSUMER_CLIENT_ID": "environment", "KCONSUMER_CLIENT_RACK": "environment"}
    assert gathered([path], environment, {"client.rack": "argument"}) == {
        "bootstrap.servers": "file:1", "client.id": "environment", "client.rack": "argument", "fetch.min.bytes": "1"}


def test_later_files_count(tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("bootstrap.servers=a:1\nclient.id=a")
    second.write_text("bootstrap.servers=b:1")
    assert gathered([first, second], {}, {}) == {"bootstrap.servers": "b:1", "client.id": "a"}


def test_one_property_under_two_names_counts_once(tmp_path: Path):
    path = file(tmp_path, "sasl.mechanism=PLAIN\nfetch.wait.max.ms=1\nmetadata.broker.list=file:1")
    found = gathered([path], {"KCONSUMER_SASL_MECHANISMS": "SCRAM-SHA-256"}, {"fetch.max.wait.ms": "2", **BROKERS})
    assert found == {"sasl.mechanisms": "SCRAM-SHA-256", "fetch.max.wait.ms": "2", **BROKERS}


def test_properties_set_by_the_command_are_ignored_in_files_and_environment(tmp_path: Path):
    path = file(tmp_path, "enable.auto.commit=true\nauto.offset.reset=latest\ntopic.auto.offset.reset=latest\n"
                          "key.deserializer=org.apache.kafka.common.serialization.StringDeserializer\ngroup.id=g\n")
    environment = {"KCONSUMER_ENABLE_AUTO_COMMIT": "true"}
    assert gathered([path], environment, BROKERS) == {"group.id": "g", **BROKERS}
    given = {"auto.offset.reset": "earliest", **BROKERS}
    assert gathered([path], environment, given)["auto.offset.reset"] == "earliest"


@pytest.mark.parametrize("variable", ["KCONSUMER_DEBUG", "KCONSUMER_JOBS", "KCONSUMER_ERROR_CB", "KCONSUMER_NONSENSE",
                                      "SASL_PASSWORD", "KCONSUMER_LOGGER", "KCONSUMER_TESTING", "KCONSUMER_RACK",
                                      "KCONSUMER_SERVICE_HOST", "KCONSUMER_PORT_9092_TCP_ADDR", "KCONSUMER_SOURCES"])
def test_variables_that_do_not_name_a_property(variable: str, capsys: pytest.CaptureFixture[str]):
    assert gathered([], {variable: "x"}, BROKERS) == BROKERS
    assert said(capsys) == ""


@pytest.mark.parametrize(("variable", "meant"), [
    ("KCONSUMER_GRUOP_ID", "KCONSUMER_GROUP_ID"), ("KCONSUMER_BOOTSTRAP_SERVER", "KCONSUMER_BOOTSTRAP_SERVERS"),
    ("KCONSUMER_SASL_PASWORD", "KCONSUMER_SASL_PASSWORD"),
])
def test_a_variable_with_a_misspelt_property_is_warned_about(
    variable: str, meant: str, capsys: pytest.CaptureFixture[str]
):
    assert gathered([], {variable: "hunter2"}, BROKERS) == BROKERS
    assert said(capsys) == (f"kconsumer: warning: ignoring {variable}: no property has this name: did you mean "
                            f"'{meant}'?\n")
    gathered([], {variable: "", meant: "x"}, BROKERS)
    assert said(capsys) == ""


def test_every_variable_is_one_property():
    names = [name for name in BY_NAME if name in property_sources._VARIABLES.values()]
    variables = Counter(name.replace(".", "_").upper() for name in names)
    assert not [variable for variable, count in variables.items() if count > 1]
    assert property_sources._VARIABLES["KCONSUMER_SASL_PASSWORD"] == "sasl.password"
    assert property_sources._VARIABLES["KCONSUMER_BOOTSTRAP_SERVERS"] == "bootstrap.servers"


def test_an_empty_variable_is_not_set():
    assert gathered([], {"KCONSUMER_SASL_PASSWORD": ""}, BROKERS) == BROKERS


def test_brokers_must_come_from_somewhere(tmp_path: Path):
    with pytest.raises(click.UsageError, match="KCONSUMER_BOOTSTRAP_SERVERS"):
        gathered([], {}, {})
    assert gathered([], {"KCONSUMER_BOOTSTRAP_SERVERS": "e:1"}, {}) == {"bootstrap.servers": "e:1"}


@pytest.mark.parametrize(("text", "said"), [
    ("bootstrap.servers=b:1\nfetch.min.byts=1", "line 2: unknown configuration property 'fetch.min.byts'"),
    ("group.idd=g", "line 1: unknown configuration property 'group.idd': did you mean 'group.id'? "
                    "(see Configuration at https://kconsumer.github.io/kconsumer/)"),
    ("=x", "line 1: expected name=value"),
    (r"sasl.password=hun\ter2\x", "line 1: unknown escape of a letter"),
])
def test_a_file_that_is_wrong(tmp_path: Path, text: str, said: str):
    with pytest.raises(click.UsageError) as caught:
        gathered([file(tmp_path, text)], {}, {})
    assert said in caught.value.message and "client.properties" in caught.value.message
    assert "hun" not in caught.value.message


def test_a_file_that_cannot_be_read(tmp_path: Path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(click.UsageError, match=r"cannot read .*(No such file|Is a directory)"):
            gathered([path], {}, BROKERS)
    latin = tmp_path / "latin"
    latin.write_bytes(b"sasl.password=\xfc")
    with pytest.raises(click.UsageError, match="not UTF-8"):
        gathered([latin], {}, BROKERS)


# ---- secrets

def said(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize("name", [
    "sasl.password", "ssl.key.password", "sasl.jaas.config", "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
])
def test_a_secret_in_the_arguments_is_warned_about(capsys: pytest.CaptureFixture[str], name: str):
    assert gathered([], {}, {name: "hunter2", **BROKERS})[name] == "hunter2"
    err = said(capsys)
    assert err.count("\n") == 1 and f"can read {name} in the list of processes" in err and f"-X {name}=@FILE" in err
    assert "hunter2" not in err


def test_other_properties_are_not_warned_about(capsys: pytest.CaptureFixture[str]):
    assert gathered([], {"KCONSUMER_SASL_PASSWORD": "@x"}, {"client.id": "@x", **BROKERS}) == {
        "sasl.password": "@x", "client.id": "@x", **BROKERS}  # only secrets of -X are read from files
    assert said(capsys) == ""


@pytest.mark.parametrize("content", ["hunter2", "hunter2\n", "hunter2\r\n"])
def test_a_secret_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str):
    path = file(tmp_path, "")
    path.write_bytes(content.encode())
    assert gathered([], {}, {"sasl.password": f"@{path}", **BROKERS})["sasl.password"] == "hunter2"
    assert said(capsys) == ""


def test_a_secret_that_begins_with_an_at_sign(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert gathered([], {}, {"sasl.password": "@@x", **BROKERS})["sasl.password"] == "@x"
    assert "list of processes" in said(capsys)
    assert gathered([file(tmp_path, "sasl.password=@x")], {}, BROKERS)["sasl.password"] == "@x"


def test_a_file_of_a_secret_that_is_not_there():
    with pytest.raises(click.UsageError, match="cannot read /not/there: No such file"):
        gathered([], {}, {"sasl.password": "@/not/there", **BROKERS})


@pytest.mark.parametrize(("mode", "warning"), [
    (0o600, ""), (0o400, ""), (0o700, ""),
    (0o640, "its group can read it (mode 640): chmod 600 "),
    (0o644, "every user of this machine can read it (mode 644): chmod 600 "),
    (0o664, "every user of this machine can read it (mode 664): chmod 600 "),
])
@pytest.mark.parametrize("how", ["config", "secret"])
def test_a_secret_that_others_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int, warning: str, how: str
):
    if how == "config":
        gathered([file(tmp_path, "sasl.password=hunter2", mode)], {}, BROKERS)
    else:
        gathered([], {}, {"sasl.password": f"@{file(tmp_path, 'hunter2', mode)}", **BROKERS})
    err = said(capsys)
    assert (warning in err) if warning else err == ""
    assert err.count("\n") == bool(warning) and "hunter2" not in err


@pytest.mark.parametrize("mode", [0o602, 0o666, 0o777])
def test_a_secret_that_others_can_write_is_refused(tmp_path: Path, mode: int):
    path = file(tmp_path, "sasl.password=hunter2", mode)
    for files, given in (([path], BROKERS), ([], {"sasl.password": f"@{path}", **BROKERS})):
        with pytest.raises(click.UsageError, match="every user of this machine can write it"):
            gathered(files, {}, given)


def test_a_file_without_secrets_may_be_for_everyone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    gathered([file(tmp_path, "client.id=x", 0o666)], {}, BROKERS)
    assert said(capsys) == ""


def test_a_pipe_has_no_permissions_to_check(capsys: pytest.CaptureFixture[str]):
    reading, writing = os.pipe()
    os.write(writing, b"sasl.password=hunter2\n")
    os.close(writing)
    try:
        assert gathered([Path(f"/dev/fd/{reading}")], {}, BROKERS)["sasl.password"] == "hunter2"
    finally:
        os.close(reading)
    assert said(capsys) == ""


# ---- as options

@pytest.mark.parametrize("command", [["topics"], ["watermarks", "t"], ["consume", "t"],
                                     ["ingest", "t", "-O", "out"]])
def test_every_command_has_them(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KCONSUMER_BOOTSTRAP_SERVERS", raising=False)
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 2 and "no brokers: set -b/--bootstrap-servers" in result.stderr
    path = file(tmp_path, "bootstrap.servers=127.0.0.1:1\nnonsense=1")
    result = CliRunner().invoke(cli, [*command, "-F", str(path)])
    assert result.exit_code == 2 and "line 2: unknown configuration property 'nonsense'" in result.stderr
    result = CliRunner().invoke(cli, [*command, "-b", "127.0.0.1:1", "-X", "nonsense"])
    assert result.exit_code == 2 and "'nonsense' is not PROPERTY=VALUE" in result.stderr


def test_arguments_reach_the_consumer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KCONSUMER_SECURITY_PROTOCOL", "sasl_plaintext")
    path = file(tmp_path, "bootstrap.servers: 127.0.0.1:1\nsasl.mechanism=PLAIN\nsasl.jaas.config="
                          "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\";")
    result = CliRunner().invoke(cli, ["topics", "-F", str(path)])
    assert result.exit_code == 2 and "sasl.mechanism=PLAIN needs sasl.password" in result.stderr
    monkeypatch.setenv("KCONSUMER_SASL_PASSWORD", "p")
    result = CliRunner().invoke(cli, ["topics", "-F", str(path)])
    assert result.exit_code == 1 and "Connection refused" in result.stderr
