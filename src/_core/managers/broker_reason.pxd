# Declares managers/broker_reason.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int32_t, string


cdef extern from "managers/broker_reason.hpp" namespace "kc" nogil:
    string broker_reason(int32_t code)
    string topic_reason(int32_t code, const string& topic)
    string fetch_reason(int32_t code, const string& topic)
    string coordinator_reason(int32_t code, const string& group, const string& message)
    string unreachable_reason(const string& cause)
