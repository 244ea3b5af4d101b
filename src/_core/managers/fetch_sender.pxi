"""Owns: FetchSender: incremental fetch sessions (KIP-227). One Fetch is in flight per broker; the next one is sent
before the last response is decoded.

thread: N. Never: decodes records (FetchDecoder does, from `fetched`), asks for more bytes than there is room for.

Room: free = fetch.buffer.memory − live blocks − bytes reserved by Fetches in flight. A Fetch is sent when there is room
for a large enough response, or when no data waits for the application. So progress never depends on memory that the
application keeps pinned.

Errors of a Fetch response as a whole:
  FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR, INCONSISTENT_TOPIC_ID,
  and any failed request or unreadable response: the session starts again with a full request
FetchErrors handles the errors of one partition.
"""


cdef enum:
    KIND_FETCH = 1
    KIND_CLOSE_SESSION = 2
    LAST_VERSION_WITHOUT_IDS = 12
    FINAL_EPOCH = -1  # ends the named session; without a session, creates none
    # While a backlog is read in windows, the whole session is fetched at this interval, so that its watermarks stay
    # known (lag() uses watermarks of the last second).
    WHOLE_SESSION_MS = 800
    WORTHWHILE_BYTES = 1048576
    SMALLEST_FETCH_BYTES = 65536
    SMALLEST_SHARE_BYTES = 1048576
    # A batch is decompressed as a whole: without a bound, a few kilobytes could become two gigabytes. Batches of
    # producers with default settings are far smaller; fetch.buffer.memory and fetch.max.inflated.batch.bytes allow
    # more.
    LARGEST_INFLATED_BYTES = 100000000
    CLOSE_TIMEOUT_MS = 500
    PARKED_GRACE_MS = 5
    # After a pause, a seek or an assignment, more of them are likely: during this time a Fetch is parked only briefly.
    SHORT_WAITS_FOR_MS = 10000
    SHORT_WAIT_MS = 25
    RENEWAL_MS = 10000


