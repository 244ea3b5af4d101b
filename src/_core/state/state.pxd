# Declares what other layers, and tests, use of state.pyx. Threads: N and A; see each attribute.
from kconsumer._core.base.counted_mutex cimport CountedMutex
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint64_t, unordered_map, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.topic_partition cimport PartitionOffset, TopicPartition
from kconsumer._core.state.fetch_config cimport FetchConfig
from kconsumer._core.state.metadata cimport ClusterCache
from kconsumer._core.state.partition_state cimport Hand, PartitionState

include "subscription_state.pxd"
include "fetch_positions.pxd"
