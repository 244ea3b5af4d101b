"""Owns: Message, one record (or one consumer error) in confluent_kafka's form.

thread: A. Never: keeps fetched memory for a small record. Key, headers and a value of up to COPIED_VALUE_BYTES are
copied, so that a cache of old messages does not hold the fetcher's blocks. A larger value pins its arena until value()
is called, unless FetchHandler has it copied.

The bytes object of a small value is made immediately: nearly every application asks for it. To make it later, the value
would have to be copied twice.
"""


cdef enum:
    LAZY_KEY = 2
    LAZY_HEADERS = 4
    FETCHED = 8          # not made by Message(): inline_key holds a key, or nothing
    PREFETCHED_ROWS = 8
    # Longer headers get a separate object. A kept message also keeps the shelf with its neighbours' headers.
    SHELVED_HEADERS_BYTES = 500

# thread: A (under the GIL); the bytes after shelved_bytes are free.
cdef HeadersShelf shelf = None
cdef int32_t shelved_bytes = 0


cdef struct MadeByHand:  # fields that only Message() can set
    double latency
    int16_t delivery_count


# A Message contains no cycle unless set_value() and similar methods create one; no_gc keeps poll() off the collector.
# binding(False): CPython calls a plain method descriptor faster than a function object of Cython's. From the format
# "clinic", inspect.signature() reads the arguments.
# Message.__new__() sets all fields to zero, and the result must be a valid Message: so a set bit requests work.
@cython.no_gc
@cython.freelist(4096)
@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Message:
    """Message(topic=None, partition=-1, offset=-1001, key=None, value=None, headers=None, error=None, timestamp=None, \
latency=-1.0, leader_epoch=-1, delivery_count=-1)
--

    A record, or a consumer error: what ``poll()`` and ``consume()`` return. Can be made by hand for tests.

    Args:
        topic: name of the topic.
        partition: number of the partition; negative: none.
        offset: the record's offset; negative: none.
        key, value: what the methods of these names return.
        headers: list of (name, value).
        error: KafkaError of a consumer error.
        timestamp: (type, milliseconds since the epoch).
        latency: seconds from produce() to the broker's answer; negative: none.
        leader_epoch: leader epoch of the record's batch; negative: none.
        delivery_count: how often a share consumer was given the record; 0 or negative: none.
    """

    def __init__(self, topic=None, int32_t partition=-1, int64_t offset=-1001, key=None, value=None, headers=None,
                 error=None, timestamp=None, double latency=-1.0, int32_t leader_epoch=-1, int16_t delivery_count=-1):
        cdef MadeByHand made
        if timestamp is not None and not (isinstance(timestamp, tuple) and len(timestamp) == 2):
            raise TypeError("timestamp must be a tuple of (int, int)")
        self._timestamp_type, self._timestamp = (0, 0) if timestamp is None else timestamp
        self.lazy = 0  # nothing fails from here on
        self._topic = topic
        self._value = value
        self._key = key
        self._headers = headers
        self._error = error
        self._partition = max(partition, -1)
        self._offset = -1001 if offset < 0 else offset
        self._leader_epoch = max(leader_epoch, -1)
        made.latency = -1.0 if latency < 0 else latency
        made.delivery_count = -1 if delivery_count <= 0 else delivery_count
        memcpy(self.inline_key, &made, sizeof(MadeByHand))

    def value(self):
        """The record's value.

        Returns:
            bytes, or None if the record has none; the object set by ``set_value``; for an error its text as bytes.
        """
        if self.lazy & LAZY_VALUE:
            make_value(self)
        return self._value

    def key(self):
        """The record's key: bytes, or None if it has none."""
        if self.lazy & LAZY_KEY:
            make_key(self)
        return self._key

    def headers(self):
        """The record's headers: list of (str, bytes or None) in their order, or None."""
        if self.lazy & LAZY_HEADERS:
            make_headers(self)
        return self._headers

    def deserialized_value(self):
        """The result of value(): a DeserializingConsumer's object, else the bytes."""
        return self.value()

    def deserialized_key(self):
        """The result of key()."""
        return self.key()

    def delivery_count(self):
        """The number of deliveries to a share consumer: int; None in any other consumer."""
        cdef MadeByHand made = made_by_hand(self)
        return None if made.delivery_count <= 0 else made.delivery_count

    def topic(self):
        """The topic's name: str, or None for an error without a topic."""
        return self._topic

    def partition(self):
        """The partition: int, or None for an error without a partition."""
        return None if self._partition < 0 else self._partition

    def offset(self):
        """The record's offset: int; for an error the offset of the error, or None."""
        return None if self._offset < 0 else self._offset

    def leader_epoch(self):
        """The leader epoch of the record's batch (KIP-320): int, or None if unknown."""
        return None if self._leader_epoch < 0 else self._leader_epoch

    def timestamp(self):
        """The timestamp: (type, milliseconds since the epoch).

        type is TIMESTAMP_NOT_AVAILABLE, TIMESTAMP_CREATE_TIME or TIMESTAMP_LOG_APPEND_TIME.
        """
        return (self._timestamp_type, self._timestamp)

    def error(self):
        """None for a record, else the KafkaError."""
        return self._error

    def latency(self):
        """Seconds from produce() to the broker's answer: float.

        None for a consumed message.
        """
        cdef MadeByHand made = made_by_hand(self)
        return None if made.latency < 0 else made.latency

    def set_value(self, value):
        """Replace what value() returns (a deserializer's result)."""
        self._value = value
        self.lazy &= ~LAZY_VALUE

    def set_key(self, key):
        """Replace what key() returns."""
        self._key = key
        self.lazy &= ~LAZY_KEY

    def set_headers(self, headers):
        """Replace what headers() returns."""
        self._headers = headers
        self.lazy &= ~LAZY_HEADERS

    def set_topic(self, topic):
        """Replace what topic() returns."""
        self._topic = topic

    def set_error(self, error):
        """Replace what error() returns."""
        self._error = error

    def __len__(self):
        """Return the length of the value in bytes; 0 without a value."""
        cdef object value
        with cython.critical_section(self):  # make_value() may replace it
            value = self._value
        if isinstance(value, PinnedValue):
            return (<PinnedValue>value).columns.values[(<PinnedValue>value).row].length
        return 0 if value is None else len(value)

    def __bool__(self):
        return True

    def __eq__(self, other):
        cdef Message that
        if self is other:
            return True
        if not isinstance(other, Message):
            return NotImplemented
        that = other
        return (self._partition == that._partition and self._offset == that._offset
                and self._leader_epoch == that._leader_epoch and self._timestamp == that._timestamp
                and self._topic == that._topic and self.value() == that.value() and self.key() == that.key()
                and self.headers() == that.headers() and self._error == that._error)

    __hash__ = None

    @classmethod
    def __class_getitem__(cls, item):
        return GenericAlias(cls, item)

    def __reduce__(self):
        cdef MadeByHand made = made_by_hand(self)
        return (Message, (self._topic, self._partition, self._offset, self.key(), self.value(), self.headers(),
                          self._error, (self._timestamp_type, self._timestamp), made.latency, self._leader_epoch,
                          made.delivery_count))

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
    cdef int lazy = FETCHED
    columns.prefetch(row + PREFETCHED_ROWS)
    message._topic = topic
    message._partition = partition
    message._leader_epoch = leader_epoch
    message._timestamp_type = timestamp_type
    message._offset = columns.offsets[row]
    message._timestamp = columns.timestamps[row]
    if length > COPIED_VALUE_BYTES:
        message._value = pin_value(columns, row)
        lazy |= LAZY_VALUE
    elif length > 0 or not columns.value_is_null(row):
        message._value = PyBytes_FromStringAndSize(<const char*>columns.view_data(columns.values[row]), length)
    length = columns.keys[row].length
    if length > INLINE_KEY_BYTES:
        message._key = PyBytes_FromStringAndSize(<const char*>columns.view_data(columns.keys[row]), length)
    elif length > 0 or not columns.key_is_null(row):
        memcpy(message.inline_key, columns.view_data(columns.keys[row]), length)
        message.key_length = <uint8_t>length
        lazy |= LAZY_KEY
    if columns.headers != NULL and columns.headers[row].count > 0:
        keep_headers(message, columns, &columns.headers[row])
        lazy |= LAZY_HEADERS
    message.lazy = <uint8_t>lazy
    return message


