"""Owns: creation and release of one exported ArrowArray: its buffers, children, dictionary and reference to Columns.

thread: A; the release callbacks on any thread. Never: touches Python.

Each array retains the Columns separately, because a consumer may move children out and release them one by one.
"""

cdef inline void put_offset(void* offsets, int64_t i, int64_t value, bint large) noexcept nogil:
    if large:
        (<int64_t*>offsets)[i] = value
    else:
        (<int32_t*>offsets)[i] = <int32_t>value


cdef extern from "records/arrow_c.hpp" namespace "kc" nogil:
    cdef cppclass ArrayParts:
        ArrayParts()
        Columns* columns
        vector[const void*] buffers
        vector[void*] owned
        vector[ArrowArray*] children


cdef void release_child(ArrowArray* child) noexcept nogil:
    if child.release != NULL:
        child.release(child)
    free(child)


cdef void release_array(ArrowArray* array) noexcept nogil:
    cdef ArrayParts* parts = <ArrayParts*>array.private_data
    cdef size_t i
    for i in range(parts.children.size()):
        release_child(parts.children[i])
    if array.dictionary != NULL:
        release_child(array.dictionary)
    for i in range(parts.owned.size()):
        free(parts.owned[i])
    if parts.columns != NULL:
        parts.columns.release()
    del parts
    array.private_data = NULL
    array.release = NULL


cdef void open_array(ArrowArray* out, int64_t length, int64_t offset, int64_t null_count,
                     Columns* columns) noexcept nogil:
    cdef ArrayParts* parts = new ArrayParts()
    memset(out, 0, sizeof(ArrowArray))
    out.length = length
    out.offset = offset
    out.null_count = null_count
    out.private_data = parts
    out.release = release_array
    parts.columns = columns
    if columns != NULL:
        columns.retain()


cdef void add_buffer(ArrowArray* array, const void* buffer) noexcept nogil:
    cdef ArrayParts* parts = <ArrayParts*>array.private_data
    parts.buffers.push_back(buffer)
    array.buffers = parts.buffers.data()
    array.n_buffers = <int64_t>parts.buffers.size()


# Adds a new buffer, which the array owns; NULL if memory is out.
cdef void* own_buffer(ArrowArray* array, size_t bytes) noexcept nogil:
    cdef ArrayParts* parts = <ArrayParts*>array.private_data
    cdef void* buffer = malloc(bytes if bytes > 0 else 1)
    if buffer != NULL:
        parts.owned.push_back(buffer)
        add_buffer(array, buffer)
    return buffer


cdef ArrowArray* add_child(ArrowArray* array) noexcept nogil:
    cdef ArrayParts* parts = <ArrayParts*>array.private_data
    cdef ArrowArray* child = <ArrowArray*>malloc(sizeof(ArrowArray))
    if child == NULL:
        return NULL
    memset(child, 0, sizeof(ArrowArray))
    parts.children.push_back(child)
    array.children = parts.children.data()
    array.n_children = <int64_t>parts.children.size()
    return child


cdef Status add_dictionary(ArrowArray* array, const vector[string]& values) noexcept nogil:
    cdef ArrowArray* out = <ArrowArray*>malloc(sizeof(ArrowArray))
    cdef size_t bytes = 0
    cdef size_t i
    cdef int32_t* offsets
    cdef char* data
    if out == NULL:
        return out_of_memory()
    memset(out, 0, sizeof(ArrowArray))
    array.dictionary = out
    open_array(out, <int64_t>values.size(), 0, 0, NULL)
    add_buffer(out, NULL)
    for i in range(values.size()):
        bytes += values[i].size()
    offsets = <int32_t*>own_buffer(out, (values.size() + 1) * 4)
    data = <char*>own_buffer(out, bytes)
    if offsets == NULL or data == NULL:
        return out_of_memory()
    bytes = 0
    for i in range(values.size()):
        offsets[i] = <int32_t>bytes
        memcpy(data + bytes, values[i].data(), values[i].size())
        bytes += values[i].size()
    offsets[values.size()] = <int32_t>bytes
    return Status()


# Adds the last buffers of a view array: the blocks that its Columns pins, and their sizes. False if memory is out.
cdef bint add_view_buffers(ArrowArray* array) noexcept nogil:
    """Add the blocks into which the views point, then their sizes."""
    cdef Columns* columns = (<ArrayParts*>array.private_data).columns
    cdef size_t count = columns.buffers.size()
    cdef int64_t* sizes = <int64_t*>malloc((count + 1) * 8)
    cdef size_t i
    if sizes == NULL:
        return False
    (<ArrayParts*>array.private_data).owned.push_back(sizes)
    for i in range(count):
        add_buffer(array, columns.buffers[i].data)
        sizes[i] = <int64_t>columns.buffer_bytes[i]
    add_buffer(array, sizes)
    return True


cdef Status out_of_memory() noexcept nogil:
    return Status(ERR_CRIT_SYS_RESOURCE, formatted(b"out of memory"))


cdef Status too_long(const string& name) noexcept nogil:
    return Status(ERR_INVALID_ARG, formatted(b"column %s: more than 2 GiB do not fit 32-bit offsets: "
                                             b"request a large or view type, or fewer records", name.c_str()))
