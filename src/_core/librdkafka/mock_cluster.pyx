"""Owns: a binding to the mock cluster in librdkafka, for EmbeddedCluster.

thread: A (one at a time; librdkafka passes each call to the cluster's thread, so the GIL is released meanwhile). Never:
linked into a consumer, used by the network thread, needs librdkafka's headers: the prototypes are declared here from
librdkafka 2.16's documentation, and looked up at run time in the library of the confluent-kafka wheel.
"""
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stdlib cimport free
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym
from posix.unistd cimport getpid, pid_t

cdef enum:
    RD_KAFKA_PRODUCER = 0

ctypedef void* (*conf_new_t)() noexcept nogil
ctypedef int (*conf_set_t)(void*, const char*, const char*, char*, size_t) noexcept nogil
ctypedef void* (*new_t)(int, void*, char*, size_t) noexcept nogil
ctypedef void (*destroy_t)(void*) noexcept nogil
ctypedef const char* (*text_of_t)(int) noexcept nogil
ctypedef void* (*cluster_new_t)(void*, int) noexcept nogil
ctypedef const char* (*bootstraps_t)(const void*) noexcept nogil
ctypedef void (*api_t)(void*, int16_t) noexcept nogil
ctypedef void (*errors_t)(void*, int16_t, size_t, const int*) noexcept nogil
ctypedef int (*broker_errors_t)(void*, int32_t, int16_t, size_t, ...) noexcept nogil
ctypedef int (*partition_errors_t)(void*, const char*, int32_t, int16_t, size_t, ...) noexcept nogil
ctypedef void (*topic_error_t)(void*, const char*, int) noexcept nogil
ctypedef int (*topic_create_t)(void*, const char*, int, int) noexcept nogil
ctypedef int (*topic_delete_t)(void*, const char*) noexcept nogil
ctypedef int (*delete_records_t)(void*, const char*, int32_t, int64_t) noexcept nogil
ctypedef int (*partition_broker_t)(void*, const char*, int32_t, int32_t) noexcept nogil
ctypedef int (*watermarks_t)(void*, const char*, int32_t, int64_t, int64_t) noexcept nogil
ctypedef int (*leader_response_t)(void*, const char*, int, int32_t, int32_t) noexcept nogil
ctypedef int (*broker_t)(void*, int32_t) noexcept nogil
ctypedef int (*broker_int_t)(void*, int32_t, int) noexcept nogil
ctypedef int (*broker_text_t)(void*, int32_t, const char*) noexcept nogil
ctypedef int (*coordinator_t)(void*, const char*, const char*, int32_t) noexcept nogil
ctypedef int (*api_version_t)(void*, int16_t, int16_t, int16_t) noexcept nogil
ctypedef void (*cluster_t)(void*) noexcept nogil
ctypedef void (*cluster_int_t)(void*, int32_t) noexcept nogil
ctypedef void** (*requests_t)(void*, size_t*) noexcept nogil
ctypedef void (*request_free_t)(void*) noexcept nogil
ctypedef int32_t (*request_id_t)(void*) noexcept nogil
ctypedef int16_t (*request_api_t)(void*) noexcept nogil
ctypedef int64_t (*request_time_t)(void*) noexcept nogil


cdef struct Library:
    conf_new_t conf_new
    conf_set_t conf_set
    new_t new_handle
    destroy_t destroy
    text_of_t err2str
    cluster_new_t cluster_new
    destroy_t cluster_destroy
    bootstraps_t bootstraps
    api_t clear_request_errors
    errors_t push_request_errors
    broker_errors_t broker_push_errors
    partition_errors_t partition_push_errors
    topic_error_t topic_set_error
    topic_create_t topic_create
    topic_delete_t topic_delete
    delete_records_t delete_records
    partition_broker_t set_leader
    partition_broker_t set_follower
    watermarks_t set_follower_watermarks
    leader_response_t push_leader_response
    broker_t broker_down
    broker_t broker_up
    broker_int_t broker_rtt
    broker_text_t broker_rack
    broker_t broker_add
    broker_t broker_decommission
    coordinator_t coordinator_set
    api_version_t set_api_version
    cluster_t start_tracking
    cluster_t stop_tracking
    cluster_t clear_requests
    requests_t get_requests
    request_free_t request_destroy
    request_id_t request_id
    request_api_t request_api_key
    request_time_t request_timestamp
    cluster_int_t initial_rebalance_delay
    cluster_int_t session_timeout
    cluster_int_t heartbeat_interval


