"""Owns: access to a GroupCore whose network thread does not run: rebalance events for the application, and the events
that the application posts as answers.

Threads: the test's thread, which plays both A and N. Never: part of the consumer, used on one whose thread runs.
"""

KINDS = {"revoke": REBALANCE_REVOKE, "assign": REBALANCE_ASSIGN, "lost": REBALANCE_LOST, "error": REBALANCE_ERROR}
NAMES = {number: name for name, number in KINDS.items()}


def push(GroupCore core not None, kind, id=0, partitions=(), epoch=0, eager=False, code=0, detail=""):
    """Post an event that MembershipManager would post to the application."""
    cdef RebalanceEvent event
    event.kind = KINDS[kind]
    event.id = id
    event.epoch = epoch
    event.eager = eager
    for topic, partition in partitions:
        event.partitions.push_back(TopicPartition(utf8(topic), partition))
    event.status = Status(code, utf8(detail))
    core.background.add_rebalance(event)


def lose(GroupCore core not None, id):
    """Fence the member: events up to this id are obsolete."""
    core.shared.lost_rebalance_id.store(id)


def identify(GroupCore core not None, member_id, epoch):
    core.shared.publish(utf8(member_id), epoch)


def commit_due(GroupCore core not None):
    """End the interval of the automatic commit."""
    core.background.attention.set(ATTENTION_COMMIT)


def committed(GroupCore core not None, topic, partition, offset):
    """Note a successful commit, as N does."""
    p = core.subscription.find(utf8(topic), partition)
    p.committed_offset.store(offset)
    p.release()


def posted(GroupCore core not None, complete=True):
    """Return the events posted since the last call, as tuples; completable ones succeed."""
    cdef deque[ApplicationEvent*] events
    cdef ApplicationEvent* event
    core.application.drain(events)
    found = []
    while not events.empty():
        event = events.front()
        events.pop_front()
        found.append(described(event))
        if complete:
            event.complete(Status())
        event.release()
    return found


cdef object described(ApplicationEvent* event):
    cdef AckRebalanceEvent* ack
    cdef SubscribeEvent* subscribe
    cdef LeaveGroupEvent* leave
    cdef CommitEvent* commit
    cdef size_t i
    if event.type == EVENT_ACK_REBALANCE:
        ack = <AckRebalanceEvent*>event
        return ("ack", NAMES[<int>ack.kind], ack.rebalance_id, offset_tuples(ack.offsets),
                [(text_of(ack.assignment[i].topic), ack.assignment[i].partition)
                 for i in range(ack.assignment.size())])
    if event.type == EVENT_SUBSCRIBE:
        subscribe = <SubscribeEvent*>event
        return ("subscribe", [text_of(t) for t in subscribe.topics], [text_of(t) for t in subscribe.patterns],
                subscribe.epoch)
    if event.type == EVENT_LEAVE_CALLBACK:
        return ("leave callback",)
    if event.type == EVENT_LEAVE_GROUP:
        leave = <LeaveGroupEvent*>event
        return ("leave", offset_tuples(leave.offsets), leave.epoch, leave.closing)
    if event.type == EVENT_COMMIT:
        commit = <CommitEvent*>event
        return ("commit", offset_tuples(commit.offsets), commit.sync, commit.notify, commit.automatic)
    if event.type == EVENT_FETCH_COMMITTED:
        return ("committed", offset_tuples((<FetchCommittedEvent*>event).partitions))
    return ("other", <int>event.type)


def mark_end(GroupCore core not None, marker):
    """Attach `marker`, which is dropped with the managers of the network thread."""
    core.managers += (marker,)
