"""Owns: reading monotonic time.

Threads: any. Never: reads the wall clock, because an administrator can set it back.
"""

cdef int64_t monotonic_us() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <int64_t>t.tv_sec * 1000000 + t.tv_nsec // 1000


@cython.no_gc
cdef class Clock:
    """Monotonic time in milliseconds and microseconds."""

    cdef int64_t now_ms(self) noexcept nogil:
        return monotonic_us() // 1000

    cdef int64_t now_us(self) noexcept nogil:
        return monotonic_us()


@cython.no_gc
cdef class ManualClock(Clock):
    """A clock that changes only when a test advances it."""

    def __cinit__(self, int64_t start_ms=1_000_000):
        self.time_us = start_ms * 1000

    cdef int64_t now_ms(self) noexcept nogil:
        return self.time_us // 1000

    cdef int64_t now_us(self) noexcept nogil:
        return self.time_us

    def advance(self, int64_t ms):
        """Move time forward by ``ms`` milliseconds."""
        self.time_us += ms * 1000

    @property
    def ms(self):
        """The current time in milliseconds."""
        return self.time_us // 1000
