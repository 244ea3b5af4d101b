# Ticket: a completable event that a test holds. thread: the test's thread.
from kconsumer._core.base.cpp cimport string
from kconsumer._core.events.application_event cimport ApplicationEvent


cdef inline string utf8(str text):
    cdef bytes raw = text.encode()
    return string(<const char*>raw, <size_t>len(raw))


cdef inline str text_of(const string& raw):
    return raw.data()[:raw.size()].decode()


cdef class Ticket:
    cdef ApplicationEvent* event   # thread: A (a reference)
