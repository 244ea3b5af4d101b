# Declares protocol/api_versions.hpp for Cython. thread: that of the connection.
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, uint8_t
from kconsumer._core.base.status cimport Status
from kconsumer._core.protocol.messages.api_versions cimport ApiVersionsResponse


cdef extern from "protocol/api_versions.hpp" namespace "kc" nogil:
    const int16_t BROKER_UNSUPPORTED_VERSION

    cdef cppclass ApiVersionRange:
        int16_t min
        int16_t max
        ApiVersionRange()
        bint offered()

    cdef enum ApiVersionsOutcome:
        API_VERSIONS_READY
        API_VERSIONS_ASK_V0
        API_VERSIONS_REFUSED

    cdef cppclass ApiVersionTable:
        ApiVersionTable()
        void clear()
        bint known()
        ApiVersionsOutcome accept(const uint8_t* body, size_t length, int16_t version, Status* status)
        void fill(const ApiVersionsResponse& response)
        ApiVersionRange range(int16_t api_key)
        int32_t pick(int16_t api_key, int16_t low, int16_t high)
        Status unsupported(int16_t api_key, int16_t low, int16_t high, const string& broker_name)
