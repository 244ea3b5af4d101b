"""Owns: MembershipManager: the state of this member (state/member_state.hpp), the reconciliation of its partitions with
its target for both group protocols, the subscribed topics, max.poll.interval.ms.

thread: N. Never: sends a request (the manager of the protocol does, from `state`), runs a callback, commits (it passes
offsets to CommitRequestManager).

Where the application has no callback, this manager changes the assignment itself. It asks the application for a
revocation only if records of the partitions are in its hands (SubscriptionState.take_away).

The application answers every RebalanceEvent with an ACK that carries its id, except for an error, GIVEN_UP and an
ASSIGN of nothing. At most one ACK is outstanding. Exception: a LOST may follow a REVOKE or ASSIGN that the application
is running at that moment. An event that it has not begun is withdrawn first.
"""


cdef extern from * nogil:
    """
    #include <algorithm>
    template <class T> static inline void kc_sort_unique(std::vector<T>& v) {
      std::sort(v.begin(), v.end());
      v.erase(std::unique(v.begin(), v.end()), v.end());
    }
    template <class T> static inline bool kc_same(const std::vector<T>& a, const std::vector<T>& b) { return a == b; }
    """
    void sort_unique "kc_sort_unique"[T](vector[T]& v)
    bint same "kc_same"[T](const vector[T]& a, const vector[T]& b)

cdef const char* rebalance_name(RebalanceKind kind) noexcept nogil:
    return (b"assign" if kind == REBALANCE_ASSIGN else b"revoke" if kind == REBALANCE_REVOKE
            else b"lost" if kind == REBALANCE_LOST else b"given up")


cdef enum:
    LIVENESS_SAMPLE_MS = 1000       # upper bound: how late a missed max.poll.interval.ms may be noticed
    STALE_SAMPLE_MS = 100           # how late the next poll may be noticed
    ASSIGN_GRACE_MS = 500           # how long a queued on_assign delays a rebalance for which the group waits


