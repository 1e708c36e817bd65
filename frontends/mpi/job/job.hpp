// SPDX-License-Identifier: BSD-3-Clause
// This process's part in the job: the session with its node's service, what is known of the other ranks, and whether
// anything is offloaded at all. That is agreed at MPI_Init and the same on all ranks.
//
// States: before MPI_Init and after MPI_Finalize: closed; in between: active, or off with a reason.
// Threads: start and stop by the thread that calls MPI_Init and MPI_Finalize; everything else from any thread.
#pragma once

#include "attach/loss.hpp"
#include "attach/nodes.hpp"
#include "attach/session.hpp"
#include "attach/settings.hpp"
#include "mpi/job/preference.hpp"
#include "mpi/lanes/cut.hpp"
#include "mpi/lanes/offloader.hpp"
#include "policy/policy.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::mpi {

using attach::LogLevel;
using attach::Settings;

class Job {
 public:
  // Right after native MPI_Init: agrees on everything and attaches. Collective. On any failure everything stays native.
  void start();
  // Right before native MPI_Finalize: waits for what is under way, detaches, writes the statistics. Collective.
  void stop();

  bool active() const { return active_.load(std::memory_order_acquire); }
  int rank() const { return rank_; }
  // Why it is not active.
  const std::string& reason() const { return reason_; }
  // Every process of the job has a plugin for target regions; known after start().
  bool all_have_targets() const { return all_.have_targets; }
  // Every process of the job has the recorder of a trace; known after start().
  bool all_traced() const { return all_.traced; }
  const Settings& settings() const { return settings_; }
  const policy::Table& policy() const { return policy_; }
  // Paths are decided anew while the program runs.
  bool adapts() const { return adapts_; }
  const NamedPreferences& named_preferences() const { return named_preferences_; }
  // The blocking form is offloaded where the policy offloads the nonblocking one.
  bool offloads_blocking(policy::Collective collective) const {
    return (blocking_ >> static_cast<uint32_t>(collective) & 1) != 0;
  }
  offpath_session_t* session() const { return session_; }
  // The token of the job's services, OFFPATH_TOKEN_BYTES. False: this process has none that lives.
  bool copy_token(uint8_t* token) const;
  // The service has cores of its own: short spinning disturbs nobody.
  bool spare_cores() const { return spare_cores_; }
  int keyval() const { return keyval_; }
  // Of a rank in MPI_COMM_WORLD.
  uint32_t node_of(int world_rank) const { return nodes_.of(world_rank); }
  const void* address_of(int world_rank) const;
  MPI_Group world_group() const { return world_group_; }

  // One warning per lost service, by the first rank of its node.
  void report_lost_service();
  // One of two services that have lost each other, as a rank has told; `says`: this rank is the one to warn.
  void report_parting(const Parting& parting, bool says);
  uint64_t service_cpu_ns() const;

 private:
  struct Opening;  // what rank 0 tells everybody

  void fill_opening(Opening* opening) const;
  bool read_opening(const Opening& opening);
  bool choose_cores(const Opening& opening, std::span<const attach::NodeRecord> records);
  bool open_sessions(const Opening& opening);
  void open_communication();
  void close_session();
  void close_communication();
  void drain();
  void pass_barrier(Offloader::AtEnd task);
  void turn_off(LogLevel level, const std::string& reason);
  void warn_of_loss() const;
  std::string statistics() const;
  void write_statistics() const;

  std::atomic<bool> active_{false};
  Settings settings_;
  policy::Table policy_;
  bool adapts_ = false;
  NamedPreferences named_preferences_;
  uint32_t blocking_ = 0;  // bit 1 << policy::Collective
  int rank_ = 0;
  int size_ = 1;
  MPI_Comm control_ = MPI_COMM_NULL;  // until the end, for the statistics; null in a job of one process
  MPI_Group world_group_ = MPI_GROUP_NULL;
  int keyval_ = MPI_KEYVAL_INVALID;
  offpath_session_t* session_ = nullptr;
  std::array<uint8_t, OFFPATH_TOKEN_BYTES> token_{};
  bool spare_cores_ = false;
  std::string service_cores_;
  struct {
    bool have_targets, traced;
  } all_{};
  std::atomic<bool> loss_reported_{false};
  attach::Loss loss_;  // by who set loss_reported_
  std::string reason_ = "MPI_Init was not called";
  attach::Nodes nodes_;
  std::vector<std::array<std::byte, OFFPATH_ADDRESS_MAX_BYTES>> addresses_;
};

extern Job job;

}  // namespace offpath::mpi
