// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/job.hpp"

#include "attach/statistics.hpp"
#include "base/clock.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/opening.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace offpath::mpi {

Job job;

void Job::fill_opening(Opening* opening) const {
  opening->terms.propose(settings_);
  policy::Table table = policy::Table::measured();
  const base::Status status = table.apply(settings_.policy);
  std::string problem = status.ok() ? "" : status.text();
  // Without the memory the run begins as the first one did.
  const base::Status memory = table.apply(settings_.memory, policy::Origin::remembered);
  if (!memory.ok()) say(settings_, LogLevel::warn, "OFFPATH_MPI_MEMORY is left out: %s", memory.text());
  opening->adapts = settings_.adapt == "on" ? 1 : 0;
  if (opening->adapts == 0 && !settings_.adapt.empty() && settings_.adapt != "off" && settings_.adapt != "freeze") {
    problem = "OFFPATH_MPI_ADAPT is '" + settings_.adapt.substr(0, 40) + "' (it takes on, off or freeze). Correct it";
  }
  opening->adapt_percent = static_cast<uint8_t>(settings_.adapt_percent);
  const base::Result<NamedPreferences> named = NamedPreferences::parse(settings_.comm_policy);
  if (!named.ok()) problem = named.status().text();
  const base::Result<uint32_t> blocking = parse_blocking(settings_.blocking);
  opening->blocking = blocking.ok() ? blocking.value() : 0;
  if (!blocking.ok()) problem = blocking.status().text();
  if (settings_.policy.size() >= kMaxPolicyText) problem = "OFFPATH_POLICY is too long. Shorten it";
  if (std::max(settings_.memory.size(), settings_.comm_policy.size()) >= kMaxPolicyText) {
    problem = "OFFPATH_MPI_MEMORY or OFFPATH_MPI_COMM_POLICY is too long. Shorten it";
  }
  const bool remembers = memory.ok() && settings_.adapt != "off" && !settings_.adapt.empty() && problem.empty();
  snprintf(opening->memory, sizeof(opening->memory), "%s", remembers ? settings_.memory.c_str() : "");
  snprintf(opening->comm_policy, sizeof(opening->comm_policy), "%s",
           problem.empty() ? settings_.comm_policy.c_str() : "");
  snprintf(opening->policy, sizeof(opening->policy), "%s", problem.empty() ? settings_.policy.c_str() : "");
  snprintf(opening->terms.problem, sizeof(opening->terms.problem), "%s", problem.c_str());
}

bool Job::read_opening(const Opening& opening) {
  if (opening.terms.problem[0] != '\0') {
    stay_native(LogLevel::warn, opening.terms.problem);
    return false;
  }
  blocking_ = opening.blocking;
  adapts_ = opening.adapts != 0;
  base::Result<NamedPreferences> named = NamedPreferences::parse(opening.comm_policy);
  if (named.ok()) named_preferences_ = std::move(named.value());
  ledger_.percent = opening.adapt_percent;
  ledger_.begin_ns = base::clock_ns();
  policy_ = policy::Table::measured();
  return policy_.apply(opening.memory, policy::Origin::remembered).ok() && policy_.apply(opening.policy).ok();
}

bool Job::choose_cores(const Opening& opening, std::span<const attach::NodeRecord> records) {
  const auto cores = attach::choose_cores(opening.terms, settings_, records, nodes_, rank_, "ranks");
  if (!cores.ok()) {
    stay_native(LogLevel::warn, cores.status().text());
    return false;
  }
  service_cores_ = cores.value().list;
  spare_cores_ = cores.value().spare;
  return true;
}

bool Job::open_sessions(const Opening& opening) {
  std::copy(std::begin(opening.terms.token), std::end(opening.terms.token), token_.begin());
  const attach::Attachment own = attach::open_session(opening.terms, service_cores_, nodes_.around(rank_), &session_);
  std::vector<attach::Attachment> all(static_cast<size_t>(size_));
  if (native.Allgather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, control_) != MPI_SUCCESS) {
    return false;
  }
  addresses_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    const attach::Attachment& other = all[static_cast<size_t>(rank)];
    if (other.error.status != OFFPATH_OK) {
      stay_native(LogLevel::warn,
                  "rank " + std::to_string(rank) + " could not attach to its service: " + other.error.text);
      return false;
    }
    addresses_.push_back(other.address);
  }
  return true;
}

