"""Owns: the life of a connection: names, addresses, handshake, version negotiation, loss and back-off; and its writes.

thread: N. Never: chooses a node or a request, reads, knows the broker list.

A connection attempt dials its addresses in a race (RFC 8305): one after another, and the next one earlier if one fails.
The first that answers wins. Where none answers, it dials again every second, because the kernel waits ever longer
between two SYN packets, and a path that works again would stay unused. When every address has refused, or after
socket.connection.setup.timeout.ms, the attempt has failed; the next one may start after the back-off. All states end in
lose().
"""


# The time for which an identical connection failure is not reported again.
cdef int64_t REPEAT_LOG_MS = 30000
# The minimum pause after one side refused the other's identity.
cdef int64_t REFUSED_RETRY_MS = 1000
# The pause between two addresses of a race, and between two dials of the same address.
cdef int64_t RACE_MS = 250
cdef int64_t REDIAL_MS = 1000
# How long the former addresses of a name are dialled that does not resolve now, before it is looked up again.
cdef int64_t FORMER_ADDRESSES_MS = 5000
# The sockets of one attempt that wait at the same time: a path with a long round trip still answers the oldest.
cdef size_t MOST_DIALS = 4
# The longest back-off where the network cannot reach a broker: it costs the broker nothing.
cdef int64_t UNREACHABLE_RETRY_MS = 1000
# A TLS handshake costs a broker more than a request.
cdef int64_t HANDSHAKE_SILENCES = 5
# The maximum number of losses kept for take_losses(); more would add no information.
cdef size_t MAX_LOSSES = 100


