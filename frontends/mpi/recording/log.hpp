// SPDX-License-Identifier: BSD-3-Clause
// What one rank did in MPI and when, as JSON lines in a file of its own (docs/guide-planner.md and guide-telemetry.md
// describe the format).
// Lines are collected and written a piece at a time; a line "end" comes last, so a file cut short is noticed.
//
// Threads: any; calls take a lock. Fails by falling silent: then there is no end.
#pragma once

#include "native.hpp"
#include "recording/layer.hpp"

#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace offpath::mpi::recording {

// A call as it is recorded. Times in ns since the clock was started.
struct Call {
  const char* name = "";  // of the MPI function, without MPI_
  uint64_t begin_ns = 0;
  const void* site = nullptr;  // return address in the program
};

// What a call of a collective, or a one-sided operation, says of the operation.
struct Posted {
  const char* kind = "";  // as the policy names it, or put, get, accumulate
  uint64_t bytes = 0;     // as policy::Table::choose means it; the model's irregular ones have sent_bytes
  int root = 0;           // one-sided: the target
  std::vector<uint64_t> sent_bytes;
};

class Log {
 public:
  // At the end of MPI_Init: opens the file for this rank. `prefix`: its path but for the rank.
  void start(const std::string& prefix, const Purpose& purpose);
  // The program's part ended at `end_ns`.
  void stop(uint64_t end_ns);
  void stop() { stop(since_start_ns()); }
  bool on() const { return on_.load(std::memory_order_relaxed); }
  static uint64_t now_ns();
  uint64_t since_start_ns() const { return now_ns() - start_ns_; }

  uint64_t new_operation() { return next_operation_.fetch_add(1, std::memory_order_relaxed); }
  // When the call has returned.
  void post(const Call& call, uint64_t operation, const Posted& posted, MPI_Comm comm, bool blocking);
  // What the service did of it; the times are of now_ns().
  void serve(uint64_t operation, const offpath_op_times_t* times, int status);
  void wait(const Call& call, const std::vector<uint64_t>& operations, bool complete);

  void remember(MPI_Request request, uint64_t operation);
  void remember_persistent(MPI_Request request, const Posted& posted, MPI_Comm comm);
  // The operations that these requests stand for; unknown ones (messages) are left out.
  std::vector<uint64_t> operations_of(const std::vector<MPI_Request>& requests);
  void forget(const std::vector<MPI_Request>& requests);
  void start_persistent(const Call& call, uint64_t operation, MPI_Request request);

  void remember_window(MPI_Win window, MPI_Comm comm);
  void forget_window(MPI_Win window);
  // False: the window is not known.
  bool post_remote(const Call& call, uint64_t operation, const Posted& posted, MPI_Win window);
  // Operations to `target` (-1: to all) that no flush has waited for; they count as waited for now.
  std::vector<uint64_t> take_remote(MPI_Win window, int target);

  void forget_communicator(MPI_Comm comm);

 private:
  struct Persistent {
    Posted posted;
    MPI_Comm comm;
    const char* why;  // as decided when it was made
  };
  struct Remote {
    MPI_Win window;
    int target;
    uint64_t operation;
  };
  void post_locked(const Call& call, uint64_t operation, const Posted& posted, int communicator, bool blocking);
  int number_of(MPI_Comm comm);
  void write_call(const Call& call);
  const std::string& place_of(const void* site);
  void add(const char* name, const std::vector<uint64_t>& values);
  void end_line();
  void flush();

  std::mutex mutex_;
  std::atomic<bool> on_{false};
  bool polls_ = true;
  int file_ = -1;
  uint64_t start_ns_ = 0;
  std::atomic<uint64_t> next_operation_{0};
  int next_communicator_ = 0;
  std::string lines_;
  std::map<MPI_Comm, int> communicators_;
  std::map<MPI_Win, int> windows_;
  std::map<MPI_Request, uint64_t> requests_;
  std::map<MPI_Request, Persistent> persistent_;
  std::vector<Remote> remote_;
  std::unordered_map<const void*, std::string> places_;
};

extern Log log;

}  // namespace offpath::mpi::recording
