# Copies the SASL settings into the core. thread: A.


cdef int configure_sasl(SecurityConfig& config, settings) except -1
cdef int put_password(SaslCredentials* to, str username, str password) except -1
