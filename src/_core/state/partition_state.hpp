// Owns: PartitionState, the data of one assigned partition.
// Threads: each field names its thread; only one side writes a field. Never: takes a lock on the record path.
//
// The object outlives its assignment while fetched data, queues or requests refer to it. The holder of such a reference
// compares epochs to see whether the reference is still current.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "events/topic_partition.hpp"
#include "state/request_state.hpp"

namespace kc {

// Logical offsets, with librdkafka's numbers.
constexpr int64_t OFFSET_BEGINNING = -2;
constexpr int64_t OFFSET_END = -1;
constexpr int64_t OFFSET_STORED = -1000;
constexpr int64_t OFFSET_INVALID = -1001;
constexpr int64_t OFFSET_TAIL_BASE = -2000;  // OFFSET_TAIL(n) = base - n

// In place of an end offset. The largest offset is legal, negative ones are not.
constexpr int64_t NO_END = -1;

enum FetchState : int32_t {
  FETCH_NONE = 0,           // not assigned, or no longer
  FETCH_AWAIT_COMMITTED,    // waits for the group's committed offset (OffsetFetch)
  FETCH_AWAIT_RESET,        // waits for an offset from ListOffsets: reset_timestamp
  FETCH_AWAIT_VALIDATION,   // waits for OffsetForLeaderEpoch (KIP-320)
  FETCH_ACTIVE,
  FETCH_STOPPED,            // an error was reported; only a seek restarts the partition
};

// A batch that could not be read, and the attempts since then.
struct BadBatch {
  int64_t offset = OFFSET_INVALID;     // offset of the batch
  int32_t attempts = 0;                // failed attempts in a row
  std::vector<int32_t> nodes;          // brokers that sent the bad batch, in order
};

struct Watermarks {
  int64_t low = OFFSET_INVALID;
  int64_t high = OFFSET_INVALID;
  int64_t last_stable = OFFSET_INVALID;
  Watermarks() = default;
  Watermarks(int64_t l, int64_t h, int64_t s) : low(l), high(h), last_stable(s) {}
  // The offset after the last record that a consumer may read; -1 or less: unknown.
  int64_t end(bool read_committed) const {
    return read_committed && last_stable >= 0 && last_stable < high ? last_stable : high;
  }
};

// The records of a partition that the latest call has returned, or returns one by one.
struct Hand {
  int64_t offset = OFFSET_INVALID;  // of the first one
  int32_t leader_epoch = -1;        // of its batch
  int32_t last_leader_epoch = -1;   // of the batch of `last`
  int64_t last = OFFSET_INVALID;    // poll() returns one by one up to this offset; INVALID: a list or a batch
};

// Written by one thread, read by others without a lock: a number that is odd during a change shows torn values.
class AtomicHand {
 public:
  void store(const Hand& hand) {
    version_.fetch_add(1, std::memory_order_acq_rel);
    offset_.store(hand.offset, std::memory_order_release);
    last_.store(hand.last, std::memory_order_release);
    leader_epoch_.store(hand.leader_epoch, std::memory_order_release);
    last_leader_epoch_.store(hand.last_leader_epoch, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_acq_rel);
  }
  Hand load() const {
    for (;;) {
      Hand hand;
      const uint32_t before = version_.load(std::memory_order_acquire);
      hand.offset = offset_.load(std::memory_order_acquire);
      hand.last = last_.load(std::memory_order_acquire);
      hand.leader_epoch = leader_epoch_.load(std::memory_order_acquire);
      hand.last_leader_epoch = last_leader_epoch_.load(std::memory_order_acquire);
      if (!(before & 1) && before == version_.load(std::memory_order_acquire)) return hand;
    }
  }

 private:
  std::atomic<uint32_t> version_{0};
  std::atomic<int64_t> offset_{OFFSET_INVALID}, last_{OFFSET_INVALID};
  std::atomic<int32_t> leader_epoch_{-1}, last_leader_epoch_{-1};
};

struct PartitionState {
  const std::string topic;
  const int32_t partition;

  // ---- shared: SubscriptionState.lock (written on A)
  bool assigned = false;
  bool change_listed = false;          // is in SubscriptionState.changed
  int64_t given_offset = OFFSET_INVALID;  // set by assign; assignment() returns it
  int64_t posted_offset = OFFSET_INVALID;
  int32_t posted_leader_epoch = -1;
  int64_t stored_offset = OFFSET_INVALID;   // set by store_offsets; cleared by a seek
  int32_t stored_leader_epoch = -1;
  std::string stored_metadata;
  int64_t departed_offset = OFFSET_INVALID; // returned position when the partition left the assignment
  int32_t departed_leader_epoch = -1;
  int64_t named_offset = OFFSET_INVALID;  // set by an explicit commit(): all records before it are processed; as above
  int32_t named_leader_epoch = -1;
  bool in_hand = false;  // records of the latest call that returns records are in the application's hands
  std::string stop_reason;  // written on N: reason why the partition is stopped until a seek; empty if it is not

