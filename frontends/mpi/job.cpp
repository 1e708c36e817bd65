// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include "base/random.hpp"
#include "blocking.hpp"
#include "communicators.hpp"
#include "engine.hpp"
#include "job_records.hpp"
#include "native.hpp"
#include "node.hpp"
#include "persistent.hpp"
#include "proxy/layer.hpp"
#include "rma/windows.hpp"
#include "types/datatype.hpp"
#include "waiting.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace offpath::mpi {

Job job;

namespace {

constexpr uint64_t kLastWordsNs = 1'000'000'000;

template <size_t words>
CoreSet from_words(const std::array<uint64_t, words>& bits) {
  CoreSet cores;
  for (size_t core = 0; core < words * 64; ++core) cores[core] = (bits[core / 64] >> (core % 64)) & 1;
  return cores;
}

template <size_t words>
void to_words(const CoreSet& cores, std::array<uint64_t, words>* bits) {
  bits->fill(0);
  for (size_t core = 0; core < words * 64; ++core) (*bits)[core / 64] |= uint64_t{cores[core]} << (core % 64);
}

void copy_text(char* out, size_t capacity, const std::string& text) {
  const size_t length = std::min(text.size(), capacity - 1);
  memcpy(out, text.data(), length);
  out[length] = '\0';
}

}  // namespace

void Job::fill_opening(Opening* opening) const {
  base::fill_random(opening->token, sizeof(opening->token));
  opening->share_cores = settings_.share_cores ? 1 : 0;
  opening->cores_given = settings_.service_cores.empty() ? 0 : 1;
  policy::Table table = policy::Table::measured();
  const base::Status status = table.apply(settings_.policy);
  std::string problem = status.ok() ? "" : status.text();
  const base::Result<uint32_t> blocking = parse_blocking(settings_.blocking);
  opening->blocking = blocking.ok() ? blocking.value() : 0;
  if (!blocking.ok()) problem = blocking.status().text();
  if (settings_.policy.size() >= kMaxPolicyText) problem = "OFFPATH_POLICY is too long. Shorten it";
  copy_text(opening->policy, sizeof(opening->policy), problem.empty() ? settings_.policy : "");
  copy_text(opening->problem, sizeof(opening->problem), problem);
}

bool Job::read_opening(const Opening& opening) {
  if (opening.problem[0] != '\0') {
    turn_off(LogLevel::warn, opening.problem);
    return false;
  }
  blocking_ = opening.blocking;
  policy_ = policy::Table::measured();
  return policy_.apply(opening.policy).ok();
}

void Job::fill_node_record(NodeRecord* record) const {
  record->node_key = node_key();
  record->has_targets = regions::have_targets() ? 1 : 0;
  memcpy(record->host, host_.data(), sizeof(record->host));
  to_words(bound_cores(), &record->mask);
  to_words(allowed_cores(), &record->allowed);
}

void Job::number_nodes(std::span<const NodeRecord> records) {
  std::unordered_map<uint64_t, uint32_t> numbers;
  nodes_.clear();
  for (const NodeRecord& record : records) {
    const auto next = static_cast<uint32_t>(numbers.size());
    nodes_.push_back(numbers.emplace(record.node_key, next).first->second);
  }
  const auto own = nodes_[static_cast<size_t>(rank_)];
  node_leader_ = std::find(nodes_.begin(), nodes_.end(), own) - nodes_.begin() == rank_;
}

bool Job::find_cores(std::span<const NodeRecord> records, bool share, std::string* own_cores) {
  const uint32_t node_count = *std::max_element(nodes_.begin(), nodes_.end()) + 1;
  for (uint32_t node = 0; node < node_count; ++node) {
    std::vector<CoreSet> masks;
    CoreSet allowed;
    const char* host = "";
    for (size_t i = 0; i < records.size(); ++i) {
      if (nodes_[i] != node) continue;
      masks.push_back(from_words(records[i].mask));
      allowed |= from_words(records[i].allowed);
      host = records[i].host;
    }
    const Placement placement = place_service(masks, allowed, share ? Sharing::allowed : Sharing::forbidden);
    if (placement.cores.none()) {
      turn_off(LogLevel::warn, std::string("no spare core on host ") + host +
                                   " for the service (its ranks use them all). Leave one free, name cores with "
                                   "OFFPATH_SERVICE_CORES, or set OFFPATH_SERVICE_SHARE=1");
      return false;
    }
    if (node != node_of(rank_)) continue;
    *own_cores = core_list(placement.cores);
    spare_cores_ = !placement.shared;
  }
  return true;
}

