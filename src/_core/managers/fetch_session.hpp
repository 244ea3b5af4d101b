// Owns: FetchSession (KIP-227: the partitions that one broker knows) and FetchedItem, one part of a response.
// thread: N. Never: decides anything; fetch_sender.pxi does.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_map>
#include <vector>

#include "managers/fetch_size.hpp"
#include "managers/fetch_turns.hpp"
#include "protocol/types.hpp"
#include "records/decode.hpp"
#include "state/metadata.hpp"
#include "state/partition_state.hpp"
#include "state/request_state.hpp"

namespace kc {

struct SessionPartition {
  PartitionState* partition = nullptr;  // holds a reference
  Uuid topic_id;
  bool known_to_broker = false;         // is in the broker's session
  ptrdiff_t place = -1;                 // index in FetchSession.to_send; -1: not in it
  FetchTurns::Turn turn;                // its place in FetchSession.turns
  // as in the latest request
  int64_t fetch_offset = -1;
  int32_t leader_epoch = -1;
  uint64_t position_epoch = 0;
  uint64_t generation = 0;
  bool bounded = false;                 // the request was limited to the remaining range

  // Whether the latest request asked for what is still wanted.
  bool is_current() const {
    return position_epoch == partition->adopted_epoch && generation == partition->decode_generation &&
           partition->state == FETCH_ACTIVE && fetch_offset == partition->fetch_offset;
  }
};

struct ForgottenPartition {
  std::string topic;
  Uuid topic_id;
  int32_t partition;
  Watermarks watermarks;
};

struct SessionTopic {
  std::string name;
  std::vector<Uuid> ids;                // keys in FetchSession.by_id: a recreated topic has another id
  std::unordered_map<int32_t, SessionPartition> partitions;
};

// When to ask other brokers who leads: for a while, the leader has sent no records after some. A leader that is
// cut off from the other brokers answers every Fetch, without records, and nothing else shows that it leads no more. A
// topic may also just be quiet, so the questions end after a few.
class QuietLeader {
 public:
  void sent_records(int64_t now_ms) {
    since_ms_ = now_ms;
    asked_ = 0;
  }
  // `costly`: the answer lists every topic of the cluster.
  bool may_be_deposed(int64_t now_ms, bool costly) {
    if (asked_ >= (costly ? kMostCostly : kMost) || now_ms - since_ms_ < kEveryMs * (asked_ + 1)) return false;
    ++asked_;
    return true;
  }

 private:
  static constexpr int64_t kEveryMs = 4000;
  static constexpr int32_t kMost = 6;
  static constexpr int32_t kMostCostly = 2;
  int64_t since_ms_ = 0;
  int32_t asked_ = kMost;
};

struct FetchSession {
  int32_t node_id = -1;
  int32_t session_id = 0;
  int32_t epoch = 0;                    // 0: the next request is a full one
  RequestState request;                 // Fetch
  bool waits_for_room = false;          // is in the queue of sessions that wait for room
  bool restart = false;  // given up while a Fetch is in flight: its response does not continue the session
  bool uses_topic_ids = false;
  int64_t reserved_bytes = 0;
  size_t named = 0;  // partitions of the Fetch in flight if it is a window, outside the session; 0: it is the session's
  int64_t sent_ms = 0;
  std::atomic<int64_t> answered_ms{-1}; // shared: atomic; the known state of its partitions was valid at least until
                                        // then; windows do not change it
  int64_t fastest_ms = 100;             // shortest time seen from request to response
  int64_t urgent_ms = 0;                // time since which a new partition waits for the Fetch in flight; 0: none
  int64_t short_waits_until_ms = 0;           // partitions change often: until then a Fetch is parked only briefly
  int64_t no_renewal_until_ms = 0;      // until then its connection is not replaced again
  bool interrupted = false;             // the Fetch in flight was given up for a new partition
  int64_t partial_batches = 0;          // how many responses were cut off in a batch
  bool awaits_ends = false;             // the Fetch in flight names partitions whose end the application must learn
  bool unsupported_reported = false;        // the application knows that no Fetch version matches
  int32_t partitions_without_id = 0;    // if not 0, the session uses topic names
  size_t partition_count = 0;
  std::unordered_map<std::string, SessionTopic> topics;
  std::unordered_map<Uuid, SessionTopic*> by_id;
  std::vector<SessionPartition*> to_send;  // partitions with changed parameters; null for one that has left
  std::vector<ForgottenPartition> to_forget;
  FetchTurns turns;
  FetchSize size;
  QuietLeader quiet;

