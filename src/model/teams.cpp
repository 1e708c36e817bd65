// SPDX-License-Identifier: BSD-3-Clause
#include "model/teams.hpp"

#include <algorithm>
#include <map>

namespace offpath::model {
namespace {

struct Team {
  uint32_t id = 0;
  uint32_t operations = 0;
  std::vector<uint32_t> last;  // by member: when it posted the last of them
};

// By operation and member: after how many others the member posts it, from 1 on; 0: never.
std::vector<std::vector<uint32_t>> turns_of(const Job& job) {
  std::vector<std::vector<uint32_t>> turns(job.operations.size());
  for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    uint32_t posted = 0;
    for (const Act& act : job.ranks[rank]) {
      if (act.kind != Act::Kind::post) continue;
      for (const uint32_t number : act.operations) {
        const Operation& operation = job.operations[number];
        if (operation.path != policy::Path::dpu || operation.remote != Remote::none) continue;
        turns[number].resize(operation.members.size());
        ++posted;
        for (size_t member = 0; member < operation.members.size(); ++member) {
          uint32_t& turn = turns[number][member];
          if (operation.members[member] == rank && turn == 0) turn = posted;
        }
      }
    }
  }
  return turns;
}

// Whether all members post what they have to post of it after what they have posted on the team.
bool follows(const std::vector<uint32_t>& turns, const Team& team) {
  for (size_t member = 0; member < turns.size(); ++member) {
    if (turns[member] != 0 && turns[member] < team.last[member]) return false;
  }
  return true;
}

}  // namespace

std::vector<Place> places_of(const Job& job) {
  const auto turns = turns_of(job);
  std::vector<Place> places(job.operations.size());
  std::map<std::vector<uint32_t>, std::vector<Team>> by_members;
  uint32_t teams = 0;
  for (size_t number = 0; number < job.operations.size(); ++number) {
    if (turns[number].empty()) continue;
    auto& candidates = by_members[job.operations[number].members];
    auto team = std::find_if(candidates.begin(), candidates.end(),
                             [&](const Team& each) { return follows(turns[number], each); });
    if (team == candidates.end()) {
      team = candidates.insert(team, {teams++, 0, std::vector<uint32_t>(turns[number].size())});
    }
    places[number] = {team->id, team->operations++};
    for (size_t member = 0; member < turns[number].size(); ++member) {
      team->last[member] = std::max(team->last[member], turns[number][member]);
    }
  }
  return places;
}

}  // namespace offpath::model
