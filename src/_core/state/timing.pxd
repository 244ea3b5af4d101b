# Declares state/timing.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t


cdef extern from "state/timing.hpp" namespace "kc" nogil:
    cdef cppclass Timing:
        Timing()
        atomic[int64_t] count
        atomic[int64_t] latest_us
        atomic[int64_t] longest_us
        atomic[int64_t] total_us
        atomic[int64_t] buckets[19]
        void add(int64_t us)