bool Job::attach(const Opening& opening, const std::string& cores) {
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof(params);
  memcpy(params.job_token, opening.token, sizeof(params.job_token));
  params.service_cores = cores.empty() ? nullptr : cores.c_str();
  offpath_error_t error{};
  Attachment own{};
  own.ok = offpath_session_attach(&params, &session_, &error) == OFFPATH_OK ? 1 : 0;
  if (own.ok == 0) {
    session_ = nullptr;
    memcpy(own.problem, error.text, sizeof(own.problem));
  } else {
    size_t bytes = 0;
    if (offpath_session_address(session_, own.address.data(), own.address.size(), &bytes) != OFFPATH_OK) own.ok = 0;
  }
  std::vector<Attachment> all(static_cast<size_t>(size_));
  if (native.Allgather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, control_) != MPI_SUCCESS) {
    return false;
  }
  addresses_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    const Attachment& other = all[static_cast<size_t>(rank)];
    if (other.ok == 0) {
      turn_off(LogLevel::warn, "rank " + std::to_string(rank) + " could not attach to its service: " + other.problem);
      return false;
    }
    addresses_.push_back(other.address);
  }
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

void Job::close_communication() {
  if (session_ != nullptr) offpath_session_detach(session_);
  session_ = nullptr;
  close_types();
  if (keyval_ != MPI_KEYVAL_INVALID) native.Comm_free_keyval(&keyval_);
  if (world_group_ != MPI_GROUP_NULL) native.Group_free(&world_group_);
  if (control_ != MPI_COMM_NULL) native.Comm_free(&control_);
}

void Job::start() {
  {
    const Inside inside;
    settings_ = Settings::from_environment();
    host_ = host_name();
    native.Comm_rank(MPI_COMM_WORLD, &rank_);
    native.Comm_size(MPI_COMM_WORLD, &size_);
    all_have_targets_ = regions::have_targets();
    if (size_ == 1) {
      turn_off(LogLevel::info, "the job has one process");
      return;
    }
    open_communication();
    Opening opening{};
    if (rank_ == 0) fill_opening(&opening);
    native.Bcast(&opening, sizeof(opening), MPI_BYTE, 0, control_);
    NodeRecord own{};
    fill_node_record(&own);
    std::vector<NodeRecord> records(static_cast<size_t>(size_));
    native.Allgather(&own, sizeof(own), MPI_BYTE, records.data(), sizeof(own), MPI_BYTE, control_);
    number_nodes(records);
    for (const NodeRecord& record : records) all_have_targets_ = all_have_targets_ && record.has_targets != 0;
    const uint32_t node_count = *std::max_element(nodes_.begin(), nodes_.end()) + 1;
    bool on = read_opening(opening);
    if (on && !policy_.offloads(node_count)) {
      turn_off(LogLevel::info, "the policy offloads nothing on " + std::to_string(node_count) + " node(s)");
      on = false;
    }
    std::string cores = settings_.service_cores;
    if (on && opening.cores_given == 0)
      on = find_cores(records, opening.share_cores != 0, &cores);
    else
      spare_cores_ = false;  // cores given by hand may well be the application's
    if (on) on = attach(opening, cores);
    if (on)
      on = engine.errors().create() && open_types() == MPI_SUCCESS &&
           native.Comm_create_keyval(&keep_attribute_back, &forget_communicator, &keyval_, nullptr) == MPI_SUCCESS;
    if (!on) {
      close_communication();
      return;
    }
    reason_.clear();
    active_.store(true, std::memory_order_release);
    if (rank_ == 0) {
      say(settings_, LogLevel::info, "attached on %u node(s), %d ranks, service cores of %s: %s", node_count, size_,
          host_.data(), cores.empty() ? "chosen by the service" : cores.c_str());
    }
  }
  adopt_communicator(MPI_COMM_WORLD);
}

void Job::pass_barrier(Engine::AtEnd task) {
  MPI_Request barrier = MPI_REQUEST_NULL;
  const Inside inside;
  if (native.Ibarrier(control_, &barrier) != MPI_SUCCESS) return;
  Waiter waiter;
  for (int done = 0; done == 0; waiter.pause()) {
    engine.progress_all(task);
    if (native.Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) return;
  }
}

void Job::drain() {
  Waiter waiter;
  while (!engine.drained()) {
    engine.progress_all(Engine::AtEnd::look);
    waiter.pause();
  }
  // Nobody leaves before nobody's operation needs it any more. Losses count until the first barrier; who hears of one
  // then still answers, so that no word is left in the native library when it ends.
  pass_barrier(Engine::AtEnd::look);
  pass_barrier(Engine::AtEnd::answer);
  const uint64_t deadline = now_ns() + kLastWordsNs;
  while (!engine.settled() && now_ns() < deadline) {
    engine.progress_all(Engine::AtEnd::answer);
    waiter.pause();
  }
}

void Job::stop() {
  if (active()) {
    drain();
    const Inside inside;
    for (const MPI_Comm comm : engine.communicators()) native.Comm_delete_attr(comm, keyval_);
    windows.clear();
    persistents.clear();
    engine.clear();
    active_.store(false, std::memory_order_release);
    write_statistics();
    close_communication();
  } else if (size_ > 0) {
    const Inside inside;
    write_statistics();
  }
  reason_ = "MPI_Finalize was called";
}

void Job::report_lost_service() {
  if (loss_reported_.exchange(true) || !node_leader_) return;
  say(settings_, LogLevel::warn,
      "the service on host %s was lost (operations it worked on fail). All further MPI calls stay native; see "
      "OFFPATH_SERVICE_LOG for its last words",
      host_.data());
}

}  // namespace offpath::mpi
