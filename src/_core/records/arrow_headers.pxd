# Builds the headers column. thread: A.
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.arrow_export cimport ArrowArray, ArrowField, ArrowSource

# list<struct<key, value>>; keys that are not UTF-8 have their bad bytes replaced by U+FFFD, as Java's do.
cdef Status export_headers(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil
