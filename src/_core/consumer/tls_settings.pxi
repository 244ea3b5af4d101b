"""Owns: copying the TLS settings from kconsumer.config.Settings, which has checked them, into the core.

thread: A, before N starts. Never: knows a default, keeps a secret, loads OpenSSL for a consumer without TLS.
"""


cdef int configure_tls(SecurityConfig& config, settings) except -1:
    if not config.use_tls:
        return 0
    from kconsumer.config.values import configuration_error
    from kconsumer.config.tls import tls_options
    from kconsumer._core.network.network import open_client

    try:
        made = open_client(tls_options(settings))
    except ValueError as wrong:
        raise configuration_error(str(wrong)) from None
    config.tls = (<TlsClientPtr*>PyCapsule_GetPointer(made, b"kconsumer.TlsClient"))[0]
    return 0
