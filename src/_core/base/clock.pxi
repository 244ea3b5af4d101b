"""Owns: reading monotonic time.

Threads: any. Never: reads the wall clock, because an administrator can set it back.
"""

cdef int64_t monotonic_us() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <int64_t>t.tv_sec * 1000000 + t.tv_nsec // 1000


cdef extern from * nogil:
    """
    #include <time.h>
    static inline int64_t kc_boot_us() {
    #ifdef CLOCK_BOOTTIME
      const clockid_t clock = CLOCK_BOOTTIME;
    #else
      const clockid_t clock = CLOCK_MONOTONIC;  // macOS: counts while the machine sleeps
    #endif
      struct timespec t;
      clock_gettime(clock, &t);
      return static_cast<int64_t>(t.tv_sec) * 1000000 + t.tv_nsec / 1000;
    }
    """
    int64_t kc_boot_us()


cdef int64_t boot_us() noexcept nogil:
    return kc_boot_us()


@cython.no_gc
cdef class Clock:
    """Monotonic time in milliseconds and microseconds."""

    cdef int64_t now_ms(self) noexcept nogil:
        return monotonic_us() // 1000

    cdef int64_t now_us(self) noexcept nogil:
        return monotonic_us()

    cdef int64_t boot_us(self) noexcept nogil:
        return boot_us()


@cython.no_gc
cdef class ManualClock(Clock):
    """A clock that changes only when a test advances it."""

    def __cinit__(self, int64_t start_ms=1_000_000):
        self.time_us = start_ms * 1000

    cdef int64_t now_ms(self) noexcept nogil:
        return self.time_us // 1000

    cdef int64_t now_us(self) noexcept nogil:
        return self.time_us

    cdef int64_t boot_us(self) noexcept nogil:
        return self.time_us + self.suspended_us

    def advance(self, int64_t ms):
        """Move time forward by ``ms`` milliseconds."""
        self.time_us += ms * 1000

    def suspend(self, int64_t ms):
        """Let ``ms`` milliseconds pass that only boot_us() counts."""
        self.suspended_us += ms * 1000

    @property
    def ms(self):
        """The current time in milliseconds."""
        return self.time_us // 1000
