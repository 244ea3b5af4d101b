"""Owns: the capsules of Arrow's PyCapsule interface, and the memory of the structs in them.

thread: A, with the GIL. Never: reads a struct, except its release callback.
"""

cdef void free_schema(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(capsule, b"arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void free_array(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(capsule, b"arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef void free_stream(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, b"arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


cdef object schema_capsule(ArrowSchema** out):
    out[0] = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
    if out[0] == NULL:
        raise MemoryError()
    return PyCapsule_New(out[0], b"arrow_schema", <void (*)(object) noexcept>free_schema)


cdef object array_capsule(ArrowArray** out):
    out[0] = <ArrowArray*>calloc(1, sizeof(ArrowArray))
    if out[0] == NULL:
        raise MemoryError()
    return PyCapsule_New(out[0], b"arrow_array", <void (*)(object) noexcept>free_array)


cdef object stream_capsule(ArrowArrayStream** out):
    out[0] = <ArrowArrayStream*>calloc(1, sizeof(ArrowArrayStream))
    if out[0] == NULL:
        raise MemoryError()
    return PyCapsule_New(out[0], b"arrow_array_stream", <void (*)(object) noexcept>free_stream)


cdef const ArrowSchema* schema_in(object capsule) except? NULL:
    if capsule is None:
        return NULL
    return <const ArrowSchema*>PyCapsule_GetPointer(capsule, b"arrow_schema")


cdef ArrowArray* array_in(object capsule) except NULL:
    return <ArrowArray*>PyCapsule_GetPointer(capsule, b"arrow_array")


cdef ArrowArrayStream* stream_in(object capsule) except NULL:
    return <ArrowArrayStream*>PyCapsule_GetPointer(capsule, b"arrow_array_stream")
