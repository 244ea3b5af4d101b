# Arrow streams over arrays that Python code makes. thread: the taker's; the callbacks take the GIL.

# A capsule of a stream. `schema()` returns a new schema capsule each time; `arrays` yields (schema, array) capsules.
cdef object stream_of(object schema, object arrays)
