"""Owns: Python access to one TlsClient and its transports, for tests that step them with a socket pair.

Threads: that of the test, in the role of N. Never: part of the consumer.
"""

cdef extern from "openssl/crypto.h" nogil:
    unsigned long OpenSSL_version_num()


def openssl_version():
    """Return (major, minor) of the loaded OpenSSL: (1, 1), (3, 5)."""
    cdef unsigned long number = OpenSSL_version_num()
    return number >> 28, number >> 20 & 0xff


cdef bytes raw(const string& text):
    return text.data()[:text.size()]


@cython.no_gc
cdef class TlsFace:
    """The credentials of one consumer.

    Args:
        options: kconsumer.config.tls.TlsOptions, or an object with its attributes.
    """
    cdef TlsClientPtr client
    cdef Selector selector

    def __init__(self, options):
        capsule = open_client(options)
        self.client = (<TlsClientPtr*>PyCapsule_GetPointer(capsule, b"kconsumer.TlsClient"))[0]
        if self.selector.open() != 0:
            raise OSError("no selector")
        tls_of(self.client).open(&self.selector)

    def check(self):
        """Start a check of the files and wait for its end."""
        cdef vector[SelectorEvent] events
        cdef uint64_t ticket = tls_of(self.client).check()
        with nogil:
            while not tls_of(self.client).checked(ticket):
                self.selector.wait(10000, events)

    def news(self):
        """Take (level, text) of the latest check; (0, "") if there is no new message."""
        cdef string text
        cdef int level = tls_of(self.client).take_news(&text)
        return level, raw(text).decode()

    def connect(self, int fd, str host, int port, bint bulk=False):
        made = TransportFace()
        made.owner = self
        made.take(tls_of(self.client).connect(fd, host.encode(), port, bulk))
        return made

    def close(self):
        tls_of(self.client).close()

    def __dealloc__(self):
        if tls_of(self.client) != NULL:
            tls_of(self.client).close()


@cython.no_gc
cdef class TransportFace:
    """One connection's transport with a descriptor that the test owns."""
    cdef Transport* transport
    cdef public object owner

    cdef void take(self, Transport* made):
        self.transport = made

    def handshake(self):
        """Step the handshake; return "done", "read", "write" or "failed"."""
        cdef HandshakeState state
        with nogil:
            state = self.transport.handshake()
        words = {HANDSHAKE_DONE: "done", HANDSHAKE_WANTS_READ: "read", HANDSHAKE_WANTS_WRITE: "write"}
        return words.get(state, "failed")

    def read(self, size_t most):
        """Read up to ``most`` bytes: None if there are none now, b"" at the end.

        Raises:
            OSError: the read failed; the text is the transport's.
        """
        cdef bytes room = PyBytes_FromStringAndSize(NULL, most)
        cdef uint8_t* to = <uint8_t*>PyBytes_AS_STRING(room)
        cdef IoResult result
        with nogil:
            result = self.transport.read_into(to, most)
        if result.state == IO_DONE:
            return room[:result.bytes]
        if result.state == IO_WOULD_BLOCK:
            return None
        if result.state == IO_CLOSED:
            return b""
        raise OSError(result.error, self.error_text)

    def write(self, bytes data not None):
        """Write, and return the number of bytes written; None if the socket is full.

        Raises:
            OSError: the write failed; the text is the transport's.
        """
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(data)
        cdef size_t length = <size_t>len(data)
        cdef IoResult result
        with nogil:
            result = self.transport.write(start, length)
        if result.state == IO_DONE:
            return result.bytes
        if result.state == IO_WOULD_BLOCK:
            return None
        raise OSError(result.error, self.error_text)

    def close(self):
        self.transport.close()

    def drop(self):
        """Free the transport without a message to the peer."""
        del self.transport
        self.transport = NULL

    @property
    def pending(self):
        return self.transport.pending()

    @property
    def crossed(self):
        return self.transport.crossed()

    @property
    def error_code(self):
        return self.transport.error_code()

    @property
    def error_text(self):
        return raw(self.transport.error_text()).decode()

    @property
    def description(self):
        return raw(self.transport.description()).decode()

    def __dealloc__(self):
        del self.transport
