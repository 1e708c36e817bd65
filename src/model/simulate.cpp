// SPDX-License-Identifier: BSD-3-Clause
#include "model/transfer.hpp"

#include <algorithm>
#include <set>

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
        transfers_(events_, network_, job.machine, [this](Part& part) { on_done(part); }),
        service_costs_(Costs::of_service(job.machine)),
        native_costs_(Costs::of_native(job.machine)) {}

  Result<Outcome> run() {
    make_agents();
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) go_on(rank);
    while (problem_.ok() && events_.step()) {
    }
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

  void make_agents() {
    uint32_t cores = 0;
    for (const uint32_t core : job_.rank_core) cores = std::max(cores, core + 1);
    for (const uint32_t core : job_.service_core) cores = std::max(cores, core + 1);
    for (uint32_t i = 0; i < cores; ++i) cores_.push_back(std::make_unique<Core>(events_));
    const Machine& m = job_.machine;
    for (uint32_t node = 0; node < job_.nodes; ++node) {
      services_.push_back(std::make_unique<Agent>(events_, *cores_[job_.service_core[node]], node, m.service.speed,
                                                  m.service.wake_ns, true, m.service.crossing_efficiency));
    }
    for (uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
      Core& core = *cores_[job_.rank_core[rank]];
      agents_.push_back(
          std::make_unique<Agent>(events_, core, job_.node_of[rank], 1, 0, false, m.native.crossing_efficiency));
      ranks_.emplace_back();
      ranks_.back().core = &core;
      ranks_.back().mpi = agents_.back().get();
      act_end_ns_.emplace_back();
      drawn_.emplace_back();
    }
  }

  // An operation's graphs are made when its first member posts it.
  Status make_operation(uint32_t number) {
    const Operation& operation = operations_[number];
    std::vector<uint64_t> nodes;
    for (const uint32_t rank : operation.members) nodes.push_back(job_.node_of[rank]);
    auto topology = ops::Topology::make(0, nodes);
    std::vector<Part> parts;
    for (uint32_t member = 0; member < operation.members.size(); ++member) {
      topology.rank = member;
      const bool dpu = operation.path == Path::dpu;
      Part part;
      part.member = member;
      part.rank = operation.members[member];
      part.agent = dpu ? services_[job_.node_of[part.rank]].get() : ranks_[part.rank].mpi;
      part.costs = dpu ? &service_costs_ : &native_costs_;
      if (dpu) {
        auto graph = service_graph(operation, topology, job_.machine.service.own_cores);
        if (!graph.ok()) return graph.status();
        part.graph = std::move(graph.value());
      } else {
        part.graph = native_graph(operation, topology, job_.machine.native);
      }
      if ((!dpu || !job_.machine.service.own_cores) && operation.remote == Remote::none) {
        part.own_copy_bytes = own_bytes(operation, member, topology.size());
      }
      parts.push_back(std::move(part));
    }
    transfers_.add(number, std::move(parts));
    return {};
  }

  static double own_bytes(const Operation& operation, uint32_t member, uint32_t size) {
    const bool gathers =
        operation.kind == policy::Collective::iallgather || operation.kind == policy::Collective::iallgatherv;
    if (!gathers && !is_exchange(operation.kind)) return 0;
    return static_cast<double>(exchanged_bytes(operation, member, member, size));
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
      if (!transfers_.knows(number)) problem_ = make_operation(number);
      if (!problem_.ok()) return;
      for (uint32_t member = 0; member < operation.members.size(); ++member) {
        Part& part = transfers_.part(number, member);
        // The target of a one-sided operation posts nothing: its part begins with the origin's.
        const bool begins = operation.remote == Remote::none ? part.rank == index : operation.members[0] == index;
        if (!begins || part.posted) continue;
        // A target is asked, but for what MPI puts: that is sent like any message.
        const bool asked = operation.path == Path::dpu || operation.remote == Remote::get;
        if (member == 1 && operation.remote != Remote::none && asked) {
          transfers_.request(transfers_.part(number, 0), part);
        } else if (operation.path == Path::host) {
          transfers_.begin(part);
        } else {
          part.posted = true;
          rank.mpi->handle(job_.machine.service.post_ns, [this, &part] { transfers_.begin(part); });
        }
      }
    }
    // Behind what posting has to do; what comes of it later waits for the next call of MPI.
    rank.core->urgent(0, [this, index] { ranks_[index].core->urgent(0, [this, index] { leave_mpi(index); }); });
  }

  // A waiting rank: are all operations done?
  void look(uint32_t index) {
    Rank& rank = ranks_[index];
    if (!rank.waiting || act(index).kind != Act::Kind::wait) return;
    double copy_bytes = 0, wake_ns = 0;
    bool done = true;
    for (const uint32_t number : act(index).operations) {
      const Operation& operation = operations_[number];
      if (!transfers_.knows(number)) {
        done = false;
        continue;
      }
      for (uint32_t member = 0; member < operation.members.size(); ++member) {
        Part& part = transfers_.part(number, member);
        const bool counts =
            operation.remote == Remote::none ? part.rank == index : operation.remote == Remote::put || member == 0;
        if (!counts) continue;
        done &= part.done;
        copy_bytes += part.own_copy_bytes;
        part.own_copy_bytes = 0;
        if (part.done_ns == events_.now_ns() && operation.path == Path::dpu)
          wake_ns = job_.machine.service.host_wake_ns;
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

  void on_done(Part& part) {
    const Operation& operation = operations_[part.operation];
    if (operation.remote == Remote::none) return look(part.rank);
    look(operation.members[0]);
  }

  Outcome outcome() {
    Outcome result;
    result.act_end_ns = std::move(act_end_ns_);
    result.drawn = std::move(drawn_);
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      auto& done = result.done_ns.emplace_back();
      if (!transfers_.knows(i)) continue;
      for (uint32_t m = 0; m < operations_[i].members.size(); ++m) done.push_back(transfers_.part(i, m).done_ns);
    }
    for (const auto& service : services_) result.service_ns.push_back(service->spent_ns());
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
  TransferEngine transfers_;
  const Costs service_costs_, native_costs_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<std::unique_ptr<Agent>> services_, agents_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<double>> act_end_ns_;
  std::vector<std::vector<uint32_t>> drawn_;
  size_t synced_ = 0;
  Status problem_;
};

}  // namespace

Result<Outcome> simulate(const Job& job) { return Simulation(job).run(); }

}  // namespace offpath::model
