// SPDX-License-Identifier: BSD-3-Clause
// What this process counts for its line of statistics.
//
// Threads: any.
#pragma once

#include "policy/adaptation.hpp"
#include "policy/policy.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace offpath::mpi {

inline constexpr size_t kCollectives = static_cast<size_t>(policy::Collective::ineighbor_alltoallw) + 1;

// Why a call never came as far as a decision.
enum class Passed : uint8_t { off, communicator, blocking };
inline constexpr size_t kPassed = 3;

struct Counters {
  struct PerCollective {
    std::atomic<uint64_t> offloaded_count{0};
    std::atomic<uint64_t> native_count{0};  // calls on a communicator with a lane that stayed native
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
  std::atomic<uint64_t> waits{0};  // calls of the Wait and Test families, about: threads may count at once

  void count_wait() { add_about(waits); }
  void count_passed(Passed reason) { add_about(passed[static_cast<size_t>(reason)]); }
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
