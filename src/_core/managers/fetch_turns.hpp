// Owns: FetchTurns: the order of a broker's partitions, and the number of partitions that the next Fetch names.
// thread: N. Never: knows the format of a request or a response.
//
// For every request a broker checks every partition of the fetch session, about 10 µs each, even if its records no
// longer fit into the response: with a thousand partitions that takes longer than sending the records. During a backlog
// a Fetch therefore names only a window of them: the first in line, where the partition with the longest wait is first.
// Every full response moves at least the first one to the end, so each partition gets its turn. A window is requested
// outside the session: that needs no other session, and no partition is forgotten and named again.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

namespace kc {

struct SessionPartition;

class FetchTurns {
 public:
  using Turn = std::list<SessionPartition*>::iterator;

  // A new partition counts as the one with the longest wait.
  Turn join(SessionPartition* entry) { return line_.insert(line_.begin(), entry); }
  void leave(Turn turn) { line_.erase(turn); }
  void goes_first(Turn turn) { line_.splice(line_.begin(), line_, turn); }

  const std::list<SessionPartition*>& line() const { return line_; }

  // The number of partitions of the next Fetch; 0: all. A window is not useful with fewer than `many`.
  size_t window(size_t many) const {
    const size_t size = std::max({window_, many / 4, size_t{1}});
    return backlog_ && line_.size() >= many && size < line_.size() ? size : 0;
  }

  // Call for a response, in its order: received() for all its bytes, answered() for each partition that is still
  // wanted, then answer_ended().
  void received(int64_t bytes) { bytes_ += bytes; }
  void answered(Turn turn, bool with_records) {
    passed_.push_back(turn);
    if (!with_records) return;
    brought_ += 1;
    reached_ += passed_.size();
    move_to_the_end();
  }
  // `named` is the result of window() for this Fetch, `most_bytes` the bytes it asked for.
  void answer_ended(size_t named, int64_t most_bytes) {
    backlog_ = bytes_ >= (most_bytes + 1) / 2;
    if (!backlog_) {
      move_to_the_end();
      // Too few of them had records. If all partitions were asked, there is nothing to learn.
      window_ = 2 * named;
    } else if (named > 0) {
      window_ = 2 * reached_;
    } else {
      window_ = std::max(3 * brought_, window_ - window_ / 4);
    }
    passed_.clear();
    bytes_ = 0;
    brought_ = reached_ = 0;
  }
  // Forget the known backlog of the broker.
  void start_again() {
    backlog_ = false;
    window_ = 0;
  }

 private:
  // Moves partitions to the end of the line, up to the last one with records: later ones may have found no room
  // (test_partitions_without_records_do_not_fill_the_windows).
  void move_to_the_end() {
    for (Turn turn : passed_) line_.splice(line_.end(), line_, turn);
    passed_.clear();
  }

  std::list<SessionPartition*> line_;
  bool backlog_ = false;       // the last answer was at least half full
  size_t window_ = 0;          // learned: the number of partitions that fills a response, with a margin
  // of the current response
  std::vector<Turn> passed_;   // without records, and so far no later partition has records either
  int64_t bytes_ = 0;
  size_t brought_ = 0;
  size_t reached_ = 0;         // place of the last partition with records
};

}  // namespace kc
