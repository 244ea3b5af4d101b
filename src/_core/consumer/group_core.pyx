"""Owns: GroupCore, the application's side of a consumer group: subscription, rebalances, stored offsets, commits.

thread: A. Rebalances are served only by exclusive calls (poll, consume, consume_batch, close) and by unsubscribe();
all else may come from any thread. Never: waits for a rebalance; the network thread goes on with it when the callback
has been acknowledged. The callbacks themselves are called by kconsumer/consumer/group_consumer.py (`_on_rebalance`).
"""
cimport cython
from libc.stdint cimport INT64_MAX

from kconsumer._core.base.cpp cimport string
from kconsumer._core.base.leak cimport leak
from kconsumer._core.base.status cimport ERR_STATE, Status
from kconsumer._core.consumer.answers cimport offset_tuples
from kconsumer._core.consumer.assignor_face cimport (
    bytes_of,
    member_tuples,
    put_assignments,
    put_user_data,
    texts,
    topic_tuples,
)
from kconsumer._core.consumer.consumer_core cimport in_ms
from kconsumer._core.consumer.settings cimport configure_group
from kconsumer._core.consumer.text cimport message_of, text_of, utf8
from kconsumer._core.events.application_event cimport (
    AssignorAnswerEvent,
    CommitEvent,
    FetchCommittedEvent,
    SubscribeEvent,
)
from kconsumer._core.events.assignor_call cimport AssignorCall
from kconsumer._core.events.background_event cimport ATTENTION_COMMIT, ATTENTION_REBALANCE, BACKGROUND_TOKEN
from kconsumer._core.events.rebalance_event cimport (
    REBALANCE_ASSIGN,
    REBALANCE_ERROR,
    REBALANCE_LOST,
    REBALANCE_REVOKE,
    RebalanceKind,
)
from kconsumer._core.events.topic_partition cimport partitions_without, sort_partitions
from kconsumer._core.managers.classic_group_manager cimport ClassicGroupManager
from kconsumer._core.managers.consumer_heartbeat_manager cimport ConsumerHeartbeatManager
from kconsumer._core.managers.topic_patterns cimport TopicPatterns

from kconsumer.errors import error_for, exception_for

cdef enum:
    LEAVE_LEAST_MS = 1000  # what close() allows for the last commits and the leave at least, however short its timeout


