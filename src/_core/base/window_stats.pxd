# Declares base/window_stats.hpp for Cython. thread: the owner's.
from kconsumer._core.base.cpp cimport int64_t


cdef extern from "base/window_stats.hpp" namespace "kc" nogil:
    cdef cppclass WindowStats:
        WindowStats()
        int64_t count
        int64_t sum
        int64_t min
        int64_t max
        int64_t out_of_range
        void add(int64_t value)
        void start_again()
        int64_t average()
        int64_t deviation()
        int64_t percentile(double percent)
        @staticmethod
        size_t histogram_bytes()