cdef MadeByHand made_by_hand(Message message) noexcept:
    cdef MadeByHand made
    if message.lazy & FETCHED:
        made.latency = made.delivery_count = -1
    else:
        memcpy(&made, message.inline_key, sizeof(MadeByHand))
    return made


cdef PinnedValue pin_value(Columns* columns, int32_t row):
    cdef PinnedValue pinned = PinnedValue.__new__(PinnedValue)
    columns.retain()
    pinned.columns = columns
    pinned.row = row
    return pinned


@cython.no_gc
@cython.freelist(64)
@cython.final
cdef class HeadersShelf:
    """The headers of many records. A separate object per record costs more than a copy."""


cdef int keep_headers(Message message, Columns* columns, HeadersRef* headers) except -1:
    """Copy the headers in wire format.

    Without a GIL they get a separate object, because threads would share the shelf.
    """
    global shelf, shelved_bytes
    cdef const uint8_t* data = columns.buffers[headers.buffer_index].data + headers.offset
    if GIL_DISABLED or headers.length > SHELVED_HEADERS_BYTES:
        message._headers = PyBytes_FromStringAndSize(<const char*>data, headers.length)
        return 0
    if shelf is None or shelved_bytes + headers.length > HEADERS_SHELF_BYTES:
        shelf = HeadersShelf.__new__(HeadersShelf)
        shelved_bytes = 0
    memcpy(shelf.data + shelved_bytes, data, headers.length)
    message._headers = shelf
    message.headers_at = <uint16_t>shelved_bytes
    message.headers_length = <uint16_t>headers.length
    shelved_bytes += headers.length
    return 0


