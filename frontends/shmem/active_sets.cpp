// SPDX-License-Identifier: BSD-3-Clause
#include "shmem/active_sets.hpp"

#include "attach/session.hpp"

#include <cstring>
#include <set>
#include <vector>

namespace offpath::shmem {

bool ActiveSet::fits(int pes) const {
  constexpr int kLogStrides = 31;
  if (first < 0 || size < 1 || log_stride < 0 || log_stride >= kLogStrides) return false;
  return first + (int64_t{size - 1} << log_stride) < pes;
}

int ActiveSet::member(int pe) const {
  const int behind = pe - first, place = behind >> log_stride;
  return behind >= 0 && place < size && this->pe(place) == pe ? place : -1;
}

void ActiveSets::open(offpath_session_t* session, int pe, const Id& id, const attach::Directory& members,
                      const attach::Nodes& nodes) {
  session_ = session;
  pe_ = pe;
  id_ = id;
  members_ = members;
  nodes_ = nodes;
}

void ActiveSets::close() {
  for (const auto& [set, team] : teams_) offpath_team_destroy(team.end);
  teams_.clear();
  members_ = {};
}

Team* ActiveSets::find(const ActiveSet& set) {
  if (!set.fits(static_cast<int>(members_.size())) || set.member(pe_) < 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto known = teams_.find(set);
  if (known != teams_.end()) return &known->second;
  std::set<uint32_t> nodes;
  for (int member = 0; member < set.size; ++member) nodes.insert(nodes_.of(set.pe(member)));
  return &teams_.emplace(set, Team{set.size, set.member(pe_), static_cast<uint32_t>(nodes.size())}).first->second;
}

offpath_status_t ActiveSets::make(const ActiveSet& set, Team* team) {
  const std::lock_guard lock(mutex_);
  if (team->end != nullptr) return OFFPATH_OK;
  // The id is random but for what is told apart in it: who knows one of the job's is one of its PEs.
  const std::array<int32_t, 3> words{set.first, set.log_stride, set.size};
  std::array<uint8_t, sizeof(words)> bytes;
  memcpy(bytes.data(), words.data(), sizeof(words));
  Id id = id_;
  for (size_t i = 0; i < bytes.size(); ++i) id[i] ^= bytes[i];
  std::vector<int> pes;
  for (int member = 0; member < set.size; ++member) pes.push_back(set.pe(member));
  offpath_error_t error{};
  return attach::create_team(session_, id, team->member, members_.of(pes), &team->end, &error);
}

}  // namespace offpath::shmem
