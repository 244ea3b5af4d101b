# Declares network/tls_client.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, string, uint64_t
from kconsumer._core.network.security cimport TlsClientPtr
from kconsumer._core.network.selector cimport Selector
from kconsumer._core.network.transport cimport Transport


cdef extern from "network/tls_client.hpp" namespace "kc" nogil:
    cdef cppclass TlsClient:
        void open(Selector* selector)
        void close()
        uint64_t check()
        bint checked(uint64_t ticket)
        int take_news(string* out)
        Transport* connect(int fd, const string& host, int32_t port, bint bulk)

    # Returns NULL without TLS.
    TlsClient* tls_of "kc::get_tls_client"(const TlsClientPtr&)
