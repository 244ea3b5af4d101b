# Arrow streams of arrays that Python code makes. thread: the reader's; the callbacks take the GIL.

# Return the capsule of a stream. `schema()` returns a new schema capsule each time; `arrays` yields (schema, array).
cdef object stream_of(object schema, object arrays)