@cython.no_gc
cdef class GroupCore(ConsumerCore):
    """Everything of a group member but its callbacks; see kconsumer.Consumer."""

    def _build_thread(self, settings):
        configure_group(&self.group, settings)
        self.commit_ms = settings.default_api_timeout_ms
        self.config.has_group = not self.group.group_id.empty()
        ConsumerCore._build_thread(self, settings)
        if not self.config.has_group:
            return
        self.coordinator = CoordinatorRequestManager()
        self.coordinator.delegate = self.delegate
        self.coordinator.config = &self.group
        self.coordinator.cluster = &self.positions.cluster
        self.coordinator.background = &self.background
        self.coordinator.backoff = &self.backoff
        self.commits = CommitRequestManager(self.positions, self.coordinator)
        self.commits.wire(self.delegate, &self.group, &self.member, &self.shared, &self.background, &self.backoff)
        self.membership = MembershipManager(self.positions, self.metadata, self.commits)
        self.member.owned = &self.membership.owned
        self.membership.config = &self.group
        self.membership.membership = &self.member
        self.membership.shared = &self.shared
        self.membership.liveness = &self.liveness
        self.membership.background = &self.background
        self.protocol = self._consumer_protocol() if self.group.consumer_protocol else self._classic_protocol()
        self.processor.membership = self.membership
        self.processor.commits = self.commits
        self.network_thread.coordinator = self.coordinator
        self.network_thread.commits = self.commits
        self.network_thread.membership = self.membership
        self.network_thread.protocol = self.protocol
        self.network_thread.has_group = True

    def _classic_protocol(self):
        cdef ClassicGroupManager manager = ClassicGroupManager(self.membership, self.coordinator)
        manager.delegate = self.delegate
        manager.config = &self.group
        manager.shared = &self.shared
        manager.background = &self.background
        manager.backoff = &self.backoff
        manager.application.background = &self.background
        manager.application.shared = &self.shared
        self.processor.assignors = manager.application
        return manager

    def _consumer_protocol(self):
        cdef ConsumerHeartbeatManager manager = ConsumerHeartbeatManager(self.positions, self.metadata,
                                                                         self.coordinator, self.membership)
        manager.delegate = self.delegate
        manager.config = &self.group
        manager.shared = &self.shared
        manager.background = &self.background
        manager.backoff = &self.backoff
        manager.membership = &self.member
        self.shared.publish(manager.member_id, -1)  # made here (KIP-1082), and known before the group is joined
        return manager

    def __dealloc__(self):
        # This object's own structs go before ConsumerCore's part is torn down: N must have ended by then.
        self.stop_thread()
        if self.in_child():
            leak(self.member)
            leak(self.shared)

    # ---- rebalances (the exclusive call)

    cdef int attend_group(self, uint32_t bits) except -1:
        if bits & <uint32_t>ATTENTION_COMMIT:
            self.background.attention.clear(<uint32_t>ATTENTION_COMMIT)
            self._commit_returned()
        if bits & <uint32_t>ATTENTION_REBALANCE:
            self._serve_rebalances()
        return 0

    cdef int _serve_rebalances(self) except -1:
        cdef RebalanceEvent event
        self.background.attention.clear(<uint32_t>ATTENTION_REBALANCE)
        try:
            while self.background.take_rebalance(event):
                self._serve_rebalance(event)
                if event.kind == REBALANCE_ERROR and self.told:
                    # As in confluent_kafka, the application hears of the error before callbacks that follow it run.
                    self.background.attention.set(<uint32_t>ATTENTION_REBALANCE)
                    break
        except BaseException:
            # What is left is served by the next call.
            self.background.attention.set(<uint32_t>ATTENTION_REBALANCE)
            raise
        return 0

    cdef int _serve_rebalance(self, RebalanceEvent& event) except -1:
        if event.epoch != self.subscription_epoch:
            return 0
        if event.kind == REBALANCE_ERROR:
            self.told.append(error_for(event.status.code, message_of(event.status.detail)))
        elif event.kind == REBALANCE_LOST:
            self._give_up(REBALANCE_LOST, event)
        elif event.id <= self.shared.lost_rebalance_id.load():
            # The member was fenced meanwhile: a LOST is on its way, and covers this.
            pass
        elif event.kind == REBALANCE_REVOKE:
            self._give_up(REBALANCE_REVOKE, event)
        else:
            self._take_over(event)
        return 0

    cdef int _take_over(self, RebalanceEvent& event) except -1:
        """on_assign; what the application then has of the group's partitions is acknowledged."""
        cdef AckRebalanceEvent* ack = new AckRebalanceEvent(REBALANCE_ASSIGN)
        cdef vector[TopicPartition] given = event.partitions
        cdef PartitionState* p
        cdef size_t i
        ack.rebalance_id = event.id
        if not event.eager:
            for i in range(self.held.size()):
                given.push_back(self.held[i])
        try:
            try:
                if not event.assignor.empty():
                    self._tell_assignor(event)
            finally:
                self._call_back("assign", event.partitions, event.eager)
        finally:
            if not self.in_child():
                self.held.clear()
                for i in range(given.size()):
                    p = self.subscription.find(given[i].topic, given[i].partition)
                    if p != NULL:
                        self.held.push_back(given[i])
                        p.release()
                sort_partitions(self.held)
                ack.assignment = self.held
                self.application.add(ack)
        return 0

    cdef int _tell_assignor(self, RebalanceEvent& event) except -1:
        cdef size_t i
        self._on_assignment(text_of(event.assignor), [(text_of(event.target[i].topic), event.target[i].partition)
                                                      for i in range(event.target.size())],
                            bytes_of(event.user_data), event.generation)
        return 0

    cdef int ask_application(self, BackgroundEvent& event) except -1:
        if event.type == BACKGROUND_TOKEN:
            self._on_token_wanted()
        else:
            self._run_assignor(event)
        return 0

    cdef int _run_assignor(self, BackgroundEvent& event) except -1:
        """Whatever comes of it, the network thread is answered: the whole group waits for that."""
        cdef const AssignorCall* call = event.assignor_call.get()
        cdef AssignorAnswerEvent* answer
        if not self.subscribed or call.id != self.shared.assignor_call.load():
            return 0
        answer = new AssignorAnswerEvent(call.id)
        try:
            if call.assignor.empty():
                put_user_data(answer, self._assignors_user_data(texts(call.subscribed)))
            else:
                put_assignments(answer, self._assign_group(text_of(call.assignor), member_tuples(call),
                                                           topic_tuples(call)))
            answer.failed = False
        finally:
            if not self.in_child():
                self.application.add(answer)
        return 0

    cdef int _give_up(self, RebalanceKind kind, RebalanceEvent& event) except -1:
        """on_revoke or on_lost; what stood to be committed goes with the acknowledgement."""
        cdef AckRebalanceEvent* ack = new AckRebalanceEvent(kind)
        cdef vector[PartitionState*] states
        cdef vector[TopicPartition] leaving = event.partitions
        if kind == REBALANCE_LOST:
            leaving = self.held
        ack.rebalance_id = event.id
        self._find_states(leaving, states)
        try:
            if kind == REBALANCE_REVOKE:
                self._call_back("revoke", leaving, event.eager)
            elif not leaving.empty():
                self._call_back("lost", leaving, event.eager)
        finally:
            if not self.in_child():
                if kind == REBALANCE_REVOKE:
                    self._standing(states, ack.offsets)
                release_states(states)
                if kind == REBALANCE_LOST:
                    self.held.clear()
                else:
                    self.held = partitions_without(self.held, leaving)
                self.application.add(ack)
        return 0

    cdef int _call_back(self, kind, const vector[TopicPartition]& partitions, bint eager) except -1:
        cdef size_t i
        self.in_rebalance = True
        try:
            self._on_rebalance(kind, [(text_of(partitions[i].topic), partitions[i].partition)
                                      for i in range(partitions.size())], eager)
        finally:
            self.in_rebalance = False
        return self.check_process()

    cdef int _find_states(self, const vector[TopicPartition]& partitions, vector[PartitionState*]& out) except -1:
        """Those of the partitions that are assigned, with a reference each."""
        cdef PartitionState* p
        cdef size_t i
        for i in range(partitions.size()):
            p = self.subscription.find(partitions[i].topic, partitions[i].partition)
            if p != NULL:
                out.push_back(p)
        return 0

    cdef int _standing(self, vector[PartitionState*]& states, vector[PartitionOffset]& out) except -1:
        """What stands to be committed: the position after what was returned, or what was stored, where it has moved."""
        cdef PartitionState* p
        cdef PartitionOffset found
        cdef int64_t offset = 0
        cdef int32_t epoch = 0
        cdef bint stored
        for p in states:
            self.subscription.lock.lock()
            stored = not self.group.auto_offset_store or p.stored_offset >= 0
            if stored:
                offset = p.stored_offset
                epoch = p.stored_leader_epoch
                found.metadata = p.stored_metadata
            elif p.assigned:
                p.read_position(offset, epoch)
                found.metadata.clear()
            else:
                offset = p.departed_offset
                epoch = p.departed_leader_epoch
                found.metadata.clear()
            if self._processed_only and 0 <= p.unprocessed_offset < offset and not stored:
                # But not less than the application has committed itself since.
                if p.named_offset <= p.unprocessed_offset:
                    offset = p.unprocessed_offset
                    epoch = p.unprocessed_leader_epoch
                elif p.named_offset < offset:
                    offset = p.named_offset
                    epoch = p.named_leader_epoch
            self.subscription.lock.unlock()
            if offset >= 0 and offset != p.committed_offset.load():
                found.topic = p.topic
                found.partition = p.partition
                found.offset = offset
                found.leader_epoch = epoch
                out.push_back(found)
        return 0

    cdef int _commit_returned(self) except -1:
        """The interval's commit: all that was returned before this entry has been processed."""
        cdef CommitEvent* event = new CommitEvent(self.clock.now_ms() + self.commit_ms, False)
        event.automatic = True
        event.notify = True
        self._standing_of_all(event.offsets)
        self.application.add(event)
        return 0

    cdef int _standing_of_all(self, vector[PartitionOffset]& out) except -1:
        cdef vector[PartitionState*] states
        self.subscription.snapshot(states)
        self._standing(states, out)
        release_states(states)
        return 0

    # ---- subscription

    def _subscribe(self, topics, patterns):
        cdef SubscribeEvent* event
        cdef TopicPatterns matcher
        cdef vector[string] expressions
        cdef Status status
        self.check_usable()
        self._check_group()
        for pattern in patterns:
            expressions.push_back(utf8(pattern))
        if not self.group.consumer_protocol:
            # Matched on the network thread, which has nobody to tell.
            status = matcher.set(expressions)
            if not status.ok():
                raise exception_for(status.code, message_of(status.detail))
        event = new SubscribeEvent()
        event.epoch = self.subscription_epoch
        event.patterns = expressions
        for topic in topics:
            event.topics.push_back(utf8(topic))
        self.subscribed = True
        self.application.add(event)

    def _unsubscribe(self):
        """Callbacks, then the commit and the leave, for which the caller does not wait."""
        self.check_usable()
        if not self.subscribed:
            return
        if self.in_rebalance:
            # From a callback: what it is about goes, and no other callback runs.
            self._leave(False, self.group.session_timeout_ms * 1000, False)
            return
        self.enter()
        try:
            self._leave(False, self.group.session_timeout_ms * 1000, True)
        finally:
            self.busy.store(0)

    cdef int _leave(self, bint closing, int64_t timeout_us, bint call_back) except -1:
        """Ends the subscription: on_revoke (on_lost if the member was fenced), then the event that commits and leaves,
        posted even when a callback raises. The timeout counts from the callback's end."""
        cdef LeaveGroupEvent* event = new LeaveGroupEvent(INT64_MAX)
        cdef vector[PartitionState*] states
        cdef vector[TopicPartition] leaving
        cdef bint lost = self._drop_rebalances()
        leaving.swap(self.held)
        self.subscription.snapshot(states)
        self.subscribed = False
        event.closing = closing
        try:
            if call_back and not leaving.empty():
                self._call_back("lost" if lost else "revoke", leaving, True)
        finally:
            if not self.in_child():
                if self.group.auto_commit and not lost:
                    self._standing(states, event.offsets)
                release_states(states)
                self.subscription.clear()
                self.changed()
                self.subscription_epoch += 1
                event.epoch = self.subscription_epoch
                event.deadline_ms = in_ms(self.end_deadline(timeout_us))
                self.application.add(event)
        return 0

    cdef bint _drop_rebalances(self) except -1:
        """Rebalances that were not served any more. True: the member had been fenced."""
        cdef RebalanceEvent event
        cdef bint lost = False
        while self.background.take_rebalance(event):
            if event.kind == REBALANCE_LOST and event.epoch == self.subscription_epoch:
                lost = True
        self.background.attention.clear(<uint32_t>ATTENTION_REBALANCE)
        return lost

    cdef int leave_group(self, int64_t timeout_us) except -1:
        """Part of close(): the CLOSE that follows waits for what is posted here."""
        cdef CommitEvent* commit
        if not self.config.has_group:
            return 0
        if self._processed_only:
            self.handler.mark_unprocessed()
        if self.subscribed:
            self._leave(True, timeout_us, True)
        elif self.group.auto_commit:
            commit = new CommitEvent(in_ms(self.end_deadline(timeout_us)), False)
            commit.automatic = True
            commit.notify = True
            self._standing_of_all(commit.offsets)
            self.application.add(commit)
        return 0

    cdef int64_t end_deadline(self, int64_t timeout_us) noexcept:
        if self.config.has_group:
            timeout_us = max(timeout_us, <int64_t>LEAVE_LEAST_MS * 1000)
        return ConsumerCore.end_deadline(self, timeout_us)

    def _is_subscribed(self):
        return self.subscribed

    def _commit_before_change(self):
        """Partitions are about to leave the assignment by a call of the application's: commit what stands of them.

        In a rebalance that is done with its acknowledgement.
        """
        self.check_usable()
        if self.config.has_group and self.group.auto_commit and not self.in_rebalance:
            self._commit_returned()

    def _memberid(self):
        cdef string member_id
        cdef int32_t epoch = -1
        self.check_usable()
        self.shared.read(member_id, epoch)
        return text_of(member_id), epoch

    def _check_group(self):
        if not self.config.has_group:
            raise exception_for(<int>ERR_STATE, "group.id is not set: without a consumer group there is nothing to "
                                "subscribe with, and nothing to commit to")

    # ---- offsets

    def _store_offsets(self, offsets):
        """[(topic, partition, offset, leader epoch, metadata)] → how many were of assigned partitions."""
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

    def _commit(self, offsets, bint wait, bint notify):
        """Commit [(topic, partition, offset, leader epoch, metadata)], or what is stored (None).

        Returns offset_tuples() of the result when it waits, else None.
        """
        cdef CommitEvent* event
        cdef PartitionOffset given
        self.check_usable()
        self._check_group()
        event = new CommitEvent(self.clock.now_ms() + self.commit_ms, wait)
        event.notify = notify and not wait
        event.retain()
        try:
            if offsets is None:
                self._standing_of_all(event.offsets)
                self._note_named(event.offsets)
            else:
                for topic, partition, offset, leader_epoch, metadata in offsets:
                    given.topic = utf8(topic)
                    given.partition = partition
                    given.offset = offset
                    given.leader_epoch = leader_epoch
                    given.metadata = utf8(metadata or "")
                    event.offsets.push_back(given)
                self._note_named(event.offsets)
            event.retain()
            self.application.add(event)
            if not wait:
                return None
            self.await_event(event)
            return offset_tuples(event.offsets)
        finally:
            event.release()
            event.release()

    cdef int _note_named(self, const vector[PartitionOffset]& offsets) except -1:
        """The application says that all before these offsets is processed."""
        cdef PartitionState* p
        cdef size_t i
        for i in range(offsets.size()):
            p = self.subscription.find(offsets[i].topic, offsets[i].partition)
            if p != NULL:
                self.subscription.lock.lock()
                p.named_offset = offsets[i].offset
                p.named_leader_epoch = offsets[i].leader_epoch
                if 0 <= p.stored_offset < p.named_offset:
                    # Or the next automatic commit would go back to what was stored before.
                    p.stored_offset = p.named_offset
                    p.stored_leader_epoch = offsets[i].leader_epoch
                    p.stored_metadata = offsets[i].metadata
                self.subscription.lock.unlock()
                p.release()
        return 0

    def _committed(self, partitions, timeout):
        """[(topic, partition)] → offset_tuples()."""
        cdef FetchCommittedEvent* event
        cdef PartitionOffset asked
        self.check_usable()
        self._check_group()
        event = new FetchCommittedEvent(self._deadline_ms(timeout))
        event.retain()
        try:
            for topic, partition in partitions:
                asked.topic = utf8(topic)
                asked.partition = partition
                event.partitions.push_back(asked)
            event.retain()
            self.application.add(event)
            self.await_event(event)
            return offset_tuples(event.partitions)
        finally:
            event.release()
            event.release()


cdef void release_states(vector[PartitionState*]& states) noexcept nogil:
    cdef PartitionState* p
    for p in states:
        p.release()
