"""Owns: the bytes of one connection: it sends queued requests and receives size-prefixed frames directly into blocks.

thread: N. Never: opens or closes a socket, interprets a frame, allocates the claimed size of a frame before its bytes
arrive.
"""


# The memory for a response before any of its bytes arrive, in addition to the expected bytes of the request.
cdef size_t FIRST_BLOCK_EXTRA_BYTES = 64 * 1024
cdef size_t MIN_FRAME_BYTES = 4  # a correlation id


cdef void set_status(Status* why, int32_t code, const string& detail) noexcept nogil:
    why.code = code
    why.detail = detail


cdef void io_failure(Connection* c, const IoResult& result, const char* doing, Status* why) noexcept nogil:
    """Set `why` to the error of a failed or closed read or write."""
    cdef string text
    if result.state == IO_CLOSED:
        set_status(why, ERR_TRANSPORT, string(b"closed by the broker"))
        return
    if result.error == 0:
        set_status(why, c.wire().error_code(), c.wire().error_text())
        return
    text = error_text(result.error)
    set_status(why, ERR_TRANSPORT, describe(b"%s failed: %s", doing, text.c_str()))


cdef bint is_tls_alert(const uint8_t* size_bytes) noexcept nogil:
    return size_bytes[0] == 0x15 and size_bytes[1] == 3


cdef const char* looks_like(const uint8_t* size_bytes) noexcept nogil:
    """Guess the protocol of a peer that is not a Kafka broker, from its first 4 bytes.

    Returns:
        A hint for the error text; empty if the protocol is unknown.
    """
    if is_tls_alert(size_bytes):
        return b" (a TLS alert: the broker expects TLS on this port: set security.protocol to ssl or sasl_ssl)"
    if size_bytes[0] == 0x16 and size_bytes[1] == 3:
        return b" (a TLS handshake)"
    if size_bytes[0] == b'H' and size_bytes[1] == b'T' and size_bytes[2] == b'T' and size_bytes[3] == b'P':
        return b" (an HTTP response: this is not a Kafka port)"
    return b""


cdef bint start_frame(Connection* c, BlockPool* pool, int64_t receive_max_bytes, Status* why) noexcept nogil:
    """Check the size of a frame, and take a block for its first bytes."""
    cdef uint32_t raw = (<uint32_t>c.size_bytes[0] << 24 | <uint32_t>c.size_bytes[1] << 16
                         | <uint32_t>c.size_bytes[2] << 8 | <uint32_t>c.size_bytes[3])
    cdef int32_t length = <int32_t>raw
    cdef size_t capacity
    cdef const char* hint = looks_like(c.size_bytes)
    if length < (0 if not c.in_flight.empty() and c.in_flight.front().bare else <int32_t>MIN_FRAME_BYTES):
        set_status(why, ERR_BAD_MSG, describe(b"invalid response size %d%s", length, hint))
        return False
    if length > receive_max_bytes:
        set_status(why, ERR_SSL if is_tls_alert(c.size_bytes) and c.state != CONN_READY else ERR_BAD_MSG,
                   describe(b"response size %d exceeds receive.message.max.bytes (%lld)%s", length,
                            <long long>receive_max_bytes, hint))
        return False
    if c.in_flight.empty():
        set_status(why, ERR_BAD_MSG, describe(b"a response of %d bytes without a request%s", length,
                                              hint))
        return False
    capacity = c.in_flight.front().expected_bytes + FIRST_BLOCK_EXTRA_BYTES
    c.frame_length = <size_t>length
    c.frame = pool.take(max(min(capacity, c.frame_length), <size_t>1))
    if c.frame == NULL:
        set_status(why, ERR_CRIT_SYS_RESOURCE, describe(b"out of memory for a response of %d bytes", length))
        return False
    c.frame.size = 0
    return True


cdef bint make_room(Connection* c, BlockPool* pool, Status* why) noexcept nogil:
    """Double a full block, because half of it has arrived."""
    if c.frame.size < c.frame.capacity:
        return True
    if pool.grow(c.frame, min(c.frame.capacity * 2, c.frame_length)):
        return True
    set_status(why, ERR_CRIT_SYS_RESOURCE, describe(b"out of memory for a response of %zu bytes", c.frame_length))
    return False


cdef IoOutcome receive(Connection* c, BlockPool* pool, int64_t receive_max_bytes, size_t* budget,
                       Status* why) noexcept nogil:
    cdef IoResult result
    cdef size_t wanted
    while budget[0] > 0:
        if c.frame == NULL:
            wanted = 4 - c.size_have
            result = c.wire().read_into(c.size_bytes + c.size_have, wanted)
        else:
            if not make_room(c, pool, why):
                return IO_BROKEN
            wanted = min(min(c.frame.capacity, c.frame_length) - c.frame.size, budget[0])
            result = c.wire().read_into(c.frame.data + c.frame.size, wanted)
        if result.state == IO_WOULD_BLOCK:
            return IO_AGAIN
        if result.state != IO_DONE:
            io_failure(c, result, b"receive", why)
            return IO_BROKEN
        budget[0] -= min(result.bytes, budget[0])
        if c.frame != NULL:
            c.frame.size += result.bytes
            if c.frame.size == c.frame_length:
                return IO_FRAME
        else:
            c.size_have += result.bytes
            if c.size_have == 4:
                if not start_frame(c, pool, receive_max_bytes, why):
                    return IO_BROKEN
                if c.frame_length == 0:
                    return IO_FRAME
        # A short read means that the socket is empty, so another read now would be wasted. The exception is a transport
        # with pending bytes: TLS returns one record at a time.
        if result.bytes < wanted and not c.wire().pending():
            return IO_AGAIN
    return IO_SPENT


cdef IoOutcome flush(Connection* c, Status* why) noexcept nogil:
    cdef IoResult result
    while c.out_sent < c.out.size():
        result = c.wire().write(c.out.data() + c.out_sent, c.out.size() - c.out_sent)
        if result.state == IO_WOULD_BLOCK:
            return IO_AGAIN
        if result.state != IO_DONE:
            io_failure(c, result, b"send", why)
            return IO_BROKEN
        c.out_sent += result.bytes
    c.out.clear()
    c.out_sent = 0
    return IO_AGAIN
