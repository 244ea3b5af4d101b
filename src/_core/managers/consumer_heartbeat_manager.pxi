"""Owns: ConsumerHeartbeatManager, this member of a group under group.protocol=consumer (KIP-848):
ConsumerGroupHeartbeat v0 and v1, the member id, the fields that the coordinator knows, topic ids of assignments.

thread: N. Never: reconciles (MembershipManager does), uses an answer of an earlier session, has two heartbeats in
flight (except for the leave).

The join (epoch 0), and the heartbeat after any failure or change of the coordinator, contains every field; other
heartbeats contain only changes. A heartbeat is sent immediately to report a change: a subscription, a committed
revocation, an acknowledged assignment. Otherwise it is sent at the end of the coordinator's interval.

Errors of a ConsumerGroupHeartbeat response, handled as in the Java client (4.3), but for UNRELEASED_INSTANCE_ID:
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE    search for the coordinator; every field goes to it immediately
  COORDINATOR_LOAD_IN_PROGRESS                  again with backoff
  FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID        fenced: partitions are lost, joins again with epoch 0 and the same id
  TOPIC_AUTHORIZATION_FAILED                    reported once; topics that metadata refuses are left out, again
                                                with backoff: the member recovers when it is allowed to see them
  UNSUPPORTED_VERSION (or no common version)    fatal: the cluster has no KIP-848; the message names the remedy
  UNRELEASED_INSTANCE_ID                        a static member that has sent an earlier join leaves (epoch -2), since
                                                it may have the id itself, and joins again; otherwise fatal
  GROUP_AUTHORIZATION_FAILED, INVALID_REQUEST, GROUP_MAX_SIZE_REACHED, UNSUPPORTED_ASSIGNOR, FENCED_INSTANCE_ID,
  INVALID_REGULAR_EXPRESSION, GROUP_ID_NOT_FOUND, every other   fatal
"fatal" means: for this consumer, as in the Java client and librdkafka. A permanent failure to find a coordinator (not
authorized) is not fatal: subscribe() starts again.
After a lost connection or a timeout, the member searches for the coordinator again and sends every field with backoff,
because the lost answer may have contained an assignment. Any answer to a leave ends it.

Patterns go to the broker (v1), which matches whole names with RE2. A coordinator that only supports v0 gets the names
that MembershipManager matches (POSIX, unanchored at the end).
"""


cdef extern from * nogil:
    """
    #include <algorithm>
    template <class T> static inline bool kc_equal(const T& a, const T& b) { return a == b; }
    """
    bint equal "kc_equal"[T](const T& a, const T& b)

cdef enum:
    KIND_HEARTBEAT = 1
    KIND_LEAVE = 2
    KIND_LOOKUP = 3                 # names of topic ids
    KIND_RELEASE = 4                # a static leave before another join

    LEAVE_EPOCH = -1
    STATIC_LEAVE_EPOCH = -2         # leaves temporarily: its partitions wait until the session times out
    DEFAULT_INTERVAL_MS = 5000      # the broker's default, until the broker sends its interval
    # Limits for the interval: with a longer one the broker could drop the member, with a shorter one heartbeats would
    # be a load. The broker's configuration allows 5 to 15 seconds by default.
    LEAST_INTERVAL_MS = 50
    LARGEST_INTERVAL_MS = 60000
    SPARE_NAMES = 1000              # cached topic names beyond the names of the assignment
    # Intervals without an answer before a heartbeat fails. Brokers do not send the session timeout: nine by default.
    UNANSWERED_INTERVALS = 6
    UNANSWERED_LEAST_MS = 3000
    LEAVE_SEARCH_MS = 1000          # how long a leave waits for the coordinator search
    LOOKUP_LOWEST_VERSION = 12      # the first Metadata version that answers by topic id
    LOOKUP_BACKOFF_MAX_MS = 10000


cdef bint is_active(MemberState state) noexcept nogil:
    """Whether the member sends heartbeats in this state."""
    return state >= MEMBER_JOINING and state <= MEMBER_STABLE


