// Owns: the ApiVersions request (KIP-511), the first request of a connection.
// Threads: N (pure functions). Never: sends it.
#pragma once
#include <string>

#include "network/request.hpp"
#include "protocol/messages/api_versions.hpp"

namespace kc {

// Version 4 differs only in the features of the response. With it, brokers before 3.9 would need a second round trip.
constexpr int16_t API_VERSIONS_FIRST_TRY = 3;
// Names the cluster and the broker that the client means to reach (KIP-1242).
constexpr int16_t API_VERSIONS_CHECKED = 5;

inline bool is_letter_or_digit(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
}

// Makes a word that brokers accept: letters, digits, '-' and '.', with a letter or digit at either end. Brokers refuse
// a connection with any other word, for example the version 1.0+local.
inline std::string software_word(const std::string& word) {
  std::string out;
  for (char ch : word) out.push_back(is_letter_or_digit(ch) || ch == '.' ? ch : '-');
  while (!out.empty() && !is_letter_or_digit(out.back())) out.pop_back();
  while (!out.empty() && !is_letter_or_digit(out.front())) out.erase(0, 1);
  return out.empty() ? "unknown" : out;
}

inline void fill_api_versions_request(const NetworkConfig& config, ApiVersionsRequest* request) {
  request->client_software_name = software_word(config.software_name);
  request->client_software_version = software_word(config.software_version);
}

}  // namespace kc
