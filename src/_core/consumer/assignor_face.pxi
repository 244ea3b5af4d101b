"""Owns: the conversion of AssignorCalls, and of the assignors' answers, to and from plain tuples for the Python layer.

thread: A (the thread that serves callbacks). Never: checks an assignment (kconsumer/assignors.py does).
"""


cdef list texts(const vector[string]& raw):
    cdef size_t i
    return [text_of(raw.at(i)) for i in range(raw.size())]


cdef list member_tuples(const AssignorCall* call):
    """Return the members as tuples.

    Each is (member id, instance id or None, topics, owned [(topic, partition)], generation, rack, user data or None).
    """
    cdef size_t i
    return [member_tuple(call.members.at(i)) for i in range(call.members.size())]


cdef object member_tuple(const GroupMember& member):
    cdef size_t i
    cdef int32_t p
    owned = []
    for i in range(member.owned.size()):
        topic = text_of(member.owned.at(i).topic)
        for p in member.owned.at(i).partitions:
            owned.append((topic, p))
    instance = None if member.group_instance_id.is_null else text_of(member.group_instance_id.value)
    return (text_of(member.member_id), instance, texts(member.topics), owned, member.generation, text_of(member.rack),
            bytes_of(member.user_data))


cdef list topic_tuples(const AssignorCall* call):
    """Return [(topic, partition count, racks of the replicas of each partition)]."""
    cdef size_t i, p
    return [(text_of(call.topics.at(i).topic), call.topics.at(i).partition_count,
             [texts(call.topics.at(i).replica_racks.at(p)) for p in range(call.topics.at(i).replica_racks.size())])
            for i in range(call.topics.size())]


cdef object bytes_of(const NullableString& data):
    return None if data.is_null else data.value.data()[:data.value.size()]


cdef int put_bytes(NullableString& out, data) except -1:
    cdef bytes raw
    if data is not None:
        raw = data
        out.set(string(<const char*>raw, <size_t>len(raw)))
    return 0


cdef int put_assignments(AssignorAnswerEvent* answer, found) except -1:
    """Set assignments of [(member id, [(topic, partition numbers)], user data or None)]."""
    cdef MemberAssignment member
    cdef TopicPartitions topic
    for member_id, topics, user_data in found:
        member = MemberAssignment()
        member.member_id = utf8(member_id)
        for name, numbers in topics:
            topic.topic = utf8(name)
            topic.partitions.clear()
            for number in numbers:
                topic.partitions.push_back(<int32_t>number)
            member.partitions.push_back(topic)
        put_bytes(member.user_data, user_data)
        answer.assignments.push_back(member)
    return 0


cdef int put_user_data(AssignorAnswerEvent* answer, found) except -1:
    """Set the user data from [(assignor, user data or None)]."""
    cdef AssignorData entry
    for name, user_data in found:
        entry = AssignorData()
        entry.assignor = utf8(name)
        put_bytes(entry.user_data, user_data)
        answer.user_data.push_back(entry)
    return 0
