"""Owns: CommittedRequestManager: fetches the group's committed offsets (OffsetFetch), for partitions that start there
and for committed().

thread: N. Never: sets a position after a seek or a new assignment (it compares position_epoch), treats a failure as
"nothing committed": without an answer a position waits, and no policy resets it.

Errors of the group or of a partition of an OffsetFetch response:
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, REQUEST_TIMED_OUT, a lost connection   a new search, then again
  COORDINATOR_LOAD_IN_PROGRESS    asked again
  UNSTABLE_OFFSET_COMMIT          asked again: a transaction is still open (read_committed, KIP-447)
  STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND (as a member)   asked again with the new member identity
  UNKNOWN_TOPIC_ID                asked again by name, as the coordinator may know only the name
  GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION and every other   committed() ends
                                  with it; a position is asked for again, and the application gets the error once
All with backoff; committed() until its deadline.
"""


cdef enum:
    GROUPS_VERSION = 8           # the first version that asks for groups


cdef bint is_retriable_committed(int32_t code) noexcept nogil:
    """Whether to ask again without a report. Local codes: a request without an answer."""
    return (is_lost_request(code) or code == <int>NOT_COORDINATOR or code == <int>COORDINATOR_NOT_AVAILABLE
            or code == <int>REQUEST_TIMED_OUT or code == <int>COORDINATOR_LOAD_IN_PROGRESS
            or code == <int>UNSTABLE_OFFSET_COMMIT or code == <int>STALE_MEMBER_EPOCH
            or code == <int>UNKNOWN_MEMBER_ID or code == <int>UNKNOWN_TOPIC_ID)


