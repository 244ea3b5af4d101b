# Declares the export of one column. thread: A.
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.arrow_export cimport ArrowArray, ArrowField, ArrowSource

# Fills `out` with the column that `field` describes. The caller must release `out` even after an error.
cdef Status export_column(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil
