# Declares base/counted_mutex.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int64_t


cdef extern from "base/counted_mutex.hpp" namespace "kc" nogil:
    cdef cppclass CountedMutex:
        CountedMutex()
        void lock()
        void unlock()
        bint try_lock()
        int64_t taken()
