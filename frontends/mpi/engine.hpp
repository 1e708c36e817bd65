// SPDX-License-Identifier: BSD-3-Clause
// Everything offloaded and not yet finished, moved on from inside the application's MPI calls.
//
// Threads: any. One lock over teams and operations; it may be held during native calls, and is never taken in a
// callback of the native library. A thread that finds it taken while progressing leaves the work to the holder.
#pragma once

#include "errors.hpp"
#include "operation.hpp"
#include "policy/adaptation.hpp"
#include "policy/policy.hpp"
#include "tables.hpp"
#include "team.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace offpath::mpi {

inline constexpr size_t kCollectives = static_cast<size_t>(policy::Collective::ineighbor_alltoallw) + 1;

// Why a call never came as far as a decision.
enum class Passed : uint8_t { off, communicator, blocking };
inline constexpr size_t kPassed = 3;

struct EngineCounters {
  struct PerCollective {
    std::atomic<uint64_t> offloaded_count{0};
    std::atomic<uint64_t> native_count{0};  // calls on a communicator with a team that stayed native
  };
  std::array<PerCollective, kCollectives> collectives;         // all forms count as the nonblocking one
  std::array<std::atomic<uint64_t>, policy::kWhyCount> why{};  // calls whose size all ranks know, by what decided
  std::array<std::atomic<uint64_t>, kPassed> passed{};         // by Passed; about: threads may count at once
  std::atomic<uint64_t> form_count{0};  // calls that stayed native because the service does not do such
  std::atomic<uint64_t> offloaded_bytes{0};
  std::atomic<uint64_t> completed_count{0};
  std::atomic<uint64_t> failed_count{0};
  std::atomic<uint64_t> wait_ns{0};
  std::atomic<uint64_t> post_ns{0};
};

class Engine {
 public:
  // Non-zero: some operation is under way, or failed and not yet reported. Zero is the waiting functions' fast path.
  bool needs_attention() const { return attention_.load(std::memory_order_relaxed) != 0; }

  // Calls of the Wait and Test families, about: threads may count at once.
  void count_wait() { waits_.store(waits() + 1, std::memory_order_relaxed); }
  uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }

  // Hands an operation to its team and gives the application its request. Where the team says otherwise nothing is
  // done: Route::shadow, the caller issues it natively on the shadow; Route::error, *code is the reason if known.
  Team::Route submit(Team& team, std::unique_ptr<Operation> operation, MPI_Request* request, int* code);
  // Takes an operation without a team and gives the application its request. MPI error code. May throw bad_alloc.
  int submit(std::unique_ptr<Loose> operation, MPI_Request* request);
  // As submit would answer now; to spare the preparation.
  Team::Route route(Team& team, const Call& call);

  // Moves everything on; also native communication. Never waits.
  void progress();
  // As progress(), for all teams, also those without operations: a rank at its end looks for losses, or only answers
  // the others, who look for them.
  enum class AtEnd { look, answer };
  void progress_all(AtEnd task);
  // No team waits for other ranks' words.
  bool settled();
  // Nothing under way any more.
  bool drained();

  // The operation behind a request of ours, or nullptr. Lives as long as the request; hold() for longer.
  Requested* find(MPI_Request request) const { return requests_.find(request); }
  static void hold(Requested& operation) { operation.owners.fetch_add(1, std::memory_order_relaxed); }
  static void release(Requested& operation);

  // Teams. These take ownership; they may throw bad_alloc, then the team is destroyed. adopt: it is the communicator's.
  void adopt(std::unique_ptr<Team> team);
  void add_team(std::unique_ptr<Team> team);
  Team* find_team(MPI_Comm comm) const { return teams_by_comm_.find(comm); }
  void forget_comm(MPI_Comm comm, Team& team);
  size_t team_count();
  // Frees teams that were closed and whose operations are done.
  void retire();
  // Lets go of all teams; everything is drained. For each the communicator's attribute was already removed.
  void clear();
  // The communicators that have a team, for their attributes to be removed.
  std::vector<MPI_Comm> communicators();

  // For Team, under the lock. end: its share at the service; complete: all of it.
  void end(Operation& operation, int error);
  void complete(Operation& operation);
  void count_posted(const Operation& operation);
  void count_native(policy::Collective collective);
  void count_passed(Passed why) {
    auto& count = counters_.passed[static_cast<size_t>(why)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // At the service.
  uint64_t posted_count() const { return posted_count_; }
  Errors& errors() { return errors_; }
  EngineCounters& counters() { return counters_; }

 private:
  void finish(Requested& operation);
  int begin(Requested& operation);
  static int query_callback(void* operation, MPI_Status* status);
  static int free_callback(void* operation);
  static int cancel_callback(void* operation, int complete);

  std::mutex mutex_;
  std::atomic<uint64_t> attention_{0};
  std::atomic<uint64_t> waits_{0};
  uint64_t posted_count_ = 0;  // at the service now
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<Team*> active_;  // teams with operations
  std::vector<Loose*> loose_;
  HandleTable<MPI_Request, Requested> requests_;
  HandleTable<MPI_Comm, Team> teams_by_comm_;
  Errors errors_;
  EngineCounters counters_;
};

extern Engine engine;

}  // namespace offpath::mpi
