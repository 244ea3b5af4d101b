// Owns: FetchConfig, the fetcher's configuration.
// Threads: atomics are written on A by set_config() and read on N; the rest is written before N starts.
// Never: checks a value; kconsumer/config has checked them.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "state/timing.hpp"

namespace kc {

enum ResetPolicy : int32_t { RESET_NONE = 0, RESET_EARLIEST, RESET_LATEST, RESET_BY_DURATION };

struct FetchConfig {
  std::atomic<int32_t> min_bytes{1};
  std::atomic<int32_t> wait_max_ms{500};
  std::atomic<int32_t> max_bytes{52428800};
  std::atomic<int32_t> max_partition_bytes{0};  // 0: a share of the size of one response
  std::atomic<int64_t> buffer_memory{64 << 20};
  int64_t max_inflated_batch_bytes = 0;         // 0: see FetchSender
  int32_t max_record_headers = INT32_MAX;
  bool check_crcs = true;
  bool read_committed = true;
  bool partition_eof = false;
  bool has_group = false;              // without a given offset, read the committed offset of the group
  bool allow_auto_create_topics = false;
  ResetPolicy reset_policy = RESET_LATEST;
  int64_t reset_duration_ms = 0;
  std::string client_rack;
  int64_t metadata_max_age_ms = 900000;
  bool connections_are_costly = false;  // each connection needs a TLS or SASL handshake
  size_t window_from = 64;             // partitions of a broker from which a backlog is read in windows; tests set less
  bool rebootstrap = true;
  int64_t rebootstrap_trigger_ms = 300000;
};

// Counters of the fetch path. N writes them unless the line says otherwise; any thread reads them.
struct FetchCounters {
  std::atomic<int64_t> reserved_bytes{0};      // reserved for requests in flight
  std::atomic<int64_t> undecoded{0};           // received items that are not yet decoded; A may subtract
  std::atomic<int64_t> inflated_ahead{0};      // how often N decompressed data for an application that decodes itself
  std::atomic<int64_t> undelivered_records{0}; // decoded and not yet taken; A subtracts
  std::atomic<int64_t> returned_records{0};    // taken by the application; written on A
  std::atomic<int64_t> fetches{0};
  Timing fetch_times;                          // answered Fetch requests
  std::atomic<int64_t> fetched_bytes{0};
  std::atomic<int64_t> records{0};
  std::atomic<int64_t> stalls{0};              // how often a fetch was delayed because the buffer was full
  std::atomic<int64_t> bad_batches{0};         // how often a batch could not be read
  std::atomic<int64_t> turns{0};               // of the network loop
};

}  // namespace kc
