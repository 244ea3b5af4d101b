"""Owns: OffsetsRequestManager: finds positions (ListOffsets), validates them (OffsetForLeaderEpoch), and answers the
application's questions (offsets_for_times, get_watermark_offsets).

thread: N. Never: sets a position after a seek or a new assignment (it compares position_epoch), asks a broker that is
not the leader.

Errors per partition, of both requests:
  NOT_LEADER_OR_FOLLOWER, LEADER_NOT_AVAILABLE, REPLICA_NOT_AVAILABLE, KAFKA_STORAGE_ERROR, OFFSET_NOT_AVAILABLE,
  FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION   metadata is refreshed, then again with backoff
  UNSUPPORTED_FOR_MESSAGE_FORMAT (time look-up in a v0 log)   no offset for that time
  everything else   the application is notified once; a position is asked again with backoff, a question ends with it
If a leader refuses this client's login, or its certificate is rejected, a question ends
(test_a_question_ends_where_its_leader_refuses_every_login). A position is retried: credentials may be replaced, and no
call waits for it with a deadline.
"""


ctypedef BodyOf[ListOffsetsRequest] ListOffsetsBody
ctypedef BodyOf[OffsetForLeaderEpochRequest] EndOffsetsBody

cdef enum:
    KIND_RESET = 1
    KIND_VALIDATE = 2
    KIND_QUERY = 3
    MOST_FORMER_LEADERS = 4  # answers without the position's epoch, before the log counts as truncated


cdef bint is_retriable_offset(int32_t code) noexcept nogil:
    return (code == <int>NOT_LEADER_OR_FOLLOWER or code == <int>LEADER_NOT_AVAILABLE
            or code == <int>REPLICA_NOT_AVAILABLE or code == <int>KAFKA_STORAGE_ERROR
            or code == <int>OFFSET_NOT_AVAILABLE or code == <int>FENCED_LEADER_EPOCH
            or code == <int>UNKNOWN_LEADER_EPOCH or code == <int>UNKNOWN_TOPIC_OR_PARTITION)


cdef int16_t lowest_version_for(int64_t timestamp) noexcept nogil:
    """Return the lowest version for a timestamp; special ones came with later versions.

    See KIP-734, KIP-405, KIP-1005, KIP-1023.
    """
    if timestamp == -3:
        return 7
    if timestamp == -4:
        return 8
    if timestamp == -5:
        return 9
    if timestamp < -5:
        return 11
    return 1


