// Owns: last_of_keys: which entries of a map are superseded by a later entry with the same key.
// Threads: any (pure functions). Never: hashes. A writer can choose keys that collide in any hash without a secret.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace kc {

constexpr int64_t kFewKeys = 16;  // compared with each other, without sorting

// `key(i)` returns the key of entry i in [first, end). Returns for each entry whether it is the last one of its key; nothing
// if no key comes again.
template <class Key>
std::vector<bool> last_of_keys(int64_t first, int64_t end, const Key& key) {
  std::vector<bool> kept;
  auto leave_out = [&](int64_t i) {
    if (kept.empty()) kept.assign(static_cast<size_t>(end - first), true);
    kept[static_cast<size_t>(i - first)] = false;
  };
  if (end - first <= kFewKeys) {
    for (int64_t i = first; i < end; ++i) {
      for (int64_t j = i + 1; j < end; ++j) {
        if (key(i) != key(j)) continue;
        leave_out(i);
        break;
      }
    }
    return kept;
  }
  struct Place {
    std::string_view key;
    int64_t entry;
  };
  std::vector<Place> places;
  places.reserve(static_cast<size_t>(end - first));
  for (int64_t i = first; i < end; ++i) places.push_back({key(i), i});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    if (a.key.size() != b.key.size()) return a.key.size() < b.key.size();
    const int order = a.key.empty() ? 0 : std::memcmp(a.key.data(), b.key.data(), a.key.size());
    return order ? order < 0 : a.entry < b.entry;
  });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i - 1].key == places[i].key) leave_out(places[i - 1].entry);
  }
  return kept;
}

}  // namespace kc
