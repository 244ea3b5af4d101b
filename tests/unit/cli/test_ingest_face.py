"""`kconsumer ingest` as far as it goes without Spark: its help, its usage errors, and the extra that is missing."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from kconsumer.cli import direct_ingesting, ingest_progress
from kconsumer.cli.app import cli
from kconsumer.cli.ingest_target import target

NEEDED = ["ingest", "flights", "-b", "localhost:1", "-O", "out"]
WITHOUT_PYSPARK = "import sys; sys.modules['pyspark'] = None; "


def test_help_needs_no_spark():
    code = WITHOUT_PYSPARK + "from kconsumer.cli import main; main(['ingest', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--take-over" in done.stdout


def test_a_missing_extra_is_named():
    code = WITHOUT_PYSPARK + f"from kconsumer.cli import main; main({[*NEEDED, '--runner', 'spark']!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert "--runner spark needs PySpark" in last and "pip install 'kconsumer[spark]'" in last


@pytest.mark.parametrize("program", ["import kconsumer.ingest", (
    "from kconsumer.cli import main; main(['ingest', 't', '-b', 'localhost:1', '-O', 'out', '--runner', 'local'])")])
def test_ingestion_without_pyarrow_names_the_extra(program: str):
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.modules['pyarrow'] = None; {program}"],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert "kconsumer.ingest needs pyarrow" in last and last.endswith("pip install 'kconsumer[arrow]'")
    assert last.count("needs pyarrow") == 1


@pytest.mark.parametrize(("arguments", "said"), [
    (["--kafka", "nonsense"], "'nonsense' is not PROPERTY=VALUE"),
    (["--value", "xml"], "'xml' is not one of"),
    (["--schema", "@not-there"], "not-there"),
    (["--descriptors", "not-there"], "not-there"),
])
def test_usage(arguments: list[str], said: str):
    result = CliRunner().invoke(cli, [*NEEDED, *arguments])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(("arguments", "said"), [
    (["--engine", "structured-streaming"], "--engine structured-streaming was removed with the engine "
                                           "structured-streaming: remove --engine; the table keeps the progress"),
    (["--checkpoint", "state"], "--checkpoint was removed with the engine structured-streaming: the table keeps the "
                                "progress; continue an existing checkpoint with --take-over CHECKPOINT"),
    (["--select", "value"], "--select was removed with the engine structured-streaming: write such a query around"),
    (["--sink-option", "a=b"], "--sink-option was removed with the engine structured-streaming: write such a query"),
    (["--sample", "5"], "--sample was removed with the engine structured-streaming: set the schema with --schema"),
])
def test_options_of_the_former_engine_name_the_alternative(arguments: list[str], said: str):
    assert said in usage_error("t", *arguments)


def test_options_of_the_former_engine_are_not_in_the_help():
    shown = CliRunner().invoke(cli, ["ingest", "--help"]).output
    assert not {"--engine", "--checkpoint", "--select", "--sink-option", "--sample"} & set(shown.split())


def test_the_remaining_engine_may_be_named():
    assert "value json needs a schema" in usage_error("t", "--engine", "direct", "--runner", "local", "--value", "json")


@pytest.mark.parametrize(("arguments", "said"), [
    (["--conf", "spark.master=local", "--runner", "local"], "set --runner spark"),
    (["--target-file-size", "128X"], "'128X' is not a size"),
])
def test_options_of_a_runner_and_sizes(arguments: list[str], said: str):
    assert said in usage_error("t", *arguments)


@pytest.mark.parametrize(("arguments", "said"), [
    (["t", "--value", "json"], "value json needs a schema"),
    (["t", "--value", "json", "--schema", "a INTERVAL"], "expected a type of Spark at character 3"),
    (["t", "-o", "deltaa"], "invalid format 'deltaa'"),
    (["t", "-X", "group.idd=a"], "group.idd"),
    (["t", "--trigger", "now"], "invalid value 'now' for trigger"),
    (["t", "--metadata", "foo"], "unknown column 'foo'"),
    (["t", "--codec", "foo"], "invalid codec 'foo'"),
    (["t", "--from", "start"], "'start' is not beginning, end or offsets such as {"),
    (["t", "--from", '{"t": 1}'], """'{"t": 1}' is not beginning, end"""),
    ([], "set either topics or a pattern"),
])
def test_an_invalid_option_or_property_is_wrong_usage(arguments: list[str], said: str):
    assert said in usage_error(*arguments, "--runner", "local")


def test_an_error_of_deltalake_is_one_line_without_its_colours(monkeypatch: pytest.MonkeyPatch):
    def fail(properties: object) -> None:
        raise OSError("Generic error\n      \x1b[31m↳\x1b[0m Unable to create dir out/_delta_log\n")

    monkeypatch.setattr(direct_ingesting, "check_brokers", fail)
    result = CliRunner().invoke(cli, ["ingest", "t", "-b", "localhost:1", "-O", "out", "--runner", "local"])
    assert result.exit_code == 1
    assert result.output == ("kconsumer: Generic error ↳ Unable to create dir out/_delta_log: check that kconsumer can "
                             "write to -O, --dead-letter and --metrics\n")


def usage_error(*arguments: str) -> str:
    """Return the message of a command that ends with exit code 2."""
    result = CliRunner().invoke(cli, ["ingest", "-b", "localhost:1", "-O", "out", *arguments])
    assert result.exit_code == 2, result.output
    assert "Usage: cli ingest " in result.output
    return " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(("number", "shown"), [
    (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_345_678, "12.3 MB"), (5e9, "5.0 GB")])
def test_sizes(number: float, shown: str):
    assert ingest_progress.size(number) == shown


class Metrics:
    """Stands for TriggerMetrics, which needs PySpark's package."""

    batch = 7
    rows = 1000
    bytes = 50_000
    bad = 3
    rows_per_second = 2000.0
    bytes_per_second = 100_000.0
    lag = 12_345
    total_rows = 4000
    table = None
    first_bad: str | None = "t [0] at offset 5: not valid JSON (byte 0 of the value)"

    def as_json(self) -> str:
        return '{"batch": 7}'


