// Owns: ApplicationEvent and its kinds: the application's requests to the network thread.
// Threads: created on A, served on N. Shared: the reference count, `done`, and the fields that complete() publishes
// before it. Never: completed twice (the second complete() returns false), waited on without its own descriptor.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/wakeup_fd.hpp"
#include "events/assignor_call.hpp"
#include "events/rebalance_event.hpp"
#include "network/request.hpp"

namespace kc {

enum ApplicationEventType : int32_t {
  EVENT_TOPIC_METADATA,
  EVENT_LIST_OFFSETS,
  EVENT_CLOSE,
  EVENT_SUBSCRIBE,
  EVENT_LEAVE_GROUP,
  EVENT_ACK_REBALANCE,
  EVENT_COMMIT,
  EVENT_FETCH_COMMITTED,
  EVENT_ASSIGNOR_ANSWER,
  EVENT_LEAVE_CALLBACK,
};

struct ApplicationEvent {
  const ApplicationEventType type;
  int64_t deadline_ms;                  // monotonic; INT64_MAX: none. Written before the event is posted
  Status status;                        // written by complete(), read after done
  explicit ApplicationEvent(ApplicationEventType t, int64_t deadline = INT64_MAX, bool completable = false)
      : type(t), deadline_ms(deadline), own_(completable ? new WakeupFd() : nullptr), end_(own_.get()) {}
  virtual ~ApplicationEvent() = default;

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool done() const { return done_.load(std::memory_order_acquire); }
  int fd() const { return own_ ? own_->fd() : -1; }
  // The end of the event signals a shared descriptor, which outlives N. thread: A, before the event is posted.
  void signal_to(WakeupFd* shared) {
    own_.reset();
    end_ = shared;
  }
  // Every completable event ends exactly once; only N calls this.
  bool complete(Status s) {
    if (done()) return false;
    status = std::move(s);
    done_.store(true, std::memory_order_release);
    if (end_) end_->signal();
    return true;
  }

 private:
  std::atomic<int32_t> refs_{1};
  std::atomic<bool> done_{false};
  std::unique_ptr<WakeupFd> own_;
  WakeupFd* end_;                       // the descriptor that complete() signals; null: no thread waits
};

// ListOffsets of the application: offsets_for_times, get_watermark_offsets.
struct OffsetQuery {
  std::string topic;
  int32_t partition = 0;
  int64_t timestamp = -1;   // ms, or -1 latest, -2 earliest, -3 max timestamp (KIP-734), …
  // result
  int64_t offset = -1;
  int64_t found_timestamp = -1;
  int32_t leader_epoch = -1;
  int32_t error = 0;
  bool answered = false;
  bool in_flight = false;
};

struct ListOffsetsEvent : ApplicationEvent {
  std::vector<OffsetQuery> queries;
  bool read_committed = false;
  int64_t asked_ms = -1;                // N: the start of the query; metadata older than this does not answer it
  std::string unsupported;              // result: the broker that is too old for a query, and the reason; empty: none
  explicit ListOffsetsEvent(int64_t deadline) : ApplicationEvent(EVENT_LIST_OFFSETS, deadline, true) {}
};

struct TopicMetadataEvent : ApplicationEvent {
  bool all_topics = true;
  std::vector<std::string> topics;
  // result: the response of the broker, already checked
  Response response;
  std::string orig_broker_name;
  explicit TopicMetadataEvent(int64_t deadline) : ApplicationEvent(EVENT_TOPIC_METADATA, deadline, true) {}
  ~TopicMetadataEvent() override {
    if (response.block) BlockPool::release(response.block);
  }
  void keep(const Response& answer) {
    BlockPool::retain(answer.block);
    response = answer;
  }
};

// subscribe(): replaces the subscription. `epoch` counts subscribe and unsubscribe calls; rebalance events return it.
struct SubscribeEvent : ApplicationEvent {
  std::vector<std::string> topics;
  std::vector<std::string> patterns;    // as the application gave them, with their leading ^
  uint64_t epoch = 0;
  bool calls_on_assign = false;         // the application has the callback; without it N assigns by itself
  bool calls_on_revoke = false;         // on_revoke or on_lost
  SubscribeEvent() : ApplicationEvent(EVENT_SUBSCRIBE) {}
};

// unsubscribe() or close() runs on_revoke; a LeaveGroupEvent follows. Until then the application runs no assignor.
struct LeaveCallbackEvent : ApplicationEvent {
  LeaveCallbackEvent() : ApplicationEvent(EVENT_LEAVE_CALLBACK) {}
};

// What the coordinator hears of a leave (KIP-1092). By default a static member stays, and others leave.
enum LeaveOperation { LEAVE_DEFAULT, LEAVE_FOR_GOOD, LEAVE_REMAIN };

// unsubscribe(), and the group part of close(). on_revoke has run. Completes after the commit and the leave.
struct LeaveGroupEvent : ApplicationEvent {
  std::vector<PartitionOffset> offsets;  // commit these first; empty: nothing to commit
  uint64_t epoch = 0;
  bool closing = false;
  LeaveOperation operation = LEAVE_DEFAULT;
  explicit LeaveGroupEvent(int64_t deadline) : ApplicationEvent(EVENT_LEAVE_GROUP, deadline, true) {}
};

// The application has run the callback of a RebalanceEvent.
struct AckRebalanceEvent : ApplicationEvent {
  RebalanceKind kind;
  uint64_t rebalance_id = 0;
  std::vector<PartitionOffset> offsets;      // REVOKE: the offsets to commit of the revoked partitions (auto-commit)
  std::vector<TopicPartition> assignment;    // ASSIGN: the partitions of the group that the application now owns
  explicit AckRebalanceEvent(RebalanceKind k) : ApplicationEvent(EVENT_ACK_REBALANCE), kind(k) {}
};

// The result of an AssignorCall, from the assignors of the application.
struct AssignorAnswerEvent : ApplicationEvent {
  const uint64_t id;
  bool failed = true;                        // the assignor raised; the application has already reported it
  std::vector<MemberAssignment> assignments;  // assign(): one for each member
  std::vector<AssignorData> user_data;        // user data: one for each assignor of the application
  explicit AssignorAnswerEvent(uint64_t i) : ApplicationEvent(EVENT_ASSIGNOR_ANSWER), id(i) {}
};

struct CommitEvent : ApplicationEvent {
  std::vector<PartitionOffset> offsets;  // result: the `error` of each
  bool sync = false;                     // a caller waits: retry until the deadline
  bool notify = false;                   // post BACKGROUND_COMMIT when the commit has ended (on_commit)
  bool automatic = false;                // a commit of the interval or of a rebalance
  CommitEvent(int64_t deadline, bool waits) : ApplicationEvent(EVENT_COMMIT, deadline, waits), sync(waits) {}
};

struct FetchCommittedEvent : ApplicationEvent {
  std::vector<PartitionOffset> partitions;   // result: offset, leader_epoch, metadata and error of each
  explicit FetchCommittedEvent(int64_t deadline) : ApplicationEvent(EVENT_FETCH_COMMITTED, deadline, true) {}
};

struct CloseEvent : ApplicationEvent {
  explicit CloseEvent(int64_t deadline) : ApplicationEvent(EVENT_CLOSE, deadline, true) {}
};

}  // namespace kc
