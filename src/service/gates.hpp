// SPDX-License-Identifier: BSD-3-Clause
// Gates: which operations of a client's teams wait behind gates, in the order in which they were posted. A team is named by
// its record, an operation by its slot. Pure.
#pragma once

#include "session/layout.hpp"
#include "tasks/order.hpp"

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace offpath::service {

class Gates {
 public:
  using Verdict = tasks::Order::Verdict;
  struct Held {
    session::OpKind kind;
    uint32_t slot;
    Verdict verdict = Verdict::waits;  // of a gate: ready, waits or fails
  };

  // The client's, which stays.
  explicit Gates(tasks::Order& order) : order_(order) {}

  bool any() const { return !teams_.empty(); }
  bool is_held(uint32_t slot) const { return is_held_[slot]; }
  // False: there is no gate of that team, so it may begin.
  bool hold(uint64_t team, session::OpKind kind, uint32_t slot);
  // Whether it is the first that the team has.
  bool add(uint64_t team, uint32_t slot, Verdict verdict);
  // What a gate waits for has ended, perhaps: no gate of that slot waits.
  void open(uint32_t slot, bool well);
  bool any_opened() const { return !opened_.empty(); }
  // A team of whose gates one was opened since it was taken.
  std::optional<uint64_t> take_opened();
  // The first of the team's if that may begin, or is a gate that is open.
  std::optional<Held> next(uint64_t team);
  // Whether what the team's next operation comes after has failed; once.
  bool take_spoilt(uint64_t team);
  void remove_team(uint64_t team);

 private:
  struct Team {
    std::deque<Held> held;  // the first is a gate
    bool spoilt = false;
  };
  void put(uint64_t team, const Held& held);

  tasks::Order& order_;
  std::unordered_map<uint64_t, Team> teams_;       // with something held, or spoilt
  std::unordered_map<uint32_t, uint64_t> closed_;  // slots of gates that wait: their team
  std::vector<uint64_t> opened_;
  std::vector<bool> is_held_ = std::vector<bool>(session::kSlotCount);
};

}  // namespace offpath::service
