// SPDX-License-Identifier: BSD-3-Clause
// Arrivals: which members have the whole result of an operation that ends only when others have theirs (graph::Ends): until then
// no program overwrites what would be needed to do it again (docs/design/0044-recovery.md). Together: workers tell each other, in
// rounds (docs/design/0048-scale.md). By pairs: a member tells those whose blocks it has taken. Owned by the engine; on the worker's
// thread; blocks nobody. Internal to engine/.
#pragma once

#include "engine/rooms/room.hpp"

namespace offpath::engine {

// A team as its workers: whose members have arrived in which operations.
struct Gathering {
  struct Count {
    std::vector<bool> arrived;  // members, as far as this worker knows each
    std::vector<bool> heard;    // workers: all their members have
    uint32_t reach = 0;         // so many workers that follow each other, of which the own one is the last, have
    uint32_t said = 0;          // of `words`
  };
  // That worker, so many further on, is told that `count` workers have arrived, of which the own one is the last. What all tell one
  // worker is each other one, once.
  struct Word {
    uint32_t ahead;
    uint32_t count;
  };
  // In the order in which they are said: a round for each digit of the number of workers.
  static std::vector<Word> plan(uint32_t workers, uint64_t radix);
  Gathering(const TeamSpec& spec, uint32_t radix);
  uint32_t workers() const { return static_cast<uint32_t>(roster.workers().size()); }
  uint32_t ahead(uint32_t count) const { return (own + count) % workers(); }
  uint32_t before(uint32_t count) const { return (own + workers() - count) % workers(); }
  // Of a worker, ascending.
  std::span<const uint32_t> members(uint32_t worker) const {
    return std::span(by_worker).subspan(begins[worker], begins[worker + 1] - begins[worker]);
  }
  // The first member of a worker speaks for it.
  uint32_t speaker(uint32_t worker) const { return members(worker).front(); }
  bool is_speaker(uint32_t rank) const { return rank < roster.size() && speaker(roster.worker_of(rank)) == rank; }
  bool has_arrived(const Count& count, uint32_t worker) const;
  uint32_t distance(uint32_t worker) const;  // from that one to the own one
  // That worker has said that it and those before it have, so many in all: not as many as to reach the own one.
  void hear(Count& count, uint32_t worker, uint32_t of) const;
  Count& count_of(uint64_t number);
  // Nothing more comes from that member, and what others say comes from each of them. False: that was known.
  bool lose(uint32_t rank);

  const Roster roster;
  const uint32_t own;
  std::vector<uint32_t> by_worker;  // members
  std::vector<uint32_t> begins;     // by worker: where its members begin there, and then the end
  std::vector<Word> words;          // by plan()
  std::set<uint32_t> lost;          // members
  std::map<uint64_t, Count> open;   // by operation
};

class Peers;

class Arrivals final : public Room {
 public:
  Arrivals(Core& core, Runner& runner, const Config& config, Peers& peers)
      : Room(core, runner, config), peers_(peers) {}

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  void on_absent(Team& team, const wire::Message& message) override;
  void on_lost(Team& team, uint32_t rank) override;
  // What was heard stays with the members that are still here.
  void leave(Team& team) override;
  // Others have arrived in an operation that has not ended here, or was not even posted.
  bool is_awaited(const Team& team) const override {
    return team.gathering != nullptr && !team.gathering->open.empty();
  }
  // Whose word may never come: what they should have posted was refused, or they have left.
  void add_silent(const Operation& operation, std::set<uint32_t>& ranks) const override;
  void on_ended(Operation& operation, uint32_t rank) override { note_arrived(operation, rank); }
  void add_waits(const Operation& operation, const Note& note) const override;

  // The operation was posted and ends so. It waits from now on.
  void begin(Operation& operation);
  // All its steps are done.
  void arrive(Operation& operation);
  // That member has arrived, as it has been found out.
  void note_arrived(Operation& operation, uint32_t rank);
  // By rank: those that an arrived operation waits for (of a worker, its speaker); those that wait for this one (all where it
  // ends together: whoever speaks for a worker may be lost).
  static void add_awaited(const Operation& operation, std::vector<uint8_t>& ranks);
  static void add_waiting(const Operation& operation, std::vector<uint8_t>& ranks);

 private:
  std::shared_ptr<Gathering> gathering_of(Team& team);
  void count(Operation& operation, uint32_t rank);
  // Says what is to be said, and ends what is waiting, if all that takes is there.
  void look_at(Gathering& gathering, Team& team, uint64_t number);
  void release(Operation& operation);
  bool is_past(const Gathering& gathering, const wire::Message& message) const;

  Peers& peers_;
  std::map<wire::TeamId, std::weak_ptr<Gathering>> gatherings_;
};

}  // namespace offpath::engine
