# Declares state/member_state.hpp for Cython. thread: any (values).
cdef extern from "state/member_state.hpp" namespace "kc" nogil:
    cdef enum MemberState:
        MEMBER_UNSUBSCRIBED
        MEMBER_JOINING
        MEMBER_PREPARE_REVOCATION
        MEMBER_REVOKING_PARTITION
        MEMBER_PARTITION_REVOKED
        MEMBER_ASSIGNING_PARTITIONS
        MEMBER_STABLE
        MEMBER_FENCED
        MEMBER_STALE
        MEMBER_LEAVING
        MEMBER_FATAL
        MEMBER_STATES

    const char* member_state_name(MemberState)
    bint member_may(MemberState, MemberState)
