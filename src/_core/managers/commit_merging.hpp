// Owns: CommitMerging: a new commit of the application joins the one that waits to be sent, and a newer offset of a
// partition takes the older one's place. Commits do not pile up while the coordinator is away. thread: N.
// Never: changes a commit that has a waiting caller, is being sent, or is awaited by a revocation or a leave
// (test_a_held_commit_is_not_superseded,
// test_commits_of_any_partitions_and_metadata_take_little_memory_while_the_coordinator_is_away).
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/background_event.hpp"
#include "managers/commit_context.hpp"
#include "state/partition_state.hpp"

namespace kc {

class CommitMerging {
 public:
  using Queue = std::map<uint64_t, QueuedCommit>;

  void wire(CommitMemory memory) { memory_ = std::move(memory); }

  // A commit without a waiting caller was queued there: the next one may join it.
  void note(uint64_t sequence) { newest_ = sequence; }
  void forget(uint64_t sequence) {
    if (newest_ == sequence) newest_ = 0;
  }

  // `event`, just made, joins the newest commit that waits; both are at `sequence` then. The entry keeps its attempts and
  // its back-off: a stream of commits must not defeat the back-off (test_a_stream_of_commits_keeps_the_backoff). NULL:
  // there is none to join. Automatic commits and those with a waiting caller stay apart. No entry may pass one of them:
  // its older offsets would be sent last.
  QueuedCommit* join(Queue& queue, uint64_t sequence, CommitEvent* event, bool as_member, int32_t epoch,
                     int64_t deadline_ms) {
    auto found = queue.find(newest_);
    if (newest_ == 0 || found == queue.end() || std::next(found) != queue.end() || !waits(found->second) ||
        found->second.as_member != as_member || found->second.epoch != epoch) return nullptr;
    auto node = queue.extract(found);
    node.key() = newest_ = sequence;
    QueuedCommit& entry = queue.insert(queue.end(), std::move(node))->second;
    keep_own(entry);
    std::vector<uint32_t>& places = places_of(entry, event->offsets);
    if (event->notify) {
      merged_of(entry).add(event->offsets, places, deadline_ms);
      entry.event->notify = true;
    }
    for (size_t i = 0; i < event->offsets.size(); ++i) {
      if (event->offsets[i].offset < 0) continue;
      PartitionOffset& offset = entry.event->offsets[places[i]];
      CommitStep& step = entry.steps[places[i]];
      entry.left += step == COMMIT_DONE;
      step = COMMIT_OPEN;
      offset.offset = event->offsets[i].offset;
      offset.leader_epoch = event->offsets[i].leader_epoch;
      offset.metadata = std::move(event->offsets[i].metadata);
      offset.error = 0;
      entry.in_doubt.erase(places[i]);
      entry.deadlines[places[i]] = deadline_ms;
    }
    entry.untried = true;
    entry.deadline_ms = std::max(entry.deadline_ms, deadline_ms);
    event->release();
    return &entry;
  }

