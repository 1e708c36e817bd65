// SPDX-License-Identifier: BSD-3-Clause
// Core: which clients, teams and operations there are, and what is counted of them. It decides nothing and reaches nobody. Owned by
// the engine; on the worker's thread. Internal to engine/.
#pragma once

#include "engine/core/doer.hpp"
#include "engine/core/observer.hpp"
#include "engine/core/operation.hpp"

#include <map>
#include <memory>
#include <unordered_map>

namespace offpath::engine {

struct Core {
  // Both outlive it.
  Core(Observer& its_observer, Doer& its_doer) : observer(its_observer), doer(its_doer) {}

  base::Result<std::shared_ptr<Team>> add_team(TeamSpec spec);
  // Null: there is none.
  std::shared_ptr<Team> find_team(const wire::TeamId& id, uint32_t rank) const;
  // Null unless the team was removed and has nothing left to do: then nobody finds it any more.
  std::shared_ptr<Team> take_unused(const Team& team);

  Operation& add_operation(const std::shared_ptr<Team>& team, OperationKey key, Part part, Graph graph,
                           uint64_t context);
  // Nobody finds it any more.
  std::unique_ptr<Operation> take(Operation& operation);
  void note_moved(Operation& operation, uint64_t bytes);
  // What is known of a member that neither sends nor takes.
  Waits look_for(const Operation& operation, uint32_t rank) const;

  void refuse_message(const char* why);

  Observer& observer;
  Doer& doer;
  std::unordered_map<ClientId, std::shared_ptr<memory::Port>> clients;
  std::map<TeamKey, std::shared_ptr<Team>> teams;
  std::unordered_map<TeamHandle, std::shared_ptr<Team>> team_by_handle;
  std::unordered_map<uint64_t, std::unique_ptr<Operation>> operations;
  uint64_t next_id = 1;  // of anything that has one
  uint64_t refused = 0;
  Traffic traffic;
};

}  // namespace offpath::engine
