"""Owns: the way of user names, passwords and tokens from the application into the core.

thread: A, any. Never: keeps one: the bytes go straight into a SaslCredentials, which wipes them; checks or obtains one
(kconsumer/sasl.py).
"""
from kconsumer._core.base.cpp cimport int64_t, pair, string, vector
from kconsumer._core.consumer.consumer_core cimport ConsumerCore
from kconsumer._core.consumer.text cimport utf8
from kconsumer._core.events.background_event cimport BACKGROUND_ERROR, BackgroundEvent
from kconsumer._core.network.network_client cimport NetworkClient
from kconsumer._core.network.sasl_session cimport (
    SaslCredentials,
    Secret,
    credentials_of,
    make_credentials,
    set_password,
    set_token as put_token,
)


cdef int configure_sasl(SecurityConfig& config, settings) except -1:
    cdef SaslCredentials* made
    if not config.use_sasl:
        return 0
    config.sasl = make_credentials()
    made = credentials_of(config.sasl)
    made.mechanism = utf8(settings.sasl_mechanism)
    made.asks_for_tokens = settings.oauth_cb is not None
    made.kerberos.service = utf8(settings.sasl_kerberos_service_name)
    made.kerberos.principal = utf8(settings.sasl_kerberos_principal or "")
    made.kerberos.keytab = utf8(settings.sasl_kerberos_keytab or "")
    if settings.sasl_password is not None:
        put_password(made, settings.sasl_username, settings.sasl_password)
    return 0


cdef int put_password(SaslCredentials* to, str username, str password) except -1:
    cdef bytes name = username.encode()
    cdef bytes word = password.encode()
    cdef Secret first = Secret(<const char*>name, <size_t>len(name))
    cdef Secret second = Secret(<const char*>word, <size_t>len(word))
    set_password(to, first, second)
    return 0


cdef NetworkClient client_of(ConsumerCore core):
    core.check_usable()
    return core.network


def give_password(ConsumerCore core not None, str username not None, str password not None):
    """For the connections that are made, and those that authenticate anew, from now on."""
    cdef NetworkClient client = client_of(core)
    put_password(credentials_of(client.config.security.sasl), username, password)
    client.wakeup()


def give_token(ConsumerCore core not None, str token not None, dict extensions not None, int64_t life_ms):
    """A token that lives for `life_ms` from now on."""
    cdef NetworkClient client = client_of(core)
    cdef bytes raw = token.encode()
    cdef Secret bytes_ = Secret(<const char*>raw, <size_t>len(raw))
    cdef vector[pair[string, string]] pairs
    cdef pair[string, string] one
    for key, value in extensions.items():
        one.first = utf8(key)
        one.second = utf8(value)
        pairs.push_back(one)
    put_token(credentials_of(client.config.security.sasl), bytes_, pairs, life_ms, core.clock.now_ms())
    client.wakeup()


def token_failed(ConsumerCore core not None):
    """oauth_cb has not given a token: it is asked again in a while."""
    cdef NetworkClient client = client_of(core)
    credentials_of(client.config.security.sasl).token_failed(core.clock.now_ms())
    client.wakeup()


def report(ConsumerCore core not None, int code, str text not None):
    """An error from a thread of the Python side: told wherever callbacks are served."""
    cdef BackgroundEvent event
    event.type = BACKGROUND_ERROR
    event.status.code = code
    event.status.detail = utf8(text)
    core.background.add(event)


def tell(ConsumerCore core not None, error):
    """poll, consume and consume_batch hand out `error` (KafkaError) next. For callbacks of the core, which hold the
    callback lock."""
    core.told.append(error)
