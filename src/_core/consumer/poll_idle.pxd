# Declares consumer/poll_idle.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport int64_t


cdef extern from "consumer/poll_idle.hpp" namespace "kc" nogil:
    cdef cppclass PollIdle:
        PollIdle()
        void start(int64_t now_us)
        void begin(int64_t now_us)
        void end(int64_t now_us)
        double ratio(int64_t now_us)
        int64_t total_us(int64_t now_us)
        int64_t waits()
