"""Owns: the life of a connection: names, addresses, handshake, version negotiation, loss and back-off; and its writes.

thread: N. Never: chooses a node or a request, reads, knows the broker list.

The attempt of a connection goes over its addresses one after the other at once; when none is left it has failed, and
the next may start after the back-off. lose() is the only way out of every state.
"""
cimport cython
from libc.errno cimport EINPROGRESS
from libc.stdint cimport INT64_MAX
from posix.unistd cimport close as close_descriptor

from kconsumer._core.base.log cimport DBG_BROKER, DBG_FEATURE, DBG_GENERIC, DBG_PROTOCOL, DBG_SECURITY
from kconsumer._core.base.status cimport ERR_AUTHENTICATION, ERR_CRIT_SYS_RESOURCE, ERR_INTR, ERR_SSL, ERR_TRANSPORT
from kconsumer._core.network.api_exchange cimport (
    API_VERSIONS_FIRST_TRY,
    api_versions_header_version,
    fill_api_versions_request,
)
from kconsumer._core.network.connection cimport (
    CONN_API_VERSIONS,
    CONN_CONNECTING,
    CONN_DOWN,
    CONN_HANDSHAKE,
    CONN_READY,
    CONN_RESOLVING,
    IO_BROKEN,
    flush,
)
from kconsumer._core.network.resolver cimport LOOKUP_PENDING, Resolution
from kconsumer._core.network.selector cimport SELECT_READ, SELECT_WRITE
from kconsumer._core.network.request cimport CHANNEL_FETCH
from kconsumer._core.network.socket cimport describe, error_text, last_error, open_socket, start_connect
from kconsumer._core.network.transport cimport (
    HANDSHAKE_DONE,
    HANDSHAKE_FAILED,
    HANDSHAKE_WANTS_WRITE,
    HandshakeState,
    PlaintextTransport,
    kReadWantsWrite,
    kWriteWantsRead,
)
from kconsumer._core.network.tls_client cimport TlsClient, tls_of
from kconsumer._core.protocol.api_keys cimport API_API_VERSIONS, api_name
from kconsumer._core.protocol.api_versions cimport API_VERSIONS_ASK_V0, API_VERSIONS_READY, ApiVersionsOutcome
from kconsumer._core.protocol.frame cimport encode_frame
from kconsumer._core.protocol.messages.api_versions cimport ApiVersionsRequest


# How long an identical connection failure stays untold.
cdef int64_t REPEAT_LOG_MS = 30000
# The least pause after a broker has refused us, or we it.
cdef int64_t REFUSED_RETRY_MS = 1000
# Losses kept for the callers that ask; more of them add no information.
cdef size_t MAX_LOSSES = 100


