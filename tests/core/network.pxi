"""Owns: Python access to NetworkClient and NetworkClientDelegate, for tests that step them against a socket.

Threads: that of the test, in the role of N. Never: part of the consumer.
"""

cdef extern from *:
    """
    #include <atomic>
    #include <unistd.h>
    #include "network/request.hpp"
    #include "network/resolver.hpp"

    // A body with bytes from the test; only the header depends on the version.
    struct RawBody : kc::RequestBody {
      int16_t key, low, high;
      std::string bytes;
      RawBody(int16_t k, int16_t l, int16_t h, std::string b) : key(k), low(l), high(h), bytes(std::move(b)) {}
      int16_t api_key() const override { return key; }
      int16_t min_version() const override { return low; }
      int16_t max_version() const override { return high; }
      bool flexible(int16_t v) const { return v >= (key == 1 ? 12 : 9); }  // Fetch, and Metadata
      int16_t request_header_version(int16_t v) const override { return flexible(v) ? 2 : 1; }
      int16_t response_header_version(int16_t v) const override { return flexible(v) ? 1 : 0; }
      void encode(kc::Writer& w, int16_t) const override { w.write_raw(bytes.data(), bytes.size()); }
    };

    // The arguments of one call of a handler.
    struct Ended {
      uint64_t cookie = 0;
      int32_t node_id = 0;
      int16_t version = 0;
      size_t capacity = 0;
      std::string body;
      kc::Status status;
    };

    // Scripted resolvers: one hangs until the gate is open, the others return fixed addresses.
    static std::atomic<bool> resolver_gate{false};
    static std::atomic<int> resolver_calls{0};
    static void hanging_resolver(const std::string& host, int32_t port, int family, bool, kc::Resolution* out) {
      resolver_calls++;
      while (!resolver_gate.load()) usleep(1000);
      const bool ours = host.size() > 5 && host.compare(host.size() - 5, 5, ".test") == 0;
      kc::query_addresses(ours ? "127.0.0.1" : host, port, family, 0, out);
    }
    static void dual_resolver(const std::string&, int32_t port, int, bool, kc::Resolution* out) {
      resolver_calls++;
      kc::query_addresses("::1", port, 0, AI_NUMERICHOST, out);
      kc::query_addresses("127.0.0.1", port, 0, AI_NUMERICHOST, out);
    }
    static void canonical_resolver(const std::string& host, int32_t port, int, bool canonical, kc::Resolution* out) {
      resolver_calls++;
      kc::query_addresses("127.0.0.1", port, 0, AI_NUMERICHOST, out);
      if (canonical && host != "nameless.test") out->names = {"one." + host, "two." + host};
    }
    """
    cdef cppclass Ended:
        uint64_t cookie
        int32_t node_id
        int16_t version
        size_t capacity
        string body
        Status status
    cdef cppclass RawBody(RequestBody):
        RawBody(int16_t, int16_t, int16_t, string)
    void set_gate "resolver_gate.store"(bint)
    int count_calls "resolver_calls.load"()
    void reset_calls "resolver_calls.store"(int)
    ResolveFunction hanging_resolver
    ResolveFunction dual_resolver
    ResolveFunction canonical_resolver


cdef string to_string(text):
    cdef bytes data = text if isinstance(text, bytes) else text.encode()
    return string(<const char*>data, <size_t>len(data))


cdef bytes to_bytes(const string& s):
    return s.data()[:s.size()]


cdef str to_text(const string& s):
    return to_bytes(s).decode("utf-8", "replace")


@cython.no_gc
cdef class RecordingHandler(ResponseHandler):
    """A handler that records the arguments of every call."""
    cdef vector[Ended] ended        # thread: the test's
    cdef void* delegate             # thread: the test's; borrowed, for next_request
    cdef void* network              # thread: the test's; borrowed
    cdef Request* next_request      # thread: the test's; on_response() queues it
    cdef int responses_since        # thread: the test's
    cdef int in_flight_at_second    # thread: the test's

    def __dealloc__(self):
        del self.next_request

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        if self.delegate != NULL:
            self.responses_since += 1
            if self.responses_since == 2:
                self.in_flight_at_second = (<Network>self.network).in_flight()
        if self.next_request != NULL:
            (<NetworkClientDelegate>self.delegate).add(self.next_request)
            self.next_request = NULL
        self.ended.emplace_back()
        self.ended.back().cookie = request.cookie
        self.ended.back().node_id = response.node_id
        self.ended.back().version = response.version
        self.ended.back().capacity = response.block.capacity
        self.ended.back().body.assign(<const char*>response.body, response.length)

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        self.ended.emplace_back()
        self.ended.back().cookie = request.cookie
        self.ended.back().node_id = request.node_id
        self.ended.back().status = status


