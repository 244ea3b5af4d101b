// Owns: QueuedCommit, a commit that has not ended; SentCommit, the OffsetCommit in flight; QueuedQuestion, a committed()
// that has not ended; SentFetch, an OffsetFetch in flight; and what the two requests have in common. thread: N.
// Never: sends or decides anything; commit_request_manager.pxi and committed_request_manager.pxi do.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.hpp"
#include "events/application_event.hpp"
#include "events/background_event.hpp"
#include "protocol/types.hpp"
#include "state/partition_state.hpp"
#include "state/request_state.hpp"

namespace kc {

constexpr int16_t BY_NAME_VERSION = 9;  // the last one of OffsetCommit and OffsetFetch that names topics
// How long ids are left alone after the coordinator did not know one: it may lag the broker that reported the id
// (test_an_id_that_the_coordinator_does_not_know_is_left_alone_for_a_while).
constexpr int64_t NAMES_MS = 10000;

// Of a request that got no response: another one would not either.
inline bool is_final(int32_t code) {
  return code == ERR_UNSUPPORTED_FEATURE || code == ERR_AUTHENTICATION || code == ERR_SSL || code == ERR_DESTROY ||
         code == ERR_INVALID_ARG;  // it cannot be written
}

// A request that got no response, and may have better luck: local codes are below all of a broker's.
inline bool is_lost_request(int32_t code) { return code < -1 && !is_final(code); }

enum CommitStep : uint8_t { COMMIT_OPEN, COMMIT_SENT, COMMIT_DONE };

struct QueuedCommit {
  CommitEvent* event = nullptr;         // holds a reference
  std::vector<CommitStep> steps;        // of each of event->offsets; `error` there is the latest result
  size_t left = 0;                      // those not done
  int64_t deadline_ms = INT64_MAX;
  std::vector<int64_t> deadlines;       // of each offset: of the newest commit that names it
  RequestState request;                 // its attempts: requests that failed and may be retried
  bool failed = false;                  // the response being read has something of it to be retried
  bool untried = true;                  // not all of it has been sent once
  bool on_wire = false;                 // a request with a part of it was written to a socket
  bool unknown_topic = false;           // the response being read knows a topic of it not
  int32_t unknown_topics = 0;           // responses that did
  uint64_t coordinator_failures = 0;    // CoordinatorRequestManager.failures when it was made
  int32_t epoch = -1;                   // of the membership when it was made
  bool as_member = false;               // made while subscribed
  bool departing = false;               // made by a revocation or a leave
  bool held = false;                    // a revocation, a rejoin or a leave waits for it
  std::vector<uint8_t> ours;            // held: by offset, whether the member owned the partition when that began
  bool lost = false;                    // the member was fenced since: what is in flight is not sent again
  std::shared_ptr<MergedCommits> merged;  // the commits that this one consists of; null: `event` alone
  std::unordered_map<std::string, size_t> places;  // partition_key → index into event->offsets; empty: not made yet
  // By index: the offset of a newer commit that went out in place of this one's, and may have been stored. It goes out
  // again, even if the newer commit has ended meanwhile: the stored offset must not go back.
  std::unordered_map<size_t, PartitionOffset> in_doubt;
};

struct CommitPlace {
  uint64_t sequence = 0;                // of the QueuedCommit
  size_t index = 0;                     // into its event->offsets
};

struct SentOffset {
  std::string topic;
  int32_t partition = 0;
  int64_t offset = -1;
  int32_t leader_epoch = -1;
  std::string metadata;
  bool answered = false;
  std::vector<CommitPlace> places;      // the commits that this answers, oldest first; the newest's offset was sent
};

struct SentCommit {
  std::vector<SentOffset> offsets;
  std::unordered_map<std::string, size_t> places;  // partition_key → index into offsets
  std::unordered_map<Uuid, std::string> names;     // version 10 answers by topic id
  bool as_member = false;
  std::string member_id;
  int32_t epoch = -1;
};

struct QueuedQuestion {
  FetchCommittedEvent* event = nullptr; // holds a reference
  std::vector<uint8_t> answered;          // each of event->partitions
  size_t left = 0;                      // those without an answer
  RequestState request;
  int32_t last_error = 0;               // why it is asked again
  uint64_t coordinator_failures = 0;    // CoordinatorRequestManager.failures when it was asked
};

struct AskedCommitted {
  PartitionState* partition = nullptr;  // holds a reference; null: `index` is of the question's partitions
  uint64_t position_epoch = 0;
  size_t index = 0;
  bool answered = false;
  int64_t twin = -1;                    // index into SentFetch.asked: a question named the partition before, too
};

struct SentFetch {
  uint64_t question = 0;                // 0: positions
  std::vector<AskedCommitted> asked;
  std::unordered_map<std::string, size_t> places;  // partition_key → index into asked
  std::unordered_map<Uuid, std::string> names;     // version 10 answers by topic id
  bool as_member = false;
  std::string member_id;
  int32_t epoch = -1;
};

}  // namespace kc
