"""Owns: Python access to the assignors and the bytes of the consumer protocol, for tests and benchmarks.

Threads: the caller's. Never: part of the consumer.

A member is a dict: member_id, topics, and optionally group_instance_id, owned {topic: [partition]}, generation,
rack, user_data (bytes). A topic is (name, partition count) or (name, partition count, [[rack]] per partition).
"""

cdef void set_nullable(NullableString& out, value) except *:
    if value is None:
        out.set_null()
    else:
        out.set(to_string(value))


cdef get_nullable(const NullableString& value):
    return None if value.is_null else to_bytes(value.value)


cdef void set_partitions(vector[TopicPartitions]& out, partitions) except *:
    """Set partitions from {topic: [partition]} or [(topic, [partition])]."""
    cdef TopicPartitions entry
    out.clear()
    for topic, numbers in (partitions.items() if isinstance(partitions, dict) else partitions):
        entry.topic = to_string(topic)
        entry.partitions.clear()
        for number in numbers:
            entry.partitions.push_back(<int32_t>number)
        out.push_back(entry)


cdef list get_partitions(const vector[TopicPartitions]& partitions):
    cdef size_t i, j
    return [(to_text(partitions[i].topic),
             [partitions[i].partitions[j] for j in range(partitions[i].partitions.size())])
            for i in range(partitions.size())]


cdef void set_member(GroupMember& out, dict member) except *:
    out.member_id = to_string(member["member_id"])
    set_nullable(out.group_instance_id, member.get("group_instance_id"))
    out.topics.clear()
    for topic in member["topics"]:
        out.topics.push_back(to_string(topic))
    set_partitions(out.owned, member.get("owned", {}))
    out.generation = member.get("generation", -1)
    out.rack = to_string(member.get("rack", ""))
    set_nullable(out.user_data, member.get("user_data"))


cdef dict get_member(const GroupMember& member):
    cdef size_t i
    return {
        "topics": [to_text(member.topics[i]) for i in range(member.topics.size())],
        "owned": get_partitions(member.owned),
        "generation": member.generation,
        "rack": to_text(member.rack),
        "user_data": get_nullable(member.user_data),
    }


cdef void set_topic(TopicInput& out, topic) except *:
    cdef vector[string] racks
    out.topic = to_string(topic[0])
    out.partition_count = topic[1]
    out.replica_racks.clear()
    for partition in (topic[2] if len(topic) > 2 else ()):
        racks.clear()
        for rack in partition:
            racks.push_back(to_string(rack))
        out.replica_racks.push_back(racks)


cdef AssignorKind kind_of(str name) except *:
    cdef AssignorKind kind
    if not find_assignor(to_string(name), &kind):
        raise ValueError(f"no assignor is called {name}")
    return kind


cdef void check(const Status& status) except *:
    if not status.ok():
        raise ValueError(to_text(status.detail))


cdef class Input:
    """Holds members and topics in the core's form: benchmarks time only assign()."""
    cdef vector[GroupMember] members   # thread: the caller's
    cdef vector[TopicInput] topics     # thread: the caller's
    cdef GroupAssignment out           # thread: the caller's

    def __init__(self, members, topics):
        cdef GroupMember member
        cdef TopicInput topic
        for given_member in members:
            set_member(member, given_member)
            self.members.push_back(member)
        for given_topic in topics:
            set_topic(topic, given_topic)
            self.topics.push_back(topic)

    def assign(self, str name):
        """Run the assignor; returns the seconds that it took."""
        cdef AssignorKind kind = kind_of(name)
        started = time.perf_counter()
        with nogil:
            core_assign(kind, self.members, self.topics, self.out)
        return time.perf_counter() - started

    def result(self):
        """Return the last assignment: {member_id: [(topic, [partition])]}."""
        cdef unordered_map[string, vector[TopicPartitions]].iterator it = self.out.begin()
        result = {}
        while it != self.out.end():
            result[to_text(deref(it).first)] = get_partitions(deref(it).second)
            inc(it)
        return result


def assign(str name, members, topics):
    """Return the assignment: {member_id: [(topic, [partition])]}."""
    given = Input(members, topics)
    given.assign(name)
    return given.result()


def names():
    """Return {name: whether it supports cooperative rebalancing}."""
    return {assignor_name(<AssignorKind>kind).decode(): bool(supports_cooperative(<AssignorKind>kind))
            for kind in range(4)}


def encode_subscription(dict member):
    cdef GroupMember given
    cdef string out
    set_member(given, member)
    if not core_encode_subscription(given, out):
        raise ValueError("too long for the wire")
    return to_bytes(out)


def decode_subscription(str member_id, bytes data):
    cdef GroupMember member
    member.member_id = to_string(member_id)
    check(core_decode_subscription(<const uint8_t*><const char*>data, <size_t>len(data), member))
    return get_member(member)


def encode_assignment(partitions, user_data=None):
    cdef vector[TopicPartitions] given
    cdef NullableString nullable
    cdef string out
    set_partitions(given, partitions)
    set_nullable(nullable, user_data)
    if not core_encode_assignment(given, nullable, out):
        raise ValueError("too long for the wire")
    return to_bytes(out)


def decode_assignment(bytes data):
    """Decode an assignment: ([(topic, [partition])], user data)."""
    cdef vector[TopicPartitions] partitions
    cdef NullableString user_data
    check(core_decode_assignment(<const uint8_t*><const char*>data, <size_t>len(data), partitions, user_data))
    return get_partitions(partitions), get_nullable(user_data)


def user_data(str name, last=None, int32_t generation=-1):
    """Return the user data that a member of that assignor sends.

    Args:
        last: the member's last assignment; None before the first.
    """
    cdef vector[TopicPartitions] partitions
    if last is None:
        return get_nullable(assignor_user_data(kind_of(name), NULL, generation))
    set_partitions(partitions, last)
    return get_nullable(assignor_user_data(kind_of(name), &partitions, generation))


def read_sticky_user_data(bytes data):
    """Decode the sticky user data: ([(topic, [partition])], generation)."""
    cdef vector[TopicPartitions] previous
    cdef int32_t generation = 0
    core_read_sticky(to_string(data), previous, generation)
    return get_partitions(previous), generation


def read_cooperative_user_data(bytes data):
    return core_read_cooperative(to_string(data))
