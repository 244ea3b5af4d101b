// Owns: MergedCommits, the commits of the application in one entry of the commit queue. Each keeps its own offsets, so
// that on_commit is called for each of them.
// Threads: N fills it until its BackgroundEvent is queued; A takes the commits out then.
// Never: keeps more than kMostBytes for one consumer (CommitMemory); commits after that are only counted.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "events/topic_partition.hpp"

namespace kc {

using CommitMemory = std::shared_ptr<std::atomic<int64_t>>;  // bytes in all MergedCommits of a consumer

class MergedCommits {
 public:
  static constexpr int64_t kMostBytes = 32 << 20;

  explicit MergedCommits(CommitMemory memory) : memory_(std::move(memory)) {}
  MergedCommits(const MergedCommits&) = delete;
  MergedCommits& operator=(const MergedCommits&) = delete;
  ~MergedCommits() { memory_->fetch_sub(bytes_, std::memory_order_relaxed); }

  size_t size() const { return kept_ + beyond_; }
  // The deadline of the oldest commit; INT64_MAX: no commit.
  int64_t deadline_ms() const { return named_.empty() ? beyond_deadline_ms_ : named_.front().deadline_ms; }

  // A commit of `offsets`; places[i]: the index of offsets[i] in the offsets of the entry.
  void add(const std::vector<PartitionOffset>& offsets, const std::vector<uint32_t>& places, int64_t deadline_ms) {
    if (offsets.empty() || beyond_ > 0 || memory_->load(std::memory_order_relaxed) >= kMostBytes) {
      count(1, deadline_ms);
      return;
    }
    for (size_t i = 0; i < offsets.size(); ++i) {
      const PartitionOffset& o = offsets[i];
      push({o.metadata, o.offset, deadline_ms, o.leader_epoch, places[i], i + 1 == offsets.size()});
    }
    kept_ += 1;
  }
  // Appends the commits of `later`. Both entries have the same offsets.
  void append(MergedCommits& later) {
    if (beyond_ > 0) {
      count(later.size(), later.deadline_ms());
      later.clear();
      return;
    }
    while (!later.named_.empty()) later.move_first(*this);
    count(later.beyond_, later.beyond_deadline_ms_);
    later.clear();
  }
  // Follows the moved offsets of the entry: the one at index i is now at places[i].
  void renumber(const std::vector<uint32_t>& places) {
    for (Named& n : named_) n.place = places[n.place];
  }
  // Leaves only the offsets that a commit names in `entry`, a copy of the offsets of the entry.
  void narrow(std::vector<PartitionOffset>& entry) {
    if (beyond_ > 0) return;
    std::vector<uint32_t> places(entry.size(), UINT32_MAX);
    std::vector<PartitionOffset> kept;
    for (Named& n : named_) {
      if (places[n.place] == UINT32_MAX) {
        places[n.place] = static_cast<uint32_t>(kept.size());
        kept.push_back(std::move(entry[n.place]));
      }
      n.place = places[n.place];
    }
    entry = std::move(kept);
  }
  // Moves commits after their deadline to `late`.
  void expire(int64_t now_ms, MergedCommits& late) {
    while (!named_.empty() && named_.front().deadline_ms <= now_ms) move_first(late);
    if (named_.empty() && beyond_ > 0 && beyond_deadline_ms_ <= now_ms) {
      late.count(beyond_, beyond_deadline_ms_);
      beyond_ = 0;
      beyond_deadline_ms_ = INT64_MAX;
    }
  }
  // Takes out the oldest commit and returns its offsets, each with its error. `entry`: the offsets of the entry, which
  // are also the result for a commit that was only counted.
  std::vector<PartitionOffset> take(const std::vector<PartitionOffset>& entry) {
    if (named_.empty()) {
      beyond_ -= 1;
      return entry;
    }
    std::vector<PartitionOffset> found;
    for (bool last = false; !last;) {
      Named& n = named_.front();
      const int64_t bytes = n.bytes();
      last = n.last;
      found.push_back(entry[n.place]);
      found.back().offset = n.offset;
      found.back().leader_epoch = n.leader_epoch;
      found.back().metadata = std::move(n.metadata);
      if (n.offset < 0) found.back().error = 0;  // was not to be committed
      pop(bytes);
    }
    kept_ -= 1;
    return found;
  }

 private:
  struct Named {
    std::string metadata;
    int64_t offset;
    int64_t deadline_ms;
    int32_t leader_epoch;
    uint32_t place;
    bool last;                        // of its commit
    int64_t bytes() const {
      return static_cast<int64_t>(sizeof(Named) + (metadata.capacity() > 15 ? metadata.capacity() : 0));
    }
  };

  CommitMemory memory_;
  std::deque<Named> named_;           // of each commit in turn, the oldest first
  size_t kept_ = 0;                   // commits in named_
  size_t beyond_ = 0;                 // later ones, which are only counted
  int64_t beyond_deadline_ms_ = INT64_MAX;
  int64_t bytes_ = 0;

  void push(Named n) {
    const int64_t bytes = n.bytes();
    named_.push_back(std::move(n));
    bytes_ += bytes;
    memory_->fetch_add(bytes, std::memory_order_relaxed);
  }
  void pop(int64_t bytes) {
    named_.pop_front();
    bytes_ -= bytes;
    memory_->fetch_sub(bytes, std::memory_order_relaxed);
  }
  void count(size_t commits, int64_t deadline_ms) {
    if (commits == 0) return;
    if (beyond_ == 0) beyond_deadline_ms_ = deadline_ms;
    beyond_ += commits;
  }
  void move_first(MergedCommits& to) {
    for (bool last = false; !last;) {
      Named& n = named_.front();
      last = n.last;
      const int64_t bytes = n.bytes();
      to.push(std::move(n));
      pop(bytes);
    }
    kept_ -= 1;
    to.kept_ += 1;
  }
  void clear() {
    memory_->fetch_sub(bytes_, std::memory_order_relaxed);
    bytes_ = 0;
    named_.clear();
    kept_ = beyond_ = 0;
    beyond_deadline_ms_ = INT64_MAX;
  }
};

}  // namespace kc
