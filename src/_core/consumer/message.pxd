# Message: one record, or one consumer error, as confluent_kafka hands it out. thread: A.
cimport cython

from kconsumer._core.base.cpp cimport int8_t, int32_t, int64_t, uint8_t, uint16_t
from kconsumer._core.records.columns cimport Columns

cdef enum:
    # A value up to this is copied when the Message is made. Beyond it, the Message pins the arena until value() is
    # called.
    COPIED_VALUE_BYTES = 512
    INLINE_KEY_BYTES = 40
    HEADERS_SHELF_BYTES = 4000
    LAZY_VALUE = 1
    # A larger value than a response is always pinned: its blocks hold only it, and a copy takes as much memory again.
    MOST_COPIED_BYTES = 8388608


# Headers as they were on the wire, of messages that were made one after another. Written bytes never change.
@cython.final
cdef class HeadersShelf:
    cdef uint8_t[HEADERS_SHELF_BYTES] data


# poll() makes two cache lines: as little as possible is cleared, counted and copied per record.
cdef class Message:
    # thread: A
    cdef object _topic
    cdef object _value          # bytes or None, or what set_value() gave; under LAZY_VALUE a PinnedValue
    cdef object _key            # likewise; under LAZY_KEY None: it is in inline_key
    cdef object _headers        # likewise; under LAZY_HEADERS the HeadersShelf they are on, or their bytes
    cdef object _error
    cdef int64_t _offset
    cdef int64_t _timestamp
    cdef int32_t _partition
    cdef int32_t _leader_epoch
    cdef int8_t _timestamp_type  # 0 none, 1 create, 2 log append
    cdef uint8_t lazy           # LAZY_ bits: which of value, key, headers are not yet what their getters return
    cdef uint8_t key_length     # of inline_key
    cdef uint16_t headers_at    # on the shelf
    cdef uint16_t headers_length
    cdef uint8_t[INLINE_KEY_BYTES] inline_key  # without FETCHED: a MadeByHand


cdef class PinnedValue:
    cdef Columns* columns       # thread: A (holds a reference)
    cdef int32_t row            # thread: A


# The record in `row`; `topic` and the next three are those of its run.
cdef Message make_message(Columns* columns, int32_t row, object topic, int32_t partition, int32_t leader_epoch,
                          int8_t timestamp_type)
# Makes the bytes of a value that is still in its arena (the caller has seen LAZY_VALUE), and lets the arena go. Returns
# how many; 0 for a value beyond MOST_COPIED_BYTES, which stays there.
cdef int64_t copy_value(Message message) except -1
cdef object error_message(object error, object topic, int32_t partition, int64_t offset)
