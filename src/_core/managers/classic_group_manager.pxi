"""Owns: ClassicGroupManager: JoinGroup, SyncGroup, Heartbeat, LeaveGroup of the classic protocol, eager and cooperative
(KIP-429); the meaning of each response for MembershipManager.

thread: N; polled every turn after MembershipManager. Never: assigns partitions (GroupLeader does), runs or awaits a
callback (MembershipManager does), delays a heartbeat because of a parked JoinGroup (JoinGroup and SyncGroup have a
separate connection).

A response counts only if its request is still wanted: `round` for JoinGroup and SyncGroup, `identity` (member id and
generation) for Heartbeat. Errors, handled as in the Java client (AbstractCoordinator, ConsumerCoordinator):

  error                         JoinGroup          SyncGroup          Heartbeat
  COORDINATOR_LOAD_IN_PROGRESS  again, backoff     join, backoff      again, backoff
  COORDINATOR_NOT_AVAILABLE,
  NOT_COORDINATOR, lost         find it, join      find it, join      find it
  UNKNOWN_MEMBER_ID             fence, new id      fence, new id      fence, new id
  ILLEGAL_GENERATION            again, backoff     fence, keep id     fence, keep id
  REBALANCE_IN_PROGRESS         again, backoff     join               rejoin (while rebalancing: ignored)
  MEMBER_ID_REQUIRED            join with that id  -                  -
  FENCED_INSTANCE_ID            fatal              fatal              fatal
  UNSUPPORTED_VERSION           fatal              fatal              fatal
  INCONSISTENT_GROUP_PROTOCOL,
  INVALID_SESSION_TIMEOUT,
  INVALID_GROUP_ID,
  GROUP_AUTHORIZATION_FAILED,
  GROUP_MAX_SIZE_REACHED,
  any other                     report, backoff    report, join,      report, again, backoff
                                                   backoff
  LeaveGroup is sent once: with any answer, the member has left.

"report": a consumer error for poll(), each time, as the Java client's poll() throws each time. "fence": the member
gives up its generation (and member id), and loses its partitions.
"""


cdef enum:
    KIND_JOIN = 1
    KIND_SYNC = 2
    KIND_CLASSIC_HEARTBEAT = 3
    KIND_CLASSIC_LEAVE = 4
    JOIN_GRACE_MS = 5000                 # for the answer after the rebalance timeout, as in the Java client
    STATIC_MEMBERS_SINCE_JOIN = 5        # versions from which requests carry group.instance.id
    STATIC_MEMBERS_SINCE = 3             # SyncGroup, Heartbeat


