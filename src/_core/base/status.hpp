// Owns: Status, the only way in which the core reports an error.
// Threads: any (a value). Never: throws, formats text for users other than `detail`, knows Python.
#pragma once
#include <cstdint>
#include <string>

namespace kc {

// Codes >= -1 are Kafka protocol error codes. Codes <= -100 are librdkafka's local error codes, with the same numbers
// (RD_KAFKA_RESP_ERR__*). kconsumer/errors names all codes.
enum LocalCode : int32_t {
  OK = 0,
  ERR_BAD_MSG = -199,
  ERR_BAD_COMPRESSION = -198,
  ERR_DESTROY = -197,
  ERR_FAIL = -196,
  ERR_TRANSPORT = -195,
  ERR_CRIT_SYS_RESOURCE = -194,
  ERR_RESOLVE = -193,
  ERR_MSG_TIMED_OUT = -192,
  ERR_PARTITION_EOF = -191,
  ERR_UNKNOWN_PARTITION = -190,
  ERR_UNKNOWN_TOPIC = -188,
  ERR_ALL_BROKERS_DOWN = -187,
  ERR_INVALID_ARG = -186,
  ERR_TIMED_OUT = -185,
  ERR_SSL = -181,
  ERR_WAIT_COORD = -180,
  ERR_IN_PROGRESS = -178,
  ERR_ASSIGN_PARTITIONS = -175,
  ERR_REVOKE_PARTITIONS = -174,
  ERR_CONFLICT = -173,
  ERR_STATE = -172,
  ERR_AUTHENTICATION = -169,
  ERR_NO_OFFSET = -168,
  ERR_UNSUPPORTED_FEATURE = -165,
  ERR_INTR = -163,
  ERR_INVALID_TYPE = -154,
  ERR_FATAL = -150,
  ERR_GAPLESS_GUARANTEE = -148,
  ERR_MAX_POLL_EXCEEDED = -147,
  ERR_UNKNOWN_BROKER = -146,
  ERR_ASSIGNMENT_LOST = -142,
  ERR_AUTO_OFFSET_RESET = -140,
  ERR_LOG_TRUNCATION = -139,
};

struct Status {
  int32_t code = 0;
  std::string detail;  // the reason and the place: message and field, topic, partition and offset, broker
  Status() = default;
  explicit Status(int32_t c) : code(c) {}
  Status(int32_t c, std::string d) : code(c), detail(std::move(d)) {}
  bool ok() const { return code == 0; }
};

}  // namespace kc