  // ---- written on A under SubscriptionState.lock, read anywhere
  std::atomic<uint64_t> position_epoch{0};  // changes at assign, seek and unassign; data with an older epoch is dropped
  std::atomic<bool> paused{false};
  std::atomic<bool> unsubscribed{false};  // the group assigned it for a topic that is not subscribed any more
  std::atomic<int64_t> end_offset{NO_END};  // no records from this offset on are fetched

  // ---- returned position; written on A (exclusive call, or under SubscriptionState.lock by seek), read anywhere
  std::atomic<int64_t> position{OFFSET_INVALID};
  std::atomic<int32_t> position_leader_epoch{-1};
  std::atomic<uint32_t> position_version{0};  // odd while offset and leader epoch change together

  // ---- written on A (the exclusive call), read anywhere under SubscriptionState.lock, while `in_hand`
  AtomicHand hand;

  // ---- thread: A (the exclusive call)
  uint64_t hand_call = 0;  // the number of the call that `hand` is of
  int32_t parked = 0;  // how many of its entries FetchHandler has parked; later entries follow them

  // ---- written on A (the exclusive call), read anywhere
  std::atomic<int64_t> returned_timestamp{-1};  // of the last returned record of the latest closed entry

  // ---- the decoding thread, inside the gate
  uint64_t failed_generation = 0;  // the generation in which N may fetch after a bad batch before N knows of that batch
  uint64_t failed_epoch = 0;                 // the position epoch of that batch

  // ---- written on N, read anywhere
  std::atomic<int64_t> low_watermark{OFFSET_INVALID};
  std::atomic<int64_t> high_watermark{OFFSET_INVALID};
  std::atomic<int64_t> last_stable_offset{OFFSET_INVALID};
  std::atomic<int64_t> fetch_offset{OFFSET_INVALID};  // next offset to fetch
  std::atomic<int64_t> committed_offset{OFFSET_INVALID};  // the latest offset that this consumer committed or read
  std::atomic<const std::atomic<int64_t>*> session_answered_ms{nullptr};  // time of the latest answer of its fetch session
  std::atomic<int64_t> start_offset{OFFSET_INVALID};  // first fetched offset, for the lag until a record is returned
  // The topic id of the latest fetch. Zero: fetched by name, or not yet. Within an assignment only a reset changes it:
  // a recreated topic stops the partition if auto.offset.reset is error.
  std::atomic<uint64_t> topic_id_high{0};
  std::atomic<uint64_t> topic_id_low{0};
  std::atomic<int32_t> last_error{0};  // of the latest answer about this partition; 0: none

  // ---- written by the thread that makes a commit (A or N), read anywhere
  std::atomic<int64_t> asked_offset{OFFSET_INVALID};  // of the newest commit; INVALID: none since committed_offset was read

  // ---- N adds, A subtracts
  std::atomic<int64_t> undelivered_records{0};        // decoded, and not yet taken by the application

  // ---- written by the decoding thread, read anywhere
  std::atomic<int64_t> received_records{0};           // decoded since the assignment

  // ---- written on N, read by the decoding thread: together they show whether fetched data is still current
  std::atomic<bool> tracked{false};           // is in the network thread's set of assigned partitions
  std::atomic<uint64_t> adopted_epoch{0};     // the position_epoch of fetch_offset
  std::atomic<uint64_t> decode_generation{0};  // changes when fetched data must be dropped; decoders may change it too

  // ---- thread: N
  int64_t received_bytes = 0;          // of their batches, as received
  int64_t received_offsets = 0;        // offset distance that these bytes covered
  int32_t range_doublings = 0;         // how often the estimate of the remaining range was too small
  size_t tracked_place = 0;            // index in FetchPositions.tracked
  FetchState state = FETCH_NONE;
  int64_t reset_timestamp = OFFSET_INVALID;  // for FETCH_AWAIT_RESET: -1, -2 or a time in ms, 0 or greater
  int64_t reset_tail = 0;              // OFFSET_TAIL: distance from the latest offset
  RequestState request;                // OffsetFetch, ListOffsets or OffsetForLeaderEpoch; of fetching while ACTIVE
  int32_t fetch_leader_epoch = -1;     // epoch of the last fetched record, for validation and last_fetched_epoch
  int32_t leader_id = -1;
  int32_t leader_epoch = -1;           // current, from metadata or a hint (KIP-951)
  int32_t preferred_replica = -1;      // KIP-392
  int64_t preferred_until_ms = 0;
  int32_t session_node = -1;           // broker whose fetch session contains the partition; -1: none
  bool user_paused_seen = false;
  bool revoking = false;               // is leaving the assignment: no longer fetched
  bool listed_for_fetch = false;       // is in FetchSender's list of partitions to check
  int64_t eof_reported_at = -1;        // high watermark for which _PARTITION_EOF was reported
  BadBatch bad_batch;

