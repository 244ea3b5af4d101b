# Makes and opens the capsules of Arrow's PyCapsule interface. thread: A, with the GIL.
from kconsumer._core.records.arrow_export cimport ArrowArray, ArrowArrayStream, ArrowSchema

# A capsule that owns a zeroed struct, which `out` is set to; it is released with the capsule if it was filled.
cdef object schema_capsule(ArrowSchema** out)
cdef object array_capsule(ArrowArray** out)
cdef object stream_capsule(ArrowArrayStream** out)
# What a capsule holds; NULL for None.
cdef const ArrowSchema* schema_in(object capsule) except? NULL
cdef ArrowArray* array_in(object capsule) except NULL
cdef ArrowArrayStream* stream_in(object capsule) except NULL
