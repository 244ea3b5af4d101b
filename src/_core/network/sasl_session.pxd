# Declares network/sasl_session.hpp, sasl_mechanism.hpp, sasl_worker.hpp and sasl_credentials.hpp for Cython. thread: N.


cdef extern from "network/sasl_mechanism.hpp" namespace "kc" nogil:
    cdef enum SaslOutcome:
        SASL_SEND
        SASL_DONE
        SASL_FAILED

    const size_t SASL_MAX_CHALLENGE

    cdef cppclass SaslMechanism:
        const char* name()
        SaslOutcome step(const uint8_t* message, size_t length, bint first, Secret* out, string* why)
        bint slow()
        const char* remedy()
        string error_from_broker()

    string quoted_words(const char* text, size_t length)


cdef extern from "<memory>" namespace "std" nogil:
    cdef cppclass SaslMechanismPtr "std::shared_ptr<kc::SaslMechanism>":
        SaslMechanismPtr()
        SaslMechanism* get()
        void reset()

    cdef cppclass SaslStepPtr "std::shared_ptr<kc::SaslStep>":
        SaslStepPtr()
        SaslStep* get()
        void reset()

    SaslStepPtr make_step "std::make_shared<kc::SaslStep>"()


cdef extern from "network/sasl_worker.hpp" namespace "kc" nogil:
    cdef cppclass SaslStep:
        SaslMechanismPtr mechanism
        Secret message
        bint first
        Secret out
        string why
        SaslOutcome outcome
        atomic[bint] abandoned
        atomic[bint] finished

    cdef cppclass SaslWorker:
        void open(Selector* selector)
        void close()
        void abandon()
        int start(const SaslStepPtr& step)


cdef extern from "network/sasl_credentials.hpp" namespace "kc" nogil:
    cdef cppclass KerberosSettings:
        string service
        string principal
        string keytab
        string cache

    cdef cppclass SaslCredentials:
        string mechanism
        KerberosSettings kerberos
        bint asks_for_tokens
        bint renews_tokens
        atomic[uint64_t] generation
        void token_failed(const string& why, int64_t now_ms)
        bint failure(string* why)
        void wipe()
        void refused(int64_t now_ms)
        int64_t token_due_ms()
        bint take_token_request(int64_t now_ms)
        SaslMechanismPtr begin(const string& host, int64_t now_ms)

    SaslCredentials* credentials_of "kc::get_credentials"(const SaslCredentialsPtr&)
    SaslCredentialsPtr make_credentials "std::make_shared<kc::SaslCredentials>"()
    void set_password "kc::set_password"(SaslCredentials* to, Secret& username, Secret& password)
    void set_token "kc::set_token"(SaslCredentials* to, Secret& token, vector[pair[string, string]]& extensions,
                                   int64_t life_ms, int64_t now_ms)


cdef extern from "network/sasl_session.hpp" namespace "kc" nogil:
    cdef enum SaslStage:
        SASL_IDLE
        SASL_AWAITS_TOKEN
        SASL_AWAITS_STEP
        SASL_AWAITS_ANSWER

    const int16_t SASL_BARE_TOKENS
    const int SASL_MAX_ROUNDS

    cdef cppclass SaslSession:
        SaslMechanismPtr mechanism
        SaslStepPtr step
        SaslStage stage
        int16_t version
        int rounds
        bint again
        int64_t deadline_ms
        int64_t due_ms
        int64_t lifetime_ms
        size_t written

    SaslSession* start_session(Connection* c)
    SaslSession* session_of(Connection* c)
    void wipe_written(Connection* c)
    bint write_token(Connection* c, const string& client_id, int32_t correlation_id, const Secret& token)
    string listed(const vector[string]& mechanisms)
