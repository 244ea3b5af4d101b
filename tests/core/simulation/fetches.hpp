// Owns: Fetches: the brokers' handling of Fetch: sessions (KIP-227), waits for data, transactions, leader hints.
// Threads: the simulation's thread. Never: changes a log.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "protocol/messages/fetch.hpp"
#include "simulation/topics.hpp"

namespace kc::sim {

constexpr int MOST_SPOILED = 4;

class Fetches {
 public:
  Fetches(World& world, Topics& topics, Exchanges& exchanges) : world_(world), topics_(topics), exchanges_(exchanges) {}

  void serve(const Exchange& x, const FetchRequest& asked) {
    auto parked = std::make_shared<Parked>();
    parked->x = x;
    parked->until_ms = world_.now_ms + asked.max_wait_ms;
    parked->max_bytes = asked.max_bytes;
    parked->min_bytes = asked.min_bytes;
    parked->read_committed = asked.isolation_level == 1;
    const Error refused = open_session(*parked, asked);
    if (refused != NONE) {
      FetchResponse out;
      out.error_code = refused;
      return exchanges_.answer(x, out);
    }
    if (try_answer(*parked, asked.max_wait_ms <= 0)) return;
    parked_.push_back(parked);
    world_.at(parked->until_ms, [this, parked] {
      if (!parked->done) try_answer(*parked, true);
      sweep();
    });
  }
  // The log or the leader of a partition changed.
  void look_again(const Topic& topic, int32_t index) {
    for (size_t i = 0; i < parked_.size(); ++i) {
      Parked& p = *parked_[i];
      if (!p.done && p.session->has(topic.id, index)) try_answer(p, false);
    }
    sweep();
  }
  void broker_stopped(int32_t node) {
    for (auto& p : parked_) p->done = p->done || p->x.connection->node == node;
    sweep();
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      it = it->second->node == node ? sessions_.erase(it) : std::next(it);
    }
  }

 private:
  struct Wanted {
    Uuid topic_id;
    std::string name;
    int32_t partition = 0;
    int64_t offset = 0;
    int32_t epoch = -1;
    int32_t max_bytes = 0;
    int64_t known_high = -1;  // high watermark and start that the client knows; other values are sent to it
    int64_t known_start = -1;
  };
  struct Session {
    int32_t id = 0;
    int32_t epoch = 0;
    int32_t node = 0;
    std::deque<Wanted> wanted;
    Wanted* find(const Uuid& topic_id, const std::string& name, int32_t partition) {
      for (Wanted& w : wanted) {
        if (w.partition == partition && (topic_id.is_zero() ? w.name == name : w.topic_id == topic_id)) return &w;
      }
      return nullptr;
    }
    bool has(const Uuid& topic_id, int32_t partition) { return find(topic_id, std::string(), partition) != nullptr; }
  };
  struct Parked {
    Exchange x;
    std::shared_ptr<Session> session;
    int64_t until_ms = 0;
    int32_t max_bytes = 0;
    int32_t min_bytes = 0;
    bool read_committed = false;
    bool incremental = false;
    bool done = false;
  };

  Error open_session(Parked& parked, const FetchRequest& asked) {
    const int32_t node = parked.x.connection->node;
    if (asked.session_epoch <= 0) {
      if (asked.session_id != 0) sessions_.erase(asked.session_id);
      parked.session = std::make_shared<Session>();
      parked.session->node = node;
      if (asked.session_epoch < 0) world_.trace("broker %d: a fetch beside any session", node);
      if (asked.session_epoch == 0) {
        parked.session->id = ++last_session_;
        parked.session->epoch = 1;
        sessions_[parked.session->id] = parked.session;
      }
    } else {
      auto it = sessions_.find(asked.session_id);
      if (it != sessions_.end() && world_.goes_wrong(world_.faults.evict_session)) {
        sessions_.erase(it);
        it = sessions_.end();
      }
      if (it == sessions_.end() || it->second->node != node) return FETCH_SESSION_ID_NOT_FOUND;
      if (it->second->epoch != asked.session_epoch) return INVALID_FETCH_SESSION_EPOCH;
      parked.session = it->second;
      parked.session->epoch += 1;
      parked.incremental = true;
    }
    update(*parked.session, asked, parked.x.version);
    return NONE;
  }
  void update(Session& session, const FetchRequest& asked, int16_t version) {
    for (const auto& topic : asked.topics) {
      Topic* known = version >= 13 ? topics_.by_id(topic.topic_id) : topics_.by_name(topic.topic);
      const Uuid id = known ? known->id : topic.topic_id;
      for (const auto& p : topic.partitions) {
        Wanted* w = session.find(id, topic.topic, p.partition);
        if (!w) {
          session.wanted.emplace_back();
          w = &session.wanted.back();
        }
        *w = Wanted{id, known ? known->name : topic.topic, p.partition, p.fetch_offset, p.current_leader_epoch,
                    p.partition_max_bytes, w->known_high, w->known_start};
      }
    }
    for (const auto& topic : asked.forgotten_topics_data) {
      Topic* known = version >= 13 ? topics_.by_id(topic.topic_id) : topics_.by_name(topic.topic);
      for (int32_t p : topic.partitions) {
        Wanted* w = session.find(known ? known->id : topic.topic_id, topic.topic, p);
        if (w) session.wanted.erase(session.wanted.begin() + place(session, w));
      }
    }
  }
  static std::ptrdiff_t place(Session& session, const Wanted* w) {
    for (size_t i = 0; i < session.wanted.size(); ++i) {
      if (&session.wanted[i] == w) return static_cast<std::ptrdiff_t>(i);
    }
    return 0;
  }

