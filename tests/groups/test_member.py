"""How the groups' members account for their commits."""

from member import SendTimes


def test_two_commits_of_one_offset_have_a_time_each():
    """A record's own commit and that of on_revoke: the judge compares both times with those of other owners."""
    sent = SendTimes()
    sent.add({"t/0": 5}, 1.0)
    sent.add({"t/0": 5, "t/1": 7}, 2.0)
    assert sent.take({"t/0": 5}, 9.0) == 1.0
    assert sent.take({"t/0": 5, "t/1": 7}, 9.0) == 2.0
    assert sent.take({"t/0": 5}, 9.0) == 9.0
