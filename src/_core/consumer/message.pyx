"""Owns: Message, one record (or one consumer error) as confluent_kafka hands it out.

thread: A. Never: keeps fetched memory for a small record: key, value and headers of up to INLINE_BYTES together are
copied into the object, so that a cache of old messages does not hold the fetcher's blocks; larger ones pin their arena.
key(), value() and headers() make their Python object once and keep it.
"""
cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy

from kconsumer._core.records.columns cimport HeadersRef

cdef enum:
    MADE_KEY = 1
    MADE_VALUE = 2
    MADE_HEADERS = 4
    WHICH_KEY = 0
    WHICH_VALUE = 1
    WHICH_HEADERS = 2


# A Message holds no cycle unless set_value() and its like are given one; no_gc keeps poll() off the collector.
@cython.no_gc
@cython.freelist(4096)
@cython.final
cdef class Message:
    """A record, or a consumer error.

    Made by ``Consumer.poll`` and ``Consumer.consume``; for tests also by
    ``Message(topic=None, value=None, key=None, headers=None, error=None, timestamp=None, latency=None,
    leader_epoch=None)`` with ``partition`` and ``offset`` as further keywords.
    """

    def __init__(self, topic=None, value=None, key=None, headers=None, error=None, timestamp=None, latency=None,
                 leader_epoch=None, partition=None, offset=None):
        self._topic = topic
        self._value = value
        self._key = key
        self._headers = headers
        self._error = error
        self.made = MADE_KEY | MADE_VALUE | MADE_HEADERS
        self.value_length = -1 if value is None else 0
        self.key_length = -1 if key is None else 0
        self._partition = -1 if partition is None else partition
        self._offset = -1001 if offset is None else offset
        self._leader_epoch = -1 if leader_epoch is None else leader_epoch
        if timestamp is not None:
            self._timestamp_type, self._timestamp = timestamp

    def __dealloc__(self):
        if self.columns != NULL:
            self.columns.release()

    cdef void fill(self, Columns* columns, int32_t row) noexcept:
        """Take row `row` of the arena: a copy where it is small, a pin on the arena where it is not."""
        cdef int32_t key = columns.keys[row].length
        cdef int32_t value = columns.values[row].length
        cdef int32_t headers = 0
        cdef uint8_t* to
        self.headers_count = 0
        if columns.headers != NULL:
            headers = columns.headers[row].length
            self.headers_count = columns.headers[row].count
        self._offset = columns.offsets[row]
        self._timestamp = columns.timestamps[row]
        self.headers_length = headers
        self.made = 0
        if <int64_t>key + value + headers <= INLINE_BYTES:
            to = self.inline_bytes
            memcpy(to, columns.view_data(columns.keys[row]), key)
            memcpy(to + key, columns.view_data(columns.values[row]), value)
            if headers > 0:
                memcpy(to + key + value, columns.buffers[columns.headers[row].buffer_index].data
                       + columns.headers[row].offset, headers)
            self.columns = NULL
        else:
            columns.retain()
            self.columns = columns
            self.row = row
        self.key_length = -1 if columns.key_is_null(row) else key
        self.value_length = -1 if columns.value_is_null(row) else value

    cdef const uint8_t* data(self, int which) noexcept:
        cdef HeadersRef* headers
        if self.columns == NULL:
            if which == WHICH_KEY:
                return self.inline_bytes
            if which == WHICH_VALUE:
                return self.inline_bytes + max(self.key_length, 0)
            return self.inline_bytes + max(self.key_length, 0) + max(self.value_length, 0)
        if which == WHICH_KEY:
            return self.columns.view_data(self.columns.keys[self.row])
        if which == WHICH_VALUE:
            return self.columns.view_data(self.columns.values[self.row])
        headers = &self.columns.headers[self.row]
        return self.columns.buffers[headers.buffer_index].data + headers.offset

    def value(self):
        """The record's value.

        Returns:
            bytes, or None where the record has none; what ``set_value`` gave; for an error its text as bytes.
        """
        if not self.made & MADE_VALUE:
            self.made |= MADE_VALUE
            if self.value_length >= 0:
                self._value = PyBytes_FromStringAndSize(<const char*>self.data(WHICH_VALUE), self.value_length)
        return self._value

    def key(self):
        """The record's key: bytes, or None where it has none."""
        if not self.made & MADE_KEY:
            self.made |= MADE_KEY
            if self.key_length >= 0:
                self._key = PyBytes_FromStringAndSize(<const char*>self.data(WHICH_KEY), self.key_length)
        return self._key

    def headers(self):
        """The record's headers: list of (str, bytes or None) in the record's order, or None where it has none."""
        if not self.made & MADE_HEADERS:
            self.made |= MADE_HEADERS
            if self.headers_count > 0:
                self._headers = parse_headers(self.data(WHICH_HEADERS), self.headers_length, self.headers_count)
        return self._headers

    def deserialized_value(self):
        """What value() returns: a DeserializingConsumer's object, else the bytes."""
        return self.value()

    def deserialized_key(self):
        """What key() returns."""
        return self.key()

    def delivery_count(self):
        """None: only share consumers count deliveries."""
        return None

    def topic(self):
        """The topic's name: str, or None for an error that belongs to none."""
        return self._topic

    def partition(self):
        """The partition: int, or None for an error that belongs to none."""
        return None if self._partition < 0 else self._partition

    def offset(self):
        """The record's offset: int; for an error where it happened, or None."""
        return None if self._offset < 0 else self._offset

    def leader_epoch(self):
        """The leader epoch the record's batch was written under (KIP-320): int, or None where it is unknown."""
        return None if self._leader_epoch < 0 else self._leader_epoch

    def timestamp(self):
        """(type, milliseconds since the epoch); type is TIMESTAMP_NOT_AVAILABLE, _CREATE_TIME or _LOG_APPEND_TIME."""
        return (self._timestamp_type, self._timestamp)

    def error(self):
        """None for a record, else the KafkaError."""
        return self._error

    def latency(self):
        """None: a consumer's message has no produce latency."""
        return None

    def set_value(self, value):
        """Replace what value() returns (a deserializer's result)."""
        self.made |= MADE_VALUE
        self._value = value

    def set_key(self, key):
        """Replace what key() returns."""
        self.made |= MADE_KEY
        self._key = key

    def set_headers(self, headers):
        """Replace what headers() returns."""
        self.made |= MADE_HEADERS
        self._headers = headers

    def set_topic(self, topic):
        """Replace what topic() returns."""
        self._topic = topic

    def set_error(self, error):
        """Replace what error() returns."""
        self._error = error

    def __len__(self):
        """Length of the value in bytes; 0 where there is none."""
        if not self.made & MADE_VALUE:
            return max(self.value_length, 0)
        return 0 if self._value is None else len(self._value)

    def __bool__(self):
        return True

    def _state(self):
        return (self._topic, self.value(), self.key(), self.headers(), self._error,
                (self._timestamp_type, self._timestamp), None, self.leader_epoch(), self._partition, self._offset)

    def __eq__(self, other):
        if not isinstance(other, Message):
            return NotImplemented
        return self._state() == (<Message>other)._state()

    __hash__ = None

    def __reduce__(self):
        return (Message, self._state())

    def __copy__(self):
        return Message(*self._state())

    def __deepcopy__(self, memo):
        return Message(*self._state())

    def __repr__(self):
        if self._error is not None:
            return f"<Message error={self._error!r} topic={self._topic!r} partition={self._partition}>"
        return (f"<Message topic={self._topic!r} partition={self._partition} offset={self._offset} "
                f"key={self.key()!r} value={self.value()!r}>")


