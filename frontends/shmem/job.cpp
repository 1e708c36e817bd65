// SPDX-License-Identifier: BSD-3-Clause
#include "shmem/job.hpp"

#include "idle/idle_calls.h"
#include "attach/resting.hpp"
#include "base/environment.hpp"
#include "base/random.hpp"
#include "policy/blocking.hpp"
#include "shmem/job_records.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace offpath::shmem {

Job job;

namespace {

constexpr const char* kSomeOperation = "an operation on memory of another PE";

constexpr const char* segment_name(size_t which) {
  return which == kHeap ? "symmetric heap" : "global and static data";
}

}  // namespace

const char* family_name(Family family) {
  static constexpr std::array<const char*, kFamilies> kNames{"put",     "get",      "atomic",   "broadcast",
                                                             "collect", "fcollect", "alltoall", "reduce"};
  return kNames[static_cast<size_t>(family)];
}

void Job::fill_opening(Opening* opening) const {
  opening->terms.propose(settings_);
  base::fill_random(opening->team.data(), opening->team.size());
  opening->enabled = base::Environment::flag("OFFPATH_ENABLE", true) ? 1 : 0;
  policy::Table table;
  const base::Status status = table.apply(settings_.policy);
  std::string problem = status.ok() ? "" : status.text();
  const base::Result<uint32_t> blocking = policy::parse_blocking(settings_.blocking);
  if (!blocking.ok()) problem = blocking.status().text();
  if (settings_.policy.size() >= attach::kMaxPolicyText) problem = "OFFPATH_POLICY is too long. Shorten it";
  // Threads may be in collectives of one set at a time, in another order at each PE.
  int threads = SHMEM_THREAD_SINGLE;
  native().shmem_query_thread(&threads);
  opening->blocking = blocking.ok() && threads != SHMEM_THREAD_MULTIPLE ? blocking.value() : 0;
  snprintf(opening->policy, sizeof(opening->policy), "%s", problem.empty() ? settings_.policy.c_str() : "");
  snprintf(opening->terms.problem, sizeof(opening->terms.problem), "%s", problem.c_str());
}

bool Job::offloads_collectives(uint32_t nodes) const {
  using enum policy::Collective;
  const auto collectives = {ibcast, iallgather, iallgatherv, ialltoall, iallreduce};
  return std::any_of(collectives.begin(), collectives.end(),
                     [&](policy::Collective each) { return policy_.offloads(each, nodes); });
}

std::vector<std::byte*> Job::mapped_parts(size_t which, const Range& own) const {
  const attach::Nodes& nodes = member_.nodes();
  std::vector<std::byte*> mapped(static_cast<size_t>(pe_count_));
  for (int pe = 0; pe < pe_count_; ++pe) {
    const auto index = static_cast<size_t>(pe);
    if (which == kHeap && nodes.of(pe) == nodes.of(pe_))
      mapped[index] = static_cast<std::byte*>(native().shmem_ptr(own.begin, pe));
  }
  mapped[static_cast<size_t>(pe_)] = own.begin;
  return mapped;
}

bool Job::open_windows(const Opening& opening, const attach::Directory& members) {
  void* const probe = native().shmem_malloc(1);
  const Ranges own_ranges{heap_range(probe), data_range()};
  native().shmem_free(probe);
  std::vector<Ranges> all;
  if (!exchange().gather(own_ranges, &all)) return turn_off(LogLevel::warn, kNoHeap);
  offpath_error_t own{};
  own.status = attach::create_team(member_.session(), opening.team, pe_, members, &team_, &own);

  for (size_t which = 0; own.status == OFFPATH_OK && which < kSegments; ++which) {
    const Range& range = own_ranges[which];
    const bool alike = range.bytes > 0 && std::all_of(all.begin(), all.end(), [&](const Ranges& other) {
                         return other[which].bytes == range.bytes;
                       });
    if (!alike) {  // known to all PEs, so all leave it to the native library
      if (pe_ == 0) {
        attach::say(settings_, LogLevel::info, "the %s is not the same on all PEs: accesses to it stay native",
                    segment_name(which));
      }
      continue;
    }
    Segment segment;
    own.status = segment.open(team_, which, range, mapped_parts(which, range), &own);
    if (own.status == OFFPATH_OK) segments_.push_back(std::move(segment));
  }

  std::vector<offpath_error_t> reports;
  if (!exchange().gather(own, &reports)) return turn_off(LogLevel::warn, kNoHeap);
  for (int pe = 0; pe < pe_count_; ++pe) {
    const offpath_error_t& error = reports[static_cast<size_t>(pe)];
    if (error.status == OFFPATH_OK) continue;
    return turn_off(LogLevel::warn,
                    "PE " + std::to_string(pe) + " could not open its memory to the others: " + error.text);
  }
  return true;
}

