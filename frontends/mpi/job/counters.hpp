// SPDX-License-Identifier: BSD-3-Clause
// What this process counts for its line of statistics.
//
// Threads: any.
#pragma once

#include "mpi/native/native.hpp"
#include "policy/adaptation.hpp"
#include "policy/policy.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace offpath::mpi {

inline constexpr size_t kCollectives = static_cast<size_t>(policy::Collective::window);

// Why a call never came as far as a decision.
enum class Passed : uint8_t { off, communicator, blocking };
inline constexpr size_t kPassed = 3;

// What a program calls beside nonblocking and persistent collectives; counted at the doorway (lifetime/seen.hpp).
// words/mpi_functions.def says what is what.
enum class Seen : uint8_t { messages, long_messages, blocking_messages, blocking_collectives, files, nothing };
inline constexpr size_t kSeen = static_cast<size_t>(Seen::nothing);
inline constexpr uint64_t kLongMessageBytes = 512 << 10;  // from there on, messages have gained in measurements

// An error of the service. What does not fit into the program's buffer is the program's.
inline bool is_failure(int code) {
  int error_class = MPI_SUCCESS;
  if (code == MPI_SUCCESS) return false;
  return native.Error_class(code, &error_class) != MPI_SUCCESS || error_class != MPI_ERR_TRUNCATE;
}

struct Counters {
  struct PerCollective {
    std::atomic<uint64_t> offloaded_count{0};
    std::atomic<uint64_t> native_count{0};  // calls on a communicator with a lane that stayed native
  };
  std::array<PerCollective, kCollectives> collectives;         // all forms count as the nonblocking one
  std::array<std::atomic<uint64_t>, policy::kWhyCount> why{};  // calls whose size all ranks know, by what decided
  std::array<std::atomic<uint64_t>, kPassed> passed{};         // by Passed; about: threads may count at once
  std::array<std::atomic<uint64_t>, kSeen> seen{};             // by Seen; about
  std::atomic<uint64_t> native_bytes_most{0};  // of the calls that the policy left native, the longest; about
  std::atomic<uint64_t> form_count{0};         // calls that stayed native because the service does not do such
  std::atomic<uint64_t> offloaded_bytes{0};
  std::atomic<uint64_t> completed_count{0};
  std::atomic<uint64_t> failed_count{0};
  std::atomic<uint64_t> wait_ns{0};
  std::atomic<uint64_t> post_ns{0};
  std::atomic<uint64_t> waits{0};  // calls of the Wait and Test families, about: threads may count at once

  inline static constinit thread_local bool in_library = false;  // this thread is in a call that may make others

  void count_wait() { add_about(waits); }
  void count_passed(Passed reason) {
    if (!in_library) add_about(passed[static_cast<size_t>(reason)]);
  }
  // Where counts() says so.
  void count_seen(Seen kind) { add_about(seen[static_cast<size_t>(kind)]); }
  // This thread's calls are the program's.
  static bool counts() { return !in_library && !Inside::here(); }
  void note_native(uint64_t bytes) {
    if (bytes > native_bytes_most.load(std::memory_order_relaxed)) {
      native_bytes_most.store(bytes, std::memory_order_relaxed);
    }
  }
  void count_native(policy::Collective collective) {
    collectives[static_cast<size_t>(collective)].native_count.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  // One that may be lost costs no locked instruction.
  static void add_about(std::atomic<uint64_t>& count) {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

inline Counters counters;

}  // namespace offpath::mpi
