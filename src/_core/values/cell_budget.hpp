// Owns: how many entries of columns the bytes of a row earn, so that a few bytes cannot fill much memory.
// Threads: one at a time (the caller of decode). Never: knows a format.
//
// A row may fill kPerByte cells for each of its bytes, and kFreeInRow more. The rows of a call share kFreeInBatch free
// cells. A large row earns kMany cells, or kPerByteOfMany for each byte: 100 MB may be a few inflated kilobytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "values/program.hpp"

namespace kc {

class CellBudget {
 public:
  static constexpr int64_t kFreeInRow = 1 << 20;
  static constexpr int64_t kFreeInBatch = 1 << 24;
  static constexpr int64_t kPerByte = 64;
  static constexpr int64_t kMany = 1 << 26;
  static constexpr int64_t kPerByteOfMany = 2;

  void begin_row(int64_t bytes) {
    if (left_ < free_) free_batch_ -= free_ - (left_ < 0 ? 0 : left_);
    free_ = free_batch_ < kFreeInRow ? free_batch_ : kFreeInRow;
    left_ = free_ + std::min(kPerByte * bytes, std::max(kMany, kPerByteOfMany * bytes));
  }

  int64_t left() const { return left_ < 0 ? 0 : left_; }

  // False when there are not so many left.
  bool take(int64_t cells) {
    left_ -= cells;
    return left_ >= 0;
  }

 private:
  int64_t free_batch_ = kFreeInBatch;
  int64_t free_ = 0;   // of free_batch_, for this row
  int64_t left_ = 0;   // of the row: its bytes' cells are taken first
};

// By node: the columns of an entry, itself among them. Eight bytes of a fixed width are one more.
inline std::vector<int64_t> cells_by_node(const Plan& plan) {
  std::vector<int64_t> cells(plan.nodes.size(), 1);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].type == VALUE_FIXED) cells[i] += plan.nodes[i].width / 8;
  }
  for (size_t i = plan.nodes.size(); i-- > 1;) cells[static_cast<size_t>(plan.nodes[i].parent)] += cells[i];
  return cells;
}

}  // namespace kc