@cython.no_gc
cdef class Connector(Network):
    # -- time ----------------------------------------------------------------------------------------------------------

    cdef void arm(self, int64_t due_ms) noexcept nogil:
        if due_ms < self.next_timer_ms:
            self.next_timer_ms = due_ms

    cdef uint64_t random(self) noexcept nogil:
        """xorshift64: spreads reconnects, nothing depends on its quality."""
        self.random_state ^= self.random_state << 13
        self.random_state ^= self.random_state >> 7
        self.random_state ^= self.random_state << 17
        return self.random_state

    cdef int64_t backoff_ms(self, int32_t failures) noexcept nogil:
        """Doubles with each failure in a row up to the maximum; ±20 %, so that clients of a lost broker spread out."""
        cdef int64_t wait = self.config.reconnect_backoff_ms
        cdef int32_t _i
        for _i in range(1, min(failures, 30)):
            wait = min(wait * 2, <int64_t>self.config.reconnect_backoff_max_ms)
        wait = min(wait, <int64_t>self.config.reconnect_backoff_max_ms)
        return wait * <int64_t>(80 + self.random() % 41) // 100

    # -- making a connection -------------------------------------------------------------------------------------------

    cdef void start_attempt(self, Connection* c, int64_t now_ms) noexcept nogil:
        c.node.enter(c[0], CONN_RESOLVING, now_ms)
        self.resolving_count += 1
        c.node.stats().connects += 1
        c.failure = Status()
        c.attempt_errors.clear()
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
            return
        self.resolving_count -= 1
        c.node.enter(c[0], CONN_CONNECTING, now_ms)
        if not found.status.ok():
            self.lose(c, found.status, now_ms)
            return
        c.adopt_addresses(found.addresses, self.config.use_all_dns_ips)
        self.connect_next(c, now_ms)

    cdef bint credentials_checked(self, Connection* c) noexcept nogil:
        """Whether the TLS credentials have been looked at, which a helper thread does: their files may have changed."""
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
        """Tries address after address until one is under way; the attempt has failed when none is left."""
        while c.addresses_tried < c.addresses.size():
            c.addresses_tried += 1
            if self.open_connection(c, now_ms):
                return
        self.lose(c, Status(ERR_TRANSPORT, describe(b"connect to %s", c.attempt_errors.c_str())), now_ms)

    cdef bint open_connection(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef int fd = open_socket(c.address().family(), self.config, c.channel == CHANNEL_FETCH)
        cdef int rc
        cdef string why
        if fd < 0:
            why = last_error()
            self.address_failed(c, why)
            return False
        c.fd = fd
        self.descriptors.add(fd)
        rc = start_connect(fd, c.address())
        if rc == 0 or rc == EINPROGRESS:
            c.interest = SELECT_WRITE
            c.node.enter(c[0], CONN_CONNECTING, now_ms)
            c.setup_deadline_ms = now_ms + self.config.connection_setup_timeout_ms
            self.arm(c.setup_deadline_ms)
            rc = self.selector.add(fd, c.interest, c)
            if rc == 0:
                return True
            c.interest = 0
        self.close_socket(c)
        self.address_failed(c, error_text(rc))
        return False

    cdef void address_failed(self, Connection* c, const string& why) noexcept nogil:
        if not c.attempt_errors.empty():
            c.attempt_errors.append(b", ")
        c.attempt_errors.append(c.address().text()).append(b" failed: ").append(why)
        c.next_address()

    cdef void connected(self, Connection* c, int64_t now_ms) noexcept nogil:
        if self.config.security.use_tls:
            c.use(tls_of(self.config.security.tls).connect(c.fd, c.node.host, c.node.port, c.channel == CHANNEL_FETCH))
        else:
            c.use(new PlaintextTransport(c.fd))
        c.node.enter(c[0], CONN_HANDSHAKE, now_ms)
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
        if self.config.api_version_request:
            c.node.enter(c[0], CONN_API_VERSIONS, now_ms)
            c.api_versions_version = API_VERSIONS_FIRST_TRY
            c.setup_deadline_ms = min(c.setup_deadline_ms, now_ms + self.config.api_version_request_timeout_ms)
            self.arm(c.setup_deadline_ms)
            self.ask_api_versions(c, now_ms)
        else:
            self.introduced(c, now_ms)

    cdef void introduced(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Versions are known, as far as they are asked for; Authenticator says who we are first."""
        self.become_ready(c, now_ms)

    cdef void ask_api_versions(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef InFlight asked
        cdef ApiVersionsRequest body
        fill_api_versions_request(self.config, &body)
        asked.internal = True
        asked.api_key = API_API_VERSIONS
        asked.version = c.api_versions_version
        asked.correlation_id = c.take_correlation_id()
        asked.deadline_ms = INT64_MAX
        asked.sent_us = self.clock.now_us()
        self.scratch.clear()
        encode_frame(self.scratch, asked.api_key, asked.version, api_versions_header_version(asked.version),
                     asked.correlation_id, self.config.client_id, body)
        self.log.write(7, DBG_FEATURE | DBG_PROTOCOL, b"APIVERSION", b"%s: asking with ApiVersions v%d",
                       c.node.name.c_str(), <int>asked.version)
        self.put_on_wire(c, asked, now_ms)

    cdef void take_api_versions(self, Connection* c, const InFlight& asked, Reader& body,
                                int64_t now_ms) noexcept nogil:
        cdef Status why
        cdef ApiVersionsOutcome outcome = c.api_versions.accept(body.current(), body.remaining(), asked.version, &why)
        if outcome == API_VERSIONS_READY:
            self.introduced(c, now_ms)
        elif outcome == API_VERSIONS_ASK_V0:
            c.api_versions_version = 0
            self.ask_api_versions(c, now_ms)
        else:
            self.lose(c, Status(ERR_TRANSPORT, why.detail), now_ms)

    cdef void become_ready(self, Connection* c, int64_t now_ms) noexcept nogil:
        c.node.enter(c[0], CONN_READY, now_ms)
        c.failures = 0
        c.failure = Status()
        c.refused = False
        c.node.refusal.clear()
        c.last_used_ms = now_ms
        # A broker that is back for one channel is back for all: none sits out a back-off that grew while it was away.
        if c.node.hurry(now_ms, True):
            self.arm(now_ms)
        if self.config.connections_max_idle_ms > 0:
            self.arm(now_ms + self.config.connections_max_idle_ms)
        self.watch(c, now_ms)
        self.log.write(7, DBG_BROKER | DBG_FEATURE, b"APIVERSION", b"%s: ready", c.node.name.c_str())

    # -- ending a connection -------------------------------------------------------------------------------------------

    cdef void lose(self, Connection* c, const Status& why, int64_t now_ms) noexcept nogil:
        """The connection, or the attempt to make one, has ended: fails what was in flight and sets the back-off."""
        cdef Status told = self.judge(c, why)
        cdef bint was_ready = c.state == CONN_READY
        cdef bint was_idle = was_ready and c.in_flight.empty() and why.code == ERR_TRANSPORT
        cdef bint deliberate = why.code == ERR_INTR
        cdef bint refused = told.code == ERR_AUTHENTICATION or told.code == ERR_SSL
        cdef bint rested = was_idle and now_ms - c.last_used_ms >= self.config.reconnect_backoff_max_ms
        if c.state == CONN_RESOLVING:
            self.resolving_count -= 1
        if was_ready:
            c.node.stats().disconnects += 1
        else:
            c.failures += 1
            c.failure = told
            c.next_address()
        c.refused = refused
        self.forget_identity(c, told, now_ms)
        self.note_loss(c, told, was_ready, self.log_loss(c, told, was_ready, was_idle or deliberate, now_ms))
        if c.wire() != NULL:
            c.wire().close()
        self.close_socket(c)
        c.node.enter(c[0], CONN_DOWN, now_ms)
        self.fail_in_flight(c, told)
        c.reset_io()
        # Brokers close what is idle; connecting again after that is not a retry.
        c.next_attempt_ms = now_ms if rested or deliberate else now_ms + self.backoff_ms(c.failures)
        if refused:
            # A broker refuses the same credentials again, and each attempt costs it a key derivation or a signature.
            c.next_attempt_ms = max(c.next_attempt_ms, now_ms + REFUSED_RETRY_MS)
        self.arm(c.next_attempt_ms)

    cdef Status judge(self, Connection* c, const Status& why) noexcept nogil:
        """The text that reports the loss."""
        cdef bint at_first_request = (c.state == CONN_API_VERSIONS and why.code == ERR_TRANSPORT
                                      and not c.in_flight.empty())
        if not at_first_request:
            return Status(why.code, describe(b"%s: %s%s", c.node.name.c_str(), why.detail.c_str(),
                                             b" at the first request (does this port require SASL?)"
                                             if self.unnamed(c, why) else b""))
        # A listener that speaks TLS or wants SASL hangs up on the first plaintext request.
        return Status(why.code, describe(
            b"%s: %s while versions were negotiated (does this port require SASL%s?)", c.node.name.c_str(),
            why.detail.c_str(), b"" if self.config.security.use_tls else b" or TLS"))

    cdef bint unnamed(self, Connection* c, const Status& why) noexcept nogil:
        """A listener that wants SASL answers ApiVersions, and hangs up on whatever comes next."""
        return (c.state == CONN_READY and not c.served and not self.config.security.use_sasl
                and not c.in_flight.empty() and why.detail == b"closed by the broker")

    cdef void forget_identity(self, Connection* c, const Status& told, int64_t now_ms) noexcept nogil:
        """The connection has ended: Authenticator forgets what it has of it."""

    cdef bint log_loss(self, Connection* c, const Status& told, bint was_ready, bint was_idle,
                       int64_t now_ms) noexcept nogil:
        """Whether to report it now: the same failure is reported once in a while, with debug=broker each time."""
        cdef bint repeated = c.logged_detail == told.detail and now_ms - c.logged_ms < REPEAT_LOG_MS
        cdef bint unwanted = was_ready and not self.config.log_connection_close and told.code != ERR_AUTHENTICATION
        cdef bint quiet = was_idle or repeated or unwanted or c.node.retiring
        if not quiet:
            c.logged_detail = told.detail
            c.logged_ms = now_ms
        self.log.write(6 if was_ready else 3, DBG_BROKER if quiet else 0,
                       b"DISCONN" if was_ready else b"FAIL", b"%s", told.detail.c_str())
        return not quiet

    cdef void note_loss(self, Connection* c, const Status& told, bint was_ready, bint is_news) noexcept nogil:
        cdef NodeLoss loss
        if c.refused:
            # Every connection to a broker meets it, again and again.
            is_news = not (c.node.refusal == told.detail)
            c.node.refusal = told.detail
        if c.node.retiring or self.losses.size() >= MAX_LOSSES or (was_ready and not is_news):
            return
        loss.node_id = c.node.id
        loss.was_ready = was_ready
        loss.repeated = not is_news
        loss.status = told
        self.losses.push_back(loss)

    cdef void take_losses(self, vector[NodeLoss]& out) noexcept nogil:
        out.swap(self.losses)
        self.losses.clear()

    cdef void close_socket(self, Connection* c) noexcept nogil:
        if c.fd < 0:
            return
        # Out of the selector by word, not by closing: a forked child may still hold a copy of the descriptor.
        if c.interest != 0:
            self.selector.remove(c.fd, c.interest)
        self.descriptors.remove(c.fd)
        close_descriptor(c.fd)
        c.fd = -1
        c.interest = 0

    cdef void fail_in_flight(self, Connection* c, const Status& why) noexcept nogil:
        """The request whose response was being awaited fails for the reason itself, later ones because of the loss."""
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
        """Queues the frame in `scratch` and writes what the socket takes."""
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
        """Write interest stands only while something is queued: a writable socket would wake every turn. A transport
        may want one direction for the other."""
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
