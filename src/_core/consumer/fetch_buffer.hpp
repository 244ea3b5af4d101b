// Owns: FetchBuffer, decoded records and partition events between the network thread and the application.
// Threads: put N, take A; shared: the mutex, taken once per publication, never per record.
// Never: decides which entries are valid; FetchHandler compares epochs.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/counted_mutex.hpp"
#include "records/columns.hpp"
#include "state/partition_state.hpp"

namespace kc {

enum FetchEntryKind : int32_t { ENTRY_RECORDS, ENTRY_END_OF_PARTITION, ENTRY_ERROR };

// Consecutive rows of one partition in one arena, or an event of that partition in record order.
struct FetchEntry {
  FetchEntryKind kind = ENTRY_RECORDS;
  PartitionState* partition = nullptr;  // holds a reference
  uint64_t position_epoch = 0;          // position epoch of the fetch
  Columns* columns = nullptr;           // holds a reference; null without rows
  int32_t row = 0;                      // next row to return
  int32_t row_end = 0;
  int64_t next_offset = 0;              // the position after the last row was returned: after invisible records
  // Of the last batch before next_offset, visible or not. Otherwise: 1. A new leader writes only transaction markers.
  // 2. The position is committed after them, with the old leader's epoch. 3. The next owner asks for the end of that
  // epoch, which is before the position. 4. It sees a truncation (tests/unit/consumer/test_position_epoch.py).
  int32_t next_leader_epoch = -1;
  int64_t offset = OFFSET_INVALID;      // END_OF_PARTITION, ERROR
  Status status;                        // ERROR

  void release() {
    if (columns) columns->release();
    if (partition) partition->release();
    columns = nullptr;
    partition = nullptr;
  }
};

// The next record of each partition: its timestamp, and whether one was found. thread: the caller's.
class NextRecords {
 public:
  // Later entries of a partition are ignored. `row`: the first one of the entry that was not returned.
  void add(const FetchEntry& entry, int32_t row) {
    if (entry.kind != ENTRY_RECORDS || row >= entry.row_end) return;
    if (entry.position_epoch != entry.partition->position_epoch.load()) return;
    // A call may have copied the records, and released their arena, before it returns.
    found_.emplace(entry.partition, entry.columns == nullptr ? -1 : entry.columns->timestamps[row]);
  }
  // In ms since the epoch; -1: unknown.
  int64_t timestamp_of(const PartitionState* p) const {
    auto it = found_.find(p);
    return it == found_.end() ? -1 : it->second;
  }

 private:
  std::unordered_map<const PartitionState*, int64_t> found_;
};

class FetchBuffer {
 public:
  ~FetchBuffer() {
    for (auto& e : entries_) e.release();
  }
  void put(std::vector<FetchEntry>& entries) {
    std::lock_guard<CountedMutex> hold(mutex_);
    for (auto& e : entries) entries_.push_back(std::move(e));
    entries.clear();
    filled_.store(true, std::memory_order_release);
  }
  bool empty() const { return !filled_.load(std::memory_order_acquire); }
  // Moves all entries to the end of `out`.
  void take(std::deque<FetchEntry>& out) {
    std::lock_guard<CountedMutex> hold(mutex_);
    if (out.empty()) {
      out.swap(entries_);
    } else {
      for (auto& e : entries_) out.push_back(std::move(e));
      entries_.clear();
    }
    filled_.store(false, std::memory_order_release);
  }
  void find_next(NextRecords& found) {
    std::lock_guard<CountedMutex> hold(mutex_);
    for (const auto& e : entries_) found.add(e, e.row);
  }
  int64_t locks_taken() const { return mutex_.taken(); }

 private:
  CountedMutex mutex_;
  std::deque<FetchEntry> entries_;
  std::atomic<bool> filled_{false};
};

}  // namespace kc
