"""Owns: GroupCore, the application's side of a consumer group: subscription, rebalances, stored offsets, commits.

thread: A. Rebalances are served only by exclusive calls (poll, consume, consume_batch, close) and by unsubscribe();
any thread may make every other call. Never: waits for a rebalance; the network thread continues it when the callback
was acknowledged. kconsumer/consumer/group_consumer.py calls the callbacks (`_on_rebalance`).
"""


cdef enum:
    LEAVE_LEAST_MS = 1000  # minimum time of close() for the last commits and the leave, even with a shorter timeout


cdef class Rebalance:
    """The subject of a rebalance callback, for the calls that run it."""

    def __dealloc__(self):
        release_states(self.states)
        release_states(self.others)


cdef class AssignorQuestion:
    """The question to the group's leader, for the call that answers it."""


@cython.no_gc
cdef class GroupCore(ConsumerCore):
    """A group member without its callbacks; see kconsumer.Consumer."""

    def _group_managers(self, settings, ManagerContext context):
        """Make the managers of the group; return them in the order in which N polls them."""
        cdef ClassicGroupManager classic
        configure_group(&self.group, settings)
        self.commit_ms = settings.default_api_timeout_ms
        self.config.has_group = not self.group.group_id.empty()
        if not self.config.has_group:
            return ()
        self.coordinator = CoordinatorRequestManager(context)
        self.commits = CommitRequestManager(context, self.coordinator)
        self.membership = MembershipManager(context, self.metadata, self.commits)
        if self.group.consumer_protocol:
            protocol = (ConsumerHeartbeatManager(context, self.metadata, self.coordinator, self.membership),
                        GroupSessionTimeout(context, self.coordinator))
        else:
            classic = ClassicGroupManager(context, self.membership, self.coordinator)
            protocol = (classic,)
            self.processor.assignors = classic.application
        self.handler.session = &self.shared.session
        self.shared.session.set_timeout(self.group.session_timeout_ms)
        self.processor.membership = self.membership
        self.processor.commits = self.commits
        # The protocol's managers read the state of the membership. All need the coordinator, so it is last.
        return self.membership, *protocol, self.commits, self.coordinator

    # ---- rebalances (the exclusive call)

    def _attending_group(self, uint32_t bits):
        if bits & <uint32_t>ATTENTION_COMMIT:
            self.background.attention.clear(<uint32_t>ATTENTION_COMMIT)
            self._commit_returned()
        if bits & <uint32_t>ATTENTION_REBALANCE:
            yield from self._serving_rebalances()

    def _serving_rebalances(self):
        cdef Rebalance taken
        self.background.attention.clear(<uint32_t>ATTENTION_REBALANCE)
        try:
            while True:
                taken = Rebalance()
                if not self.background.take_rebalance(taken.event):
                    break
                yield from self._serving_rebalance(taken)
                if taken.event.kind == REBALANCE_ERROR and self.pending_errors:
                    # As in confluent_kafka, the application gets the error before later callbacks run. The next call
                    # runs them before records (test_an_error_is_returned_before_the_callbacks_that_follow_it).
                    self.background.attention.set(<uint32_t>ATTENTION_REBALANCE)
                    break
        except BaseException:
            # The next call serves the remaining rebalances.
            self.background.attention.set(<uint32_t>ATTENTION_REBALANCE)
            raise

    cdef object _serving_rebalance(self, Rebalance taken):
        """Return a call, or nothing to do."""
        if taken.event.epoch != self.subscription_epoch:
            return ()
        if taken.event.kind == REBALANCE_ERROR:
            self.pending_errors.append(error_for(taken.event.status.code, message_of(taken.event.status.detail)))
            return ()
        if taken.event.kind == REBALANCE_LOST:
            return self._giving_up(taken)
        if taken.event.kind == REBALANCE_GIVEN_UP:
            return self._calling_back("given up", partition_tuples(taken.event.partitions), taken.event.eager)
        if taken.event.id <= self.shared.lost_rebalance_id.load():
            # The member was fenced meanwhile: a LOST will follow, and includes this.
            return ()
        return self._giving_up(taken) if taken.event.kind == REBALANCE_REVOKE else self._taking_over(taken)

    def _taking_over(self, Rebalance taken):
        """Run on_assign, and acknowledge the partitions that the application then owns."""
        self._begin_assign(taken)
        try:
            try:
                if not taken.event.assignor.empty():
                    yield from self._passing_assignment(taken)
            finally:
                yield from self._calling_back("assign", partition_tuples(taken.event.partitions), taken.event.eager)
        finally:
            if not self.in_child():
                self._end_assign(taken)

    cdef int _begin_assign(self, Rebalance taken) except -1:
        cdef vector[TopicPartition] held
        taken.partitions = taken.event.partitions
        if not taken.event.eager:
            self.subscription.held(held)
            taken.partitions = partitions_with(taken.partitions, held)
        return 0

    cdef int _end_assign(self, Rebalance taken) except -1:
        cdef AckRebalanceEvent* ack = new AckRebalanceEvent(REBALANCE_ASSIGN)
        cdef PartitionState* p
        cdef size_t i
        ack.rebalance_id = taken.event.id
        for i in range(taken.partitions.size()):
            p = self.subscription.find(taken.partitions[i].topic, taken.partitions[i].partition)
            if p != NULL:
                ack.assignment.push_back(taken.partitions[i])
                p.release()
        if taken.event.epoch == self.subscription_epoch:
            self.subscription.hold(ack.assignment)
        self.application.add(ack)
        return 0

    cdef object _passing_assignment(self, Rebalance taken):
        """Return a call of the assignor."""
        return self._on_assignment(text_of(taken.event.assignor), partition_tuples(taken.event.target),
                                   bytes_of(taken.event.user_data), taken.event.generation)

    cdef object ask_application(self, BackgroundEvent& event):
        cdef AssignorQuestion asked
        if event.type == BACKGROUND_TOKEN:
            return self._on_token_wanted()
        asked = AssignorQuestion()
        asked.hold = event.assignor_call
        return self._asking_assignor(asked)

    def _asking_assignor(self, AssignorQuestion asked):
        """Answer the network thread in any case: the whole group waits for the answer."""
        cdef const AssignorCall* call = asked.hold.get()
        cdef AssignorAnswerEvent* answer
        if not self.subscribed or call.id != self.shared.assignor_call.load():
            return
        answer = new AssignorAnswerEvent(call.id)
        try:
            if call.assignor.empty():
                found = yield from self._assignors_user_data(texts(call.subscribed))
                put_user_data(answer, found)
            else:
                found = yield from self._assign_group(text_of(call.assignor), member_tuples(call), topic_tuples(call))
                put_assignments(answer, found)
            answer.failed = False
        finally:
            if not self.in_child():
                self.application.add(answer)

    def _giving_up(self, Rebalance taken):
        """Run on_revoke or on_lost, and acknowledge with the offsets to commit."""
        self._begin_revocation(taken)
        self.giving_up = taken
        try:
            if taken.event.kind == REBALANCE_REVOKE:
                yield from self._calling_back("revoke", partition_tuples(taken.partitions), taken.event.eager)
            elif not taken.partitions.empty():
                yield from self._calling_back("lost", partition_tuples(taken.partitions), taken.event.eager)
        finally:
            self.giving_up = None
            if not self.in_child():
                self._end_revocation(taken)

    cdef int _begin_revocation(self, Rebalance taken) except -1:
        cdef vector[TopicPartition] held
        self.subscription.held(held)
        taken.partitions = held if taken.event.kind == REBALANCE_LOST else taken.event.partitions
        self._find_states(taken.partitions, taken.states)
        if taken.event.kind == REBALANCE_REVOKE:
            self._find_states(partitions_without(held, taken.partitions), taken.others)
        return 0

    cdef int _end_revocation(self, Rebalance taken) except -1:
        cdef AckRebalanceEvent* ack = new AckRebalanceEvent(taken.event.kind)
        cdef vector[TopicPartition] held
        ack.rebalance_id = taken.event.id
        if taken.event.kind != REBALANCE_LOST:
            self.subscription.held(held)
            held = partitions_without(held, taken.partitions)
            if taken.event.epoch == self.subscription_epoch:  # else unsubscribe() in the callback has committed them
                self._add_unassigned(taken.others, taken.states)
                self._standing(taken.states, ack.offsets)
        if taken.event.epoch == self.subscription_epoch:
            self.subscription.hold(held)
        self.application.add(ack)
        return 0

    def _calling_back(self, kind, list partitions, bint eager):
        self.in_rebalance = True
        self.in_assign = kind == "assign"
        self.callback_thread = threading.get_ident()
        try:
            yield from self._on_rebalance(kind, partitions, eager)
        finally:
            self.in_rebalance = self.in_assign = False
        self.check_process()

    cdef int _find_states(self, const vector[TopicPartition]& partitions, vector[PartitionState*]& out) except -1:
        """Find the assigned ones of the partitions, with a reference each."""
        cdef PartitionState* p
        cdef size_t i
        for i in range(partitions.size()):
            p = self.subscription.find(partitions[i].topic, partitions[i].partition)
            if p != NULL:
                out.push_back(p)
        return 0

    cdef int _add_unassigned(self, vector[PartitionState*]& states, vector[PartitionState*]& out) except -1:
        """Add those of the states that on_revoke has unassigned itself: they are committed, too."""
        cdef PartitionState* p
        cdef PartitionState* found
        for p in states:
            found = self.subscription.find(p.topic, p.partition)
            if found == NULL:
                p.retain()
                out.push_back(p)
            else:
                found.release()
        return 0

    cdef int _standing(self, vector[PartitionState*]& states, vector[PartitionOffset]& out, bint all=False) except -1:
        """Collect the changed offsets to commit.

        Each is the position after the returned records, or the stored offset. `all`: also the partitions without a
        changed offset, with OFFSET_INVALID.
        """
        cdef PartitionState* p
        cdef PartitionOffset found
        self.subscription.lock.lock()
        for p in states:
            if p.standing(self.group.auto_offset_store, self._processed_only, found):
                out.push_back(found)
            elif all:
                out.push_back(PartitionOffset())
                out.back().topic = p.topic
                out.back().partition = p.partition
        self.subscription.lock.unlock()
        return 0

    cdef int _commit_returned(self) except -1:
        """Commit at the interval: records returned before this call are processed."""
        cdef vector[PartitionState*] states
        self.subscription.snapshot(states)
        return self._commit_states(states)

    cdef int _commit_states(self, vector[PartitionState*]& states) except -1:
        """Commit where the partitions stand. Releases the states."""
        cdef CommitEvent* event
        cdef vector[PartitionOffset] offsets
        self._standing(states, offsets)
        release_states(states)
        if offsets.empty():
            return 0
        event = new CommitEvent(self.clock.now_ms() + self.commit_ms, False)
        event.offsets.swap(offsets)
        event.automatic = True
        event.notify = True
        self.application.add(event)
        return 0

    cdef int _standing_of_all(self, vector[PartitionOffset]& out, bint all=False) except -1:
        cdef vector[PartitionState*] states
        self.subscription.snapshot(states)
        self._standing(states, out, all)
        release_states(states)
        return 0

    # ---- subscription

    def _subscribe(self, topics, patterns, bint calls_on_assign, bint calls_on_revoke):
        """Subscribe; N assigns and revokes itself where the application has no callback."""
        cdef SubscribeEvent* event
        cdef TopicPatterns matcher
        cdef vector[string] expressions, names
        cdef Status status
        self.check_usable()
        self._check_group()
        for pattern in patterns:
            expressions.push_back(utf8(pattern))
        status = matcher.set(expressions)
        if not status.ok() and not self.group.consumer_protocol:
            # The network thread matches the patterns later, and could not report an error to a caller.
            raise exception_for(status.code, message_of(status.detail))
        for topic in topics:
            names.push_back(utf8(topic))
        event = new SubscribeEvent()
        sort_names(names)
        if status.ok():  # else only the broker can match them
            self._hide_topics(names, matcher)
        event.epoch = self.subscription_epoch
        event.patterns = expressions
        event.topics = names
        event.calls_on_assign = calls_on_assign
        event.calls_on_revoke = calls_on_revoke
        self.subscribed = True
        self.subscription.open_group(self.subscription_epoch)
        self.application.add(event)

    cdef int _hide_topics(self, const vector[string]& names, TopicPatterns& matcher) except -1:
        """Return no more records of topics that are not subscribed any more, until they are revoked."""
        cdef vector[TopicPartition] held
        cdef vector[string] unsubscribed
        cdef size_t i
        self.subscription.held(held)
        for i in range(held.size()):
            if not contains_name(names, held[i].topic) and not matcher.matches(held[i].topic):
                unsubscribed.push_back(held[i].topic)  # sorted, as they are
        if self.subscription.hide_topics(unsubscribed):
            self.changed()
        return 0

    def _unsubscribe_call(self):
        """A call: run callbacks, then commit and leave without waiting for them."""
        self.check_usable()
        if not self.subscribed:
            return
        if self.in_rebalance and self.callback_thread == threading.get_ident():
            # Called from a callback: end its subject, and run no other callback.
            yield from self._leaving(False, LEAVE_DEFAULT, <int64_t>self.group.session_timeout_ms * 1000, False)
            return
        self.enter()
        try:
            yield from self._leaving(False, LEAVE_DEFAULT, <int64_t>self.group.session_timeout_ms * 1000, True)
        finally:
            self.busy.store(0)

    def _leaving(self, bint closing, LeaveOperation operation, int64_t timeout_us, bint call_back):
        """End the subscription: run on_revoke (on_lost if fenced), post commit and leave.

        The event is posted even if a callback raises. The timeout counts from the callback's end.
        """
        cdef Rebalance leaving = Rebalance()
        cdef vector[TopicPartition] given_up
        cdef bint lost
        self.subscription.close_group(leaving.partitions)
        lost = self._drop_rebalances(given_up)
        self.subscription.snapshot(leaving.states)
        if self.giving_up is not None:
            lost |= self.giving_up.event.kind == REBALANCE_LOST
            self._add_unassigned(self.giving_up.states, leaving.states)
            self._add_unassigned(self.giving_up.others, leaving.states)
        self.subscribed = False
        try:
            if call_back and not given_up.empty():
                yield from self._calling_back("given up", partition_tuples(given_up), False)
            if call_back and not leaving.partitions.empty():
                self.application.add(new LeaveCallbackEvent())
                yield from self._calling_back("lost" if lost else "revoke", partition_tuples(leaving.partitions), True)
        finally:
            if not self.in_child():
                self._end_subscription(leaving, closing, operation, timeout_us, lost)

    cdef int _end_subscription(self, Rebalance leaving, bint closing, LeaveOperation operation, int64_t timeout_us,
                               bint lost) except -1:
        cdef LeaveGroupEvent* event = new LeaveGroupEvent(INT64_MAX)
        event.closing = closing
        event.operation = operation
        if self.group.auto_commit and not lost:
            self._standing(leaving.states, event.offsets)
        self.subscription.clear()
        self.changed()
        # Only here: a subscribe() that changes topics must not make the application drop a REVOKE that N waits for
        # (test_rebalances_of_an_ended_subscription_are_dropped).
        self.subscription_epoch += 1
        event.epoch = self.subscription_epoch
        event.deadline_ms = in_ms(self.end_deadline(timeout_us))
        self.application.add(event)
        return 0

    cdef bint _drop_rebalances(self, vector[TopicPartition]& given_up) except -1:
        """Drop rebalances that were not served, but for partitions given up. True: the member was fenced."""
        cdef RebalanceEvent event
        cdef bint lost = False
        while self.background.take_rebalance(event):
            if event.kind == REBALANCE_LOST and event.epoch == self.subscription_epoch:
                lost = True
            if event.kind == REBALANCE_GIVEN_UP and event.epoch == self.subscription_epoch:
                given_up = partitions_with(given_up, event.partitions)
        self.background.attention.clear(<uint32_t>ATTENTION_REBALANCE)
        return lost

    def _leaving_group(self, int64_t timeout_us, LeaveOperation operation):
        """Run this part of close(): the following CLOSE waits for the event posted here."""
        cdef CommitEvent* commit
        cdef LeaveGroupEvent* leave
        if not self.config.has_group:
            return
        if self.subscribed:
            yield from self._leaving(True, operation, timeout_us, True)
            return
        if self.group.auto_commit:
            commit = new CommitEvent(in_ms(self.end_deadline(timeout_us)), False)
            commit.automatic = True
            commit.notify = True
            self._standing_of_all(commit.offsets)
            self.application.add(commit)
        # The leave of an unsubscribe() may be in progress, with more time than close() allows.
        leave = new LeaveGroupEvent(in_ms(self.end_deadline(timeout_us)))
        leave.closing = True
        leave.operation = operation
        leave.epoch = self.subscription_epoch
        self.application.add(leave)

    cdef int64_t end_deadline(self, int64_t timeout_us) noexcept:
        if self.config.has_group:
            timeout_us = max(timeout_us, <int64_t>LEAVE_LEAST_MS * 1000)
        return ConsumerCore.end_deadline(self, timeout_us)

    def _is_subscribed(self):
        return self.subscribed

    def _in_callback(self):
        """Whether a rebalance callback is running."""
        return self.in_rebalance

    def _commit_before_change(self, removed=None):
        """Commit the offsets of partitions before a call removes them from the assignment.

        In a revocation or a leave, the acknowledgement carries these offsets.

        removed: [(topic, partition)] of assigned ones; None: all.
        """
        cdef vector[PartitionState*] states
        cdef vector[TopicPartition] which
        cdef TopicPartition one
        self.check_usable()
        if not self.config.has_group or not self.group.auto_commit or (self.in_rebalance and not self.in_assign):
            return
        if removed is None:
            self._commit_returned()
            return
        for topic, partition in removed:
            one.topic = utf8(topic)
            one.partition = partition
            which.push_back(one)
        self._find_states(which, states)
        self._commit_states(states)

    def _memberid(self):
        cdef string member_id
        cdef int32_t epoch = -1
        self.check_usable()
        self.shared.read(member_id, epoch)
        return text_of(member_id), epoch

    def _check_group(self):
        if not self.config.has_group:
            raise exception_for(<int>ERR_STATE, "group.id is not set: set it to subscribe or commit, or use assign()")

    # ---- offsets

    def _store_offsets(self, offsets):
        """Store offsets; returns how many belong to assigned partitions.

        offsets: [(topic, partition, offset, leader epoch, metadata)].
        """
        cdef PartitionState* p
        cdef int stored = 0
        self.check_usable()
        for topic, partition, offset, leader_epoch, metadata in offsets:
            p = self.subscription.find(utf8(topic), partition)
            if p == NULL:
                continue
            text = utf8(metadata or "")
            self.subscription.lock.lock()
            if p.assigned:
                p.stored_offset = offset
                p.stored_leader_epoch = leader_epoch
                p.stored_metadata = text
                stored += 1
            self.subscription.lock.unlock()
            p.release()
        return stored

    def _ask_commit(self, offsets, bint wait, bint notify):
        """Commit [(topic, partition, offset, leader epoch, metadata)], or the stored (None).

        Returns the Question, whose answer is offset_tuples() of the result; None if no caller waits for it.
        """
        cdef CommitEvent* event
        cdef PartitionOffset given
        cdef Question asked
        self.check_usable()
        self._check_group()
        event = new CommitEvent(self.clock.now_ms() + self.commit_ms, wait)
        asked = question(event)
        event.notify = notify and not wait
        if offsets is None:
            # As in confluent_kafka, the result has each assigned partition.
            self._standing_of_all(event.offsets, wait or notify)
            sort_offsets(event.offsets)
        else:
            for topic, partition, offset, leader_epoch, metadata in offsets:
                given.topic = utf8(topic)
                given.partition = partition
                given.offset = offset
                given.leader_epoch = leader_epoch
                given.metadata = utf8(metadata or "")
                event.offsets.push_back(given)
        self._note_named(event.offsets)
        self.post(asked)
        if not wait and event.done() and event.status.code == <int>ERR_DESTROY:
            raise RuntimeError("Consumer closed")  # by another thread: the network thread has ended
        return asked if wait else None

    cdef int _note_named(self, const vector[PartitionOffset]& offsets) except -1:
        """Note that all records before these offsets are processed."""
        cdef PartitionState* p
        cdef size_t i
        for i in range(offsets.size()):
            if offsets[i].offset < 0:
                continue
            p = self.subscription.find(offsets[i].topic, offsets[i].partition)
            if p != NULL:
                self.subscription.lock.lock()
                p.asked_offset.store(offsets[i].offset)
                p.named_offset = offsets[i].offset
                p.named_leader_epoch = offsets[i].leader_epoch
                if 0 <= p.stored_offset < p.named_offset:
                    # Otherwise the next automatic commit would go back to the stored offset.
                    p.stored_offset = p.named_offset
                    p.stored_leader_epoch = offsets[i].leader_epoch
                    p.stored_metadata = offsets[i].metadata
                self.subscription.lock.unlock()
                p.release()
        return 0

    def _await_no_commits(self):
        """When this object is freed, do not wait for its commits: the program has waited for them."""
        self.network_thread.commits_awaited.store(True)

    def _ask_committed(self, partitions, timeout):
        """Return the Question about [(topic, partition)]; its answer is offset_tuples()."""
        cdef FetchCommittedEvent* event
        cdef PartitionOffset wanted
        cdef Question asked
        self.check_usable()
        self._check_group()
        event = new FetchCommittedEvent(self._deadline_ms(timeout))
        asked = question(event)
        for topic, partition in partitions:
            wanted.topic = utf8(topic)
            wanted.partition = partition
            event.partitions.push_back(wanted)
        return self.post(asked)


cdef list partition_tuples(const vector[TopicPartition]& partitions):
    """Return [(topic, partition)]."""
    cdef size_t i
    return [(text_of(partitions[i].topic), partitions[i].partition) for i in range(partitions.size())]


cdef void release_states(vector[PartitionState*]& states) noexcept nogil:
    cdef PartitionState* p
    for p in states:
        p.release()
