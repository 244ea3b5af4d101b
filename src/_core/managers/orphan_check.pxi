"""Owns: OrphanCheck: finds partitions that no member owns, after a static member took the place of its former life.

thread: N; ClassicGroupManager polls it every turn. Never: begins a rebalance (ClassicGroupManager does), runs without a
takeover.

Why: a restart of a static member begins no rebalance (KIP-345, KIP-814). Its former life may have owed one:

1. The generation left some of its partitions without an owner: in a cooperative group, their owner has to revoke them
   first, and to join again (KIP-429). The process ended before it did. The new process has nothing to revoke.
2. It led the group, and a topic was created or has grown while it was away.

In both cases these partitions would not be read until the next rebalance, whose cause may be weeks away. The Java
client and librdkafka have this gap. No member learns of a takeover, so only DescribeGroups shows it. If an assignor
leaves partitions out on purpose, each restart of a static member of its group costs a rebalance.

Errors of the DescribeGroups response: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and a lost connection: a new search,
then again, with backoff. COORDINATOR_LOAD_IN_PROGRESS: again, with backoff. A group that is not Stable: again after
heartbeat.interval.ms, unless the rebalance has begun another generation. Any other error, or a broker without
DescribeGroups: the check ends, with a log line.
"""


@cython.no_gc
cdef class OrphanCheck(RequestManager):
    def __cinit__(self, ManagerContext context, MembershipManager membership not None,
                  CoordinatorRequestManager coordinator not None):
        self.membership = membership
        self.coordinator = coordinator

    cdef void begin(self, int64_t due_ms) noexcept nogil:
        self.drop()
        self.phase = CHECK_ASK
        self.due_ms = due_ms

    cdef void drop(self) noexcept nogil:
        cdef vector[string] nothing
        self.phase = CHECK_NONE
        self.round += 1
        self.asking.on_success()
        self.membership.hold_topics(self.held, nothing)

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t due = max(self.due_ms, self.asking.not_before_ms)
        cdef int32_t node
        if self.phase == CHECK_METADATA:
            self._look()
        if self.phase != CHECK_ASK or self.asking.in_flight:
            return INT64_MAX
        if now_ms < due:
            return due - now_ms
        node = self.coordinator.coordinator()
        if node >= 0:
            self._send(node, now_ms)
        return INT64_MAX

    cdef void _send(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[DescribeGroupsRequest]* body = new BodyOf[DescribeGroupsRequest]()
        body.message.groups.push_back(self.group.group_id)
        self.asking.on_send()
        self.send(body, node, CHANNEL_COORDINATOR, 0, now_ms, INT64_MAX).cookie = self.round

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef DescribeGroupsResponse message
        cdef Reader reader = Reader(response.body, response.length)
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"GROUP", now_ms):
            self.on_failure(request, reader.status(), now_ms)
            return
        if request.cookie != self.round:
            return
        if message.groups.size() == 1:
            self._take(message.groups[0], response.node_id, now_ms)
        else:
            self._give_up(string(b"the coordinator described another number of groups than one"))

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        if request.cookie != self.round:
            return
        if status.code == <int>ERR_UNSUPPORTED_FEATURE:
            self._give_up(status.detail)
            return
        self.coordinator.mark_unknown(request.node_id, status.detail.c_str(), now_ms)
        self.asking.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void _take(self, DescribeGroupsResponse_DescribedGroup& group, int32_t node_id, int64_t now_ms) noexcept nogil:
        cdef int32_t code = group.error_code
        cdef Status status
        cdef bint moved = code == <int>NOT_COORDINATOR or code == <int>COORDINATOR_NOT_AVAILABLE
        if moved:
            self.coordinator.mark_unknown(node_id, classic_error(code), now_ms)
        if moved or code == <int>COORDINATOR_LOAD_IN_PROGRESS:
            self.asking.on_failure(now_ms, dereference(self.backoff), self.jitter)
            return
        if code != 0:
            self._give_up(string(classic_error(code)))
            return
        self.asking.on_success()
        if not (group.group_state == b"Stable"):
            self.due_ms = now_ms + self.group.heartbeat_interval_ms
            return
        status = self.owners.read(group)
        if not status.ok():
            self._give_up(status.detail)
            return
        self.phase = CHECK_METADATA
        self.fresh_from = self.membership.hold_topics(self.held, self.owners.topics)
        self._look()

    cdef void _give_up(self, const string& why) noexcept nogil:
        self.background.log.write(6, 0, b"ORPHANS", b"group %s: cannot check that every partition has an owner: %s",
                                  self.group.group_id.c_str(), why.c_str())
        self.drop()

    cdef void _look(self) noexcept nogil:
        cdef TopicPartition first
        if not self.membership.knows_topics(self.held, self.fresh_from):
            return
        if not self.owners.find_orphan(self.membership.positions.cluster, first):
            self.drop()
            return
        self.background.log.write(6, DBG_CGRP, b"ORPHANS", b"group %s: no member owns %s [%d]",
                                  self.group.group_id.c_str(), first.topic.c_str(), first.partition)
        self.drop()
        self.phase = CHECK_FOUND