@cython.no_gc
cdef class MembershipManager(RequestManager):
    def __cinit__(self, ManagerContext context, MetadataRequestManager metadata not None,
                  CommitRequestManager commits not None):
        self.member.owned = &self.ownership.owned()
        self.metadata = metadata
        self.commits = commits
        self.state = MEMBER_UNSUBSCRIBED
        self.started_ms = -1

    def __dealloc__(self):
        if self.leaving != NULL:
            self.leaving.release()

    # ---- the subscription

    cdef void on_subscribe(self, SubscribeEvent* event, int64_t now_ms) noexcept nogil:
        """Replace the subscription; takes over one reference."""
        cdef vector[string] topics = event.topics
        cdef vector[string] patterns = event.patterns
        self.epoch = event.epoch
        self.calls_on_assign = event.calls_on_assign
        self.calls_on_revoke = event.calls_on_revoke
        event.release()
        sort_unique(topics)
        sort_unique(patterns)
        if not same(topics, self.topics) or not same(patterns, self.patterns) or not self.member.subscribed:
            self._set_subscription(topics, patterns, now_ms)
        self.member.subscribed = True
        self.member.leaving = False
        if self.state == MEMBER_LEAVING or self.state == MEMBER_FATAL and self.awaiting_lost:
            # As long as the application has the lost partitions, a join would commit for them.
            self.resubscribed = True
            return
        if self.state == MEMBER_FATAL:
            self.move(MEMBER_UNSUBSCRIBED)
        if self.state == MEMBER_UNSUBSCRIBED:
            self._join(now_ms)

    cdef void _set_subscription(self, vector[string]& topics, vector[string]& patterns, int64_t now_ms) noexcept nogil:
        cdef Status status
        self.topics = topics
        self.patterns = patterns
        self.reported.clear()
        self.matcher.clear()
        self.background.log.write(7, DBG_CGRP | DBG_CONSUMER, b"SUBSCRIBE", b"subscription of %zu topics, %zu patterns",
                                  topics.size(), patterns.size())
        if not self.group.consumer_protocol or self.matches_here:
            status = self.matcher.set(patterns)
            if not status.ok():
                self.report(status, string())
        self.metadata.want_all_topics(not self.matcher.empty())
        self.subscribed = topics
        self.subscribed_known = self.matcher.empty()
        self.subscription_version += 1
        self.metadata_seen = self.metadata.updates
        self.hold_topics(self.held, self.subscribed)

    cdef void match_here(self, int64_t now_ms) noexcept nogil:
        cdef vector[string] topics = self.topics
        cdef vector[string] patterns = self.patterns
        self.matches_here = True
        self._set_subscription(topics, patterns, now_ms)

    cdef uint64_t hold_topics(self, vector[string]& held, const vector[string]& wanted) noexcept nogil:
        cdef vector[string] before
        cdef size_t i
        for i in range(wanted.size()):
            self.positions.take_interest(wanted.at(i))
        before.swap(held)
        held = wanted
        for i in range(before.size()):
            self.positions.drop_interest(before[i])
        # The metadata of topics that were of no interest before may be out of date.
        return self.metadata.updates + (1 if self.positions.interest_changed else 0)

    cdef bint knows_topics(self, const vector[string]& held, uint64_t fresh_from) noexcept nogil:
        cdef size_t i
        if self.metadata.updates < fresh_from:
            return False
        for i in range(held.size()):
            if self.positions.cluster.topic(held.at(i)) == NULL:
                return False
        return True

    cdef void _take_metadata(self) noexcept nogil:
        """Match the patterns again with the changed cluster cache.

        Reports subscribed topics that do not exist.
        """
        if self.metadata_seen == self.metadata.updates or self.topics.empty() and self.patterns.empty():
            return
        self.metadata_seen = self.metadata.updates
        if not self.matcher.empty() and self.metadata.all_topics_known:
            self._match()
        self._report_missing_topics()

    cdef void _match(self) noexcept nogil:
        cdef vector[string] found = self.topics
        it = self.positions.cluster.topics.begin()
        while it != self.positions.cluster.topics.end():
            if (not (dereference(it).second.internal and self.group.exclude_internal_topics)
                    and self.matcher.matches(dereference(it).first)):
                if dereference(it).second.error == 0:
                    found.push_back(dereference(it).first)
                else:
                    self.background.log.write(5, 0, b"SUBSCRIPTION", b"topic %s matches a pattern but is not available "
                                              b"(error %d): skipped", dereference(it).first.c_str(),
                                              <int>dereference(it).second.error)
            preincrement(it)
        sort_unique(found)
        if self.subscribed_known and same(found, self.subscribed):
            return
        self.subscribed = found
        self.subscribed_known = True
        self.subscription_version += 1
        self.hold_topics(self.held, self.subscribed)

    cdef void _report_missing_topics(self) noexcept nogil:
        """Report a missing topic once per topic and error, as confluent_kafka does."""
        cdef TopicEntry* entry
        cdef size_t i
        cdef int32_t error
        cdef string detail
        for i in range(self.topics.size()):
            entry = self.positions.cluster.topic(self.topics[i])
            if entry == NULL or entry.error == <int>LEADER_NOT_AVAILABLE:
                continue
            error = entry.error
            if self.group.consumer_protocol and error == <int>UNKNOWN_TOPIC_OR_PARTITION:
                # As in confluent_kafka: the coordinator assigns the topic when it exists.
                continue
            if error == 0:
                self.reported.erase(self.topics[i])
            elif self.reported[self.topics[i]] != error:
                self.reported[self.topics[i]] = error
                detail = string(b"Subscribed topic not available: ")
                detail.append(self.topics[i]).append(b": ")
                if error == <int>UNKNOWN_TOPIC_OR_PARTITION:
                    detail.append(b"check the name, or create the topic")
                else:
                    detail.append(topic_reason(error, self.topics[i]))
                self.report(Status(error, detail), self.topics[i])

    # ---- every turn

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait
        self._take_metadata()
        wait = min(self._check_liveness(now_ms), self._check_revocation(now_ms))
        wait = min(wait, self._check_session(now_ms))
        if self.ownership.waits():
            wait = min(wait, self.withdraw_assign(now_ms))
        if self.state == MEMBER_STALE:
            wait = min(wait, self._await_return(now_ms))
        return min(wait, self._poll_leave(now_ms))

    cdef int64_t _check_liveness(self, int64_t now_ms) noexcept nogil:
        """Check max.poll.interval.ms.

        A wait that has ended since the last sample counts as alive until now. The samples are frequent enough to make
        this difference small.
        """
        cdef uint64_t polls = self.liveness.polls.load()
        cdef bint in_poll = self._in_poll()
        if (self.state == MEMBER_UNSUBSCRIBED or self.state == MEMBER_STALE or self.state == MEMBER_LEAVING
                or self.state == MEMBER_FATAL):
            return INT64_MAX
        if in_poll or self.in_poll_seen or polls != self.polls_seen:
            self.alive_ms = now_ms
        self.in_poll_seen = in_poll
        self.polls_seen = polls
        if now_ms - self.alive_ms < self.group.max_poll_interval_ms:
            return min(<int64_t>LIVENESS_SAMPLE_MS, self.alive_ms + self.group.max_poll_interval_ms - now_ms)
        self._exceeded(now_ms)
        return 0

    cdef bint _in_poll(self) noexcept nogil:
        """Whether the application waits.

        On an event loop a wait that N has ended may last: the loop may be blocked.
        """
        return self.liveness.in_poll.load() and (self.background.waiting.load() or not self.liveness.on_loop.load())

    cdef void _exceeded(self, int64_t now_ms) noexcept nogil:
        cdef string detail = string(b"Application maximum poll interval (")
        self.background.log.write(4, 0, b"MAXPOLL", b"application maximum poll interval (%dms) exceeded by %lldms: "
                                  b"leaving the group", self.group.max_poll_interval_ms,
                                  <long long>(now_ms - self.alive_ms - self.group.max_poll_interval_ms))
        detail.append(to_string(self.group.max_poll_interval_ms)).append(b"ms) exceeded")
        self._leave_stale(detail, now_ms)

    cdef void _leave_stale(self, const string& why, int64_t now_ms) noexcept nogil:
        cdef bint losing = not self.ownership.owned().empty() or self.awaiting
        self.move(MEMBER_STALE)
        self._no_member(now_ms)
        self.leave_wanted = True
        # As in confluent_kafka: poll() returns the error, the next call runs on_lost.
        self.report(Status(<int>ERR_MAX_POLL_EXCEEDED, why), string())
        if losing and not self.awaiting_lost:
            self._lose(now_ms)

    cdef int64_t _check_session(self, int64_t now_ms) noexcept nogil:
        """Stop and resume the delivery of records and the commits at the end of the session, and after the next answer.

        The partitions are not lost yet: the coordinator's next answer decides.
        """
        cdef BackgroundEvent event
        cdef int64_t boot_us = self.commits.delegate.clock.boot_us()
        if self.shared.session.take_held_back(boot_us):
            self.background.attention.set(<uint32_t>ATTENTION_CONTROL)
            self.background.wake()
        if not self.shared.session.counts():
            return INT64_MAX
        if not self.shared.session.over(boot_us):
            if self.session_is_over:
                self.session_is_over = False
                self.background.log.write(5, 0, b"SESSION", b"group %s: the coordinator still has this member: its "
                                          b"records are returned again", self.group.group_id.c_str())
            return self.shared.session.left_ms(boot_us)
        if self.session_is_over:
            return INT64_MAX
        if not self.shared.session.over(self.commits.delegate.read_boot_us):
            return 0  # after a suspend of the process, the answers may already be in the sockets
        self.session_is_over = True
        self.sessions_over += 1
        event.type = BACKGROUND_ERROR
        event.status.code = <int>ERR_TIMED_OUT
        event.status.detail.assign(b"group ").append(self.group.group_id).append(
            b": the coordinator has accepted no heartbeat for ")
        event.status.detail.append(to_string(<long long>self.shared.session.age_ms(boot_us))).append(
            b" ms: the session of this member is over, so it returns no records and commits nothing: check the "
            b"connection to the coordinator")
        self.background.log.push(4, b"SESSION", event.status.detail)
        self.background.add(event)
        # A looks at the open records again, and finds them held back (FetchHandler.open_next).
        self.background.attention.set(<uint32_t>ATTENTION_CONTROL)
        self.commits.on_session_over(now_ms)
        return 0

    cdef void _end_session(self) noexcept nogil:
        self.shared.session.stop()
        self.session_is_over = False

    cdef int64_t _check_revocation(self, int64_t now_ms) noexcept nogil:
        """End what a revocation waits for: the application's next call, then everything."""
        cdef string detail
        cdef int64_t until
        if self.state != MEMBER_REVOKING_PARTITION and self.state != MEMBER_PARTITION_REVOKED:
            return INT64_MAX
        # The coordinator waits as long (rebalance timeout), and then removes the member: its commits are refused.
        until = self.revoking_since_ms + self.group.max_poll_interval_ms
        if now_ms >= until:
            detail = string(b"a revocation was not finished within max.poll.interval.ms (")
            detail.append(to_string(self.group.max_poll_interval_ms)).append(
                b"ms), because its callback or the commits before it took longer: left the group")
            self.background.log.write(4, 0, b"MAXPOLL", b"%s", detail.c_str())
            self._leave_stale(detail, now_ms)
            return 0
        if self.state == MEMBER_REVOKING_PARTITION and not self.waited:
            if now_ms < self.revoking_since_ms + self.group.application_wait_ms:
                return min(until, self.revoking_since_ms + self.group.application_wait_ms) - now_ms
            self.waited = True
            self._give_up_late(now_ms)
        return until - now_ms

    cdef void _give_up_late(self, int64_t now_ms) noexcept nogil:
        """Give the partitions up without the application, unless its callback is running."""
        cdef RebalanceEvent event
        if not self.background.withdraw_rebalance(self.awaited_id):
            return
        event.partitions = self.ownership.revoking()
        self.background.log.write(4, 0, b"REVOKE", b"the application has not called poll() within "
                                  b"rebalance.application.wait.ms (%dms): %zu partitions are given up, and the records "
                                  b"that it works on are read again", self.group.application_wait_ms,
                                  event.partitions.size())
        if not self._take_away(TAKE_LATE, now_ms):
            return  # unsubscribe() or close() has begun
        self.awaiting = False
        if self.calls_on_revoke:
            self._post(event, REBALANCE_GIVEN_UP)

    cdef bint _take_away(self, TakeAway how, int64_t now_ms) noexcept nogil:
        """Revoke without the application. False: its next call does."""
        cdef vector[PartitionOffset] offsets
        if not self.positions.subscription.take_away(self.ownership.revoking(), self.epoch, how,
                                                     self.group.auto_offset_store, offsets):
            return False
        self._log(REBALANCE_REVOKE, self.ownership.revoking())
        self._changed_assignment(now_ms)
        self._revoked(offsets, now_ms)
        return True

    cdef void _changed_assignment(self, int64_t now_ms) noexcept nogil:
        self.background.attention.set(<uint32_t>ATTENTION_CONTROL)
        self.positions.adopt(now_ms)

    cdef int64_t withdraw_assign(self, int64_t now_ms) noexcept nogil:
        """End ASSIGNING_PARTITIONS if the application has not begun its on_assign for a while: the group waits.

        Returns the time until then. The partitions are assigned again by the next target.
        """
        if self.state != MEMBER_ASSIGNING_PARTITIONS or not self.awaiting or self.awaited_kind != REBALANCE_ASSIGN:
            return INT64_MAX
        if now_ms < self.awaiting_since_ms + ASSIGN_GRACE_MS:
            return self.awaiting_since_ms + ASSIGN_GRACE_MS - now_ms
        if not self.background.withdraw_rebalance(self.awaited_id):
            return INT64_MAX
        self.awaiting = False
        self.ownership.untake()
        self._reconciled(now_ms)
        return 0

    cdef int64_t _await_return(self, int64_t now_ms) noexcept nogil:
        """Join again after a leave for missing polls.

        The application must have polled again, and must have acknowledged the lost partitions.
        """
        cdef uint64_t polls = self.liveness.polls.load()
        if self.awaiting_lost:
            self.polls_seen = polls
            return INT64_MAX
        if self.leave_wanted:
            return INT64_MAX
        if polls == self.polls_seen and not self._in_poll():
            return STALE_SAMPLE_MS
        self._join(now_ms)
        return 0

    cdef void _join(self, int64_t now_ms) noexcept nogil:
        self.started_ms = now_ms
        self.alive_ms = now_ms
        self.polls_seen = self.liveness.polls.load()
        self.move(MEMBER_JOINING)

    # ---- reconciliation

    cdef void on_joined(self, const string& member_id, int32_t epoch, int64_t now_ms) noexcept nogil:
        self.member.joined = True
        self.member.member_id = member_id
        self.member.epoch = epoch
        self.shared.publish(member_id, epoch)

    cdef void made_by(self, const string& assignor, const NullableString& user_data) noexcept nogil:
        cdef AssignorKind kind
        self.target_assignor.clear()
        if not find_assignor(assignor, &kind):
            self.target_assignor = assignor
            self.target_user_data = user_data

    cdef void on_target(self, vector[TopicPartition]& target, int64_t now_ms) noexcept nogil:
        if self.state >= MEMBER_JOINING and self.state <= MEMBER_STABLE:
            self.ownership.aim_at(target)
            self.reconcile(now_ms)

    cdef void reconcile(self, int64_t now_ms) noexcept nogil:
        if self.state != MEMBER_JOINING and self.state != MEMBER_STABLE or not self.ownership.begin():
            return
        if self.started_ms < 0:
            self.started_ms = now_ms
        if self.ownership.revoking().empty():
            self._assign(now_ms)
        else:
            self._revoke(now_ms)

    cdef bint revoke_all(self, int64_t now_ms) noexcept nogil:
        return self._revoke_first(self.ownership.owned(), now_ms)

    cdef bint revoke_unsubscribed(self, int64_t now_ms) noexcept nogil:
        cdef vector[TopicPartition] unwanted
        cdef size_t i
        for i in range(self.ownership.owned().size()):
            if not self.wants(self.ownership.owned()[i].topic):
                unwanted.push_back(self.ownership.owned()[i])
        return self._revoke_first(unwanted, now_ms)

    cdef bint wants(self, const string& topic) noexcept nogil:
        return contains_name(self.subscribed, topic) or self.matcher.matches(topic)

    cdef bint _revoke_first(self, const vector[TopicPartition]& partitions, int64_t now_ms) noexcept nogil:
        if partitions.empty():
            return True
        if self.started_ms < 0:
            self.started_ms = now_ms
        self.ownership.give_up(partitions)
        self._revoke(now_ms)
        return False

    cdef void _revoke(self, int64_t now_ms) noexcept nogil:
        self.move(MEMBER_PREPARE_REVOCATION)
        self._stop_fetching(self.ownership.revoking())
        self.move(MEMBER_REVOKING_PARTITION)
        self.revoking_since_ms = now_ms
        self.waited = False
        if self.calls_on_revoke or not self._take_away(TAKE_FREE, now_ms):
            self._notify(REBALANCE_REVOKE, self.ownership.revoking(), now_ms)

    cdef void _stop_fetching(self, const vector[TopicPartition]& partitions) noexcept nogil:
        cdef PartitionState* p
        for p in self.positions.tracked:
            if not p.revoking and holds_partition(partitions, p.topic, p.partition):
                p.revoking = True
                self.positions.mark_dirty(p)

    cdef void _assign(self, int64_t now_ms) noexcept nogil:
        """Assign the rest of the target: here, or in on_assign if the application has one.

        In the classic protocol on_assign runs also without partitions (as in librdkafka), which nothing waits for.
        """
        cdef RebalanceEvent event
        cdef bint empty
        if not self.ownership.take():
            return
        empty = self.ownership.assigning().empty()
        if not (empty and self.group.consumer_protocol) or self.state == MEMBER_PARTITION_REVOKED:
            # The table has no move past ASSIGNING_PARTITIONS.
            self.move(MEMBER_ASSIGNING_PARTITIONS)
        if empty:
            if not self.group.consumer_protocol and self._calls_on_assign():
                self._post(event, REBALANCE_ASSIGN)
            self._reconciled(now_ms)
        elif not self._calls_on_assign() and self.positions.subscription.give(
                self.ownership.assigning(), self._is_eager(), self.epoch):
            self._log(REBALANCE_ASSIGN, self.ownership.assigning())
            self._changed_assignment(now_ms)
            self.ownership.taken(self.ownership.ours())
            self._reconciled(now_ms)
        else:
            self._notify(REBALANCE_ASSIGN, self.ownership.assigning(), now_ms)

    cdef bint _calls_on_assign(self) noexcept nogil:
        return self.calls_on_assign or not self.target_assignor.empty()

    cdef bint _is_eager(self) noexcept nogil:
        return not self.group.consumer_protocol and not self.group.cooperative

    cdef void _reconciled(self, int64_t now_ms) noexcept nogil:
        if self.state != MEMBER_STABLE:
            # The state is already STABLE if a new target equals the owned partitions.
            self.move(MEMBER_STABLE)
        self.shared.rebalances.add((now_ms - self.started_ms) * 1000)
        self.shared.rebalanced_ms.store(now_ms)
        self.started_ms = -1
        self.reconcile(now_ms)

    cdef bint revocation_committed(self) noexcept nogil:
        return self.state == MEMBER_PARTITION_REVOKED and not self.commits.held_busy()

    cdef bint may_join(self) noexcept nogil:
        return self.state == MEMBER_JOINING and not self.commits.held_busy()

    cdef bint leaves_for_good(self) noexcept nogil:
        if self.operation == LEAVE_DEFAULT:
            return self.group.group_instance_id.empty()
        return self.operation == LEAVE_FOR_GOOD

    cdef bint may_leave(self) noexcept nogil:
        return self.leave_wanted and not self.commits.held_busy()

    cdef void after_revocation(self, bint rejoin, int64_t now_ms) noexcept nogil:
        self.ownership.committed()
        if rejoin:
            self.move(MEMBER_JOINING)
        else:
            self._assign(now_ms)

    cdef void rejoin(self, int64_t now_ms) noexcept nogil:
        self.started_ms = now_ms
        self.ownership.drop_target()
        self.commits.hold(self.ownership.owned())
        self.move(MEMBER_JOINING)

    cdef void on_ack(self, AckRebalanceEvent* event, int64_t now_ms) noexcept nogil:
        """Handle the end of a callback; takes over one reference."""
        if self.awaiting and event.kind == self.awaited_kind and event.rebalance_id == self.awaited_id:
            self.awaiting = False
            if event.kind == REBALANCE_REVOKE:
                self._revoked(event.offsets, now_ms)
            elif event.kind == REBALANCE_ASSIGN:
                sort_unique(event.assignment)
                self.ownership.taken(event.assignment)
                self._reconciled(now_ms)
            else:
                self._on_lost(now_ms)
        elif event.kind == REBALANCE_REVOKE and not self.member.joined:
            # The member was fenced while on_revoke ran: the commit fails, and on_commit is called.
            self._commit_departing(event.offsets, now_ms, now_ms)
        event.release()

    cdef void _commit_departing(self, vector[PartitionOffset]& offsets, int64_t deadline_ms,
                                int64_t now_ms) noexcept nogil:
        if self.group.auto_commit and not offsets.empty():
            self.commits.commit_departing(offsets, deadline_ms, now_ms)

    cdef void _revoked(self, vector[PartitionOffset]& offsets, int64_t now_ms) noexcept nogil:
        # 1. The partitions have left the assignment. 2. The commits end. 3. The coordinator is informed.
        self.commits.hold(self.ownership.owned())
        self.ownership.given_up()
        self.move(MEMBER_PARTITION_REVOKED)
        self._commit_departing(offsets, self.revoking_since_ms + self.group.max_poll_interval_ms, now_ms)

    cdef void _on_lost(self, int64_t now_ms) noexcept nogil:
        self.awaiting_lost = False
        self.ownership.clear()
        if self.state == MEMBER_FENCED:
            self.move(MEMBER_JOINING)
        elif self.state == MEMBER_STALE:
            self.polls_seen = self.liveness.polls.load()
        elif self.state == MEMBER_FATAL and self.resubscribed:
            self.resubscribed = False
            self.move(MEMBER_UNSUBSCRIBED)
            self._join(now_ms)

    # ---- losing the membership

    cdef void fence(self, const char* why, int64_t now_ms) noexcept nogil:
        cdef bint losing = not self.ownership.owned().empty() or self.awaiting
        if (self.state == MEMBER_UNSUBSCRIBED or self.state == MEMBER_FENCED or self.state == MEMBER_STALE
                or self.state == MEMBER_LEAVING or self.state == MEMBER_FATAL):
            return
        self.background.log.write(5, 0, b"CGRPFENCED", b"no longer a valid member of the group%s: %s",
                                  b", its partitions are lost" if losing else b"", why)
        self.move(MEMBER_FENCED)
        self._no_member(now_ms)
        self.started_ms = now_ms
        if losing:
            self._lose(now_ms)
        else:
            self.move(MEMBER_JOINING)

    cdef void fail(self, const Status& status, bint fatal, int64_t now_ms) noexcept nogil:
        cdef BackgroundEvent event
        cdef bint losing = not self.ownership.owned().empty() or self.awaiting
        if self.state == MEMBER_UNSUBSCRIBED or self.state == MEMBER_FATAL:
            return
        if self.state == MEMBER_LEAVING:
            self.left(now_ms)
            return
        self.background.log.write(3, 0, b"CGRPFATAL", b"cannot stay in the group: %s", status.detail.c_str())
        self.move(MEMBER_FATAL)
        self._no_member(now_ms)
        self.leave_wanted = False
        if losing and not self.awaiting_lost:
            self._lose(now_ms)
        if fatal:
            self.member.fatal = status
            event.type = BACKGROUND_ERROR
            event.status = status
            event.fatal = True
            self.background.add(event)
        else:
            self.report(status, string())

    cdef void _no_member(self, int64_t now_ms) noexcept nogil:
        self.member.joined = False
        self.member.epoch = -1
        self._end_session()
        self.shared.publish(self.member.member_id, -1)
        self.commits.on_lost(now_ms)

    cdef void _lose(self, int64_t now_ms) noexcept nogil:
        """Lose all partitions.

        A running callback continues; events that the application has not taken are obsolete.
        """
        cdef vector[PartitionOffset] nothing
        cdef bint running = self.awaiting and not self.background.withdraw_rebalance(self.awaited_id)
        self.ownership.lose()
        self.shared.lost_rebalance_id.store(self.rebalance_id)
        self._stop_fetching(self.ownership.owned())
        if not running and not self.calls_on_revoke and self.positions.subscription.take_away(
                self.ownership.owned(), self.epoch, TAKE_LOST, self.group.auto_offset_store, nothing):
            self.awaiting = False
            self._log(REBALANCE_LOST, self.ownership.owned())
            self._changed_assignment(now_ms)
            self._on_lost(now_ms)
            return
        # poll() returns an error before it runs on_lost: their records must not come with it.
        self.positions.subscription.drop_rows(self.ownership.owned())
        self._changed_assignment(now_ms)
        self.awaiting_lost = True
        self._notify(REBALANCE_LOST, self.ownership.owned(), now_ms)

    # ---- leaving

    cdef void on_leave_callback(self, LeaveCallbackEvent* event) noexcept nogil:
        """Note that the callback of a leave runs; takes over one reference."""
        event.release()
        self.in_leave_callback = True

    cdef void on_leave(self, LeaveGroupEvent* event, int64_t now_ms) noexcept nogil:
        """Leave for unsubscribe() or close(); takes over one reference.

        The application owns no partitions any more.
        """
        cdef vector[string] nothing
        cdef bint member = self.member.joined or self.state == MEMBER_UNSUBSCRIBED
        if self.leaving != NULL:
            # A second leave meanwhile: the caller of the first one need not wait.
            self.leaving.complete(Status())
            self.leaving.release()
        self.leaving = event
        self.in_leave_callback = False
        self.epoch = event.epoch
        self.closing = event.closing
        self.operation = event.operation
        self.resubscribed = False
        if member:
            self.commits.hold(self.ownership.ours())  # a running on_assign may commit too
        self._drop_reconciliation()
        self._set_subscription(nothing, nothing, now_ms)
        self._commit_departing(event.offsets, min(event.deadline_ms, now_ms + self.group.session_timeout_ms), now_ms)
        if self.state == MEMBER_FATAL:
            self.move(MEMBER_UNSUBSCRIBED)
            self.member.subscribed = False
        elif self.state != MEMBER_UNSUBSCRIBED and self.state != MEMBER_LEAVING:
            self.leave_wanted = True
            self.move(MEMBER_LEAVING)
        self.member.leaving = self.state == MEMBER_LEAVING

    cdef void _drop_reconciliation(self) noexcept nogil:
        self.shared.lost_rebalance_id.store(self.rebalance_id)
        self.awaiting = False
        self.awaiting_lost = False
        self.ownership.clear()
        self.started_ms = -1

    cdef int64_t _poll_leave(self, int64_t now_ms) noexcept nogil:
        if self.state != MEMBER_LEAVING and not self.commits.held_busy():
            self._complete_leave(Status())
        if self.leaving == NULL or self.leaving.deadline_ms == INT64_MAX:
            return INT64_MAX
        # After a suspend of the process, the responses may already be in the sockets.
        if self.delegate.read_ms >= self.leaving.deadline_ms:
            self._leave_late(now_ms)
            return 0
        return max(self.leaving.deadline_ms - now_ms, <int64_t>0)

    cdef void _leave_late(self, int64_t now_ms) noexcept nogil:
        """End the caller's wait.

        The leave is still sent, so that the group need not wait for the session timeout.
        """
        cdef int32_t node = self.commits.coordinator.node
        if self.commits.held_busy():
            self.background.log.write(4, 0, b"LEAVEGROUP", b"group not left in time: the offsets were not committed "
                                      b"before the deadline; their records may be read again")
        elif node < 0:
            self.background.log.write(4, 0, b"LEAVEGROUP", b"group not left in time: the coordinator of group %s was "
                                      b"not found: check the connection to the brokers", self.group.group_id.c_str())
        else:
            self.background.log.write(4, 0, b"LEAVEGROUP", b"group not left in time: the coordinator of group %s has "
                                      b"not answered: check the connection to broker %d",
                                      self.group.group_id.c_str(), node)
        self.commits.give_up_held(now_ms)
        self._complete_leave(Status(<int>ERR_TIMED_OUT, string(b"the group was not left in time")))

    cdef void _complete_leave(self, Status status) noexcept nogil:
        if self.leaving != NULL:
            self.leaving.complete(status)
            self.leaving.release()
            self.leaving = NULL

    cdef void left(self, int64_t now_ms) noexcept nogil:
        self.leave_wanted = False
        if self.state != MEMBER_LEAVING:
            return
        self.member.joined = False
        self.member.epoch = -1
        self._end_session()
        self.member.member_id.clear()
        self.shared.publish(self.member.member_id, -1)
        self.member.subscribed = self.resubscribed
        self.member.leaving = False
        self.move(MEMBER_UNSUBSCRIBED)
        self._complete_leave(Status())
        if self.resubscribed:
            self.resubscribed = False
            self._join(now_ms)

    cdef void leave_failed(self, int64_t now_ms) noexcept nogil:
        if self.leaving != NULL and now_ms >= self.leaving.deadline_ms:
            self._leave_late(now_ms)
        self.left(now_ms)

    cdef bint busy(self) noexcept nogil:
        return self.leaving != NULL

    cdef void end(self, int64_t now_ms) noexcept nogil:
        self._complete_leave(Status(<int>ERR_DESTROY))

    # ---- events and moves

    cdef void _notify(self, RebalanceKind kind, const vector[TopicPartition]& partitions,
                      int64_t now_ms) noexcept nogil:
        """Post an event, and await its ACK."""
        cdef RebalanceEvent event
        event.partitions = partitions
        self._post(event, kind)
        self.awaiting = True
        self.awaited_kind = kind
        self.awaited_id = self.rebalance_id
        self.awaiting_since_ms = now_ms

    cdef void _log(self, RebalanceKind kind, const vector[TopicPartition]& partitions) noexcept nogil:
        self.background.log.write(7, DBG_CGRP | DBG_CONSUMER, b"REBALANCE", b"%s: %zu partitions", rebalance_name(kind),
                                  partitions.size())

    cdef void _post(self, RebalanceEvent& event, RebalanceKind kind) noexcept nogil:
        self._log(kind, event.partitions)
        self.rebalance_id += 1
        event.kind = kind
        event.id = self.rebalance_id
        event.epoch = self.epoch
        event.eager = self._is_eager()
        if kind == REBALANCE_ASSIGN and not self.target_assignor.empty():
            event.assignor = self.target_assignor
            event.generation = self.member.epoch
            event.target = self.ownership.target()
            event.user_data = self.target_user_data
        self.background.add_rebalance(event)

    cdef void report(self, const Status& status, const string& topic) noexcept nogil:
        cdef RebalanceEvent event
        event.kind = REBALANCE_ERROR
        self.rebalance_id += 1
        event.id = self.rebalance_id
        event.epoch = self.epoch
        event.status = status
        if not topic.empty():
            event.partitions.push_back(TopicPartition(topic, -1))
        self.background.add_rebalance(event)

    cdef void move(self, MemberState to) noexcept nogil:
        if not member_may(self.state, to):
            self._bug(to)
            return
        self.background.log.write(7, DBG_CGRP | DBG_CONSUMER, b"CGRPSTATE", b"%s -> %s", member_state_name(self.state),
                                  member_state_name(to))
        self.state = to
        self.shared.state.store(<int32_t>to)

    cdef void _bug(self, MemberState to) noexcept nogil:
        """Report a move that the table does not allow, and ignore it."""
        cdef BackgroundEvent event
        event.type = BACKGROUND_ERROR
        event.status.code = <int>ERR_FATAL
        event.status.detail.assign(b"bug: a group member cannot go from ").append(member_state_name(self.state))
        event.status.detail.append(b" to ").append(member_state_name(to))
        event.fatal = True
        self.member.fatal = event.status
        self.background.log.push(3, b"BUG", event.status.detail)
        self.background.add(event)
        self.state = MEMBER_FATAL
        self.shared.state.store(<int32_t>MEMBER_FATAL)
        self.member.joined = False
        self.leave_wanted = False
