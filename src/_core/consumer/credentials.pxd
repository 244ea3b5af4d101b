# What a consumer authenticates with, on its way into the core. thread: A.
from kconsumer._core.network.security cimport SecurityConfig


cdef int configure_sasl(SecurityConfig& config, settings) except -1