cdef dict ended_to_dict(const Ended& ended):
    if ended.status.code != 0:
        return {"cookie": ended.cookie, "node": ended.node_id, "code": ended.status.code,
                "detail": to_text(ended.status.detail)}
    return {"cookie": ended.cookie, "node": ended.node_id, "version": ended.version, "capacity": ended.capacity,
            "body": to_bytes(ended.body)}


cdef NodeAddress address_of(object entry):
    cdef NodeAddress address
    address.id = entry[0]
    address.host = to_string(entry[1].encode())
    address.port = entry[2]
    return address


cdef class DelegateDriver:
    """A NetworkClientDelegate with any Network, which the test steps."""
    cdef Network network
    cdef NetworkClientDelegate delegate
    cdef RecordingHandler handler
    cdef Clock clock

    def __init__(self, Network network not None, Clock clock not None):
        self.attach(network, clock)

    cdef void attach(self, Network network, Clock clock):
        self.network = network
        self.clock = clock
        self.delegate = NetworkClientDelegate(network, clock)
        self.handler = RecordingHandler()

    cdef Request* make(self, int api_key, bytes body, int node, int channel, int64_t timeout_ms, uint64_t cookie,
                       size_t expected, int low, int high, int64_t wait_ms=0, int64_t hold_ms=0) except NULL:
        cdef Request* request = new Request()
        request.body = new RawBody(api_key, low, high, to_string(body))
        request.node_id = node
        request.channel = <Channel>channel
        request.created_ms = self.clock.now_ms()
        request.deadline_ms = request.created_ms + timeout_ms
        request.wait_ms = wait_ms
        request.hold_ms = hold_ms
        request.handler = <void*>self.handler
        request.cookie = cookie
        request.expected_bytes = expected
        return request

    def add(self, api_key, body=b"", node=-1, channel=0, timeout_ms=30000, cookie=0, expected=0, low=0, high=8,
            wait_ms=0, hold_ms=0):
        """Queue a request."""
        self.delegate.add(self.make(api_key, body, node, channel, timeout_ms, cookie, expected, low, high, wait_ms,
                                    hold_ms))

    def add_on_response(self, api_key, body=b"", node=-1, channel=0, timeout_ms=30000, cookie=0):
        """Queue this request when the handler receives the next response."""
        self.handler.delegate = <void*>self.delegate
        self.handler.network = <void*>self.network
        self.handler.next_request = self.make(api_key, body, node, channel, timeout_ms, cookie, 0, 0, 8)

    @property
    def sent_before_second_handler(self):
        """The number of requests in flight at the second response after add_on_response()."""
        return self.handler.in_flight_at_second

    def poll(self, timeout_ms=0):
        """Run one turn."""
        cdef int64_t timeout = timeout_ms
        with nogil:
            self.delegate.poll(timeout, self.clock.now_ms())

    @property
    def ended(self):
        """The arguments of all calls of the handler, in order."""
        cdef size_t i
        return [ended_to_dict(self.handler.ended[i]) for i in range(self.handler.ended.size())]

    @property
    def has_unsent(self):
        """Whether unsent requests wait."""
        return self.delegate.has_unsent()

    @property
    def in_flight(self):
        """The number of sent requests that have not ended."""
        return self.network.in_flight()

    def fail_unsent(self, code):
        """NetworkClientDelegate.fail_unsent."""
        self.delegate.fail_unsent(code, self.clock.now_ms())

    def ready(self, node, channel=0):
        """Network.ready as a number."""
        return <int>self.network.ready(node, <Channel><int>channel, self.clock.now_ms())

    def take_failure(self, node, channel=0):
        """Network.take_connection_failure: (code, detail) or None."""
        cdef Status status
        if not self.network.take_connection_failure(node, <Channel><int>channel, &status):
            return None
        return status.code, to_text(status.detail)

    def least_loaded_node(self):
        """Network.least_loaded_node."""
        return self.network.least_loaded_node(self.clock.now_ms())

    def set_nodes(self, nodes):
        """Network.set_nodes with (id, host, port) triples."""
        cdef vector[NodeAddress] list_
        for entry in nodes:
            list_.push_back(address_of(entry))
        self.network.set_nodes(list_, self.clock.now_ms())

    def set_cluster(self, cluster_id):
        """Network.set_cluster."""
        self.network.set_cluster(to_string(cluster_id))

    def rebootstrap(self):
        """Network.rebootstrap."""
        self.network.rebootstrap(self.clock.now_ms())

    def throttle(self, node, ms, channel=0):
        """Network.throttle."""
        self.network.throttle(node, <Channel>channel, ms, self.clock.now_ms())

    def disconnect(self, node, channel=0):
        """Network.disconnect."""
        self.network.disconnect(node, <Channel><int>channel, self.clock.now_ms())

    def usable_version(self, node, api_key, low, high, channel=0):
        """Network.usable_version."""
        return self.network.usable_version(node, <Channel><int>channel, api_key, low, high)

    def next_timeout_ms(self):
        """Network.next_timeout_ms, None for never."""
        cdef int64_t ms = self.network.next_timeout_ms(self.clock.now_ms())
        return None if ms == INT64_MAX else ms

    def wakeup(self):
        """Network.wakeup; any thread."""
        self.network.wakeup()

    def close_all(self):
        """Network.close_all."""
        self.network.close_all()

    @property
    def any_connected(self):
        """Network.any_connected."""
        return self.network.any_connected()

    def node_name(self, node):
        """Network.node_name."""
        return to_text(self.network.node_name(node))

    def stats(self):
        """Network.collect_stats as dictionaries."""
        cdef vector[NodeStats] out
        cdef size_t i
        self.network.collect_stats(out)
        result = []
        for i in range(out.size()):
            result.append({
                "id": out[i].node_id, "name": to_text(out[i].name), "state": to_text(out[i].state), "tx": out[i].tx,
                "tx_bytes": out[i].tx_bytes, "rx": out[i].rx, "rx_bytes": out[i].rx_bytes,
                "connects": out[i].connects, "disconnects": out[i].disconnects, "rx_errors": out[i].rx_errors,
                "req_timeouts": out[i].req_timeouts, "waitresp": out[i].waitresp_count,
                "rtt_count": out[i].rtt_us.count, "throttle_ms": out[i].throttle_ms,
            })
        return result