@cython.no_gc
cdef class CommittedRequestManager(RequestManager):
    def __cinit__(self, ManagerContext context, CoordinatorRequestManager coordinator not None):
        self.coordinator = coordinator
        self.next_question = 1

    def __dealloc__(self):
        it = self.questions.begin()
        while it != self.questions.end():
            dereference(it).second.event.release()
            preincrement(it)
        jt = self.sent.begin()
        while jt != self.sent.end():
            release_sent(dereference(jt).second)
            preincrement(jt)

    cdef void ask(self, FetchCommittedEvent* event) noexcept nogil:
        cdef QueuedQuestion* question = &self.questions[self.next_question]
        self.next_question += 1
        question.event = event
        question.left = event.partitions.size()
        question.answered.resize(question.left)
        question.coordinator_failures = self.coordinator.failures

    cdef bint idle(self) noexcept nogil:
        return self.questions.empty() and self.positions.uncommitted.empty()

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait
        if self.failures_seen != self.coordinator.failures:
            self.failures_seen = self.coordinator.failures
            self._fail_without_coordinator()
        wait = self._poll_positions(now_ms)
        return min(wait, self._poll_questions(now_ms))

    # ---- positions

    cdef int64_t _poll_positions(self, int64_t now_ms) noexcept nogil:
        cdef SentFetch sent
        cdef PartitionState* p
        cdef int64_t wait = self._find_due(now_ms)
        cdef int32_t node
        if self.due.empty():
            return wait
        node = self.coordinator.coordinator()
        if node >= 0:
            for p in self.due:
                if not p.request.in_flight:
                    p.request.on_send()
                    note_position(sent, p)
            self._send(sent, node, now_ms)
        return wait

    cdef int64_t _find_due(self, int64_t now_ms) noexcept nogil:
        """Fill `due`; partitions that no longer wait leave FetchPositions.uncommitted."""
        cdef int64_t wait = INT64_MAX
        cdef PartitionState* p
        cdef size_t i = 0
        cdef size_t kept = 0
        self.due.clear()
        for i in range(self.positions.uncommitted.size()):
            p = self.positions.uncommitted[i]
            if not waits(p):
                p.release()
                continue
            self.positions.uncommitted[kept] = p
            kept += 1
            if p.request.in_flight or (self.member.subscribed and not self.member.joined):
                # Without a membership, this member will lose the partition.
                continue
            if now_ms < p.request.not_before_ms:
                wait = min(wait, p.request.wait_ms(now_ms))
            else:
                self.due.push_back(p)
        self.positions.uncommitted.resize(kept)
        return wait

    # ---- committed()

    cdef int64_t _poll_questions(self, int64_t now_ms) noexcept nogil:
        cdef QueuedQuestion* question
        cdef int64_t wait = INT64_MAX
        cdef int32_t node
        it = self.questions.begin()
        while it != self.questions.end():
            question = &dereference(it).second
            if question.request.may_send(now_ms):
                node = self.coordinator.coordinator()
                if node < 0:
                    return wait
                self._send_question(dereference(it).first, question, node, now_ms)
            elif not question.request.in_flight:
                wait = min(wait, question.request.wait_ms(now_ms))
            preincrement(it)
        return wait

    cdef void _send_question(self, uint64_t number, QueuedQuestion* question, int32_t node,
                             int64_t now_ms) noexcept nogil:
        cdef SentFetch sent
        cdef size_t i
        sent.question = number
        for i in range(question.answered.size()):
            if not question.answered[i]:
                note_question(sent, question.event.partitions[i], i)
        question.request.on_send()
        self._send(sent, node, now_ms)

    # ---- sending

    cdef void _send(self, SentFetch& sent, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[OffsetFetchRequest]* body = new BodyOf[OffsetFetchRequest]()
        self._fill(body, sent, now_ms)
        self.sent[self.send(body, node, CHANNEL_COORDINATOR, 0, now_ms, INT64_MAX).cookie] = sent

    cdef void _fill(self, BodyOf[OffsetFetchRequest]* body, SentFetch& sent, int64_t now_ms) noexcept nogil:
        """Fill both forms: versions up to 7 ask for one group, later ones for a list."""
        cdef OffsetFetchRequest_OffsetFetchRequestGroup group
        cdef unordered_map[string, size_t] topics
        cdef OffsetFetchRequest_OffsetFetchRequestTopic topic
        cdef OffsetFetchRequest_OffsetFetchRequestTopics grouped
        cdef TopicEntry* known
        cdef string name
        cdef int32_t partition
        cdef size_t i, place
        body.message.group_id = self.group.group_id
        body.message.require_stable = self.positions.config.read_committed
        body.message.topics.set_present()
        group.group_id = self.group.group_id
        group.topics.set_present()
        if self.group.consumer_protocol and self.member.subscribed and self.member.joined:
            sent.as_member = True
            group.member_id.set(self.member.member_id)
            group.member_epoch = self.member.epoch
        if now_ms < self.names_until_ms:
            body.highest = BY_NAME_VERSION
        for i in range(sent.asked.size()):
            self._name(sent, i, &name, &partition)
            if sent.places[partition_key(name, partition)] != i:
                # A duplicate: asked once.
                continue
            if topics.count(name) == 0:
                topics[name] = body.message.topics.value.size()
                topic.name = name
                grouped.name = name
                known = self.positions.cluster.topic(name)
                if known == NULL or known.id.is_zero():
                    body.highest = BY_NAME_VERSION
                else:
                    grouped.topic_id = known.id
                    sent.names[known.id] = name
                body.message.topics.value.push_back(topic)
                group.topics.value.push_back(grouped)
            place = topics[name]
            body.message.topics.value[place].partition_indexes.push_back(partition)
            group.topics.value[place].partition_indexes.push_back(partition)
        body.message.groups.push_back(group)

    cdef void _name(self, SentFetch& sent, size_t i, string* topic, int32_t* partition) noexcept nogil:
        cdef PartitionOffset* asked
        if sent.asked[i].partition != NULL:
            topic[0] = sent.asked[i].partition.topic
            partition[0] = sent.asked[i].partition.partition
        else:
            asked = &self.questions[sent.question].event.partitions[sent.asked[i].index]
            topic[0] = asked.topic
            partition[0] = asked.partition

    # ---- answers

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef OffsetFetchResponse message
        cdef Reader reader = Reader(response.body, response.length)
        cdef size_t i
        it = self.sent.find(request.cookie)
        if it == self.sent.end():
            return
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"OFFSET", now_ms):
            self._end(request.cookie, Status(<int>ERR_BAD_MSG), -1, now_ms)
            return
        if response.version < GROUPS_VERSION:
            if message.error_code == 0:
                self._read_topics(dereference(it).second, message, response.node_id, now_ms)
            self._end(request.cookie, Status(message.error_code), response.node_id, now_ms)
            return
        for i in range(message.groups.size()):
            if message.groups[i].group_id == self.group.group_id:
                if message.groups[i].error_code == 0:
                    self._read_group(dereference(it).second, message.groups[i], response.version > BY_NAME_VERSION,
                                     response.node_id, now_ms)
                self._end(request.cookie, Status(message.groups[i].error_code), response.node_id, now_ms)
                return
        self._end(request.cookie, Status(), response.node_id, now_ms)

    cdef void _read_topics(self, SentFetch& sent, OffsetFetchResponse& message, int32_t node_id,
                           int64_t now_ms) noexcept nogil:
        cdef CommittedAnswer answer
        cdef size_t t, i
        for t in range(message.topics.size()):
            for i in range(message.topics[t].partitions.size()):
                answer.offset = message.topics[t].partitions[i].committed_offset
                answer.leader_epoch = message.topics[t].partitions[i].committed_leader_epoch
                answer.error = message.topics[t].partitions[i].error_code
                self._answer(sent, message.topics[t].name, message.topics[t].partitions[i].partition_index, answer,
                             message.topics[t].partitions[i].metadata.value, node_id, now_ms)

    cdef void _read_group(self, SentFetch& sent, OffsetFetchResponse_OffsetFetchResponseGroup& group, bint by_id,
                          int32_t node_id, int64_t now_ms) noexcept nogil:
        cdef CommittedAnswer answer
        cdef size_t t, i
        for t in range(group.topics.size()):
            if by_id:
                group.topics[t].name = sent.names[group.topics[t].topic_id]
            for i in range(group.topics[t].partitions.size()):
                answer.offset = group.topics[t].partitions[i].committed_offset
                answer.leader_epoch = group.topics[t].partitions[i].committed_leader_epoch
                answer.error = group.topics[t].partitions[i].error_code
                self._answer(sent, group.topics[t].name, group.topics[t].partitions[i].partition_index, answer,
                             group.topics[t].partitions[i].metadata.value, node_id, now_ms)

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        if is_retriable_committed(status.code):
            self.coordinator.mark_unknown(request.node_id, status.detail.c_str(), now_ms)
        self._end(request.cookie, status, -1, now_ms)

    cdef void _answer(self, SentFetch& sent, const string& topic, int32_t partition, const CommittedAnswer& answer,
                      const string& metadata, int32_t node_id, int64_t now_ms) noexcept nogil:
        cdef AskedCommitted* asked
        cdef int64_t place
        it = sent.places.find(partition_key(topic, partition))
        if it == sent.places.end() or sent.asked[dereference(it).second].answered:
            return
        if answer.error != 0:
            self._note_error(answer.error, node_id, now_ms)
            if is_retriable_committed(answer.error):
                # Not answered: _end() asks again.
                if sent.question != 0 and self.questions.count(sent.question):
                    self.questions[sent.question].last_error = answer.error
                return
        place = <int64_t>dereference(it).second
        while place >= 0:
            asked = &sent.asked[<size_t>place]
            asked.answered = True
            if asked.partition != NULL:
                self._answer_position(asked, answer, now_ms)
            elif self.questions.count(sent.question):
                self._answer_question(&self.questions[sent.question], asked.index, answer, metadata)
            place = asked.twin

    cdef void _note_error(self, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil:
        if code == <int>NOT_COORDINATOR or code == <int>COORDINATOR_NOT_AVAILABLE or code == <int>REQUEST_TIMED_OUT:
            self.coordinator.mark_unknown(node_id, b"the broker refused an OffsetFetch", now_ms)
        elif code == <int>UNKNOWN_TOPIC_ID:
            self.names_until_ms = now_ms + NAMES_MS

    cdef void _answer_position(self, AskedCommitted* asked, const CommittedAnswer& answer,
                               int64_t now_ms) noexcept nogil:
        cdef PartitionState* p = asked.partition
        if not position_waits(asked):
            return
        if answer.error != 0:
            self._retry_position(asked, now_ms)
            self._report_once(p, answer.error, string())
            return
        p.last_error = 0
        self.background.log.write(7, DBG_CGRP | DBG_TOPIC | DBG_CONSUMER, b"OFFSET", b"%s: committed offset %lld",
                                  p.name().c_str(), <long long>answer.offset)
        self.positions.on_committed(p, answer.offset, answer.leader_epoch)

    cdef void _answer_question(self, QueuedQuestion* question, size_t i, const CommittedAnswer& answer,
                               const string& metadata) noexcept nogil:
        cdef PartitionOffset* partition = &question.event.partitions[i]
        partition.error = answer.error
        partition.offset = answer.offset if answer.error == 0 and answer.offset >= 0 else OFFSET_INVALID
        partition.leader_epoch = answer.leader_epoch if partition.offset >= 0 else -1
        partition.metadata = metadata
        question.answered[i] = True
        question.left -= 1

    cdef void _end(self, uint64_t cookie, const Status& status, int32_t node_id, int64_t now_ms) noexcept nogil:
        """End the request, and ask again for partitions without an answer."""
        cdef size_t i
        cdef AskedCommitted* asked
        cdef int32_t code = status.code
        cdef bint reported = False
        it = self.sent.find(cookie)
        if it == self.sent.end():
            return
        cdef SentFetch* sent = &dereference(it).second
        cdef bint final = code != 0 and not is_retriable_committed(code) and not (
            code == <int>GROUP_ID_NOT_FOUND and sent.as_member)
        if code != 0:
            self._note_error(code, node_id, now_ms)
        if sent.question != 0:
            self._end_question(sent.question, status, final, now_ms)
        else:
            for i in range(sent.asked.size()):
                asked = &sent.asked[i]
                if asked.answered or not position_waits(asked):
                    continue
                self._retry_position(asked, now_ms)
                if final and not reported:
                    # Report one error: it concerns the whole group.
                    reported = True
                    self._report_once(asked.partition, code, status.detail)
                elif final:
                    asked.partition.last_error = code
        release_sent(dereference(sent))
        self.sent.erase(it)

    cdef void _end_question(self, uint64_t number, const Status& status, bint final, int64_t now_ms) noexcept nogil:
        cdef QueuedQuestion* question
        if self.questions.count(number) == 0:
            return
        question = &self.questions[number]
        question.request.on_given_up()
        if final:
            self._finish(number, status)
        elif question.left == 0:
            self._finish(number, Status())
        else:
            if status.code != 0:
                question.last_error = status.code
            question.request.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void _retry_position(self, AskedCommitted* asked, int64_t now_ms) noexcept nogil:
        asked.partition.request.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void _report_once(self, PartitionState* p, int32_t code, const string& why) noexcept nogil:
        cdef string detail
        if p.last_error == code:
            return
        p.last_error = code
        detail = p.name()
        detail.append(b": cannot fetch the committed offset")
        if not why.empty():
            detail.append(b": ").append(why)
        self.positions.report(p, Status(code, detail), OFFSET_INVALID)

    cdef void _fail_without_coordinator(self) noexcept nogil:
        """Fail the waiting calls: the coordinator is unavailable for a permanent reason."""
        cdef vector[uint64_t] over
        cdef uint64_t number
        cdef PartitionState* p
        cdef bint reported = False
        it = self.questions.begin()
        while it != self.questions.end():
            if dereference(it).second.coordinator_failures != self.coordinator.failures:
                over.push_back(dereference(it).first)
            preincrement(it)
        for number in over:
            self._finish(number, self.coordinator.fatal)
        for p in self.positions.uncommitted:
            if waits(p) and p.last_error != self.coordinator.fatal.code:
                if not reported:
                    # Report one error: it concerns the whole group.
                    reported = True
                    self._report_once(p, self.coordinator.fatal.code, self.coordinator.fatal.detail)
                p.last_error = self.coordinator.fatal.code

    # ---- ends

    cdef void _finish(self, uint64_t number, const Status& status) noexcept nogil:
        cdef FetchCommittedEvent* event = self.questions[number].event
        self.questions.erase(self.questions.find(number))
        event.complete(status)
        event.release()

    cdef void expire(self, int64_t now_ms) noexcept nogil:
        cdef vector[uint64_t] over
        cdef uint64_t number
        cdef string detail
        it = self.questions.begin()
        while it != self.questions.end():
            if dereference(it).second.event.deadline_ms <= now_ms:
                over.push_back(dereference(it).first)
            preincrement(it)
        for number in over:
            detail = string(b"the coordinator did not answer OffsetFetch in time")
            if self.questions[number].last_error != 0:
                detail.append(b" (error ").append(to_string(self.questions[number].last_error)).append(b")")
            detail.append(b": check the connection to the brokers")
            self._finish(number, Status(<int>ERR_TIMED_OUT, detail))

    cdef int64_t next_deadline_ms(self) noexcept nogil:
        cdef int64_t earliest = INT64_MAX
        it = self.questions.begin()
        while it != self.questions.end():
            earliest = min(earliest, dereference(it).second.event.deadline_ms)
            preincrement(it)
        return earliest

    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil:
        while not self.questions.empty():
            self._finish(dereference(self.questions.begin()).first, why)


cdef bint waits(PartitionState* p) noexcept nogil:
    return p.tracked and p.state == FETCH_AWAIT_COMMITTED


cdef bint position_waits(AskedCommitted* asked) noexcept nogil:
    """Whether the position that asked still needs an answer."""
    return asked.partition != NULL and waits(asked.partition) and (
        asked.partition.adopted_epoch == asked.position_epoch)


cdef void note_position(SentFetch& sent, PartitionState* p) noexcept nogil:
    cdef AskedCommitted asked
    p.retain()
    asked.partition = p
    asked.position_epoch = p.adopted_epoch
    sent.places[partition_key(p.topic, p.partition)] = sent.asked.size()
    sent.asked.push_back(asked)


cdef void note_question(SentFetch& sent, PartitionOffset& partition, size_t i) noexcept nogil:
    cdef AskedCommitted asked
    cdef string key = partition_key(partition.topic, partition.partition)
    asked.index = i
    if sent.places.count(key):
        asked.twin = <int64_t>sent.places[key]
    sent.places[key] = sent.asked.size()
    sent.asked.push_back(asked)


cdef void release_sent(SentFetch& sent) noexcept nogil:
    cdef size_t i
    for i in range(sent.asked.size()):
        if sent.asked[i].partition != NULL:
            sent.asked[i].partition.release()
