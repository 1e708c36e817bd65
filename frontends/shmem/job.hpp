// SPDX-License-Identifier: BSD-3-Clause
// This PE's part in the job: the session with its node's service, the windows over symmetric memory, and what
// is offloaded at all. That is agreed when the native library has started, alike at all PEs.
//
// States: before start and after stop: closed; in between: active, or off with a reason.
// Threads: start and stop by the thread that initializes and finalizes OpenSHMEM; everything else from any thread.
#pragma once

#include "attach/joining.hpp"
#include "policy/policy.hpp"
#include "shmem/active_sets.hpp"
#include "shmem/exchange.hpp"
#include "shmem/natives.hpp"
#include "shmem/symmetric.hpp"

#include <offpath/offpath.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::shmem {

using attach::LogLevel;

enum class Family { put, get, atomic, broadcast, collect, fcollect, alltoall, reduce };
inline constexpr size_t kFamilies = 8;
const char* family_name(Family family);

struct Counters {
  struct PerFamily {
    std::atomic<uint64_t> offloaded_count{0};
    std::atomic<uint64_t> native_count{0};
    std::atomic<uint64_t> mapped_count{0};  // done by loads and stores of this process
  };
  std::array<PerFamily, kFamilies> families;
  PerFamily& of(Family family) { return families[static_cast<size_t>(family)]; }
  std::atomic<uint64_t> offloaded_bytes{0};
};

class Job {
 public:
  // Right after the native initialization: agrees on everything, attaches, opens the windows. Collective. On any
  // failure everything stays native.
  void start();
  // Right before the native finalization: completes everything at all PEs, detaches, writes the statistics. Collective.
  void stop();
  // The native library is about to end the process: nothing may wait for other PEs any more.
  void abandon() { active_.store(false, std::memory_order_release); }

  // Whether calls of this thread are ours to serve.
  bool serves() const { return active_.load(std::memory_order_acquire) && !Inside::here(); }
  // The same of one-sided operations.
  bool serves_memory() const { return serves() && offloads_memory_; }
  // The blocking form of a collective is offloaded where the policy offloads the nonblocking one.
  bool offloads_blocking(policy::Collective collective) const {
    return (blocking_ >> static_cast<uint32_t>(collective) & 1) != 0;
  }
  // While it serves.
  const policy::Table& policy() const { return policy_; }
  ActiveSets& active_sets() { return active_sets_; }
  // The segment that holds [address, address + bytes), or null: then the call is native.
  Segment* find(const void* address, uint64_t bytes) {
    for (Segment& segment : segments_) {
      if (segment.holds(address, bytes)) return &segment;
    }
    return nullptr;
  }
  int pe_count() const { return pe_count_; }
  bool spare_cores() const { return member_.spare_cores(); }
  Counters& counters() { return counters_; }

  // Waits until all that was posted is in the targets' memory.
  void quiet();
  // Whether anything that was posted has failed or was lost, for threads that wait for other PEs: those may wait for it, and the
  // service that would have done it is asked by nobody else.
  void look();
  // An operation failed, and OpenSHMEM has no way to say so: one line, then the native library's own end of the job.
  void fail(offpath_status_t status, const std::string& operation);

 private:
  struct Opening;  // what PE 0 tells everybody

  // False: everything stays native.
  bool agree();
  void fill_opening(Opening* opening) const;
  // What the policy offloads of what OpenSHMEM has, on so many nodes.
  bool offloads_collectives(uint32_t nodes) const;
  // Where this process sees the others' parts: heaps on its own node, if the native library shares them.
  std::vector<std::byte*> mapped_parts(size_t which, const Range& own) const;
  bool open_windows(const Opening& opening, const attach::Directory& members);
  HeapExchange exchange() const { return {pe_, pe_count_}; }
  void close();
  bool turn_off(LogLevel level, const std::string& reason);
  void write_statistics() const;

  std::atomic<bool> active_{false};
  attach::Settings settings_;
  int pe_ = 0;
  int pe_count_ = 0;
  int process_id_ = 0;
  std::string reason_ = "OpenSHMEM was not initialized";
  attach::Membership member_{"PE"};
  policy::Table policy_;
  uint32_t blocking_ = 0;         // bit 1 << policy::Collective
  bool offloads_memory_ = false;  // the policy offloads windows
  offpath_team_t* team_ = nullptr;
  ActiveSets active_sets_;
  std::vector<Segment> segments_;
  Counters counters_;
};

extern Job job;

}  // namespace offpath::shmem
