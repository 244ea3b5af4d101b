"""Owns: the Arrow arrays of a slice of Columns: zero-copy if Columns has Arrow's layout, otherwise built or copied.

thread: A. Never: touches Python, changes the Columns it exports.
"""

# ---- columns that are the same within a run

cdef void fill_int32(const ArrowSource* source, const vector[int32_t]* by_run, int32_t* out) noexcept nogil:
    """Write the value of each row's run: `by_run`, or the leader epoch if NULL."""
    cdef const Run* run
    cdef int32_t row, end, value
    cdef size_t i
    for i in range(source.columns.runs.size()):
        run = &source.columns.runs[i]
        row = run.row_start if run.row_start > source.row_start else source.row_start
        end = run.row_end if run.row_end < source.row_end else source.row_end
        value = run.leader_epoch
        if by_run != NULL:
            value = by_run[0][i]
        for row in range(row, end):
            out[row - source.row_start] = value


cdef Status export_int32(const ArrowSource* source, const vector[int32_t]* by_run, ArrowArray* out) noexcept nogil:
    cdef int64_t n = source.row_end - source.row_start
    cdef void* buffer
    open_array(out, n, 0, 0, NULL)
    add_buffer(out, NULL)
    buffer = own_buffer(out, <size_t>n * 4)
    if buffer == NULL:
        return out_of_memory()
    fill_int32(source, by_run, <int32_t*>buffer)
    return Status()