  FetchSession() = default;
  FetchSession(const FetchSession&) = delete;
  FetchSession& operator=(const FetchSession&) = delete;
  ~FetchSession() {
    for (auto& topic : topics)
      for (auto& entry : topic.second.partitions) entry.second.partition->release();
  }

  SessionPartition* find(const std::string& topic, int32_t partition) {
    auto it = topics.find(topic);
    return it == topics.end() ? nullptr : find(it->second, partition);
  }
  static SessionPartition* find(SessionTopic& topic, int32_t partition) {
    auto it = topic.partitions.find(partition);
    return it == topic.partitions.end() ? nullptr : &it->second;
  }
  SessionTopic* topic_of(const Uuid& id) {
    auto it = by_id.find(id);
    return it == by_id.end() ? nullptr : it->second;
  }

  // The entry of p, created if needed. It replaces the entry of another PartitionState (assigned again). The broker
  // repeats only watermarks that change; with `watermarks`, p takes those of the partition that has left since the last
  // request.
  SessionPartition& join(PartitionState* p, bool watermarks) {
    SessionTopic& topic = topics[p->topic];
    if (topic.name.empty()) topic.name = p->topic;
    SessionPartition& entry = topic.partitions[p->partition];
    if (entry.partition == p) return entry;
    if (entry.partition == nullptr) {
      partitions_without_id += 1;
      partition_count += 1;
      entry.turn = turns.join(&entry);
      if (watermarks) take_left_watermarks(p);
    } else {
      p->take_watermarks(entry.partition->watermarks());
      turns.goes_first(entry.turn);
      entry.partition->session_node = -1;
      entry.partition->release();
    }
    p->retain();
    entry.partition = p;
    return entry;
  }
  void set_topic_id(SessionPartition& entry, const Uuid& id) {
    if (entry.topic_id.is_zero()) partitions_without_id -= 1;
    entry.topic_id = id;
    if (id.is_zero()) {
      partitions_without_id += 1;
      return;
    }
    SessionTopic*& named = by_id[id];
    if (named != nullptr) return;
    named = &topics[entry.partition->topic];
    named->ids.push_back(id);
  }
  // The broker sent the watermarks of p. From now on it sends changes, unless the request was outside the session
  // (test_a_window_leaves_the_watermarks_outside_it_outdated). Not before: an answer to a request without p would make
  // an old watermark look fresh to lag().
  void keep_watermarks_current(PartitionState* p) {
    if (named == 0) p->session_answered_ms.store(&answered_ms, std::memory_order_release);
  }
  void leave(SessionPartition& entry) {
    PartitionState* p = entry.partition;
    p->session_answered_ms.store(nullptr, std::memory_order_release);
    auto topic = topics.find(p->topic);
    if (entry.place >= 0) to_send[static_cast<size_t>(entry.place)] = nullptr;
    if (entry.topic_id.is_zero()) partitions_without_id -= 1;
    partition_count -= 1;
    turns.leave(entry.turn);
    topic->second.partitions.erase(p->partition);
    if (topic->second.partitions.empty()) {
      for (const Uuid& id : topic->second.ids) by_id.erase(id);
      topics.erase(topic);
    }
    p->release();
  }

  // Partitions that wait at the end of their log, as far as it is known, without a report of it.
  void at_their_end(bool read_committed, std::vector<SessionPartition*>& out) const {
    for (SessionPartition* entry : turns.line()) {
      const PartitionState& p = *entry->partition;
      const int64_t end = p.watermarks().end(read_committed);
      if (p.eof_reported_at == -1 && end >= 0 && entry->fetch_offset >= end && entry->is_current()) out.push_back(entry);
    }
  }
  void want(SessionPartition& entry) {
    if (entry.place >= 0) return;
    entry.place = static_cast<ptrdiff_t>(to_send.size());
    to_send.push_back(&entry);
  }
  // The broker's session is lost or uncertain: the next request is a full one. The answer to a Fetch in flight does not
  // continue the session, which would mix a recreated topic with the old epochs
  // (test_a_new_topic_id_in_a_session_forgets_the_old_one).
  void start_again() {
    epoch = 0;
    restart = request.in_flight;
    to_forget.clear();
    turns.start_again();
    for (auto& topic : topics)
      for (auto& entry : topic.second.partitions) entry.second.known_to_broker = false;
  }
  // The partitions to request, in order. A full request (epoch 0) has all partitions, the longest wait first: a broker
  // fills the response in the order of the request.
  void take_wanted(std::vector<SessionPartition*>& wanted) {
    wanted.clear();
    wanted.swap(to_send);
    if (epoch == 0) {
      wanted.assign(turns.line().begin(), turns.line().end());
    } else {
      wanted.erase(std::remove(wanted.begin(), wanted.end(), nullptr), wanted.end());
    }
    for (SessionPartition* entry : wanted) {
      entry->place = -1;
      entry->known_to_broker = true;
    }
  }
  // The first `named` partitions in line, outside the session. They stay in `to_send`: the broker's session would
  // continue from their old offsets (test_an_answer_that_is_not_full_ends_the_windows).
  void take_window(std::vector<SessionPartition*>& wanted) {
    wanted.assign(turns.line().begin(), std::next(turns.line().begin(), static_cast<ptrdiff_t>(named)));
  }