@cython.no_gc
cdef class Connector(Network):
    # -- time ----------------------------------------------------------------------------------------------------------

    cdef void arm(self, int64_t due_ms) noexcept nogil:
        if due_ms < self.next_timer_ms:
            self.next_timer_ms = due_ms

    cdef uint64_t random(self) noexcept nogil:
        """Return a random number (xorshift64), good enough to spread reconnects."""
        self.random_state ^= self.random_state << 13
        self.random_state ^= self.random_state >> 7
        self.random_state ^= self.random_state << 17
        return self.random_state

    cdef int64_t backoff_ms(self, int32_t failures) noexcept nogil:
        """Return the back-off: it doubles with each consecutive failure up to the maximum.

        It varies by ±20 %, so that clients do not reconnect to a restarted broker at the same time.
        """
        cdef int64_t wait = self.config.reconnect_backoff_ms
        cdef int32_t _i
        for _i in range(1, min(failures, 30)):
            wait = min(wait * 2, <int64_t>self.config.reconnect_backoff_max_ms)
        wait = min(wait, <int64_t>self.config.reconnect_backoff_max_ms)
        return wait * <int64_t>(80 + self.random() % 41) // 100

    cdef void retry_by(self, Node* node, int64_t latest_ms, bint refused) noexcept nogil:
        if node.retry_by(latest_ms, refused):
            self.arm(latest_ms)

    # -- making a connection -------------------------------------------------------------------------------------------

    cdef void start_attempt(self, Connection* c, int64_t now_ms) noexcept nogil:
        c.node.enter(c[0], CONN_RESOLVING, now_ms)
        self.resolving_count += 1
        c.node.stats().connects += 1
        c.failure = Status()
        c.attempt_errors.clear()
        c.unreachable = c.answered = False
        c.addresses_tried = 0
        c.attempt_started_ms = now_ms
        c.setup_deadline_ms = now_ms + self.config.connection_setup_timeout_ms
        self.arm(c.setup_deadline_ms)
        if self.config.security.use_tls:
            c.credentials = tls_of(self.config.security.tls).check()
        self.log.write(7, DBG_BROKER | DBG_GENERIC, b"CONNECT", b"%s: connecting (channel %d)",
                       c.node.name.c_str(), <int>c.channel)
        self.resolve(c, now_ms)

    cdef void resolve(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef Resolution found
        if not self.credentials_checked(c):
            return
        if self.resolver.lookup(c.node.host, c.node.port, self.config.address_family, False, now_ms,
                                &found) == LOOKUP_PENDING:
            # A name server may be cut off together with the brokers: the former addresses are better than none.
            if c.addresses.empty() or now_ms < c.attempt_started_ms + REDIAL_MS:
                self.arm(c.attempt_started_ms + REDIAL_MS)
                return
        elif found.status.ok():
            c.adopt_addresses(found.addresses, self.config.use_all_dns_ips)
        else:
            c.unreachable = True
        self.resolving_count -= 1
        c.node.enter(c[0], CONN_CONNECTING, now_ms)
        if c.addresses.empty():
            self.lose(c, found.status, now_ms)
            return
        c.node.dials.dialled(now_ms)
        c.setup_deadline_ms = now_ms + (min(<int64_t>self.config.connection_setup_timeout_ms, FORMER_ADDRESSES_MS)
                                        if c.unreachable else self.config.connection_setup_timeout_ms)
        self.arm(c.setup_deadline_ms)
        self.connect_next(c, now_ms)

    cdef bint credentials_checked(self, Connection* c) noexcept nogil:
        """Return whether the helper thread has checked the TLS credentials.

        Their files may have changed since the last connection.
        """
        cdef TlsClient* tls = tls_of(self.config.security.tls)
        cdef string news
        cdef int level
        if tls == NULL:
            return True
        if not tls.checked(c.credentials):
            return False
        level = tls.take_news(&news)
        if level != 0:
            self.log.write(level, 0, b"SSL", b"%s", news.c_str())
        return True

    cdef void connect_next(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Dial the next address that takes it; fail the attempt if no dial is left."""
        while c.addresses_tried < c.addresses.size():
            c.addresses_tried += 1
            if self.dial(c, now_ms):
                c.next_dial_ms = now_ms + (RACE_MS if c.addresses_tried < c.addresses.size() else REDIAL_MS)
                self.arm(c.next_dial_ms)
                return
        if c.dials.empty():
            self.lose(c, Status(ERR_TRANSPORT, describe(b"connect to %s", c.attempt_errors.c_str())), now_ms)
            return
        c.next_dial_ms = now_ms + REDIAL_MS
        self.arm(c.next_dial_ms)

    cdef bint dial(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Begin the TCP handshake with the next address. False: it has failed at once."""
        cdef Dial dial
        cdef int rc
        cdef string why
        dial.address = c.address_index
        dial.fd = open_socket(c.address().family(), self.config, c.channel)
        c.next_address()
        if dial.fd < 0:
            why = last_error()
            c.address_failed(dial.address, why)
            return False
        self.descriptors.add(dial.fd)
        rc = start_connect(dial.fd, c.addresses[dial.address])
        if rc == 0 or rc == EINPROGRESS:
            rc = self.selector.add(dial.fd, SELECT_WRITE, c)
            if rc == 0:
                c.dials.push_back(dial)
                return True
        self.descriptors.remove(dial.fd)
        close_descriptor(dial.fd)
        c.unreachable = c.unreachable or is_unreachable(rc)
        c.address_failed(dial.address, error_text(rc))
        return False

    cdef void check_dials(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Dial the next address, or all of them again; end the attempt at its deadline."""
        if now_ms >= c.setup_deadline_ms:
            c.unreachable = True
            while not c.dials.empty():
                c.address_failed(c.dials[0].address, describe(b"no answer within %d ms",
                                                              self.config.connection_setup_timeout_ms))
                self.hang_up(c, 0)
            self.lose(c, Status(ERR_TRANSPORT, describe(b"connect to %s", c.attempt_errors.c_str())), now_ms)
            return
        if now_ms >= c.next_dial_ms:
            if c.addresses_tried < c.addresses.size():
                self.connect_next(c, now_ms)
            else:
                self.dial_again(c, now_ms)
        if c.state == CONN_CONNECTING:
            self.arm(min(c.next_dial_ms, c.setup_deadline_ms))

    cdef void dial_again(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Dial once more, while the latest dials still wait."""
        cdef int64_t earliest
        cdef size_t _i
        self.report_slow(c, now_ms)
        c.node.dials.set_failing(True)
        earliest = c.node.dials.next_ms()
        if earliest > now_ms:
            c.next_dial_ms = earliest
            return
        c.node.dials.dialled(now_ms)
        c.next_dial_ms = now_ms + REDIAL_MS
        if c.dials.size() >= max(MOST_DIALS, c.addresses.size()):
            self.hang_up(c, 0)
        for _i in range(c.addresses.size()):
            if self.dial(c, now_ms):
                break
        if c.dials.empty():
            self.connect_next(c, now_ms)  # which fails the attempt

    cdef void report_slow(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Let the requests to this broker fail: their managers may know another one. The attempt goes on."""
        c.failure = Status(ERR_TRANSPORT, describe(b"%s: connect to %s: no answer yet", c.node.name.c_str(),
                                                   c.addresses[0].text().c_str()))
        self.note_loss(c, c.failure, False, self.log_loss(c, c.failure, False, False, now_ms))

    cdef void advance_dials(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Take the first dial whose handshake has ended; drop the failed ones."""
        cdef size_t i = 0
        cdef int rc
        cdef bint failed = False
        while i < c.dials.size():
            rc = finish_connect(c.dials[i].fd)
            if rc == 0:
                c.fd = c.dials[i].fd
                c.interest = SELECT_WRITE
                c.address_index = c.dials[i].address
                c.dials.erase(c.dials.begin() + i)
                while not c.dials.empty():
                    self.hang_up(c, 0)
                self.connected(c, now_ms)
                return
            if rc == EINPROGRESS:
                i += 1
                continue
            failed = True
            c.unreachable = c.unreachable or is_unreachable(rc)
            c.answered = c.answered or not is_unreachable(rc)
            c.address_failed(c.dials[i].address, error_text(rc))
            self.hang_up(c, i)
        if failed:
            self.connect_next(c, now_ms)

    cdef void hang_up(self, Connection* c, size_t number) noexcept nogil:
        cdef int fd = c.dials[number].fd
        self.selector.remove(fd, SELECT_WRITE)
        self.descriptors.remove(fd)
        close_descriptor(fd)
        c.dials.erase(c.dials.begin() + number)

    cdef void connected(self, Connection* c, int64_t now_ms) noexcept nogil:
        if self.config.security.use_tls:
            c.use(tls_of(self.config.security.tls).connect(c.fd, c.node.host, c.node.port, c.channel == CHANNEL_FETCH))
        else:
            c.use(new PlaintextTransport(c.fd))
        c.node.enter(c[0], CONN_HANDSHAKE, now_ms)
        c.handshake_ms = now_ms
        c.answered = True
        c.setup_deadline_ms = now_ms + min(<int64_t>self.config.connection_setup_timeout_ms,
                                           HANDSHAKE_SILENCES * self.silence_ms(c.node, now_ms))
        self.arm(c.setup_deadline_ms)
        self.log.write(7, DBG_BROKER, b"CONNECTED", b"%s: connected to %s", c.node.name.c_str(),
                       c.address().text().c_str())
        self.advance_handshake(c, now_ms)

    cdef void advance_handshake(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef HandshakeState state = c.wire().handshake()
        if state == HANDSHAKE_FAILED:
            self.lose(c, Status(c.wire().error_code(), c.wire().error_text()), now_ms)
            return
        if state != HANDSHAKE_DONE:
            self.watch_for(c, SELECT_WRITE if state == HANDSHAKE_WANTS_WRITE else SELECT_READ, now_ms)
            return
        if self.config.security.use_tls:
            self.log.write(7, DBG_SECURITY, b"SSL", b"%s: %s", c.node.name.c_str(), c.wire().description().c_str())
        if not self.config.api_version_request:
            self.introduced(c, now_ms)
        elif self.checks_cluster(c.node) and not self.config.security.use_sasl:
            self.begin_api_versions(c, API_VERSIONS_CHECKED, now_ms)
        else:
            self.begin_api_versions(c, API_VERSIONS_FIRST_TRY, now_ms)

    cdef void set_cluster(self, const string& cluster_id) noexcept nogil:
        self.cluster_id = cluster_id

    cdef bint checks_cluster(self, Node* node) noexcept nogil:
        """Not while a bootstrap address is used: which broker answers there is not known.

        Brokers before 4.4 would need a second round trip.
        """
        return self.config.cluster_check and self.brokers_check and not self.cluster_id.empty() and node.id >= 0

    cdef void begin_api_versions(self, Connection* c, int16_t version, int64_t now_ms) noexcept nogil:
        c.node.enter(c[0], CONN_API_VERSIONS, now_ms)
        c.api_versions_version = version
        c.setup_deadline_ms = now_ms + min(<int64_t>self.config.api_version_request_timeout_ms,
                                           self.silence_ms(c.node, now_ms))
        self.arm(c.setup_deadline_ms)
        self.ask_api_versions(c, now_ms)

    cdef void introduced(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Continue after the version negotiation; Authenticator authenticates first."""
        self.become_ready(c, now_ms)

    cdef void ask_api_versions(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef InFlight asked
        cdef ApiVersionsRequest body
        fill_api_versions_request(self.config, &body)
        if c.api_versions_version >= API_VERSIONS_CHECKED:
            body.cluster_id.set(self.cluster_id)
            body.node_id = c.node.id
        asked.internal = True
        asked.api_key = API_API_VERSIONS
        asked.version = c.api_versions_version
        asked.correlation_id = c.take_correlation_id()
        asked.deadline_ms = INT64_MAX
        asked.sent_us = self.clock.now_us()
        self.scratch.clear()
        encode_frame(self.scratch, asked.api_key, asked.version, api_versions_header_version(asked.version),
                     asked.correlation_id, self.config.client_id, body)
        self.log.write(7, DBG_FEATURE | DBG_PROTOCOL, b"APIVERSION", b"%s: sending ApiVersions v%d",
                       c.node.name.c_str(), <int>asked.version)
        self.put_on_wire(c, asked, now_ms)

    cdef void take_api_versions(self, Connection* c, const InFlight& asked, Reader& body,
                                int64_t now_ms) noexcept nogil:
        cdef Status why
        cdef ApiVersionsOutcome outcome = c.api_versions.accept(body.current(), body.remaining(), asked.version, &why)
        if outcome == API_VERSIONS_READY:
            self.brokers_check = c.api_versions.range(API_API_VERSIONS).max >= API_VERSIONS_CHECKED
            self.introduced(c, now_ms)
        elif outcome == API_VERSIONS_ASK_V0:
            c.api_versions_version = 0
            self.ask_api_versions(c, now_ms)
        elif why.code == <int>REBOOTSTRAP_REQUIRED:
            self.lose(c, Status(why.code, describe(
                b"the broker at this address is not broker %d of cluster %s: check its advertised.listeners, or set "
                b"metadata.cluster.check.enable=false if a proxy changes ids", c.node.id,
                self.cluster_id.c_str())), now_ms)
        else:
            self.lose(c, Status(ERR_TRANSPORT, why.detail), now_ms)

    cdef int64_t silence_ms(self, Node* node, int64_t now_ms) noexcept nogil:
        return node.silence.ms(self.config.silence_ms, now_ms)

    cdef void set_silent(self, Node* node, int64_t now_ms) noexcept nogil:
        node.silent = True
        node.silence.raise_(self.config.silence_ms, max(self.config.socket_timeout_ms, self.config.silence_ms), now_ms)

    cdef void become_ready(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef int channel
        c.node.enter(c[0], CONN_READY, now_ms)
        c.failures = 0
        c.failure = Status()
        c.refused = False
        c.node.refusal.clear()
        c.last_used_ms = c.last_read_ms = now_ms
        c.node.dials.set_failing(False)
        for channel in range(kChannels):
            if c.node.connection(<Channel>channel) != NULL:
                c.node.connection(<Channel>channel).next_dial_ms = now_ms
        self.arm(now_ms)
        # The broker is up, so its other connections need not wait for a back-off that grew while it was down
        # (test_a_broker_that_is_back_for_one_channel_is_back_for_all).
        self.retry_by(c.node, now_ms, True)
        if self.config.connections_max_idle_ms > 0:
            self.arm(now_ms + self.config.connections_max_idle_ms)
        self.watch(c, now_ms)
        self.log.write(7, DBG_BROKER | DBG_FEATURE, b"APIVERSION", b"%s: ready", c.node.name.c_str())

    # -- ending a connection -------------------------------------------------------------------------------------------

    cdef void lose(self, Connection* c, const Status& why, int64_t now_ms) noexcept nogil:
        """End a connection or attempt: fail its requests in flight and set the back-off."""
        cdef Status status = self.judge(c, why)
        cdef bint was_ready = c.state == CONN_READY
        cdef bint was_idle = was_ready and c.in_flight.empty() and why.code == ERR_TRANSPORT
        cdef bint deliberate = why.code == ERR_INTR
        cdef bint refused = status.code == ERR_AUTHENTICATION or status.code == ERR_SSL
        cdef bint rested = was_idle and now_ms - c.last_used_ms >= self.config.reconnect_backoff_max_ms
        if c.state == CONN_RESOLVING:
            self.resolving_count -= 1
        if was_ready:
            c.node.stats().disconnects += 1
        else:
            c.failures += 1
            c.failure = status
            c.next_address()
            c.node.dials.set_failing(True)
        c.refused = refused
        self.forget_identity(c, status, now_ms)
        self.note_loss(c, status, was_ready, self.log_loss(c, status, was_ready, was_idle or deliberate, now_ms))
        while not c.dials.empty():
            self.hang_up(c, 0)
        if not c.in_flight.empty() and not self.closed:
            reset_on_close(c.fd)
        elif c.wire() != NULL:
            c.wire().close()
        self.close_socket(c)
        c.node.enter(c[0], CONN_DOWN, now_ms)
        self.fail_in_flight(c, status)
        c.reset_io()
        # Brokers close idle connections; to connect again afterwards is not a retry.
        c.next_attempt_ms = now_ms if rested or deliberate else now_ms + self.backoff_ms(c.failures)
        if c.unreachable and not c.answered:
            c.next_attempt_ms = min(c.next_attempt_ms, now_ms + max(
                UNREACHABLE_RETRY_MS, <int64_t>self.config.reconnect_backoff_ms))
        c.next_attempt_ms = max(c.next_attempt_ms, c.node.dials.next_ms())
        if refused:
            # A broker refuses the same credentials again, and each attempt costs the broker a key derivation or a
            # signature.
            c.next_attempt_ms = max(c.next_attempt_ms, now_ms + REFUSED_RETRY_MS)
        self.arm(c.next_attempt_ms)

    cdef Status judge(self, Connection* c, const Status& why) noexcept nogil:
        """Return the code and text that report a loss."""
        cdef bint at_first_request = (c.state == CONN_API_VERSIONS and why.code == ERR_TRANSPORT
                                      and not c.in_flight.empty())
        if not at_first_request:
            return Status(why.code, describe(b"%s: %s%s", c.node.name.c_str(), why.detail.c_str(),
                                             b" at the first request: set security.protocol if this port requires SASL"
                                             if self.unnamed(c, why) else b""))
        # A listener with TLS or SASL closes the connection at the first plaintext request.
        return Status(why.code, describe(
            b"%s: %s (version negotiation): set security.protocol if this port requires SASL%s",
            c.node.name.c_str(), why.detail.c_str(), b"" if self.config.security.use_tls else b" or TLS"))

    cdef bint unnamed(self, Connection* c, const Status& why) noexcept nogil:
        """Return whether the listener probably requires SASL.

        Such a listener answers ApiVersions and closes the connection at the next request.
        """
        return (c.state == CONN_READY and not c.served and not self.config.security.use_sasl
                and not c.in_flight.empty() and why.detail == b"closed by the broker")

    cdef void forget_identity(self, Connection* c, const Status& status, int64_t now_ms) noexcept nogil:
        """Handle the end of a connection; Authenticator drops its session."""

    cdef bint log_loss(self, Connection* c, const Status& status, bint was_ready, bint was_idle,
                       int64_t now_ms) noexcept nogil:
        """Log a loss, and return whether it is news.

        The same failure is reported once in REPEAT_LOG_MS; with debug=broker each one is logged.
        """
        cdef bint repeated = c.logged_detail == status.detail and now_ms - c.logged_ms < REPEAT_LOG_MS
        cdef bint unwanted = was_ready and not self.config.log_connection_close and status.code != ERR_AUTHENTICATION
        cdef bint quiet = was_idle or repeated or unwanted or c.node.retiring
        if not quiet:
            c.logged_detail = status.detail
            c.logged_ms = now_ms
        self.log.write(6 if was_ready else 3, DBG_BROKER if quiet else 0,
                       b"DISCONN" if was_ready else b"FAIL", b"%s", status.detail.c_str())
        return not quiet

    cdef void note_loss(self, Connection* c, const Status& status, bint was_ready, bint is_news) noexcept nogil:
        cdef NodeLoss loss
        if c.refused:
            # All connections to the broker fail with the same refusal, repeatedly: report it once.
            is_news = not (c.node.refusal == status.detail)
            c.node.refusal = status.detail
        if c.node.retiring or self.losses.size() >= MAX_LOSSES or (was_ready and not is_news):
            return
        loss.node_id = c.node.id
        loss.was_ready = was_ready
        loss.repeated = not is_news
        loss.status = status
        self.losses.push_back(loss)

    cdef void take_losses(self, vector[NodeLoss]& out) noexcept nogil:
        out.swap(self.losses)
        self.losses.clear()

    cdef void close_socket(self, Connection* c) noexcept nogil:
        if c.fd < 0:
            return
        # Remove the descriptor from the selector before closing it: a forked child may still have a copy of it.
        if c.interest != 0:
            self.selector.remove(c.fd, c.interest)
        self.descriptors.remove(c.fd)
        close_descriptor(c.fd)
        c.fd = -1
        c.interest = 0

    cdef void fail_in_flight(self, Connection* c, const Status& why) noexcept nogil:
        """Fail the requests in flight.

        The first fails with the code of the loss, later ones with ERR_TRANSPORT.
        """
        cdef bint first = True
        while not c.in_flight.empty():
            if c.in_flight.front().request != NULL:
                self.finish_failed(c.in_flight.front().request, why.code if first else <int32_t>ERR_TRANSPORT,
                                   why.detail)
            first = False
            c.in_flight.pop_front()

    cdef void finish_failed(self, Request* request, int32_t code, const string& detail) noexcept nogil:
        cdef Completion ended
        ended.request = request
        ended.failed = True
        ended.status = Status(code, detail)
        self.in_flight_count -= 1
        self.finished.push_back(ended)

    # -- writing -------------------------------------------------------------------------------------------------------

    cdef void put_on_wire(self, Connection* c, const InFlight& sent, int64_t now_ms) noexcept nogil:
        """Queue the frame in `scratch`, and write until the socket is full."""
        c.out.write_raw(self.scratch.data(), self.scratch.size())
        c.in_flight.push_back(sent)
        c.node.stats().tx += 1
        c.node.stats().requests[sent.api_key] += 1
        self.log.write(7, DBG_PROTOCOL, b"SEND", b"%s: sent %s v%d (%zu bytes, id %d)", c.node.name.c_str(),
                       api_name(sent.api_key), <int>sent.version, self.scratch.size(), sent.correlation_id)
        self.write_out(c, now_ms)

    cdef void write_out(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef Status why
        cdef size_t before = c.out.size() - c.out_sent
        if flush(c, &why) == IO_BROKEN:
            c.node.stats().tx_errors += 1
            self.lose(c, why, now_ms)
            return
        c.node.stats().tx_bytes += <int64_t>(before - (c.out.size() - c.out_sent))
        c.node.stats().last_tx_us = now_ms * 1000
        self.watch(c, now_ms)

    cdef void watch(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Update the selector's interest.

        Write interest is set only while bytes are queued, because a writable socket would wake the loop at every turn.
        A transport may need one direction for the other.
        """
        cdef int wanted = SELECT_READ
        cdef int crossed = c.wire().crossed()
        if crossed & kReadWantsWrite or (c.out_sent < c.out.size() and not crossed & kWriteWantsRead):
            wanted |= SELECT_WRITE
        self.watch_for(c, wanted, now_ms)

    cdef void watch_for(self, Connection* c, int wanted, int64_t now_ms) noexcept nogil:
        cdef int rc
        if wanted == c.interest:
            return
        rc = self.selector.modify(c.fd, c.interest, <unsigned char>wanted, c)
        if rc == 0:
            c.interest = <unsigned char>wanted
        else:
            self.lose(c, Status(ERR_CRIT_SYS_RESOURCE, error_text(rc)), now_ms)
