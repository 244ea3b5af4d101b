"""tools/chart.py: bars in proportion to the figures from zero on, and one machine for all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import chart  # noqa: E402
import figures  # noqa: E402

MEASURED = "Measured 2026-01-{day} 01:02:03 +0000 on {machine}; load average 0.2), Python 3.11.\n"


def rates(text: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for length, shown in re.findall(r'<rect x="\d+" y="\d+" width="([\d.]+)".*/>\n +<text [^>]*>([^<]*)<', text):
        found.setdefault(shown, []).append(float(length))
    return found


def test_the_length_of_a_bar_is_in_proportion_to_its_figure():
    text = chart.drawn(figures.Figures(figures.all_figures()), "")
    bars = [(float(shown), length) for shown, lengths in rates(text).items() for length in lengths]
    assert len(bars) == sum(map(len, chart.GROUPS.values()))
    longest, its_length = max(bars)
    for figure, length in bars:  # the shown figure has two digits, a length one decimal
        assert length == pytest.approx(figure * its_length / longest, rel=0.06, abs=0.1)


def test_a_changed_figure_changes_the_chart():
    found = figures.all_figures()
    before = chart.drawn(figures.Figures(found), "")
    found["benchmarks.md"]["10kB"]["confluent-kafka poll"]["rate"] *= 2
    assert chart.drawn(figures.Figures(found), "") != before


def test_dates_and_machine_are_those_of_the_pages():
    text = "".join(MEASURED.format(day=day, machine="2 cores (AMD EPYC") for day in ("07", "03", "05"))
    assert chart.conditions(text) == (
        "Measured from 2026-01-03 to 2026-01-07 on 2 cores (AMD EPYC), which the broker shares.")


@pytest.mark.parametrize("machines", [(), ("2 cores (AMD EPYC", "8 cores (AMD EPYC")])
def test_several_machines_or_none_are_refused(machines: tuple[str, ...]):
    text = "".join(MEASURED.format(day="01", machine=machine) for machine in machines)
    with pytest.raises(ValueError, match=f"name {len(machines)} machines"):
        chart.conditions(text)


def test_the_chart_shows_the_results():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "chart.py"), "--check"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
