// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/job.hpp"

#include "attach/statistics.hpp"
#include "mpi/adapt/adapter.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/opening.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"
#include "mpi/proxy/layer.hpp"
#include "mpi/recording/service_times.hpp"
#include "mpi/requests/persistent.hpp"
#include "mpi/rma/windows.hpp"
#include "mpi/types/datatype.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace offpath::mpi {

Job job;

namespace {

constexpr uint64_t kLastWordsNs = 1'000'000'000;

}  // namespace

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
    turn_off(LogLevel::warn, opening.terms.problem);
    return false;
  }
  blocking_ = opening.blocking;
  adapts_ = opening.adapts != 0;
  base::Result<NamedPreferences> named = NamedPreferences::parse(opening.comm_policy);
  if (named.ok()) named_preferences_ = std::move(named.value());
  ledger.percent = opening.adapt_percent;
  ledger.begin_ns = now_ns();
  policy_ = policy::Table::measured();
  return policy_.apply(opening.memory, policy::Origin::remembered).ok() && policy_.apply(opening.policy).ok();
}

bool Job::choose_cores(const Opening& opening, std::span<const attach::NodeRecord> records) {
  const auto cores = attach::choose_cores(opening.terms, settings_, records, nodes_, rank_, "ranks");
  if (!cores.ok()) {
    turn_off(LogLevel::warn, cores.status().text());
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
      turn_off(LogLevel::warn,
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

void Job::turn_off(LogLevel level, const std::string& reason) {
  reason_ = reason;
  if (rank_ == 0) say(settings_, level, "all MPI calls stay native: %s", reason.c_str());
}

void Job::open_communication() {
  native.Comm_dup(MPI_COMM_WORLD, &control_);
  native.Comm_set_errhandler(control_, MPI_ERRORS_RETURN);
  native.Comm_group(MPI_COMM_WORLD, &world_group_);
}

void Job::close_session() {
  if (session_ != nullptr) offpath_session_detach(session_);
  session_ = nullptr;
  close_types();
  if (keyval_ != MPI_KEYVAL_INVALID) native.Comm_free_keyval(&keyval_);
  keyval_ = MPI_KEYVAL_INVALID;
}

void Job::close_communication() {
  if (world_group_ != MPI_GROUP_NULL) native.Group_free(&world_group_);
  if (control_ != MPI_COMM_NULL) native.Comm_free(&control_);
}

void Job::start() {
  {
    const Inside inside;
    settings_ = Settings::from_environment();
    native.Comm_rank(MPI_COMM_WORLD, &rank_);
    native.Comm_size(MPI_COMM_WORLD, &size_);
    all_ = {regions::have_targets(), tracing::wanted()};
    if (size_ == 1) {
      turn_off(LogLevel::info, "the job has one process");
      return;
    }
    open_communication();
    Opening opening{};
    if (rank_ == 0) fill_opening(&opening);
    native.Bcast(&opening, sizeof(opening), MPI_BYTE, 0, control_);
    const attach::NodeRecord own = attach::own_node();
    std::vector<attach::NodeRecord> records(static_cast<size_t>(size_));
    native.Allgather(&own, sizeof(own), MPI_BYTE, records.data(), sizeof(own), MPI_BYTE, control_);
    nodes_ = attach::Nodes(records);
    native.Allreduce(MPI_IN_PLACE, &all_, 2, MPI_C_BOOL, MPI_LAND, control_);
    bool on = read_opening(opening);
    if (on && !policy_.offloads(nodes_.count())) {
      turn_off(LogLevel::info, "the policy offloads nothing on " + std::to_string(nodes_.count()) + " node(s)");
      on = false;
    }
    on = on && choose_cores(opening, records) && open_sessions(opening);
    if (on)
      on = offloader.errors().create() && open_types() == MPI_SUCCESS &&
           native.Comm_create_keyval(&keep_attribute_back, &forget_communicator, &keyval_, nullptr) == MPI_SUCCESS;
    if (!on) return close_session();
    reason_.clear();
    active_.store(true, std::memory_order_release);
    if (rank_ == 0) {
      say(settings_, LogLevel::info, "attached on %u node(s), %d ranks, service cores of %s: %s", nodes_.count(), size_,
          own.host.data(), service_cores_.empty() ? "chosen by the service" : service_cores_.c_str());
    }
  }
  adopt_communicator(MPI_COMM_WORLD);
}

void Job::pass_barrier(Offloader::AtEnd task) {
  MPI_Request barrier = MPI_REQUEST_NULL;
  const Inside inside;
  if (native.Ibarrier(control_, &barrier) != MPI_SUCCESS) return;
  Waiter waiter;
  for (int done = 0; done == 0; waiter.pause()) {
    offloader.progress_all(task);
    if (native.Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) return;
  }
}

void Job::drain() {
  Waiter waiter;
  while (!offloader.drained()) {
    offloader.progress_all(Offloader::AtEnd::look);
    waiter.pause();
  }
  // Nobody leaves before nobody's operation needs it any more. Losses count until the first barrier; who hears of one
  // then still answers, so that no word is left in the native library when it ends.
  pass_barrier(Offloader::AtEnd::look);
  pass_barrier(Offloader::AtEnd::answer);
  const uint64_t deadline = now_ns() + kLastWordsNs;
  while (!offloader.settled() && now_ns() < deadline) {
    offloader.progress_all(Offloader::AtEnd::answer);
    waiter.pause();
  }
}

void Job::stop() {
  if (active()) {
    drain();
    const Inside inside;
    for (const MPI_Comm comm : offloader.communicators()) native.Comm_delete_attr(comm, keyval_);
    windows.clear();
    persistents.clear();
    offloader.clear();
    active_.store(false, std::memory_order_release);
    write_statistics();
    close_session();
    close_communication();
  } else {
    const Inside inside;
    write_statistics();
    close_communication();
  }
  reason_ = "MPI_Finalize was called";
}

void Job::report_lost_service() {
  if (loss_reported_.exchange(true)) return;
  loss_ = attach::loss_of(attach::host_name().data(), attach::counters_of(session_));
  if (nodes_.leads(rank_)) warn_of_loss();
}

void Job::report_parting(const Parting& parting, bool says) {
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