  PartitionState(std::string t, int32_t p) : topic(std::move(t)), partition(p) {}
  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // Whether a commit of this offset would change nothing: the newest commit was of it, and has been stored. While a commit
  // of another offset is on its way, the latest stored offset says nothing.
  bool is_committed(int64_t offset) const {
    const int64_t asked = asked_offset.load();
    return committed_offset.load() == offset && (asked == offset || asked == OFFSET_INVALID);
  }
  // The offset that an automatic commit stores: the stored offset, or the position after the returned records.
  // `processed_only`: not beyond the records in hand. Call it under SubscriptionState.lock. False: nothing new.
  bool standing(bool auto_offset_store, bool processed_only, PartitionOffset& out) {
    const bool stored = !auto_offset_store || stored_offset >= 0;
    out.topic = topic;
    out.partition = partition;
    out.metadata.clear();
    if (stored) {
      out.offset = stored_offset;
      out.leader_epoch = stored_leader_epoch;
      out.metadata = stored_metadata;
    } else if (assigned) {
      read_position(out.offset, out.leader_epoch);
    } else {
      out.offset = departed_offset;
      out.leader_epoch = departed_leader_epoch;
    }
    if (processed_only && in_hand && !stored) {
      const Hand now = hand.load();
      int64_t first = now.offset;
      int32_t epoch = now.leader_epoch;
      if (now.last >= 0 && out.offset - 1 > first) {
        // The records that poll() returned before the latest one are processed.
        first = std::min(out.offset - 1, now.last);
        epoch = first == now.last ? now.last_leader_epoch : out.leader_epoch;
      }
      // Not below the offset that the application itself has committed since then.
      if (named_offset > first) {
        first = named_offset;
        epoch = named_leader_epoch;
      }
      if (first < out.offset) {
        out.offset = first;
        out.leader_epoch = epoch;
      }
    }
    if (out.offset < 0 || is_committed(out.offset)) return false;
    asked_offset.store(out.offset);
    return true;
  }
  // Whether no record from this offset on is wanted.
  bool ends_at(int64_t offset) const {
    const int64_t end = end_offset.load(std::memory_order_relaxed);
    return end != NO_END && offset >= end;
  }
  // Returns the new generation.
  uint64_t drop_fetched() { return decode_generation.fetch_add(1) + 1; }
  Watermarks watermarks() const { return {low_watermark, high_watermark, last_stable_offset}; }
  void take_watermarks(const Watermarks& known) {
    low_watermark.store(known.low);
    high_watermark.store(known.high);
    last_stable_offset.store(known.last_stable);
  }
  int32_t read_node(int64_t now_ms) const {
    return preferred_replica >= 0 && now_ms < preferred_until_ms ? preferred_replica : leader_id;
  }
  // The time since which the watermarks may be out of date; -1: no session updates them. Sessions live as long as
  // FetchSender.
  int64_t session_answer_ms() const {
    const std::atomic<int64_t>* answered = session_answered_ms.load(std::memory_order_acquire);
    return answered == nullptr ? -1 : answered->load(std::memory_order_relaxed);
  }
  // "topic [partition]", as librdkafka writes it.
  std::string name() const { return topic + " [" + std::to_string(partition) + "]"; }

  void publish_position(int64_t offset, int32_t epoch) {
    position_version.fetch_add(1, std::memory_order_acq_rel);
    position.store(offset, std::memory_order_release);
    position_leader_epoch.store(epoch, std::memory_order_release);
    position_version.fetch_add(1, std::memory_order_acq_rel);
  }
  void read_position(int64_t& offset, int32_t& epoch) const {
    for (;;) {
      uint32_t before = position_version.load(std::memory_order_acquire);
      offset = position.load(std::memory_order_acquire);
      epoch = position_leader_epoch.load(std::memory_order_acquire);
      if (!(before & 1) && before == position_version.load(std::memory_order_acquire)) return;
    }
  }

 private:
  std::atomic<int32_t> refs_{1};
  ~PartitionState() = default;
};

inline std::string partition_key(const std::string& topic, int32_t partition) {
  std::string key;
  key.reserve(topic.size() + 4);
  key.append(topic);
  key.append(reinterpret_cast<const char*>(&partition), sizeof partition);
  return key;
}

}  // namespace kc
