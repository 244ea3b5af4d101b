# Declares base/wakeup_fd.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport int64_t


cdef extern from "base/wakeup_fd.hpp" namespace "kc" nogil:
    cdef cppclass WakeupFd:
        WakeupFd()
        bint ok()
        int fd()
        void signal()
        void drain()
        void release()

    cdef enum WaitResult:
        WAIT_READY
        WAIT_TIMEOUT
        WAIT_INTERRUPTED

    WaitResult wait_readable(int fd, int other, int64_t timeout_ms)
