# Declares base/leak.hpp for Cython. thread: A, in the child of a fork.
cdef extern from "base/leak.hpp" namespace "kc" nogil:
    void leak[T](T& member)
