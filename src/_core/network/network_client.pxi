"""Owns: the broker list, the connections to it, throttling, and every request in flight.

thread: N (open, abandon: A; wakeup: any). Never: blocks outside its selector, resolves a name itself, interprets a
request, reads the wall clock.

ready() opens connections on demand, one for each (node, channel). A sent request ends exactly once, as a Completion
from poll(). A connection closes only between turns or in its own event, so that the loop never uses a freed object.
"""


# One connection's share of a turn, so that a broker at full rate does not block the other connections.
cdef size_t READ_SHARE_BYTES = 2 << 20
# Parts of larger frames end the turn: while it lasts, the socket collects more for the next read (10 % of the rate).
cdef size_t SMALL_FRAME_BYTES = 1 << 16
# The largest frame from a broker before its connection is ready.
cdef int64_t FRAME_BYTES_BEFORE_READY = 1 << 20
# Requests in flight on a connection whose requests do not wait at the broker.
cdef size_t MAX_IN_FLIGHT = 5
# A request of a group is not sent on a connection that has been silent for this long while it owes a response.
cdef int64_t SUSPECT_MS = 500
# A turn that ends this much later than its wait: the process was suspended, so the time says nothing about the broker.
cdef int64_t LATE_TURN_MS = 500
# After this time in a connection attempt, a request for any node tries another node.
cdef int64_t SLOW_CONNECT_MS = 1000
# The longest wait before the next attempt to connect to a broker that Metadata lists.
cdef int64_t LISTED_RETRY_MS = 1000
# The longest accepted throttle time; a response can contain up to 24 days. The broker can throttle again afterwards.
cdef int32_t LONGEST_THROTTLE_MS = 300000


cdef size_t max_in_flight(int channel) noexcept nogil:
    return 1 if channel == CHANNEL_FETCH or channel == CHANNEL_JOIN else MAX_IN_FLIGHT