def log_lines(*texts):
    """Log some texts and return the lines of the LogQueue."""
    cdef LogQueue queue
    cdef deque[LogLine] lines
    cdef string text
    for one in texts:
        text = to_string(one)
        queue.push(3, b"TEST", text)
        queue.write(3, 0, b"TEST", b"%s", text.c_str())
    queue.drain(lines)
    return [to_bytes(lines[i].text) for i in range(lines.size())]


def window_of(values):
    """Return the statistics of a WindowStats with these values."""
    cdef WindowStats window
    for value in values:
        window.add(value)
    return {"min": window.min, "max": window.max, "sum": window.sum, "cnt": window.count, "avg": window.average(),
            "stddev": window.deviation(), "outofrange": window.out_of_range,
            **{percent: window.percentile(percent) for percent in (50, 75, 90, 95, 99, 99.99)}}


cdef class NetworkDriver(DelegateDriver):
    """A NetworkClient and its delegate, which the test steps."""
    cdef NetworkClient client
    cdef BlockPool* pool
    cdef LogQueue* log

    def __init__(self, bootstrap, Clock clock not None, **options):
        cdef NetworkConfig config
        cdef int rc
        self.pool = BlockPool.create()
        self.log = new LogQueue()
        self.log.debug.store(options.pop("debug", 0))
        for i, (host, port) in enumerate(bootstrap):
            config.bootstrap.push_back(address_of((-2 - i, host, port)))
        self.configure(config, options)
        self.client = NetworkClient()
        rc = self.client.open(config, self.pool, self.log, clock)
        if rc != 0:
            raise OSError(rc, "open")
        self.attach(self.client, clock)

    cdef void configure(self, NetworkConfig& config, dict options) except *:
        config.software_version = to_string(options.pop("software_version", "1.0").encode())
        config.reconnect_backoff_ms = options.pop("reconnect_backoff_ms", 100)
        config.reconnect_backoff_max_ms = options.pop("reconnect_backoff_max_ms", 10000)
        config.connection_setup_timeout_ms = options.pop("connection_setup_timeout_ms", 30000)
        config.connections_max_idle_ms = options.pop("connections_max_idle_ms", 0)
        config.socket_max_fails = options.pop("socket_max_fails", 1)
        config.silence_ms = options.pop("silence_ms", 10**9)
        config.socket_send_buffer_bytes = options.pop("socket_send_buffer_bytes", 0)
        config.address_family = options.pop("address_family", 0)
        config.use_all_dns_ips = options.pop("use_all_dns_ips", True)
        config.canonical_bootstrap = options.pop("canonical_bootstrap", False)
        config.api_version_request = options.pop("api_version_request", True)
        config.cluster_check = options.pop("cluster_check", True)
        config.api_version_request_timeout_ms = options.pop("api_version_request_timeout_ms", 10000)
        config.receive_message_max_bytes = options.pop("receive_message_max_bytes", 100000000)
        self.configure_sasl(config, options.pop("sasl", None))
        if options:
            raise TypeError(f"unknown options {sorted(options)}")

    cdef void configure_sasl(self, NetworkConfig& config, object sasl) except *:
        """Set the mechanism `sasl[0]` and, if given, user name and password."""
        cdef Secret username, password
        if sasl is None:
            return
        config.security.use_sasl = True
        config.security.sasl = make_credentials()
        credentials_of(config.security.sasl).mechanism = to_string(sasl[0].encode())
        if len(sasl) > 1:
            username.assign(<const char*>sasl[1], len(sasl[1]))
            password.assign(<const char*>sasl[2], len(sasl[2]))
            set_password(credentials_of(config.security.sasl), username, password)

    def set_password(self, bytes username, bytes password):
        """SaslCredentials.set_password."""
        cdef Secret first = Secret(<const char*>username, len(username))
        cdef Secret second = Secret(<const char*>password, len(password))
        set_password(credentials_of(self.client.config.security.sasl), first, second)

    def set_token(self, bytes token, int64_t life_ms):
        """SaslCredentials.set_token."""
        cdef Secret raw = Secret(<const char*>token, len(token))
        cdef vector[pair[string, string]] none
        set_token(credentials_of(self.client.config.security.sasl), raw, none, life_ms, self.clock.now_ms())

    def ask_for_tokens(self):
        """Request tokens, as with an oauth_cb."""
        credentials_of(self.client.config.security.sasl).asks_for_tokens = True

    def token_failed(self, why):
        """SaslCredentials.token_failed."""
        credentials_of(self.client.config.security.sasl).token_failed(to_string(why.encode()), self.clock.now_ms())

    def take_token_request(self):
        """Network.take_token_request."""
        return self.client.take_token_request(self.clock.now_ms())

    def refusal(self):
        """Network.refusal: (code, detail) or None."""
        cdef Status status
        if not self.client.refusal(&status):
            return None
        return status.code, to_text(status.detail)

    def out_bytes(self, node, channel=0):
        """Return the first 64 bytes in the memory of a send buffer, with old content."""
        return to_bytes(string(<const char*>self.client.find_connection(node, channel).out.data(), 64))

    def __dealloc__(self):
        # Free the delegate and the client first, then the pool and the log that they use.
        self.delegate = None
        self.network = self.client = None
        if self.pool != NULL:
            self.pool.unref()
        del self.log

    def use_hanging_resolver(self):
        """Use a resolver that hangs until open_gate()."""
        set_gate(False)
        reset_calls(0)
        self.client.resolver.set_function(hanging_resolver)

    def use_dual_resolver(self):
        """Use a resolver that returns ::1, then 127.0.0.1, for every name."""
        reset_calls(0)
        self.client.resolver.set_function(dual_resolver)

    def use_canonical_resolver(self):
        """Use a resolver with the canonical names one.x and two.x for each name x.

        All names have the address 127.0.0.1; nameless.test has no canonical names.
        """
        reset_calls(0)
        self.client.resolver.set_function(canonical_resolver)

    @property
    def names_known(self):
        """The number of names that the resolver has cached or is resolving."""
        return self.client.resolver.known()

    @staticmethod
    def open_gate():
        """Let the hanging resolver answer."""
        set_gate(True)

    @staticmethod
    def resolver_calls():
        """Return the number of calls of the scripted resolvers."""
        return count_calls()

    def poll_until(self, condition, seconds=20.0):
        """Run turns until condition() is true.

        The deadline is in real time, and only a failing test reaches it.
        """
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"condition not reached within {seconds} s; log: {self.lines()}")
            self.poll(20)

    def abandon(self):
        """NetworkClient.abandon(), in the child of a fork."""
        self.client.abandon()

    @property
    def waits(self):
        """The number of calls of the selector's wait()."""
        return self.client.selector.waits()

    @property
    def live_bytes(self):
        """The bytes in referenced blocks."""
        return self.pool.live_bytes()

    def lines(self):
        """Return the log lines since the last call: (level, facility, text)."""
        cdef deque[LogLine] out
        cdef size_t i
        self.log.drain(out)
        return [(out[i].level, out[i].facility.decode(), to_text(out[i].text)) for i in range(out.size())]
