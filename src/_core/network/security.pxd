# Declares network/security.hpp for Cython. thread: N.
cdef extern from "network/security.hpp" namespace "kc" nogil:
    cdef cppclass SaslCredentialsPtr "std::shared_ptr<kc::SaslCredentials>":
        SaslCredentialsPtr()

    cdef cppclass TlsClientPtr "std::shared_ptr<kc::TlsClient>":
        TlsClientPtr()

    cdef cppclass SecurityConfig:
        SecurityConfig()
        bint use_tls
        bint use_sasl
        TlsClientPtr tls
        SaslCredentialsPtr sasl