 private:
  void take_left_watermarks(PartitionState* p) const {
    for (const ForgottenPartition& gone : to_forget) {
      if (gone.partition == p->partition && gone.topic == p->topic) p->take_watermarks(gone.watermarks);
    }
  }
};

enum FetchedKind : int32_t { FETCHED_RECORDS, FETCHED_END_OF_PARTITION, FETCHED_ERROR };

struct FetchedItem {
  FetchedKind kind = FETCHED_RECORDS;
  PartitionState* partition = nullptr;  // holds a reference
  uint64_t position_epoch = 0;
  uint64_t generation = 0;
  int32_t node_id = -1;                 // the broker that sent the data
  int64_t offset = OFFSET_INVALID;      // END_OF_PARTITION, ERROR
  Status status;                        // ERROR
  DecodeJob job;                        // RECORDS
};

// A batch that could not be read. The decoding thread or the broker finds it; N handles it.
struct BatchFailure {
  PartitionState* partition = nullptr;  // holds a reference while it waits for N
  uint64_t position_epoch = 0;
  int32_t node_id = -1;                 // the broker that sent or refused it
  Status status;                        // without topic, partition and offset
  int64_t offset = OFFSET_INVALID;      // first offset of the batch; OFFSET_INVALID: unknown header
  int64_t next_offset = -1;             // the offset after the batch; -1: unknown
  int64_t resume_offset = 0;            // offset to continue from
  int32_t resume_leader_epoch = -1;
  bool permanent = false;               // fetching it again would not help
  bool refused = false;                 // by the broker: what it sent before is good
};

// What the batch headers of a partition's records say.
struct FetchedExtent {
  int64_t next_offset;        // the start of the next fetch
  int32_t leader_epoch;       // of the last batch; the given one without a batch
  int64_t largest_batch = 0;  // bytes of the largest whole batch
  bool cut_off = false;       // the last batch is not whole
};

// Reads only batch headers, so that the next request is sent before this response is decoded. The result is used for
// nothing else: the decoder checks every batch. If one is bad, data fetched after it is dropped (drop_fetched).
inline FetchedExtent fetched_extent(const uint8_t* p, size_t length, int64_t fetch_offset, int32_t leader_epoch) {
  auto i64 = [](const uint8_t* q) {
    uint64_t v;
    memcpy(&v, q, 8);
    return static_cast<int64_t>(__builtin_bswap64(v));
  };
  auto i32 = [](const uint8_t* q) {
    uint32_t v;
    memcpy(&v, q, 4);
    return static_cast<int32_t>(__builtin_bswap32(v));
  };
  FetchedExtent found{fetch_offset, leader_epoch};
  while (length >= 17) {
    int64_t base = i64(p);
    int32_t batch = i32(p + 8);
    if (batch < 5 || static_cast<size_t>(batch) > length - 12 || base < 0 || base == INT64_MAX) break;
    int64_t last = base;
    int32_t epoch = found.leader_epoch;
    if (p[16] == 2) {
      if (batch < 49) break;
      int32_t delta = i32(p + 23);
      if (delta < 0 || base >= INT64_MAX - delta) break;
      last = base + delta;
      epoch = i32(p + 12);
    }
    if (last + 1 > found.next_offset) {
      found.next_offset = last + 1;
      found.leader_epoch = epoch;
    }
    const size_t whole = 12 + static_cast<size_t>(batch);
    found.largest_batch = std::max(found.largest_batch, static_cast<int64_t>(whole));
    p += whole;
    length -= whole;
  }
  found.cut_off = length > 0;
  return found;
}

}  // namespace kc
