# Declares network/resolver.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.network.selector cimport Selector
from kconsumer._core.network.socket cimport SocketAddress


cdef extern from "network/resolver.hpp" namespace "kc" nogil:
    cdef cppclass Resolution:
        Resolution()
        Status status
        vector[SocketAddress] addresses
        vector[string] names

    ctypedef void (*ResolveFunction)(const string&, int32_t, int, bint, Resolution*) noexcept nogil

    cdef enum LookupState:
        LOOKUP_PENDING
        LOOKUP_DONE

    cdef cppclass Resolver:
        Resolver()
        void open(Selector* selector, int32_t ttl_ms)
        void set_function(ResolveFunction function)
        void close()
        void abandon()
        LookupState lookup(const string& host, int32_t port, int family, bint canonical, int64_t now_ms,
                           Resolution* out)
        void forget()
        size_t known()
