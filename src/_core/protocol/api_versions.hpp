// Owns: ApiVersionTable, the API versions that the broker of one connection supports, and the choice of one of them.
// Threads: that of the connection. Never: sends the request, knows the versions that this client supports.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "protocol/api_keys.hpp"
#include "protocol/messages/api_versions.hpp"
#include "protocol/wire.hpp"

namespace kc {

constexpr int16_t BROKER_UNSUPPORTED_VERSION = 35;  // Kafka's error code

struct ApiVersionRange {
  int16_t min = -1;  // -1: the broker does not offer the API
  int16_t max = -1;
  bool offered() const { return max >= 0; }
};

// What to do after an ApiVersions response.
enum ApiVersionsOutcome : uint8_t {
  API_VERSIONS_READY,     // the table is filled
  API_VERSIONS_ASK_V0,    // the broker does not support the version of the request: send version 0
  API_VERSIONS_REFUSED,   // an error: the status has the reason
};

class ApiVersionTable {
 public:
  static constexpr int16_t kApis = 128;

  void clear() {
    ranges_.fill(ApiVersionRange());
    known_ = false;
  }
  // Whether a response has been accepted since the last clear().
  bool known() const { return known_; }

  // Takes the body of a response to ApiVersions `version`. A broker that does not support this version answers with
  // error 35 in a body of any layout, so only the error code of such a body is read.
  ApiVersionsOutcome accept(const uint8_t* body, size_t length, int16_t version, Status* status) {
    Reader peek(body, length);
    peek.begin(ApiVersionsResponse::name, version);
    const int16_t error_code = peek.read_int16("error_code");
    if (peek.ok() && error_code == BROKER_UNSUPPORTED_VERSION && version > 0) return API_VERSIONS_ASK_V0;
    if (peek.ok() && error_code != 0) {
      *status = Status(error_code, "the broker refused ApiVersions v" + std::to_string(version));
      return API_VERSIONS_REFUSED;
    }
    Reader r(body, length);
    ApiVersionsResponse response;
    response.decode(r, version);
    if (!r.ok()) {
      *status = r.status();
      return API_VERSIONS_REFUSED;
    }
    fill(response);
    return API_VERSIONS_READY;
  }

  // Treats an API as not offered if its number is too large for this table or its version range is invalid.
  void fill(const ApiVersionsResponse& response) {
    clear();
    known_ = true;
    for (const auto& api : response.api_keys) {
      if (api.api_key < 0 || api.api_key >= kApis || api.min_version < 0 || api.max_version < api.min_version) continue;
      ApiVersionRange& range = ranges_[static_cast<size_t>(api.api_key)];
      range.min = api.min_version;
      range.max = api.max_version;
    }
  }

  ApiVersionRange range(int16_t api_key) const {
    return api_key < 0 || api_key >= kApis ? ApiVersionRange() : ranges_[static_cast<size_t>(api_key)];
  }

  // Returns the highest version within [low, high] that the broker supports; -1 if it supports none.
  int32_t pick(int16_t api_key, int16_t low, int16_t high) const {
    const ApiVersionRange theirs = range(api_key);
    const int16_t best = theirs.max < high ? theirs.max : high;
    return theirs.offered() && best >= low && best >= theirs.min ? best : -1;
  }

  // Returns the error for a pick() that returned -1.
  Status unsupported(int16_t api_key, int16_t low, int16_t high, const std::string& broker_name) const {
    const ApiVersionRange theirs = range(api_key);
    std::string text = "broker " + broker_name + " ";
    if (theirs.offered()) {
      text += "supports " + name(api_key) + " " + span(theirs.min, theirs.max);
    } else {
      text += "does not offer " + name(api_key);
    }
    return Status(ERR_UNSUPPORTED_FEATURE, text + ", but " + span(low, high) + " is needed");
  }

 private:
  static std::string name(int16_t api_key) {
    return std::string(api_name(api_key)) + " (API " + std::to_string(api_key) + ")";
  }
  static std::string span(int16_t low, int16_t high) {
    return "v" + std::to_string(low) + (low == high ? std::string() : " to v" + std::to_string(high));
  }

  std::array<ApiVersionRange, kApis> ranges_;
  bool known_ = false;
};

}  // namespace kc
