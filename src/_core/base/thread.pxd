# Declares base/thread.hpp for Cython. thread: see there.
cdef extern from "base/thread.hpp" namespace "kc" nogil:
    ctypedef void (*ThreadBody "kc::NativeThread::Body")(void*) noexcept nogil
    cdef cppclass NativeThread:
        NativeThread()
        int start(ThreadBody body, ThreadBody oom, void* arg, const char* name)
        void join()
        void forget()
        bint running()
