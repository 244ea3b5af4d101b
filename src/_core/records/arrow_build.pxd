# Declares the functions that create and release single Arrow arrays. thread: A; release on any thread.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.arrow_export cimport ArrowArray
from kconsumer._core.records.columns cimport Columns

# Initializes an array without buffers; it retains `columns` (may be NULL) until its release.
cdef void open_array(ArrowArray* out, int64_t length, int64_t offset, int64_t null_count,
                     Columns* columns) noexcept nogil
cdef void add_buffer(ArrowArray* array, const void* buffer) noexcept nogil
# Adds a new buffer, which the array owns; NULL if memory is out.
cdef void* own_buffer(ArrowArray* array, size_t bytes) noexcept nogil
# Adds a zeroed child array, which the caller must open; NULL if memory is out.
cdef ArrowArray* add_child(ArrowArray* array) noexcept nogil
# Adds the dictionary: `values` are the strings for the indices in `array`.
cdef Status add_dictionary(ArrowArray* array, const vector[string]& values) noexcept nogil
# Adds the last buffers of a view array: the blocks that its Columns pins, and their sizes. False if memory is out.
cdef bint add_view_buffers(ArrowArray* array) noexcept nogil
cdef Status out_of_memory() noexcept nogil
cdef Status too_long(const string& name) noexcept nogil


cdef inline void put_offset(void* offsets, int64_t i, int64_t value, bint large) noexcept nogil:
    if large:
        (<int64_t*>offsets)[i] = value
    else:
        (<int32_t*>offsets)[i] = <int32_t>value