  void sweep() {
    parked_.erase(std::remove_if(parked_.begin(), parked_.end(), [](const auto& p) { return p->done; }), parked_.end());
  }

  // Whether it was answered: there were enough bytes, news or no more time.
  bool try_answer(Parked& parked, bool now) {
    if (!parked.x.open()) {
      parked.done = true;
      return true;
    }
    FetchResponse out;
    int64_t bytes = 0;
    bool urgent = now;
    storage_.clear();
    for (Wanted& w : parked.session->wanted) {
      FetchResponse_PartitionData data;
      fill(parked, w, data, bytes);
      if (data.error_code != NONE) urgent = true;
      const bool has_changes = data.error_code != NONE || data.records.length > 0 || data.high_watermark != w.known_high ||
                         data.log_start_offset != w.known_start;
      if (parked.incremental && !has_changes) continue;
      if (data.error_code != NONE && parked.x.version >= 16) hint(out, w, data);
      if (out.responses.empty() || !(out.responses.back().topic_id == w.topic_id)) {
        out.responses.emplace_back();
        out.responses.back().topic = w.name;
        out.responses.back().topic_id = w.topic_id;
      }
      out.responses.back().partitions.push_back(data);
    }
    if (!urgent && bytes < std::max(parked.min_bytes, 1)) return false;
    remember(parked, out);
    out.session_id = parked.session->id;
    parked.done = true;
    exchanges_.answer(parked.x, out);
    return true;
  }
  void remember(Parked& parked, const FetchResponse& out) {
    size_t served = 0;
    for (const auto& topic : out.responses) {
      for (const auto& p : topic.partitions) {
        Wanted* w = parked.session->find(topic.topic_id, topic.topic, p.partition_index);
        if (p.error_code == NONE) {
          w->known_high = p.high_watermark;
          w->known_start = p.log_start_offset;
        }
        if (p.records.length > 0) ++served;
      }
    }
    // Partitions that were served go to the end of the session, so that the others are served next.
    while (served > 0 && parked.session->wanted.size() > 1) {
      parked.session->wanted.push_back(parked.session->wanted.front());
      parked.session->wanted.pop_front();
      --served;
    }
  }
  void fill(Parked& parked, Wanted& w, FetchResponse_PartitionData& data, int64_t& bytes) {
    data.partition_index = w.partition;
    data.high_watermark = -1;
    data.records.length = 0;
    data.records.data = nothing_;
    data.aborted_transactions.set_null();
    Topic* topic = topics_.by_id(w.topic_id);
    Partition* p = Topics::part(topic, w.partition);
    if (!p) {
      data.error_code = parked.x.version >= 13 ? UNKNOWN_TOPIC_ID : UNKNOWN_TOPIC_OR_PARTITION;
      return;
    }
    data.error_code = topics_.leadership(*p, parked.x.connection->node, w.epoch);
    if (data.error_code == NONE && world_.goes_wrong(world_.faults.refuse / 4)) {
      data.error_code = world_.chance.happens(0.5) ? KAFKA_STORAGE_ERROR : UNKNOWN_SERVER_ERROR;
    }
    if (data.error_code == NONE && world_.goes_wrong(world_.faults.spoil / 2) && may_spoil(w, p->log, w.offset)) {
      data.error_code = CORRUPT_MESSAGE;
    }
    if (data.error_code == NONE && (w.offset < p->log.start || w.offset > p->log.end)) {
      data.error_code = OFFSET_OUT_OF_RANGE;
    }
    if (data.error_code != NONE) return;
    data.high_watermark = p->log.end;
    data.last_stable_offset = p->log.last_stable_offset();
    data.log_start_offset = p->log.start;
    const int64_t until = parked.read_committed ? data.last_stable_offset : p->log.end;
    add_records(parked, w, p->log, until, data, bytes);
  }
  void add_records(Parked& parked, Wanted& w, const PartitionLog& log, int64_t until, FetchResponse_PartitionData& data,
                   int64_t& bytes) {
    storage_.emplace_back();
    std::string& records = storage_.back();
    int64_t reached = w.offset;
    for (size_t i = log.first_batch(w.offset); i < log.batches.size() && log.batches[i].base < until; ++i) {
      const LogBatch& b = log.batches[i];
      const int64_t size = static_cast<int64_t>(b.bytes.size());
      const int64_t have = static_cast<int64_t>(records.size());
      const bool first = records.empty() && bytes == 0;
      if (!first && (have + size > w.max_bytes || bytes + have + size > parked.max_bytes)) {
        // A broker cuts at the limit, inside a batch.
        if (!records.empty() && world_.chance.happens(0.3)) records += b.bytes.substr(0, b.bytes.size() / 2);
        break;
      }
      const size_t begin = records.size();
      records += b.bytes;
      reached = b.last + 1;
      if (world_.goes_wrong(world_.faults.spoil / 2) && may_spoil(w, log, b.base)) {
        // Only bytes under the CRC; the header before them is not protected.
        const auto at = static_cast<size_t>(world_.chance.between(17, static_cast<int64_t>(b.bytes.size()) - 1));
        records[begin + at] = static_cast<char>(records[begin + at] ^ (1 << world_.chance.below(8)));
        world_.trace("broker %d: %s [%d] is damaged at %lld", parked.x.connection->node, w.name.c_str(), w.partition,
                     static_cast<long long>(b.base));
      }
    }
    bytes += static_cast<int64_t>(records.size());
    data.records.data = reinterpret_cast<const uint8_t*>(records.data());
    data.records.length = static_cast<int32_t>(records.size());
    if (!parked.read_committed) return;
    data.aborted_transactions.set_present();
    for (const AbortedRange& a : log.aborted) {
      if (a.marker_offset < w.offset || a.first_offset >= reached) continue;
      FetchResponse_AbortedTransaction range;
      range.producer_id = a.producer_id;
      range.first_offset = a.first_offset;
      data.aborted_transactions.value.push_back(range);
    }
  }
  // A batch is damaged fewer times than a partition tolerates before it stops.
  bool may_spoil(const Wanted& w, const PartitionLog& log, int64_t offset) {
    const size_t i = log.first_batch(offset);
    if (i >= log.batches.size()) return false;
    return ++spoiled_[{w.name, w.partition, log.batches[i].base}] <= MOST_SPOILED;
  }
  void hint(FetchResponse& out, const Wanted& w, FetchResponse_PartitionData& data) {
    Partition* p = Topics::part(topics_.by_id(w.topic_id), w.partition);
    if (!p || (data.error_code != NOT_LEADER_OR_FOLLOWER && data.error_code != FENCED_LEADER_EPOCH)) return;
    data.current_leader.leader_id = p->leader;
    data.current_leader.leader_epoch = p->epoch;
    for (const auto& known : out.node_endpoints) {
      if (known.node_id == p->leader) return;
    }
    FetchResponse_NodeEndpoint endpoint;
    endpoint.node_id = p->leader;
    endpoint.host = Topics::host(p->leader);
    endpoint.port = 9092;
    out.node_endpoints.push_back(endpoint);
  }

  World& world_;
  Topics& topics_;
  Exchanges& exchanges_;
  std::map<int32_t, std::shared_ptr<Session>> sessions_;
  std::vector<std::shared_ptr<Parked>> parked_;
  std::deque<std::string> storage_;  // the views of the current response point into this
  std::map<std::tuple<std::string, int32_t, int64_t>, int> spoiled_;
  int32_t last_session_ = 0;
  const uint8_t nothing_[1] = {0};
};

}  // namespace kc::sim
