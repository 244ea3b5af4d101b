# Declares what other layers, and tests, use of network.pyx. thread: N; see each file.
from kconsumer._core.base.base cimport Clock
from kconsumer._core.base.cpp cimport (
    atomic, deque, int16_t, int32_t, int64_t, map, pair, string, uint64_t, uint8_t, vector,
)
from kconsumer._core.base.log cimport LogQueue
from kconsumer._core.base.secret cimport Secret
from kconsumer._core.base.status cimport Status
from kconsumer._core.network.request cimport Channel, NetworkConfig, NodeAddress, NodeStats, Request, Response
from kconsumer._core.network.resolver cimport Resolver
from kconsumer._core.network.security cimport SaslCredentialsPtr
from kconsumer._core.network.selector cimport Selector, SelectorEvent
from kconsumer._core.network.socket cimport SocketAddress
from kconsumer._core.network.transport cimport Transport
from kconsumer._core.protocol.api_versions cimport ApiVersionTable
from kconsumer._core.protocol.wire cimport Reader, Writer
from kconsumer._core.records.columns cimport Block, BlockPool

include "network_interface.pxd"
include "connection.pxd"
include "sasl_session.pxd"
include "connector.pxd"
include "authenticator.pxd"
include "network_client.pxd"
include "network_client_delegate.pxd"
