"""Owns: SASL on a connection: the mechanism, the exchange of its messages, and re-authentication.

thread: N. Never: waits for a token, a KDC or a long computation (the application and helper threads do), interprets the
messages of a mechanism.

SaslHandshake names the mechanism. Its messages are then sent in SaslAuthenticate, or as bare tokens to old brokers. A
connection authenticates after ApiVersions, before its first request, and again (KIP-368) shortly before its session
ends. The re-authentication starts after the responses to the requests in flight; new requests wait in the queue.
"""


cdef enum:
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    # A broker refuses a re-authentication within a second of the previous one.
    LEAST_SESSION_MS = 1100
    # A session is renewed after 85 to 95 percent of its lifetime, as in the Java client.
    RENEWAL_PERCENT = 85
    RENEWAL_JITTER_PERCENT = 10


@cython.no_gc
cdef class Authenticator(Connector):
    cdef SaslCredentials* credentials(self) noexcept nogil:
        return credentials_of(self.config.security.sasl)

    cdef void enter_stage(self, SaslSession* s, SaslStage stage) noexcept nogil:
        self.paused_count -= s.stage == SASL_AWAITS_TOKEN or s.stage == SASL_AWAITS_STEP
        s.stage = stage
        self.paused_count += stage == SASL_AWAITS_TOKEN or stage == SASL_AWAITS_STEP

    cdef bint has_new_credentials(self) noexcept nogil:
        cdef uint64_t generation
        if not self.config.security.use_sasl:
            return False
        generation = self.credentials().generation.load()
        if generation == self.seen_generation:
            return False
        self.seen_generation = generation
        self.latest_refusal = Status()
        return True

    # -- authentication ------------------------------------------------------------------------------------------------

    cdef void introduced(self, Connection* c, int64_t now_ms) noexcept nogil:
        if not self.config.security.use_sasl or session_of(c) != NULL:  # the latter: accepted() has asked again
            self.latest_refusal = Status()
            self.become_ready(c, now_ms)
            return
        c.node.enter(c[0], CONN_SASL, now_ms)
        start_session(c)
        c.setup_deadline_ms = now_ms + self.config.connection_setup_timeout_ms
        self.arm(c.setup_deadline_ms)
        self.begin_authentication(c, now_ms)

    cdef void begin_authentication(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef string why
        s.rounds = 0
        s.lifetime_ms = 0
        s.mechanism = self.credentials().begin(c.node.host, now_ms)
        if s.mechanism.get() != NULL:
            self.ask_for_mechanism(c, now_ms)
        elif self.credentials().failure(&why):
            self.refuse(c, why, now_ms)
        else:
            self.enter_stage(s, SASL_AWAITS_TOKEN)

    cdef void ask_for_mechanism(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef SaslHandshakeRequest body
        cdef InFlight asked
        cdef int version = 1
        cdef int authenticate = 0
        if self.config.api_version_request:
            version = c.api_versions.pick(API_SASL_HANDSHAKE, SaslHandshakeRequest_min_version,
                                          SaslHandshakeRequest_max_version)
            authenticate = c.api_versions.pick(API_SASL_AUTHENTICATE, SaslAuthenticateRequest_min_version,
                                               SaslAuthenticateRequest_max_version)
        if version < 0:
            self.lose(c, Status(ERR_UNSUPPORTED_FEATURE, string(
                b"the broker has no SaslHandshake: set security.protocol to plaintext or ssl if its listener has no "
                b"SASL, or upgrade it to 0.10")), now_ms)
            return
        if authenticate < 0:
            version = 0
        s.version = <int16_t>authenticate if version >= 1 else SASL_BARE_TOKENS
        body.mechanism.assign(s.mechanism.get().name())
        asked.internal = True
        asked.api_key = API_SASL_HANDSHAKE
        asked.version = <int16_t>version
        asked.correlation_id = c.take_correlation_id()
        asked.deadline_ms = INT64_MAX
        asked.wait_ms = self.config.connection_setup_timeout_ms
        asked.sent_us = self.clock.now_us()
        self.scratch.clear()
        encode_frame(self.scratch, asked.api_key, asked.version, 1, asked.correlation_id, self.config.client_id, body)
        self.enter_stage(s, SASL_AWAITS_ANSWER)
        self.log.write(7, DBG_SECURITY, b"SASL", b"%s: requesting %s", c.node.name.c_str(), body.mechanism.c_str())
        self.put_on_wire(c, asked, now_ms)

    cdef void take_sasl(self, Connection* c, const InFlight& asked, Reader& body, int64_t now_ms) noexcept nogil:
        if session_of(c) == NULL or session_of(c).stage != SASL_AWAITS_ANSWER:
            self.lose(c, Status(ERR_TRANSPORT, string(b"unexpected SASL response")), now_ms)
        elif asked.api_key == API_SASL_HANDSHAKE:
            self.take_handshake(c, body, now_ms)
        else:
            wipe_written(c)
            if asked.bare:
                self.take_step(c, body.current(), body.remaining(), False, now_ms)
            else:
                self.take_authenticate(c, body, now_ms)

    cdef void take_handshake(self, Connection* c, Reader& body, int64_t now_ms) noexcept nogil:
        cdef SaslHandshakeResponse answer
        answer.decode(body, 1)
        if not body.ok():
            self.lose(c, Status(ERR_TRANSPORT, body.status().detail), now_ms)
        elif answer.error_code == UNSUPPORTED_SASL_MECHANISM:
            self.refuse(c, describe(b"the broker offers %s: set sasl.mechanism to one of these",
                                    listed(answer.mechanisms).c_str()), now_ms)
        elif answer.error_code == ILLEGAL_SASL_STATE:
            self.refuse(c, string(b"this listener has no SASL: set security.protocol to plaintext or ssl"), now_ms)
        elif answer.error_code != 0:
            self.refuse(c, describe(b"the broker answered SaslHandshake with error %d", <int>answer.error_code), now_ms)
        else:
            self.take_step(c, NULL, 0, True, now_ms)

    cdef void take_authenticate(self, Connection* c, Reader& body, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef SaslAuthenticateResponse answer
        cdef string why
        answer.decode(body, s.version)
        if not body.ok():
            self.lose(c, Status(ERR_TRANSPORT, body.status().detail), now_ms)
            return
        if answer.error_code == 0:
            s.lifetime_ms = answer.session_lifetime_ms
            self.take_step(c, <const uint8_t*>answer.auth_bytes.data(), answer.auth_bytes.size(), False, now_ms)
            return
        why = quoted_words(answer.error_message.value.data(), answer.error_message.value.size())
        if why.empty():
            why = s.mechanism.get().error_from_broker()
        if why.empty():
            why = describe(b"the broker answered with error %d", <int>answer.error_code)
        self.refuse(c, describe(b"%s: %s", why.c_str(), s.mechanism.get().remedy()), now_ms)

    cdef void take_step(self, Connection* c, const uint8_t* message, size_t length, bint first,
                        int64_t now_ms) noexcept nogil:
        """Pass the broker's message to the mechanism, on this or a helper thread."""
        cdef SaslSession* s = session_of(c)
        cdef SaslMechanism* mechanism = s.mechanism.get()
        cdef SaslOutcome outcome
        cdef Secret out
        cdef string why
        cdef int rc
        s.rounds += 1
        if length > SASL_MAX_CHALLENGE or s.rounds > SASL_MAX_ROUNDS:
            self.refuse(c, string(b"the broker sent too long or too many SASL messages"), now_ms)
            return
        if not mechanism.slow():
            outcome = mechanism.step(message, length, first, &out, &why)
            self.apply(c, outcome, out, why, now_ms)
            return
        s.step = make_step()
        s.step.get().mechanism = s.mechanism
        s.step.get().first = first
        s.step.get().message.assign(message, length)
        rc = self.worker.start(s.step)
        if rc != 0:
            self.lose(c, Status(ERR_TRANSPORT, describe(b"cannot start a SASL thread: %s", error_text(rc).c_str())),
                      now_ms)
            return
        self.enter_stage(s, SASL_AWAITS_STEP)

    cdef void resume_authentication(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef SaslStepPtr done
        if s == NULL:
            return
        if s.stage == SASL_AWAITS_TOKEN:
            self.enter_stage(s, SASL_IDLE)
            self.begin_authentication(c, now_ms)
        elif s.stage == SASL_AWAITS_STEP and s.step.get().finished.load():
            done = s.step
            s.step.reset()
            self.enter_stage(s, SASL_IDLE)
            self.apply(c, done.get().outcome, done.get().out, done.get().why, now_ms)

    cdef void apply(self, Connection* c, SaslOutcome outcome, Secret& out, const string& why,
                    int64_t now_ms) noexcept nogil:
        if outcome == SASL_SEND:
            self.send_token(c, out, now_ms)
        elif outcome == SASL_DONE:
            self.accepted(c, now_ms)
        else:
            self.refuse(c, why if not why.empty() else string(b"out of memory"), now_ms)

    cdef void send_token(self, Connection* c, Secret& token, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef InFlight asked
        asked.internal = True
        asked.bare = s.version == SASL_BARE_TOKENS
        asked.api_key = API_SASL_AUTHENTICATE
        asked.version = s.version if not asked.bare else 0
        asked.response_header_version = 1 if asked.version >= 2 else 0
        asked.correlation_id = c.take_correlation_id()
        asked.deadline_ms = INT64_MAX
        asked.wait_ms = self.config.connection_setup_timeout_ms
        asked.sent_us = self.clock.now_us()
        if not write_token(c, self.config.client_id, asked.correlation_id, token):
            self.refuse(c, string(b"the SASL message is too long"), now_ms)
            return
        self.enter_stage(s, SASL_AWAITS_ANSWER)
        c.in_flight.push_back(asked)
        c.node.stats().tx += 1
        c.node.stats().requests[asked.api_key] += 1
        self.log.write(7, DBG_SECURITY | DBG_PROTOCOL, b"SEND", b"%s: sent %s v%d (%zu bytes, id %d)",
                       c.node.name.c_str(), api_name(asked.api_key), <int>asked.version, c.out.size(),
                       asked.correlation_id)
        self.write_out(c, now_ms)

    # -- the result ----------------------------------------------------------------------------------------------------

    cdef void accepted(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef bint again = s.again
        s.mechanism.reset()
        s.again = False
        s.deadline_ms = INT64_MAX
        self.enter_stage(s, SASL_IDLE)
        self.latest_refusal = Status()
        self.schedule(c, now_ms)
        self.log.write(7, DBG_SECURITY, b"SASL", b"%s: authenticated; session lifetime %lld ms", c.node.name.c_str(),
                       <long long>s.lifetime_ms)
        if again:
            c.last_used_ms = now_ms
            self.watch(c, now_ms)
        elif self.config.api_version_request and self.checks_cluster(c.node):
            # Brokers check a connection only after the authentication.
            self.begin_api_versions(c, API_VERSIONS_CHECKED, now_ms)
        else:
            self.become_ready(c, now_ms)

    cdef void schedule(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef int64_t percent
        s.due_ms = INT64_MAX
        if s.lifetime_ms > 0:
            percent = RENEWAL_PERCENT + <int64_t>(self.random() % (RENEWAL_JITTER_PERCENT + 1))
            # Divide before multiplying, so that a hostile lifetime cannot overflow.
            s.due_ms = now_ms + max(min(s.lifetime_ms, INT64_MAX // 1024) // 100 * percent, <int64_t>LEAST_SESSION_MS)

    cdef void refuse(self, Connection* c, const string& why, int64_t now_ms) noexcept nogil:
        self.lose(c, Status(ERR_AUTHENTICATION, describe(
            b"SASL %s authentication failed: %s", self.credentials().mechanism.c_str(), why.c_str())), now_ms)

    cdef Status judge(self, Connection* c, const Status& why) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        if why.code != ERR_TRANSPORT or c.state != CONN_SASL or s == NULL:
            return Connector.judge(self, c, why)
        if s.version == SASL_BARE_TOKENS and s.rounds > 0:
            # A broker before 1.0 reports a refusal only by closing the connection.
            return Status(ERR_AUTHENTICATION, describe(
                b"%s: SASL %s authentication failed: %s (how brokers before 1.0 refuse credentials): %s",
                c.node.name.c_str(), s.mechanism.get().name(), why.detail.c_str(), s.mechanism.get().remedy()))
        return Status(why.code, describe(b"%s: %s during the SASL %s authentication", c.node.name.c_str(),
                                         why.detail.c_str(), self.credentials().mechanism.c_str()))

    cdef void forget_identity(self, Connection* c, const Status& status, int64_t now_ms) noexcept nogil:
        if c.refused:
            self.latest_refusal = status
        if session_of(c) == NULL:
            return
        if status.code == ERR_AUTHENTICATION and session_of(c).rounds > 0:
            self.credentials().refused(now_ms)  # the broker has seen the token
        wipe_written(c)
        self.enter_stage(session_of(c), SASL_IDLE)
        c.sasl.reset()

    # -- re-authentication (KIP-368) -----------------------------------------------------------------------------------

    cdef bint must_authenticate(self, Connection* c, int64_t now_ms) noexcept nogil:
        """Whether requests wait for another authentication, which begins here once no request is in flight.

        It begins only before a request, even after the session's end: a broker accepts SaslHandshake then, but not
        twice within a second. The connection stays CONN_READY. In another state, sessions that end together would look
        like "all brokers down", and usable_version() like "unsupported".
        """
        cdef SaslSession* s = session_of(c)
        if s == NULL or (not s.again and now_ms < s.due_ms):
            return False
        if not s.again and c.in_flight.empty():
            s.again = True
            s.deadline_ms = now_ms + self.config.connection_setup_timeout_ms
            self.arm(s.deadline_ms)
            self.begin_authentication(c, now_ms)
        return True

    cdef const char* token_remedy(self) noexcept nogil:
        if self.credentials().renews_tokens:
            return b"the OIDC provider has not answered yet"
        if self.credentials().asks_for_tokens:
            return b"call poll(), which gets tokens"
        return b"call set_oauth_token()"

    cdef void check_authentication(self, Connection* c, int64_t now_ms) noexcept nogil:
        cdef SaslSession* s = session_of(c)
        cdef int64_t deadline
        if s == NULL or not (s.again or c.state == CONN_SASL):
            return
        deadline = s.deadline_ms if s.again else c.setup_deadline_ms
        if now_ms < deadline:
            self.arm(deadline)
        elif s.stage == SASL_AWAITS_TOKEN:
            self.refuse(c, describe(b"no token was set within %d ms: %s", self.config.connection_setup_timeout_ms,
                                    self.token_remedy()), now_ms)
        elif s.stage == SASL_AWAITS_STEP:
            self.refuse(c, describe(b"no SASL message within %d ms: check the connection to the KDC and name server",
                                    self.config.connection_setup_timeout_ms), now_ms)
        else:
            self.lose(c, Status(ERR_TRANSPORT, describe(
                b"the broker did not answer within %d ms during the authentication",
                self.config.connection_setup_timeout_ms)), now_ms)
