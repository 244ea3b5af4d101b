"""Owns: the Arrow schema of a record batch, the rules for a requested schema, the struct array around the columns, and
the stream of this array.

thread: A; the callbacks of exported structs on any thread. Never: touches Python, keeps a part of a requested schema.

A requested schema can select columns by name, order them, and request another Arrow type for a column. Names are
compared without case and underscores, so that Spark's `timestampType` is our `timestamp_type`.
"""

cdef extern from "records/arrow_c.hpp" nogil:
    enum:
        ARROW_FLAG_NULLABLE


cdef extern from "records/arrow_c.hpp" namespace "kc" nogil:
    cdef cppclass SchemaParts:
        SchemaParts()
        string format
        string name
        vector[ArrowSchema*] children

    cdef cppclass StreamParts:
        StreamParts()
        ArrowSource source
        ArrowField root
        bint ended
        string error


# ---- the default schema

cdef const char* column_name(int column) noexcept nogil:
    if column == COLUMN_TOPIC:
        return b"topic"
    if column == COLUMN_PARTITION:
        return b"partition"
    if column == COLUMN_OFFSET:
        return b"offset"
    if column == COLUMN_TIMESTAMP:
        return b"timestamp"
    if column == COLUMN_TIMESTAMP_TYPE:
        return b"timestamp_type"
    if column == COLUMN_LEADER_EPOCH:
        return b"leader_epoch"
    if column == COLUMN_KEY:
        return b"key"
    if column == COLUMN_VALUE:
        return b"value"
    return b"headers"


cdef const char* default_format(int column) noexcept nogil:
    if column == COLUMN_TOPIC or column == COLUMN_PARTITION or column == COLUMN_LEADER_EPOCH:
        return b"i"
    if column == COLUMN_OFFSET:
        return b"l"
    if column == COLUMN_TIMESTAMP:
        return b"tsm:UTC"
    if column == COLUMN_TIMESTAMP_TYPE:
        return b"c"
    if column == COLUMN_HEADERS:
        return b"+l"
    return b"vz"


cdef ArrowField make_field(int column, const char* name, const char* format, bint nullable) noexcept nogil:
    cdef ArrowField field
    field.column = column
    field.name.assign(name)
    field.format.assign(format)
    field.nullable = nullable
    return field


cdef ArrowField default_field(int column) noexcept nogil:
    cdef ArrowField field = make_field(column, column_name(column), default_format(column),
                                       column == COLUMN_KEY or column == COLUMN_VALUE)
    cdef ArrowField item
    if column == COLUMN_TOPIC:
        field.dictionary.assign(b"u")
    if column == COLUMN_HEADERS:
        item = make_field(COLUMN_NONE, b"item", b"+s", False)
        item.children.push_back(make_field(COLUMN_NONE, b"key", b"u", False))
        item.children.push_back(make_field(COLUMN_NONE, b"value", b"vz", True))
        field.children.push_back(item)
    return field


# ---- the requested schema

cdef bint same_name(const char* a, const char* b) noexcept nogil:
    cdef char x, y
    while True:
        while a[0] == b'_':
            a += 1
        while b[0] == b'_':
            b += 1
        x = a[0] | 0x20 if b'A' <= a[0] <= b'Z' else a[0]
        y = b[0] | 0x20 if b'A' <= b[0] <= b'Z' else b[0]
        if x != y:
            return False
        if x == 0:
            return True
        a += 1
        b += 1


cdef int find_column(const char* name) noexcept nogil:
    cdef int column
    for column in range(COLUMN_COUNT):
        if same_name(name, column_name(column)):
            return column
    return COLUMN_NONE


cdef bint one_of(const char* format, const char* a, const char* b, const char* c) noexcept nogil:
    return strcmp(format, a) == 0 or (b != NULL and strcmp(format, b) == 0) or (c != NULL and strcmp(format, c) == 0)


cdef bint can_make(int column, const ArrowSchema* wanted) noexcept nogil:
    cdef const char* format = wanted.format
    if column == COLUMN_TOPIC:
        if wanted.dictionary != NULL:
            return one_of(format, b"i", NULL, NULL) and one_of(wanted.dictionary.format, b"u", NULL, NULL)
        return one_of(format, b"u", b"U", NULL)
    if wanted.dictionary != NULL:
        return False
    if column == COLUMN_TIMESTAMP:  # any zone is allowed: it affects only the display. No zone would mean local time.
        return (strncmp(format, b"tsm:", 4) == 0 or strncmp(format, b"tsu:", 4) == 0) and format[4] != 0
    if column == COLUMN_TIMESTAMP_TYPE:
        return one_of(format, b"c", b"i", NULL)
    if column == COLUMN_KEY or column == COLUMN_VALUE:
        return one_of(format, b"vz", b"z", b"Z")
    if column == COLUMN_HEADERS:
        return one_of(format, b"+l", NULL, NULL) and wanted.n_children == 1
    return one_of(format, default_format(column), NULL, NULL)