@cython.no_gc
cdef class NetworkClient(Authenticator):
    cdef int open(self, const NetworkConfig& config, BlockPool* pool, LogQueue* log, Clock clock):
        cdef int rc
        self.clock = clock
        self.config = config
        self.log = log
        pool.ref()
        self.pool = pool
        self.random_state = <uint64_t>monotonic_us() * <uint64_t>0x9E3779B97F4A7C15 | 1
        self.next_timer_ms = INT64_MAX
        rc = self.selector.open()
        if rc != 0:
            return rc
        self.resolver.open(&self.selector, config.broker_address_ttl_ms)
        self.worker.open(&self.selector)
        if config.security.use_tls:
            tls_of(config.security.tls).open(&self.selector)
        self.use_bootstrap()
        return 0

    def __dealloc__(self):
        cdef map[int32_t, Node*].iterator it
        cdef size_t i
        if not self.abandoned:
            self.resolver.close()
            self.worker.close()
            if self.config.security.use_tls:
                tls_of(self.config.security.tls).close()
            self.descriptors.close_all()
            it = self.nodes.begin()
            while it != self.nodes.end():
                del (deref(it).second)
                inc(it)
            for i in range(self.retired.size()):
                del self.retired[i]
            for i in range(self.finished.size()):
                if self.finished[i].response.block != NULL:
                    BlockPool.release(self.finished[i].response.block)
                del self.finished[i].request
            if self.pool != NULL:
                self.pool.unref()

    cdef void abandon(self) noexcept nogil:
        self.abandoned = True
        self.descriptors.close_all()
        self.selector.abandon()
        self.resolver.abandon()
        self.worker.abandon()
        leak(self.config.security.tls)
        leak(self.config.security.sasl)
        leak(self.nodes)
        leak(self.retired)
        leak(self.finished)
        leak(self.events)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    cdef void use_bootstrap(self) noexcept nogil:
        cdef size_t i
        self.on_bootstrap = True
        self.awaiting_canonical.clear()
        for i in range(self.config.bootstrap.size()):
            if self.config.canonical_bootstrap:
                self.awaiting_canonical.push_back(self.config.bootstrap[i])
            else:
                self.nodes[self.config.bootstrap[i].id] = new Node(self.config.bootstrap[i])

    cdef void expand_bootstrap(self, int64_t now_ms) noexcept nogil:
        """Replace each bootstrap name by the canonical names of its addresses.

        This is for client.dns.lookup=resolve_canonical_bootstrap_servers_only. A name that does not resolve stays in
        the list, so that the attempt to connect to it reports the reason.
        """
        cdef Resolution found
        cdef NodeAddress address
        cdef size_t i = self.awaiting_canonical.size()
        cdef size_t k
        while i > 0:
            i -= 1
            address = self.awaiting_canonical[i]
            if self.resolver.lookup(address.host, address.port, self.config.address_family, True, now_ms,
                                    &found) == LOOKUP_PENDING:
                continue
            self.awaiting_canonical.erase(self.awaiting_canonical.begin() + i)
            if not self.on_bootstrap:
                continue
            if found.names.empty():
                found.names.push_back(address.host)
            for k in range(found.names.size()):
                address.id = -2 - <int32_t>self.nodes.size()
                address.host = found.names[k]
                self.nodes[address.id] = new Node(address)

    cdef Node* find_node(self, int32_t node_id) noexcept nogil:
        cdef map[int32_t, Node*].iterator it = self.nodes.find(node_id)
        return deref(it).second if it != self.nodes.end() else NULL

    cdef Connection* find_connection(self, int32_t node_id, int channel) noexcept nogil:
        cdef Node* node = self.find_node(node_id)
        return node.connection(<Channel>channel) if node != NULL else NULL

    cdef void set_nodes(self, const vector[NodeAddress]& nodes, int64_t now_ms) noexcept nogil:
        cdef map[int32_t, Node*] before
        cdef map[int32_t, Node*].iterator it
        cdef Node* node
        cdef size_t i
        cdef int32_t node_id
        if nodes.empty():
            if not self.on_bootstrap:
                self.rebootstrap(now_ms)
            return
        before.swap(self.nodes)
        for i in range(nodes.size()):
            node_id = nodes[i].id
            it = before.find(node_id)
            if it != before.end() and deref(it).second.at(nodes[i]):
                node = deref(it).second
                node.rack = nodes[i].rack
                before.erase(it)
                # Kafka lists the brokers that are up. Wait before the next attempt: the list may be older than the
                # failure. Not after a refusal: every Metadata response would shorten its backoff to a second.
                self.retry_by(node, now_ms + LISTED_RETRY_MS, False)
            elif self.nodes.count(node_id) != 0:
                continue
            else:
                node = new Node(nodes[i])
                if self.on_bootstrap:
                    adopt_from_bootstrap(before, node)
            self.nodes[node_id] = node
        self.on_bootstrap = False
        it = before.begin()
        while it != before.end():
            node = deref(it).second
            # Wait for the responses of a bootstrap address; a broker that is gone or has moved will not answer.
            self.drop_node(node, node.id < -1, string(b"the cluster no longer lists a broker at this address"), now_ms)
            inc(it)

    cdef void rebootstrap(self, int64_t now_ms) noexcept nogil:
        cdef map[int32_t, Node*] before
        cdef map[int32_t, Node*].iterator it
        before.swap(self.nodes)
        it = before.begin()
        while it != before.end():
            self.drop_node(deref(it).second, False, string(b"the client returns to the bootstrap servers"), now_ms)
            inc(it)
        self.resolver.forget()
        self.use_bootstrap()

    cdef void drop_node(self, Node* node, bint linger, const string& why, int64_t now_ms) noexcept nogil:
        """Close and free a node that is no longer in the list.

        With `linger`, first wait for the responses to its requests in flight.
        """
        cdef Connection* c
        cdef int channel
        cdef bint busy = False
        node.retiring = True
        for channel in range(kChannels):
            c = node.connection(<Channel>channel)
            if c == NULL or c.state == CONN_DOWN:
                continue
            if linger and c.state == CONN_READY and not c.in_flight.empty():
                busy = True
            else:
                self.lose(c, Status(ERR_TRANSPORT, why), now_ms)
        if busy:
            self.retired.push_back(node)
        else:
            del node

    cdef void free_retired(self, int64_t now_ms) noexcept nogil:
        cdef size_t i = self.retired.size()
        cdef Node* node
        cdef Connection* c
        cdef int channel
        cdef bint busy
        while i > 0:
            i -= 1
            node = self.retired[i]
            busy = False
            for channel in range(kChannels):
                c = node.connection(<Channel>channel)
                if c == NULL or c.state == CONN_DOWN:
                    continue
                if c.in_flight.empty():
                    self.lose(c, Status(ERR_TRANSPORT, string(b"the connection is no longer needed")), now_ms)
                else:
                    busy = True
            if not busy:
                self.retired[i] = self.retired.back()
                self.retired.pop_back()
                del node

    cdef int32_t least_loaded_node(self, int64_t now_ms) noexcept nogil:
        cdef map[int32_t, Node*].iterator it = self.nodes.begin()
        cdef Node* node
        cdef Connection* c
        cdef int64_t rank
        cdef int64_t best_rank = INT64_MAX
        cdef int32_t best = -1
        cdef uint64_t ties = 0
        while it != self.nodes.end():
            node = deref(it).second
            inc(it)
            c = node.connection(CHANNEL_CONTROL)
            if c != NULL and c.state == CONN_DOWN and c.next_attempt_ms > now_ms:
                continue
            if c != NULL and c.throttled_until_ms > now_ms:
                rank = 4000
            elif node.silent:
                # The broker may hang. Its other connections look idle, but the request would time out there too: for
                # example FindCoordinator, at the broker that is being replaced (test_a_node_that_hangs_is_asked_last).
                rank = 3500
            elif c == NULL or c.state == CONN_DOWN:
                rank = 2000
            elif c.state == CONN_READY:
                rank = <int64_t>c.in_flight.size()
            else:
                rank = 1000 if now_ms - c.attempt_started_ms < SLOW_CONNECT_MS else 3000
            if rank < best_rank:
                best_rank = rank
                ties = 0
            if rank == best_rank:
                ties += 1
                if self.random() % ties == 0:
                    best = node.id
        return best

    cdef string node_name(self, int32_t node_id) noexcept nogil:
        cdef Node* node = self.find_node(node_id)
        return node.name if node != NULL else string()

    cdef bint names_pending(self) noexcept nogil:
        return not self.awaiting_canonical.empty()

    cdef bint any_connected(self) noexcept nogil:
        cdef map[int32_t, Node*].iterator it = self.nodes.begin()
        cdef Connection* c
        cdef int channel
        while it != self.nodes.end():
            for channel in range(kChannels):
                c = deref(it).second.connection(<Channel>channel)
                if c != NULL and c.state == CONN_READY:
                    return True
            inc(it)
        return False

    cdef bint receiving(self, int32_t node_id, Channel channel) noexcept nogil:
        cdef Connection* c = self.find_connection(node_id, channel)
        return c != NULL and (c.size_have > 0 or c.frame != NULL)

    cdef void collect_stats(self, vector[NodeStats]& out) noexcept nogil:
        cdef map[int32_t, Node*].iterator it = self.nodes.begin()
        cdef Node* node
        cdef NodeStats* collected
        cdef Connection* c
        cdef int channel
        while it != self.nodes.end():
            node = deref(it).second
            inc(it)
            node.collect_stats(out)
            collected = &out[out.size() - 1]
            collected.state.assign(node.state_word())
            for channel in range(kChannels):
                c = node.connection(<Channel>channel)
                if c != NULL:
                    collected.waitresp_count += <int32_t>c.in_flight.size()

    # -- readiness and time --------------------------------------------------------------------------------------------

    cdef Readiness ready(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        cdef Node* node = self.find_node(node_id)
        cdef Connection* c
        if node == NULL or self.closed:
            return NODE_UNKNOWN
        c = node.connection(channel)
        if c == NULL:
            c = node.make_connection(channel)
        if c.state == CONN_DOWN:
            c.next_attempt_ms = max(c.next_attempt_ms, node.dials.next_ms())
            if c.next_attempt_ms > now_ms:
                self.arm(c.next_attempt_ms)
                return NODE_BACKOFF
            self.start_attempt(c, now_ms)
            self.arm(now_ms + SLOW_CONNECT_MS)  # then another node may be asked
            return NODE_BACKOFF if c.state == CONN_DOWN else NODE_CONNECTING
        if c.state != CONN_READY:
            return NODE_CONNECTING
        if (c.throttled_until_ms > now_ms or c.in_flight.size() >= max_in_flight(channel)
                or self.is_suspect(c, now_ms) or self.must_authenticate(c, now_ms)):
            return NODE_BUSY
        return NODE_READY

    cdef bint is_suspect(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Return whether a request of a group should wait: this connection may be dead, and is then replaced soon."""
        return (c.channel == CHANNEL_COORDINATOR and not c.in_flight.empty()
                and now_ms - c.silent_since_ms() >= SUSPECT_MS)

    cdef int64_t next_timeout_ms(self, int64_t now_ms) noexcept nogil:
        if not self.finished.empty() or self.reads_pending:
            return 0
        if self.next_timer_ms == INT64_MAX:
            return INT64_MAX
        return max(<int64_t>0, self.next_timer_ms - now_ms)

    cdef void throttle(self, int32_t node_id, Channel channel, int32_t throttle_ms, int64_t now_ms) noexcept nogil:
        # Of one connection, as at the broker: a Fetch quota must not stop the heartbeats to the same broker.
        cdef Connection* c = self.find_connection(node_id, channel)
        if c == NULL or throttle_ms <= 0:
            return
        throttle_ms = min(throttle_ms, LONGEST_THROTTLE_MS)
        c.throttled_until_ms = max(c.throttled_until_ms, now_ms + throttle_ms)
        c.node.stats().throttle_ms += throttle_ms
        c.node.stats().throttles_ms.add(throttle_ms)
        self.arm(c.throttled_until_ms)

    # -- failures and closing ------------------------------------------------------------------------------------------

    cdef bint take_connection_failure(self, int32_t node_id, Channel channel, Status* out) noexcept nogil:
        cdef Connection* c = self.find_connection(node_id, channel)
        # A refusal is valid until the next attempt, so that no request waits for this attempt
        # (test_calls_do_not_wait_for_the_next_attempt_after_a_refusal).
        if c == NULL or c.failure.ok() or (c.refused and self.clock.now_ms() >= c.next_attempt_ms):
            return False
        out[0] = c.failure
        if not c.refused:
            c.failure = Status()
        return True

    cdef void disconnect(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        cdef Connection* c = self.find_connection(node_id, channel)
        if c != NULL and c.state != CONN_DOWN:
            self.lose(c, Status(ERR_TRANSPORT, string(b"disconnected by the client")), now_ms)

    cdef void renew(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        cdef Connection* c = self.find_connection(node_id, channel)
        if c != NULL and c.state != CONN_DOWN:
            self.lose(c, Status(ERR_INTR, string(b"closed by the client for a more urgent request")), now_ms)

    cdef void close_all(self) noexcept nogil:
        cdef map[int32_t, Node*].iterator it
        cdef map[int32_t, Node*] all
        cdef size_t i
        self.closed = True
        all.swap(self.nodes)
        it = all.begin()
        while it != all.end():
            self.drop_node(deref(it).second, False, string(b"the client is closing"), 0)
            inc(it)
        for i in range(self.retired.size()):
            self.drop_node(self.retired[i], False, string(b"the client is closing"), 0)
        self.retired.clear()
        self.resolver.close()
        self.worker.close()
        if self.config.security.use_sasl:
            self.credentials().wipe()
        if self.config.security.use_tls:
            tls_of(self.config.security.tls).close()
        self.next_timer_ms = INT64_MAX

    cdef bint quiet(self) noexcept nogil:
        return self.events.empty() and not self.reads_pending

    cdef bint encrypted(self) noexcept nogil:
        return self.config.security.use_tls

    cdef int32_t in_flight(self) noexcept nogil:
        return self.in_flight_count

    # -- sending -------------------------------------------------------------------------------------------------------

    cdef int32_t usable_version(self, int32_t node_id, Channel channel, int32_t api_key, int32_t low,
                                int32_t high) noexcept nogil:
        cdef Connection* c = self.find_connection(node_id, channel)
        if c == NULL or c.state != CONN_READY:
            return -1
        return self.common_version(c, <int16_t>api_key, <int16_t>low, <int16_t>high)

    cdef int common_version(self, Connection* c, int16_t api_key, int16_t low, int16_t high) noexcept nogil:
        """Return the highest common version, or -1; without negotiation the lowest, which most brokers support."""
        return c.api_versions.pick(api_key, low, high) if self.config.api_version_request else low

    cdef void send(self, Request* request, int64_t now_ms) noexcept nogil:
        cdef Connection* c = self.find_connection(request.node_id, request.channel)
        cdef RequestBody* body = request.body
        cdef InFlight sent
        cdef int version
        self.in_flight_count += 1
        if c == NULL or c.state != CONN_READY:
            self.finish_failed(request, ERR_TRANSPORT, string(b"not connected"))
            return
        version = self.common_version(c, body.api_key(), body.min_version(), body.max_version())
        if version < 0:
            self.finish_failed(request, ERR_UNSUPPORTED_FEATURE, c.api_versions.unsupported(
                body.api_key(), body.min_version(), body.max_version(),
                describe(b"%s (id %d)", c.node.name.c_str(), c.node.id)).detail)
            return
        sent.request = request
        sent.correlation_id = c.take_correlation_id()
        sent.api_key = body.api_key()
        sent.version = <int16_t>version
        sent.response_header_version = body.response_header_version(sent.version)
        sent.deadline_ms = request.deadline_ms
        sent.wait_ms = request.wait_ms
        sent.hold_ms = request.hold_ms
        sent.sent_us = self.clock.now_us()
        sent.expected_bytes = request.expected_bytes
        self.scratch.clear()
        encode_frame(self.scratch, sent.api_key, sent.version, body.request_header_version(sent.version),
                     sent.correlation_id, self.config.client_id, deref(body))
        if not self.scratch.ok():
            self.finish_failed(request, ERR_INVALID_ARG, describe(b"cannot encode %s v%d: a value is too long",
                                                                  api_name(sent.api_key), version))
            return
        request.sent_ms = now_ms
        c.node.stats().outbuf_latency_us.add(max(<int64_t>0, sent.sent_us - 1000 * request.created_ms))
        c.last_used_ms = now_ms
        self.arm(sent.deadline_ms)
        self.arm_silence(c, now_ms + sent.wait_ms + self.silence_ms(c.node, now_ms), now_ms)
        self.put_on_wire(c, sent, now_ms)

    # -- receiving -----------------------------------------------------------------------------------------------------

    cdef void read_in(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef size_t share = READ_SHARE_BYTES
        cdef int64_t limit = min(self.config.receive_message_max_bytes, FRAME_BYTES_BEFORE_READY)
        cdef int64_t allowed_since = (INT64_MAX if c.in_flight.empty()
                                      else c.silent_since_ms() + c.in_flight.front().wait_ms)
        cdef Status why
        cdef IoOutcome outcome = IO_FRAME
        while c.fd >= 0 and outcome == IO_FRAME:
            outcome = receive(c, self.pool, limit if c.state != CONN_READY else self.config.receive_message_max_bytes,
                              &share, &why)
            self.parts_only = self.parts_only and outcome == IO_AGAIN and c.frame_length <= SMALL_FRAME_BYTES
            if outcome == IO_FRAME:
                self.take_frame(c, now_ms)
                # Without a request in flight, another read would find nothing: one system call per Fetch response.
                if c.in_flight.empty() and c.fd >= 0 and not c.wire().pending():
                    break
            elif outcome == IO_BROKEN:
                c.node.stats().rx_errors += 1
                self.lose(c, why, now_ms)
        if share < READ_SHARE_BYTES:
            c.node.stats().rx_bytes += <int64_t>(READ_SHARE_BYTES - share)
            c.last_read_ms = now_ms
            if not self.turned_late and allowed_since < now_ms:
                c.node.silence.learn(now_ms - allowed_since, self.config.silence_ms, self.config.socket_timeout_ms,
                                     now_ms)
        if c.fd < 0:
            return
        if c.wire().pending():
            self.reads_pending = True
        if c.wire().crossed() & kReadWantsWrite:
            self.watch(c, now_ms)

    cdef void take_frame(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Match a whole response with the oldest request in flight."""
        cdef InFlight asked = c.in_flight.front()
        cdef Block* frame = c.frame
        cdef Reader reader = Reader(frame.data, frame.size)
        cdef int32_t correlation_id = (asked.correlation_id if asked.bare
                                       else decode_response_header(reader, asked.response_header_version))
        cdef Completion ended
        cdef int64_t rtt_us = self.clock.now_us() - asked.sent_us
        if not reader.ok() or correlation_id != asked.correlation_id:
            c.node.stats().rx_errors += 1
            c.node.stats().unmatched += reader.ok()
            self.lose(c, Status(ERR_BAD_MSG, reader.status().detail if not reader.ok() else describe(
                b"invalid correlation id %d: expected %d", correlation_id, asked.correlation_id)), now_ms)
            return
        c.frame = NULL
        c.size_have = 0
        c.frame_length = 0
        c.in_flight.pop_front()
        c.timeouts = 0
        c.node.silent = False
        c.last_used_ms = now_ms
        c.node.stats().rx += 1
        c.node.stats().last_rx_us = now_ms * 1000
        c.node.stats().rtt_us.add(rtt_us)
        self.log.write(7, DBG_PROTOCOL, b"RECV", b"%s: received %s v%d (%zu bytes, id %d, %lld us)",
                       c.node.name.c_str(), api_name(asked.api_key), <int>asked.version, frame.size, correlation_id,
                       <long long>rtt_us)
        if asked.internal and asked.api_key == API_API_VERSIONS:
            self.take_api_versions(c, asked, reader, now_ms)
        elif asked.internal:
            self.take_sasl(c, asked, reader, now_ms)
        if asked.request == NULL:
            BlockPool.release(frame)
            return
        c.served = True
        ended.request = asked.request
        ended.response.block = frame
        ended.response.body = reader.current()
        ended.response.length = reader.remaining()
        ended.response.version = asked.version
        ended.response.node_id = c.node.id
        ended.response.channel = c.channel
        ended.response.received_ms = now_ms
        self.in_flight_count -= 1
        self.finished.push_back(ended)

    # -- the turn ------------------------------------------------------------------------------------------------------

    cdef void handle_event(self, Connection* c, int ready, int64_t now_ms) noexcept nogil:
        cdef int crossed
        if c.fd < 0 and c.dials.empty():
            return
        c.node.stats().wakeups += 1
        self.parts_only = self.parts_only and c.state == CONN_READY
        if c.state == CONN_CONNECTING:
            self.advance_dials(c, now_ms)
        elif c.state == CONN_HANDSHAKE:
            self.advance_handshake(c, now_ms)
            if c.fd >= 0 and c.wire().pending():  # bytes after the handshake, which the selector cannot see
                self.reads_pending = True
        else:
            crossed = c.wire().crossed()
            if ready & SELECT_WRITE or crossed & kWriteWantsRead:
                self.parts_only = False
                self.write_out(c, now_ms)
            if c.fd >= 0 and (ready & SELECT_READ or crossed & kReadWantsWrite):
                self.read_in(c, now_ms)

    cdef void poll(self, int64_t timeout_ms, int64_t now_ms, vector[Completion]& done) noexcept nogil:
        cdef size_t i
        cdef int64_t wait_ms, began_ms = now_ms
        cdef int rc
        self.free_retired(now_ms)
        self.expand_bootstrap(now_ms)
        self.heed_credentials(now_ms)
        wait_ms = min(timeout_ms, self.next_timeout_ms(now_ms))
        while True:
            rc = self.selector.wait(wait_ms - (now_ms - began_ms) if wait_ms != INT64_MAX else -1, self.events)
            if rc != 0:
                self.log.write(3, 0, b"SELECT", b"waiting for sockets failed: %s", error_text(rc).c_str())
            now_ms = self.clock.now_ms()
            self.turned_late = wait_ms < INT64_MAX - LATE_TURN_MS and now_ms - self.turn_ms > wait_ms + LATE_TURN_MS
            # Handle events before timers: after a suspend the response may already be in the socket.
            self.parts_only = not self.events.empty()
            for i in range(self.events.size()):
                self.handle_event(<Connection*>self.events[i].tag, self.events[i].ready, now_ms)
            # A broker sends a small response in three parts, and waits while this thread reads one on its core. No
            # other part of the turn needs to know: a turn of the managers took 26 µs there, the selector takes 17.
            if (not self.parts_only or self.reads_pending or self.selector.interrupted()
                    or now_ms - began_ms >= wait_ms):
                break
        if self.reads_pending or self.resolving_count > 0 or self.paused_count > 0:
            self.visit_unselected(now_ms)
        self.expand_bootstrap(now_ms)
        self.turn_ms = now_ms
        self.run_timers(now_ms)
        for i in range(self.finished.size()):
            done.push_back(self.finished[i])
        self.finished.clear()

    cdef void heed_credentials(self, int64_t now_ms) noexcept nogil:
        """Try new credentials at once, and set the timer for the next token request."""
        cdef map[int32_t, Node*].iterator it
        if not self.config.security.use_sasl:
            return
        if self.has_new_credentials():
            it = self.nodes.begin()
            while it != self.nodes.end():
                self.retry_by(deref(it).second, now_ms, True)
                inc(it)
        self.arm(self.credentials().token_due_ms())

    cdef bint take_token_request(self, int64_t now_ms) noexcept nogil:
        return self.config.security.use_sasl and self.credentials().take_token_request(now_ms)

    cdef bint refusal(self, Status* out) noexcept nogil:
        """Return whether every broker has refused this client; one that has not been asked may accept it."""
        cdef map[int32_t, Node*].iterator it = self.nodes.begin()
        cdef Connection* c
        if self.latest_refusal.ok() or self.any_connected() or self.nodes.empty():
            return False
        while it != self.nodes.end():
            c = deref(it).second.connection(CHANNEL_CONTROL)
            if c == NULL or not c.refused:
                return False
            inc(it)
        out[0] = self.latest_refusal
        return True

    cdef void visit_unselected(self, int64_t now_ms) noexcept nogil:
        """Visit connections that wait for something other than a socket event.

        This is a name, TLS credentials, a token, a helper thread, or bytes in a transport.
        """
        cdef map[int32_t, Node*].iterator it = self.nodes.begin()
        cdef size_t i
        self.reads_pending = False
        while it != self.nodes.end():
            self.visit_node(deref(it).second, now_ms)
            inc(it)
        for i in range(self.retired.size()):
            self.visit_node(self.retired[i], now_ms)

    cdef void visit_node(self, Node* node, int64_t now_ms) noexcept nogil:
        cdef Connection* c
        cdef int channel
        for channel in range(kChannels):
            c = node.connection(<Channel>channel)
            if c == NULL:
                continue
            if c.state == CONN_RESOLVING:
                self.resolve(c, now_ms)
                continue
            self.resume_authentication(c, now_ms)
            if c.state >= CONN_API_VERSIONS and c.wire().pending():
                self.read_in(c, now_ms)

    cdef void wakeup(self) noexcept nogil:
        self.selector.wakeup()

    cdef void run_timers(self, int64_t now_ms) noexcept nogil:
        """Check all connections if a timer is due, and set the next timer."""
        cdef map[int32_t, Node*].iterator it
        cdef size_t i
        if now_ms < self.next_timer_ms:
            return
        self.next_timer_ms = INT64_MAX
        it = self.nodes.begin()
        while it != self.nodes.end():
            self.check_node(deref(it).second, now_ms)
            inc(it)
        for i in range(self.retired.size()):
            self.check_node(self.retired[i], now_ms)

    cdef void check_node(self, Node* node, int64_t now_ms) noexcept nogil:
        cdef int i, channel
        self.first_channel = (self.first_channel + 1) % kChannels  # all of them get their share of the dials
        for i in range(kChannels):
            channel = (self.first_channel + i) % kChannels
            if node.connection(<Channel>channel) != NULL:
                self.check_connection(node.connection(<Channel>channel), now_ms)

    cdef void check_connection(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef int64_t due
        self.check_authentication(c, now_ms)
        if c.throttled_until_ms > now_ms:
            self.arm(c.throttled_until_ms)
        due = c.attempt_started_ms + SLOW_CONNECT_MS
        if CONN_DOWN < c.state < CONN_READY and due > now_ms:
            self.arm(due)
        if c.state == CONN_READY:
            self.expire_in_flight(c, now_ms)
            if c.state == CONN_READY and not c.in_flight.empty():
                self.expire_silence(c, now_ms)
            if c.state == CONN_READY and c.in_flight.empty() and self.config.connections_max_idle_ms > 0:
                due = c.last_used_ms + self.config.connections_max_idle_ms
                if due > now_ms:
                    self.arm(due)
                else:
                    self.lose(c, Status(ERR_TRANSPORT, describe(b"closed after being idle for %d ms",
                                                                self.config.connections_max_idle_ms)), now_ms)
        elif c.state == CONN_DOWN:
            if c.next_attempt_ms > now_ms:
                self.arm(c.next_attempt_ms)
        elif c.state == CONN_SASL:
            return
        elif c.state == CONN_CONNECTING:
            self.check_dials(c, now_ms)
        elif c.setup_deadline_ms > now_ms:
            self.arm(c.setup_deadline_ms)
        elif c.state == CONN_RESOLVING and not self.credentials_checked(c):
            self.lose(c, Status(ERR_SSL, describe(b"the files of the TLS credentials were not read within %d ms",
                                                  self.config.connection_setup_timeout_ms)), now_ms)
        elif c.state == CONN_RESOLVING:
            self.lose(c, Status(ERR_RESOLVE, describe(b"'%s' was not resolved within %d ms", c.node.host.c_str(),
                                                      self.config.connection_setup_timeout_ms)), now_ms)
        elif c.state == CONN_HANDSHAKE:
            self.set_silent(c.node, now_ms)
            self.lose(c, Status(ERR_TRANSPORT, describe(
                b"connected to %s, but the TLS handshake did not end within %lld ms: check that this is a TLS port",
                c.address().text().c_str(), <long long>(now_ms - c.handshake_ms))), now_ms)
        else:
            self.set_silent(c.node, now_ms)
            self.lose(c, Status(ERR_TRANSPORT, describe(
                b"connected to %s, but it did not answer ApiVersions within %lld ms; check that this is a Kafka port",
                c.address().text().c_str(), <long long>(now_ms - c.in_flight.front().sent_us // 1000))), now_ms)

    cdef void expire_in_flight(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef size_t i, unanswered = 0
        cdef InFlight* f
        cdef string why
        for i in range(c.in_flight.size()):
            f = &c.in_flight[i]
            if f.given_up or f.internal:
                unanswered += f.given_up
                continue
            if f.deadline_ms > now_ms:
                self.arm(f.deadline_ms)
                continue
            why = describe(b"timed out after %lld ms waiting for the response to %s",
                           <long long>(now_ms - f.request.sent_ms), api_name(f.api_key))
            c.node.stats().req_timeouts += 1
            c.timeouts += 1
            c.node.silent = True
            self.finish_failed(f.request, ERR_TIMED_OUT, describe(b"%s: %s", c.node.name.c_str(), why.c_str()))
            f.request = NULL
            f.given_up = True
            unanswered += 1
        # Responses come in order, so a missing response blocks all later ones: only a new connection helps. Without
        # one, a connection that may have no further request in flight would never be used again.
        if (self.config.socket_max_fails > 0 and c.timeouts >= self.config.socket_max_fails
                or unanswered >= max_in_flight(c.channel)):
            self.lose(c, Status(ERR_TRANSPORT, why), now_ms)

    cdef void expire_silence(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Give the connection up if its broker has owed bytes for too long. Slow bytes count as life."""
        cdef int64_t silent_since = c.silent_since_ms()
        cdef int64_t limit_ms = c.in_flight.front().wait_ms + self.silence_ms(c.node, now_ms)
        cdef Connection* other
        cdef int channel
        cdef bint path_is_dead
        if silent_since + limit_ms > now_ms:
            self.arm_silence(c, silent_since + limit_ms, now_ms)
            return
        path_is_dead = path_may_be_dead(c.fd)
        if not path_is_dead and silent_since + limit_ms + c.in_flight.front().hold_ms > now_ms:
            self.arm_silence(c, silent_since + limit_ms + c.in_flight.front().hold_ms, now_ms)
            return
        if self.turned_late:
            # This process stood still: the answer may be on its way.
            self.arm(now_ms + self.config.silence_ms)
            return
        self.set_silent(c.node, now_ms)
        # The other connections to this broker take the same path. A JoinGroup may be parked in one of them for minutes.
        for channel in range(kChannels):
            other = c.node.connection(<Channel>channel)
            if (path_is_dead and other != NULL and other != c and other.state == CONN_READY
                    and other.last_read_ms < silent_since):
                self.give_up_silent(other, now_ms - other.last_read_ms, now_ms)
        self.give_up_silent(c, now_ms - silent_since, now_ms)

    cdef void arm_silence(self, Connection* c, int64_t due_ms, int64_t now_ms) noexcept nogil:
        """Set the timer for a limit, which becomes short again a minute after it was raised."""
        self.arm(due_ms if self.silence_ms(c.node, now_ms) <= self.config.silence_ms
                 else min(due_ms, now_ms + self.config.silence_ms))

    cdef void give_up_silent(self, Connection* c, int64_t silent_ms, int64_t now_ms) noexcept nogil:
        cdef string why = describe(b"silent for %lld ms", <long long>silent_ms)
        cdef InFlight* first
        if not c.in_flight.empty():
            first = &c.in_flight.front()
            why = describe(b"silent for %lld ms while the response to %s was due: the connection is replaced",
                           <long long>silent_ms, api_name(first.api_key))
            if first.request != NULL:
                c.node.stats().req_timeouts += 1
                self.finish_failed(first.request, ERR_TIMED_OUT, describe(b"%s: %s", c.node.name.c_str(), why.c_str()))
                first.request = NULL
        self.lose(c, Status(ERR_TRANSPORT, why), now_ms)


cdef void adopt_from_bootstrap(map[int32_t, Node*]& bootstrap, Node* node) noexcept nogil:
    """Move the connections of the bootstrap address to the broker with this address."""
    cdef map[int32_t, Node*].iterator it = bootstrap.begin()
    while it != bootstrap.end():
        if deref(it).second.host == node.host and deref(it).second.port == node.port:
            node.adopt_connections(deref(it).second[0])
            return
        inc(it)