bool Job::copy_token(uint8_t* token) const {
  if (!active() || offpath_session_alive(session_) == 0) return false;
  std::copy(token_.begin(), token_.end(), token);
  return true;
}

const void* Job::address_of(int world_rank) const { return addresses_[static_cast<size_t>(world_rank)].data(); }

void Job::stay_native(LogLevel level, const std::string& reason) {
  reason_ = reason;
  if (rank_ == 0) say(settings_, level, "all MPI calls stay native: %s", reason.c_str());
}

bool Job::start(Equipment own) {
  const Inside inside;
  settings_ = Settings::from_environment();
  native.Comm_rank(MPI_COMM_WORLD, &rank_);
  native.Comm_size(MPI_COMM_WORLD, &size_);
  all_ = own;
  if (size_ == 1) {
    stay_native(LogLevel::info, "the job has one process");
    return false;
  }
  native.Comm_dup(MPI_COMM_WORLD, &control_);
  native.Comm_set_errhandler(control_, MPI_ERRORS_RETURN);
  native.Comm_group(MPI_COMM_WORLD, &world_group_);
  Opening opening{};
  if (rank_ == 0) fill_opening(&opening);
  native.Bcast(&opening, sizeof(opening), MPI_BYTE, 0, control_);
  const attach::NodeRecord own_node = attach::own_node();
  std::vector<attach::NodeRecord> records(static_cast<size_t>(size_));
  native.Allgather(&own_node, sizeof(own_node), MPI_BYTE, records.data(), sizeof(own_node), MPI_BYTE, control_);
  nodes_ = attach::Nodes(records);
  native.Allreduce(MPI_IN_PLACE, &all_, sizeof(all_), MPI_C_BOOL, MPI_LAND, control_);
  if (!read_opening(opening)) return false;
  if (!policy_.offloads(nodes_.count())) {
    stay_native(LogLevel::info, "the policy offloads nothing on " + std::to_string(nodes_.count()) + " node(s)");
    return false;
  }
  return choose_cores(opening, records) && open_sessions(opening);
}

void Job::turn_on() {
  reason_.clear();
  active_.store(true, std::memory_order_release);
  if (rank_ != 0) return;
  say(settings_, LogLevel::info, "attached on %u node(s), %d ranks, service cores of %s: %s", nodes_.count(), size_,
      attach::host_name().data(), service_cores_.empty() ? "chosen by the service" : service_cores_.c_str());
}

void Job::detach() {
  if (session_ != nullptr) offpath_session_detach(session_);
  session_ = nullptr;
}

void Job::stop() {
  if (world_group_ != MPI_GROUP_NULL) native.Group_free(&world_group_);
  if (control_ != MPI_COMM_NULL) native.Comm_free(&control_);
  reason_ = "MPI_Finalize was called";
}

void Job::report_lost_service() {
  if (loss_reported_.exchange(true)) return;
  loss_ = attach::loss_of(attach::host_name().data(), attach::counters_of(session_));
  if (nodes_.leads(rank_)) warn_of_loss();
}

void Job::report_parting(const attach::Parting& parting, bool says) {
  if (loss_reported_.exchange(true)) return;
  const auto host = [this](uint32_t rank) { return nodes_.host_of(static_cast<int>(rank)); };
  loss_ = attach::parting_of(host(parting.here), host(parting.there), parting.silence_ms);
  if (says) warn_of_loss();
}

void Job::warn_of_loss() const {
  say(settings_, LogLevel::warn, "%s (operations it worked on fail, all further MPI calls stay native). %s",
      loss_.problem.c_str(), loss_.cure.c_str());
}

}  // namespace offpath::mpi
