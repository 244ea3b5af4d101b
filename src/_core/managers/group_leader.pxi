"""Owns: GroupLeader, the tasks of the leader of a classic group. It reads the members' subscriptions, gets metadata of
all their topics, calls the assignor (of the core, or through the application its own), and detects when the topics no
longer match the assignment.

thread: N. Never: sends a request (ClassicGroupManager does), knows how partitions are distributed (assignors.hpp
does), blocks for the application (it polls for the answer).
"""


cdef extern from * nogil:
    """
    #include <algorithm>
    static inline bool kc_offers(const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    }
    // For each partition, the racks of its replicas.
    static inline void kc_racks_of(kc::ClusterCache& cluster, const std::string& topic,
                                   std::vector<std::vector<std::string>>& out) {
      const kc::TopicEntry* entry = cluster.topic(topic);
      if (!entry) return;
      std::unordered_map<int32_t, const std::string*> racks;
      for (const kc::NodeAddress& node : cluster.brokers) {
        if (!node.rack.empty()) racks[node.id] = &node.rack;
      }
      out.resize(entry->partitions.size());
      for (const auto& found : entry->partitions) {
        if (found.id < 0 || static_cast<size_t>(found.id) >= out.size()) continue;
        const kc::Replicas replicas = entry->partitions.replicas(found);
        for (size_t i = 0; i < replicas.count; ++i) {
          auto rack = racks.find(replicas.nodes[i]);
          if (rack != racks.end()) out[found.id].push_back(*rack->second);
        }
      }
    }
    static inline uint64_t kc_hash_of_racks(kc::ClusterCache& cluster, const std::string& topic) {
      std::vector<std::vector<std::string>> racks;
      kc_racks_of(cluster, topic, racks);
      uint64_t hash = 14695981039346656037ull;
      for (auto& partition : racks) {
        std::sort(partition.begin(), partition.end());
        for (const std::string& rack : partition) hash = (hash ^ std::hash<std::string>()(rack)) * 1099511628211ull;
        hash = (hash ^ partition.size()) * 1099511628211ull;
      }
      return hash;
    }
    // The partitions that each member claims; if two members claim a partition, the newer generation counts.
    static inline void kc_keep_claims(const std::vector<kc::GroupMember>& members,
                                      std::vector<std::vector<kc::TopicPartitions>>& out) {
      std::map<kc::TopicPartition, size_t> owners;
      for (size_t m = 0; m < members.size(); ++m) {
        for (const auto& topic : members[m].owned) {
          for (int32_t p : topic.partitions) {
            auto it = owners.emplace(kc::TopicPartition(topic.topic, p), m).first;
            if (members[it->second].generation < members[m].generation) it->second = m;
          }
        }
      }
      out.assign(members.size(), {});
      for (const auto& owner : owners) {
        auto& topics = out[owner.second];
        if (topics.empty() || topics.back().topic != owner.first.topic) topics.push_back({owner.first.topic, {}});
        topics.back().partitions.push_back(owner.first.partition);
      }
    }
    """
    void keep_claims "kc_keep_claims"(const vector[GroupMember]& members, vector[vector[TopicPartitions]]& out)
    void racks_of "kc_racks_of"(ClusterCache& cluster, const string& topic, vector[vector[string]]& out)
    bint offers "kc_offers"(const vector[string]& names, const string& name)
    uint64_t hash_of_racks "kc_hash_of_racks"(ClusterCache& cluster, const string& topic)


cdef extern from "base/log.hpp" namespace "kc" nogil:
    const uint32_t DBG_ASSIGNOR
    const uint32_t DBG_CGRP


