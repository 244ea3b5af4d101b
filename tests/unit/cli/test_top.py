"""`kconsumer top`: rates and lag by topic, and colours that follow from them."""

from rich.console import Console

from kconsumer.cli.group_lag import Lag
from kconsumer.cli.top import rows, table


def lag(partition, committed, end, seconds=1.0, topic="t"):
    return Lag(topic, partition, committed, end, end - committed, seconds)


def test_the_first_reading_has_no_rates():
    (row,) = rows([], [lag(0, 5, 9), lag(1, 7, 7, 0.0)], 1e9)
    assert (row.partitions, row.committed_s, row.produced_s, row.lag, row.seconds) == (2, None, None, 4, 1.0)
    assert (row.left_s, row.colour) == (None, "")


def test_rates_are_sums_over_the_partitions_of_a_topic():
    before = [lag(0, 0, 100), lag(1, 50, 60), lag(0, 1, 1, topic="u")]
    after = [lag(0, 40, 110, 7.5), lag(1, 60, 60, 0.0), lag(0, 1, 1, 0.0, topic="u")]
    first, second = rows(before, after, 2.0)
    assert (first.committed_s, first.produced_s, first.lag, first.seconds) == (25.0, 5.0, 70, 7.5)
    assert first.left_s == 70 / 20
    assert (second.committed_s, second.produced_s, second.lag) == (0.0, 0.0, 0)


def test_a_partition_that_is_new_counts_from_its_second_reading():
    (row,) = rows([lag(0, 0, 10)], [lag(0, 4, 10), lag(1, 1000, 2000)], 1.0)
    assert (row.committed_s, row.produced_s, row.lag) == (4.0, 0.0, 1006)


def test_the_colour_says_whether_the_group_catches_up():
    def colour(committed, end):
        return rows([lag(0, 0, 100)], [lag(0, committed, end)], 1.0)[0].colour

    assert colour(100, 100) == "green"
    assert colour(50, 100) == "yellow"
    assert colour(50, 150) == colour(0, 100) == "red"


def test_unknown_values_and_control_characters_are_shown_safely():
    console = Console(width=120, record=True, color_system=None)
    console.print(table(rows([], [lag(0, 1, 2, None, "\x1b[2J[red]")], 1.0)))
    heading, line = console.export_text().splitlines()
    assert heading.split() == "topic partitions committed/s produced/s lag seconds caught up in".split()
    assert line.split() == ["\\x1b[2J[red]", "1", "-", "-", "1", "-", "-"]
