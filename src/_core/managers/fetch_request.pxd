# Declares managers/fetch_request.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, vector
from kconsumer._core.managers.fetch_session cimport FetchSession, SessionPartition
from kconsumer._core.protocol.messages.fetch cimport FetchRequest


cdef extern from "managers/fetch_request.hpp" namespace "kc" nogil:
    void name_partitions(FetchRequest& message, const vector[SessionPartition*]& wanted, int32_t most_bytes)
    void name_forgotten(FetchRequest& message, FetchSession& session)
