# Declares Authenticator, a Connector whose connections authenticate before they are ready. thread: N.


cdef class Authenticator(Connector):
    cdef SaslWorker worker             # thread: N
    cdef int32_t paused_count          # thread: N; authentications that wait for a token or a helper thread
    cdef Status latest_refusal                # thread: N; the latest refusal, until a broker accepts a connection
    cdef uint64_t seen_generation      # thread: N; the last seen generation of the credentials

    # Takes a response to SaslHandshake or SaslAuthenticate, or a bare token.
    cdef void take_sasl(self, Connection* c, const InFlight& asked, Reader& body, int64_t now_ms) noexcept nogil
    # Continues an authentication that waited for a token or a helper thread.
    cdef void resume_authentication(self, Connection* c, int64_t now_ms) noexcept nogil
    # Returns whether a ready connection must authenticate again before the next request. Begins the authentication as
    # soon as no request is in flight.
    cdef bint must_authenticate(self, Connection* c, int64_t now_ms) noexcept nogil
    # Ends an authentication after its deadline.
    cdef void check_authentication(self, Connection* c, int64_t now_ms) noexcept nogil
    # Returns whether new credentials were set since the last call.
    cdef bint has_new_credentials(self) noexcept nogil
    # private
    cdef SaslCredentials* credentials(self) noexcept nogil
    cdef void enter_stage(self, SaslSession* s, SaslStage stage) noexcept nogil
    cdef void begin_authentication(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void ask_for_mechanism(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void take_handshake(self, Connection* c, Reader& body, int64_t now_ms) noexcept nogil
    cdef void take_authenticate(self, Connection* c, Reader& body, int64_t now_ms) noexcept nogil
    cdef void take_step(self, Connection* c, const uint8_t* message, size_t length, bint first,
                        int64_t now_ms) noexcept nogil
    cdef void apply(self, Connection* c, SaslOutcome outcome, Secret& out, const string& why,
                    int64_t now_ms) noexcept nogil
    cdef void send_token(self, Connection* c, Secret& token, int64_t now_ms) noexcept nogil
    cdef void accepted(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void schedule(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef const char* token_remedy(self) noexcept nogil
    cdef void refuse(self, Connection* c, const string& why, int64_t now_ms) noexcept nogil