@cython.no_gc
cdef class FetchSender(RequestManager):
    def __cinit__(self, ManagerContext context, MetadataRequestManager metadata not None):
        self.metadata = metadata
        self.errors = FetchErrors(context, metadata)

    def __dealloc__(self):
        cdef PartitionState* p
        it = self.sessions.begin()
        while it != self.sessions.end():
            del dereference(it).second
            preincrement(it)
        for p in self.delayed:
            p.release()

    # ---- the broker of each partition

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef FetchSession* session
        cdef int64_t wait = min(self._wake_delayed(now_ms), self.errors.poll(now_ms))
        wait = min(wait, self._place_partitions(now_ms))
        self._queue_reported_errors()
        if self.closing:
            return INT64_MAX
        self._count_active()
        wait = min(wait, self._poll_waiting(now_ms))
        it = self.sessions.begin()
        while it != self.sessions.end():
            session = dereference(it).second
            preincrement(it)
            if session.waits_for_room:
                continue
            wait = min(wait, self._poll_session(session, now_ms))
            if session.waits_for_room:
                self.waiting.push_back(session.node_id)
        return wait

    cdef void _count_active(self) noexcept nogil:
        self.active_sessions = 0
        it = self.sessions.begin()
        while it != self.sessions.end():
            self.active_sessions += dereference(it).second.partition_count > 0
            preincrement(it)

    cdef int64_t _poll_waiting(self, int64_t now_ms) noexcept nogil:
        """Serve sessions that wait for room first, the longest wait before the others.

        Otherwise a broker whose Fetch has just ended would take the room at every turn, and some brokers would get
        none (test_brokers_that_wait_for_room_are_asked_in_turn).
        """
        cdef int64_t wait = INT64_MAX
        cdef FetchSession* session
        while not self.waiting.empty():
            it = self.sessions.find(self.waiting.front())
            if it != self.sessions.end():
                session = dereference(it).second
                session.waits_for_room = False
                wait = min(wait, self._poll_session(session, now_ms))
                if session.waits_for_room:
                    break
            self.waiting.pop_front()
        return wait

    cdef int64_t _wake_delayed(self, int64_t now_ms) noexcept nogil:
        cdef PartitionState* p
        cdef int64_t wait = INT64_MAX
        cdef size_t i = 0
        while i < self.delayed.size():
            p = self.delayed[i]
            if p.request.not_before_ms > now_ms and p.tracked:
                wait = min(wait, p.request.wait_ms(now_ms))
                i += 1
                continue
            self.delayed[i] = self.delayed.back()
            self.delayed.pop_back()
            self.positions.mark_dirty(p)
            p.release()
        return wait

    cdef int64_t _place_partitions(self, int64_t now_ms) noexcept nogil:
        """Put every changed partition into the session of its broker, or into none.

        Returns the time until the backoff of the first partition ends.
        """
        cdef int64_t wait = INT64_MAX
        cdef vector[PartitionState*] dirty
        cdef PartitionState* p
        cdef int32_t node
        dirty.swap(self.positions.dirty)
        for p in dirty:
            p.listed_for_fetch = False
            node = -1
            if (p.tracked and p.state == FETCH_ACTIVE and not p.user_paused_seen and not p.revoking
                    and not p.unsubscribed.load() and not p.ends_at(p.fetch_offset.load())):
                if p.request.not_before_ms > now_ms:
                    p.retain()
                    self.delayed.push_back(p)
                    wait = min(wait, p.request.wait_ms(now_ms))
                else:
                    node = p.read_node(now_ms)
                    if node < 0:
                        self.metadata.want_update()
            if p.session_node >= 0 and p.session_node != node:
                if p.tracked and p.user_paused_seen:
                    self.sessions[p.session_node].short_waits_until_ms = now_ms + SHORT_WAITS_FOR_MS
                self._leave_session(p)
            if node >= 0:
                self._join_session(p, node, now_ms)
            p.release()
        return wait

    cdef void _leave_session(self, PartitionState* p) noexcept nogil:
        cdef FetchSession* session = self.sessions[p.session_node]
        cdef ForgottenPartition forgotten
        cdef SessionPartition* entry = session.find(p.topic, p.partition)
        p.session_node = -1
        if entry == NULL or entry.partition != p:
            return
        if entry.known_to_broker:
            forgotten.topic = p.topic
            forgotten.topic_id = entry.topic_id
            forgotten.partition = p.partition
            forgotten.watermarks = p.watermarks()
            session.to_forget.push_back(forgotten)
        session.leave(dereference(entry))

    cdef void _join_session(self, PartitionState* p, int32_t node, int64_t now_ms) noexcept nogil:
        cdef FetchSession* session
        cdef SessionPartition* entry
        cdef TopicEntry* topic = self.positions.cluster.topic(p.topic)
        if self.sessions.count(node) == 0:
            session = new FetchSession()
            session.node_id = node
            self.sessions[node] = session
        session = self.sessions[node]
        entry = &session.join(p, self.config.partition_eof)
        p.session_node = node
        if session.request.in_flight and session.urgent_ms == 0 and (
                not entry.known_to_broker or entry.fetch_offset != p.fetch_offset.load()):
            session.urgent_ms = now_ms
            session.short_waits_until_ms = now_ms + SHORT_WAITS_FOR_MS
        if topic != NULL and not (topic.id == entry.topic_id):
            if entry.known_to_broker and not entry.topic_id.is_zero():
                session.start_again()
            session.set_topic_id(dereference(entry), topic.id)
        if entry.position_epoch != p.adopted_epoch or entry.generation != p.decode_generation:
            session.turns.goes_first(entry.turn)
        session.want(dereference(entry))

    # ---- requests

    cdef bint nothing_undelivered(self) noexcept nogil:
        return (self.fetched.empty() and self.counters.undecoded.load() <= 0
                and self.counters.undelivered_records.load() <= 0)

    cdef int64_t _poll_session(self, FetchSession* session, int64_t now_ms) noexcept nogil:
        cdef int64_t room
        cdef Readiness readiness
        if session.request.in_flight:
            return self._interrupt_parked(session, now_ms)
        if session.partition_count == 0 and session.to_forget.empty():
            return INT64_MAX
        if now_ms < session.request.not_before_ms:
            return session.request.wait_ms(now_ms)
        room = self._room(session)
        if room <= 0:
            session.waits_for_room = True
            return INT64_MAX
        if session.partition_count == 0 and session.epoch == 0:
            session.to_forget.clear()
            return INT64_MAX
        # ready() starts the connection if there is none; the version is known only after that.
        readiness = self.delegate.network.ready(session.node_id, CHANNEL_FETCH, now_ms)
        if readiness != NODE_READY:
            self._note_connection(session, readiness)
            return INT64_MAX
        self._send_fetch(session, room, now_ms)
        return INT64_MAX

    cdef int64_t _interrupt_parked(self, FetchSession* session, int64_t now_ms) noexcept nogil:
        """Do not let a newly assigned, sought or resumed partition wait for a parked Fetch.

        The broker answers a connection in order and may hold the Fetch for fetch.wait.max.ms.

        1. The first time, a new connection replaces the old one, unless that costs more than one or two round trips.
        2. Later Fetches are parked only briefly.
        3. A Fetch is given up only after the time of a quick answer, and only if no answer has begun.
        """
        cdef int64_t due
        if session.urgent_ms == 0 or session.named > 0:
            # The broker does not park a window; a partition that arrived meanwhile is first in the next window.
            return INT64_MAX
        if self.config.connections_are_costly or now_ms < session.no_renewal_until_ms:
            return INT64_MAX
        due = max(session.urgent_ms, session.sent_ms + 2 * session.fastest_ms) + PARKED_GRACE_MS
        if now_ms < due:
            return due - now_ms
        session.urgent_ms = 0
        if not self.delegate.network.receiving(session.node_id, CHANNEL_FETCH):
            session.interrupted = True
            session.no_renewal_until_ms = now_ms + RENEWAL_MS
            self.delegate.network.renew(session.node_id, CHANNEL_FETCH, now_ms)
        return INT64_MAX

    cdef void _note_connection(self, FetchSession* session, Readiness readiness) noexcept nogil:
        """Handle a broker that cannot be reached.

        It may not be the leader any more, and its session is not worth ending.
        """
        cdef Status status
        if readiness == NODE_UNKNOWN:
            if session.epoch != 0:
                session.start_again()
            self.metadata.want_update()
            self._avoid_follower(session)
        elif self.delegate.network.take_connection_failure(session.node_id, CHANNEL_FETCH, &status):
            self.background.log.write(7, DBG_FETCH, b"FETCH", b"broker %d: %s", session.node_id,
                                      status.detail.c_str())
            session.start_again()
            self.metadata.want_update()
            self._avoid_follower(session)

    cdef void _avoid_follower(self, FetchSession* session) noexcept nogil:
        """Move partitions that read from this preferred replica (KIP-392) to their leaders."""
        cdef PartitionState* p
        it = session.topics.begin()
        while it != session.topics.end():
            jt = dereference(it).second.partitions.begin()
            while jt != dereference(it).second.partitions.end():
                p = dereference(jt).second.partition
                if p.preferred_replica == session.node_id:
                    p.preferred_replica = -1
                    self.positions.mark_dirty(p)
                preincrement(jt)
            preincrement(it)

    cdef int64_t _share(self, int64_t memory) noexcept nogil:
        """Return the bytes that one broker's Fetch may reserve.

        All Fetches may be parked at the same time, each with its share. If possible, half of the memory stays free for
        received records.
        """
        cdef int64_t brokers = max(self.active_sessions, 1)
        return max(min(memory // brokers, max(memory // (2 * brokers), <int64_t>WORTHWHILE_BYTES)),
                   <int64_t>SMALLEST_FETCH_BYTES)

    cdef int64_t _room(self, FetchSession* session) noexcept nogil:
        """Return the bytes that the next Fetch may ask for; 0 when it must wait."""
        cdef int64_t memory = self.config.buffer_memory.load()
        cdef int64_t share = self._share(memory)
        cdef int64_t worthwhile = min(min(<int64_t>WORTHWHILE_BYTES, memory // 4), share)
        cdef int64_t room = memory - self.pool.live_bytes() - self.counters.reserved_bytes.load()
        if room < worthwhile:
            self.pool.starved.store(True)
            # Check again after setting the flag: a release before that has not seen the flag.
            room = memory - self.pool.live_bytes() - self.counters.reserved_bytes.load()
            if room < worthwhile and not self.nothing_undelivered():
                self.counters.stalls.fetch_add(1)
                return 0
            room = max(room, worthwhile)
        # The block of a response is pinned as a whole, so it does not grow with fetch.max.bytes.
        room = min(room, min(session.size.bytes(), share))
        return max(min(room, <int64_t>self.config.max_bytes.load()), <int64_t>1)

    cdef void _send_fetch(self, FetchSession* session, int64_t room, int64_t now_ms) noexcept nogil:
        cdef BodyOf[FetchRequest]* body
        cdef Request* request
        cdef bint ids = self._can_use_ids(session, now_ms)
        if ids != session.uses_topic_ids:
            # A broker refuses a session that changes between names and ids.
            if session.epoch != 0:
                session.start_again()
            session.uses_topic_ids = ids
        body = new BodyOf[FetchRequest]()
        if not ids:
            body.highest = LAST_VERSION_WITHOUT_IDS
        body.message.replica_id = -1
        body.message.max_wait_ms = self.config.wait_max_ms.load()
        if now_ms < session.short_waits_until_ms:
            body.message.max_wait_ms = min(body.message.max_wait_ms, <int32_t>SHORT_WAIT_MS)
        body.message.min_bytes = self.config.min_bytes.load()
        if session.partition_count == 0:
            # Only removes partitions: there is nothing to wait for, and a partition that returns would have to wait.
            body.message.max_wait_ms = 0
        body.message.max_bytes = <int32_t>room
        body.message.isolation_level = 1 if self.config.read_committed else 0
        body.message.rack_id = self.config.client_rack
        session.named = self._window(session, now_ms)
        if session.named > 0:
            # Outside of the session, which does not change. Other partitions may have records, so do not wait.
            body.message.max_wait_ms = 0
            body.message.session_epoch = FINAL_EPOCH
            session.take_window(self.wanted)
        else:
            body.message.session_id = session.session_id
            body.message.session_epoch = session.epoch
            session.take_wanted(self.wanted)
            name_forgotten(body.message, dereference(session))
        name_partitions(body.message, self.wanted, self._partition_bytes(session))
        session.awaits_ends = session.named == 0 and session.epoch > 0 and self._await_ends()
        session.request.on_send()
        session.restart = False
        session.reserved_bytes = room
        self.counters.reserved_bytes.fetch_add(room)
        self.counters.fetches.fetch_add(1)
        session.sent_ms = now_ms
        session.urgent_ms = 0
        request = self.send(body, session.node_id, CHANNEL_FETCH, KIND_FETCH, now_ms, INT64_MAX)
        request.wait_ms = body.message.max_wait_ms
        request.deadline_ms += request.wait_ms
        request.expected_bytes = <size_t>room

    cdef bint _await_ends(self) noexcept nogil:
        """Whether the application must learn that one of the wanted partitions is at its end."""
        cdef SessionPartition* entry
        if self.config.partition_eof:
            for entry in self.wanted:
                if entry.partition.eof_reported_at == -1:
                    return True
        return False

    cdef size_t _window(self, FetchSession* session, int64_t now_ms) noexcept nogil:
        """Return how many partitions the next Fetch names outside the session.

        Returns 0 if the Fetch belongs to the session.
        """
        if now_ms - session.answered_ms.load() >= WHOLE_SESSION_MS:
            return 0
        return session.turns.window(self.config.window_from)

    cdef bint _can_use_ids(self, FetchSession* session, int64_t now_ms) noexcept nogil:
        cdef int32_t version = self.delegate.network.usable_version(
            session.node_id, CHANNEL_FETCH, FetchRequest_api_key, FetchRequest_min_version, FetchRequest_max_version)
        return version > LAST_VERSION_WITHOUT_IDS and session.partitions_without_id == 0

    cdef int32_t _partition_bytes(self, FetchSession* session) noexcept nogil:
        """Return the bytes to ask for one partition.

        A broker needs as long for a request as to send most of a MiB, so a response should be full even if only few
        partitions have records.
        """
        cdef int32_t given = self.config.max_partition_bytes.load()
        if given > 0:
            return given
        return max(<int32_t>MOST_FETCHED_BYTES // max(<int32_t>session.partition_count, 1),
                   <int32_t>SMALLEST_SHARE_BYTES)

    cdef bint last_requests(self, int64_t now_ms) noexcept nogil:
        if not self.closing:
            self.closing = True
            self._close_sessions(now_ms)
        return self.closes_in_flight > 0

    cdef void _close_sessions(self, int64_t now_ms) noexcept nogil:
        """Close every fetch session (epoch −1), so that brokers free their slots."""
        cdef BodyOf[FetchRequest]* body
        cdef FetchSession* session
        cdef Channel channel
        it = self.sessions.begin()
        while it != self.sessions.end():
            session = dereference(it).second
            preincrement(it)
            if session.session_id == 0:
                continue
            # A session belongs to the broker, not to the connection: while a Fetch is parked, use another one.
            channel = CHANNEL_CONTROL if session.request.in_flight else CHANNEL_FETCH
            if self.delegate.network.ready(session.node_id, channel, now_ms) != NODE_READY:
                continue
            body = new BodyOf[FetchRequest]()
            body.message.replica_id = -1
            body.message.session_id = session.session_id
            body.message.session_epoch = FINAL_EPOCH
            session.session_id = 0
            self.closes_in_flight += 1
            self.send(body, session.node_id, channel, KIND_CLOSE_SESSION, now_ms, now_ms + CLOSE_TIMEOUT_MS)

    # ---- answers

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        cdef FetchSession* session
        cdef BackgroundEvent event
        if request.kind == KIND_CLOSE_SESSION:
            self.closes_in_flight -= 1
            return
        session = self.sessions[request.node_id]
        self._ended(session)
        if session.interrupted:
            session.interrupted = False
            session.start_again()
            return
        session.request.on_failure(now_ms, dereference(self.backoff), self.jitter)
        session.start_again()
        if status.code == <int>ERR_CRIT_SYS_RESOURCE:
            session.size.no_memory()
        self.background.log.write(7, DBG_FETCH, b"FETCH", b"broker %d: %s", session.node_id, status.detail.c_str())
        self.metadata.want_update()
        self._avoid_follower(session)
        if status.code == <int>ERR_UNSUPPORTED_FEATURE and not session.unsupported_reported:
            session.unsupported_reported = True
            event.type = BACKGROUND_ERROR
            event.status = status
            event.fatal = True
            event.broker_id = session.node_id
            self.background.add(event)

    cdef void _ended(self, FetchSession* session) noexcept nogil:
        session.request.on_given_up()
        self.counters.reserved_bytes.fetch_sub(session.reserved_bytes)
        session.reserved_bytes = 0

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef FetchResponse message
        cdef Reader reader = Reader(response.body, response.length)
        cdef FetchSession* session
        cdef int64_t asked_bytes
        cdef bint late = not self.nothing_undelivered()
        cdef bint any_records = False
        cdef size_t t, i
        if request.kind == KIND_CLOSE_SESSION:
            self.closes_in_flight -= 1
            return
        session = self.sessions[request.node_id]
        asked_bytes = session.reserved_bytes
        self._ended(session)
        session.interrupted = False
        if session.named == 0:
            session.fastest_ms = min(session.fastest_ms, max(now_ms - session.sent_ms, <int64_t>0))
        self.counters.fetched_bytes.fetch_add(<int64_t>response.length)
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"FETCH", now_ms):
            self._session_failed(session, now_ms)
            return
        if message.throttle_time_ms > 0:
            self._report_throttle(response.node_id, message.throttle_time_ms)
        if message.error_code != 0:
            if message.error_code == <int>FETCH_SESSION_ID_NOT_FOUND:
                session.session_id = 0
            self.background.log.write(7, DBG_FETCH, b"FETCH", b"broker %d: fetch session error %d", session.node_id,
                                      <int>message.error_code)
            self._session_failed(session, now_ms)
            return
        session.request.on_success()
        self.counters.fetch_times.add(max(now_ms - session.sent_ms, <int64_t>0) * 1000)
        session.unsupported_reported = False
        if session.named == 0:
            session.answered_ms.store(now_ms)
            self._advance_session(session, message.session_id)
        for t in range(message.responses.size()):
            for i in range(message.responses[t].partitions.size()):
                session.turns.received(<int64_t>message.responses[t].partitions[i].records.length)
                any_records = any_records or message.responses[t].partitions[i].records.length > 0
            self._on_topic(session, message, message.responses[t], response, now_ms)
        if session.awaits_ends:
            # A session does not name a partition of which nothing has changed, such as one that was sought to its end.
            session.awaits_ends = False
            self.wanted.clear()
            session.at_their_end(self.config.read_committed, self.wanted)
            for t in range(self.wanted.size()):
                self._at_end(self.wanted[t].partition, self.wanted[t].fetch_offset)
        if any_records:
            session.quiet.sent_records(now_ms)
        elif session.quiet.may_be_deposed(now_ms, self.metadata.all_topics_wanted):
            self.metadata.want_update()
        session.turns.answer_ended(session.named, asked_bytes)
        session.size.answer_ended(late)

    cdef void _session_failed(self, FetchSession* session, int64_t now_ms) noexcept nogil:
        session.start_again()
        # The first failure is normal for sessions; only a repeated failure is a reason to wait.
        session.request.on_failure(now_ms, dereference(self.backoff), self.jitter, 1)

    cdef void _advance_session(self, FetchSession* session, int32_t session_id) noexcept nogil:
        session.session_id = session_id
        if session_id == 0 or session.restart:
            # The broker has no free slot, and every request is a full one; or the session was given up meanwhile.
            session.epoch = 0
        elif session.epoch == 0x7fffffff:
            session.epoch = 1
        else:
            session.epoch += 1

    cdef void _report_throttle(self, int32_t node_id, int32_t throttle_ms) noexcept nogil:
        cdef BackgroundEvent event
        event.type = BACKGROUND_THROTTLE
        event.broker_id = node_id
        event.number = throttle_ms
        event.text = self.delegate.network.node_name(node_id)
        self.background.add(event)

    cdef void _on_topic(self, FetchSession* session, FetchResponse& message,
                        FetchResponse_FetchableTopicResponse& topic, Response* response,
                        int64_t now_ms) noexcept nogil:
        cdef bint by_id = response.version > LAST_VERSION_WITHOUT_IDS
        cdef SessionTopic* asked = session.topic_of(topic.topic_id) if by_id else NULL
        cdef SessionPartition* entry
        cdef size_t i
        if not by_id:
            it = session.topics.find(topic.topic)
            if it != session.topics.end():
                asked = &dereference(it).second
        if asked == NULL:
            return
        for i in range(topic.partitions.size()):
            entry = session.find(dereference(asked), topic.partitions[i].partition_index)
            if entry != NULL and (not by_id or entry.topic_id == topic.topic_id):
                self._on_partition(session, message, entry, &topic.partitions[i], response, now_ms)

    cdef void _on_partition(self, FetchSession* session, FetchResponse& message, SessionPartition* entry,
                            FetchResponse_PartitionData* data, Response* response, int64_t now_ms) noexcept nogil:
        cdef PartitionState* p
        p = entry.partition
        if data.error_code == 0:
            # Even if the records are no longer wanted: the broker sends a watermark only once
            # (test_a_watermark_counts_although_its_records_are_no_longer_wanted).
            self._take_watermarks(session, p, data)
        if not entry.is_current():
            # A seek, a reset or a pause happened meanwhile: the fetched data is obsolete.
            session.want(dereference(entry))
            return
        if data.error_code != 0:
            self.errors.on_partition_error(session.node_id, message, p, data, now_ms)
            return
        self._take_data(session, entry, p, data, response, now_ms)

    cdef void _take_watermarks(self, FetchSession* session, PartitionState* p,
                               FetchResponse_PartitionData* data) noexcept nogil:
        if data.high_watermark >= 0:
            p.high_watermark.store(data.high_watermark)
            session.keep_watermarks_current(p)
        if data.last_stable_offset >= 0:
            p.last_stable_offset.store(data.last_stable_offset)
        if data.log_start_offset >= 0:
            p.low_watermark.store(data.log_start_offset)

    cdef void _take_data(self, FetchSession* session, SessionPartition* entry, PartitionState* p,
                         FetchResponse_PartitionData* data, Response* response, int64_t now_ms) noexcept nogil:
        cdef int64_t next_offset = entry.fetch_offset
        cdef int32_t leader_epoch = p.fetch_leader_epoch
        cdef FetchedExtent extent
        cdef Watermarks sent = Watermarks(data.log_start_offset, data.high_watermark, data.last_stable_offset)
        cdef int64_t end = sent.end(self.config.read_committed)
        p.request.on_success()
        p.last_error = 0
        if session.uses_topic_ids:
            p.topic_id_high.store(entry.topic_id.high)
            p.topic_id_low.store(entry.topic_id.low)
        if data.records.length > 0 or end <= entry.fetch_offset:
            session.turns.answered(entry.turn, data.records.length > 0)
        # Otherwise it was held back, because another partition's records came first (KIP-74): it still waits. Only the
        # first partition with records may exceed its limit, so a large batch would never be sent after a busy one.
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != session.node_id:
            p.preferred_replica = data.preferred_read_replica
            p.preferred_until_ms = now_ms + self.config.metadata_max_age_ms
            self.positions.mark_dirty(p)
        if data.records.length > 0:
            extent = fetched_extent(data.records.data, <size_t>data.records.length, entry.fetch_offset, leader_epoch)
            next_offset = extent.next_offset
            p.fetch_leader_epoch = extent.leader_epoch
            session.partial_batches += extent.cut_off
            session.size.taken(<int64_t>data.records.length, next_offset - entry.fetch_offset, extent.largest_batch)
            p.received_bytes += <int64_t>data.records.length
            self._queue_records(entry, p, data, response, leader_epoch)
            if next_offset > entry.fetch_offset:
                p.received_offsets += next_offset - entry.fetch_offset
                p.fetch_offset.store(next_offset)
                session.want(dereference(entry))
                if p.ends_at(next_offset):
                    self.positions.mark_dirty(p)
        if entry.bounded and not p.ends_at(next_offset) and next_offset < data.high_watermark:
            # Unless it is the first one with records, a broker sends nothing of a partition whose first batch is larger
            # than the limit (test_no_guess_stalls).
            p.range_doublings += 1
            session.want(dereference(entry))
        if self.config.partition_eof and end >= 0 and next_offset >= end and p.eof_reported_at != next_offset:
            self._at_end(p, next_offset)

    cdef void _queue_records(self, SessionPartition* entry, PartitionState* p, FetchResponse_PartitionData* data,
                             Response* response, int32_t leader_epoch) noexcept nogil:
        """Add a batch; `leader_epoch` is that of the previous batch."""
        cdef FetchedItem* item = new FetchedItem()
        cdef AbortedTransaction aborted
        cdef size_t i
        item.kind = FETCHED_RECORDS
        p.retain()
        item.partition = p
        item.position_epoch = entry.position_epoch
        item.generation = entry.generation
        item.node_id = response.node_id
        BlockPool.retain(response.block)
        item.job.pool = self.pool
        item.job.block = response.block
        item.job.data = data.records.data
        item.job.length = <size_t>data.records.length
        item.job.partition = <void*>p
        item.job.fetch_offset = entry.fetch_offset
        item.job.next_offset = entry.fetch_offset
        item.job.read_leader_epoch = leader_epoch
        item.job.check_crcs = self.config.check_crcs
        item.job.read_committed = self.config.read_committed
        item.job.max_inflated_bytes = self._most_inflated_bytes()
        item.job.max_record_headers = self.config.max_record_headers
        if not data.aborted_transactions.is_null:
            for i in range(data.aborted_transactions.value.size()):
                aborted.producer_id = data.aborted_transactions.value[i].producer_id
                aborted.first_offset = data.aborted_transactions.value[i].first_offset
                item.job.add_aborted(aborted)
        self.fetched.push_back(item)

    cdef size_t _most_inflated_bytes(self) noexcept nogil:
        if self.config.max_inflated_batch_bytes > 0:
            return <size_t>self.config.max_inflated_batch_bytes
        return <size_t>max(self.config.buffer_memory.load(), <int64_t>LARGEST_INFLATED_BYTES)

    cdef void _at_end(self, PartitionState* p, int64_t offset) noexcept nogil:
        cdef FetchedItem* item = new FetchedItem()
        p.eof_reported_at = offset
        item.kind = FETCHED_END_OF_PARTITION
        p.retain()
        item.partition = p
        item.position_epoch = p.adopted_epoch
        item.generation = p.decode_generation
        item.offset = offset
        self.fetched.push_back(item)

    cdef void _queue_reported_errors(self) noexcept nogil:
        """Queue errors of other managers after the data that was fetched before them.

        Otherwise the error of a reset would overtake records that were read before it.
        """
        cdef FetchedItem* item
        cdef size_t i
        for i in range(self.positions.errors.size()):
            item = new FetchedItem()
            item.kind = FETCHED_ERROR
            item.partition = self.positions.errors[i].partition
            item.position_epoch = self.positions.errors[i].position_epoch
            item.generation = item.partition.decode_generation
            item.offset = self.positions.errors[i].offset
            item.status = self.positions.errors[i].status
            self.fetched.push_back(item)
        self.positions.errors.clear()
