// Owns: the states of a group member and the one table of the moves between them (DESIGN.md, "A group"), for both protocols.
// Threads: any (values). Never: acts; MembershipManager does.
#pragma once
#include <cstdint>

namespace kc {

enum MemberState : int32_t {
  MEMBER_UNSUBSCRIBED = 0,        // no group wanted
  MEMBER_JOINING,                 // a target is awaited (JoinGroup/SyncGroup, or the first heartbeat)
  MEMBER_PREPARE_REVOCATION,      // partitions to go are no longer fetched; passed through at once
  MEMBER_REVOKING_PARTITION,      // on_revoke is awaited
  MEMBER_PARTITION_REVOKED,       // their offsets are being committed; then the coordinator learns of it
  MEMBER_ASSIGNING_PARTITIONS,    // on_assign is awaited
  MEMBER_STABLE,                  // reconciled
  MEMBER_FENCED,                  // epoch or generation lost: on_lost is awaited, then JOINING
  MEMBER_STALE,                   // max.poll.interval.ms exceeded: left; JOINING when the application polls again
  MEMBER_LEAVING,                 // the leave is on its way
  MEMBER_FATAL,                   // the group cannot go on
  MEMBER_STATES
};

inline const char* member_state_name(MemberState s) {
  static const char* const names[MEMBER_STATES] = {
      "UNSUBSCRIBED", "JOINING", "PREPARE_REVOCATION", "REVOKING_PARTITION", "PARTITION_REVOKED",
      "ASSIGNING_PARTITIONS", "STABLE", "FENCED", "STALE", "LEAVING", "FATAL"};
  return s >= 0 && s < MEMBER_STATES ? names[s] : "?";
}

// Bit t of row s: the move s → t is allowed. Anything else is a bug, and MembershipManager says so.
constexpr uint32_t member_bit(MemberState s) { return 1u << s; }
constexpr uint32_t MEMBER_EXITS = member_bit(MEMBER_FENCED) | member_bit(MEMBER_STALE) | member_bit(MEMBER_LEAVING) |
                                  member_bit(MEMBER_FATAL);
constexpr uint32_t MEMBER_TRANSITIONS[MEMBER_STATES] = {
    /* UNSUBSCRIBED         */ member_bit(MEMBER_JOINING) | member_bit(MEMBER_FATAL),
    /* JOINING              */ member_bit(MEMBER_PREPARE_REVOCATION) | member_bit(MEMBER_ASSIGNING_PARTITIONS) |
        member_bit(MEMBER_STABLE) | MEMBER_EXITS,
    /* PREPARE_REVOCATION   */ member_bit(MEMBER_REVOKING_PARTITION) | MEMBER_EXITS,
    /* REVOKING_PARTITION   */ member_bit(MEMBER_PARTITION_REVOKED) | MEMBER_EXITS,
    /* PARTITION_REVOKED    */ member_bit(MEMBER_JOINING) | member_bit(MEMBER_ASSIGNING_PARTITIONS) | MEMBER_EXITS,
    /* ASSIGNING_PARTITIONS */ member_bit(MEMBER_STABLE) | member_bit(MEMBER_JOINING) | MEMBER_EXITS,
    /* STABLE               */ member_bit(MEMBER_PREPARE_REVOCATION) | member_bit(MEMBER_ASSIGNING_PARTITIONS) |
        member_bit(MEMBER_JOINING) | MEMBER_EXITS,
    /* FENCED               */ member_bit(MEMBER_JOINING) | member_bit(MEMBER_STALE) | member_bit(MEMBER_LEAVING) |
        member_bit(MEMBER_FATAL),
    /* STALE                */ member_bit(MEMBER_JOINING) | member_bit(MEMBER_LEAVING) | member_bit(MEMBER_FATAL),
    /* LEAVING              */ member_bit(MEMBER_UNSUBSCRIBED) | member_bit(MEMBER_FATAL),
    /* FATAL                */ member_bit(MEMBER_UNSUBSCRIBED),
};

inline bool member_may(MemberState from, MemberState to) { return (MEMBER_TRANSITIONS[from] & member_bit(to)) != 0; }

}  // namespace kc