bool Job::turn_off(LogLevel level, const std::string& reason) {
  attach::resting.forbid();
  reason_ = reason;
  if (pe_ == 0) attach::say(settings_, level, "all OpenSHMEM calls stay native: %s", reason.c_str());
  return false;
}

bool Job::agree() {
  auto opening = std::make_unique<Opening>();
  if (pe_ == 0) fill_opening(opening.get());
  attach::NodeRecords records;
  if (!exchange().broadcast(opening.get()) || !member_.meet(exchange(), &records)) {
    return turn_off(LogLevel::warn, kNoHeap);
  }
  if (opening->enabled == 0) return turn_off(LogLevel::info, "OFFPATH_ENABLE is 0");
  if (opening->terms.problem[0] != '\0') return turn_off(LogLevel::warn, opening->terms.problem);
  const uint32_t node_count = member_.nodes().count();
  policy_ = policy::Table::measured();
  (void)policy_.apply(opening->policy);
  blocking_ = opening->blocking;
  offloads_memory_ = policy_.choose(policy::Collective::window, 0, node_count).path == policy::Path::dpu;
  if (!offloads_memory_ && !offloads_collectives(node_count)) {
    return turn_off(LogLevel::info, "the policy offloads nothing on " + std::to_string(node_count) + " node(s)");
  }
  attach::Directory members;
  std::string problem = member_.choose_cores(opening->terms, settings_, records);
  if (problem.empty()) problem = member_.attach(opening->terms, exchange(), &members);
  if (!problem.empty()) return turn_off(LogLevel::warn, problem);
  active_sets_.open(member_.session(), pe_, opening->team, members, member_.nodes());
  return !offloads_memory_ || open_windows(*opening, members);
}

void Job::start() {
  if (pe_count_ != 0) return;  // initialized a second time
  const base::ErrnoGuard errno_guard;
  settings_ = attach::Settings::from_environment();
  if (settings_.quiet_waits) attach::resting.insist(native().yield_when_idle);
  process_id_ = getpid();
  offpath_rest_in_idle_calls([] {
    job.look();
    return attach::resting.rest() ? 1 : 0;
  });
  if (!native().complete) {
    turn_off(LogLevel::warn, "this is not the OpenSHMEM of Open MPI 4");
    return;
  }
  pe_ = native().shmem_my_pe();
  pe_count_ = native().shmem_n_pes();
  if (pe_count_ < 2) {
    turn_off(LogLevel::info, "the job has one process");
    return;
  }
  if (!agree()) return close();
  member_.rest_where_cores_are_shared(native().yield_when_idle);
  reason_.clear();
  active_.store(true, std::memory_order_release);
  member_.announce(settings_);
}

void Job::close() {
  for (Segment& segment : segments_) segment.close();
  segments_.clear();
  offpath_team_destroy(team_);
  team_ = nullptr;
  active_sets_.close();
  member_.detach();
}

void Job::stop() {
  const base::ErrnoGuard errno_guard;
  if (pe_count_ == 0 || getpid() != process_id_) return;
  if (active_.load()) {
    quiet();
    native().shmem_barrier_all();  // nobody's operations need this PE any more
    write_statistics();
    active_.store(false, std::memory_order_release);
    attach::resting.end();
    close();
  } else {
    write_statistics();
  }
  pe_count_ = 0;
  reason_ = "OpenSHMEM was finalized";
}

void Job::quiet() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // stores to mapped memory
  for (Segment& segment : segments_) {
    const offpath_status_t status = offpath_window_flush(segment.window(), UINT64_MAX);
    if (status != OFFPATH_OK) return fail(status, kSomeOperation);
  }
}

void Job::look() {
  if (!active_.load(std::memory_order_acquire)) return;
  for (Segment& segment : segments_) {
    const offpath_status_t status = offpath_window_flush_test(segment.window());
    if (status != OFFPATH_OK && status != OFFPATH_IN_PROGRESS) return fail(status, kSomeOperation);
  }
}

void Job::fail(offpath_status_t status, const std::string& operation) {
  if (!active_.exchange(false)) return;
  attach::say(settings_, LogLevel::error,
              "PE %d: %s failed: %s (OpenSHMEM cannot report it, so the job ends). See "
              "OFFPATH_SERVICE_LOG for the service's last words",
              pe_, operation.c_str(), offpath_status_string(status));
  native().shmem_global_exit(1);
}

}  // namespace offpath::shmem
