"""Owns: Python access to Ownership, for tests. A partition is its number.

Threads: the caller's. Never: part of the consumer.
"""

cdef vector[TopicPartition] partitions_of(numbers):
    cdef vector[TopicPartition] out
    for number in sorted(numbers):
        out.push_back(TopicPartition(string(b"t"), <int32_t>number))
    return out


cdef list numbers_of(const vector[TopicPartition]& partitions):
    cdef size_t i
    return [partitions[i].partition for i in range(partitions.size())]


cdef class Owner:
    cdef Ownership of

    @property
    def owned(self):
        return numbers_of(self.of.owned())

    @property
    def revoking(self):
        return numbers_of(self.of.revoking())

    @property
    def assigning(self):
        return numbers_of(self.of.assigning())

    @property
    def claimed(self):
        return numbers_of(self.of.claimed())

    @property
    def waits(self):
        return self.of.waits()

    def aim_at(self, target):
        self.of.aim_at(partitions_of(target))

    def drop_target(self):
        self.of.drop_target()

    def begin(self):
        return self.of.begin()

    def give_up(self, partitions):
        self.of.give_up(partitions_of(partitions))

    def given_up(self):
        self.of.given_up()

    def committed(self):
        self.of.committed()

    def take(self):
        return self.of.take()

    def taken(self, owned):
        self.of.taken(partitions_of(owned))

    def lose(self):
        self.of.lose()

    def clear(self):
        self.of.clear()

    def report(self, reported):
        self.of.report(partitions_of(reported))

    def answered(self):
        self.of.answered()

    def begin_session(self):
        self.of.begin_session()
