# Declares base/printable.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport string


cdef extern from "base/printable.hpp" namespace "kc" nogil:
    string printable(const string& text)