cdef Status cannot(const ArrowSchema* wanted, const char* column) noexcept nogil:
    return Status(ERR_INVALID_ARG, formatted(b"column %s: cannot be exported as Arrow type '%s'%s", column,
                                             wanted.format, dictionary_note(wanted)))


cdef const char* dictionary_note(const ArrowSchema* wanted) noexcept nogil:
    if wanted.dictionary != NULL:
        return b" with a dictionary"
    return b""


cdef const char* name_of(const ArrowSchema* schema) noexcept nogil:
    if schema.name == NULL:
        return b""
    return schema.name


cdef ArrowField follow(int column, const ArrowSchema* wanted) noexcept nogil:
    cdef ArrowField field = make_field(column, name_of(wanted), wanted.format,
                                       (wanted.flags & ARROW_FLAG_NULLABLE) != 0)
    if wanted.dictionary != NULL:
        field.dictionary.assign(wanted.dictionary.format)
    return field


cdef Status plan_headers(const ArrowSchema* wanted, ArrowField* field) noexcept nogil:
    """Check that the list's item is a struct of a text and a binary, with any names."""
    cdef const ArrowSchema* item = wanted.children[0]
    cdef ArrowField entry = follow(COLUMN_NONE, item)
    if strcmp(item.format, b"+s") != 0 or item.n_children != 2:
        return cannot(item, b"headers (item)")
    if item.children[0].dictionary != NULL or not one_of(item.children[0].format, b"u", b"U", NULL):
        return cannot(item.children[0], b"headers (key)")
    if item.children[1].dictionary != NULL or not one_of(item.children[1].format, b"vz", b"z", b"Z"):
        return cannot(item.children[1], b"headers (value)")
    entry.children.push_back(follow(COLUMN_NONE, item.children[0]))
    entry.children.push_back(follow(COLUMN_NONE, item.children[1]))
    field.children.push_back(entry)
    return Status()


cdef Status plan(const ArrowSource* source, const ArrowSchema* requested, ArrowField* root) noexcept nogil:
    cdef const ArrowSchema* wanted
    cdef ArrowField field
    cdef Status status
    cdef int column
    cdef int64_t i
    root[0] = make_field(COLUMN_NONE, b"", b"+s", False)
    if requested == NULL:
        for column in range(COLUMN_COUNT if source.with_headers else COLUMN_HEADERS):
            root.children.push_back(default_field(column))
        return status
    if strcmp(requested.format, b"+s") != 0:
        return Status(ERR_INVALID_ARG, formatted(b"records can only be exported as a struct, not as Arrow type '%s'",
                                                 requested.format))
    for i in range(requested.n_children):
        wanted = requested.children[i]
        column = find_column(name_of(wanted))
        if column == COLUMN_NONE:
            return Status(ERR_INVALID_ARG, formatted(b"column %s: records have no such column", name_of(wanted)))
        status = requested_field(column, wanted, &field)
        if not status.ok():
            return status
        root.children.push_back(field)
    return status


cdef Status requested_field(int column, const ArrowSchema* wanted, ArrowField* out) noexcept nogil:
    if not can_make(column, wanted):
        return cannot(wanted, name_of(wanted))
    out[0] = follow(column, wanted)
    if column == COLUMN_HEADERS:
        return plan_headers(wanted, out)
    return Status()


# ---- schema

cdef void release_schema(ArrowSchema* schema) noexcept nogil:
    cdef SchemaParts* parts = <SchemaParts*>schema.private_data
    cdef size_t i
    for i in range(parts.children.size()):
        if parts.children[i].release != NULL:
            parts.children[i].release(parts.children[i])
        free(parts.children[i])
    if schema.dictionary != NULL:
        if schema.dictionary.release != NULL:
            schema.dictionary.release(schema.dictionary)
        free(schema.dictionary)
    del parts
    schema.private_data = NULL
    schema.release = NULL