@cython.no_gc
cdef class OffsetsRequestManager(RequestManager):
    def __cinit__(self, ManagerContext context, MetadataRequestManager metadata not None):
        self.metadata = metadata

    def __dealloc__(self):
        cdef ListOffsetsEvent* event
        for event in self.events:
            event.release()
        it = self.contexts.begin()
        while it != self.contexts.end():
            release_context(dereference(it).second)
            preincrement(it)

    cdef void ask(self, ListOffsetsEvent* event) noexcept nogil:
        """Answer every query of the event; takes over one reference."""
        self.events.push_back(event)
        self.questions.clear_backoff()

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait = self._poll_positions(now_ms)
        return min(wait, self._poll_events(now_ms))

    # ---- positions

    cdef int64_t _poll_positions(self, int64_t now_ms) noexcept nogil:
        cdef unordered_map[int32_t, ListOffsetsBody*] resets
        cdef unordered_map[int32_t, EndOffsetsBody*] validations
        cdef unordered_map[int32_t, OffsetsContext] reset_contexts
        cdef unordered_map[int32_t, OffsetsContext] validation_contexts
        cdef PartitionState* p
        cdef Request* request
        cdef int64_t wait = INT64_MAX
        cdef size_t i = 0
        while i < self.positions.pending.size():
            p = self.positions.pending[i]
            if self.positions.forgets_pending(p):
                self.positions.pending[i] = self.positions.pending.back()
                self.positions.pending.pop_back()
                p.release()
                continue
            i += 1
            if p.request.in_flight:
                continue
            if now_ms < p.request.not_before_ms:
                wait = min(wait, p.request.wait_ms(now_ms))
                continue
            if p.leader_id < 0:
                self.metadata.want_update()
                continue
            p.request.on_send()
            if p.state == FETCH_AWAIT_RESET:
                if resets.count(p.leader_id) == 0:
                    resets[p.leader_id] = new BodyOf[ListOffsetsRequest]()
                self._add_reset(p, resets[p.leader_id], reset_contexts[p.leader_id])
            else:
                if validations.count(p.leader_id) == 0:
                    validations[p.leader_id] = new BodyOf[OffsetForLeaderEpochRequest]()
                self._add_validation(p, validations[p.leader_id], validation_contexts[p.leader_id])
        it = resets.begin()
        while it != resets.end():
            request = self.send(dereference(it).second, dereference(it).first, CHANNEL_CONTROL, KIND_RESET, now_ms,
                                INT64_MAX)
            self.contexts[request.cookie] = reset_contexts[request.node_id]
            preincrement(it)
        jt = validations.begin()
        while jt != validations.end():
            request = self.send(dereference(jt).second, dereference(jt).first, CHANNEL_CONTROL, KIND_VALIDATE, now_ms,
                                INT64_MAX)
            self.contexts[request.cookie] = validation_contexts[request.node_id]
            preincrement(jt)
        return wait

    cdef void _add_reset(self, PartitionState* p, BodyOf[ListOffsetsRequest]* body,
                         OffsetsContext& context) noexcept nogil:
        cdef ListOffsetsRequest_ListOffsetsPartition asked
        asked.partition_index = p.partition
        asked.current_leader_epoch = p.leader_epoch
        asked.timestamp = p.reset_timestamp
        body.message.replica_id = -1
        body.message.isolation_level = 1 if self.positions.config.read_committed else 0
        body.lowest = 1
        add_list_offsets(body.message, p.topic, asked)
        note_partition(context, p)

    cdef void _add_validation(self, PartitionState* p, BodyOf[OffsetForLeaderEpochRequest]* body,
                              OffsetsContext& context) noexcept nogil:
        cdef OffsetForLeaderEpochRequest_OffsetForLeaderPartition asked
        cdef OffsetForLeaderEpochRequest_OffsetForLeaderTopic topic
        asked.partition = p.partition
        asked.current_leader_epoch = p.leader_epoch
        asked.leader_epoch = p.fetch_leader_epoch
        body.message.replica_id = -1
        if body.message.topics.empty() or body.message.topics.back().topic != p.topic:
            topic.topic = p.topic
            body.message.topics.push_back(topic)
        body.message.topics.back().partitions.push_back(asked)
        note_partition(context, p)

    # ---- the application's questions

    cdef int64_t _poll_events(self, int64_t now_ms) noexcept nogil:
        cdef ListOffsetsEvent* event
        cdef size_t n = self.events.size()
        cdef int64_t wait = INT64_MAX
        if n == 0:
            return INT64_MAX
        if now_ms < self.questions.not_before_ms:
            return self.questions.wait_ms(now_ms)
        for _ in range(n):
            event = self.events.front()
            self.events.pop_front()
            if event.done() or self._finish(event):
                event.release()
                continue
            wait = min(wait, self._send_queries(event, now_ms))
            self.events.push_back(event)
        return wait

    cdef bint _finish(self, ListOffsetsEvent* event) noexcept nogil:
        cdef size_t i
        for i in range(event.queries.size()):
            if not event.queries[i].answered:
                return False
        event.complete(Status())
        return True

    cdef int64_t _send_queries(self, ListOffsetsEvent* event, int64_t now_ms) noexcept nogil:
        cdef unordered_map[int32_t, ListOffsetsBody*] bodies
        cdef unordered_map[int32_t, OffsetsContext] contexts
        cdef OffsetQuery* query
        cdef Request* request
        cdef PartitionEntry* entry
        cdef TopicEntry* topic
        cdef size_t i
        cdef bint unknown = False
        cdef bint again = False
        if event.asked_ms < 0:
            event.asked_ms = now_ms
            self.metadata.clear_backoff()
        for i in range(event.queries.size()):
            query = &event.queries[i]
            if query.answered or query.in_flight:
                continue
            entry = self.positions.cluster.partition(query.topic, query.partition)
            if entry == NULL or entry.leader_id < 0:
                unknown = True
                topic = self.positions.cluster.topic(query.topic)
                if topic != NULL and topic.updated_ms >= event.asked_ms and self._is_unknown(topic, entry):
                    query.error = topic.error if topic.error != 0 else <int>ERR_UNKNOWN_PARTITION
                    query.answered = True
                    again = True
                elif self.positions.interest.count(query.topic) == 0:
                    # Keep the interest: a caller often asks again, and the entry is only one name in a request.
                    self.positions.take_interest(query.topic)
                else:
                    self.metadata.want_update()
                continue
            if contexts[entry.leader_id].places.count(partition_key(query.topic, query.partition)):
                # A broker refuses a request that names a partition twice: send this query in the next turn
                # (test_watermarks_ask_twice_about_one_partition).
                again = True
                continue
            if bodies.count(entry.leader_id) == 0:
                bodies[entry.leader_id] = new BodyOf[ListOffsetsRequest]()
            self._add_query(event, i, bodies[entry.leader_id], contexts[entry.leader_id], entry.leader_epoch)
        it = bodies.begin()
        while it != bodies.end():
            event.retain()
            contexts[dereference(it).first].event = event
            request = self.send(dereference(it).second, dereference(it).first, CHANNEL_CONTROL, KIND_QUERY, now_ms,
                                event.deadline_ms)
            self.contexts[request.cookie] = contexts[request.node_id]
            preincrement(it)
        if again:
            return 0
        return 50 if unknown else INT64_MAX

    cdef bint _is_unknown(self, TopicEntry* topic, PartitionEntry* entry) noexcept nogil:
        """Whether the metadata of the topic is final.

        It is not final before a leader is elected.
        """
        if topic.error == <int>UNKNOWN_TOPIC_OR_PARTITION:
            return not self.positions.config.allow_auto_create_topics
        if topic.error != 0:
            return not is_retriable_offset(topic.error)
        return entry == NULL

    cdef void _add_query(self, ListOffsetsEvent* event, size_t i, BodyOf[ListOffsetsRequest]* body,
                         OffsetsContext& context, int32_t leader_epoch) noexcept nogil:
        cdef ListOffsetsRequest_ListOffsetsPartition asked
        cdef AskedPartition place
        cdef OffsetQuery* query = &event.queries[i]
        query.in_flight = True
        asked.partition_index = query.partition
        asked.current_leader_epoch = leader_epoch
        asked.timestamp = query.timestamp
        body.message.replica_id = -1
        body.message.isolation_level = 1 if event.read_committed else 0
        body.lowest = max(body.lowest, lowest_version_for(query.timestamp))
        add_list_offsets(body.message, query.topic, asked)
        place.query = <int32_t>i
        context.places[partition_key(query.topic, query.partition)] = context.partitions.size()
        context.partitions.push_back(place)

    cdef void expire(self, int64_t now_ms) noexcept nogil:
        cdef ListOffsetsEvent* event
        cdef size_t n = self.events.size()
        for _ in range(n):
            event = self.events.front()
            self.events.pop_front()
            if not event.done() and now_ms >= event.deadline_ms:
                event.complete(Status(<int>ERR_TIMED_OUT, string(
                    b"no leader answered ListOffsets in time: check the connection to the brokers")))
            if event.done():
                event.release()
            else:
                self.events.push_back(event)

    cdef int64_t next_deadline_ms(self) noexcept nogil:
        cdef int64_t earliest = INT64_MAX
        cdef ListOffsetsEvent* event
        for event in self.events:
            earliest = min(earliest, event.deadline_ms)
        return earliest

    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil:
        cdef ListOffsetsEvent* event
        while not self.events.empty():
            event = self.events.front()
            self.events.pop_front()
            event.complete(why)
            event.release()

    # ---- answers

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        self.background.log.write(7, DBG_FETCH, b"OFFSET", b"request to broker %d failed: %s", request.node_id,
                                  status.detail.c_str())
        it = self.contexts.find(request.cookie)
        if it == self.contexts.end():
            return
        if request.kind == KIND_VALIDATE and status.code == <int>ERR_UNSUPPORTED_FEATURE:
            # A broker older than KIP-320 cannot validate: continue without validation, as older clients do.
            self._skip_validation(dereference(it).second)
        else:
            self.metadata.want_update()
            self._retry_all(dereference(it).second, now_ms, status)
        release_context(dereference(it).second)
        self.contexts.erase(it)

    cdef void _skip_validation(self, OffsetsContext& context) noexcept nogil:
        cdef size_t i
        cdef PartitionState* p
        for i in range(context.partitions.size()):
            p = context.partitions[i].partition
            if partition_waits(&context.partitions[i], FETCH_AWAIT_VALIDATION):
                self.positions.activate(p, p.fetch_offset.load())

    cdef void _retry_all(self, OffsetsContext& context, int64_t now_ms, const Status& status) noexcept nogil:
        cdef size_t i
        cdef OffsetQuery* query
        cdef PartitionState* p
        cdef bint again = False
        for i in range(context.partitions.size()):
            p = context.partitions[i].partition
            if p != NULL:
                if status.code == <int>ERR_UNSUPPORTED_FEATURE and partition_waits(&context.partitions[i],
                                                                                   FETCH_AWAIT_RESET):
                    self._report_once(p, status)
                self._retry(&context.partitions[i], now_ms)
                continue
            query = &context.event.queries[context.partitions[i].query]
            if context.event.done() or query.answered:
                continue
            query.in_flight = False
            if status.code == <int>ERR_AUTHENTICATION or status.code == <int>ERR_SSL:
                # The leader refuses this client, and no other broker can answer. A later call may succeed.
                context.event.complete(status)
            elif status.code == <int>ERR_UNSUPPORTED_FEATURE:
                query.error = status.code
                query.answered = True
                context.event.unsupported = status.detail
            else:
                again = True
        if again:
            self.questions.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void _report_once(self, PartitionState* p, const Status& status) noexcept nogil:
        if p.last_error != status.code:
            p.last_error = status.code
            self.positions.report(p, status, OFFSET_INVALID)

    cdef void _retry(self, AskedPartition* asked, int64_t now_ms) noexcept nogil:
        cdef PartitionState* p = asked.partition
        # Not of the fetched data: a bad batch in it does not end the wait for this answer.
        if p.adopted_epoch != asked.position_epoch or not p.tracked:
            return
        p.request.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef Reader reader = Reader(response.body, response.length)
        it = self.contexts.find(request.cookie)
        if it == self.contexts.end():
            return
        if request.kind == KIND_VALIDATE:
            self._on_end_offsets(reader, response, dereference(it).second, now_ms)
        else:
            self._on_offsets(reader, response, dereference(it).second, now_ms)
        # Ask again for partitions that the response did not name.
        self._retry_unanswered(dereference(it).second, now_ms)
        release_context(dereference(it).second)
        self.contexts.erase(it)

    cdef void _retry_unanswered(self, OffsetsContext& context, int64_t now_ms) noexcept nogil:
        cdef size_t i
        cdef PartitionState* p
        cdef OffsetQuery* query
        cdef bint again = False
        for i in range(context.partitions.size()):
            p = context.partitions[i].partition
            if p == NULL:
                query = &context.event.queries[context.partitions[i].query]
                if not context.event.done() and not query.answered:
                    query.in_flight = False
                    again = True
            elif p.request.in_flight and not self.positions.forgets_pending(p):
                self._retry(&context.partitions[i], now_ms)
        if again:
            self.questions.on_failure(now_ms, dereference(self.backoff), self.jitter)
        if context.event != NULL and not context.event.done():
            self._finish(context.event)

    cdef void _on_offsets(self, Reader& reader, Response* response, OffsetsContext& context,
                          int64_t now_ms) noexcept nogil:
        cdef ListOffsetsResponse message
        cdef ListOffsetsResponse_ListOffsetsPartitionResponse* found
        cdef AskedPartition* asked
        cdef size_t t, i
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"OFFSET", now_ms):
            return
        for t in range(message.topics.size()):
            for i in range(message.topics[t].partitions.size()):
                found = &message.topics[t].partitions[i]
                it = context.places.find(partition_key(message.topics[t].name, found.partition_index))
                if it == context.places.end():
                    continue
                asked = &context.partitions[dereference(it).second]
                if asked.partition != NULL:
                    self._on_reset(asked, found, now_ms)
                else:
                    self._on_query(context.event, asked, found, now_ms)

    cdef void _on_reset(self, AskedPartition* asked, ListOffsetsResponse_ListOffsetsPartitionResponse* found,
                        int64_t now_ms) noexcept nogil:
        cdef PartitionState* p = asked.partition
        cdef int64_t offset
        if not partition_waits(asked, FETCH_AWAIT_RESET):
            return
        if found.error_code != 0 and found.error_code != <int>UNSUPPORTED_FOR_MESSAGE_FORMAT:
            self._on_partition_error(asked, found.error_code, now_ms)
            return
        offset = found.offset
        if offset < 0 and p.reset_timestamp < 0:
            # Every log has a start and an end; this answer has neither.
            self._retry(asked, now_ms)
            return
        if offset < 0 or found.error_code != 0:
            # No record is that new: start at the end.
            p.request.on_given_up()
            p.reset_timestamp = -1
            return
        if p.reset_tail > 0:
            offset = max(offset - p.reset_tail, <int64_t>0)
        if found.leader_epoch >= 0:
            p.leader_epoch = max(p.leader_epoch, found.leader_epoch)
        self.background.log.write(7, DBG_FETCH | DBG_TOPIC | DBG_CONSUMER, b"OFFSET", b"%s: starting at offset %lld",
                                  p.name().c_str(), <long long>offset)
        self.positions.activate(p, offset)

    cdef void _on_partition_error(self, AskedPartition* asked, int32_t code, int64_t now_ms) noexcept nogil:
        cdef string detail
        self._retry(asked, now_ms)
        if is_retriable_offset(code):
            self.metadata.want_update()
        else:
            detail = asked.partition.name()
            detail.append(b": cannot fetch the offset: ").append(topic_reason(code, asked.partition.topic))
            self._report_once(asked.partition, Status(code, detail))

    cdef void _on_query(self, ListOffsetsEvent* event, AskedPartition* asked,
                        ListOffsetsResponse_ListOffsetsPartitionResponse* found, int64_t now_ms) noexcept nogil:
        cdef OffsetQuery* query = &event.queries[asked.query]
        if event.done() or query.answered:
            return
        if is_retriable_offset(found.error_code):
            self.metadata.want_update()
            return
        query.in_flight = False
        query.error = 0 if found.error_code == <int>UNSUPPORTED_FOR_MESSAGE_FORMAT else found.error_code
        query.offset = found.offset
        query.found_timestamp = found.timestamp
        query.leader_epoch = found.leader_epoch
        query.answered = True
        self.questions.on_success()

    cdef void _on_end_offsets(self, Reader& reader, Response* response, OffsetsContext& context,
                              int64_t now_ms) noexcept nogil:
        cdef OffsetForLeaderEpochResponse message
        cdef size_t t, i
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"OFFSET", now_ms):
            return
        for t in range(message.topics.size()):
            for i in range(message.topics[t].partitions.size()):
                it = context.places.find(partition_key(message.topics[t].topic,
                                                       message.topics[t].partitions[i].partition))
                if it != context.places.end():
                    self._on_end_offset(&context.partitions[dereference(it).second],
                                        &message.topics[t].partitions[i], now_ms)

    cdef void _on_end_offset(self, AskedPartition* asked, OffsetForLeaderEpochResponse_EpochEndOffset* found,
                             int64_t now_ms) noexcept nogil:
        cdef PartitionState* p = asked.partition
        cdef int64_t offset
        cdef string detail
        if not partition_waits(asked, FETCH_AWAIT_VALIDATION):
            return
        if asked.leader_epoch != p.leader_epoch:
            # The leader has changed, and its log may end elsewhere: ask again immediately.
            p.request.on_given_up()
            return
        if found.error_code != 0:
            self._on_partition_error(asked, found.error_code, now_ms)
            return
        offset = p.fetch_offset.load()
        if found.end_offset >= offset:
            self.positions.activate(p, offset)
            return
        # The log was truncated below the fetched offset (unclean leader election).
        detail = p.name()
        detail.append(b": log truncation: fetch offset ").append(to_string(<long long>offset))
        detail.append(b" (leader epoch ").append(to_string(<long long>p.fetch_leader_epoch))
        if found.end_offset < 0 or found.leader_epoch < 0:
            if p.fetch_leader_epoch > asked.leader_epoch and p.request.attempts < MOST_FORMER_LEADERS:
                # The metadata are older than the position, and this broker may have been the leader before it. In a
                # recreated topic, epochs are smaller for good.
                p.request.on_failure(now_ms, dereference(self.backoff), self.jitter)
                self.metadata.want_update()
                return
            detail.append(b") diverges at an unknown offset")
            self.positions.reset_by_policy(p, <int>ERR_LOG_TRUNCATION, detail, offset, now_ms)
            return
        detail.append(b") diverges from the leader's log at offset ").append(to_string(<long long>found.end_offset))
        if self.positions.config.reset_policy == RESET_NONE:
            self.positions.stop(p, Status(<int>ERR_LOG_TRUNCATION, detail), offset)
            return
        self.background.log.push(4, b"TRUNCATE", detail)
        # Data fetched before stays in the queue: dropping it would skip records below the truncation.
        p.eof_reported_at = -1
        p.fetch_leader_epoch = found.leader_epoch
        self.positions.activate(p, found.end_offset)


