# Declares base/coarse_clock.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport int64_t


cdef extern from "base/coarse_clock.hpp" namespace "kc" nogil:
    int64_t coarse_ms()
