# Declares the clock that all parts of a consumer use; tests inject a ManualClock. thread: any (reads only).
from kconsumer._core.base.cpp cimport int64_t

cdef int64_t monotonic_us() noexcept nogil
cdef int64_t boot_us() noexcept nogil

cdef class Clock:
    cdef int64_t now_ms(self) noexcept nogil
    cdef int64_t now_us(self) noexcept nogil
    # Like now_us(), but it also counts while the machine is suspended. Compare it only with itself.
    cdef int64_t boot_us(self) noexcept nogil

cdef class ManualClock(Clock):
    cdef int64_t time_us       # thread: that of the test
    cdef int64_t suspended_us  # thread: that of the test

# Counts the forks between the first process and this one (0 in the first). thread: any (written only in a new child).
#
# The variable is in base/fork.pxi, not in a header: extension modules share no symbols. With a counter in a header each
# module would have a copy, and the handler would increment only one of them.
cdef volatile unsigned long fork_count
