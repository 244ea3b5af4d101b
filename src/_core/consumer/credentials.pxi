"""Owns: passing user names, passwords and tokens from the application into the core.

thread: A, any. Never: keeps a secret: the bytes go directly into a SaslCredentials, which wipes them; checks or gets
a secret (kconsumer/config/sasl.py does).
"""


cdef NetworkClient client_of(ConsumerCore core):
    core.check_usable()
    return core.network


def give_password(ConsumerCore core not None, str username not None, str password not None):
    """Set user name and password for later authentications."""
    cdef NetworkClient client = client_of(core)
    put_password(credentials_of(client.config.security.sasl), username, password)
    client.wakeup()


def give_token(ConsumerCore core not None, str token not None, dict extensions not None, int64_t life_ms):
    """Set a token that is valid for `life_ms` from now on."""
    cdef NetworkClient client = client_of(core)
    cdef Secret secret
    cdef vector[pair[string, string]] pairs
    cdef pair[string, string] one
    for key, value in extensions.items():
        one.first = utf8(key)
        one.second = utf8(value)
        pairs.push_back(one)
    put_secret(&secret, token)
    set_token(credentials_of(client.config.security.sasl), secret, pairs, life_ms, core.clock.now_ms())
    client.wakeup()


def token_failed(ConsumerCore core not None, str why not None, bint report=True):
    """State that no token is available: connections fail with `why` until there is one.

    oauth_cb is called again after a while. With `report`, error_cb is called wherever callbacks are served.
    """
    cdef NetworkClient client = client_of(core)
    cdef BackgroundEvent event
    event.type = BACKGROUND_ERROR
    event.status.code = <int>ERR_AUTHENTICATION
    event.status.detail = utf8(why)
    credentials_of(client.config.security.sasl).token_failed(event.status.detail, core.clock.now_ms())
    if report:
        core.background.add(event)
    client.wakeup()


def report_error(ConsumerCore core not None, error):
    """Let poll, consume and consume_batch return `error` (KafkaError) next.

    For callbacks of the core, which hold the callback lock.
    """
    core.pending_errors.append(error)
