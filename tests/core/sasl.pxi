"""Owns: Python access to the SASL mechanisms and credentials, for tests.

Threads: that of the test. Never: part of the consumer.
"""

cdef extern from *:
    """
    #include "network/sasl_credentials.hpp"

    static std::shared_ptr<kc::SaslMechanism> scram_with_nonce(bool sha512, kc::Secret& user, kc::Secret& password,
                                                               std::string nonce) {
      return std::make_shared<kc::SaslScram>(sha512, user, std::move(password), std::move(nonce));
    }
    static void unmask(kc::Secret* secret, uint8_t mask) {
      for (size_t i = 0; i < secret->size(); ++i) secret->data()[i] ^= mask;
    }
    """
    SaslMechanismPtr scram_with_nonce(bint, Secret&, Secret&, string) nogil
    void unmask(Secret*, uint8_t) nogil

_OUTCOMES = {<int>SASL_SEND: "send", <int>SASL_DONE: "done"}


cdef Secret secret_of(bytes raw):
    return Secret(<const char*>raw, <size_t>len(raw))


cdef string raw_string(bytes raw):
    return string(<const char*>raw, <size_t>len(raw))


cdef class Credentials:
    """A SaslCredentials whose secrets are XORed with `mask`.

    With a mask, a test that finds a secret in memory knows which copy it is.
    """
    cdef SaslCredentialsPtr held
    cdef int mask

    def __init__(self, mechanism, mask=0, asks_for_tokens=False, renews_tokens=False):
        self.held = make_credentials()
        self.mask = mask
        credentials_of(self.held).mechanism = raw_string(mechanism.encode())
        credentials_of(self.held).asks_for_tokens = asks_for_tokens
        credentials_of(self.held).renews_tokens = renews_tokens

    def set_password(self, bytes username, bytes password):
        """SaslCredentials.set_password."""
        cdef Secret first = secret_of(username)
        cdef Secret second = secret_of(password)
        unmask(&second, self.mask)
        set_password(credentials_of(self.held), first, second)

    def set_token(self, bytes token, dict extensions, int64_t life_ms, int64_t now_ms):
        """SaslCredentials.set_token."""
        cdef Secret raw = secret_of(token)
        cdef vector[pair[string, string]] pairs
        cdef pair[string, string] one
        unmask(&raw, self.mask)
        for key, value in extensions.items():
            one.first = raw_string(key)
            one.second = raw_string(value)
            pairs.push_back(one)
        set_token(credentials_of(self.held), raw, pairs, life_ms, now_ms)

    def token_failed(self, why, now_ms):
        """SaslCredentials.token_failed."""
        credentials_of(self.held).token_failed(raw_string(why.encode()), now_ms)

    def failure(self):
        """SaslCredentials.failure: its text or None."""
        cdef string why
        if not credentials_of(self.held).failure(&why):
            return None
        return why.data()[:why.size()].decode()

    def refused(self, now_ms):
        """SaslCredentials.refused."""
        credentials_of(self.held).refused(now_ms)

    def token_due_ms(self):
        """SaslCredentials.token_due_ms."""
        return credentials_of(self.held).token_due_ms()

    def take_token_request(self, now_ms):
        """SaslCredentials.take_token_request."""
        return credentials_of(self.held).take_token_request(now_ms)

    def wipe(self):
        """SaslCredentials.wipe."""
        credentials_of(self.held).wipe()

    def begin(self, now_ms=0, host="localhost"):
        """Begin a Conversation; None while there is no token."""
        cdef Conversation made = Conversation()
        made.mechanism = credentials_of(self.held).begin(raw_string(host.encode()), now_ms)
        return None if made.mechanism.get() == NULL else made


def scram_conversation(sha512, bytes username, bytes password, nonce):
    """Return a SCRAM conversation with the test's nonce."""
    cdef Conversation made = Conversation()
    cdef Secret user = secret_of(username)
    cdef Secret word = secret_of(password)
    made.mechanism = scram_with_nonce(sha512, user, word, raw_string(nonce.encode()))
    return made


cdef class Conversation:
    """One SaslMechanism, to which the test passes messages."""
    cdef SaslMechanismPtr mechanism

    def step(self, message=None):
        """Pass a message; return (outcome, message to send, error)."""
        cdef bytes raw = message or b""
        cdef Secret out
        cdef string why
        cdef SaslOutcome outcome
        cdef size_t length = len(raw)
        cdef const char* data = raw
        cdef bint first = message is None
        with nogil:
            outcome = self.mechanism.get().step(<const uint8_t*>data, length, first, &out, &why)
        return (_OUTCOMES.get(<int>outcome, "failed"), (<const char*>out.data())[:out.size()],
                why.data()[:why.size()].decode())

    @property
    def name(self):
        """The name of the mechanism in the protocol."""
        return self.mechanism.get().name().decode()

    @property
    def slow(self):
        """Whether the next step needs a helper thread."""
        return self.mechanism.get().slow()

    @property
    def error_from_broker(self):
        """The error message of the server."""
        cdef string text = self.mechanism.get().error_from_broker()
        return text.data()[:text.size()].decode()
