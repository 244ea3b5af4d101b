// Owns: the states of a group member and the table of allowed moves, for both protocols (DESIGN.md, "A group's life").
// Threads: any (values). Never: acts; MembershipManager does.
#pragma once
#include <cstdint>

namespace kc {

enum MemberState : int32_t {
  MEMBER_UNSUBSCRIBED = 0,        // no group is wanted
  MEMBER_JOINING,                 // waits for a target (JoinGroup/SyncGroup, or the first heartbeat)
  MEMBER_PREPARE_REVOCATION,      // the partitions to revoke are no longer fetched; left immediately
  MEMBER_REVOKING_PARTITION,      // waits for on_revoke
  MEMBER_PARTITION_REVOKED,       // commits the offsets of the revoked partitions; then informs the coordinator
  MEMBER_ASSIGNING_PARTITIONS,    // waits for on_assign
  MEMBER_STABLE,                  // reconciled
  MEMBER_FENCED,                  // epoch or generation lost: waits for on_lost, then JOINING
  MEMBER_STALE,  // max.poll.interval.ms exceeded: has left; JOINING at the next poll of the application
  MEMBER_LEAVING,                 // the leave was sent or will be sent
  MEMBER_FATAL,                   // the membership cannot continue
  MEMBER_STATES
};

inline const char* member_state_name(MemberState s) {
  static const char* const names[MEMBER_STATES] = {
      "UNSUBSCRIBED", "JOINING", "PREPARE_REVOCATION", "REVOKING_PARTITION", "PARTITION_REVOKED",
      "ASSIGNING_PARTITIONS", "STABLE", "FENCED", "STALE", "LEAVING", "FATAL"};
  return s >= 0 && s < MEMBER_STATES ? names[s] : "?";
}

// Bit t of row s: the move s → t is allowed. Any other move is a bug, and MembershipManager reports it.
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
