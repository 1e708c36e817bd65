// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/service_team.hpp"

#include "base/silence.hpp"
#include "client/given_up.hpp"
#include "mpi/job/job.hpp"

#include <algorithm>

namespace offpath::mpi {

ServiceTeam::ServiceTeam(const Id& id, int rank, std::vector<int> members, attach::Directory directory,
                         offpath_session_t* session)
    : id_(id),
      rank_(rank),
      members_(std::move(members)),
      directory_(std::move(directory)),
      is_split_(!directory_.is_whole()),
      stay_(session) {
  count_.fetch_add(1, std::memory_order_relaxed);
}

ServiceTeam::~ServiceTeam() {
  offpath_team_destroy(get());
  count_.fetch_sub(1, std::memory_order_relaxed);
}

void ServiceTeam::move(attach::Directory directory, client::Stay stay) {
  directory_ = std::move(directory);
  is_split_ = !directory_.is_whole();
  stay_ = std::move(stay);
}

void ServiceTeam::count_up(Id& id) {
  for (uint8_t& digit : id) {
    if (++digit != 0) return;
  }
}

std::unique_ptr<ServiceTeam> ServiceTeam::next(attach::Directory directory, offpath_session_t* session) const {
  Id id = id_;
  count_up(id);
  auto made = std::make_unique<ServiceTeam>(id, rank_, members_, std::move(directory), session);
  made->compress(compress_);
  return made;
}

offpath_team_t* ServiceTeam::open() {
  if (offpath_team_t* const made = get()) return made;
  const attach::Directory directory = directory_.empty() ? job.directory().of(members_) : directory_;
  offpath_team_t* made = nullptr;
  offpath_error_t error{};
  const char* const compress = compress_.empty() ? nullptr : compress_.c_str();
  if (attach::create_team(session(), id_, rank_, directory, &made, &error, compress) != OFFPATH_OK) {
    say(job.settings(), LogLevel::info, "a communicator of %zu ranks goes native: %s", members_.size(), error.text);
    return nullptr;
  }
  lane_.store(made, std::memory_order_release);
  return made;
}

void ServiceTeam::give_up() {
  if (offpath_team_t* const made = get()) client::give_up(made);
}

bool ServiceTeam::leaves() const { return client::leaves(session()); }

bool ServiceTeam::broken() const {
  const offpath_team_t* const lane = get();
  return is_split_ || (lane == nullptr ? !alive() : offpath_team_broken(lane) != 0);
}

std::vector<uint8_t> ServiceTeam::losses() const {
  std::vector<uint8_t> lost(members_.size());
  if (const offpath_team_t* const lane = get()) offpath_team_lost(lane, lost.data());
  return lost;
}

attach::Parting ServiceTeam::parting() const {
  const std::vector<uint8_t> lost = losses();
  for (const uint8_t how : {OFFPATH_LOSS_SILENCE, OFFPATH_LOSS_SERVICE, OFFPATH_LOSS_CONNECTION}) {
    const auto member = std::find(lost.begin(), lost.end(), how);
    if (member == lost.end()) continue;
    const int there = members_[static_cast<size_t>(member - lost.begin())];
    const uint64_t silence_ms = how == OFFPATH_LOSS_SILENCE ? base::silence_limit_ns() / 1000000 : 0;
    return {static_cast<uint32_t>(job.rank()), static_cast<uint32_t>(there), silence_ms};
  }
  return {};
}

std::vector<int> ServiceTeam::lost_processes() const {
  const std::vector<uint8_t> lost = losses();
  std::vector<int> found;
  for (size_t member = 0; member < lost.size(); ++member) {
    if (lost[member] == OFFPATH_LOSS_PROCESS) found.push_back(static_cast<int>(member));
  }
  return found;
}

}  // namespace offpath::mpi
