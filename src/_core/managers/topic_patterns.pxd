# Declares managers/topic_patterns.hpp for Cython. thread: one at a time.
from kconsumer._core.base.cpp cimport string, vector
from kconsumer._core.base.status cimport Status


cdef extern from "managers/topic_patterns.hpp" namespace "kc" nogil:
    cdef cppclass TopicPatterns:
        TopicPatterns()
        Status set(const vector[string]& patterns)
        bint empty()
        bint matches(const string& topic)
        void clear()
