// SPDX-License-Identifier: BSD-3-Clause
// The front end's configuration from the environment, read once at MPI_Init, and its messages to the user.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace offpath::attach {

// error: the job cannot run as asked; warn: it runs, without Offpath or with less of it; info: a few lines a run;
// debug: per communicator.
enum class LogLevel { off, error, warn, info, debug };

// Of the texts that the first process tells the others.
inline constexpr size_t kMaxPolicyText = 16384;

struct Settings {
  LogLevel log = LogLevel::warn;                  // OFFPATH_LOG
  std::string policy;                             // OFFPATH_POLICY
  std::string memory;                             // OFFPATH_MPI_MEMORY: rows that earlier runs have found
  std::string adapt;                              // OFFPATH_MPI_ADAPT: on, off or freeze
  uint64_t adapt_percent = 1;                     // OFFPATH_MPI_ADAPT_PERCENT: of the run for exploring, at most
  std::string comm_policy;                        // OFFPATH_MPI_COMM_POLICY: communicators by name
  std::string windows;                            // OFFPATH_MPI_WINDOWS: how operations on offloaded windows go
  std::string blocking;                           // OFFPATH_MPI_BLOCKING: blocking forms to offload
  uint64_t staging_bytes = 64 << 20;              // OFFPATH_MPI_STAGING: memory for messages that are not received yet
  std::string stats_file;                         // OFFPATH_STATS_FILE
  std::string service_cores;                      // OFFPATH_SERVICE_CORES
  bool share_cores = false;                       // OFFPATH_SERVICE_SHARE
  bool quiet_waits = false;                       // OFFPATH_QUIET_WAITS: who waits in the MPI library sleeps, always
  std::chrono::milliseconds loss_timeout{60000};  // OFFPATH_MPI_LOSS_TIMEOUT_MS: how long ranks may take to agree
                                                  // where to go on after a service was lost

  static Settings from_environment();
};

// One line to stderr: "offpath <level>: ...". Dropped above the configured level; a single write.
void say(const Settings& settings, LogLevel level, const char* format, ...) __attribute__((format(printf, 3, 4)));

}  // namespace offpath::attach
