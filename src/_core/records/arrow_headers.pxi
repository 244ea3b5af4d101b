"""Owns: the headers column, list<struct<key: utf8, value: binary>>, made from the raw headers that Columns refer to.

thread: A. Never: touches Python, assumes that a header key is UTF-8. The record walk has already checked the lengths.

For a record without headers the value is null if the schema allows null lists, as in Spark's own source; otherwise it
is an empty list.
"""

cdef struct Totals:
    int64_t headers
    int64_t key_bytes
    int64_t value_bytes
    int64_t null_values


cdef struct Output:
    # positions in the buffers that export_row_headers() fills
    int64_t header
    void* key_offsets
    uint8_t* key_data
    int64_t key_at
    bint large_keys
    BinaryView* views
    void* value_offsets
    uint8_t* value_data
    int64_t value_at
    bint large_values
    uint8_t* value_bits


cdef inline int sequence_length(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Return the length of the UTF-8 sequence at p; 0 if it is not valid.

    Overlong forms and surrogates are not valid.
    """
    cdef uint8_t low = 0x80
    cdef uint8_t high = 0xbf
    cdef int n, i
    if p[0] < 0x80:
        return 1
    if p[0] < 0xc2 or p[0] > 0xf4:
        return 0
    n = 2 if p[0] < 0xe0 else (3 if p[0] < 0xf0 else 4)
    if end - p < n:
        return 0
    if p[0] == 0xe0:
        low = 0xa0
    elif p[0] == 0xed:
        high = 0x9f
    elif p[0] == 0xf0:
        low = 0x90
    elif p[0] == 0xf4:
        high = 0x8f
    if p[1] < low or p[1] > high:
        return 0
    for i in range(2, n):
        if p[i] & 0xc0 != 0x80:
            return 0
    return n


cdef int64_t repaired_utf8(const uint8_t* p, int32_t length, uint8_t* out) noexcept nogil:
    """Return the length of the text with each bad byte replaced by U+FFFD.

    If `out` is not NULL, write the text there.
    """
    cdef const uint8_t* end = p + length
    cdef int64_t at = 0
    cdef int n
    while p < end:
        n = sequence_length(p, end)
        if out != NULL:
            if n > 0:
                memcpy(out + at, p, n)
            else:
                out[at] = 0xef
                out[at + 1] = 0xbf
                out[at + 2] = 0xbd
        at += n if n > 0 else 3
        p += n if n > 0 else 1
    return at


cdef void count_headers(const Columns* columns, const HeadersRef* ref, Totals* totals) noexcept nogil:
    cdef const uint8_t* p = columns.buffers[ref.buffer_index].data + ref.offset
    cdef const uint8_t* end = p + ref.length
    cdef int32_t length = 0
    cdef int32_t _i
    totals.headers += ref.count
    for _i in range(ref.count):
        read_varint(p, end, length)
        totals.key_bytes += repaired_utf8(p, length, NULL)
        p += length
        read_varint(p, end, length)
        if length < 0:
            totals.null_values += 1
        else:
            totals.value_bytes += length
            p += length


cdef void put_value(Output* out, const uint8_t* p, int32_t length, int32_t buffer_index, const uint8_t* origin,
                    const uint8_t* end) noexcept nogil:
    cdef bint null = length < 0
    if null:
        length = 0
        out.value_bits[out.header >> 3] &= <uint8_t>~(1 << (out.header & 7))
    if out.views != NULL:
        memset(&out.views[out.header], 0, sizeof(BinaryView))
        put_view(&out.views[out.header], p, length, buffer_index, origin, end)
        return
    put_offset(out.value_offsets, out.header, out.value_at, out.large_values)
    memcpy(out.value_data + out.value_at, p, <size_t>length)
    out.value_at += length


cdef void export_row_headers(const Columns* columns, const HeadersRef* ref, Output* out) noexcept nogil:
    cdef const uint8_t* origin = columns.buffers[ref.buffer_index].data
    cdef const uint8_t* p = origin + ref.offset
    cdef const uint8_t* end = p + ref.length
    cdef int32_t length = 0
    cdef int32_t _i
    for _i in range(ref.count):
        read_varint(p, end, length)
        put_offset(out.key_offsets, out.header, out.key_at, out.large_keys)
        out.key_at += repaired_utf8(p, length, out.key_data + out.key_at)
        p += length
        read_varint(p, end, length)
        put_value(out, p, length, ref.buffer_index, origin, end)
        if length > 0:
            p += length
        out.header += 1


cdef Status open_keys(const ArrowField* field, const Totals* totals, ArrowArray* array, Output* out) noexcept nogil:
    open_array(array, totals.headers, 0, 0, NULL)
    out.large_keys = field.format == b"U"
    if totals.key_bytes > INT32_MAX and not out.large_keys:
        return too_long(field.name)
    add_buffer(array, NULL)
    out.key_offsets = own_buffer(array, <size_t>(totals.headers + 1) * (8 if out.large_keys else 4))
    out.key_data = <uint8_t*>own_buffer(array, <size_t>totals.key_bytes)
    if out.key_offsets == NULL or out.key_data == NULL:
        return out_of_memory()
    return Status()


cdef Status open_values(Columns* columns, const ArrowField* field, const Totals* totals, ArrowArray* array,
                        Output* out) noexcept nogil:
    cdef size_t bits = <size_t>(totals.headers + 7) / 8
    open_array(array, totals.headers, 0, totals.null_values, columns)
    if totals.null_values > 0:
        if not field.nullable:
            return Status(ERR_INVALID_ARG, formatted(
                b"column %s: the requested schema does not allow nulls, but the null count is %lld", field.name.c_str(),
                <long long>totals.null_values))
        out.value_bits = <uint8_t*>own_buffer(array, bits)
        if out.value_bits == NULL:
            return out_of_memory()
        memset(out.value_bits, 0xff, bits)
    else:
        add_buffer(array, NULL)
    if field.format == b"vz":
        out.views = <BinaryView*>own_buffer(array, <size_t>totals.headers * sizeof(BinaryView))
        return Status() if out.views != NULL and add_view_buffers(array) else out_of_memory()
    out.large_values = field.format == b"Z"
    if totals.value_bytes > INT32_MAX and not out.large_values:
        return too_long(field.name)
    out.value_offsets = own_buffer(array, <size_t>(totals.headers + 1) * (8 if out.large_values else 4))
    out.value_data = <uint8_t*>own_buffer(array, <size_t>totals.value_bytes)
    if out.value_offsets == NULL or out.value_data == NULL:
        return out_of_memory()
    return Status()


cdef bint has_headers(const Columns* columns, int32_t row) noexcept nogil:
    return columns.headers != NULL and columns.headers[row].count > 0


cdef bint put_nulls(const ArrowSource* source, ArrowArray* out) noexcept nogil:
    """Add the validity bitmap: a row without headers is null. False if memory is out."""
    cdef size_t bytes = <size_t>(out.length + 7) / 8
    cdef uint8_t* bits
    cdef int32_t row
    cdef int64_t at
    for row in range(source.row_start, source.row_end):
        out.null_count += not has_headers(source.columns, row)
    if out.null_count == 0:
        add_buffer(out, NULL)
        return True
    bits = <uint8_t*>own_buffer(out, bytes)
    if bits == NULL:
        return False
    memset(bits, 0, bytes)
    for at in range(out.length):
        if has_headers(source.columns, source.row_start + <int32_t>at):
            bits[at >> 3] |= <uint8_t>(1 << (at & 7))
    return True


cdef Status open_list(const ArrowSource* source, const ArrowField* field, ArrowArray* out, Totals* totals,
                      int32_t** offsets) noexcept nogil:
    cdef Columns* columns = source.columns
    cdef int64_t n = source.row_end - source.row_start
    cdef int32_t row
    open_array(out, n, 0, 0, NULL)
    if not field.nullable:
        add_buffer(out, NULL)
    elif not put_nulls(source, out):
        return out_of_memory()
    offsets[0] = <int32_t*>own_buffer(out, <size_t>(n + 1) * 4)
    if offsets[0] == NULL:
        return out_of_memory()
    for row in range(source.row_start, source.row_end):
        offsets[0][row - source.row_start] = <int32_t>totals.headers
        if has_headers(columns, row):
            count_headers(columns, &columns.headers[row], totals)
            if totals.headers > INT32_MAX:
                return too_long(field.name)
    offsets[0][n] = <int32_t>totals.headers
    return Status()


# Fills `out` with list<struct<key, value>>. In a key that is not UTF-8, U+FFFD replaces each bad byte, as in Java.
cdef Status export_headers(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil:
    cdef Columns* columns = source.columns
    cdef const ArrowField* item = &field.children[0]
    cdef ArrowArray* entries
    cdef ArrowArray* keys
    cdef ArrowArray* values
    cdef int32_t* offsets = NULL
    cdef Totals totals
    cdef Output output
    cdef int32_t row
    cdef Status status
    memset(&totals, 0, sizeof(Totals))
    memset(&output, 0, sizeof(Output))
    status = open_list(source, field, out, &totals, &offsets)
    if not status.ok():
        return status
    entries = add_child(out)
    if entries == NULL:
        return out_of_memory()
    open_array(entries, totals.headers, 0, 0, NULL)
    add_buffer(entries, NULL)
    keys = add_child(entries)
    values = add_child(entries)
    if keys == NULL or values == NULL:
        return out_of_memory()
    status = open_keys(&item.children[0], &totals, keys, &output)
    if status.ok():
        status = open_values(columns, &item.children[1], &totals, values, &output)
    if not status.ok():
        return status
    if totals.headers > 0:
        for row in range(source.row_start, source.row_end):
            if columns.headers[row].count > 0:
                export_row_headers(columns, &columns.headers[row], &output)
    put_offset(output.key_offsets, totals.headers, output.key_at, output.large_keys)
    if output.views == NULL:
        put_offset(output.value_offsets, totals.headers, output.value_at, output.large_values)
    return status