def test_quiet_leaves_only_the_warning_of_bad_records(capsys: pytest.CaptureFixture[str]):
    with ingest_progress.IngestProgress(True, None, ["out"]) as progress:
        progress.trigger(Metrics())  # type: ignore[arg-type]
    assert capsys.readouterr().err == (
        "kconsumer: warning: the values of 3 of 4,000 records could not be decoded, see column bad_record; the first: "
        "t [0] at offset 5: not valid JSON (byte 0 of the value)\n")


def test_the_warning_of_bad_records_names_their_folder(capsys: pytest.CaptureFixture[str]):
    with ingest_progress.IngestProgress(True, None, ["out"], "letters") as progress:
        metrics = Metrics()
        metrics.first_bad = None
        progress.trigger(metrics)  # type: ignore[arg-type]
    assert capsys.readouterr().err == (
        "kconsumer: warning: the values of 3 of 4,000 records could not be decoded, see the files in letters\n")


def test_without_a_terminal_the_totals_and_the_tables_are_a_line_at_the_end(capsys: pytest.CaptureFixture[str]):
    with ingest_progress.IngestProgress(False, None, ["out/a", "out/b", "out/c", "out/d", "out/e"]) as progress:
        progress.trigger(Metrics())  # type: ignore[arg-type]
        progress.look()
        assert capsys.readouterr() == ("", "")
    out, err = capsys.readouterr()
    summary, warning = err.splitlines()
    assert summary.startswith("kconsumer: 4,000 records, 50.0 kB in 1 trigger and ")
    assert summary.endswith(", lag 12,345, 3 bad; written to out/a, out/b, out/c and 2 more tables")
    assert warning.startswith("kconsumer: warning: ") and out == ""


@pytest.mark.parametrize(("stopped", "said"), [
    (False, "no new records for out"), (True, "stopped before the first trigger of out")])
def test_without_a_trigger_there_is_a_line_too(capsys: pytest.CaptureFixture[str], stopped: bool, said: str):
    with ingest_progress.IngestProgress(False, None, ["out"]) as progress:
        if stopped:
            progress.ending()
    assert capsys.readouterr().err == f"kconsumer: {said}\n"


