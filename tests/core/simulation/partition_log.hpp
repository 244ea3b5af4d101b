// Owns: PartitionLog: one partition's batches in a broker (transactions, markers, compacted gaps, epochs), and the
// exact set of offsets that an application may see.
// Threads: the simulation's thread. Never: knows its readers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "protocol/wire.hpp"
#include "records/crc32c.hpp"

namespace kc::sim {

struct LogBatch {
  int64_t base = 0;
  int64_t last = 0;
  int32_t epoch = 0;
  std::string bytes;
};

struct AbortedRange {
  int64_t producer_id = 0;
  int64_t first_offset = 0;
  int64_t marker_offset = 0;
};

class PartitionLog {
 public:
  int64_t start = 0;
  int64_t end = 0;                                     // also the high watermark
  std::vector<LogBatch> batches;
  std::vector<std::pair<int32_t, int64_t>> epochs;     // epoch, its first offset
  std::vector<AbortedRange> aborted;

  // Records of offsets [end, end + count); records in `missing` (bit i: the i-th) were removed by compaction.
  void append(int32_t epoch, int64_t count, uint64_t missing, int64_t producer_id, int64_t time_ms,
              const std::string& prefix) {
    std::string records;
    int32_t kept = 0;
    const int64_t base = end;
    for (int64_t i = 0; i < count; ++i) {
      if (missing >> i & 1) continue;
      add_record(records, i, std::string(), prefix + std::to_string(base + i));
      ++kept;
      insert_sorted(producer_id < 0 ? seen_committed_ : open_[producer_id].offsets, base + i);
      insert_sorted(seen_, base + i);
    }
    if (producer_id >= 0 && open_[producer_id].first < 0) open_[producer_id].first = base;
    add_batch(epoch, base, count, kept, records, producer_id, producer_id >= 0 ? 0x10 : 0, time_ms);
  }
  // Ends a producer's transaction with a marker.
  void end_transaction(int32_t epoch, int64_t producer_id, bool commit, int64_t time_ms) {
    auto it = open_.find(producer_id);
    if (it == open_.end()) return;
    Writer key, value;
    key.write_int16(0);
    key.write_int16(commit ? 1 : 0);
    value.write_int16(0);
    value.write_int32(0);
    std::string records;
    add_record(records, 0, text(key), text(value));
    const int64_t marker = end;
    add_batch(epoch, marker, 1, 1, records, producer_id, 0x30, time_ms);
    if (commit) {
      for (int64_t offset : it->second.offsets) insert_sorted(seen_committed_, offset);
    } else {
      aborted.push_back(AbortedRange{producer_id, it->second.first, marker});
    }
    open_.erase(it);
  }
  // Retention: removes all records below `offset`.
  void trim(int64_t offset) {
    start = std::max(start, std::min(offset, end));
    while (!batches.empty() && batches.front().last < start) batches.erase(batches.begin());
  }
  void begin_epoch(int32_t epoch) { epochs.emplace_back(epoch, end); }
  int64_t last_stable_offset() const {
    int64_t lowest = end;
    for (const auto& entry : open_) lowest = std::min(lowest, entry.second.first);
    return lowest;
  }
  // (largest epoch ≤ the given one, end offset of its records)
  std::pair<int32_t, int64_t> epoch_end(int32_t epoch) const {
    std::pair<int32_t, int64_t> found(-1, -1);
    for (size_t i = 0; i < epochs.size(); ++i) {
      if (epochs[i].first > epoch) break;
      found = {epochs[i].first, i + 1 < epochs.size() ? epochs[i + 1].second : end};
    }
    return found;
  }
  // The first offset ≥ `offset` that an application sees (or could see before retention); `end` if there is none yet.
  int64_t next_visible(int64_t offset, bool read_committed) const {
    const auto& offsets = read_committed ? seen_committed_ : seen_;
    auto it = std::lower_bound(offsets.begin(), offsets.end(), offset);
    return it == offsets.end() ? end : *it;
  }
  // Whether a reader at `position` may get `offset` next. It is the next visible offset or, if retention has removed
  // that one, an offset that a reset to the start may have reached.
  bool may_follow(int64_t position, int64_t offset, bool read_committed) const {
    const int64_t exact = next_visible(position, read_committed);
    if (offset == exact) return exact < end;
    return position < start && offset > exact && offset <= next_visible(start, read_committed);
  }
  size_t first_batch(int64_t offset) const {
    return static_cast<size_t>(std::lower_bound(batches.begin(), batches.end(), offset, [](const LogBatch& b, int64_t o) {
      return b.last < o;
    }) - batches.begin());
  }

 private:
  struct Transaction {
    int64_t first = -1;
    std::vector<int64_t> offsets;
  };
  static std::string text(const Writer& w) { return std::string(reinterpret_cast<const char*>(w.data()), w.size()); }
  static void insert_sorted(std::vector<int64_t>& into, int64_t offset) {
    if (into.empty() || into.back() < offset) {
      into.push_back(offset);
    } else {
      into.insert(std::lower_bound(into.begin(), into.end(), offset), offset);
    }
  }
  static void put_varint(std::string& out, int64_t v) {
    uint64_t n = (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
    for (; n >= 0x80; n >>= 7) out.push_back(static_cast<char>(n | 0x80));
    out.push_back(static_cast<char>(n));
  }
  static void add_record(std::string& out, int64_t delta, const std::string& key, const std::string& value) {
    std::string body(1, '\0');
    put_varint(body, 0);
    put_varint(body, delta);
    if (key.empty()) {
      put_varint(body, -1);
    } else {
      put_varint(body, static_cast<int64_t>(key.size()));
      body += key;
    }
    put_varint(body, static_cast<int64_t>(value.size()));
    body += value;
    put_varint(body, 0);
    put_varint(out, static_cast<int64_t>(body.size()));
    out += body;
  }
  void add_batch(int32_t epoch, int64_t base, int64_t count, int32_t kept, const std::string& records,
                 int64_t producer_id, int16_t attributes, int64_t time_ms) {
    Writer tail, head;
    tail.write_int16(attributes);
    tail.write_int32(static_cast<int32_t>(count - 1));
    tail.write_int64(time_ms);
    tail.write_int64(time_ms);
    tail.write_int64(producer_id);
    tail.write_int16(producer_id >= 0 ? 0 : -1);
    tail.write_int32(-1);
    tail.write_int32(kept);
    tail.write_raw(records.data(), records.size());
    head.write_int64(base);
    head.write_int32(static_cast<int32_t>(9 + tail.size()));
    head.write_int32(epoch);
    head.write_int8(2);
    head.write_uint32(crc32c_extend(0, tail.data(), tail.size()));
    batches.push_back(LogBatch{base, base + count - 1, epoch, text(head) + text(tail)});
    end = base + count;
  }

  std::map<int64_t, Transaction> open_;
  std::vector<int64_t> seen_;            // offsets with a record, for read_uncommitted
  std::vector<int64_t> seen_committed_;
};

}  // namespace kc::sim
