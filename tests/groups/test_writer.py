"""How the groups' writer evaluates its producer's delivery reports."""

from writer import Acknowledged


def taken(*reports):
    acked = Acknowledged(2)
    for partition, number, offset in reports:
        acked.take(partition, number, offset)
    return acked


def test_partitions_end_after_the_last_offset_reported():
    acked = taken((0, 0, 0), (0, 1, 1), (1, 0, 0))
    assert (acked.ends, acked.strange, acked.twice) == ([2, 1], [], 0)


def test_a_record_that_the_producer_wrote_twice_moves_the_end():
    """Its copies are records of the log: members read them."""
    acked = taken((0, 0, 0), (0, 1, 3), (0, 2, 4))
    assert (acked.ends[0], acked.strange, acked.twice) == (5, [], 2)


def test_a_report_without_an_offset_lies_between_its_neighbours():
    acked = taken((0, 0, 0), (0, 1, None), (0, 2, 2))
    assert (acked.ends[0], acked.strange, acked.twice) == (3, [], 0)


def test_a_report_without_an_offset_in_front_of_copies():
    acked = taken((0, 0, None), (0, 1, 2))
    assert (acked.ends[0], acked.strange, acked.twice) == (3, [], 1)


def test_records_out_of_order_are_strange():
    assert len(taken((0, 1, 0)).strange) == 1
    assert len(taken((0, 0, 5), (0, 1, 3)).strange) == 1
