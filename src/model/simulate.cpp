// SPDX-License-Identifier: BSD-3-Clause
#include "model/job.hpp"
#include "model/messages.hpp"
#include "model/service.hpp"

#include <algorithm>

namespace offpath::model {
namespace {

using base::Result;
using base::Status;
using policy::Path;

class Simulation {
 public:
  explicit Simulation(const Job& job)
      : job_(job),
        operations_(job.operations),
        next_of_queue_(job.queues.size(), 0),
        network_(events_,
                 {job.machine.rate_bytes_per_ns, job.machine.peak_bytes_per_ns, job.machine.burst_bytes,
                  job.machine.latency_ns},
                 job.nodes),
        messages_(events_, network_, job.machine,
                  [this](uint32_t number, uint32_t member) { on_done(number, member); }),
        cores_(make_cores()),
        services_(events_, network_, job, cores_,
                  [this](uint32_t number, uint32_t member) { on_done(number, member); }),
        members_(job.operations.size()) {
    for (size_t i = 0; i < members_.size(); ++i) members_[i].resize(job.operations[i].members.size());
  }

  Result<Outcome> run() {
    make_agents();
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) go_on(rank);
    while (problem_.ok() && events_.step()) {
    }
    if (problem_.ok()) problem_ = services_.problem();
    if (!problem_.ok()) return problem_;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].next == job_.ranks[rank].size()) continue;
      return Status::error(OFFPATH_ERR_ARGUMENT,
                           "rank %u never gets past its act %zu (what it waits for never comes). Check that all "
                           "members post the operation",
                           rank, ranks_[rank].next);
    }
    return outcome();
  }

 private:
  struct Rank {
    size_t next = 0;                            // act
    const std::vector<Act>* section = nullptr;  // drawn by the act `next`
    size_t in_section = 0;
    bool waiting = false;
    Core* core = nullptr;
    Agent* mpi = nullptr;
  };
  // What a member has of an operation.
  struct Member {
    bool posted = false, done = false;
    double done_ns = 0;
    double own_copy_bytes = 0;  // left to the waiting rank
  };

  std::vector<std::unique_ptr<Core>> make_cores() {
    uint32_t count = 0;
    for (const uint32_t core : job_.rank_core) count = std::max(count, core + 1);
    for (const uint32_t core : job_.service_core) count = std::max(count, core + 1);
    std::vector<std::unique_ptr<Core>> cores;
    for (uint32_t i = 0; i < count; ++i) cores.push_back(std::make_unique<Core>(events_));
    return cores;
  }

  void make_agents() {
    for (uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
      Core& core = *cores_[job_.rank_core[rank]];
      agents_.push_back(std::make_unique<Agent>(core, job_.node_of[rank], job_.machine.native.crossing_efficiency));
      ranks_.emplace_back();
      ranks_.back().core = &core;
      ranks_.back().mpi = agents_.back().get();
      act_end_ns_.emplace_back();
      drawn_.emplace_back();
    }
  }

  // Of native MPI: the graphs of all members are made when the first one posts it.
  void make_messages(uint32_t number) {
    if (messages_.knows(number)) return;
    const Operation& operation = operations_[number];
    std::vector<uint64_t> nodes;
    for (const uint32_t rank : operation.members) nodes.push_back(job_.node_of[rank]);
    auto topology = ops::Topology::make(0, nodes);
    std::vector<Part> parts;
    for (topology.rank = 0; topology.rank < topology.size(); ++topology.rank) {
      parts.push_back({.member = topology.rank,
                       .agent = ranks_[operation.members[topology.rank]].mpi,
                       .graph = native_graph(operation, topology, job_.machine.native)});
    }
    messages_.add(number, std::move(parts));
  }

  const Act& act(uint32_t index) const {
    const Rank& rank = ranks_[index];
    return rank.section != nullptr ? (*rank.section)[rank.in_section] : job_.ranks[index][rank.next];
  }

  // Starts the rank's next act.
  void go_on(uint32_t index) {
    Rank& rank = ranks_[index];
    if (rank.next == job_.ranks[index].size()) return;
    const Act& a = act(index);
    switch (a.kind) {
      case Act::Kind::compute:
        rank.core->compute(a.for_ns, [this, index] { end_act(index); });
        break;
      case Act::Kind::idle:
        events_.after(a.for_ns, [this, index] { end_act(index); });
        break;
      case Act::Kind::post:
        post(index);
        break;
      case Act::Kind::test:
        rank.mpi->open();
        rank.mpi->handle(a.for_ns, [this, index] { leave_mpi(index); });
        break;
      case Act::Kind::wait:
      case Act::Kind::sync:
        rank.waiting = true;
        rank.mpi->open();
        if (a.kind == Act::Kind::wait) return look(index);
        if (++synced_ == ranks_.size()) release_all();
        break;
      case Act::Kind::draw:
        draw(index, a.queue);
    }
  }

  void end_act(uint32_t rank) {
    act_end_ns_[rank].push_back(events_.now_ns());
    Rank& r = ranks_[rank];
    if (r.section == nullptr) {
      ++r.next;
    } else if (++r.in_section == r.section->size()) {
      r.section = nullptr;
    }
    events_.after(0, [this, rank] { go_on(rank); });
  }

  void draw(uint32_t index, uint32_t queue) {
    if (next_of_queue_[queue] == job_.queues[queue].size()) return end_act(index);
    const uint32_t drawn = job_.queues[queue][next_of_queue_[queue]++];
    drawn_[index].push_back(drawn);
    ranks_[index].section = &job_.sections[drawn];
    ranks_[index].in_section = 0;
    for (const Act& a : job_.sections[drawn]) {
      if (a.kind != Act::Kind::post) continue;
      for (const uint32_t number : a.operations) operations_[number].members[0] = index;
    }
    go_on(index);
  }

  void leave_mpi(uint32_t rank) {
    ranks_[rank].mpi->close();
    end_act(rank);
  }

  void post(uint32_t index) {
    Rank& rank = ranks_[index];
    rank.mpi->open();
    for (const uint32_t number : act(index).operations) {
      const Operation& operation = operations_[number];
      // The target of a one-sided operation posts nothing: its part begins with the origin's.
      const bool one_sided = is_one_sided(operation);
      for (uint32_t member = 0; member < operation.members.size(); ++member) {
        const bool begins =
            one_sided ? member == 0 && operation.members[0] == index : operation.members[member] == index;
        if (!begins || members_[number][member].posted) continue;
        members_[number][member].posted = true;
        const bool copies = operation.path == Path::host || !job_.machine.service.own_cores;
        if (copies) members_[number][member].own_copy_bytes = static_cast<double>(own_bytes(operation, member));
        if (operation.path == Path::host) {
          post_native(number, member);
        } else if (operation.remote == Remote::message) {
          post_message(number, member);
        } else {
          post_to_service(number, member, job_.machine.service.post_ns);
        }
      }
    }
    // Behind what posting has to do; what comes of it later waits for the next call of MPI.
    rank.core->urgent(0, [this, index] { ranks_[index].core->urgent(0, [this, index] { leave_mpi(index); }); });
  }

  void post_native(uint32_t number, uint32_t member) {
    make_messages(number);
    messages_.begin(number, member);
    // What MPI puts is sent like any message; for what it gets the target is asked.
    const Remote remote = operations_[number].remote;
    if (remote == Remote::put) messages_.begin(number, 1);
    if (remote == Remote::get) messages_.begin_target(number);
  }

  // The library carries a ticket, the service puts the payload, and the receiver copies it out.
  void post_message(uint32_t number, uint32_t member) {
    const double ticket_ns = job_.machine.native.post_ns + job_.machine.native.message_ns;
    if (member == 0) return post_to_service(number, member, ticket_ns + job_.machine.service.post_ns);
    members_[number][member].own_copy_bytes = static_cast<double>(operations_[number].bytes);
    ranks_[operations_[number].members[member]].mpi->handle(ticket_ns, [] {});
  }

  void post_to_service(uint32_t number, uint32_t member, double post_ns) {
    const Operation& operation = operations_[number];
    Rank& rank = ranks_[operation.members[member]];
    rank.mpi->handle(post_ns, [this, &operation, number, member] {
      const Status status = services_.post(number, operation, member);
      if (!status.ok()) problem_ = status;
    });
  }

  // A waiting rank: are all operations done?
  void look(uint32_t index) {
    Rank& rank = ranks_[index];
    if (!rank.waiting || act(index).kind != Act::Kind::wait) return;
    double copy_bytes = 0, wake_ns = 0;
    bool done = true;
    for (const uint32_t number : act(index).operations) {
      const Operation& operation = operations_[number];
      for (uint32_t member = 0; member < operation.members.size(); ++member) {
        Member& own = members_[number][member];
        const bool counts = is_one_sided(operation) ? operation.remote == Remote::put || member == 0
                                                    : operation.members[member] == index;
        if (!counts) continue;
        done &= own.done;
        if (operation.remote == Remote::message && !own.done) continue;  // there is nothing to be copied yet
        copy_bytes += own.own_copy_bytes;
        own.own_copy_bytes = 0;
        if (own.done_ns == events_.now_ns() && operation.path == Path::dpu) wake_ns = job_.machine.service.host_wake_ns;
      }
    }
    // Own blocks while there is nothing else to do.
    if (copy_bytes > 0) {
      rank.core->urgent(copy_bytes / job_.machine.copy_bytes_per_ns, [this, index] { look(index); });
      return;
    }
    if (!done) return;
    rank.waiting = false;
    events_.after(wake_ns, [this, index] { leave_mpi(index); });
  }

  void release_all() {
    synced_ = 0;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].waiting = false;
      leave_mpi(rank);
    }
  }

  void on_done(uint32_t number, uint32_t member) {
    const Operation& operation = operations_[number];
    const bool one_sided = is_one_sided(operation);
    // A service says once that a put or get is over.
    const bool all = operation.remote != Remote::none && operation.path == Path::dpu;
    for (uint32_t i = all ? 0 : member; i <= (all ? 1 : member); ++i) {
      members_[number][i].done = true;
      members_[number][i].done_ns = events_.now_ns();
    }
    look(operation.members[one_sided ? 0 : member]);
    if (all && !one_sided) look(operation.members[1]);
  }

  Outcome outcome() {
    Outcome result;
    result.act_end_ns = std::move(act_end_ns_);
    result.drawn = std::move(drawn_);
    for (const auto& members : members_) {
      auto& done = result.done_ns.emplace_back();
      for (const Member& member : members) done.push_back(member.done_ns);
    }
    for (uint32_t node = 0; node < job_.nodes; ++node) result.service_ns.push_back(services_.spent_ns(node));
    for (const auto& core : cores_) result.core_ns += core->spent_ns();
    for (const auto& ends : result.act_end_ns) {
      if (!ends.empty()) result.end_ns = std::max(result.end_ns, ends.back());
    }
    result.events = events_.handled();
    return result;
  }

  const Job& job_;
  std::vector<Operation> operations_;  // with the origins that drew them
  std::vector<size_t> next_of_queue_;
  Events events_;
  Network network_;
  Messages messages_;
  const std::vector<std::unique_ptr<Core>> cores_;
  Services services_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<std::vector<Member>> members_;  // by operation
  std::vector<Rank> ranks_;
  std::vector<std::vector<double>> act_end_ns_;
  std::vector<std::vector<uint32_t>> drawn_;
  size_t synced_ = 0;
  Status problem_;
};

}  // namespace

Result<Outcome> simulate(const Job& job) { return Simulation(job).run(); }

}  // namespace offpath::model