@cython.no_gc
cdef class ConsumerHeartbeatManager(RequestManager):
    def __cinit__(self, ManagerContext context, MetadataRequestManager metadata not None,
                  CoordinatorRequestManager coordinator not None, MembershipManager membership not None):
        self.metadata = metadata
        self.coordinator = coordinator
        self.membership = membership
        self.interval_ms = DEFAULT_INTERVAL_MS
        self.sent_node = -1
        self.member_id = make_member_id()
        if self.member_id.empty():
            raise OSError("cannot get random bytes from the system for a member id")
        self.shared.publish(self.member_id, -1)  # created here (KIP-1082), and known before the member joins

    # ---- every turn

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait
        if self.membership.may_leave():
            return self._leave(now_ms)
        if self.membership.state == MEMBER_LEAVING and self.in_group and not self.joining:
            return self._heartbeat_until_left(now_ms)
        if not is_active(self.membership.state):
            if self.membership.state != MEMBER_LEAVING:
                self._end_session()
            return INT64_MAX
        if not self.in_group:
            self._begin_session(now_ms)
        if self.membership.state == MEMBER_PARTITION_REVOKED and self.membership.revocation_committed():
            self.membership.after_revocation(False, now_ms)
            self.report_owned = True
        if self.shared.rebalances.count.load() != self.reconciled_seen:
            self.reconciled_seen = self.shared.rebalances.count.load()
            self.report_owned = True
        # Separate statements: Cython evaluates the second argument of min() first.
        wait = self._resolve(now_ms)
        return min(wait, self._heartbeat(now_ms))

    cdef void _begin_session(self, int64_t now_ms) noexcept nogil:
        self.session += 1
        self.in_group = True
        self.joining = True
        self.join_sent = False
        self.full = True
        self.report_owned = False
        self.refusal_reported = False
        self.membership.ownership.begin_session()
        self.reconciled_seen = self.shared.rebalances.count.load()
        self.failures_seen = self.coordinator.failures

    cdef void _end_session(self) noexcept nogil:
        """End the session; requests in flight are obsolete."""
        if not self.in_group:
            return
        self.session += 1
        self.in_group = False
        self.leave_sent = False
        self.leave_until_ms = 0
        self.target_open = False
        self.target_known = False
        self.assigned.clear()
        # The member owns nothing, and a wrong name must not survive into the next session.
        self.names.clear()
        self.ids.clear()
        self.logged.clear()
        self.state.on_success()

    # ---- heartbeats

    cdef int64_t _heartbeat(self, int64_t now_ms) noexcept nogil:
        cdef int32_t node
        if self.state.in_flight:
            return INT64_MAX
        if now_ms < self.state.not_before_ms:
            return self.state.wait_ms(now_ms)
        node = self.coordinator.coordinator()
        if node < 0:
            if self.coordinator.failures != self.failures_seen:
                self._fail(self.coordinator.fatal, False, now_ms)
            return INT64_MAX
        self.failures_seen = self.coordinator.failures
        if node != self.sent_node:
            self.full = True
        if self.joining and not self.membership.subscribed_known:
            # The client matches the patterns itself, and metadata has not arrived yet.
            return INT64_MAX
        if self.membership.commits.take_fence() != 0:
            # A commit was refused: ask immediately whether this consumer is still a member, and for its epoch.
            self.next_ms = now_ms
        if not self._has_news() and now_ms < self.next_ms:
            return self.next_ms - now_ms
        self._send_heartbeat(node, now_ms)
        return INT64_MAX

    cdef int64_t _heartbeat_until_left(self, int64_t now_ms) noexcept nogil:
        """Keep the membership and its epoch until the commits before the leave have ended.

        The heartbeat does not report owned partitions: reported as none, they would go to other members before the
        commits.
        """
        cdef int32_t node
        if self.state.in_flight:
            return INT64_MAX
        if self.membership.commits.take_fence() != 0:
            self.next_ms = now_ms
        node = self.coordinator.coordinator()
        if node < 0:
            return INT64_MAX
        if now_ms < max(self.next_ms, self.state.not_before_ms):
            return max(self.next_ms, self.state.not_before_ms) - now_ms
        self._send_heartbeat(node, now_ms)
        return INT64_MAX

    cdef void _on_answer_while_leaving(self, Request* request, ConsumerGroupHeartbeatResponse& message,
                                       int64_t now_ms) noexcept nogil:
        if message.error_code == 0:
            self.state.on_success()
            self._heard()
            if message.member_epoch != self.member.epoch:
                self.membership.on_joined(self.member_id, message.member_epoch, now_ms)
            return
        self._retry(now_ms)
        if message.error_code == <int>NOT_COORDINATOR or message.error_code == <int>COORDINATOR_NOT_AVAILABLE:
            self.coordinator.mark_unknown(request.node_id, b"the broker refused a heartbeat", now_ms)
        elif message.error_code == <int>FENCED_MEMBER_EPOCH or message.error_code == <int>UNKNOWN_MEMBER_ID:
            self.membership.commits.on_lost(now_ms)

    cdef bint _has_news(self) noexcept nogil:
        """Whether the coordinator must learn a change before the interval ends."""
        cdef vector[string] names
        if self.full or self.joining:
            return True
        if self.report_owned and self.membership.state != MEMBER_PARTITION_REVOKED:
            return True
        if not self.membership.subscribed_known:
            return False
        if self.membership.subscription_version != self.sent_version:
            return True
        if self.metadata.updates == self.names_seen:
            return False
        self.names_seen = self.metadata.updates
        self._names(names)
        return not equal(names, self.sent_names)

    cdef void _send_heartbeat(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[ConsumerGroupHeartbeatRequest]* body = new BodyOf[ConsumerGroupHeartbeatRequest]()
        cdef Request* request
        cdef bint leaving = self.membership.state == MEMBER_LEAVING
        body.message.member_epoch = 0 if self.joining else self.member.epoch
        if body.message.member_epoch == 0:
            self.joins += 1
            self.full = True  # a coordinator may answer a join with epoch 0; the next heartbeat is then a join again
        self._identify(body.message)
        if leaving:
            self.full = self.report_owned = False
        elif self._add_subscription(body.message):
            body.lowest = 1
        if self.full:
            body.message.rebalance_timeout_ms = self.group.max_poll_interval_ms
            if not self.group.rack.empty():
                body.message.rack_id.set(self.group.rack)
            if not self.group.remote_assignor.empty():
                body.message.server_assignor.set(self.group.remote_assignor)
        if self.full or self.report_owned and self.membership.state != MEMBER_PARTITION_REVOKED:
            self._add_owned(body.message)
            self.report_owned = self.membership.state == MEMBER_PARTITION_REVOKED
        self.full = False
        self.join_sent = True
        self.sent_node = node
        self.next_ms = now_ms + self.interval_ms
        self.state.on_send()
        self.sent_us = self.delegate.clock.now_us()
        self.sent_boot_us = self.delegate.clock.boot_us()
        # Notice a coordinator that does not answer while there is time to find its successor
        # (test_a_coordinator_that_hangs_is_noticed_before_the_session_ends).
        request = self.send(body, node, CHANNEL_COORDINATOR, KIND_HEARTBEAT, now_ms, now_ms + max(
            <int64_t>UNANSWERED_INTERVALS * self.interval_ms, <int64_t>UNANSWERED_LEAST_MS))
        request.cookie = self.session
        request.hold_ms = WRITE_MS

    cdef void _identify(self, ConsumerGroupHeartbeatRequest& message) noexcept nogil:
        message.group_id = self.group.group_id
        message.member_id = self.member_id
        if not self.group.group_instance_id.empty():
            message.instance_id.set(self.group.group_instance_id)

    cdef bint _add_subscription(self, ConsumerGroupHeartbeatRequest& message) noexcept nogil:
        """Add the changed fields, or all. Return whether only v1 can express them."""
        cdef vector[string] names
        cdef string pattern
        self._names(names)
        self._pattern(pattern)
        self.names_seen = self.metadata.updates
        self.sent_version = self.membership.subscription_version
        if not self.full and equal(names, self.sent_names) and equal(pattern, self.sent_pattern):
            return False
        # Always send both, as librdkafka does (its mock cluster requires it); "" removes a pattern.
        message.subscribed_topic_names.set(names)
        message.subscribed_topic_regex.set(pattern)
        self.sent_names.swap(names)
        self.sent_pattern = pattern
        return not pattern.empty()

    cdef void _names(self, vector[string]& names) noexcept nogil:
        """Collect the subscribed names that this client may see.

        One forbidden name would make the coordinator refuse all.
        """
        cdef TopicEntry* entry
        cdef size_t i
        for i in range(self.membership.subscribed.size()):
            entry = self.positions.cluster.topic(self.membership.subscribed[i])
            if entry == NULL or entry.error != <int>TOPIC_AUTHORIZATION_FAILED:
                names.push_back(self.membership.subscribed[i])

    cdef void _pattern(self, string& pattern) noexcept nogil:
        """Join all patterns to one expression; a single pattern stays unchanged."""
        cdef size_t i
        if self.membership.matches_here:
            return
        if self.membership.patterns.size() == 1:
            pattern.append(self.membership.patterns[0])
            return
        for i in range(self.membership.patterns.size()):
            pattern.append(b"(" if i == 0 else b"|(").append(self.membership.patterns[i]).append(b")")

    cdef void _add_owned(self, ConsumerGroupHeartbeatRequest& message) noexcept nogil:
        """Add the partitions that the application owns or may own.

        Partitions being assigned count, because on_assign may have begun. Partitions being revoked count until their
        offsets are committed: the next owner starts there. The coordinator gives any other partition away at once
        (test_partitions_that_are_being_assigned_are_owned_in_a_full_heartbeat).
        """
        cdef ConsumerGroupHeartbeatRequest_TopicPartitions topic
        cdef vector[TopicPartition] claimed, reported
        cdef size_t i
        message.topic_partitions.set_present()
        if not self.joining:
            claimed = self.membership.ownership.claimed()
        for i in range(claimed.size()):
            it = self.ids.find(claimed[i].topic)
            if it == self.ids.end():
                continue
            if reported.empty() or reported.back().topic != claimed[i].topic:
                topic.topic_id = dereference(it).second
                message.topic_partitions.value.push_back(topic)
            message.topic_partitions.value.back().partitions.push_back(claimed[i].partition)
            reported.push_back(claimed[i])
        self.membership.ownership.report(reported)

    # ---- leaving

    cdef int64_t _leave(self, int64_t now_ms) noexcept nogil:
        """Send the leave in LEAVING or STALE (max.poll.interval.ms exceeded)."""
        cdef int32_t node
        if self.leave_sent:
            return INT64_MAX
        if not self.in_group or not self.join_sent or self._goes_silently():
            self._left(now_ms)
            return 0
        node = self.coordinator.coordinator()
        if node < 0:
            if self.leave_until_ms == 0:
                self.leave_until_ms = now_ms + LEAVE_SEARCH_MS
            if now_ms < self.leave_until_ms:
                return self.leave_until_ms - now_ms
            self.background.log.write(5, 0, b"LEAVEGROUP", b"group %s: left without a coordinator: the "
                                      b"group drops this member when its session times out",
                                      self.group.group_id.c_str())
            self._left(now_ms)
            return 0
        self._send_leave(node, now_ms)
        if self.membership.state != MEMBER_LEAVING:
            # No call waits for the answer, and a join may follow it on the same connection.
            self._left(now_ms)
            return 0
        return INT64_MAX

    cdef bint _goes_silently(self) noexcept nogil:
        return not self.membership.leaves_for_good() and self.group.group_instance_id.empty()

    cdef void _send_leave(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef int64_t deadline = INT64_MAX
        if self.membership.leaving != NULL:
            deadline = self.membership.leaving.deadline_ms
        self.session += 1
        self.leave_sent = True
        self.leave_cookie = self.session
        self._send_end(node, KIND_LEAVE, now_ms, deadline)

    cdef void _send_end(self, int32_t node, int32_t kind, int64_t now_ms, int64_t deadline_ms) noexcept nogil:
        """Send the heartbeat that ends the membership: for good, or for a static member until its next join."""
        cdef BodyOf[ConsumerGroupHeartbeatRequest]* body = new BodyOf[ConsumerGroupHeartbeatRequest]()
        cdef Request* request
        self.joins_at_end = self.joins
        self._identify(body.message)
        body.message.member_epoch = (<int>LEAVE_EPOCH if self.membership.leaves_for_good()
                                     else <int>STATIC_LEAVE_EPOCH)
        request = self.send(body, node, CHANNEL_COORDINATOR, kind, now_ms, deadline_ms)
        request.cookie = self.session
        request.hold_ms = WRITE_MS

    cdef void _left(self, int64_t now_ms) noexcept nogil:
        self._end_session()
        self.membership.left(now_ms)

    cdef void _on_leave_ended(self, Request* request, const char* how, bint failed, int64_t now_ms) noexcept nogil:
        self.background.log.write(7, DBG_CGRP, b"LEAVEGROUP", b"leave: %s", how)
        if not self.leave_sent or request.cookie != self.leave_cookie:
            return
        self._end_session()
        if failed:
            self.membership.leave_failed(now_ms)
        else:
            self.membership.left(now_ms)

    # ---- answers

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        if request.kind == KIND_LEAVE:
            self._on_leave_ended(request, status.detail.c_str(), True, now_ms)
        elif request.kind == KIND_LOOKUP:
            if request.cookie == self.lookup_cookie:
                self.lookup.on_failure(now_ms, self.lookup_backoff, self.jitter)
        elif request.cookie == self.session:
            if status.code == <int>ERR_UNSUPPORTED_FEATURE:
                self._on_unsupported(status, now_ms)
            else:
                self._retry(now_ms)
                self.coordinator.mark_unknown(request.node_id, status.detail.c_str(), now_ms)

    cdef void _retry(self, int64_t now_ms) noexcept nogil:
        """Retry with backoff and with every field: the coordinator may have missed some."""
        self.full = True
        self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void _on_unsupported(self, const Status& status, int64_t now_ms) noexcept nogil:
        """Handle a coordinator without v1, or without this API."""
        if not self.sent_pattern.empty():
            self.background.log.write(5, 0, b"SUBSCRIPTION", b"the group's coordinator does not match patterns: the "
                                      b"client matches them as POSIX extended regular expressions")
            self.state.on_success()
            self.full = True
            self.sent_pattern.clear()
            self.membership.match_here(now_ms)
            return
        self._fail(Status(status.code, self._detail(status.detail, UNSUPPORTED_VERSION)), True, now_ms)

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef ConsumerGroupHeartbeatResponse message
        cdef Reader reader = Reader(response.body, response.length)
        if request.kind == KIND_LOOKUP:
            self._on_lookup(reader, request, response, now_ms)
            return
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"HEARTBEAT", now_ms):
            self.on_failure(request, reader.status(), now_ms)
            return
        if request.kind == KIND_LEAVE:
            if request.cookie == self.leave_cookie:
                self._take_release(message.error_code)
            self._on_leave_ended(request, b"answered", False, now_ms)
            return
        if request.cookie != self.session:
            return
        if self.membership.state == MEMBER_LEAVING and not self.joining:
            self._on_answer_while_leaving(request, message, now_ms)
        if not is_active(self.membership.state):
            return
        self.shared.heartbeats.add(self.delegate.clock.now_us() - self.sent_us)
        if request.kind == KIND_RELEASE:
            self._on_released(request, message, now_ms)
        elif message.error_code != 0:
            self._on_error(request, message, now_ms)
        else:
            self._on_success(message, now_ms)

    cdef void _on_success(self, ConsumerGroupHeartbeatResponse& message, int64_t now_ms) noexcept nogil:
        cdef int64_t interval_ms
        self.state.on_success()
        self.refusal_reported = False
        if message.heartbeat_interval_ms > 0:
            interval_ms = min(max(<int64_t>message.heartbeat_interval_ms, <int64_t>LEAST_INTERVAL_MS),
                              <int64_t>LARGEST_INTERVAL_MS)
            self.next_ms += interval_ms - self.interval_ms
            self.interval_ms = interval_ms
        if not message.member_id.is_null and not message.member_id.value.empty():
            self.member_id = message.member_id.value
        if self.joining or message.member_epoch != self.member.epoch:
            self.background.log.write(7, DBG_CGRP, b"HEARTBEAT", b"member %s has epoch %d", self.member_id.c_str(),
                                      message.member_epoch)
            self.membership.on_joined(self.member_id, message.member_epoch, now_ms)
        self.joining = False
        self._heard()
        self.membership.ownership.answered()
        if not message.assignment.is_null:
            self._take_target(message, now_ms)
        self.membership.reconcile(now_ms)

    cdef void _heard(self) noexcept nogil:
        if self.member.joined:
            self.shared.session.heard(self.sent_boot_us)

    cdef void _on_error(self, Request* request, ConsumerGroupHeartbeatResponse& message,
                        int64_t now_ms) noexcept nogil:
        cdef int32_t code = message.error_code
        cdef string detail = self._detail(message.error_message.value, code)
        self.background.log.write(7, DBG_CGRP, b"HEARTBEAT", b"error %d: %s", code, detail.c_str())
        if code == <int>NOT_COORDINATOR or code == <int>COORDINATOR_NOT_AVAILABLE:
            self._retry(now_ms)
            if self.state.attempts == 1:
                self.state.clear_backoff()
            self.coordinator.mark_unknown(request.node_id, detail.c_str(), now_ms)
        elif code == <int>COORDINATOR_LOAD_IN_PROGRESS:
            self._heard()  # it begins every session again
            self._retry(now_ms)
        elif code == <int>FENCED_MEMBER_EPOCH or code == <int>UNKNOWN_MEMBER_ID:
            self._on_fenced(detail, now_ms)
        elif code == <int>TOPIC_AUTHORIZATION_FAILED:
            self._on_refused(Status(code, detail), now_ms)
        elif code == <int>UNRELEASED_INSTANCE_ID and self.joins > 1:
            self._release(request.node_id, now_ms)
        else:
            self._fail(Status(code, detail), True, now_ms)

    # ---- an instance id that this consumer itself has

    cdef void _release(self, int32_t node, int64_t now_ms) noexcept nogil:
        """Release the instance id, and then join again.

        The coordinator refuses a join under the id of an active member, even to this member: after a join whose answer
        was lost, or after FENCED_MEMBER_EPOCH. It takes a static leave only from the member that has the id.
        """
        self.state.on_send()
        self._send_end(node, KIND_RELEASE, now_ms, now_ms + UNANSWERED_LEAST_MS)

    cdef bint _take_release(self, int32_t code) noexcept nogil:
        """Whether the coordinator no longer counts this consumer as an active member.

        A join sent meanwhile may have made it one again.
        """
        if code != 0 and code != <int>UNKNOWN_MEMBER_ID:
            return False
        if self.joins == self.joins_at_end:
            self.joins = 0
        return True

    cdef void _on_released(self, Request* request, ConsumerGroupHeartbeatResponse& message,
                           int64_t now_ms) noexcept nogil:
        if self._take_release(message.error_code):
            self.state.on_success()
            self.full = True
        elif message.error_code == <int>FENCED_INSTANCE_ID:
            self._fail(Status(<int>UNRELEASED_INSTANCE_ID, self._detail(message.error_message.value,
                                                                       UNRELEASED_INSTANCE_ID)), True, now_ms)
        else:
            self._on_error(request, message, now_ms)

    cdef string _detail(self, const string& said, int32_t code) noexcept nogil:
        cdef string detail = string(b"group ")
        detail.append(self.group.group_id).append(b": ")
        if code == <int>UNSUPPORTED_VERSION:
            detail.append(b"the cluster does not support group.protocol=consumer (KIP-848): set group.protocol="
                          b"classic, or upgrade the brokers to 4.0 and enable group.version=1")
        elif code == <int>UNRELEASED_INSTANCE_ID:
            detail.append(b"group.instance.id ").append(self.group.group_instance_id)
            detail.append(b" is in use: give each member its own value")
        elif said.empty():
            detail.append(b"ConsumerGroupHeartbeat failed with error ").append(to_string(code))
        if not said.empty():
            if code == <int>UNSUPPORTED_VERSION or code == <int>UNRELEASED_INSTANCE_ID:
                detail.append(b": ")
            detail.append(said)
        return detail

    cdef void _on_fenced(self, const string& why, int64_t now_ms) noexcept nogil:
        """Join again immediately; with backoff if the join itself was fenced."""
        cdef int32_t attempts = self.state.attempts
        cdef bint join_refused = self.joining
        self._end_session()
        if join_refused:
            self.state.attempts = attempts
            self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)
        self.membership.fence(why.c_str(), now_ms)

    cdef void _on_refused(self, const Status& status, int64_t now_ms) noexcept nogil:
        """Leave out the subscribed topics that this client may not see.

        Metadata shows which topics these are.
        """
        self._retry(now_ms)
        self.metadata.want_update()
        if not self.refusal_reported:
            self.refusal_reported = True
            self.membership.report(status, string())

    cdef void _fail(self, const Status& status, bint fatal, int64_t now_ms) noexcept nogil:
        self._end_session()
        self.membership.fail(status, fatal, now_ms)

    # ---- the target

    cdef void _take_target(self, ConsumerGroupHeartbeatResponse& message, int64_t now_ms) noexcept nogil:
        cdef map[Uuid, vector[int32_t]] target
        cdef size_t t, i
        for t in range(message.assignment.value.topic_partitions.size()):
            for i in range(message.assignment.value.topic_partitions[t].partitions.size()):
                target[message.assignment.value.topic_partitions[t].topic_id].push_back(
                    message.assignment.value.topic_partitions[t].partitions[i])
        if self.target_known and equal(target, self.assigned):
            # The answer to a full heartbeat repeats the assignment.
            return
        self.membership.ownership.drop_target()
        self.assigned.swap(target)
        self.target_known = True
        self.target_open = True
        self.target_shown = False
        self.resolved = 0
        self.lookup_answered = False
        self.lookup_cookie = 0
        self.lookup.on_success()
        self.lookup_backoff.retry_backoff_ms = self.backoff.retry_backoff_ms
        self.lookup_backoff.retry_backoff_max_ms = LOOKUP_BACKOFF_MAX_MS
        if self.names.size() > 2 * self.assigned.size() + SPARE_NAMES:
            self._forget_names()
        self._show_target(now_ms)

    cdef void _forget_names(self) noexcept nogil:
        """Keep the names of assigned topics and of topics that this member still owns."""
        cdef unordered_map[Uuid, string] kept
        self._keep_names(self.membership.ownership.claimed(), kept)
        it = self.assigned.begin()
        while it != self.assigned.end():
            if self.names.count(dereference(it).first) != 0:
                kept[dereference(it).first] = self.names[dereference(it).first]
            preincrement(it)
        self.names.swap(kept)
        self.ids.clear()
        named = self.names.begin()
        while named != self.names.end():
            self.ids[dereference(named).second] = dereference(named).first
            preincrement(named)
        self.logged.clear()

    cdef void _keep_names(self, const vector[TopicPartition]& held, unordered_map[Uuid, string]& kept) noexcept nogil:
        cdef size_t i
        for i in range(held.size()):
            it = self.ids.find(held[i].topic)
            if it != self.ids.end():
                kept[dereference(it).second] = held[i].topic

    cdef int64_t _resolve(self, int64_t now_ms) noexcept nogil:
        """Find names for the topic ids of the target.

        1. The target waits until the names were requested.
        2. Then MembershipManager gets the part with names.
        3. The other names are requested again: a deleted topic leaves the target automatically.
        """
        if not self.target_open and self.target_known and self.metadata.updates != self.metadata_seen:
            self.metadata_seen = self.metadata.updates
            if self._was_named_wrongly():
                self.target_open = True
                self._show_target(now_ms)
        if not self.target_open:
            return INT64_MAX
        if self.metadata.updates != self.metadata_seen:
            self._show_target(now_ms)
            if not self.target_open:
                return INT64_MAX
        if self.lookup.in_flight:
            return INT64_MAX
        if now_ms < self.lookup.not_before_ms:
            return self.lookup.wait_ms(now_ms)
        self._send_lookup(now_ms)
        return INT64_MAX

    cdef bint _was_named_wrongly(self) noexcept nogil:
        """Whether Metadata has another name for a topic of the target.

        Kafka never renames a topic, so a broker has sent a wrong name.
        """
        cdef const string* name
        it = self.assigned.begin()
        while it != self.assigned.end():
            name = self.positions.cluster.name_of(dereference(it).first)
            if name != NULL and self.names[dereference(it).first] != dereference(name):
                return True
            preincrement(it)
        return False

    cdef void _show_target(self, int64_t now_ms) noexcept nogil:
        """Pass the part of the target that has topic names to MembershipManager."""
        cdef vector[TopicPartition] target
        cdef size_t topics = 0
        cdef size_t i
        self.metadata_seen = self.metadata.updates
        it = self.assigned.begin()
        while it != self.assigned.end():
            if self._has_name(dereference(it).first):
                topics += 1
                for i in range(dereference(it).second.size()):
                    target.push_back(TopicPartition(self.names[dereference(it).first], dereference(it).second[i]))
            preincrement(it)
        if topics == self.assigned.size():
            self.target_open = False
        elif not self.lookup_answered or self.target_shown and topics == self.resolved:
            return
        self.resolved = topics
        self.target_shown = True
        sort_unique(target)
        self.membership.on_target(target, now_ms)

    cdef bint _has_name(self, const Uuid& id) noexcept nogil:
        cdef const string* name = self.positions.cluster.name_of(id)
        if name == NULL:
            return self.names.count(id) != 0
        self.names[id] = dereference(name)
        self.ids[dereference(name)] = id
        return True

    cdef void _send_lookup(self, int64_t now_ms) noexcept nogil:
        cdef BodyOf[MetadataRequest]* body = new BodyOf[MetadataRequest]()
        cdef MetadataRequest_MetadataRequestTopic topic
        body.message.topics.set_present()
        it = self.assigned.begin()
        while it != self.assigned.end():
            if not self._has_name(dereference(it).first):
                topic.topic_id = dereference(it).first
                topic.name.set_null()
                body.message.topics.value.push_back(topic)
            preincrement(it)
        body.message.allow_auto_topic_creation = False
        body.lowest = LOOKUP_LOWEST_VERSION
        self.lookup.on_send()
        self.lookup_cookie = self.send(body, ANY_NODE, CHANNEL_CONTROL, KIND_LOOKUP, now_ms, INT64_MAX).cookie

    cdef void _on_lookup(self, Reader& reader, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef MetadataResponse message
        cdef size_t i
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"METADATA", now_ms):
            self.on_failure(request, reader.status(), now_ms)
            return
        for i in range(message.topics.size()):
            if self.assigned.count(message.topics[i].topic_id) == 0:
                continue
            if message.topics[i].error_code != 0:
                self._log_unresolved(message.topics[i].topic_id, message.topics[i].error_code)
            elif not message.topics[i].name.is_null:
                self.names[message.topics[i].topic_id] = message.topics[i].name.value
                self.ids[message.topics[i].name.value] = message.topics[i].topic_id
        if request.cookie != self.lookup_cookie or not self.target_open:
            return
        self.lookup_answered = True
        self.lookup.on_failure(now_ms, self.lookup_backoff, self.jitter)
        self._show_target(now_ms)

    cdef void _log_unresolved(self, const Uuid& id, int32_t code) noexcept nogil:
        cdef string text
        if self.logged.count(id) != 0 and self.logged[id] == code:
            return
        self.logged[id] = code
        text = uuid_text(id)
        self.background.log.write(5, 0, b"ASSIGNMENT", b"topic id %s was assigned, but %s: skipped until it changes",
                                  text.c_str(), b"the brokers do not know it" if code == <int>UNKNOWN_TOPIC_ID
                                  else b"this client may not see the topic")