cdef void* symbol(void* library, bytes name) except NULL:
    cdef void* found = dlsym(library, name)
    if found == NULL:
        raise ImportError(f"librdkafka is too old, it has no {name.decode()}: run pip install 'kconsumer[testing]'")
    return found


cdef class MockCluster:
    """librdkafka's mock cluster: brokers 1 … ``brokers`` on loopback, in this process.

    Methods return librdkafka's error code (0: success) unless their docstring says otherwise. ``error_text`` explains
    a code. Raises ImportError if ``library`` cannot be loaded or is too old, RuntimeError if the cluster cannot start.
    """
    cdef void* handle   # thread: A; the dynamic library
    cdef void* client   # thread: A; the rd_kafka_t of the cluster
    cdef void* cluster  # thread: A
    cdef Library lib    # thread: A; written once
    cdef pid_t owner    # thread: A; librdkafka's threads exist in this process only

    def __cinit__(self, str library, int brokers):
        cdef char reason[512]
        cdef void* conf
        self.owner = getpid()
        self.handle = dlopen(library.encode(), RTLD_NOW | RTLD_LOCAL)
        if self.handle == NULL:
            raise ImportError(f"cannot load librdkafka: {dlerror().decode(errors='replace')}: "
                              "run pip install 'kconsumer[testing]'")
        self.resolve()
        conf = self.lib.conf_new()
        # Its client has no broker to connect to; log only errors worse than a warning to stderr.
        self.lib.conf_set(conf, b"log_level", b"3", reason, sizeof(reason))
        with nogil:
            self.client = self.lib.new_handle(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason))
        if self.client == NULL:
            raise RuntimeError(f"librdkafka: {reason.decode(errors='replace')}")
        with nogil:
            self.cluster = self.lib.cluster_new(self.client, brokers)
        if self.cluster == NULL:
            raise RuntimeError(f"librdkafka cannot create a mock cluster of {brokers} broker(s)")

    cdef int resolve(self) except -1:
        cdef Library* lib = &self.lib
        lib.conf_new = <conf_new_t>symbol(self.handle, b"rd_kafka_conf_new")
        lib.conf_set = <conf_set_t>symbol(self.handle, b"rd_kafka_conf_set")
        lib.new_handle = <new_t>symbol(self.handle, b"rd_kafka_new")
        lib.destroy = <destroy_t>symbol(self.handle, b"rd_kafka_destroy")
        lib.err2str = <text_of_t>symbol(self.handle, b"rd_kafka_err2str")
        lib.cluster_new = <cluster_new_t>symbol(self.handle, b"rd_kafka_mock_cluster_new")
        lib.cluster_destroy = <destroy_t>symbol(self.handle, b"rd_kafka_mock_cluster_destroy")
        lib.bootstraps = <bootstraps_t>symbol(self.handle, b"rd_kafka_mock_cluster_bootstraps")
        lib.clear_request_errors = <api_t>symbol(self.handle, b"rd_kafka_mock_clear_request_errors")
        lib.push_request_errors = <errors_t>symbol(self.handle, b"rd_kafka_mock_push_request_errors_array")
        lib.broker_push_errors = <broker_errors_t>symbol(
            self.handle, b"rd_kafka_mock_broker_push_request_error_rtts")
        lib.partition_push_errors = <partition_errors_t>symbol(
            self.handle, b"rd_kafka_mock_partition_push_request_errors")
        lib.topic_set_error = <topic_error_t>symbol(self.handle, b"rd_kafka_mock_topic_set_error")
        lib.topic_create = <topic_create_t>symbol(self.handle, b"rd_kafka_mock_topic_create")
        lib.topic_delete = <topic_delete_t>symbol(self.handle, b"rd_kafka_mock_topic_delete")
        lib.delete_records = <delete_records_t>symbol(self.handle, b"rd_kafka_mock_partition_delete_records")
        lib.set_leader = <partition_broker_t>symbol(self.handle, b"rd_kafka_mock_partition_set_leader")
        lib.set_follower = <partition_broker_t>symbol(self.handle, b"rd_kafka_mock_partition_set_follower")
        lib.set_follower_watermarks = <watermarks_t>symbol(
            self.handle, b"rd_kafka_mock_partition_set_follower_wmarks")
        lib.push_leader_response = <leader_response_t>symbol(
            self.handle, b"rd_kafka_mock_partition_push_leader_response")
        lib.broker_down = <broker_t>symbol(self.handle, b"rd_kafka_mock_broker_set_down")
        lib.broker_up = <broker_t>symbol(self.handle, b"rd_kafka_mock_broker_set_up")
        lib.broker_rtt = <broker_int_t>symbol(self.handle, b"rd_kafka_mock_broker_set_rtt")
        lib.broker_rack = <broker_text_t>symbol(self.handle, b"rd_kafka_mock_broker_set_rack")
        lib.broker_add = <broker_t>symbol(self.handle, b"rd_kafka_mock_broker_add")
        lib.broker_decommission = <broker_t>symbol(self.handle, b"rd_kafka_mock_broker_decommission")
        lib.coordinator_set = <coordinator_t>symbol(self.handle, b"rd_kafka_mock_coordinator_set")
        lib.set_api_version = <api_version_t>symbol(self.handle, b"rd_kafka_mock_set_apiversion")
        lib.start_tracking = <cluster_t>symbol(self.handle, b"rd_kafka_mock_start_request_tracking")
        lib.stop_tracking = <cluster_t>symbol(self.handle, b"rd_kafka_mock_stop_request_tracking")
        lib.clear_requests = <cluster_t>symbol(self.handle, b"rd_kafka_mock_clear_requests")
        lib.get_requests = <requests_t>symbol(self.handle, b"rd_kafka_mock_get_requests")
        lib.request_destroy = <request_free_t>symbol(self.handle, b"rd_kafka_mock_request_destroy")
        lib.request_id = <request_id_t>symbol(self.handle, b"rd_kafka_mock_request_id")
        lib.request_api_key = <request_api_t>symbol(self.handle, b"rd_kafka_mock_request_api_key")
        lib.request_timestamp = <request_time_t>symbol(self.handle, b"rd_kafka_mock_request_timestamp")
        lib.initial_rebalance_delay = <cluster_int_t>symbol(
            self.handle, b"rd_kafka_mock_group_initial_rebalance_delay_ms")
        lib.session_timeout = <cluster_int_t>symbol(
            self.handle, b"rd_kafka_mock_set_group_consumer_session_timeout_ms")
        lib.heartbeat_interval = <cluster_int_t>symbol(
            self.handle, b"rd_kafka_mock_set_group_consumer_heartbeat_interval_ms")
        return 0

    def __dealloc__(self):
        self.destroy()  # the library stays loaded: exit handlers of its threads may not have run yet

    def close(self):
        """Stop the brokers and free everything; later calls raise RuntimeError."""
        self.destroy()

    cdef void destroy(self) noexcept:
        if self.owner == getpid():  # a forked child does not have the threads to wait for
            with nogil:
                if self.cluster != NULL:
                    self.lib.cluster_destroy(self.cluster)
                if self.client != NULL:
                    self.lib.destroy(self.client)
        self.cluster = NULL
        self.client = NULL

    cdef void* alive(self) except NULL:
        if self.cluster == NULL:
            raise RuntimeError("the embedded cluster is stopped: start another one")
        if self.owner != getpid():
            raise RuntimeError("the embedded cluster belongs to the parent process: start another one after fork()")
        return self.cluster

    def error_text(self, int code):
        """Return librdkafka's text of an error code."""
        return self.lib.err2str(code).decode()

    def bootstrap_servers(self):
        """Return ``host:port`` of all brokers, separated by commas."""
        return self.lib.bootstraps(self.alive()).decode()

    def topic_create(self, str topic, int partitions, int replication):
        """Create a topic."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.topic_create(cluster, c_name, partitions, replication)
        return code

    def topic_delete(self, str topic):
        """Delete a topic."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.topic_delete(cluster, c_name)
        return code

    def topic_set_error(self, str topic, int error):
        """Answer Metadata requests for the topic with this error; 0: no error. Returns nothing."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            self.lib.topic_set_error(cluster, c_name, error)

    def delete_records(self, str topic, int32_t partition, int64_t before_offset):
        """Raise a partition's low watermark."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.delete_records(cluster, c_name, partition, before_offset)
        return code

    def set_leader(self, str topic, int32_t partition, int32_t broker):
        """Move a partition's leader; -1: no leader."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.set_leader(cluster, c_name, partition, broker)
        return code

    def set_follower(self, str topic, int32_t partition, int32_t broker):
        """Set a partition's preferred read replica; -1: none."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.set_follower(cluster, c_name, partition, broker)
        return code

    def set_follower_watermarks(self, str topic, int32_t partition, int64_t low, int64_t high):
        """Set the watermarks of the preferred read replica; -1: as the leader."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.set_follower_watermarks(cluster, c_name, partition, low, high)
        return code

    def push_leader_response(self, str topic, int partition, int32_t leader, int32_t leader_epoch):
        """Answer the next Metadata request with this leader and epoch for a partition."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.push_leader_response(cluster, c_name, partition, leader, leader_epoch)
        return code

    def push_request_error(self, int16_t api_key, int error):
        """Answer the next request of an API, on any broker, with an error. Returns nothing."""
        cdef void* cluster = self.alive()
        with nogil:
            self.lib.push_request_errors(cluster, api_key, 1, &error)

    def push_broker_error(self, int32_t broker, int16_t api_key, int error, int rtt_ms):
        """Answer the next request of an API on one broker with an error, ``rtt_ms`` late.

        Error 0: only the delay.
        """
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.broker_push_errors(cluster, broker, api_key, <size_t>1, error, rtt_ms)
        return code

    def push_partition_error(self, str topic, int32_t partition, int16_t api_key, int error):
        """Answer for a partition in the next request of an API with an error."""
        cdef bytes name = topic.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.partition_push_errors(cluster, c_name, partition, api_key, <size_t>1, error)
        return code

    def clear_request_errors(self, int16_t api_key):
        """Drop pushed request errors that were not used. Returns nothing."""
        cdef void* cluster = self.alive()
        with nogil:
            self.lib.clear_request_errors(cluster, api_key)

    def broker_down(self, int32_t broker):
        """Close a broker's connections and refuse new ones; -1: all brokers."""
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.broker_down(cluster, broker)
        return code

    def broker_up(self, int32_t broker):
        """Accept connections again."""
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.broker_up(cluster, broker)
        return code

    def broker_add(self, int32_t broker):
        """Add a broker."""
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.broker_add(cluster, broker)
        return code

    def broker_decommission(self, int32_t broker):
        """Remove a broker permanently."""
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.broker_decommission(cluster, broker)
        return code

    def broker_rtt(self, int32_t broker, int rtt_ms):
        """Delay every response of a broker; -1: all brokers."""
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.broker_rtt(cluster, broker, rtt_ms)
        return code

    def broker_rack(self, int32_t broker, str rack):
        """Set a broker's rack."""
        cdef bytes name = rack.encode()
        cdef const char* c_name = name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.broker_rack(cluster, broker, c_name)
        return code

    def coordinator_set(self, str kind, str key, int32_t broker):
        """Make a broker the coordinator of a ``"group"`` or ``"transaction"``."""
        cdef bytes kind_name = kind.encode()
        cdef const char* c_kind = kind_name
        cdef bytes key_name = key.encode()
        cdef const char* c_key = key_name
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.coordinator_set(cluster, c_kind, c_key, broker)
        return code

    def set_api_version(self, int16_t api_key, int16_t lowest, int16_t highest):
        """Offer only these versions of an API; -1, -1: remove the API."""
        cdef void* cluster = self.alive()
        with nogil:
            code = self.lib.set_api_version(cluster, api_key, lowest, highest)
        return code

    def group_timing(self, int32_t initial_rebalance_delay_ms, int32_t session_timeout_ms,
                     int32_t heartbeat_interval_ms):
        """Set the classic initial delay and the consumer protocol's timing; -1: unchanged.

        Returns nothing.
        """
        cdef void* cluster = self.alive()
        with nogil:
            if initial_rebalance_delay_ms >= 0:
                self.lib.initial_rebalance_delay(cluster, initial_rebalance_delay_ms)
            if session_timeout_ms >= 0:
                self.lib.session_timeout(cluster, session_timeout_ms)
            if heartbeat_interval_ms >= 0:
                self.lib.heartbeat_interval(cluster, heartbeat_interval_ms)

    def track_requests(self, bint on):
        """Start (and forget earlier requests) or stop recording requests. Returns nothing."""
        cdef void* cluster = self.alive()
        with nogil:
            if on:
                self.lib.clear_requests(cluster)
                self.lib.start_tracking(cluster)
            else:
                self.lib.stop_tracking(cluster)

    def requests(self):
        """Return the recorded requests: a list of (broker, api key, monotonic µs)."""
        cdef size_t count = 0
        cdef size_t i
        cdef void** found
        cdef void* cluster = self.alive()
        with nogil:
            found = self.lib.get_requests(cluster, &count)
        try:
            return [(self.lib.request_id(found[i]), self.lib.request_api_key(found[i]),
                     self.lib.request_timestamp(found[i])) for i in range(count)]
        finally:
            for i in range(count):
                self.lib.request_destroy(found[i])
            free(found)
