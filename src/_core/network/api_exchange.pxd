# Declares network/api_exchange.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int16_t
from kconsumer._core.network.request cimport NetworkConfig
from kconsumer._core.protocol.messages.api_versions cimport ApiVersionsRequest


cdef extern from "network/api_exchange.hpp" namespace "kc" nogil:
    const int16_t API_VERSIONS_FIRST_TRY
    const int16_t API_VERSIONS_CHECKED
    void fill_api_versions_request(const NetworkConfig& config, ApiVersionsRequest* request)

    int16_t api_versions_header_version "kc::ApiVersionsRequest::header_version"(int16_t version)
