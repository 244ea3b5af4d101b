# Simulated brokers and one consumer's connections to them. thread: the simulation's thread.
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, map, pair, string, uint8_t, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.network.network cimport Completion, Network, NodeLoss
from kconsumer._core.network.request cimport NodeAddress, Request
from kconsumer._core.records.columns cimport BlockPool


cdef extern from "simulation/cluster.hpp" namespace "kc::sim" nogil:
    cdef cppclass Faults:
        bint active
        double lose_request
        double lose_response
        double hang
        double slow
        double refuse
        double throttle
        double spoil
        double evict_session

    cdef cppclass World:
        int64_t now_ms
        Faults faults
        int64_t latency_ms
        int64_t session_ms
        bint tracing
        vector[string] lines
        vector[string] violations
        int64_t next_ms()
        void run_due()
        void trace(const char*, ...)

    cdef cppclass Rates:
        double appends
        double transactions
        double gaps
        double leader_moves
        double coordinator_moves
        double outages
        double fences
        double trims

    cdef cppclass PartitionLog:
        int64_t start
        int64_t end
        int64_t last_stable_offset()
        int64_t next_visible(int64_t, bint)
        bint may_follow(int64_t, int64_t, bint)

    cdef cppclass Partition:
        PartitionLog log
        int32_t leader

    cdef cppclass Topic:
        string name

    cdef cppclass Topics:
        Topic* by_name(const string&)

        @staticmethod
        Partition* part(Topic*, int32_t)
        void create(const string&, int32_t)
        void grow(const string&, int32_t)
        void move_leader(Topic&, int32_t, int32_t)

    ctypedef pair[string, int32_t] TopicPartition "kc::sim::TopicPartition"

    cdef cppclass CommittedOffset:
        int64_t offset

    cdef cppclass AcceptedCommit:
        int64_t time_ms
        int32_t client
        string member_id
        string topic
        int32_t partition
        int64_t offset
        int64_t before

    cdef cppclass AwaitedAssignment:
        int64_t begin_ms
        int64_t end_ms
        int32_t leader

    cdef cppclass Group:
        map[TopicPartition, CommittedOffset] offsets
        vector[AcceptedCommit] accepted
        vector[AwaitedAssignment] awaited
        vector[int64_t] forgot_ms
        string owner(const TopicPartition&)
        int32_t incarnation(const string&)
        bint stable()
        string describe()
        bint expire_a_member()

    cdef cppclass ConsumerGroup(Group):
        int32_t session_timeout_ms
        int32_t heartbeat_interval_ms

    cdef cppclass ClassicGroup(Group):
        int32_t initial_delay_ms

    cdef cppclass Coordinator:
        int32_t node
        ClassicGroup classic
        ConsumerGroup modern
        bint uses_modern
        Group& group()
        void move_to(int32_t)

    cdef cppclass Exchanges:
        pass

    cdef cppclass Cluster:
        Cluster(uint64_t)
        World world
        Topics topics
        Exchanges exchanges
        Coordinator coordinator
        Rates rates
        map[int32_t, int16_t] versions
        vector[ClientNetwork*] clients
        vector[NodeAddress] bootstrap()
        void live()
        void settle()
        void finish_transactions()
        void stop_broker(int32_t, int64_t)

    cdef cppclass ClientNetwork:
        ClientNetwork(World&, Exchanges&, int32_t, const map[int32_t, int16_t]&, const vector[NodeAddress]&)
        bint stopped
        bint needs_turn
        int64_t due_ms
        int64_t heard_ms
        void cut(bint outbound, bint inbound, int64_t for_ms)
        void use_pool(BlockPool*)
        int ready(int32_t, int)
        void send(Request*)
        void poll(int64_t, vector[Completion]&)
        int64_t next_timeout_ms()
        void set_nodes(const vector[NodeAddress]&)
        void rebootstrap()
        void throttle(int32_t, int, int32_t)
        void disconnect(int32_t, int)
        void renew(int32_t, int)
        void close_all()
        bint take_failure(int32_t, int, Status*)
        int32_t least_loaded()
        int32_t usable_version(int32_t, int, int32_t, int32_t, int32_t)
        int32_t in_flight()
        bint any_connected()
        string name(int32_t)
        void take_losses(vector[NodeLoss]&)


cdef class SimulatedCluster:
    cdef Cluster* brokers

    cdef PartitionLog* log(self, str topic, int partition) except NULL


cdef class SimulatedNetwork(Network):
    cdef SimulatedCluster cluster  # kept alive
    cdef ClientNetwork* client
