"""Owns: Message, one record (or one consumer error) as confluent_kafka hands it out.

thread: A. Never: keeps fetched memory for a small record: key, headers and a value of up to COPIED_VALUE_BYTES are
copied, so that a cache of old messages does not hold the fetcher's blocks; a larger value pins its arena until value()
is called.

The bytes object of a small value is made at once: nearly everybody asks for it, and a copy to make it from later would
be copied a second time.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

from kconsumer._core.records.columns cimport HeadersRef

cdef enum:
    MADE_VALUE = 1
    MADE_KEY = 2
    MADE_HEADERS = 4
    MADE_ALL = 7
    PREFETCHED_ROWS = 8


# A Message holds no cycle unless set_value() and its like are given one; no_gc keeps poll() off the collector.
# binding=False: CPython calls a plain method descriptor faster than a function object of Cython's.
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
        self.made = MADE_ALL
        self._partition = -1 if partition is None else partition
        self._offset = -1001 if offset is None else offset
        self._leader_epoch = -1 if leader_epoch is None else leader_epoch
        if timestamp is not None:
            self._timestamp_type, self._timestamp = timestamp

    @cython.binding(False)
    def value(self):
        """The record's value.

        Returns:
            bytes, or None where the record has none; what ``set_value`` gave; for an error its text as bytes.
        """
        if not self.made & MADE_VALUE:
            make_value(self)
        return self._value

    @cython.binding(False)
    def key(self):
        """The record's key: bytes, or None where it has none."""
        if not self.made & MADE_KEY:
            make_key(self)
        return self._key

    def headers(self):
        """The record's headers: list of (str, bytes or None) in the record's order, or None where it has none."""
        if not self.made & MADE_HEADERS:
            make_headers(self)
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

    @cython.binding(False)
    def error(self):
        """None for a record, else the KafkaError."""
        return self._error

    def latency(self):
        """None: a consumer's message has no produce latency."""
        return None

    def set_value(self, value):
        """Replace what value() returns (a deserializer's result)."""
        self._value = value
        self.made |= MADE_VALUE

    def set_key(self, key):
        """Replace what key() returns."""
        self._key = key
        self.made |= MADE_KEY

    def set_headers(self, headers):
        """Replace what headers() returns."""
        self._headers = headers
        self.made |= MADE_HEADERS

    def set_topic(self, topic):
        """Replace what topic() returns."""
        self._topic = topic

    def set_error(self, error):
        """Replace what error() returns."""
        self._error = error

    def __len__(self):
        """Length of the value in bytes; 0 where there is none."""
        cdef object value = self._value
        if isinstance(value, PinnedValue):
            return (<PinnedValue>value).columns.values[(<PinnedValue>value).row].length
        return 0 if value is None else len(value)

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


@cython.no_gc
@cython.final
cdef class PinnedValue:
    """A value that is still in its arena."""

    def __dealloc__(self):
        self.columns.release()


cdef Message make_message(Columns* columns, int32_t row, object topic, int32_t partition, int32_t leader_epoch,
                          int8_t timestamp_type):
    cdef Message message = Message.__new__(Message)
    cdef int32_t length = columns.values[row].length
    cdef int made = MADE_ALL
    columns.prefetch(row + PREFETCHED_ROWS)
    message._topic = topic
    message._partition = partition
    message._leader_epoch = leader_epoch
    message._timestamp_type = timestamp_type
    message._offset = columns.offsets[row]
    message._timestamp = columns.timestamps[row]
    if length > COPIED_VALUE_BYTES:
        message._value = pin_value(columns, row)
        made = MADE_KEY | MADE_HEADERS
    elif length > 0 or not columns.value_is_null(row):
        message._value = PyBytes_FromStringAndSize(<const char*>columns.view_data(columns.values[row]), length)
    length = columns.keys[row].length
    if length > INLINE_KEY_BYTES:
        message._key = PyBytes_FromStringAndSize(<const char*>columns.view_data(columns.keys[row]), length)
    elif length > 0 or not columns.key_is_null(row):
        memcpy(message.inline_key, columns.view_data(columns.keys[row]), length)
        message.key_length = <uint8_t>length
        made &= ~MADE_KEY
    if columns.headers != NULL and columns.headers[row].count > 0:
        message._headers = raw_headers(columns, &columns.headers[row])
        made &= ~MADE_HEADERS
    message.made = <uint8_t>made
    return message


cdef PinnedValue pin_value(Columns* columns, int32_t row):
    cdef PinnedValue pinned = PinnedValue.__new__(PinnedValue)
    columns.retain()
    pinned.columns = columns
    pinned.row = row
    return pinned


cdef bytes raw_headers(Columns* columns, HeadersRef* headers):
    return PyBytes_FromStringAndSize(<const char*>columns.buffers[headers.buffer_index].data + headers.offset,
                                     headers.length)


# The three below may be called by several threads at once where there is no GIL.

cdef int make_value(Message message) except -1:
    cdef PinnedValue pinned
    cdef Columns* columns
    with cython.critical_section(message):
        if not message.made & MADE_VALUE:
            pinned = message._value
            columns = pinned.columns
            message._value = PyBytes_FromStringAndSize(
                <const char*>columns.view_data(columns.values[pinned.row]), columns.values[pinned.row].length)
            message.made |= MADE_VALUE
    return 0


cdef int make_key(Message message) except -1:
    with cython.critical_section(message):
        if not message.made & MADE_KEY:
            message._key = PyBytes_FromStringAndSize(<const char*>message.inline_key, message.key_length)
            message.made |= MADE_KEY
    return 0


cdef int make_headers(Message message) except -1:
    with cython.critical_section(message):
        if not message.made & MADE_HEADERS:
            message._headers = parse_headers(message._headers)
            message.made |= MADE_HEADERS
    return 0


cdef object error_message(object error, object topic, int32_t partition, int64_t offset):
    """The Message that hands a consumer error to poll() and consume()."""
    return Message(topic=topic, value=error.str().encode(), error=error, partition=partition, offset=offset)


cdef list parse_headers(bytes raw):
    """Headers of a v2 record; the decoder has checked their lengths, and every read stays within them again."""
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(raw)
    cdef const uint8_t* end = p + PyBytes_GET_SIZE(raw)
    cdef int64_t n
    cdef list found = []
    cdef str name
    while p < end:
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
    cdef uint8_t byte = 0x80
    while byte & 0x80 and p[0] < end and shift < 64:
        byte = p[0][0]
        value |= <unsigned long long>(byte & 0x7f) << shift
        shift += 7
        p[0] += 1
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
