// Owns: CommitMerging: a newer commit of the application replaces an older, unsent one of the same partitions. Commits
// do not pile up while the coordinator is away. thread: N.
// Never: merges a commit that has a waiting caller, is being sent, or is awaited by a revocation or a leave.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/background_event.hpp"
#include "managers/commit_context.hpp"

namespace kc {

class CommitMerging {
 public:
  using Queue = std::map<uint64_t, QueuedCommit>;
  static constexpr size_t kKeptOffsets = 1000000;  // 12 bytes each; older commits beyond are only counted

  // The newest commit of the same partitions and metadata that may be superseded; 0: none.
  uint64_t find(Queue& queue, const std::vector<PartitionOffset>& offsets) {
    if (queue.empty()) return 0;
    auto it = newest_.find(key_of(offsets));
    if (it == newest_.end()) return 0;
    auto found = queue.find(it->second);
    return found != queue.end() && mergeable(found->second) ? it->second : 0;
  }

  // `event`, just made, takes the place of queue[older] and gets the place `sequence` in the queue. It keeps the older
  // one's attempts and back-off: a stream of commits must not defeat the back-off.
  QueuedCommit* supersede(Queue& queue, uint64_t older, uint64_t sequence, CommitEvent* event) {
    auto node = queue.extract(older);
    node.key() = sequence;
    QueuedCommit& queued = queue.insert(queue.end(), std::move(node))->second;
    if (event->notify) keep(queued, queued.event->offsets, queued.deadline_ms);
    queued.event->release();
    queued.event = event;
    newest_[key_of(event->offsets)] = sequence;
    return &queued;
  }

  // queue[older] failed in a way that would be retried, but queue[newer] names the same partitions: it gets its result.
  void absorb(QueuedCommit& newer, QueuedCommit& older) {
    std::shared_ptr<MergedCommits> later = std::move(newer.merged);
    newer.merged = std::move(older.merged);
    if (older.event->notify) keep(newer, older.event->offsets, older.deadline_ms);
    if (later) append(newer, *later);
  }

  void note(uint64_t sequence, const std::vector<PartitionOffset>& offsets) { newest_[key_of(offsets)] = sequence; }

  // A commit leaves the queue, and takes what it merged along.
  void forget(uint64_t sequence, QueuedCommit& queued) {
    auto it = newest_.find(key_of(queued.event->offsets));
    if (it != newest_.end() && it->second == sequence) newest_.erase(it);
    if (queued.merged) kept_ -= std::min(kept_, queued.merged->offsets.size());
  }

  // What was merged has waited for its deadline; the newest commit goes on waiting.
  std::shared_ptr<MergedCommits> expire(QueuedCommit& queued, int64_t now_ms) {
    if (!queued.merged || queued.merged->deadline_ms > now_ms) return nullptr;
    kept_ -= std::min(kept_, queued.merged->offsets.size());
    return std::move(queued.merged);
  }

 private:
  std::unordered_map<std::string, uint64_t> newest_;  // the partitions of a commit → its place in the queue
  size_t kept_ = 0;                                   // offsets in all MergedCommits

  static bool mergeable(const QueuedCommit& queued) {
    if (queued.event->sync || queued.event->automatic || queued.departing || queued.held || queued.lost) return false;
    return std::all_of(queued.steps.begin(), queued.steps.end(), [](CommitStep s) { return s == COMMIT_OPEN; });
  }
  static std::string key_of(const std::vector<PartitionOffset>& offsets) {
    std::string key;
    for (const PartitionOffset& o : offsets) {
      key.append(o.topic).push_back('\0');
      key.append(reinterpret_cast<const char*>(&o.partition), sizeof o.partition);
      key.append(o.metadata).push_back('\0');
    }
    return key;
  }
  void keep(QueuedCommit& queued, const std::vector<PartitionOffset>& offsets, int64_t deadline_ms) {
    if (!queued.merged) queued.merged = std::make_shared<MergedCommits>();
    MergedCommits& merged = *queued.merged;
    merged.deadline_ms = std::min(merged.deadline_ms, deadline_ms);
    if (merged.beyond > 0 || kept_ + offsets.size() > kKeptOffsets) {
      merged.beyond += 1;
      return;
    }
    for (const PartitionOffset& o : offsets) {
      merged.offsets.push_back(o.offset);
      merged.leader_epochs.push_back(o.leader_epoch);
    }
    kept_ += offsets.size();
  }
  void append(QueuedCommit& queued, const MergedCommits& later) {
    if (!queued.merged) queued.merged = std::make_shared<MergedCommits>();
    MergedCommits& merged = *queued.merged;
    merged.deadline_ms = std::min(merged.deadline_ms, later.deadline_ms);
    merged.offsets.insert(merged.offsets.end(), later.offsets.begin(), later.offsets.end());
    merged.leader_epochs.insert(merged.leader_epochs.end(), later.leader_epochs.begin(), later.leader_epochs.end());
    merged.beyond += later.beyond;
  }
};

}  // namespace kc
