# Copies the TLS settings into the core. thread: A.
from kconsumer._core.network.security cimport SecurityConfig


cdef int configure_tls(SecurityConfig& config, settings) except -1
