# Declares the export of the headers column. thread: A.
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.arrow_export cimport ArrowArray, ArrowField, ArrowSource

# Fills `out` with list<struct<key, value>>. In a key that is not UTF-8, U+FFFD replaces each bad byte, as in Java.
cdef Status export_headers(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil
