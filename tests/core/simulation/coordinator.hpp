// Owns: Coordinator: the broker that coordinates the group, the group, and its offsets in wire format.
// Threads: the simulation's thread. Never: knows more than one group.
#pragma once
#include <memory>
#include <string>

#include "protocol/messages/find_coordinator.hpp"
#include "protocol/messages/offset_commit.hpp"
#include "protocol/messages/offset_fetch.hpp"
#include "simulation/classic_group.hpp"
#include "simulation/consumer_group.hpp"

namespace kc::sim {

class Coordinator {
 public:
  int32_t node = 1;
  ClassicGroup classic;
  ConsumerGroup modern;
  bool uses_modern = false;

  Coordinator(World& world, Topics& topics, Exchanges& exchanges)
      : classic(world, exchanges), modern(world, topics, exchanges), world_(world), topics_(topics),
        exchanges_(exchanges) {}

  Group& group() { return uses_modern ? static_cast<Group&>(modern) : static_cast<Group&>(classic); }

  void move_to(int32_t broker) {
    if (broker == node) return;
    world_.trace("cluster: the coordinator moves from %d to %d", node, broker);
    node = broker;
    loading_until_ms_ = world_.now_ms + world_.chance.between(0, 400);
    classic.dismiss(NOT_COORDINATOR);
    group().loaded();
  }

  void find(const Exchange& x, const FindCoordinatorRequest& asked) {
    FindCoordinatorResponse out;
    const bool refused = !topics_.broker(node)->up || world_.goes_wrong(world_.faults.refuse);
    const int16_t error = refused ? COORDINATOR_NOT_AVAILABLE : NONE;
    const std::string host = Topics::host(node);
    if (x.version < 4) {
      out.error_code = error;
      out.node_id = refused ? -1 : node;
      out.host = refused ? "" : host;
      out.port = refused ? -1 : 9092;
      return exchanges_.answer(x, out);
    }
    for (const std::string& key : asked.coordinator_keys) {
      out.coordinators.emplace_back();
      auto& c = out.coordinators.back();
      c.key = key;
      c.error_code = error;
      c.node_id = refused ? -1 : node;
      c.host = refused ? "" : host;
      c.port = refused ? -1 : 9092;
    }
    exchanges_.answer(x, out);
  }

  // NONE, or the error of a broker that cannot serve the group now.
  Error refusal(int32_t broker) {
    if (broker != node) return NOT_COORDINATOR;
    if (world_.now_ms < loading_until_ms_) return COORDINATOR_LOAD_IN_PROGRESS;
    if (!world_.goes_wrong(world_.faults.refuse)) return NONE;
    const Error errors[] = {NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE};
    return errors[world_.chance.below(3)];
  }

  void commit(const Exchange& x, const OffsetCommitRequest& asked, Error refused) {
    OffsetCommitResponse out;
    Error error = refused;
    if (error == NONE) {
      error = group().may_commit(asked.member_id, asked.group_instance_id, asked.generation_id_or_member_epoch,
                                 x.version);
    }
    // Written, although the answer says that it may not have been.
    const bool uncertain = error == NONE && world_.goes_wrong(world_.faults.refuse / 2);
    for (const auto& topic : asked.topics) {
      Topic* known = x.version >= 10 ? topics_.by_id(topic.topic_id) : topics_.by_name(topic.name);
      out.topics.emplace_back();
      out.topics.back().name = topic.name;
      out.topics.back().topic_id = topic.topic_id;
      for (const auto& p : topic.partitions) {
        OffsetCommitResponse_OffsetCommitResponsePartition entry_out;
        entry_out.partition_index = p.partition_index;
        entry_out.error_code = error;
        if (error == NONE && !known) entry_out.error_code = x.version >= 10 ? UNKNOWN_TOPIC_ID : UNKNOWN_TOPIC_OR_PARTITION;
        if (entry_out.error_code == NONE) {
          group().commit(x.connection->client, asked.member_id, TopicPartition(known->name, p.partition_index),
                         CommittedOffset{p.committed_offset, p.committed_leader_epoch, p.committed_metadata.value});
          if (uncertain) entry_out.error_code = COORDINATOR_NOT_AVAILABLE;
        }
        out.topics.back().partitions.push_back(entry_out);
      }
    }
    if (error != NONE) {
      world_.trace("group: commit of client %d (%s, epoch %d) is refused: %d", x.connection->client,
                   asked.member_id.c_str(), asked.generation_id_or_member_epoch, error);
    }
    exchanges_.answer(x, out);
  }

  void fetch_offsets(const Exchange& x, const OffsetFetchRequest& asked, Error refused) {
    OffsetFetchResponse out;
    const bool unstable = asked.require_stable && world_.goes_wrong(world_.faults.refuse);
    if (x.version < 8) {
      out.error_code = refused;
      for (const auto& topic : asked.topics.value) {
        out.topics.emplace_back();
        out.topics.back().name = topic.name;
        for (int32_t p : topic.partition_indexes) {
          OffsetFetchResponse_OffsetFetchResponsePartition entry_out;
          fill(entry_out, TopicPartition(topic.name, p), refused, unstable);
          out.topics.back().partitions.push_back(entry_out);
        }
      }
      return exchanges_.answer(x, out);
    }
    for (const auto& wanted : asked.groups) {
      out.groups.emplace_back();
      auto& entry_out = out.groups.back();
      entry_out.group_id = wanted.group_id;
      entry_out.error_code = refused;
      if (refused == NONE && uses_modern && x.version >= 9) {
        entry_out.error_code = modern.may_fetch_offsets(wanted.member_id, wanted.member_epoch);
      }
      if (entry_out.error_code == NONE) fill_topics(entry_out, wanted, x.version, unstable);
    }
    exchanges_.answer(x, out);
  }

 private:
  void fill_topics(OffsetFetchResponse_OffsetFetchResponseGroup& entry_out,
                   const OffsetFetchRequest_OffsetFetchRequestGroup& wanted, int16_t version, bool unstable) {
    for (const auto& topic : wanted.topics.value) {
      Topic* known = version >= 10 ? topics_.by_id(topic.topic_id) : topics_.by_name(topic.name);
      entry_out.topics.emplace_back();
      entry_out.topics.back().name = topic.name;
      entry_out.topics.back().topic_id = topic.topic_id;
      for (int32_t p : topic.partition_indexes) {
        OffsetFetchResponse_OffsetFetchResponsePartitions entry;
        const Error error = known || version < 10 ? NONE : UNKNOWN_TOPIC_ID;
        fill(entry, TopicPartition(known ? known->name : topic.name, p), error, unstable);
        entry_out.topics.back().partitions.push_back(entry);
      }
    }
  }
  template <class T>
  void fill(T& entry_out, const TopicPartition& p, Error error, bool unstable) {
    entry_out.partition_index = p.second;
    entry_out.committed_offset = -1;
    entry_out.error_code = error == NONE && unstable ? UNSTABLE_OFFSET_COMMIT : error;
    auto it = group().offsets.find(p);
    if (entry_out.error_code != NONE || it == group().offsets.end()) return;
    entry_out.committed_offset = it->second.offset;
    entry_out.committed_leader_epoch = it->second.leader_epoch;
    entry_out.metadata.set(it->second.metadata);
  }

  World& world_;
  Topics& topics_;
  Exchanges& exchanges_;
  int64_t loading_until_ms_ = 0;
};

}  // namespace kc::sim
