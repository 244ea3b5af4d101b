"""Owns: access to the membership of a GroupCore whose loop is stepped by hand.

Threads: the test's thread, which plays both A and N. Never: part of the consumer, used on one whose thread runs.
"""

STATES = [member_state_name(<MemberState>s).decode() for s in range(MEMBER_STATES)]


def state(GroupCore core not None):
    """Return the member's state; other threads must read the same."""
    assert core.shared.state.load() == <int>core.membership.state
    return STATES[<int>core.membership.state]


def may(str origin, str to):
    """Return whether the table allows the move."""
    return bool(member_may(<MemberState><int>STATES.index(origin), <MemberState><int>STATES.index(to)))


def place(GroupCore core not None, str name):
    """Put the member into a state, without a check of the table."""
    cdef int number = STATES.index(name)
    core.membership.state = <MemberState>number
    core.shared.state.store(number)


def move(GroupCore core not None, str name):
    """Move the member as managers do."""
    cdef int number = STATES.index(name)
    core.membership.move(<MemberState>number)


def owned(GroupCore core not None):
    cdef vector[TopicPartition] found = core.membership.ownership.owned()
    return [(text_of(p.topic), p.partition) for p in found]


def revoking(GroupCore core not None):
    """Return partitions that are no longer fetched because they will be revoked."""
    return sorted((text_of(p.topic), p.partition) for p in core.positions.tracked if p.revoking)


def interest(GroupCore core not None):
    """Return the topics whose metadata is requested."""
    return sorted(text_of(item.first) for item in core.positions.interest)


def in_poll(GroupCore core not None, bint value):
    """Set whether the application waits in a call."""
    core.liveness.in_poll.store(value)


def logged(GroupCore core not None):
    """Return (level, text) of the lines logged since the last call."""
    cdef deque[LogLine] lines
    cdef size_t i
    core.background.log.drain(lines)
    return [(lines[i].level, text_of(lines[i].text)) for i in range(lines.size())]


def matching(patterns, topics):
    """Return the topics that the patterns match; ValueError for an invalid pattern."""
    cdef TopicPatterns matcher
    cdef vector[string] given
    for pattern in patterns:
        given.push_back(utf8(pattern))
    status = matcher.set(given)
    if not status.ok():
        raise ValueError(text_of(status.detail))
    return [topic for topic in topics if matcher.matches(utf8(topic))]
