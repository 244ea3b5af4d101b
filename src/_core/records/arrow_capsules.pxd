# Declares the functions that create and open the capsules of Arrow's PyCapsule interface. thread: A, with the GIL.
from kconsumer._core.records.arrow_export cimport ArrowArray, ArrowArrayStream, ArrowSchema

# Creates a capsule that owns a zeroed struct, and sets `out` to the struct. The capsule releases a filled struct.
cdef object schema_capsule(ArrowSchema** out)
cdef object array_capsule(ArrowArray** out)
cdef object stream_capsule(ArrowArrayStream** out)
# Returns the struct in a capsule; NULL for None.
cdef const ArrowSchema* schema_in(object capsule) except? NULL
cdef ArrowArray* array_in(object capsule) except NULL
cdef ArrowArrayStream* stream_in(object capsule) except NULL