cdef void open_schema(ArrowSchema* out, const string& name, const string& format, bint nullable) noexcept nogil:
    cdef SchemaParts* parts = new SchemaParts()
    memset(out, 0, sizeof(ArrowSchema))
    parts.name = name
    parts.format = format
    out.name = parts.name.c_str()
    out.format = parts.format.c_str()
    out.flags = ARROW_FLAG_NULLABLE if nullable else 0
    out.private_data = parts
    out.release = release_schema


cdef ArrowSchema* new_schema() noexcept nogil:
    cdef ArrowSchema* schema = <ArrowSchema*>malloc(sizeof(ArrowSchema))
    if schema != NULL:
        memset(schema, 0, sizeof(ArrowSchema))
    return schema


cdef bint fill_schema(const ArrowField* field, ArrowSchema* out) noexcept nogil:
    """Fill `out`. False if memory is out; the caller must release `out` even then."""
    cdef SchemaParts* parts
    cdef ArrowSchema* child
    cdef string unnamed
    cdef size_t i
    open_schema(out, field.name, field.format, field.nullable)
    parts = <SchemaParts*>out.private_data
    if not field.dictionary.empty():
        out.dictionary = new_schema()
        if out.dictionary == NULL:
            return False
        open_schema(out.dictionary, unnamed, field.dictionary, False)
    for i in range(field.children.size()):
        child = new_schema()
        if child == NULL:
            return False
        parts.children.push_back(child)
        out.children = parts.children.data()
        out.n_children = <int64_t>parts.children.size()
        if not fill_schema(&field.children[i], child):
            return False
    return True


cdef Status export_schema(const ArrowSource* source, const ArrowSchema* requested, ArrowSchema* out) noexcept nogil:
    cdef ArrowField root
    cdef Status status = plan(source, requested, &root)
    out.release = NULL
    if status.ok() and not fill_schema(&root, out):
        status = out_of_memory()
        out.release(out)
    return status


# ---- array

cdef Status fill_array(const ArrowSource* source, const ArrowField* root, ArrowArray* out) noexcept nogil:
    cdef ArrowArray* child
    cdef Status status
    cdef size_t i
    open_array(out, source.row_end - source.row_start, 0, 0, NULL)
    add_buffer(out, NULL)
    for i in range(root.children.size()):
        child = add_child(out)
        if child == NULL:
            return out_of_memory()
        status = export_column(source, &root.children[i], child)
        if not status.ok():
            return status
    return status


cdef Status export_array(const ArrowSource* source, const ArrowSchema* requested, ArrowArray* out) noexcept nogil:
    cdef ArrowField root
    cdef Status status = plan(source, requested, &root)
    out.release = NULL
    if not status.ok():
        return status
    status = fill_array(source, &root, out)
    if not status.ok():
        out.release(out)
    return status


# ---- stream

cdef int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept nogil:
    cdef StreamParts* parts = <StreamParts*>stream.private_data
    if fill_schema(&parts.root, out):
        return 0
    out.release(out)
    parts.error = out_of_memory().detail
    return ENOMEM


cdef int stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept nogil:
    """Return the array at the first call, then a released array (the end)."""
    cdef StreamParts* parts = <StreamParts*>stream.private_data
    cdef Status status
    memset(out, 0, sizeof(ArrowArray))
    if parts.ended:
        return 0
    status = fill_array(&parts.source, &parts.root, out)
    if not status.ok():
        out.release(out)
        parts.error = status.detail
        return EINVAL
    parts.ended = True
    return 0


cdef const char* stream_error(ArrowArrayStream* stream) noexcept nogil:
    cdef StreamParts* parts = <StreamParts*>stream.private_data
    if parts.error.empty():
        return NULL
    return parts.error.c_str()


cdef void release_stream(ArrowArrayStream* stream) noexcept nogil:
    cdef StreamParts* parts = <StreamParts*>stream.private_data
    parts.source.columns.release()
    del parts
    stream.private_data = NULL
    stream.release = NULL


cdef Status export_stream(const ArrowSource* source, const ArrowSchema* requested,
                          ArrowArrayStream* out) noexcept nogil:
    cdef ArrowField root
    cdef Status status = plan(source, requested, &root)
    cdef StreamParts* parts
    out.release = NULL
    if not status.ok():
        return status
    parts = new StreamParts()
    parts.source = source[0]
    parts.source.columns.retain()
    parts.root = root
    out.get_schema = stream_schema
    out.get_next = stream_next
    out.get_last_error = stream_error
    out.release = release_stream
    out.private_data = parts
    return status