def test_a_run_that_fails_at_once_has_no_totals(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(KeyError), ingest_progress.IngestProgress(False, None, ["out"]):
        raise KeyError
    assert capsys.readouterr().err == ""


def test_a_log_gets_a_line_of_progress_once_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(ingest_progress, "time", clock)
    with ingest_progress.IngestProgress(False, None, ["out"]) as progress:
        for clock.now in (1030.0, 1061.0, 1090.0):
            progress.trigger(Metrics())  # type: ignore[arg-type]
        assert capsys.readouterr().err == (
            "kconsumer: trigger 7: 1,000 records, 2,000/s, 100.0 kB/s; 4,000 in all, lag 12,345, 6 bad\n")
        clock.now = 1122.0
        progress.look()
        assert capsys.readouterr().err.count("\n") == 1


def test_progress(tmp_path: Path):
    path = tmp_path / "metrics"
    path.write_text("{}\n")
    with ingest_progress.IngestProgress(False, str(path), ["out"]) as progress:
        assert progress.line().startswith("waiting for the first trigger")
        progress.trigger(Metrics())  # type: ignore[arg-type]
        assert progress.line() == "trigger 7: 1,000 records, 2,000/s, 100.0 kB/s; 4,000 in all, lag 12,345, 3 bad"
        assert progress.summary().startswith("4,000 records, 50.0 kB in 1 trigger and ")
        progress.ending()
        assert progress.line().endswith("; ends after this trigger")
    assert path.read_text() == '{}\n{"batch": 7}\n'  # appended


def test_metrics_on_standard_output(monkeypatch: pytest.MonkeyPatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with ingest_progress.IngestProgress(False, "-", ["out"]) as progress:
        progress.trigger(Metrics())  # type: ignore[arg-type]
    assert out.getvalue() == '{"batch": 7}\n'


def test_the_folder_of_the_metrics_is_made(tmp_path: Path):
    path = tmp_path / "no" / "such" / "file"
    with ingest_progress.IngestProgress(False, str(path), ["out"]) as progress:
        progress.trigger(Metrics())  # type: ignore[arg-type]
    assert path.read_text() == '{"batch": 7}\n'


def test_a_file_of_metrics_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError), ingest_progress.IngestProgress(
            False, str(tmp_path / "file" / "metrics"), ["out"]):
        pass


DEPRECATED_PATH = "-o PATH is deprecated"
DEPRECATED_FORMAT = "--format is deprecated"


@pytest.mark.parametrize(("given", "found", "said"), [
    ((None, "out", None), ("parquet", "out"), []),
    (("delta", "out", None), ("delta", "out"), []),
    ((None, None, None), ("parquet", None), []),  # the command says that there is no path
    # As the options were before: -o was the path, --format the format.
    (("out", None, None), ("parquet", "out"), [DEPRECATED_PATH]),
    (("out", None, "delta"), ("delta", "out"), [DEPRECATED_FORMAT, DEPRECATED_PATH]),
    (("delta", None, "delta"), ("delta", "delta"), [DEPRECATED_FORMAT, DEPRECATED_PATH]),
    ((None, "out", "json"), ("json", "out"), [DEPRECATED_FORMAT]),
])
def test_format_and_path_now_and_before(given, found, said, capsys):
    """Given: -o, -O, and the former --format."""
    assert target(*given) == found
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(said) and all(text in line for text, line in zip(said, lines, strict=True))


@pytest.mark.parametrize(("output", "path", "old_format", "said"), [
    ("delta", None, None, "set -O PATH"),
    ("delta", "out", "json", "-o and --format both set the format"),
])
def test_a_format_without_a_path_is_not_taken_for_one(output, path, old_format, said):
    with pytest.raises(click.UsageError, match=said):
        target(output, path, old_format)


def test_topics_and_brokers_under_either_name(capsys, monkeypatch):
    """The options of the run are the same."""
    made = []
    monkeypatch.setattr(direct_ingesting, "check_brokers", lambda properties: sys.exit(0))
    monkeypatch.setattr("kconsumer.ingest.Ingestion", lambda options, tasks: made.append(options) or nullcontext())
    runner = CliRunner()
    for arguments in (["a", "b", "-b", "b:1"], ["-t", "a", "-t", "b", "-X", "metadata.broker.list=b:1"]):
        runner.invoke(cli, ["ingest", *arguments, "-X", "client.id=x", "-O", "out", "--runner", "local"])
    assert made[0] == made[1]
    assert (made[0].topics, made[0].bootstrap_servers, made[0].kafka) == (("a", "b"), "b:1", {"client.id": "x"})
