# Copies the TLS settings into the core. thread: A.


cdef int configure_tls(SecurityConfig& config, settings) except -1
