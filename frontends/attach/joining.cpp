// SPDX-License-Identifier: BSD-3-Clause
#include "attach/joining.hpp"

#include "attach/resting.hpp"
#include "attach/statistics.hpp"
#include "base/environment.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace offpath::attach {
namespace {

constexpr const char* kDifferentSecrets =
    "the services of the nodes do not know the same secret (they would not talk to each other). Set "
    "OFFPATH_JOB_SECRET to the same for all, or for none";

// Addresses begin with the name of the job (src/session/member_address.hpp).
bool of_one_job(const Directory& members) {
  constexpr size_t kNameBytes = 8;
  const auto first = members.address(0);
  for (uint32_t number = 1; number < members.addresses_count(); ++number) {
    const auto address = members.address(number);
    if (!std::equal(address.begin(), address.begin() + kNameBytes, first.begin())) return false;
  }
  return true;
}

}  // namespace

bool Membership::meet(const Exchange& job, NodeRecords* records) {
  rank_ = job.rank();
  size_ = job.size();
  if (!NodeRecords::gather(job, own_node(), records)) return false;
  nodes_ = Nodes(*records);
  return true;
}

std::string Membership::choose_cores(const Terms& terms, const Settings& settings, const NodeRecords& records) {
  const std::string processes = std::string(process_) + "s";
  auto cores = attach::choose_cores(terms, settings, records, nodes_, rank_, processes.c_str());
  if (!cores.ok()) return no_service_ = cores.status().text();
  cores_ = std::move(cores.value());
  return "";
}

offpath_error_t Membership::attach_itself(const Terms& terms, Address* address) {
  offpath_error_t error{};
  error.status = OFFPATH_ERR_NO_SERVICE;
  if (session() != nullptr && !alive()) no_service_ = loss().problem;
  if (no_service_.empty() && session() == nullptr) {
    error = open_session(terms, cores_.list, nodes_.around(rank_), &first_);
    if (first_ != nullptr) sessions_.begin(first_);
    if (error.status != OFFPATH_OK) no_service_ = error.text;
  }
  if (no_service_.empty()) error.status = address_of(session(), address);
  if (error.status != OFFPATH_OK) address->bytes = 0;
  snprintf(error.text, sizeof(error.text), "%s", no_service_.c_str());
  return error;
}

std::string Membership::attach(const Terms& terms, const Exchange& team, Directory* members) {
  Address address;
  const offpath_error_t own = attach_itself(terms, &address);
  int failed = -1;
  if (!Directory::gather(team, address, members, &failed)) return team.failure();
  if (failed < 0) return of_one_job(*members) ? "" : kDifferentSecrets;
  std::vector<uint8_t> speaks(static_cast<size_t>(team.size()));
  speaks[static_cast<size_t>(failed)] = 1;
  offpath_error_t first{};
  if (!team.gather_some(&own, sizeof(own), speaks, &first)) return team.failure();
  return std::string(process_) + " " + std::to_string(failed) + " could not attach to its service: " + first.text;
}

void Membership::rest_where_cores_are_shared(bool (*yield_when_idle)(bool)) const {
  if (cores_.spare && !cores_.crowded && !resting.insisted()) return resting.forbid();
  const bool yielded = yield_when_idle != nullptr && yield_when_idle(true);
  resting.begin({&sessions_, cores_.crowded, yielded});
}

offpath_status_t Membership::go_on(offpath_status_t (*next_session)(offpath_session_t*, offpath_session_t**)) {
  offpath_session_t* const now = session();
  if (now == nullptr) return OFFPATH_ERR_NO_SERVICE;
  const bool lives = offpath_session_alive(now) != 0;
  if (!lives && !may_go_on()) return OFFPATH_ERR_NO_SERVICE;
  offpath_session_t* next = nullptr;
  const offpath_status_t status = next_session(now, &next);
  if (status != OFFPATH_OK) return lives && status != OFFPATH_IN_PROGRESS ? OFFPATH_OK : status;
  sessions_.go_on(now, next);
  return OFFPATH_OK;
}

void Membership::detach() {
  sessions_.end();
  if (first_ != nullptr) offpath_session_detach(std::exchange(first_, nullptr));
}

void Membership::announce(const Settings& settings) const {
  if (rank_ != 0) return;
  const base::Status problem = base::Environment::problem();
  if (!problem.ok()) say(settings, LogLevel::warn, "%s", problem.text());
  say(settings, LogLevel::info, "attached on %u node(s), %d %ss, service cores of %s: %s", nodes_.count(), size_,
      process_, host_name().data(), cores_.list.empty() ? "chosen by the service" : cores_.list.c_str());
}

bool Membership::may_go_on() const { return counters_of(session()).silence_ms == 0; }

Loss Membership::loss() const { return loss_of(host_name().data(), counters_of(session())); }

}  // namespace offpath::attach
