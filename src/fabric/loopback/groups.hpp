// SPDX-License-Identifier: BSD-3-Clause
// Multicast groups inside one process, with the faults of a network, drawn from a seed: so the same run can be had again.
#pragma once

#include "fabric/group.hpp"

#include <memory>

namespace offpath::fabric {

// Parts of all datagrams.
struct GroupFaults {
  double lost = 0;          // on the way to one member
  double lost_for_all = 0;  // near the sender
  double doubled = 0;
  double overtaken = 0;  // by some of the next ones
  double stale = 0;      // beside each: one that was sent before, of whatever task
  size_t room = 0;       // datagrams that a member's socket holds, what comes more is lost; 0: any number
};

// The wire that joins them; must outlive them.
class LoopbackGroups {
 public:
  LoopbackGroups(uint64_t seed, const GroupFaults& faults);
  ~LoopbackGroups();
  // Those with the same team hear each other.
  std::unique_ptr<Group> join(uint64_t team, uint32_t own, size_t chunk_bytes);
  // From now on.
  void set_faults(const GroupFaults& faults);

 private:
  friend class LoopbackGroup;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace offpath::fabric
