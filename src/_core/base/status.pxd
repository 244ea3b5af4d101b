# Declares base/status.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int32_t, string


cdef extern from "base/status.hpp" namespace "kc" nogil:
    cdef enum LocalCode:
        OK
        ERR_BAD_MSG
        ERR_BAD_COMPRESSION
        ERR_DESTROY
        ERR_FAIL
        ERR_TRANSPORT
        ERR_CRIT_SYS_RESOURCE
        ERR_RESOLVE
        ERR_MSG_TIMED_OUT
        ERR_PARTITION_EOF
        ERR_UNKNOWN_PARTITION
        ERR_UNKNOWN_TOPIC
        ERR_ALL_BROKERS_DOWN
        ERR_INVALID_ARG
        ERR_TIMED_OUT
        ERR_SSL
        ERR_WAIT_COORD
        ERR_IN_PROGRESS
        ERR_CONFLICT
        ERR_STATE
        ERR_AUTHENTICATION
        ERR_NO_OFFSET
        ERR_UNSUPPORTED_FEATURE
        ERR_INTR
        ERR_FATAL
        ERR_MAX_POLL_EXCEEDED
        ERR_UNKNOWN_BROKER
        ERR_ASSIGNMENT_LOST
        ERR_AUTO_OFFSET_RESET
        ERR_LOG_TRUNCATION

    cdef cppclass Status:
        int32_t code
        string detail
        Status()
        Status(int32_t)
        Status(int32_t, string)
        bint ok()