@cython.no_gc
cdef class ClassicGroupManager(RequestManager):
    def __cinit__(self, ManagerContext context, MembershipManager membership not None,
                  CoordinatorRequestManager coordinator not None):
        self.membership = membership
        self.coordinator = coordinator
        self.application = ApplicationAssignors(context)
        self.leader = GroupLeader(membership, self.application)
        self.orphans = OrphanCheck(context, membership, coordinator)
        self.generation = -1
        self.last_generation = -1
        self.rejoin_reason = b""

    # ---- every turn

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait
        if self.membership.may_leave():
            self._leave(now_ms)
            return INT64_MAX if self.leave_in_flight else 0
        if (self.membership.state == MEMBER_UNSUBSCRIBED or self.membership.state == MEMBER_FATAL
                or self.membership.state == MEMBER_STALE or self.membership.state == MEMBER_FENCED):
            if self.membership.state != MEMBER_FENCED:
                self._reset(True, now_ms)
            return INT64_MAX
        if (self.joining.in_flight and self.coordinator.node >= 0 and self.coordinator.node != self.join_node
                and self.membership.state == MEMBER_JOINING):
            # The coordinator has moved. Its former broker may hang for as long as a rebalance may take. The Java client
            # also ends this request.
            self._abandon(now_ms)
            self._join_again(now_ms)
        wait = min(self._heartbeat(now_ms), self.orphans.poll(now_ms))
        if self.rejoin_wanted:
            wait = min(wait, self.membership.withdraw_assign(now_ms))
        if self.membership.state == MEMBER_STABLE:
            self._rejoin_if_needed(now_ms)
        if self.membership.revocation_committed():
            self._on_revoked(now_ms)
        if self.membership.state == MEMBER_LEAVING:
            self._finish_round(now_ms)
        if self.membership.state == MEMBER_JOINING:
            wait = min(wait, self._join(now_ms))
        return wait

    cdef void _rejoin_if_needed(self, int64_t now_ms) noexcept nogil:
        if self.leader.changed():
            self._want_rejoin(b"cached metadata has changed")
        if self.joined_version != self.membership.subscription_version and self.membership.subscribed_known:
            self._want_rejoin(b"subscription has changed")
        if self.orphans.phase == CHECK_FOUND:
            self._want_rejoin(b"a partition has no owner")
        if not self.rejoin_wanted:
            return
        # Eager members rejoin without partitions, cooperative members with their still subscribed partitions.
        if self.group.cooperative:
            self.rejoining = not self.membership.revoke_unsubscribed(now_ms)
        else:
            self.rejoining = not self.membership.revoke_all(now_ms)
        if not self.rejoining:
            self.membership.rejoin(now_ms)

    cdef void _want_rejoin(self, const char* reason) noexcept nogil:
        if not self.rejoin_wanted:
            self.background.log.write(6, DBG_CGRP, b"REJOIN", b"group %s: will join again: %s",
                                      self.group.group_id.c_str(), reason)
            self.rejoin_wanted = True
            self.rejoin_reason = reason

    cdef void _on_revoked(self, int64_t now_ms) noexcept nogil:
        """Assign the remaining difference to the target, and join again. The revocation was for a join, or the target
        had fewer partitions. After the join, other members may get the revoked partitions."""
        if self.rejoining:
            self.rejoining = False
            self.membership.after_revocation(True, now_ms)
        else:
            self._want_rejoin(b"need to revoke partitions and re-join")
            self.membership.after_revocation(False, now_ms)

    # ---- joining

    cdef int64_t _join(self, int64_t now_ms) noexcept nogil:
        cdef int32_t node
        if self.phase == PHASE_OUT or self.phase == PHASE_IN:
            self.phase = PHASE_JOIN
            self.rejoin_wanted = False
        if self.phase == PHASE_ASSIGN:
            if not self.leader.ready():
                return INT64_MAX
            self._assign(now_ms)
        if self.joining.in_flight or self.phase == PHASE_JOIN and not (
                self.membership.subscribed_known and self.membership.may_join()):
            return INT64_MAX
        if now_ms < self.joining.not_before_ms:
            return self.joining.wait_ms(now_ms)
        node = self._find_coordinator(now_ms)
        if node < 0:
            return self.joining.wait_ms(now_ms) if self.joining.not_before_ms > now_ms else INT64_MAX
        if self.phase == PHASE_SYNC:
            self._send_sync(node, now_ms)
        elif self._patterns_fresh(now_ms) and self._user_data_known(now_ms):
            self._send_join(node, now_ms)
        elif self.joining.not_before_ms > now_ms:
            return self.joining.wait_ms(now_ms)
        return INT64_MAX

    cdef bint _patterns_fresh(self, int64_t now_ms) noexcept nogil:
        """Whether metadata is recent enough for a join of a member with patterns. As in the Java client, such a member
        looks for new topics before each join. Otherwise the members would discover a new topic one after another, each
        with a rebalance of the whole group
        (test_a_member_with_patterns_looks_for_new_topics_before_it_joins_again)."""
        if self.membership.matcher.empty():
            return True
        if self.fresh_from == 0:
            self.fresh_from = self.membership.metadata.want_news(now_ms)
        return self.membership.metadata.updates >= self.fresh_from

    cdef bint _user_data_known(self, int64_t now_ms) noexcept nogil:
        """Ask the application's assignors for user data again at every join."""
        if not self.group.assignors_have_user_data:
            return True
        if self.application.state == CALL_FAILED:
            self.application.drop()
            self.joining.on_failure(now_ms, dereference(self.backoff), self.jitter)
        elif self.application.state == CALL_NONE or self.asked_version != self.membership.subscription_version:
            self._ask_user_data()
        return self.application.state == CALL_ANSWERED

    cdef void _ask_user_data(self) noexcept nogil:
        cdef AssignorCall* call = new AssignorCall()
        call.subscribed = self.membership.subscribed
        self.asked_version = self.membership.subscription_version
        self.application.ask(call)

    cdef NullableString _user_data(self, const string& name) noexcept nogil:
        cdef size_t i
        if self.application.state == CALL_ANSWERED:
            for i in range(self.application.answer.user_data.size()):
                if self.application.answer.user_data[i].assignor == name:
                    return self.application.answer.user_data[i].user_data
        return NullableString()

    cdef int32_t _find_coordinator(self, int64_t now_ms) noexcept nogil:
        """Return the coordinator, or -1 during the search. A failed search is reported, and repeated with backoff."""
        cdef int32_t node = self.coordinator.coordinator()
        if node >= 0:
            self.waits_for_coordinator = False
        elif not self.waits_for_coordinator:
            self.waits_for_coordinator = True
            self.failures_seen = self.coordinator.failures
        elif self.failures_seen != self.coordinator.failures:
            self.failures_seen = self.coordinator.failures
            self.membership.report(self.coordinator.fatal, string())
            self.joining.on_failure(now_ms, dereference(self.backoff), self.jitter)
        return node

    cdef void _send_join(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[JoinGroupRequest]* body = new BodyOf[JoinGroupRequest]()
        cdef size_t i
        self.owes_assignment = False
        self.assignor_failed = False
        body.message.group_id = self.group.group_id
        body.message.session_timeout_ms = self.group.session_timeout_ms
        body.message.rebalance_timeout_ms = self.group.max_poll_interval_ms
        body.message.member_id = self.member_id
        body.message.protocol_type = string(b"consumer")
        if not self.group.group_instance_id.empty():
            body.message.group_instance_id.set(self.group.group_instance_id)
            body.lowest = STATIC_MEMBERS_SINCE_JOIN
        if self.rejoin_reason[0] != 0:
            body.message.reason.set(string(self.rejoin_reason))
        for i in range(self.group.strategies.size()):
            self._add_strategy(body, self.group.strategies[i])
        self.application.drop()
        self.fresh_from = 0
        self.joined_version = self.membership.subscription_version
        self.joined_with_partitions = not self.membership.ownership.owned().empty()
        self.takes_over = self.member_id.empty() and not self.group.group_instance_id.empty()
        self.member.joining = True
        self.joining.on_send()
        self.heartbeat_due_ms = now_ms + self.group.heartbeat_interval_ms
        self._send_round(body, node, KIND_JOIN, now_ms)

    cdef void _add_strategy(self, BodyOf[JoinGroupRequest]* body, const string& name) noexcept nogil:
        """Add this member's subscription to the request, in the form of this assignor."""
        cdef JoinGroupRequest_JoinGroupRequestProtocol protocol
        cdef GroupMember member
        cdef AssignorKind kind
        protocol.name = name
        member.topics = self.membership.subscribed
        group_by_topic(self.membership.ownership.owned(), member.owned)
        member.generation = self.generation
        member.rack = self.group.rack
        if find_assignor(name, &kind):
            member.user_data = assignor_user_data(kind, &self.last if self.has_last else NULL, self.last_generation)
        else:
            member.user_data = self._user_data(name)
        if encode_subscription(member, protocol.metadata):
            body.message.protocols.push_back(protocol)

    cdef void _assign(self, int64_t now_ms) noexcept nogil:
        """Decide the assignment as the leader, or keep the present one (KIP-814)."""
        cdef Status status
        self.made.clear()
        self.phase = PHASE_SYNC
        if self.leader.failed():
            self.application.drop()
            self._keep_owners(now_ms)
            return
        status = self.leader.assign(self.made)
        if not status.ok():
            self._refused(status, now_ms)

    cdef void _keep_owners(self, int64_t now_ms) noexcept nogil:
        """Complete the generation without an assignment of the application's assignor.

        Until then, the coordinator refuses the commits of all members. The next attempt would wait for the application,
        which may take long (test_a_failed_assignor_keeps_the_owners_and_is_asked_again). In the callback of its leave,
        the application makes no other attempt: the leave starts the next generation
        (test_a_leader_that_joined_keeps_the_owners_while_the_callback_of_its_leave_runs). Otherwise, without owners
        there are no commits to protect, and this member joins again.
        """
        cdef bint leaves = self.membership.in_leave_callback
        if (leaves or self.leader.has_owners()) and self.leader.keep(self.made):
            self.assignor_failed = not leaves
            return
        self.rejoin_reason = ASSIGNOR_RAISED
        self._join_again(now_ms)

    cdef void _send_sync(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[SyncGroupRequest]* body = new BodyOf[SyncGroupRequest]()
        body.message.group_id = self.group.group_id
        body.message.generation_id = self.generation
        body.message.member_id = self.member_id
        body.message.protocol_type.set(string(b"consumer"))
        body.message.protocol_name.set(self.protocol_name)
        body.message.assignments.swap(self.made)
        if not self.group.group_instance_id.empty():
            body.message.group_instance_id.set(self.group.group_instance_id)
            body.lowest = STATIC_MEMBERS_SINCE
        self.joining.on_send()
        self._send_round(body, node, KIND_SYNC, now_ms)

    cdef void _send_round(self, RequestBody* body, int32_t node, int32_t kind, int64_t now_ms) noexcept nogil:
        """Send a JoinGroup or SyncGroup.

        The coordinator answers when all members have sent theirs, at the latest after the rebalance timeout.
        """
        cdef Request* request = self.send(body, node, CHANNEL_JOIN, kind, now_ms, INT64_MAX)
        request.wait_ms = self.group.max_poll_interval_ms + JOIN_GRACE_MS
        request.deadline_ms = max(request.deadline_ms, now_ms + request.wait_ms)
        request.cookie = self.round
        self.join_node = node
        self.round_boot_us = self.delegate.clock.boot_us()

    # ---- answers

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        if request.kind == KIND_JOIN:
            self._on_join(request, response, now_ms)
        elif request.kind == KIND_SYNC:
            self._on_sync(request, response, now_ms)
        elif request.kind == KIND_CLASSIC_HEARTBEAT:
            self._on_heartbeat(request, response, now_ms)
        else:
            self._on_leave(response, now_ms)

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        if request.kind == KIND_CLASSIC_LEAVE:
            self.leave_in_flight = False
            self.membership.leave_failed(now_ms)
        elif request.kind == KIND_CLASSIC_HEARTBEAT:
            if request.cookie == self.identity:
                self._lost_coordinator(request.node_id, status.detail.c_str(), now_ms)
                self._heartbeat_failed(now_ms)
        elif request.cookie == self.round:
            if status.code == <int>ERR_UNSUPPORTED_FEATURE:
                self._fail(status, now_ms)
                return
            self._lost_coordinator(request.node_id, status.detail.c_str(), now_ms)
            self._join_again(now_ms)

    cdef bint _readable(self, Reader& reader, Request* request, Response* response, int32_t throttle_time_ms,
                        int64_t now_ms) noexcept nogil:
        """Whether the response is readable; if not, end the connection and the request."""
        if self.readable(reader.status(), response, throttle_time_ms, b"GROUP", now_ms):
            return True
        self.on_failure(request, reader.status(), now_ms)
        return False

    cdef void _on_join(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef JoinGroupResponse message
        cdef Reader reader = Reader(response.body, response.length)
        cdef bint missed
        message.decode(reader, response.version)
        if not self._readable(reader, request, response, message.throttle_time_ms, now_ms):
            return
        if request.cookie != self.round:
            return
        if message.error_code != 0:
            self._on_join_error(message, response.node_id, now_ms)
            return
        if not message.protocol_type.is_null and not (message.protocol_type.value == b"consumer"):
            self._refused(Status(<int>INCONSISTENT_GROUP_PROTOCOL, string(
                b"JoinGroup: another protocol uses this group, expected consumer: set another group.id")), now_ms)
            return
        self.joining.on_success()
        missed = self._missed_generations(message)
        self._become(message.member_id, message.generation_id, now_ms)
        self.protocol_name = message.protocol_name.value
        if missed and self.membership.state == MEMBER_JOINING:
            self._fence(False, b"the group completed a generation without this member: others may own its partitions",
                        now_ms)
            return
        if not missed:
            self.membership.on_joined(self.member_id, self.generation, now_ms)
        if self.membership.state == MEMBER_JOINING:
            self._on_joined(message, now_ms)
        elif message.leader == self.member_id and self.leader.elect(message).ok():
            self.owes_assignment = True
            self._finish_round(now_ms)
        else:
            self.phase = PHASE_OUT

    cdef void _finish_round(self, int64_t now_ms) noexcept nogil:
        """Complete the generation that waits for this leader, which then leaves. Otherwise the coordinator would accept
        no commit until the rebalance timeout. All members keep their partitions, even if the assignor has failed. The
        leave then starts the next generation."""
        cdef int32_t node = self.coordinator.coordinator()
        if not self.owes_assignment or self.joining.in_flight or node < 0:
            return
        self.made.clear()
        self.phase = PHASE_OUT
        self.owes_assignment = False
        if self.leader.keep(self.made):
            self._send_sync(node, now_ms)

    cdef bint _missed_generations(self, JoinGroupResponse& message) noexcept nogil:
        """Whether this static member missed a generation, and has lost its partitions.

        1. A static member keeps its place beyond the rebalance timeout (KIP-345).
        2. Meanwhile a leader may give its partitions to other members.
        3. A member of a cooperative group comes back and still owns these partitions.
        4. Its commits would overwrite the offsets of the new owner. So the partitions are lost
           (test_a_static_member_that_missed_a_generation_loses_its_partitions).

        Partitions that this member has revoked since it sent the JoinGroup are lost too: their commits may be in
        flight. A lost answer to a JoinGroup between the two generations looks the same; reading records again is
        better.
        """
        return (not self.group.group_instance_id.empty() and self.generation >= 0
                and message.generation_id > self.generation + 1 and self.joined_with_partitions)

    cdef void _become(self, const string& member_id, int32_t generation, int64_t now_ms) noexcept nogil:
        self.member_id = member_id
        self.generation = generation
        self.member.joining = False
        self.identity += 1
        self.orphans.drop()
        self.heartbeat.on_success()
        self.heartbeat_due_ms = now_ms + self.group.heartbeat_interval_ms

    cdef void _on_joined(self, JoinGroupResponse& message, int64_t now_ms) noexcept nogil:
        cdef Status status
        self.background.log.write(7, DBG_CGRP, b"JOINED", b"group %s: generation %d as %s%s",
                                  self.group.group_id.c_str(), self.generation, self.member_id.c_str(),
                                  b", leader" if message.leader == self.member_id else b"")
        if message.leader == self.member_id:
            status = self.leader.elect(message)
            if not status.ok():
                self._refused(status, now_ms)
                return
            self.phase = PHASE_ASSIGN
            self.owes_assignment = True
        else:
            self.leader.resign()
            self.made.clear()
            self.phase = PHASE_SYNC
        self._join(now_ms)

    cdef void _on_join_error(self, JoinGroupResponse& message, int32_t node_id, int64_t now_ms) noexcept nogil:
        cdef int32_t code = message.error_code
        self.background.log.write(6, DBG_CGRP, b"JOINGROUP", b"group %s: JoinGroup failed: %s (error %d)",
                                  self.group.group_id.c_str(), classic_error(code), code)
        if code == <int>MEMBER_ID_REQUIRED:
            self.joining.on_success()
            self.member_id = message.member_id
            self.generation = -1
            self.identity += 1
            self.rejoin_reason = b"need to re-join with the given member-id"
        elif code == <int>UNKNOWN_MEMBER_ID:
            self._fence(True, classic_error(code), now_ms)
        else:
            self._on_round_error(code, b"JoinGroup", node_id, now_ms)

    cdef void _on_sync(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef SyncGroupResponse message
        cdef Reader reader = Reader(response.body, response.length)
        message.decode(reader, response.version)
        # In an error, librdkafka's mock cluster sends a null assignment, which no version allows. The error counts.
        if ((reader.ok() or message.error_code == 0)
                and not self._readable(reader, request, response, message.throttle_time_ms, now_ms)):
            return
        if request.cookie != self.round:
            return
        self.owes_assignment = False
        if self.membership.state != MEMBER_JOINING:
            self.joining.in_flight = False
            return
        if message.error_code != 0:
            self._on_sync_error(message.error_code, response.node_id, now_ms)
        elif (not message.protocol_type.is_null and not (message.protocol_type.value == b"consumer")
                or not message.protocol_name.is_null and not (message.protocol_name.value == self.protocol_name)):
            self._refused(Status(<int>INCONSISTENT_GROUP_PROTOCOL, string(
                b"SyncGroup: the coordinator answered for another protocol or assignor than JoinGroup")), now_ms)
        else:
            self._take_assignment(message, now_ms)

    cdef void _on_sync_error(self, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil:
        self.background.log.write(6, DBG_CGRP, b"SYNCGROUP", b"group %s: SyncGroup failed: %s (error %d)",
                                  self.group.group_id.c_str(), classic_error(code), code)
        if code == <int>REBALANCE_IN_PROGRESS:
            self.joining.on_success()
            self.rejoin_reason = b"the group began another rebalance"
            self.phase = PHASE_JOIN
        elif code == <int>UNKNOWN_MEMBER_ID or code == <int>ILLEGAL_GENERATION:
            self._fence(code == <int>UNKNOWN_MEMBER_ID, classic_error(code), now_ms)
        else:
            self._on_round_error(code, b"SyncGroup", node_id, now_ms)

    cdef void _on_round_error(self, int32_t code, const char* reason, int32_t node_id, int64_t now_ms) noexcept nogil:
        """Handle the errors that JoinGroup and SyncGroup have in common."""
        cdef string detail = string(reason)
        detail.append(b": ").append(classic_error(code))
        if code == <int>COORDINATOR_NOT_AVAILABLE or code == <int>NOT_COORDINATOR:
            self._lost_coordinator(node_id, classic_error(code), now_ms)
            self._join_again(now_ms)
        elif (code == <int>COORDINATOR_LOAD_IN_PROGRESS or code == <int>REBALANCE_IN_PROGRESS
                or code == <int>ILLEGAL_GENERATION):
            self._join_again(now_ms)
        elif code == <int>FENCED_INSTANCE_ID or code == <int>UNSUPPORTED_VERSION:
            self._fail(Status(code, detail), now_ms)
        else:
            self._refused(Status(code, detail), now_ms)

    cdef void _take_assignment(self, SyncGroupResponse& message, int64_t now_ms) noexcept nogil:
        cdef vector[TopicPartitions] assigned
        cdef vector[TopicPartition] target
        cdef NullableString user_data
        cdef Status status = decode_assignment(<const uint8_t*>message.assignment.data(), message.assignment.size(),
                                               assigned, user_data)
        if not status.ok():
            self._refused(status, now_ms)
            return
        if not self._is_subscribed(assigned):
            self.rejoin_reason = b"received assignment does not match the current subscription"
            if self.joined_version == self.membership.subscription_version:
                # To a static member that comes back with other topics, the coordinator gives its former assignment.
                self._join_again(now_ms)
            else:
                self.joining.on_success()
                self.phase = PHASE_JOIN
            return
        self.joining.on_success()
        self._heard(self.round_boot_us)
        self.last = assigned
        self.last_generation = self.generation
        self.has_last = True
        flatten(assigned, target)
        self.membership.made_by(self.protocol_name, user_data)
        self.rejoin_wanted = False
        self.rejoin_reason = b""
        self.phase = PHASE_IN
        self.membership.on_target(target, now_ms)
        if self.takes_over and (self.leader.skip_assignment if self.leader.leading else self.group.cooperative):
            # Not at once: the owner of a partition to revoke may be about to begin the rebalance.
            self.orphans.begin(now_ms + self.group.heartbeat_interval_ms)
        if self.assignor_failed:
            self.joining.on_failure(now_ms, dereference(self.backoff), self.jitter)
            self._want_rejoin(ASSIGNOR_RAISED)

    cdef bint _is_subscribed(self, vector[TopicPartitions]& assigned) noexcept nogil:
        cdef size_t i
        for i in range(assigned.size()):
            if not self.membership.wants(assigned[i].topic):
                return False
        return True

    # ---- ends of a round

    cdef void _join_again(self, int64_t now_ms) noexcept nogil:
        self.joining.on_failure(now_ms, dereference(self.backoff), self.jitter)
        self.round += 1
        self.application.drop()
        self.phase = PHASE_JOIN

    cdef void _refused(self, const Status& status, int64_t now_ms) noexcept nogil:
        """Report an error that only the user can fix, each time, and join again."""
        self.membership.report(status, string())
        self._join_again(now_ms)

    cdef void _fence(self, bint forget_id, const char* why, int64_t now_ms) noexcept nogil:
        self._reset(forget_id, now_ms)
        if forget_id and self.membership.state == MEMBER_LEAVING:
            self.membership.commits.on_lost(now_ms)  # the leave need not wait for them
        self.rejoin_reason = why
        self.membership.fence(why, now_ms)

    cdef void _fail(self, const Status& status, int64_t now_ms) noexcept nogil:
        self._reset(True, now_ms)
        # As in librdkafka: only a member replaced by another one with its instance id is fatal.
        self.membership.fail(status, status.code == <int>FENCED_INSTANCE_ID, now_ms)

    cdef void _reset(self, bint forget_id, int64_t now_ms) noexcept nogil:
        """Leave every generation; requests in flight are obsolete."""
        if self.joining.in_flight:
            self._abandon(now_ms)
        self.member.joining = False
        if forget_id:
            self.member_id.clear()
        if self.phase == PHASE_OUT and self.generation < 0:
            return
        self.generation = -1
        self.identity += 1
        self.orphans.drop()
        self.round += 1
        self.phase = PHASE_OUT
        self.owes_assignment = False
        self.rejoin_wanted = False
        self.rejoining = False
        self.joining.on_success()
        self.heartbeat.on_success()
        self.leader.resign()

    cdef void _abandon(self, int64_t now_ms) noexcept nogil:
        """Give up a JoinGroup that may be parked for minutes; the next one must not wait. A JoinGroup that still waits
        for its connection must not be sent: it would make this consumer a ghost member
        (test_a_parked_join_is_given_up_when_leaving)."""
        self.round += 1
        self.joining.on_given_up()
        self.delegate.fail_bound_to(self.join_node, CHANNEL_JOIN, Status(<int>ERR_INTR, string(
            b"the JoinGroup was abandoned")))
        self.delegate.network.renew(self.join_node, CHANNEL_JOIN, now_ms)

    cdef void _lost_coordinator(self, int32_t node_id, const char* why, int64_t now_ms) noexcept nogil:
        self.coordinator.mark_unknown(node_id, why, now_ms)
        self.coordinator.coordinator()
        # The answer to a heartbeat in flight to that broker is obsolete.
        self.identity += 1
        self.heartbeat.on_given_up()

    # ---- heartbeats

    cdef int64_t _heartbeat(self, int64_t now_ms) noexcept nogil:
        """Send heartbeats, also while a JoinGroup is parked, unlike the Java client.

        The coordinator does not expire a member with a parked JoinGroup. But nothing else shows that the path to it, or
        the coordinator, is dead: the answer to a JoinGroup may take minutes.
        """
        cdef int32_t node
        cdef int64_t due
        cdef bint session_ended = self.sessions_over_seen != self.membership.sessions_over
        cdef bint parked = self.phase == PHASE_JOIN and self.joining.in_flight
        if self.member_id.empty() if parked else self.generation < 0:
            return INT64_MAX
        self.sessions_over_seen = self.membership.sessions_over
        node = self.coordinator.coordinator()
        if node < 0:
            return INT64_MAX
        if session_ended:
            self._lost_coordinator(node, b"session timed out without receiving a heartbeat response", now_ms)
            self.heartbeat_due_ms = now_ms  # its answer decides whether this member goes on
            return 0
        if self.heartbeat.in_flight:
            return INT64_MAX
        if self.membership.commits.take_fence() != 0:
            # A commit was refused: ask immediately whether this consumer is still a member.
            self.heartbeat_due_ms = now_ms
        due = max(self.heartbeat_due_ms, self.heartbeat.not_before_ms)
        if now_ms < due:
            return due - now_ms
        self._send_heartbeat(node, now_ms)
        return self.group.heartbeat_interval_ms

    cdef void _send_heartbeat(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[HeartbeatRequest]* body = new BodyOf[HeartbeatRequest]()
        body.message.group_id = self.group.group_id
        body.message.generation_id = self.generation
        body.message.member_id = self.member_id
        if not self.group.group_instance_id.empty():
            body.message.group_instance_id.set(self.group.group_instance_id)
            body.lowest = STATIC_MEMBERS_SINCE
        self.heartbeat.on_send()
        self.heartbeat_sent_us = self.delegate.clock.now_us()
        self.heartbeat_boot_us = self.delegate.clock.boot_us()
        self.heartbeat_due_ms = now_ms + self.group.heartbeat_interval_ms
        # Notice a coordinator that does not answer while there is time to find its successor.
        self.send(body, node, CHANNEL_COORDINATOR, KIND_CLASSIC_HEARTBEAT, now_ms,
                  now_ms + 2 * self.group.session_timeout_ms // 3).cookie = self.identity

    cdef void _on_heartbeat(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef HeartbeatResponse message
        cdef Reader reader = Reader(response.body, response.length)
        message.decode(reader, response.version)
        if not self._readable(reader, request, response, message.throttle_time_ms, now_ms):
            return
        if request.cookie != self.identity:
            return
        self.shared.heartbeats.add(self.delegate.clock.now_us() - self.heartbeat_sent_us)
        if message.error_code == 0 or message.error_code == <int>REBALANCE_IN_PROGRESS:
            self.heartbeat.on_success()
            self._heard(self.heartbeat_boot_us)
            if message.error_code != 0:
                self._on_rebalance_in_progress(now_ms)
        elif self.phase == PHASE_JOIN and self.joining.in_flight:
            # The coordinator already knows a later generation: the JoinGroup overtook this heartbeat, or its own answer
            # was lost. It has this member, and does not expire it. The JoinGroup response reports errors of this member
            # (test_a_heartbeat_that_a_join_overtook_is_ignored).
            self.heartbeat.on_success()
            if message.error_code == <int>ILLEGAL_GENERATION:
                self._heard(self.heartbeat_boot_us)
        else:
            self._on_heartbeat_error(message.error_code, response.node_id, now_ms)

    cdef void _on_rebalance_in_progress(self, int64_t now_ms) noexcept nogil:
        if self.phase == PHASE_IN:
            self._want_rejoin(b"group is already rebalancing")
        elif self.phase == PHASE_ASSIGN:
            # Metadata or the application's assignor took too long: the group continues without this assignment.
            self.round += 1
            self.application.drop()
            self.phase = PHASE_JOIN

    cdef void _on_heartbeat_error(self, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil:
        cdef string detail = string(b"Heartbeat: ")
        detail.append(classic_error(code))
        self.background.log.write(6, DBG_CGRP, b"HEARTBEAT", b"group %s: Heartbeat failed: %s (error %d)",
                                  self.group.group_id.c_str(), classic_error(code), code)
        if code == <int>UNKNOWN_MEMBER_ID or code == <int>ILLEGAL_GENERATION:
            self._fence(code == <int>UNKNOWN_MEMBER_ID, classic_error(code), now_ms)
        elif code == <int>FENCED_INSTANCE_ID or code == <int>UNSUPPORTED_VERSION:
            self._fail(Status(code, detail), now_ms)
        else:
            if code == <int>COORDINATOR_NOT_AVAILABLE or code == <int>NOT_COORDINATOR:
                self._lost_coordinator(node_id, classic_error(code), now_ms)
            elif code == <int>COORDINATOR_LOAD_IN_PROGRESS:
                self._heard(self.heartbeat_boot_us)  # it begins every session again
            else:
                self.membership.report(Status(code, detail), string())
            self._heartbeat_failed(now_ms)

    cdef void _heard(self, int64_t sent_us) noexcept nogil:
        if self.member.joined:
            self.shared.session.heard(sent_us)

    cdef void _heartbeat_failed(self, int64_t now_ms) noexcept nogil:
        """Send the next heartbeat after the backoff, not after the interval."""
        self.heartbeat.on_failure(now_ms, dereference(self.backoff), self.jitter)
        self.heartbeat_due_ms = now_ms

    # ---- leaving

    cdef void _leave(self, int64_t now_ms) noexcept nogil:
        """Leave the group, or only forget it (leaves_for_good). Without a coordinator the member ends at its session
        timeout."""
        cdef BodyOf[LeaveGroupRequest]* body
        cdef LeaveGroupRequest_MemberIdentity member
        cdef int64_t deadline = INT64_MAX
        cdef bint wanted = self.membership.leaves_for_good() and not self.member_id.empty()
        cdef bint leave_is_needed = wanted and self.coordinator.node >= 0
        if self.leave_in_flight:
            return
        if wanted and not leave_is_needed:
            self.background.log.write(5, 0, b"LEAVEGROUP", b"group %s: left without a coordinator: the group "
                                      b"drops this member when its session times out", self.group.group_id.c_str())
        if leave_is_needed:
            body = new BodyOf[LeaveGroupRequest]()
            body.message.group_id = self.group.group_id
            body.message.member_id = self.member_id
            member.member_id = self.member_id
            member.reason.set(string(self._why_leaving()))
            body.message.members.push_back(member)
            if self.membership.leaving != NULL:
                deadline = self.membership.leaving.deadline_ms
            self.leave_in_flight = True
            self.send(body, self.coordinator.node, CHANNEL_COORDINATOR, KIND_CLASSIC_LEAVE, now_ms, deadline)
        self._reset(True, now_ms)
        self.has_last = False
        self.rejoin_reason = b""
        if not leave_is_needed:
            self.membership.left(now_ms)

    cdef const char* _why_leaving(self) noexcept nogil:
        if self.membership.state == MEMBER_STALE:
            return b"consumer poll timeout has expired."
        if self.membership.closing:
            return b"the consumer is being closed"
        return b"the consumer unsubscribed from all topics"

    cdef void _on_leave(self, Response* response, int64_t now_ms) noexcept nogil:
        cdef LeaveGroupResponse message
        cdef Reader reader = Reader(response.body, response.length)
        message.decode(reader, response.version)
        if not reader.ok() or message.error_code != 0:
            self.background.log.write(6, DBG_CGRP, b"LEAVEGROUP", b"group %s: LeaveGroup failed: %s",
                                      self.group.group_id.c_str(), classic_error(message.error_code))
        self.leave_in_flight = False
        self.membership.left(now_ms)
