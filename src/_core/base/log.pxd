# Declares base/log.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, deque, string, uint32_t


cdef extern from "base/log.hpp" namespace "kc" nogil:
    cdef enum DebugContext:
        DBG_GENERIC
        DBG_BROKER
        DBG_TOPIC
        DBG_METADATA
        DBG_FEATURE
        DBG_QUEUE
        DBG_MSG
        DBG_PROTOCOL
        DBG_CGRP
        DBG_SECURITY
        DBG_FETCH
        DBG_CONSUMER
        DBG_ALL

    cdef cppclass LogLine:
        int level
        const char* facility
        string text

    cdef cppclass LogQueue:
        LogQueue()
        atomic[uint32_t] debug
        atomic[int] max_level
        atomic[bint] pending
        bint wants(uint32_t)
        void push(int level, const char* facility, const string& text)
        void write(int level, uint32_t context, const char* facility, const char* fmt, ...)
        size_t drain(deque[LogLine]&)
