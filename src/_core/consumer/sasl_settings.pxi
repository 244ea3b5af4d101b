"""Owns: copying the SASL settings from kconsumer.config.Settings, which has checked them, into the core.

thread: A, before N starts (put_password: any). Never: knows a default, keeps a secret.
"""


cdef int configure_sasl(SecurityConfig& config, settings) except -1:
    cdef SaslCredentials* made
    if not config.use_sasl:
        return 0
    config.sasl = make_credentials()
    made = credentials_of(config.sasl)
    made.mechanism = utf8(settings.sasl_mechanism)
    made.renews_tokens = settings.sasl_oauthbearer_method == "oidc"
    made.asks_for_tokens = (made.renews_tokens or settings.oauth_cb is not None
                            or settings.enable_sasl_oauthbearer_unsecure_jwt)
    made.kerberos.service = utf8(settings.sasl_kerberos_service_name)
    made.kerberos.principal = utf8(settings.sasl_kerberos_principal or "")
    made.kerberos.keytab = utf8(settings.sasl_kerberos_keytab or "")
    # One cache for all connections of this consumer: the library renews its tickets with the keytab.
    made.kerberos.cache = utf8(f"MEMORY:kconsumer-{os.urandom(8).hex()}")
    if settings.sasl_password is not None:
        put_password(made, settings.sasl_username, settings.sasl_password)
    return 0


cdef int put_password(SaslCredentials* to, str username, str password) except -1:
    cdef Secret first
    cdef Secret second
    put_secret(&first, username)
    put_secret(&second, password)
    set_password(to, first, second)
    return 0
