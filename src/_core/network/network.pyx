"""Owns: the layer `network`: connections to brokers, with TLS and SASL, and the requests on them.

thread: N; each file names the exceptions. Never: knows a group, a partition or a record.

The files are one extension module, in the order of their dependence. Its imports are all here.
"""
cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cython.operator cimport dereference as deref, preincrement as inc
from libc.errno cimport EINPROGRESS
from libc.stdint cimport INT64_MAX, uint32_t
from posix.unistd cimport close as close_descriptor

from kconsumer._core.base.base cimport monotonic_us
from kconsumer._core.base.error_codes cimport REBOOTSTRAP_REQUIRED
from kconsumer._core.base.leak cimport leak
from kconsumer._core.base.log cimport DBG_BROKER, DBG_FEATURE, DBG_GENERIC, DBG_PROTOCOL, DBG_SECURITY
from kconsumer._core.base.secret cimport put_secret
from kconsumer._core.base.status cimport (
    ERR_AUTHENTICATION, ERR_BAD_MSG, ERR_CRIT_SYS_RESOURCE, ERR_INTR, ERR_INVALID_ARG, ERR_RESOLVE, ERR_SSL,
    ERR_TIMED_OUT, ERR_TRANSPORT, ERR_UNKNOWN_BROKER, ERR_UNSUPPORTED_FEATURE,
)
from kconsumer._core.network.api_exchange cimport (
    API_VERSIONS_CHECKED, API_VERSIONS_FIRST_TRY, api_versions_header_version, fill_api_versions_request,
)
from kconsumer._core.network.request cimport (
    ANY_NODE, CHANNEL_CONTROL, CHANNEL_COORDINATOR, CHANNEL_FETCH, CHANNEL_JOIN, RequestBody,
)
from kconsumer._core.network.resolver cimport LOOKUP_PENDING, Resolution
from kconsumer._core.network.selector cimport SELECT_READ, SELECT_WRITE
from kconsumer._core.network.socket cimport (
    describe, error_text, finish_connect, is_unreachable, last_error, open_socket, path_may_be_dead, reset_on_close,
    start_connect,
)
from kconsumer._core.network.tls_client cimport TlsClient, TlsClientPtr, tls_of
from kconsumer._core.network.transport cimport (
    HANDSHAKE_DONE, HANDSHAKE_FAILED, HANDSHAKE_WANTS_WRITE, IO_CLOSED, IO_DONE, IO_WOULD_BLOCK, HandshakeState,
    IoResult, PlaintextTransport, kReadWantsWrite, kWriteWantsRead,
)
from kconsumer._core.protocol.api_keys cimport API_API_VERSIONS, API_SASL_AUTHENTICATE, API_SASL_HANDSHAKE, api_name
from kconsumer._core.protocol.api_versions cimport API_VERSIONS_ASK_V0, API_VERSIONS_READY, ApiVersionsOutcome
from kconsumer._core.protocol.frame cimport decode_response_header, encode_frame
from kconsumer._core.protocol.messages.api_versions cimport ApiVersionsRequest
from kconsumer._core.protocol.messages.sasl_authenticate cimport (
    SaslAuthenticateRequest_max_version, SaslAuthenticateRequest_min_version, SaslAuthenticateResponse,
)
from kconsumer._core.protocol.messages.sasl_handshake cimport (
    SaslHandshakeRequest, SaslHandshakeRequest_max_version, SaslHandshakeRequest_min_version, SaslHandshakeResponse,
)

include "network_interface.pxi"
include "connection.pxi"
include "connector.pxi"
include "authenticator.pxi"
include "network_client.pxi"
include "network_client_delegate.pxi"
include "tls.pxi"
include "jws.pxi"
