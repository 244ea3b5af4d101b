"""Owns: ValueSource, the binary values of many rows for a decoder: from a column of a batch, an Arrow array or a list.

thread: A. Never: copies an Arrow array with one chunk, knows a format.
"""

cdef bint is_one_of(const char* format, const char* a, const char* b) noexcept nogil:
    return strcmp(format, a) == 0 or strcmp(format, b) == 0


cdef int look_into(RowSource* rows, const ArrowSchema* schema, const ArrowArray* array) except -1:
    """Set `rows` to the buffers of a binary or text array."""
    cdef int64_t i, count
    rows.length = array.length
    rows.offset = array.offset
    if schema.dictionary != NULL:
        raise TypeError("cannot decode a dictionary-encoded array: cast it to binary first")
    if array.null_count != 0:
        rows.validity = <const uint8_t*>array.buffers[0]
    if is_one_of(schema.format, b"vz", b"vu"):
        rows.views = <const BinaryView*>array.buffers[1]
        count = array.n_buffers - 3
        for i in range(count):
            rows.buffers.push_back(<const uint8_t*>array.buffers[2 + i])
            rows.buffer_bytes.push_back(<size_t>(<const int64_t*>array.buffers[2 + count])[i])
    elif is_one_of(schema.format, b"z", b"u") or is_one_of(schema.format, b"Z", b"U"):
        rows.is_large = is_one_of(schema.format, b"Z", b"U")
        rows.offsets = array.buffers[1]
        rows.data = <const uint8_t*>array.buffers[2]
        if rows.length == 0:
            return 0
        if rows.offsets == NULL:
            raise ValueError("cannot decode an array without offsets")
        if rows.data == NULL:  # every row is empty or null
            rows.data = <const uint8_t*>rows.offsets
    else:
        raise TypeError(f"cannot decode an Arrow array of type {schema.format.decode()!r}: "
                        "expected binary, large_binary, binary_view or text")
    return 0


cdef int copy_array(ValueSource source, const ArrowSchema* schema, const ArrowArray* array) except -1:
    cdef RowSource part
    cdef int64_t i
    cdef bint copied = True
    look_into(&part, schema, array)
    for i in range(part.length):
        copied = copied and source.rows.copy(part.row(i))
    if not copied:
        raise MemoryError()
    return 0


cdef int copy_stream(ValueSource source, ArrowArrayStream* stream) except -1:
    """Copy the rows of all chunks."""
    cdef ArrowSchema schema
    cdef ArrowArray array
    if stream.get_schema(stream, &schema) != 0:
        raise ValueError(stream_error(stream))
    try:
        while True:
            if stream.get_next(stream, &array) != 0:
                raise ValueError(stream_error(stream))
            if array.release == NULL:
                return 0
            try:
                copy_array(source, &schema, &array)
            finally:
                array.release(&array)
    finally:
        schema.release(&schema)


cdef str stream_error(ArrowArrayStream* stream):
    cdef const char* text = stream.get_last_error(stream)
    return "the Arrow stream reported an error without a text" if text == NULL else text.decode("utf-8", "replace")


@cython.final
cdef class ValueSource:
    """The binary values that a decoder reads; a value can be null.

    Args:
        values: an object with ``__arrow_c_array__`` (binary, large_binary, binary_view or text), one with
            ``__arrow_c_stream__`` (its chunks are copied), or an iterable of bytes and None (copied).

    Raises:
        TypeError: `values` has another type, or elements of another type.
    """

    def __init__(self, values):
        if hasattr(values, "__arrow_c_array__"):
            schema, array = values.__arrow_c_array__()
            look_into(&self.rows, schema_in(schema), array_in(array))
            self.owner = (schema, array)
        elif hasattr(values, "__arrow_c_stream__"):
            stream = values.__arrow_c_stream__()
            copy_stream(self, stream_in(stream))
            self.finish()
        elif isinstance(values, (bytes, str, bytearray, memoryview)):
            raise TypeError(f"expected an Arrow array or a list of bytes, not {type(values).__name__}")
        else:
            self.copy_all(values)
            self.finish()

    def copy_all(self, values):
        cdef bint copied
        for value in values:
            if value is None:
                copied = self.rows.copy_null()
            elif type(value) is bytes:
                copied = self.rows.copy(<const uint8_t*>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value))
            elif isinstance(value, (bytes, bytearray, memoryview)):
                whole = bytes(value)
                copied = self.rows.copy(<const uint8_t*>PyBytes_AS_STRING(whole), <size_t>PyBytes_GET_SIZE(whole))
            else:
                raise TypeError(f"expected bytes or None, not {type(value).__name__}")
            if not copied:
                raise MemoryError()

    def finish(self):
        if not self.rows.finish():
            raise MemoryError()

    def schema_headers(self):
        """Return each value of the schema header once: list of bytes."""
        cdef list found = []
        cdef const string* value
        cdef size_t i
        for i in range(self.rows.schema_headers.values.size()):
            value = &self.rows.schema_headers.values[i]
            found.append(value.data()[:value.size()])
        return found

    def values(self, int64_t most):
        """Return the first `most` values: list of bytes and None."""
        cdef RowBytes row
        cdef list found = []
        cdef int64_t i
        for i in range(min(most, self.rows.length)):
            row = self.rows.row(i)
            found.append(None if row.begin == NULL else PyBytes_FromStringAndSize(<const char*>row.begin,
                                                                                  row.end - row.begin))
        return found

    def __cinit__(self):
        self.topics = ()

    def __len__(self):
        return self.rows.length
