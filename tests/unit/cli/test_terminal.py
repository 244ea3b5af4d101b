"""The messages of a running command on standard error, and how often it prints them."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from rich.console import Console
from rich.live import Live

from kconsumer.cli.terminal import Failure, Reports, shown_log, warn
from kconsumer.errors import KafkaError, KafkaException


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def failed(broker: str) -> KafkaError:
    return KafkaError(KafkaError._TRANSPORT, f"{broker}: refused")


DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "no broker can be reached")


def test_failures_before_the_first_answer_become_one_error(capsys: pytest.CaptureFixture[str]):
    reports = Reports()
    reports.error(failed("a:1"))
    reports.error(failed("a:1"))
    reports.error(failed("b:1"))
    with pytest.raises(KafkaException) as caught:
        reports.error(DOWN)
    assert caught.value.args[0].str() == ("cannot connect to Kafka: a:1: refused; b:1: refused: "
                                          "check -b/--bootstrap-servers")
    assert caught.value.args[0].code() == KafkaError._ALL_BROKERS_DOWN
    reports.error(DOWN)  # while the consumer is closed
    assert capsys.readouterr().err == "kconsumer: warning: no broker can be reached\n"


def test_many_causes_are_cut_short():
    reports = Reports()
    for number in range(10):
        reports.error(failed(f"b{number}:1"))
    late = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
    assert reports.explained(late).args[0].str() == "no answer: b0:1: refused; b1:1: refused; b2:1: refused; and 7 more"


def test_an_unanswered_call_reports_the_cause():
    reports = Reports()
    reports.error(failed("a:1"))
    late = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
    assert reports.explained(late).args[0].str() == "no answer: a:1: refused"
    other = KafkaException(KafkaError(KafkaError._AUTHENTICATION, "a:1: refused"))
    assert reports.explained(other) is other
    reports.connected()
    assert reports.explained(late) is late


def test_an_unanswered_call_without_a_known_cause_names_the_way_to_the_log():
    late = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
    assert Reports().explained(late).args[0].str() == "no answer: -X debug=broker shows the log"
    assert Reports(debug=True).explained(late) is late


def test_after_the_failure_of_the_first_call_errors_are_ignored(capsys: pytest.CaptureFixture[str]):
    reports = Reports()
    refused = KafkaException(KafkaError(KafkaError._SSL, "a:1: TLS handshake failed"))
    assert reports.explained(refused) is refused
    reports.error(failed("a:1"))  # while the consumer is closed
    reports.error(DOWN)
    assert capsys.readouterr().err == ""


def test_later_failures_are_warnings_once_a_minute(capsys: pytest.CaptureFixture[str]):
    clock = Clock()
    reports = Reports(clock=clock)
    reports.connected()
    for _ in range(100):
        reports.error(failed("a:1"))
        reports.error(DOWN)
        reports.logger.warning("%s [%s] %s", "FAIL", "kconsumer-cli", "a:1: refused")
        reports.logger.warning("%s", "a property has no effect")
    clock.now += 59.9
    reports.error(failed("a:1"))
    assert capsys.readouterr().err.splitlines() == [
        "kconsumer: warning: a:1: refused", "kconsumer: warning: no broker can be reached",
        "kconsumer: warning: a property has no effect"]
    clock.now += 0.1
    reports.error(failed("a:1"))
    assert capsys.readouterr().err == "kconsumer: warning: a:1: refused\n"


def test_debug_shows_every_line(capsys: pytest.CaptureFixture[str]):
    reports = Reports(debug=True)
    for _ in range(2):
        reports.logger.debug("%s [%s] %s", "FAIL", "kconsumer-cli", "a:1: \x1b[2J")
    assert capsys.readouterr().err == "kconsumer: debug: FAIL [kconsumer-cli] a:1: \\x1b[2J\n" * 2


def test_warnings_and_errors_are_escaped(capsys: pytest.CaptureFixture[str]):
    warn("a\x1b]0;x\x07\nb\u202e")
    Failure("a\x1b\nb\r").show()
    assert capsys.readouterr().err == ("kconsumer: warning: a\\x1b]0;x\\x07\\nb\\u202e\n"
                                       "kconsumer: a\\x1b\nb\\r\n")


def test_log_lines_of_kconsumer_are_shown_escaped_and_above_a_line_of_progress(monkeypatch: pytest.MonkeyPatch):
    """rich replaces sys.stderr while it shows the line: text that bypasses it would be appended to the line."""
    out = io.StringIO()
    log = logging.getLogger("kconsumer.ingest")
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO()))
    with Live("waiting", console=Console(file=out, force_terminal=True, width=100), auto_refresh=False), shown_log():
        log.warning("out\x07: no record has a value")
        log.info("not shown")
    log.warning("after the command")
    assert r"kconsumer: warning: out\x07: no record has a value" + "\n" in out.getvalue()
    assert "not shown" not in out.getvalue() and "after the command" not in out.getvalue()
