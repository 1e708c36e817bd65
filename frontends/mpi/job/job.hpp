// SPDX-License-Identifier: BSD-3-Clause
// This process's part in the job: the session with its node's service, what is known of the other ranks, and whether
// anything is offloaded at all. That is agreed at MPI_Init and the same on all ranks.
//
// States: before MPI_Init and after MPI_Finalize: closed; in between: active, or off with a reason.
// Threads: start and stop by the thread that calls MPI_Init and MPI_Finalize; everything else from any thread.
#pragma once

#include "attach/joining.hpp"
#include "mpi/job/learned.hpp"
#include "mpi/job/preference.hpp"
#include "policy/adaptation.hpp"
#include "policy/policy.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace offpath::mpi {

using attach::LogLevel;
using attach::Settings;

class Job {
 public:
  // What each process says of itself, and then what is true of all.
  struct Equipment {
    bool has_targets;  // a plugin for target regions
    bool traced;       // the recorder of a trace
    bool moves;        // whatever the program blocks in, operations that are held back are moved on (lanes/mover.hpp)
  };

  // What a loss means.
  static constexpr const char* kAllNative =
      "what was under way is done again, and all is native now; windows are served by the ranks";
  static constexpr const char* kGoesOn =
      "what was under way is done again, and another service takes its place; windows are served by the ranks";
  static constexpr const char* kConnectsAgain =
      "they make another one, and what was under way is done again by the MPI alone";
  static constexpr const char* kWindowsOnly = "windows are served by the ranks now";

  // Right after native MPI_Init: agrees on everything and attaches. Collective. False: everything stays native.
  bool start(Equipment own);
  // What is built on it is there, too: calls are offloaded from here on, until the other one.
  void turn_on();
  void turn_off();
  void detach() { member_.detach(); }
  // After the statistics. Inside.
  void stop();

  // The program has asked for that level of threads, and the library was asked for more on our behalf. Before start().
  void grant_threads(int level) { most_threads_ = level; }
  // What the program may do with threads, where that is what the library grants.
  int granted_threads(int granted) const { return std::min(granted, most_threads_); }

  bool active() const { return active_.load(std::memory_order_acquire); }
  int rank() const { return member_.rank(); }
  int size() const { return member_.size(); }
  // Of the ranks, for what they still say at the end. Native.
  MPI_Comm control() const { return control_ == MPI_COMM_NULL ? MPI_COMM_SELF : control_; }
  // At the end, where processes may be lost: those that are not. Collective; before the barriers.
  void leave_lost_behind();
  // Why it is not active.
  const std::string& reason() const { return reason_; }
  // Of every process of the job; known after start().
  const Equipment& all() const { return all_; }
  const Settings& settings() const { return settings_; }
  const policy::Table& policy() const { return policy_; }
  // Paths are decided anew while the program runs.
  bool adapts() const { return adapts_; }
  const NamedPreferences& named_preferences() const { return named_preferences_; }
  // The blocking form is offloaded where the policy offloads the nonblocking one.
  bool offloads_blocking(policy::Collective collective) const {
    return (blocking_ >> static_cast<uint32_t>(collective) & 1) != 0;
  }
  offpath_session_t* session() const { return member_.session(); }
  // Whose events end a wait.
  offpath_session_t* awaited() const { return member_.sessions().awaited(); }
  // The token of the job's services, OFFPATH_TOKEN_BYTES. False: this process has none that lives.
  bool copy_token(uint8_t* token) const;
  // The service has cores of its own: short spinning disturbs nobody.
  bool spare_cores() const { return member_.spare_cores(); }
  // Of a rank in MPI_COMM_WORLD.
  uint32_t node_of(int world_rank) const { return member_.nodes().of(world_rank); }
  // Where all ranks' sessions were at the beginning.
  const attach::Directory& directory() const { return directory_; }
  // Of all ranks.
  uint32_t nodes() const { return member_.nodes().count(); }
  MPI_Group world_group() const { return world_group_; }

  // As of Membership: after a loss, or where the service leaves, the way to another one.
  offpath_status_t go_on();
  bool has_gone_on() const { return member_.has_gone_on(); }
  // This process's service is lost, and none is in its place yet: one warning per lost service, by the first rank of its node.
  void report_lost_service();
  // Whether the service is being waited for because it gets no processor: one warning, by the first rank of its node. Cheap.
  void look_for_starvation() {
    if (offpath_session_starved_ns(session()) != 0) warn_of_starvation();
  }
  // One of two services that have lost each other, as a rank has told; `says`: this rank is the one to warn, of what it means,
  // which is said once.
  void report_parting(const attach::Parting& parting, bool says, const char* meaning);
  // The last one that this process knows of.
  attach::Loss loss() const;
  policy::Ledger& ledger() { return ledger_; }
  Learned& learned() { return learned_; }

 private:
  struct Opening;  // what rank 0 tells everybody

  void fill_opening(Opening* opening) const;
  bool read_opening(const Opening& opening);
  bool apply_policy(const Opening& opening, const policy::Network& network);
  void adjust_to_network(const Opening& opening);
  bool stay_native(LogLevel level, const std::string& reason);
  void warn_of_loss(const char* meaning) const;
  void warn_of_starvation();

  std::atomic<bool> active_{false};
  attach::Membership member_{"rank"};
  Settings settings_;
  policy::Table policy_;
  bool adapts_ = false;
  NamedPreferences named_preferences_;
  int most_threads_ = MPI_THREAD_MULTIPLE;
  uint32_t blocking_ = 0;             // bit 1 << policy::Collective
  MPI_Comm control_ = MPI_COMM_NULL;  // until the end, for the statistics; null in a job of one process
  MPI_Group world_group_ = MPI_GROUP_NULL;
  std::array<uint8_t, OFFPATH_TOKEN_BYTES> token_{};
  Equipment all_{};
  std::atomic<bool> starvation_reported_{false};
  std::atomic<bool> end_reported_{false};
  mutable std::mutex loss_mutex_;  // over the next ones
  const offpath_session_t* lost_ = nullptr;
  attach::Loss loss_;
  const char* parting_meant_ = nullptr;  // as it was reported; nullptr: loss_ is of this process's own service
  std::string reason_ = "MPI_Init was not called";
  policy::Ledger ledger_;  // begins with start()
  Learned learned_;
  attach::Directory directory_;  // of MPI_COMM_WORLD
};

extern Job job;

}  // namespace offpath::mpi