cdef bint partition_waits(AskedPartition* asked, int32_t state) noexcept nogil:
    """Whether the partition that asked still needs an answer."""
    cdef PartitionState* p = asked.partition
    return (p != NULL and p.tracked and p.adopted_epoch == asked.position_epoch
            and p.decode_generation == asked.generation and <int32_t>p.state == state)


cdef void note_partition(OffsetsContext& context, PartitionState* p) noexcept nogil:
    cdef AskedPartition asked
    p.retain()
    asked.partition = p
    asked.position_epoch = p.adopted_epoch
    asked.generation = p.decode_generation
    asked.leader_epoch = p.leader_epoch
    context.places[partition_key(p.topic, p.partition)] = context.partitions.size()
    context.partitions.push_back(asked)


cdef void add_list_offsets(ListOffsetsRequest& message, const string& topic,
                           const ListOffsetsRequest_ListOffsetsPartition& asked) noexcept nogil:
    cdef ListOffsetsRequest_ListOffsetsTopic entry
    if message.topics.empty() or message.topics.back().name != topic:
        entry.name = topic
        message.topics.push_back(entry)
    message.topics.back().partitions.push_back(asked)


cdef void release_context(OffsetsContext& context) noexcept nogil:
    cdef size_t i
    for i in range(context.partitions.size()):
        if context.partitions[i].partition != NULL:
            context.partitions[i].partition.release()
    if context.event != NULL:
        context.event.release()
