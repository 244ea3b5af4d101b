"""Owns: an Arrow stream of arrays that Python code makes, one at a time, each on request.

thread: the reader's, which may be unknown to Python: the callbacks take the GIL. Never: makes an array before the
reader requests it, keeps an array that the reader has taken.
"""


cdef extern from "Python.h":
    bint Py_IsInitialized() nogil
    void PyErr_SetInterrupt() nogil


cdef struct StreamState:
    PyObject* schema
    PyObject* arrays
    char* error          # of the last failed call
    bint failed          # an array could not be made: the stream has no further ones, and no regular end


cdef object stream_of(object schema, object arrays):
    cdef ArrowArrayStream* stream = NULL
    capsule = stream_capsule(&stream)
    cdef StreamState* state = <StreamState*>calloc(1, sizeof(StreamState))
    if state == NULL:
        raise MemoryError()
    arrays = iter(arrays)
    Py_INCREF(schema)
    Py_INCREF(arrays)
    state.schema = <PyObject*>schema
    state.arrays = <PyObject*>arrays
    stream.get_schema = stream_schema
    stream.get_next = stream_next
    stream.get_last_error = stream_error
    stream.release = release_stream
    stream.private_data = state
    return capsule


cdef int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept nogil:
    return make_schema(<StreamState*>stream.private_data, out)


cdef int stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept nogil:
    return make_array(<StreamState*>stream.private_data, out)


cdef int make_schema(StreamState* state, ArrowSchema* out) noexcept with gil:
    cdef ArrowSchema* made
    memset(out, 0, sizeof(ArrowSchema))
    try:
        capsule = (<object>state.schema)()
        made = <ArrowSchema*>schema_in(capsule)
        memcpy(out, made, sizeof(ArrowSchema))
        made.release = NULL  # moved
        return 0
    except BaseException as error:
        return keep_error(state, error)


cdef int make_array(StreamState* state, ArrowArray* out) noexcept with gil:
    """Make the next array, or a released one at the end of the stream."""
    cdef ArrowArray* made
    memset(out, 0, sizeof(ArrowArray))
    if state.failed:
        return EIO
    try:
        pair = next(<object>state.arrays, None)
        if pair is not None:
            made = array_in(pair[1])
            memcpy(out, made, sizeof(ArrowArray))
            made.release = NULL  # moved
        return 0
    except BaseException as error:
        state.failed = True
        return keep_error(state, error)


cdef int keep_error(StreamState* state, object error) noexcept:
    free(state.error)
    state.error = NULL
    if isinstance(error, KeyboardInterrupt):
        PyErr_SetInterrupt()  # the reader raises another error, which `except Exception` would take
    try:
        text = f"{type(error).__name__}: {error}".encode("utf-8", "replace").replace(b"\0", b"")
        state.error = strdup(<const char*>text)
    except BaseException:  # raised by str(error): the reader gets an error without a text
        pass
    return EIO


cdef const char* stream_error(ArrowArrayStream* stream) noexcept nogil:
    return (<StreamState*>stream.private_data).error


cdef void release_stream(ArrowArrayStream* stream) noexcept nogil:
    cdef StreamState* state = <StreamState*>stream.private_data
    if Py_IsInitialized():
        drop_references(state)
    free(state.error)
    free(state)
    stream.private_data = NULL
    stream.release = NULL


cdef void drop_references(StreamState* state) noexcept with gil:
    Py_XDECREF(state.schema)
    Py_XDECREF(state.arrays)


def array_stream(schema, arrays):
    """Return the capsule of an Arrow stream.

    Args:
        schema: called for each new schema capsule.
        arrays: iterable of (schema, array) capsules, taken from when the stream is read.
    """
    return stream_of(schema, arrays)
