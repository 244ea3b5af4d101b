// Owns: short texts of the broker's error codes, for messages of the core. Threads: any (pure functions).
// Never: decides what an error means; kconsumer/errors has the texts of all codes.
#pragma once
#include <cstdint>
#include <string>

namespace kc {

// Only the codes that managers report to the application; every other code is given by its number.
inline std::string broker_reason(int32_t code) {
  switch (code) {
    case -1: return "the broker reported an unexpected error: see the broker's log";
    case 1: return "the offset is outside the partition's log";
    case 2: return "the record batch is corrupt";
    case 3: return "the topic or partition is unknown to the broker";
    case 7: return "the request timed out in the broker";
    case 10: return "the message exceeds the broker's size limit";
    case 14: return "the coordinator is loading the group's offsets";
    case 15: return "the coordinator is not available";
    case 16: return "the broker is not the group's coordinator any more";
    case 17: return "the topic name is invalid";
    case 24: return "the group id is invalid";
    case 27: return "the group is rebalancing";
    case 29: return "not authorized for the topic";
    case 30: return "not authorized for the group";
    case 31: return "not authorized for the cluster";
    case 35: return "the broker does not support the version of the request";
    case 42: return "the broker rejects the request as invalid";
    case 43: return "the topic's message format does not support the request";
    case 44: return "a policy of the broker forbids the request";
    case 56: return "the broker cannot access its disk: see the broker's log";
    case 76: return "the topic's compression type needs a newer Fetch version";
    case 100: return "the topic id is unknown to the broker";
    default: return "the broker answered with error " + std::to_string(code);
  }
}

// The same for an error of one topic, with the permission that is missing.
inline std::string topic_reason(int32_t code, const std::string& topic) {
  if (code == 29) return broker_reason(code) + ": grant READ (or DESCRIBE) on topic " + topic;
  return broker_reason(code);
}

// The same for the answer to a Fetch, which needs READ.
inline std::string fetch_reason(int32_t code, const std::string& topic) {
  if (code == 29) return "not authorized to read the topic: grant READ on topic " + topic;
  return broker_reason(code);
}

// FindCoordinator: `message` is the text in the response; it may be empty.
inline std::string coordinator_reason(int32_t code, const std::string& group, const std::string& message) {
  if (code == 30) return "not authorized for group " + group + ": grant READ on the group";
  return "group " + group + " has no coordinator: " + (message.empty() ? broker_reason(code) : message);
}

// `cause` is the text of the latest lost connection; it may be empty.
inline std::string unreachable_reason(const std::string& cause) {
  return "no broker can be reached" + (cause.empty() ? std::string() : " (" + cause + ")") +
         ": check bootstrap.servers, and set security.protocol if the listener uses TLS or SASL";
}

}  // namespace kc