cdef Status export_timestamp_type(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil:
    cdef int64_t n = source.row_end - source.row_start
    cdef bint wide = field.format == b"i"
    cdef const Run* run
    cdef int32_t row, end
    cdef size_t i
    cdef void* buffer
    open_array(out, n, 0, 0, NULL)
    add_buffer(out, NULL)
    buffer = own_buffer(out, <size_t>n * (4 if wide else 1))
    if buffer == NULL:
        return out_of_memory()
    for i in range(source.columns.runs.size()):
        run = &source.columns.runs[i]
        row = run.row_start if run.row_start > source.row_start else source.row_start
        end = run.row_end if run.row_end < source.row_end else source.row_end
        for row in range(row, end):
            if wide:
                (<int32_t*>buffer)[row - source.row_start] = run.timestamp_type
            else:
                (<int8_t*>buffer)[row - source.row_start] = run.timestamp_type
    return Status()


# ---- topic

cdef Status export_topic_text(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil:
    """Write the topic's name for every row."""
    cdef int64_t n = source.row_end - source.row_start
    cdef bint large = field.format == b"U"
    cdef int64_t bytes = 0
    cdef const string* name
    cdef const Run* run
    cdef int32_t row, end
    cdef size_t i
    cdef void* offsets
    cdef char* data
    for i in range(source.columns.runs.size()):
        run = &source.columns.runs[i]
        row = run.row_start if run.row_start > source.row_start else source.row_start
        end = run.row_end if run.row_end < source.row_end else source.row_end
        if row < end:
            bytes += <int64_t>(end - row) * <int64_t>source.topics[source.run_topics[i]].size()
    open_array(out, n, 0, 0, NULL)
    if bytes > INT32_MAX and not large:
        return too_long(field.name)
    add_buffer(out, NULL)
    offsets = own_buffer(out, <size_t>(n + 1) * (8 if large else 4))
    data = <char*>own_buffer(out, <size_t>bytes)
    if offsets == NULL or data == NULL:
        return out_of_memory()
    bytes = 0
    for i in range(source.columns.runs.size()):
        run = &source.columns.runs[i]
        row = run.row_start if run.row_start > source.row_start else source.row_start
        end = run.row_end if run.row_end < source.row_end else source.row_end
        if row >= end:
            continue
        name = &source.topics[source.run_topics[i]]
        for row in range(row, end):
            put_offset(offsets, row - source.row_start, bytes, large)
            memcpy(data + bytes, name.data(), name.size())
            bytes += <int64_t>name.size()
    put_offset(offsets, n, bytes, large)
    return Status()


cdef Status export_topic(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil:
    cdef Status status
    if field.dictionary.empty():
        return export_topic_text(source, field, out)
    status = export_int32(source, &source.run_topics, out)
    if not status.ok():
        return status
    return add_dictionary(out, source.topics)


# ---- offset and timestamp

cdef int64_t array_offset(const ArrowSource* source) noexcept nogil:
    """Return the offset of the slice; 0 if it is empty.

    pyarrow assumes that all buffers of an empty array are empty.
    """
    return source.row_start if source.row_start < source.row_end else 0


cdef Status export_int64(const ArrowSource* source, const int64_t* values, ArrowArray* out) noexcept nogil:
    open_array(out, source.row_end - source.row_start, array_offset(source), 0, source.columns)
    add_buffer(out, NULL)
    add_buffer(out, values)
    return Status()


cdef Status export_timestamp(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil:
    cdef int64_t n = source.row_end - source.row_start
    cdef const int64_t* values = source.columns.timestamps + source.row_start
    cdef int64_t* buffer
    cdef int64_t i
    if field.format.data()[2] == b'm':
        return export_int64(source, source.columns.timestamps, out)
    open_array(out, n, 0, 0, NULL)
    add_buffer(out, NULL)
    buffer = <int64_t*>own_buffer(out, <size_t>n * 8)
    if buffer == NULL:
        return out_of_memory()
    for i in range(n):
        if values[i] > INT64_MAX / 1000 or values[i] < INT64_MIN / 1000:
            return Status(ERR_INVALID_ARG, formatted(
                b"column %s: the timestamp %lld ms of the record at offset %lld is out of range for microseconds",
                field.name.c_str(), <long long>values[i],
                <long long>source.columns.offsets[source.row_start + i]))
        buffer[i] = values[i] * 1000
    return Status()


# ---- key and value

cdef int64_t count_nulls(const uint8_t* validity, int32_t start, int32_t end) noexcept nogil:
    cdef int64_t nulls = 0
    cdef int32_t row
    for row in range(start, end):
        nulls += not (validity[row >> 3] >> (row & 7) & 1)
    return nulls


cdef Status export_views(const ArrowSource* source, const BinaryView* views, const uint8_t* validity, int64_t nulls,
                         ArrowArray* out) noexcept nogil:
    open_array(out, source.row_end - source.row_start, array_offset(source), nulls, source.columns)
    add_buffer(out, validity if nulls > 0 else NULL)
    add_buffer(out, views)
    return Status() if add_view_buffers(out) else out_of_memory()


cdef Status export_copied(const ArrowSource* source, const ArrowField* field, const BinaryView* views,
                          const uint8_t* validity, int64_t nulls, ArrowArray* out) noexcept nogil:
    """Export a copy as binary or large_binary, for a consumer without views."""
    cdef int64_t n = source.row_end - source.row_start
    cdef bint large = field.format == b"Z"
    cdef int64_t bytes = 0
    cdef int64_t i
    cdef int32_t row
    cdef uint8_t* bits = NULL
    cdef void* offsets
    cdef uint8_t* data
    views += source.row_start
    for i in range(n):
        bytes += views[i].length
    open_array(out, n, 0, nulls, NULL)
    if bytes > INT32_MAX and not large:
        return too_long(field.name)
    if nulls > 0:
        bits = <uint8_t*>own_buffer(out, <size_t>(n + 7) / 8)
        if bits == NULL:
            return out_of_memory()
        memset(bits, 0, <size_t>(n + 7) / 8)
        for i in range(n):
            row = source.row_start + <int32_t>i
            bits[i >> 3] |= <uint8_t>((validity[row >> 3] >> (row & 7) & 1) << (i & 7))
    else:
        add_buffer(out, NULL)
    offsets = own_buffer(out, <size_t>(n + 1) * (8 if large else 4))
    data = <uint8_t*>own_buffer(out, <size_t>bytes)
    if offsets == NULL or data == NULL:
        return out_of_memory()
    bytes = 0
    for i in range(n):
        put_offset(offsets, i, bytes, large)
        memcpy(data + bytes, source.columns.view_data(views[i]), <size_t>views[i].length)
        bytes += views[i].length
    put_offset(offsets, n, bytes, large)
    return Status()


cdef Status export_binary(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil:
    cdef bint key = field.column == COLUMN_KEY
    cdef const BinaryView* views = source.columns.keys if key else source.columns.values
    cdef const uint8_t* validity = source.columns.key_validity if key else source.columns.value_validity
    cdef int64_t nulls = 0
    if (source.columns.key_nulls if key else source.columns.value_nulls) > 0:
        nulls = count_nulls(validity, source.row_start, source.row_end)
    if nulls > 0 and not field.nullable:
        open_array(out, 0, 0, 0, NULL)
        return Status(ERR_INVALID_ARG, formatted(b"column %s: the requested schema does not allow nulls, but the "
                                                 b"null count is %lld", field.name.c_str(), <long long>nulls))
    if field.format == b"vz":
        return export_views(source, views, validity, nulls, out)
    return export_copied(source, field, views, validity, nulls, out)


cdef Status export_column(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil:
    if field.column == COLUMN_TOPIC:
        return export_topic(source, field, out)
    if field.column == COLUMN_PARTITION:
        return export_int32(source, &source.run_partitions, out)
    if field.column == COLUMN_OFFSET:
        return export_int64(source, source.columns.offsets, out)
    if field.column == COLUMN_TIMESTAMP:
        return export_timestamp(source, field, out)
    if field.column == COLUMN_TIMESTAMP_TYPE:
        return export_timestamp_type(source, field, out)
    if field.column == COLUMN_LEADER_EPOCH:
        return export_int32(source, NULL, out)
    if field.column == COLUMN_HEADERS:
        return export_headers(source, field, out)
    return export_binary(source, field, out)
