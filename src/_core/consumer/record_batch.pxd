# RecordBatch: rows of one arena for Python and Arrow. thread: any (immutable).


cdef class RecordBatch:
    # thread: any (immutable)
    cdef ArrowSource source
    cdef Columns* columns       # a reference
    cdef int32_t start
    cdef int32_t end
    cdef bint _headers

    cdef void look_into(self, Columns* columns) noexcept
    cdef size_t run_of(self, int32_t row) noexcept nogil
    cdef Message message_at(self, int32_t row)
    cdef list messages(self, int32_t row, int32_t end)
    cdef RecordBatch slice(self, int32_t start, int32_t end)


# Return an optional package; ImportError states how to install it for a method.
cdef object needed(str name, str method, str remedy)
cdef RecordBatch make_batch(Columns* columns, int32_t start, int32_t end)