  // The newest commit that waits, if queue[failed], which must be retried, may become part of it; 0: there is none. As in
  // join(), no other commit may be between the two.
  uint64_t newer(Queue& queue, uint64_t failed) {
    auto found = queue.find(newest_);
    if (newest_ <= failed || found == queue.end() || std::next(queue.find(failed)) != found) return 0;
    const QueuedCommit& older = queue[failed];
    return waits(found->second) && waits(older) && older.as_member == found->second.as_member &&
                   older.epoch == found->second.epoch ? newest_ : 0;
  }
  // `older` becomes part of `entry`, with its attempts and its back-off. Newer offsets stay, results of partitions that
  // `entry` does not name are kept.
  void absorb(QueuedCommit& entry, QueuedCommit& older) {
    keep_own(older);
    keep_own(entry);
    std::vector<PartitionOffset>& offsets = older.event->offsets;
    const size_t before = entry.event->offsets.size();
    std::vector<uint32_t>& places = places_of(entry, offsets);
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (places[i] < before && entry.event->offsets[places[i]].offset >= 0) continue;
      CommitStep& step = entry.steps[places[i]];
      entry.left -= step != COMMIT_DONE;
      entry.left += older.steps[i] != COMMIT_DONE;
      step = older.steps[i];
      entry.event->offsets[places[i]] = offsets[i];
      entry.deadlines[places[i]] = older.deadlines[i];
      auto doubt = older.in_doubt.find(i);
      if (doubt != older.in_doubt.end()) entry.in_doubt[places[i]] = doubt->second;
    }
    if (older.merged) {
      older.merged->renumber(places);
      if (entry.merged) older.merged->append(*entry.merged);
      entry.merged = std::move(older.merged);
      entry.event->notify = true;
    }
    entry.request = older.request;
    entry.untried |= older.untried;
    entry.on_wire |= older.on_wire;
    entry.unknown_topics = std::max(entry.unknown_topics, older.unknown_topics);
  }

  // Older commits that have waited for their deadline leave an entry that waits for a later one.
  std::shared_ptr<MergedCommits> expire(QueuedCommit& entry, int64_t now_ms) {
    if (!entry.merged || entry.merged->deadline_ms() > now_ms) return nullptr;
    auto late = std::make_shared<MergedCommits>(memory_);
    entry.merged->expire(now_ms, *late);
    return late;
  }

 private:
  uint64_t newest_ = 0;           // the place in the queue of the commit that the next one may join; 0: none
  CommitMemory memory_;
  std::vector<uint32_t> places_;  // of the commit in hand

  static bool waits(const QueuedCommit& queued) {
    if (queued.event->sync || queued.event->automatic || queued.departing || queued.held || queued.lost) return false;
    return std::none_of(queued.steps.begin(), queued.steps.end(), [](CommitStep s) { return s == COMMIT_SENT; });
  }
  MergedCommits& merged_of(QueuedCommit& entry) {
    if (!entry.merged) entry.merged = std::make_shared<MergedCommits>(memory_);
    return *entry.merged;
  }
  // The entry is still one commit, which is about to be one of several.
  void keep_own(QueuedCommit& entry) {
    if (entry.merged || !entry.event->notify) return;
    places_.resize(entry.event->offsets.size());
    std::iota(places_.begin(), places_.end(), 0u);
    merged_of(entry).add(entry.event->offsets, places_, entry.deadline_ms);
  }
  // Where the entry has these partitions. Missing partitions are added, and the caller fills them in. Valid until the
  // next call.
  std::vector<uint32_t>& places_of(QueuedCommit& entry, const std::vector<PartitionOffset>& offsets) {
    std::vector<PartitionOffset>& own = entry.event->offsets;
    places_.resize(offsets.size());
    bool same = own.size() == offsets.size();
    for (size_t i = 0; same && i < own.size(); ++i) {
      same = own[i].partition == offsets[i].partition && own[i].topic == offsets[i].topic;
      places_[i] = static_cast<uint32_t>(i);
    }
    if (same) return places_;
    if (entry.places.empty()) {
      for (size_t i = 0; i < own.size(); ++i) entry.places[partition_key(own[i].topic, own[i].partition)] = i;
    }
    for (size_t i = 0; i < offsets.size(); ++i) {
      auto [place, added] = entry.places.emplace(partition_key(offsets[i].topic, offsets[i].partition), own.size());
      places_[i] = static_cast<uint32_t>(place->second);
      if (added) {
        own.push_back(offsets[i]);
        entry.steps.push_back(offsets[i].offset < 0 ? COMMIT_DONE : COMMIT_OPEN);
        entry.left += offsets[i].offset >= 0;
        entry.deadlines.push_back(INT64_MAX);
      }
    }
    return places_;
  }
};

}  // namespace kc
