# Declares events/background_event.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint32_t
from kconsumer._core.base.log cimport LogQueue
from kconsumer._core.base.status cimport Status
from kconsumer._core.base.wakeup_fd cimport WakeupFd


cdef extern from "events/background_event.hpp" namespace "kc" nogil:
    cdef enum BackgroundEventType:
        BACKGROUND_ERROR
        BACKGROUND_THROTTLE
        BACKGROUND_STATS

    cdef cppclass BackgroundEvent:
        BackgroundEvent()
        BackgroundEventType type
        Status status
        bint fatal
        string text
        int32_t broker_id
        int64_t number

    cdef enum Attention:
        ATTENTION_CONTROL
        ATTENTION_EVENTS
        ATTENTION_WAKEUP
        ATTENTION_CLOSED
        ATTENTION_FATAL

    cdef cppclass AttentionWord:
        uint32_t get()
        bint quiet()
        bint quiet_but(uint32_t)
        void set(uint32_t)
        uint32_t clear(uint32_t)

    cdef cppclass BackgroundEventQueue:
        BackgroundEventQueue()
        AttentionWord attention
        LogQueue log
        WakeupFd wakeup
        atomic[bint] waiting
        WakeupFd events_ready
        void add(BackgroundEvent)
        bint take(BackgroundEvent&)
        void announce()
        void wake()
        void force_wake()
