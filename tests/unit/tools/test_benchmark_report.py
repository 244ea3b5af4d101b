"""benchmarks.report: a published run replaces the tables that it measured, and no other."""

from benchmarks import report

OLD = """Measured on Monday.

### plain: 100 B

old plain

### Idle

old idle

### Targets

| figure | target | measured | |
| --- | --- | --- | --- |
| plain: rate | ≥ 1 | 2 | reached |
| idle: core | ≤ 1 | 3 | missed |
"""


def run(section: str, goal: str) -> str:
    return (f"Measured on Friday.\n\n### {section}\n\nnew {section.split(':', maxsplit=1)[0]}\n\n### Targets\n\n"
            f"| figure | target | measured | |\n| --- | --- | --- | --- |\n{goal}\n")


def test_a_run_of_the_first_topic_keeps_the_tables_it_did_not_measure():
    text = report.merged(OLD, run("plain: 100 B", "| plain: rate | ≥ 1 | 4 | reached |"))
    assert text.startswith("Measured on Friday.\n\n### plain: 100 B\n\nnew plain\n")
    assert "### Idle\n\nMeasured on Monday.\n\nold idle\n" in text
    assert "old plain" not in text
    assert text.endswith("| plain: rate | ≥ 1 | 4 | reached |\n| idle: core | ≤ 1 | 3 | missed |\n")


def test_a_run_of_another_section_keeps_the_head_of_the_page():
    text = report.merged(OLD, run("Idle", "| idle: core | ≤ 1 | 1 | reached |"))
    assert text.startswith("Measured on Monday.\n\n### plain: 100 B\n\nold plain\n")
    assert "### Idle\n\nMeasured on Friday.\n\nnew Idle\n" in text
    assert text.endswith("| plain: rate | ≥ 1 | 2 | reached |\n| idle: core | ≤ 1 | 1 | reached |\n")
    # A second merge does not date a table twice.
    again = report.merged(text, run("plain: 100 B", "| plain: rate | ≥ 1 | 4 | reached |"))
    assert again.count("Measured on Friday.") == 2
    assert "Measured on Monday." not in again