@cython.no_gc
cdef class GroupLeader:
    def __cinit__(self, MembershipManager membership not None, ApplicationAssignors application not None):
        self.membership = membership
        self.application = application
        self.positions = membership.positions

    cdef Status elect(self, JoinGroupResponse& message) noexcept nogil:
        cdef vector[string] wanted
        cdef Status status
        cdef GroupMember member
        cdef size_t i, j
        self.members.clear()
        self.application.drop()
        self.skip_assignment = message.skip_assignment
        self.assignor_name = message.protocol_name.value
        self.by_application = not find_assignor(self.assignor_name, &self.assignor)
        if not offers(self.membership.group.strategies, self.assignor_name):
            status.code = <int>INCONSISTENT_GROUP_PROTOCOL
            status.detail.assign(b"the coordinator chose an assignor that this member did not offer: ")
            status.detail.append(self.assignor_name)
            return status
        for i in range(message.members.size()):
            member = GroupMember()
            member.member_id = message.members[i].member_id
            member.group_instance_id = message.members[i].group_instance_id
            status = decode_subscription(<const uint8_t*>message.members[i].metadata.data(),
                                         message.members[i].metadata.size(), member)
            if not status.ok():
                return status
            for j in range(member.topics.size()):
                wanted.push_back(member.topics[j])
            self.members.push_back(member)
        sort_unique(wanted)
        self.leading = True
        # With older partition counts, the group would rebalance again at once.
        self.fresh_from = self.membership.hold_topics(self.topics, wanted)
        return Status()

    cdef bint ready(self) noexcept nogil:
        if self._in_leave_callback():
            # The present owners are known without metadata.
            return True
        if not self.membership.knows_topics(self.topics, self.fresh_from):
            return False
        if not self.by_application or self.skip_assignment:
            return True
        if self.application.state == CALL_NONE:
            self._ask()
        return self.application.state != CALL_ASKED

    cdef void _ask(self) noexcept nogil:
        cdef AssignorCall* call = new AssignorCall()
        call.assignor = self.assignor_name
        # A copy: keep() needs them while the application works on the assignment.
        call.members = self.members
        # Noted now, not with the answer: partitions that are added meanwhile would be lost.
        self._watch()
        self._inputs(call.topics)
        self.application.ask(call)

    cdef bint failed(self) noexcept nogil:
        return self.application.state == CALL_FAILED or self._in_leave_callback()

    cdef bint _in_leave_callback(self) noexcept nogil:
        """Whether the application will not answer, because it runs the callback of its leave."""
        return (self.membership.in_leave_callback and self.by_application and not self.skip_assignment
                and self.application.state != CALL_ANSWERED)

    cdef Status assign(self, vector[SyncGroupRequest_SyncGroupRequestAssignment]& out) noexcept nogil:
        cdef vector[TopicInput] inputs
        cdef GroupAssignment assignment
        cdef NullableString no_user_data
        cdef bint fits = True
        cdef size_t i
        if self.skip_assignment:
            # Assigned by an earlier leader: only watch it.
            self._watch()
        elif self.by_application:
            for i in range(self.application.answer.assignments.size()):
                fits = fits and self._encode(self.application.answer.assignments[i].member_id,
                                             self.application.answer.assignments[i].partitions,
                                             self.application.answer.assignments[i].user_data, out)
            self.application.drop()
        else:
            self._watch()
            self._inputs(inputs)
            self.membership.background.log.write(7, DBG_CGRP | DBG_ASSIGNOR, b"ASSIGN", b"running the assignor %s for "
                                                 b"%zu members and %zu topics", self.assignor_name.c_str(),
                                                 self.members.size(), inputs.size())
            assign_partitions(self.assignor, self.members, inputs, assignment)
            for i in range(self.members.size()):
                fits = fits and self._encode(self.members[i].member_id, assignment[self.members[i].member_id],
                                             no_user_data, out)
        self.members.clear()
        if not fits:
            return Status(<int>ERR_BAD_MSG, string(b"the assignment is too large for the wire format"))
        return Status()

    cdef bint keep(self, vector[SyncGroupRequest_SyncGroupRequestAssignment]& out) noexcept nogil:
        cdef vector[vector[TopicPartitions]] kept
        cdef NullableString no_user_data
        cdef size_t i
        if self.skip_assignment:
            return True
        keep_claims(self.members, kept)
        for i in range(self.members.size()):
            if not self._encode(self.members[i].member_id, kept[i], no_user_data, out):
                return False
        return not self.members.empty()

    cdef bint has_owners(self) noexcept nogil:
        cdef size_t i
        for i in range(self.members.size()):
            if not self.members[i].owned.empty():
                return True
        return False

    cdef bint _encode(self, const string& member_id, const vector[TopicPartitions]& partitions,
                      const NullableString& user_data,
                      vector[SyncGroupRequest_SyncGroupRequestAssignment]& out) noexcept nogil:
        cdef SyncGroupRequest_SyncGroupRequestAssignment entry
        entry.member_id = member_id
        if not encode_assignment(partitions, user_data, entry.assignment):
            return False
        out.push_back(entry)
        return True

    cdef void _inputs(self, vector[TopicInput]& out) noexcept nogil:
        cdef TopicInput topic
        cdef size_t i
        for i in range(self.topics.size()):
            if self.counts[self.topics[i]] > 0:
                topic.topic = self.topics[i]
                topic.partition_count = self.counts[self.topics[i]]
                self._racks_of(topic)
                out.push_back(topic)

    cdef void _watch(self) noexcept nogil:
        cdef size_t i
        self.counts.clear()
        self.places.clear()
        for i in range(self.topics.size()):
            self.counts[self.topics[i]] = self._count(self.topics[i])
            self.places[self.topics[i]] = self._place(self.topics[i])
        self.metadata_seen = self.membership.metadata.updates

    cdef int32_t _count(self, const string& topic) noexcept nogil:
        cdef TopicEntry* entry = self.positions.cluster.topic(topic)
        if entry == NULL or entry.error != 0:
            return 0
        return <int32_t>entry.partitions.size()

    cdef uint64_t _place(self, const string& topic) noexcept nogil:
        """Return a hash of the racks of a topic's partitions.

        As in the Java client, racks matter only if this client has one.
        """
        if self.membership.group.rack.empty() or not self.membership.metadata.racks:
            return 0
        return hash_of_racks(self.positions.cluster, topic)

    cdef void _racks_of(self, TopicInput& topic) noexcept nogil:
        topic.replica_racks.clear()
        if self.membership.metadata.racks:
            racks_of(self.positions.cluster, topic.topic, topic.replica_racks)

    cdef bint changed(self) noexcept nogil:
        cdef size_t i
        if not self.leading or self.metadata_seen == self.membership.metadata.updates:
            return False
        self.metadata_seen = self.membership.metadata.updates
        for i in range(self.topics.size()):
            if (self.counts[self.topics[i]] != self._count(self.topics[i])
                    or self.places[self.topics[i]] != self._place(self.topics[i])):
                return True
        return False

    cdef void resign(self) noexcept nogil:
        cdef vector[string] nothing
        self.leading = False
        self.application.drop()
        self.members.clear()
        self.counts.clear()
        self.places.clear()
        self.membership.hold_topics(self.topics, nothing)
