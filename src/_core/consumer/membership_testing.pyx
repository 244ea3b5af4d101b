"""Owns: faces on the membership of a GroupCore whose loop is stepped by hand.

Threads: the test's own, which plays both A and N. Never: part of the consumer, used on one whose thread runs.
"""
from kconsumer._core.base.cpp cimport deque
from kconsumer._core.base.log cimport LogLine
from kconsumer._core.consumer.group_core cimport GroupCore
from kconsumer._core.consumer.text cimport text_of
from kconsumer._core.managers.topic_patterns cimport TopicPatterns
from kconsumer._core.consumer.text cimport utf8
from kconsumer._core.base.cpp cimport string, vector
from kconsumer._core.state.member_state cimport MEMBER_STATES, MemberState, member_may, member_state_name

STATES = [member_state_name(<MemberState>s).decode() for s in range(MEMBER_STATES)]


def state(GroupCore core not None):
    """The member's state; what other threads read must be the same."""
    assert core.shared.state.load() == <int>core.membership.state
    return STATES[<int>core.membership.state]


def may(str origin, str to):
    """Whether the table allows the move."""
    return bool(member_may(<MemberState><int>STATES.index(origin), <MemberState><int>STATES.index(to)))


def place(GroupCore core not None, str name):
    """Puts the member into a state, whatever the table says."""
    cdef int number = STATES.index(name)
    core.membership.state = <MemberState>number
    core.shared.state.store(number)


def move(GroupCore core not None, str name):
    """A move as managers make it."""
    cdef int number = STATES.index(name)
    core.membership.move(<MemberState>number)


def owned(GroupCore core not None):
    return [(text_of(p.topic), p.partition) for p in core.membership.owned]


def revoking(GroupCore core not None):
    """Partitions that are no longer fetched because they are to go."""
    return sorted((text_of(p.topic), p.partition) for p in core.positions.tracked if p.revoking)


def interest(GroupCore core not None):
    """Topics that metadata is asked for."""
    return sorted(text_of(item.first) for item in core.positions.interest)


def in_poll(GroupCore core not None, bint value):
    """The application waits in a call (or no longer)."""
    core.liveness.in_poll.store(value)


def log_lines(GroupCore core not None):
    """(level, text) of what was logged since the last call."""
    cdef deque[LogLine] lines
    cdef size_t i
    core.background.log.drain(lines)
    return [(lines[i].level, text_of(lines[i].text)) for i in range(lines.size())]


def matching(patterns, topics):
    """Which topics the patterns match; ValueError where one cannot be read."""
    cdef TopicPatterns matcher
    cdef vector[string] given
    for pattern in patterns:
        given.push_back(utf8(pattern))
    status = matcher.set(given)
    if not status.ok():
        raise ValueError(text_of(status.detail))
    return [topic for topic in topics if matcher.matches(utf8(topic))]
