# Message: one record or one consumer error, in confluent_kafka's form. thread: A.


cdef enum:
    # Values up to this size are copied when the Message is made. For larger values the Message pins the arena until
    # value() is called.
    COPIED_VALUE_BYTES = 512
    INLINE_KEY_BYTES = 40
    HEADERS_SHELF_BYTES = 4000
    LAZY_VALUE = 1
    # A value larger than a response is always pinned: its blocks hold only this value, and a copy would double the
    # memory.
    MOST_COPIED_BYTES = 8388608


# Headers in wire format, of messages that were made one after another. Written bytes never change.
@cython.final
cdef class HeadersShelf:
    cdef uint8_t[HEADERS_SHELF_BYTES] data


# poll() fills two cache lines: per record, clear, count and copy as little as possible.
cdef class Message:
    # thread: A
    cdef object _topic
    cdef object _value          # bytes or None, or the value of set_value(); under LAZY_VALUE a PinnedValue
    cdef object _key            # the same; under LAZY_KEY None: the key is in inline_key
    cdef object _headers        # the same; under LAZY_HEADERS their HeadersShelf, or their bytes
    cdef object _error
    cdef int64_t _offset
    cdef int64_t _timestamp
    cdef int32_t _partition
    cdef int32_t _leader_epoch
    cdef int8_t _timestamp_type  # 0 none, 1 create, 2 log append
    cdef uint8_t lazy           # LAZY_ bits: value, key or headers that their getters must still create
    cdef uint8_t key_length     # of inline_key
    cdef uint16_t headers_at    # on the shelf
    cdef uint16_t headers_length
    cdef uint8_t[INLINE_KEY_BYTES] inline_key  # without FETCHED: a MadeByHand


cdef class PinnedValue:
    cdef Columns* columns       # thread: A (holds a reference)
    cdef int32_t row            # thread: A


# The record in `row`; `topic` and the next three arguments belong to its run.
cdef Message make_message(Columns* columns, int32_t row, object topic, int32_t partition, int32_t leader_epoch,
                          int8_t timestamp_type)
# Makes the bytes of a value that is still in its arena (the caller has checked LAZY_VALUE), and releases the arena.
# Returns their number; 0 for a value larger than MOST_COPIED_BYTES, which stays there.
cdef int64_t copy_value(Message message) except -1
cdef object error_message(object error, object topic, int32_t partition, int64_t offset)
