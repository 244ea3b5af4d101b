// Owns: TopicPatterns, the subscribed patterns that the client matches (classic groups): POSIX extended regular
// expressions through libc, as in librdkafka. Threads: one at a time. Never: matched on the broker.
#pragma once
#include <regex.h>

#include <string>
#include <vector>

#include "base/status.hpp"

namespace kc {

class TopicPatterns {
 public:
  TopicPatterns() = default;
  TopicPatterns(const TopicPatterns&) = delete;
  TopicPatterns& operator=(const TopicPatterns&) = delete;
  ~TopicPatterns() { clear(); }

  // Replaces all patterns. After an invalid expression the set is empty, and the status names expression and reason.
  Status set(const std::vector<std::string>& patterns) {
    clear();
    compiled_.reserve(patterns.size());
    for (const std::string& pattern : patterns) {
      regex_t expression;
      int error = regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB);
      if (error != 0) {
        char why[256];
        regerror(error, &expression, why, sizeof why);
        clear();
        return Status(ERR_INVALID_ARG, "the topic pattern \"" + pattern + "\" is not a POSIX extended regular "
                                       "expression: " + why);
      }
      compiled_.push_back(expression);
    }
    return Status();
  }
  bool empty() const { return compiled_.empty(); }
  bool matches(const std::string& topic) const {
    for (const regex_t& expression : compiled_) {
      if (regexec(&expression, topic.c_str(), 0, nullptr, 0) == 0) return true;
    }
    return false;
  }
  void clear() {
    for (regex_t& expression : compiled_) regfree(&expression);
    compiled_.clear();
  }

 private:
  std::vector<regex_t> compiled_;
};

}  // namespace kc
