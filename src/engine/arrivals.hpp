// SPDX-License-Identifier: BSD-3-Clause
// Arrivals: which members have the whole result of an operation that ends only when others have theirs (graph::Ends): until then
// no program overwrites what would be needed to do it again (docs/design/0044-recovery.md). Together: workers tell each other
// once, when all their members of the team have arrived. By pairs: a member tells those whose blocks it has taken. Owned by the
// engine; on the worker's thread; blocks nobody. Internal to engine/.
#pragma once

#include "engine/state.hpp"

namespace offpath::engine {

// A team as its workers: whose members have arrived in which operations.
struct Gathering {
  struct Count {
    std::vector<bool> arrived;  // members, as far as this worker knows each
    std::vector<bool> heard;    // workers: all their members have
    uint32_t heard_count = 0;
  };
  explicit Gathering(const TeamSpec& spec);
  size_t workers() const { return roster.workers().size(); }
  // Of a worker, ascending.
  std::span<const uint32_t> members(uint32_t worker) const {
    return std::span(by_worker).subspan(begins[worker], begins[worker + 1] - begins[worker]);
  }
  // The first member of a worker speaks for it.
  bool is_speaker(uint32_t rank) const {
    return rank < roster.size() && members(roster.worker_of(rank)).front() == rank;
  }
  bool is_complete(const Count& count, uint32_t worker) const;
  bool all_heard(const Count& count) const;
  static void hear(Count& count, uint32_t worker);
  Count& count_of(uint64_t number);

  const Roster roster;
  const uint32_t own;
  std::vector<uint32_t> by_worker;  // members
  std::vector<uint32_t> begins;     // by worker: where its members begin there, and then the end
  std::set<uint32_t> lost;          // members: nothing more comes from them
  std::map<uint64_t, Count> open;   // by operation
};

class Arrivals final : public Room {
 public:
  explicit Arrivals(State& state) : s_(state) {}

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  void on_lost(Team& team, uint32_t rank) override;

  // What was heard stays with the members that are still here.
  void leave(Team& team);
  // The operation was posted and ends so. It waits from now on.
  void begin(Operation& operation);
  // All its steps are done.
  void arrive(Operation& operation);
  // That member has arrived, as it has been found out.
  void note_arrived(Operation& operation, uint32_t rank);
  // Those to ask, as their word may never come: what they should have posted was refused, or they have left.
  void add_silent(const Operation& operation, std::set<uint32_t>& ranks) const;
  // By rank: those that an arrived operation waits for (of a worker, its speaker); those that wait for this one (all where it
  // ends together: whoever speaks for a worker may be lost).
  void add_awaited(const Operation& operation, std::vector<uint8_t>& ranks) const;
  static void add_waiting(const Operation& operation, std::vector<uint8_t>& ranks);
  // Whether others have arrived in an operation that has not ended here, or was not even posted.
  static bool is_awaited(const Team& team) { return team.gathering != nullptr && !team.gathering->open.empty(); }

 private:
  std::shared_ptr<Gathering> gathering_of(Team& team);
  void count(Operation& operation, uint32_t rank);
  // Says what is to be said, and ends what is waiting, if all that takes is there.
  void look_at(Gathering& gathering, Team& team, uint64_t number);
  void release(Operation& operation);
  bool is_past(const Gathering& gathering, const wire::Message& message) const;

  State& s_;
  std::map<wire::TeamId, std::weak_ptr<Gathering>> gatherings_;
};

}  // namespace offpath::engine