# Without a GIL, several threads may call the three functions below at the same time.

cdef int make_value(Message message) except -1:
    cdef PinnedValue pinned
    cdef Columns* columns
    with cython.critical_section(message):
        if message.lazy & LAZY_VALUE:
            pinned = message._value
            columns = pinned.columns
            message._value = PyBytes_FromStringAndSize(
                <const char*>columns.view_data(columns.values[pinned.row]), columns.values[pinned.row].length)
            message.lazy &= ~LAZY_VALUE
    return 0


cdef int64_t copy_value(Message message) except -1:
    cdef PinnedValue pinned = message._value
    cdef int64_t length = pinned.columns.values[pinned.row].length
    if length > MOST_COPIED_BYTES:
        return 0
    make_value(message)
    return length


cdef int make_key(Message message) except -1:
    with cython.critical_section(message):
        if message.lazy & LAZY_KEY:
            message._key = PyBytes_FromStringAndSize(<const char*>message.inline_key, message.key_length)
            message.lazy &= ~LAZY_KEY
    return 0


cdef int make_headers(Message message) except -1:
    with cython.critical_section(message):
        if message.lazy & LAZY_HEADERS:
            message._headers = headers_of(message)
            message.lazy &= ~LAZY_HEADERS
    return 0


cdef object error_message(object error, object topic, int32_t partition, int64_t offset):
    """Make the Message with which poll() and consume() return a consumer error."""
    return Message(topic=topic, value=error.str().encode(), error=error, partition=partition, offset=offset,
                   timestamp=(0, -1))


cdef list headers_of(Message message):
    cdef object kept = message._headers
    cdef const uint8_t* data
    if isinstance(kept, HeadersShelf):
        data = (<HeadersShelf>kept).data + message.headers_at
        return parse_headers(data, data + message.headers_length)
    data = <const uint8_t*>PyBytes_AS_STRING(kept)
    return parse_headers(data, data + PyBytes_GET_SIZE(kept))


cdef list parse_headers(const uint8_t* p, const uint8_t* end):
    """Parse the headers of a v2 record.

    The decoder has checked their lengths; every read checks them again.
    """
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
    """Read a zigzag varint; stops at the end."""
    cdef unsigned long long value = 0
    cdef int shift = 0
    cdef uint8_t byte = 0x80
    while byte & 0x80 and p[0] < end and shift < 64:
        byte = p[0][0]
        value |= <unsigned long long>(byte & 0x7f) << shift
        shift += 7
        p[0] += 1
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