cdef object error_message(object error, object topic, int32_t partition, int64_t offset):
    """The Message that hands a consumer error to poll() and consume()."""
    return Message(topic=topic, value=error.str().encode(), error=error, partition=partition, offset=offset)


cdef list parse_headers(const uint8_t* p, int32_t length, int32_t count):
    """Headers of a v2 record; the decoder has checked their lengths, and every read stays within them again."""
    cdef const uint8_t* end = p + length
    cdef int64_t n
    cdef list found = []
    cdef str name
    for _ in range(count):
        n = read_varint(&p, end)
        if n < 0 or n > end - p:
            break
        name = (<const char*>p)[:n].decode("utf-8", "surrogateescape")
        p += n
        n = read_varint(&p, end)
        if n > end - p:
            break
        found.append((name, None if n < 0 else PyBytes_FromStringAndSize(<const char*>p, n)))
        p += max(n, <int64_t>0)
    return found


cdef int64_t read_varint(const uint8_t** p, const uint8_t* end) noexcept:
    """A zigzag varint; stops at the end."""
    cdef unsigned long long value = 0
    cdef int shift = 0
    while p[0] < end and shift < 64:
        value |= <unsigned long long>(p[0][0] & 0x7f) << shift
        shift += 7
        p[0] += 1
        if not p[0][-1] & 0x80:
            break
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
